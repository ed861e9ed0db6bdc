//! A made-up recording with samples of several kinds, whose truth is known.
//!
//! `app` (pid 300) makes `child` (400), which ends; 400 is given anew to `again`. `app` has two threads, the first of which changes
//! its name. All code is of `/opt/app`, where `helper` is inlined into `run`.

use collector_common::ids::{Avma, BuildId, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::intern::StackId;
use collector_common::record::{
    AttributeListId, AttributeValue, ClockAnchor, ESTIMATED, ExportMachine, Frame, FrameFlags, FrameId,
    Module, ModuleKind, ModuleMapping, ProcessId, Sample, SampleKindId, ThreadId, Unit,
};
use export::symbolize::{Function, Symbols};

/// When the recording starts, by its clock; the time of day, and since boot.
pub(crate) const START: u64 = 1_000_000;
pub(crate) const REALTIME: u64 = 1_750_000_000_000_000_000;
pub(crate) const BOOTTIME: u64 = 9_000_000;
pub(crate) const MS: u64 = 1_000_000;

/// A recording.
pub(crate) struct Several {
    pub(crate) machine: ExportMachine,
    pub(crate) symbols: Symbols,
}

impl Several {
    pub(crate) fn new() -> Self {
        let mut machine = ExportMachine::default();
        describe(&mut machine);
        let app = machine.add_process(Pid(300), "app", None, Nanos(0));
        let child = machine.add_process(Pid(400), "child", Some(app), at(10));
        machine.end_process(child, at(20));
        let again = machine.add_process(Pid(400), "again", None, at(30));
        let [main, run, wait, allocate] = code(&mut machine, app);
        let symbols = names(&machine, [main, run, wait, allocate]);

        let mut thread = |process: ProcessId, tid, name: &str| {
            let name = machine.intern_string(name);
            machine.intern_thread(process, Tid(tid), name)
        };
        let (early, late) = (thread(app, 300, "app"), thread(app, 300, "app: ready"));
        let worker = thread(app, 301, "worker");
        let (of_child, of_again) = (thread(child, 400, "child"), thread(again, 400, "again"));
        let mut list = |name: &str, value: &str, bytes: Option<i64>| {
            let [name, value, size] = [name, value, "bytes"].map(|string| machine.intern_string(string));
            let list = [(name, value.into()), (size, AttributeValue::Number(bytes.unwrap_or_default()))];
            machine.attributes_mut().intern(if bytes.is_some() { &list } else { &list[..1] })
        };
        let (estimated, of_lock, of_path) = (
            list(ESTIMATED, "yes", None),
            list("lock", "0x7f00", None),
            list("path", "/var/log/x", Some(4096)),
        );
        let cpu = machine.add_kind("cpu", Unit::Count, MS);
        let off_cpu = machine.add_kind("off_cpu", Unit::Nanoseconds, 1);
        let space = machine.add_kind("alloc_space", Unit::Bytes, 1);
        let executed = machine.add_kind("sched:sched_process_exec", Unit::Count, 1);
        let [running, waiting, allocating] =
            [[run, main], [wait, main], [allocate, main]].map(|stack| machine.intern_stack(&stack));

        let mut rows = Rows { machine: &mut machine, cpu: 0, attributes: AttributeListId::NONE };
        // Not in the order of their times, as samples of several CPUs are.
        rows.on(1).add(cpu, worker, running, 5, 1).add(cpu, worker, running, 6, 2);
        rows.on(0).add(cpu, early, running, 1, 1).add(cpu, late, running, 8, 1);
        rows.on(0).add(cpu, of_child, running, 12, 1).add(cpu, of_again, running, 31, 1);
        rows.on(0).add(cpu, late, StackId::EMPTY, 9, 1);
        // The second begins before the first ends, the third when it does, and what is written first is the last.
        rows.on(1).add(off_cpu, worker, waiting, 25, 5 * MS as i64);
        rows.with(of_lock).add(off_cpu, worker, waiting, 15, 10 * MS as i64);
        rows.with(of_path).add(off_cpu, worker, waiting, 20, 10 * MS as i64);
        rows.with(estimated).add(off_cpu, late, waiting, 16, 7 * MS as i64);
        rows.on(0).add(space, early, allocating, 2, 4096).add(space, worker, allocating, 3, 512);
        rows.on(0).add(space, late, allocating, 7, -96);
        rows.on(0).add(executed, of_child, running, 11, 1);
        Self { machine, symbols }
    }
}

/// Milliseconds after the start.
pub(crate) const fn at(ms: u64) -> Nanos {
    Nanos(START + ms * MS)
}

fn describe(machine: &mut ExportMachine) {
    let system = machine.system_mut();
    "build-07".clone_into(&mut system.host);
    "Linux 6.18.0".clone_into(&mut system.kernel);
    "x86_64".clone_into(&mut system.architecture);
    "app --all".clone_into(&mut system.command);
    (system.cpus, system.start, system.end) = (2, at(0), at(40));
    let anchor = |ms| ClockAnchor {
        monotonic: at(ms),
        realtime: REALTIME + ms * MS,
        boottime: Some(Nanos(BOOTTIME + ms * MS)),
    };
    (system.clocks.start, system.clocks.end) = (Some(anchor(0)), Some(anchor(40)));
    system.lost = Some(5);
    system.account = vec!["5 lost (ring_full 5)".to_owned()];
    machine.add_custom_metric("queue", 7.5, "requests");
}

/// The program, whose code is 0x3000 into the file and linked for 0x4000: `main`, `run`, `wait` and `allocate`.
fn code(machine: &mut ExportMachine, process: ProcessId) -> [FrameId; 4] {
    let path = machine.intern_string("/opt/app");
    let build_id = BuildId::new(&[0xab, 0xcd, 0x01]);
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id });
    let bias = 0x5555_0000_0000;
    machine.add_mapping(ModuleMapping {
        process,
        module,
        start: Avma(bias + 0x4000),
        end: Avma(bias + 0x9000),
        file_offset: FileOffset(0x3000),
        bias,
        since: Nanos(0),
    });
    let mut frame = |address, flags| {
        machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags(flags) })
    };
    [frame(0x4101, FrameFlags::RETURN_ADDRESS), frame(0x4200, 0), frame(0x4300, 0), frame(0x4400, 0)]
}

fn names(machine: &ExportMachine, [main, run, wait, allocate]: [FrameId; 4]) -> Symbols {
    let mut symbols = Symbols::unresolved(machine);
    let mut function = |name, file, line| Function {
        name: symbols.intern(name),
        linkage: symbols.intern(name),
        file: symbols.intern(file),
        line,
        ..Function::default()
    };
    let lists = [
        (main, vec![function("main", "main.c", 7)]),
        (run, vec![function("helper", "helper.h", 3), function("run", "run.c", 20)]),
        (wait, vec![function("wait", "", 0)]),
        (allocate, vec![function("allocate", "", 0)]),
    ];
    for (frame, list) in lists {
        symbols.set_functions(frame, &list);
    }
    symbols
}

/// Samples on their way in.
struct Rows<'a> {
    machine: &'a mut ExportMachine,
    cpu: u16,
    attributes: AttributeListId,
}

impl Rows<'_> {
    fn on(&mut self, cpu: u16) -> &mut Self {
        (self.cpu, self.attributes) = (cpu, AttributeListId::NONE);
        self
    }

    fn with(&mut self, attributes: AttributeListId) -> &mut Self {
        self.attributes = attributes;
        self
    }

    fn add(
        &mut self,
        kind: SampleKindId,
        thread: ThreadId,
        stack: StackId,
        ms: u64,
        value: i64,
    ) -> &mut Self {
        let (cpu, attributes) = (self.cpu, self.attributes);
        self.machine.add_sample(&Sample { time: at(ms), thread, stack, cpu, kind, value, attributes });
        self
    }
}
