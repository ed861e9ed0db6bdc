//! The recording, and all that is true of it.
//!
//! `app` (pid 300) makes another `app` (400) in a container, which ends; 400 is given anew to `other`. Both have a thread `worker`, and the
//! first thread of 300 changes its name. `idle` (500) has no samples. In `/opt/app`, `helper` is inlined into `run`; `guess` is not certain. Waiting and allocating is in
//! `/usr/lib/libwait.so`. Times are nanoseconds after the start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use collector_common::event::{ByteOrder, EventField, EventFormat, Extent, FieldKind, Place, Width};
use collector_common::ids::{Avma, BuildId, FileOffset, Nanos, Pid, Svma, Tid, Uid};
use collector_common::record::{
    AttributeListId, AttributeValue, ClockAnchor, Column, DebugLink, ESTIMATED, EventFacts, EventKind,
    EventRecord, Exit, ExportMachine, Frame, FrameFlags, FrameId, Histogram, Module, ModuleDetails, ModuleId,
    ModuleKind, ModuleMapping, ProcessId, ProcessLife, Sample, SampleKindId, Table, ThreadId, TimelineOwner,
    Unit,
};
use export::symbolize::{Function, Symbols};

use super::facts::{Fact, Row, Said};
use crate::made::CONTAINER;

/// When the recording starts, by its clock, and the time of day.
pub(super) const START: u64 = 1_000_000;
pub(super) const REALTIME: u64 = 1_750_000_000_000_000_000;
pub(super) const END: u64 = 40_000_000;

/// Name, unit and period.
pub(super) const KINDS: [(&str, Unit, u64); 4] = [
    ("cpu", Unit::Count, PERIOD),
    ("off_cpu", Unit::Nanoseconds, 1),
    ("alloc_space", Unit::Bytes, 1),
    ("sched:sched_switch", Unit::Count, 1),
];
const CPU: usize = 0;
const OFF_CPU: usize = 1;
const SPACE: usize = 2;
const SWITCH: usize = 3;
pub(super) const PERIOD: u64 = 1_003_009;

/// Pid and name.
const PROCESSES: [(u32, &str); 3] = [(300, "app"), (400, "app"), (400, "other")];

/// Pid and name of one with a thread and nothing else.
pub(super) const UNSAMPLED: (u32, &str) = (500, "idle");

/// Process, tid and name.
const THREADS: [(usize, u32, &str); 6] = [
    (0, 300, "app"),
    (0, 300, "app: ready"),
    (0, 301, "worker"),
    (1, 400, "app"),
    (1, 401, "worker"),
    (2, 400, "other"),
];
const EARLY: usize = 0;
const LATE: usize = 1;
const WORKER: usize = 2;
const CHILD: usize = 3;
const ITS_WORKER: usize = 4;
const OTHER: usize = 5;

/// A function that is inlined into another.
pub(super) const INLINED: &str = "helper";

/// Functions with source files that are not inlined. Of `main` there are frames at a further line, too.
pub(super) const SOURCED: [&str; 2] = ["main", "run"];
pub(super) const LATER: (&str, u64) = ("main", 9);

/// Functions, the outermost first.
const STACKS: [&[&str]; 6] = [
    &["main", "run", INLINED],
    &["main", "wait"],
    &["main", "allocate"],
    &["main", "wait", "vfs_read"],
    &["main", "guess"],
    &[],
];
const RUN: usize = 0;
const WAIT: usize = 1;
const ALLOCATE: usize = 2;
const READ: usize = 3;
const GUESS: usize = 4;
const NOTHING: usize = 5;

/// A name, and what is said by it.
type Attribute = (&'static str, Value);

#[derive(Clone, Copy)]
enum Value {
    Label(&'static str),
    Number(i64),
}
use Value::{Label, Number};

/// Kind, time, thread, CPU, stack, value, and attributes.
type Planned = (usize, u64, usize, u16, usize, i64, &'static [Attribute]);

/// Not in the order of their times, as samples of several CPUs are.
const SAMPLES: [Planned; 17] = [
    (CPU, 5_000_000, WORKER, 1, RUN, 1, &[]),
    (CPU, 6_003_009, WORKER, 1, RUN, 2, &[]),
    (CPU, 9_000_777, WORKER, 1, READ, 1, &[]),
    (CPU, 13_000_007, ITS_WORKER, 1, GUESS, 1, &[]),
    (CPU, 1_000_321, EARLY, 0, RUN, 1, &[]),
    (CPU, 8_000_000, LATE, 0, ALLOCATE, 1, &[]),
    (CPU, 9_500_000, LATE, 0, NOTHING, 1, &[]),
    (CPU, 12_500_000, CHILD, 0, RUN, 1, &[(ESTIMATED, Label("yes"))]),
    (CPU, 31_000_000, OTHER, 0, RUN, 1, &[("phase", Label("end"))]),
    (OFF_CPU, 25_000_000, WORKER, 1, WAIT, 5_000_001, &[]),
    (OFF_CPU, 15_000_000, WORKER, 1, WAIT, 10_000_000, &[("lock", Label("0x7f00")), ("queue", Label("7"))]),
    // Begins before the one before it ends.
    (
        OFF_CPU,
        20_000_000,
        WORKER,
        1,
        WAIT,
        10_000_000,
        &[("bytes", Number(1 << 40)), ("path", Label("/var/log/x"))],
    ),
    (OFF_CPU, 16_000_000, LATE, 1, WAIT, 7_000_000, &[(ESTIMATED, Label("yes"))]),
    (SPACE, 2_000_000, EARLY, 0, ALLOCATE, 4096, &[]),
    (SPACE, 3_000_000, WORKER, 0, ALLOCATE, 512, &[("count", Number(-2)), ("level", Number(0))]),
    (SPACE, 7_000_000, LATE, 0, ALLOCATE, -96, &[]),
    // That of an event.
    (SWITCH, 7_500_000, WORKER, 1, WAIT, 1, &[]),
];

/// Whose a span is.
enum Of {
    Recording,
    Process(usize),
    Thread(usize),
}

/// Whose, timeline, name, begin, duration, and attributes.
type PlannedSpan = (Of, &'static str, &'static str, u64, u64, &'static [Attribute]);

const SPANS: [PlannedSpan; 3] = [
    (Of::Process(0), "requests", "answer", 4_000_000, 500_000, &[]),
    (Of::Thread(WORKER), "tasks", "poll", 6_500_000, 700_001, &[("queue", Label("7")), ("depth", Number(3))]),
    (
        Of::Recording,
        "builds",
        "link",
        1_500_000,
        30_000_000,
        &[("target", Label("release")), ("bytes", Number(5_000_000_000))],
    ),
];

/// File and build id.
const FILES: [(&str, [u8; 3]); 2] =
    [("/opt/app", [0xab, 0xcd, 0x01]), ("/usr/lib/libwait.so", [0xef, 0x01, 0x23])];

/// Where code is linked for.
pub(super) const LINKED: u64 = 0x4000;

/// Both files have 0x5000 bytes of code at 0x3000, which are linked for 0x4000. Process, file, bias and time.
const MAPPINGS: [(usize, usize, u64, u64); 4] = [
    (0, 0, 0x5555_0000_0000, 0),
    (0, 1, 0x7f00_0000_0000, 0),
    (1, 0, 0x5566_0000_0000, 10_000_000),
    (2, 0, 0x5577_0000_0000, 30_000_000),
];

/// All that is true beside the samples.
pub(super) fn facts() -> BTreeSet<(Fact, String)> {
    use Fact::*;
    let container = format!("400 app: {CONTAINER}");
    let cgroup = format!("400 app: /docker/{CONTAINER}");
    let facts = [
        (Unsampled, "500 idle"),
        (CommandLine, "300 app: app --all \"two words\""),
        (CommandLine, "400 app: child --now"),
        (User, "300 app: ann (1000)"),
        (Container, &container),
        (Cgroup, &cgroup),
        (Program, "300 app 0: app --all \"two words\""),
        (Program, "400 app 12000000: child --now"),
        (Start, "400 app 10000000"),
        (Start, "400 other 30000000"),
        (End, "400 app 20000000"),
        (Parent, "400 app 300"),
        (ExitStatus, "400 app: 3"),
        (NamespacePid, "400 app: 7"),
        (Renamed, "300 300 app: ready"),
        (PathBesideSource, "main /opt/app"),
        (PathBesideSource, "run /opt/app"),
        (PathOfInlined, "helper /opt/app"),
        (Path, "guess /opt/app"),
        (Path, "wait /usr/lib/libwait.so"),
        (Path, "allocate /usr/lib/libwait.so"),
        (BuildId, "/opt/app abcd01"),
        (BuildId, "/usr/lib/libwait.so ef0123"),
        (DebugLink, "/opt/app app.debug"),
        (Mapping, "300 0x555500004000-0x555500009000 /opt/app 0"),
        (Mapping, "300 0x7f0000004000-0x7f0000009000 /usr/lib/libwait.so 0"),
        (Mapping, "400 0x556600004000-0x556600009000 /opt/app 10000000"),
        (Mapping, "400 0x557700004000-0x557700009000 /opt/app 30000000"),
        (Segment, "0x4000-0x9000 0x3000 /opt/app"),
        (Segment, "0x4000-0x9000 0x3000 /usr/lib/libwait.so"),
        (Line, "main 7"),
        (LaterLine, "main 9"),
        (Line, "run 20"),
        (Line, "helper 3"),
        (Source, "main main.c"),
        (Source, "run run.c"),
        (Source, "helper helper.h"),
        (Inlined, INLINED),
        (Guessed, "main;guess"),
        (FrameRules, "vfs_read, not run"),
        (Unit, "cpu count"),
        (Unit, "off_cpu nanoseconds"),
        (Unit, "alloc_space bytes"),
        (Unit, "sched:sched_switch count"),
        (Period, "cpu 1003009"),
        (Distribution, "Debian GNU/Linux 12 (bookworm)"),
        (Processor, "A B @ 2 GHz"),
        (Memory, "8589934592"),
        (Booted, "1749999000000000000"),
        (Host, "build-07"),
        (Kernel, "Linux 6.18.0"),
        (Command, "app --all"),
        (Lost, "5"),
        (Account, "5 lost (ring_full 5)"),
        (Account, "queue: 7.5 requests"),
        (
            Switch,
            "7500000 sched:sched_switch next_comm=app next_pid=300 next_prio=120 prev_comm=worker prev_pid=301 prev_prio=119 prev_state=1",
        ),
        (Event, "14000000 made:alone prev_pid=-2"),
        (Span, "process 300 at 4000000 for 500000: requests: answer"),
        (Span, "thread 301 of 300 at 6500000 for 700001: tasks: poll, depth 3, queue \"7\""),
        (Span, "recording at 1500000 for 30000000: builds: link, bytes 5000000000, target \"release\""),
        (Counted, "calls: read: 3 calls (count)"),
        (Counted, "times of calls: read: 3 of 4500 nanoseconds"),
        (Counted, "times of calls: read: 2 from 0 to 1000"),
        (Counted, "times of calls: read: 1 from 1000 to null"),
        (
            Counted,
            "400 app of 300 app at 10000000 for 10000000, status 3: 12000000 app [\"child\",\"--now\"]",
        ),
    ];
    facts.into_iter().map(|(fact, text)| (fact, text.to_owned())).collect()
}

/// All samples, with all that is true of them.
pub(super) fn rows() -> Vec<Row> {
    let row = |(kind, time, thread, cpu, stack, value, attributes): Planned| {
        let (process, tid, thread) = THREADS[thread];
        let (pid, process) = PROCESSES[process];
        let owned = |(name, value): Attribute| {
            let said = match value {
                Label(text) => text.into(),
                Number(number) => Said::Number(number),
            };
            (name.to_owned(), said)
        };
        Row {
            kind: KINDS[kind].0.to_owned(),
            time: Some(time),
            pid: Some(pid),
            process: Some(process.to_owned()),
            tid: Some(tid),
            thread: Some(thread.to_owned()),
            cpu: Some(cpu),
            attributes: attributes.iter().copied().map(owned).collect(),
            stack: STACKS[stack].iter().map(|&name| name.to_owned()).collect(),
            value,
        }
    };
    SAMPLES.map(row).to_vec()
}

/// The name of a sample's thread at the last of those samples of the thread that count.
pub(super) fn last_name(row: &Row, counts: impl Fn(&Row) -> bool) -> Option<String> {
    let thread = |row: &Row| (row.pid, row.process.clone(), row.tid);
    let own = rows().into_iter().filter(|other| thread(other) == thread(row) && counts(other));
    own.max_by_key(|other| other.time).unwrap().thread
}

pub(super) fn recording() -> (ExportMachine, Symbols) {
    let mut machine = ExportMachine::default();
    describe(&mut machine);
    let processes = people(&mut machine);
    let (frames, symbols) = code(&mut machine, &processes);
    let kinds = KINDS.map(|(name, unit, period)| machine.add_kind(name, unit, period));
    let threads = THREADS.map(|(process, tid, name)| {
        let name = machine.intern_string(name);
        machine.intern_thread(processes[process], Tid(tid), name)
    });
    let (pid, name) = UNSAMPLED;
    let unsampled = machine.add_process(Pid(pid), name, None, Nanos(0));
    let name = machine.intern_string(name);
    machine.intern_thread(unsampled, Tid(pid), name);
    let mut samples = SAMPLES.map(|(kind, time, thread, cpu, stack, value, attributes)| {
        let attributes = interned(&mut machine, attributes);
        // What is inlined has no frame of its own.
        let names = STACKS[stack].iter().rev();
        let called =
            |name: &'static str| if stack == ALLOCATE && name == LATER.0 { MAIN_LATER } else { name };
        let stack: Vec<FrameId> = names.filter_map(|name| frames.get(called(name)).copied()).collect();
        let stack = machine.intern_stack(&stack);
        let (time, thread, kind) = (at(time), threads[thread], kinds[kind]);
        Sample { time, thread, stack, cpu, kind, value, attributes }
    });
    let [own @ .., of_event] = &mut samples;
    for sample in own {
        machine.add_sample(sample);
    }
    events(&mut machine, of_event, threads[CHILD], kinds[SWITCH]);
    for (owner, timeline, name, begin, lasted, attributes) in SPANS {
        let owner = match owner {
            Of::Recording => TimelineOwner::Recording,
            Of::Process(process) => TimelineOwner::Process(processes[process]),
            Of::Thread(thread) => TimelineOwner::Thread(threads[thread]),
        };
        let timeline = machine.add_timeline(timeline, owner);
        let attributes = interned(&mut machine, attributes);
        let span = machine.begin_span(timeline, name, at(begin), attributes);
        machine.end_span(span, at(begin + lasted));
    }
    let columns = vec![Column { name: "calls".to_owned(), unit: Unit::Count }];
    machine.add_table(Table { name: "calls".to_owned(), columns, rows: vec![("read".to_owned(), vec![3])] });
    let (name, label) = ("times of calls".to_owned(), "read".to_owned());
    let (unit, buckets) = (Unit::Nanoseconds, vec![2, 1]);
    machine.add_histogram(Histogram { name, label, unit, first_end: 1_000, buckets, sum: 4_500 });
    machine.add_life(ProcessLife { process: processes[1], made: at(10_000_000) });
    (machine, symbols)
}

/// The same with a sample more: `main` calls code that has no name, which returns to 0x4710, and is called by the address before that, and
/// that calls more of the same.
pub(super) fn with_unnamed() -> (ExportMachine, Symbols) {
    let (mut machine, symbols) = recording();
    let first = machine.samples().at(0);
    let app = machine.frames().get(machine.stacks().get(first.stack)[0]).module;
    let [inner, outer] =
        UNNAMED.map(|(address, flags)| machine.intern_frame(unnamed_frame(app, address, flags)));
    let main = machine.stacks().get(first.stack).last().copied().unwrap();
    let stack = machine.intern_stack(&[inner, outer, main]);
    machine.add_sample(&Sample { time: at(33_000_000), stack, ..first });
    (machine, symbols)
}

/// Where on the stack code is that has no name, the innermost first.
const UNNAMED: [(u64, u8); 2] = [(0x4620, 0), (0x4710, FrameFlags::RETURN_ADDRESS)];

fn unnamed_frame(module: ModuleId, address: u64, flags: u8) -> Frame {
    Frame { module, address: Svma(address), flags: FrameFlags(flags) }
}

/// What is told of the recording as a whole, and nothing else.
pub(super) fn without_samples() -> (ExportMachine, Symbols) {
    let mut machine = ExportMachine::default();
    describe(&mut machine);
    let symbols = Symbols::unresolved(&machine);
    (machine, symbols)
}

fn interned(machine: &mut ExportMachine, attributes: &[Attribute]) -> AttributeListId {
    let list = attributes.iter().map(|&(name, value)| {
        let value = match value {
            Label(text) => machine.intern_string(text).into(),
            Number(number) => AttributeValue::Number(number),
        };
        (machine.intern_string(name), value)
    });
    let list: Vec<_> = list.collect();
    machine.attributes_mut().intern(&list)
}

fn at(time: u64) -> Nanos {
    Nanos(START + time)
}

fn describe(machine: &mut ExportMachine) {
    let system = machine.system_mut();
    "build-07".clone_into(&mut system.host);
    "Linux 6.18.0".clone_into(&mut system.kernel);
    "x86_64".clone_into(&mut system.architecture);
    "Debian GNU/Linux 12 (bookworm)".clone_into(&mut system.distribution);
    "A B @ 2 GHz".clone_into(&mut system.processor);
    system.memory = 8 << 30;
    "app --all".clone_into(&mut system.command);
    (system.cpus, system.start, system.end) = (2, at(0), at(END));
    let boottime = Some(Nanos(1_000_000_000_000));
    system.clocks.start = Some(ClockAnchor { monotonic: at(0), realtime: REALTIME, boottime });
    // What the first one matches is to be dropped, unless the second one does.
    "vfs_.*|run".clone_into(&mut system.drop_frames);
    "r.n".clone_into(&mut system.keep_frames);
    system.lost = Some(5);
    system.account = vec!["5 lost (ring_full 5)".to_owned()];
    machine.add_custom_metric("queue", 7.5, "requests");
}

fn people(machine: &mut ExportMachine) -> [ProcessId; 3] {
    let [(first, app), (second, child), (third, other)] = PROCESSES;
    let app = machine.add_process(Pid(first), app, None, Nanos(0));
    let child = machine.add_process(Pid(second), child, Some(app), at(10_000_000));
    machine.end_process(child, at(20_000_000));
    let ended = machine.process_mut(child).unwrap();
    (ended.exit, ended.namespace_pid) = (Some(Exit::Code(3)), Some(Pid(7)));
    let other = machine.add_process(Pid(third), other, None, at(30_000_000));
    let program = machine.add_program(app, Nanos(0), "app");
    machine.set_arguments(program, b"app\0--all\0two words\0", false);
    let program = machine.add_program(child, at(12_000_000), "app");
    machine.set_arguments(program, b"child\0--now\0", false);
    machine.set_cgroup(child, &format!("/docker/{CONTAINER}"));
    machine.name_user(Uid(1000), "ann");
    machine.process_mut(app).unwrap().user = Some(Uid(1000));
    [app, child, other]
}

/// What the frame of `main` at a further line goes by here.
const MAIN_LATER: &str = "main, later";

/// Frames by their function, and what these are called.
fn code(
    machine: &mut ExportMachine,
    processes: &[ProcessId; 3],
) -> (BTreeMap<&'static str, FrameId>, Symbols) {
    let files = FILES.map(|(path, build_id)| {
        let path = machine.intern_string(path);
        machine.add_module(Module { kind: ModuleKind::File, path, build_id: BuildId::new(&build_id) })
    });
    for (process, file, bias, time) in MAPPINGS {
        machine.add_mapping(ModuleMapping {
            process: processes[process],
            module: files[file],
            start: Avma(bias + LINKED),
            end: Avma(bias + 0x9000),
            file_offset: FileOffset(0x3000),
            bias,
            since: if time == 0 { Nanos(0) } else { at(time) },
        });
    }
    let [app, library] = files;
    let debug_link = Some(DebugLink { name: "app.debug".to_owned(), checksum: 7 });
    machine.set_details(app, ModuleDetails { debug_link, ..ModuleDetails::default() });
    let (returned, guessed) = (FrameFlags::RETURN_ADDRESS, FrameFlags::HEURISTIC);
    let kernel = 0xffff_ffff_8123_4567;
    let frames = [
        ("main", app, 0x4101, returned),
        (MAIN_LATER, app, 0x4121, returned),
        ("run", app, 0x4200, 0),
        ("guess", app, 0x4300, guessed),
        ("wait", library, 0x4400, 0),
        ("allocate", library, 0x4500, 0),
        ("vfs_read", ModuleId::KERNEL, kernel, FrameFlags::KERNEL),
    ];
    let frames: BTreeMap<&str, FrameId> = frames
        .into_iter()
        .map(|(name, module, address, flags)| {
            let frame = Frame { module, address: Svma(address), flags: FrameFlags(flags) };
            (name, machine.intern_frame(frame))
        })
        .collect();
    for (address, flags) in UNNAMED {
        machine.intern_frame(unnamed_frame(app, address, flags));
    }
    let mut symbols = Symbols::unresolved(machine);
    let mut function = |name, file, line| Function {
        name: symbols.intern(name),
        linkage: symbols.intern(name),
        file: symbols.intern(file),
        line,
        ..Function::default()
    };
    let lists = [
        ("main", vec![function("main", "main.c", 7)]),
        (MAIN_LATER, vec![function("main", "main.c", 9)]),
        ("run", vec![function(INLINED, "helper.h", 3), function("run", "run.c", 20)]),
        ("guess", vec![function("guess", "", 0)]),
        ("wait", vec![function("wait", "", 0)]),
        ("allocate", vec![function("allocate", "", 0)]),
        ("vfs_read", vec![function("vfs_read", "", 0)]),
    ];
    for (frame, list) in lists {
        symbols.set_functions(frames[frame], &list);
    }
    (frames, symbols)
}

/// Two raw events with fields: one that a sample was taken of, and one without.
fn events(machine: &mut ExportMachine, sample: &Sample, thread: ThreadId, kind: SampleKindId) {
    let number = FieldKind::Signed(Width::W32);
    let text = FieldKind::Char;
    let format = |fields: &[(&str, &FieldKind)]| {
        let mut format = EventFormat::new(ByteOrder::Little);
        for (name, kind) in fields {
            let extent = if matches!(kind, FieldKind::Char) { Extent::ZeroTerminated } else { Extent::One };
            let field = EventField::new(*name, "", (*kind).clone(), extent, Place::AfterPrevious);
            format.add_field(field).unwrap();
        }
        format
    };
    let state = FieldKind::Signed(Width::W64);
    let of_switch = [
        ("prev_comm", &text),
        ("prev_pid", &number),
        ("prev_prio", &number),
        ("prev_state", &state),
        ("next_comm", &text),
        ("next_pid", &number),
        ("next_prio", &number),
    ];
    let mut event_kind = |provider: &str, name: &str, id, format, samples| {
        let full_name = format!("{provider}:{name}");
        let [name, provider, short_name] =
            [&full_name, provider, name].map(|name| machine.intern_string(name));
        let facts = EventFacts { version: 1, level: 4, opcode: 0, keywords: 0 };
        let format = Arc::new(format);
        let kind = EventKind { name, provider, short_name, id, facts, format, samples };
        machine.add_event_kind(kind).unwrap()
    };
    let switch = event_kind("sched", "sched_switch", 9, format(&of_switch), Some(kind));
    let alone = event_kind("made", "alone", 10, format(&[("prev_pid", &number)]), None);
    let [prev, prev_prio, next, next_prio] = [301_i32, 119, 300, 120].map(i32::to_le_bytes);
    let state = 1_i64.to_le_bytes();
    let bytes = [b"worker\0", &prev[..], &prev_prio, &state, b"app\0", &next, &next_prio].concat();
    assert_eq!(sample.kind, kind);
    machine.add_sample_of_event(sample, switch, &bytes);
    let record = EventRecord { time: at(14_000_000), thread, kind: alone, cpu: 1, ..EventRecord::default() };
    machine.add_event_record(&record, &(-2_i32).to_le_bytes()).unwrap();
}
