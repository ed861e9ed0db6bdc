//! JFR files become machines again: those that we write as they were, and the JDK's and async-profiler's as the JDK's own reader shows
//! them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use collector_common::ids::{BuildId, Nanos, Pid, Svma, Tid};
use collector_common::record::{
    AttributeValue, ClockAnchor, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind,
    ProcessId, Sample, Unit,
};
use export::import::Imported;
use export::import::jfr::import;
use export::symbolize::{Function, Symbols};
use proptest::prelude::*;
use serde_json::Value;

use crate::jfr::{duration, every_kind, nanoseconds, printed, written};
use crate::made::Made;
use crate::tools::{output, tool};

/// A function on a stack: its name and module, the line, and whether it was inlined.
type Line = (String, String, u32, bool);

/// A sample, by what it says and not by what it is known as.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    time: u64,
    kind: String,
    unit: &'static str,
    period: u64,
    value: i64,
    cpu: u16,
    process: (u32, String, Nanos),
    thread: (u32, String),
    /// Innermost first, a list for each frame.
    frames: Vec<Vec<Line>>,
    is_cut: bool,
    attributes: Vec<(String, Said)>,
}

/// What an attribute says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Text(String),
    Number(i64),
}

fn told(machine: &ExportMachine, symbols: &Symbols) -> Vec<Told> {
    let string = |id| machine.string(id).to_owned();
    let of = |sample: Sample| {
        let thread = machine.thread(sample.thread);
        let process = machine.process(thread.process);
        let kind = &machine.kinds()[usize::from(sample.kind.0)];
        let stack = machine.stacks().get(sample.stack);
        let is_cut = |id: &FrameId| machine.frames().get(*id).flags.has(FrameFlags::CUT);
        let lines = |id: &FrameId| -> Vec<Line> {
            let module = string(machine.module(machine.frames().get(*id).module).path);
            let line =
                |of: Function| (symbols.function(of.name).to_owned(), module.clone(), of.line, of.is_inlined);
            symbols.functions(*id).map(line).collect()
        };
        let attributes = machine.attributes().get(sample.attributes).iter();
        Told {
            time: sample.time.0,
            kind: string(kind.name),
            unit: kind.unit.name(),
            period: if kind.unit == Unit::Count { kind.period } else { 1 },
            value: sample.value,
            cpu: sample.cpu,
            process: (process.pid.0, string(process.name), process.start),
            thread: (thread.tid.0, string(thread.name)),
            frames: stack.iter().filter(|id| !is_cut(id)).map(lines).collect(),
            is_cut: stack.iter().any(is_cut),
            attributes: attributes
                .map(|&(key, value)| match value {
                    AttributeValue::Label(text) => (string(key), Said::Text(string(text))),
                    AttributeValue::Number(number) => (string(key), Said::Number(number)),
                })
                .collect(),
        }
    };
    let mut all: Vec<Told> = machine.samples().iter().map(of).collect();
    all.sort();
    all
}

#[test]
fn what_we_write_is_read_as_it_was() {
    let Made { mut machine, symbols } = every_kind();
    let program = machine.add_program(ProcessId(1), Nanos(1_500), "sh");
    machine.set_arguments(program, b"sh\0\0a b\0", true);
    machine.add_program(ProcessId(1), Nanos(1_700), "kthread");
    let imported = import(&*written(&machine, &symbols)).unwrap();
    assert!(imported.left_out.is_empty(), "{:?}", imported.left_out);
    assert_eq!(told(&machine, &symbols), told(&imported.machine, &imported.symbols));
    let [before, after] = [&machine, &imported.machine].map(ExportMachine::system);
    assert_eq!((&after.host, &after.kernel, &after.command), (&before.host, &before.kernel, &before.command));
    assert_eq!((after.architecture.as_str(), after.cpus, after.lost), ("x86_64", 2, Some(3)));
    assert_eq!(after.account, before.account);
    // It begins with the sample that was taken before it.
    assert_eq!((after.start, after.end), (Nanos(500), before.end));
    assert_eq!(after.clocks.unix_at(Nanos(12_345)), before.clocks.unix_at(Nanos(12_345)));
    let processes = |machine: &ExportMachine| -> Vec<_> {
        let parent = |of: &collector_common::record::Process| of.parent.map(|id| machine.process(id).pid);
        let of = |of: &collector_common::record::Process| (of.pid, of.start, of.end, parent(of));
        let mut all: Vec<_> = machine.processes().iter().map(of).collect();
        all.sort_by_key(|of| of.0.0);
        all
    };
    assert_eq!(processes(&machine), processes(&imported.machine));
    let facts = |machine: &ExportMachine| -> Vec<_> {
        let of = |(process, id): (&collector_common::record::Process, u32)| {
            let programs = machine.programs_of(ProcessId(id)).map(|id| {
                let program = machine.program(id);
                let arguments: Vec<String> = machine.arguments(program).map(str::to_owned).collect();
                (program.since, machine.string(program.name).to_owned(), arguments, program.are_cut)
            });
            let texts = [process.cgroup, process.container].map(|id| machine.string(id).to_owned());
            let user = machine.user_name(process).map(str::to_owned);
            (process.pid.0, process.user, user, process.namespace_pid, texts, programs.collect::<Vec<_>>())
        };
        let mut all: Vec<_> = machine.processes().iter().zip(0..).map(of).collect();
        all.sort_by_key(|of| of.0);
        all
    };
    assert_eq!(facts(&machine), facts(&imported.machine));
    let program =
        imported.machine.modules().iter().find(|of| imported.machine.string(of.path) == "/opt/prog");
    assert_eq!(program.unwrap().build_id, BuildId::new(&[0xab, 0xcd, 1]));
}

/// Time, value, CPU; thread, kind and stack; attributes.
type PlannedSample = (u64, i64, u16, [prop::sample::Index; 3], Vec<(String, Said)>);

/// When a pid is given again.
const AGAIN: Nanos = Nanos(1 << 59);

/// A recording made of numbers: threads, stacks and samples that are what these say.
#[derive(Clone, Debug)]
struct Plan {
    /// Pids, with whether that was given again, tids and names.
    threads: Vec<(u32, bool, u32, String)>,
    kinds: Vec<(String, u8, u64)>,
    /// Modules of frames, and their functions with lines.
    frames: Vec<(u8, Vec<(String, u32)>)>,
    stacks: Vec<(Vec<prop::sample::Index>, bool)>,
    samples: Vec<PlannedSample>,
    offset: u64,
}

fn plan() -> impl Strategy<Value = Plan> {
    let name = || "[a-zñ:=,\\\\ ]{0,6}";
    let kind = prop_oneof![
        Just("cpu".to_owned()),
        Just("wall_clock".to_owned()),
        Just("alloc_space".to_owned()),
        Just("off_cpu".to_owned()),
        "[a-z:_0-9é]{1,8}",
    ];
    // The smallest number is that of an event without the attribute.
    let said = prop_oneof![
        name().prop_map(Said::Text),
        "-?[0-9]{1,2}".prop_map(Said::Text),
        (-99..100_i64).prop_map(Said::Number),
        (i64::MIN + 1..=i64::MAX).prop_map(Said::Number),
    ];
    // A name that is there twice has a field once, and numbers of more than 16 names are text.
    let attributes = prop::collection::btree_map("[ab]?[=,\\\\]|[=,]a|value", said, 0..4)
        .prop_map(|attributes| attributes.into_iter().collect());
    (
        prop::collection::vec((1..5_u32, any::<bool>(), 1..9_u32, name()), 1..5),
        prop::collection::vec((kind, 0..3_u8, 1..5_u64), 1..6),
        prop::collection::vec((0..5_u8, prop::collection::vec((name(), 0..9_u32), 1..4)), 1..9),
        prop::collection::vec(
            (prop::collection::vec(any::<prop::sample::Index>(), 0..7), any::<bool>()),
            1..7,
        ),
        prop::collection::vec(
            (0..1_u64 << 60, any::<i64>(), any::<u16>(), any::<[prop::sample::Index; 3]>(), attributes),
            0..40,
        ),
        0..1_u64 << 60,
    )
        .prop_map(|(threads, kinds, frames, stacks, samples, offset)| Plan {
            threads,
            kinds,
            frames,
            stacks,
            samples,
            offset,
        })
}

impl Plan {
    fn made(&self) -> Made {
        let mut machine = ExportMachine::default();
        let anchor = ClockAnchor { monotonic: Nanos(0), realtime: self.offset, boottime: None };
        machine.system_mut().clocks.start = Some(anchor);
        let mut processes = BTreeMap::new();
        let mut threads = Vec::new();
        for (pid, is_again, tid, name) in &self.threads {
            let key = (*pid, *is_again);
            let process = *processes.entry(key).or_insert_with(|| {
                // Of some pids both processes have one name.
                let called = if pid % 2 == 0 && *is_again { "again" } else { "p" };
                let start = if *is_again { AGAIN } else { Nanos(0) };
                machine.add_process(Pid(*pid), &format!("{called}{pid}"), None, start)
            });
            let name = machine.intern_string(name);
            threads.push(machine.intern_thread(process, Tid(*tid), name));
        }
        let process = machine.thread(threads[0]).process;
        let mut kinds = Vec::new();
        for (name, unit, period) in &self.kinds {
            let unit = [Unit::Count, Unit::Nanoseconds, Unit::Bytes][usize::from(*unit)];
            // Kinds of one name and unit are one kind, and have one period.
            let known = machine
                .kinds()
                .iter()
                .zip(0..)
                .find(|(of, _)| machine.string(of.name) == name && of.unit == unit);
            let known = known.map(|(_, at)| collector_common::record::SampleKindId(at));
            kinds.push(known.unwrap_or_else(|| machine.add_kind(name, unit, *period)));
        }
        let mut modules = vec![ModuleId::KERNEL];
        for (kind, path) in [
            (ModuleKind::File, "/usr/lib/libñ.so"),
            (ModuleKind::File, "prog"),
            (ModuleKind::File, "/init"),
            (ModuleKind::Anonymous(process), "[anon]"),
        ] {
            let path = machine.intern_string(path);
            modules.push(machine.add_module(Module { kind, path, build_id: None }));
        }
        let frames: Vec<FrameId> = (1..)
            .zip(&self.frames)
            .map(|(address, (module, _))| {
                let module = modules[usize::from(*module)];
                let flags =
                    if module == ModuleId::KERNEL { FrameFlags::KERNEL } else { FrameFlags::RETURN_ADDRESS };
                machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags(flags) })
            })
            .collect();
        let cut = Frame { module: ModuleId::KERNEL, address: Svma(0), flags: FrameFlags(FrameFlags::CUT) };
        let cut = machine.intern_frame(cut);
        let mut stacks = Vec::new();
        for (stack, is_cut) in &self.stacks {
            let mut stack: Vec<FrameId> = stack.iter().map(|at| *at.get(&frames)).collect();
            stack.extend(is_cut.then_some(cut));
            stacks.push(machine.intern_stack(&stack));
        }
        for (time, value, cpu, [thread, kind, stack], attributes) in &self.samples {
            let list: Vec<_> = attributes
                .iter()
                .map(|(key, said)| match said {
                    Said::Text(text) => (machine.intern_string(key), machine.intern_string(text).into()),
                    Said::Number(number) => (machine.intern_string(key), AttributeValue::Number(*number)),
                })
                .collect();
            let attributes = machine.attributes_mut().intern(&list);
            let thread = *thread.get(&threads);
            let process = machine.process(machine.thread(thread).process);
            // Where the name does not tell the process, the time does.
            let time = match (process.pid.0 % 2, process.start) {
                (0, _) => *time,
                (_, start) => start.0 + time / 2,
            };
            machine.add_sample(&Sample {
                time: Nanos(time),
                thread,
                stack: *stack.get(&stacks),
                cpu: *cpu,
                kind: *kind.get(&kinds),
                value: *value,
                attributes,
            });
        }
        let mut symbols = Symbols::unresolved(&machine);
        for (frame, (_, lines)) in frames.iter().zip(&self.frames) {
            let lines: Vec<_> = lines
                .iter()
                .map(|(name, line)| {
                    let name = symbols.intern(name);
                    Function { name, linkage: name, line: *line, ..Function::default() }
                })
                .collect();
            symbols.set_functions(*frame, &lines);
        }
        Made { machine, symbols }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_we_write_is_read_as_it_was(plan in plan()) {
        let Made { machine, symbols } = plan.made();
        let imported = import(&*written(&machine, &symbols)).unwrap();
        prop_assert_eq!(told(&machine, &symbols), told(&imported.machine, &imported.symbols));
        prop_assert!(imported.left_out.is_empty());
    }
}

/// Of an event: its kind as we call it, the time, the value, the thread, and the innermost method.
type Row = (String, u64, i64, String, u64, String);

/// What the JDK's reader shows of events with stacks.
fn shown(events: &[Value]) -> Vec<Row> {
    let mut rows: Vec<_> = events.iter().filter_map(row).collect();
    rows.sort();
    rows
}

fn row(event: &Value) -> Option<Row> {
    let values = event["values"].as_object()?;
    let name = event["type"].as_str()?;
    let stack = values.get("stackTrace")?;
    let number = |name: &str| values[name].as_i64().unwrap();
    let (kind, value) = match name {
        "jdk.ExecutionSample" | "jdk.NativeMethodSample" => ("cpu", 1),
        "jdk.CPUTimeSample" => ("cpu_time", 1),
        "profiler.WallClockSample" => ("wall_clock", number("samples")),
        "jdk.ObjectAllocationSample" => ("alloc_space", number("weight")),
        "jdk.ObjectAllocationInNewTLAB" => ("alloc_tlab", number("tlabSize")),
        "jdk.ObjectAllocationOutsideTLAB" => ("alloc_tlab", number("allocationSize")),
        "profiler.Malloc" => ("malloc", number("size")),
        "profiler.Free" => ("free", 1),
        _ if stack.is_null() => return None,
        name => (name, values.get("duration").and_then(Value::as_str).map_or(1, duration)),
    };
    let thread = values.get("sampledThread").or(values.get("eventThread")).cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let nameless = if thread["virtual"] == true { Some("[virtual]") } else { None };
    let name = thread["javaName"].as_str().filter(|name| !name.is_empty()).or(nameless);
    let name = name.map_or_else(|| text(&thread["osName"]), str::to_owned);
    let method = &stack["frames"][0]["method"];
    let class = text(&method["type"]["name"]).replace('/', ".");
    let top = match method["descriptor"].as_str() {
        None => String::new(),
        Some("()L;") => text(&method["name"]),
        Some(_) => format!("{class}.{}", text(&method["name"])),
    };
    let tid = thread["osThreadId"].as_u64().unwrap_or_default();
    Some((kind.to_owned(), nanoseconds(values["startTime"].as_str()?), value, name, tid, top))
}

/// The same of what we read.
fn read_rows(imported: &Imported) -> Vec<Row> {
    let Imported { machine, symbols, .. } = imported;
    let of = |sample: Sample| {
        let thread = machine.thread(sample.thread);
        let top = machine.stacks().get(sample.stack).first();
        let top = top.and_then(|frame| symbols.functions(*frame).next());
        (
            machine.string(machine.kinds()[usize::from(sample.kind.0)].name).to_owned(),
            machine.system().clocks.unix_at(sample.time).unwrap().try_into().unwrap(),
            sample.value,
            machine.string(thread.name).to_owned(),
            u64::from(thread.tid.0),
            top.map(|top| symbols.function(top.name).to_owned()).unwrap_or_default(),
        )
    };
    let mut rows: Vec<_> = machine.samples().iter().map(of).collect();
    rows.sort();
    rows
}

/// Compares a file with what the JDK shows of it, whose ticks are rounded otherwise. It takes the first chunk's clock for that of all:
/// times in later ones differ by what the time of day was read late in them.
pub(crate) fn compare(path: &Path, imported: &Imported, clock_error: u64) -> Vec<Row> {
    let events = printed(&mut tool("jfr").unwrap(), path);
    let (mut shown, mut read) = (shown(&events), read_rows(imported));
    assert_eq!(read.len(), shown.len());
    let rough = |row: &Row| (row.0.clone(), row.3.clone(), row.4, row.5.clone(), row.1, row.2);
    shown.sort_by_key(rough);
    read.sort_by_key(rough);
    for (read, shown) in read.iter().zip(&shown) {
        assert_eq!((&read.0, &read.3, read.4, &read.5), (&shown.0, &shown.3, shown.4, &shown.5));
        assert!(read.1.abs_diff(shown.1) <= clock_error, "{read:?} {shown:?}");
        assert!(read.2.abs_diff(shown.2) <= 1, "{read:?} {shown:?}");
    }
    read
}

/// All names of a stack of a kind, innermost first.
fn stacks<'a>(imported: &'a Imported, kind: &str) -> Vec<Vec<&'a str>> {
    let Imported { machine, symbols, .. } = imported;
    let of_kind = machine
        .samples()
        .iter()
        .filter(|sample| machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == kind);
    let names = |sample: Sample| {
        let frames = machine.stacks().get(sample.stack).iter();
        frames.flat_map(|frame| symbols.functions(*frame)).map(|of| symbols.function(of.name)).collect()
    };
    of_kind.map(names).collect()
}

#[test]
fn a_flight_recording_is_what_the_jdk_shows_of_it() {
    let (Some(mut java), Some(_)) = (tool("java"), tool("jfr")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recorded.jfr");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/java/Recorded.java");
    let tlabs = "jdk.ObjectAllocationInNewTLAB#enabled=true,jdk.ObjectAllocationOutsideTLAB#enabled=true";
    let recording = format!("-XX:StartFlightRecording=settings=profile,{tlabs},filename={}", path.display());
    output(java.arg(&recording).arg(program));
    let imported = import(std::fs::File::open(&path).unwrap()).unwrap();
    let rows = compare(&path, &imported, 100_000);
    let chunks = output(tool("jfr").unwrap().arg("summary").arg(&path));
    assert!(!chunks.contains("Chunks: 1\n"), "{chunks}");

    // What the program does.
    let computing = stacks(&imported, "cpu").into_iter().filter(|stack| stack.contains(&"Recorded.compute"));
    let computing: Vec<_> = computing.collect();
    assert!(!computing.is_empty());
    assert!(
        computing.iter().any(|stack| stack.contains(&"Recorded.main") && !stack.contains(&"[stack cut]"))
    );
    let allocated = rows.iter().filter(|row| row.0 == "alloc_tlab" && row.5 == "Recorded.allocate");
    assert!(allocated.map(|row| row.2).sum::<i64>() > 100 << 20);
    let parked: Vec<_> = rows.iter().filter(|row| row.0 == "jdk.ThreadPark" && row.3 == "waits ä").collect();
    assert_eq!(parked.len(), 15);
    assert!(parked.iter().all(|row| row.2 >= 25_000_000), "{parked:?}");
    let waited = rows.iter().filter(|row| row.0 == "jdk.JavaMonitorEnter" && row.5 == "Recorded.hold");
    assert!(waited.count() > 0);
    let machine = &imported.machine;
    let cpu = machine.kinds().iter().find(|kind| machine.string(kind.name) == "cpu").unwrap();
    assert_eq!(cpu.period, 10_000_000, "of the settings `profile`");
    assert!(machine.system().kernel.starts_with("Linux "), "{}", machine.system().kernel);
    assert!(machine.system().command.contains("Recorded.java"), "{}", machine.system().command);
}

pub(crate) fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/jfr");
    let files = folder.read_dir().into_iter().flatten().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "jfr")).collect();
    if files.is_empty() {
        eprintln!("NOT BESIDE THE CHECKOUT: recordings in {}", folder.display());
    }
    files
}

#[test]
fn recordings_of_async_profiler_are_what_the_jdk_shows_of_them() {
    for path in captures() {
        if tool("jfr").is_none() {
            return;
        }
        let imported = import(std::fs::File::open(&path).unwrap()).unwrap();
        compare(&path, &imported, 1);
        let machine = &imported.machine;
        let [cpu, wall] = ["cpu", "wall_clock"].map(|name| {
            machine.kinds().iter().find(|kind| machine.string(kind.name) == name).unwrap().period
        });
        assert_eq!((cpu, wall), (100_000_000, 1_000_000_000));
        assert!(!imported.left_out.is_empty());
    }
}
