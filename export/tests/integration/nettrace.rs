//! nettrace: recordings of known truth, written and read back by the strict reader; and files that are damaged.

use std::collections::{BTreeMap, BTreeSet};

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::record::{
    AttributeListId, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind, ModuleMapping,
    ProcessId, Sample, SampleKindId, ThreadId, Unit,
};
use export::format::nettrace::{Event, LabelValue, Nettrace, ReadError, Summary, Trace, Value, read};
use export::format::{ExportFormat as _, Profile};
use export::symbolize::Symbols;
use proptest::prelude::*;

use crate::made::{Made, PACKAGE, PERIOD};
use crate::tools::{self, output, python};

/// A sample that was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Read {
    pub(crate) time: u64,
    pub(crate) kind: String,
    pub(crate) pid: u64,
    pub(crate) tid: u64,
    pub(crate) thread: String,
    pub(crate) cpu: u32,
    pub(crate) value: i64,
    pub(crate) stack: Vec<u64>,
    pub(crate) labels: Vec<(String, String)>,
    /// Names of labels that are numbers.
    pub(crate) numbers: Vec<String>,
}

/// A mapping that was read: its time, process, range, offset, path and what is told of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) time: u64,
    pub(crate) number: u64,
    pub(crate) pid: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) path: String,
    pub(crate) file: String,
}

/// All of a file.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) trace: Trace,
    pub(crate) summary: Summary,
    pub(crate) samples: Vec<Read>,
    /// Time, event, pid, name.
    pub(crate) processes: Vec<(u64, String, u64, String)>,
    pub(crate) mappings: Vec<Mapped>,
    /// Mapping, first and last address, name.
    pub(crate) symbols: Vec<(u64, u64, u64, String)>,
    pub(crate) files: BTreeMap<u64, String>,
    /// Raw events: as samples without a value, called `provider:name`, with their fields.
    pub(crate) events: Vec<(Read, Vec<(String, Value)>)>,
}

fn number(value: &Value) -> u64 {
    match value {
        Value::Unsigned(number) => *number,
        other => panic!("{other:?}"),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

impl Read {
    fn of(event: &Event<'_>, kind: String, value: i64) -> Self {
        let label = |value: &LabelValue| match value {
            LabelValue::Text(text) => text.clone(),
            LabelValue::Number(number) => number.to_string(),
            other => panic!("{other:?}"),
        };
        let numbers = event.labels.iter().filter(|of| matches!(of.value, LabelValue::Number(_)));
        Self {
            time: event.time,
            kind,
            pid: event.thread.pid.unwrap(),
            tid: event.thread.tid.unwrap(),
            thread: event.thread.name.clone().unwrap_or_default(),
            cpu: event.processor,
            value,
            stack: event.stack().collect(),
            labels: event.labels.iter().map(|of| (of.key.clone(), label(&of.value))).collect(),
            numbers: numbers.map(|of| of.key.clone()).collect(),
        }
    }
}

impl File {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut file = Self::default();
        let mut trace = Trace::default();
        let mut end = 0;
        file.summary = read(
            bytes,
            |of| trace = of.clone(),
            |event| {
                assert!(event.time >= end, "events are in the order of time");
                end = event.time;
                let values = event.values().unwrap();
                let names: Vec<&str> = event.event_type.field_names().collect();
                let pid = event.thread.pid.unwrap();
                match (
                    event.event_type.provider.as_str(),
                    event.event_type.id,
                    event.event_type.name.as_str(),
                ) {
                    ("Universal.System", 0, kind @ "ExistingProcess")
                    | ("Universal.System", 1, kind @ "ProcessCreate") => {
                        assert_eq!(names, ["NamespaceId", "Name", "NamespaceName"]);
                        assert!(number(&values[0]) > 0);
                        file.processes.push((event.time, kind.to_owned(), pid, text(&values[1])));
                    }
                    ("Universal.System", 2, kind @ "ProcessExit") => {
                        assert!(names.is_empty());
                        file.processes.push((event.time, kind.to_owned(), pid, String::new()));
                    }
                    ("Universal.System", 3, "ProcessMapping") => {
                        assert_eq!(
                            names,
                            ["Id", "StartAddress", "EndAddress", "FileOffset", "FileName", "MetadataId"]
                        );
                        let [id, start, end, offset] = [0, 1, 2, 3].map(|at| number(&values[at]));
                        let (path, metadata) = (text(&values[4]), number(&values[5]));
                        // What is told of a file comes before its mapping.
                        let about = if metadata == 0 { String::new() } else { file.files[&metadata].clone() };
                        let time = event.time;
                        file.mappings.push(Mapped {
                            time,
                            number: id,
                            pid,
                            start,
                            end,
                            offset,
                            path,
                            file: about,
                        });
                    }
                    ("Universal.System", 4, "ProcessSymbol") => {
                        assert_eq!(names, ["Id", "MappingId", "StartAddress", "EndAddress", "Name"]);
                        let [mapping, first, last] = [1, 2, 3].map(|at| number(&values[at]));
                        file.symbols.push((mapping, first, last, text(&values[4])));
                    }
                    ("Universal.System", 5, "ProcessMappingMetadata") => {
                        assert_eq!(names, ["Id", "SymbolMetadata", "VersionMetadata"]);
                        let about = [1, 2].map(|at| text(&values[at])).join(" ");
                        assert!(file.files.insert(number(&values[0]), about).is_none());
                    }
                    ("Universal.Events", _, kind) => {
                        assert_eq!(names, ["Value"]);
                        let value = match values[0] {
                            Value::Unsigned(value) => i64::try_from(value).unwrap(),
                            Value::Signed(value) => value,
                            ref other => panic!("{other:?}"),
                        };
                        file.samples.push(Read::of(event, kind.to_owned(), value));
                    }
                    ("Universal.System", ..) => panic!("{:?}", event.event_type),
                    (provider, _, name) => {
                        let fields = names.into_iter().map(str::to_owned).zip(values).collect();
                        file.events.push((Read::of(event, format!("{provider}:{name}"), 0), fields));
                    }
                }
            },
        )
        .unwrap();
        assert_eq!(file.summary.cut_at, None);
        file.trace = trace;
        file
    }

    /// How `PerfView` names an address: by the symbols of mappings of the process.
    pub(crate) fn name(&self, pid: u64, address: u64) -> Option<&str> {
        let of_process =
            |id: u64| self.mappings.iter().any(|mapping| mapping.number == id && mapping.pid == pid);
        let symbol = self
            .symbols
            .iter()
            .find(|&&(mapping, first, last, _)| (first..=last).contains(&address) && of_process(mapping));
        symbol.map(|(.., name)| name.as_str())
    }
}

fn written(machine: &ExportMachine, symbols: &Symbols) -> Vec<u8> {
    let mut bytes = Vec::new();
    Nettrace.write(Profile { machine, symbols }, &mut bytes).unwrap();
    bytes
}

const FIRST: u64 = 0x5555_0000_0000;
const SECOND: u64 = 0x7f00_1234_0000;

#[test]
fn the_made_recording_is_read_back() {
    let mut made = Made::new();
    made.machine.add_kind("off_cpu", Unit::Nanoseconds, 1);
    made.machine.add_custom_metric("queue", 7.5, "requests");
    let file = File::of(&written(&made.machine, &made.symbols));

    // 1_750_000_000.123456789 s at tick 1000; milliseconds are what there is room for.
    assert_eq!((file.trace.unix_milliseconds, file.trace.ticks), (1_750_000_000_123, 1_000 - 456_789));
    assert_eq!((file.trace.frequency, file.trace.pointer_size), (1_000_000_000, 8));
    let pairs: BTreeMap<&str, &str> =
        file.trace.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(pairs["HardwareThreadCount"], "2");
    assert_eq!(pairs["ExpectedCPUSamplingRate"], "1003009");
    assert_eq!((pairs["Host"], pairs["Command"]), ("build-07", "prog --fast"));
    assert_eq!(file.summary.lost, 3);
    assert_eq!(pairs["Account"], "3 lost (ring_full 3)\n100.00 % are complete");
    assert_eq!(pairs["Metrics"], "queue: 7.5 requests");
    assert_eq!((pairs["Unit of cpu"], pairs["Period of cpu"]), ("count", "1003009"));
    assert_eq!((pairs["Unit of off_cpu"], pairs.get("Period of off_cpu")), ("nanoseconds", None));
    assert_eq!(pairs.len(), file.trace.pairs.len());

    let existing = |pid| (1_000, "ExistingProcess".to_owned(), pid, "prog".to_owned());
    assert_eq!(file.processes, [existing(100), existing(200)]);
    let about = r#"{"type":"ELF","debug_link":"prog.debug","build_id":"abcd01","p_vaddr":"0x4000","p_offset":"0x3000"}"#;
    let about = format!("{about} {PACKAGE}");
    let of_program: Vec<_> = file.mappings.iter().filter(|mapping| mapping.path == "/opt/prog").collect();
    assert_eq!(of_program.len(), 2);
    for (mapping, (pid, base)) in of_program.iter().zip([(100, FIRST), (200, SECOND)]) {
        assert_eq!((mapping.pid, mapping.start, mapping.end), (pid, base + 0x4000, base + 0x9000));
        assert_eq!((mapping.offset, mapping.file.as_str()), (0x3000, &*about));
    }

    let guessed = vec![("frames".to_owned(), "guessed".to_owned())];
    let cut = vec![("stack".to_owned(), "cut".to_owned())];
    let kernel = 0xffff_ffff_8123_4567;
    // As `made` tells them.
    let truth = [
        (100, 100, "prog", vec![FIRST + 0x4200, FIRST + 0x4101], vec![], 40),
        (100, 101, "worker 7", vec![FIRST + 0x4200, FIRST + 0x4101], vec![], 20),
        (100, 100, "prog", vec![FIRST + 0x4300, FIRST + 0x4311, FIRST + 0x4300, FIRST + 0x4101], guessed, 10),
        (200, 200, "prog", vec![kernel, SECOND + 0x4200, SECOND + 0x4101], vec![], 8),
        (200, 200, "prog", vec![SECOND + 0x8123], cut, 4),
        (200, 200, "prog", vec![0xdead_0000], vec![], 2),
        (100, 101, "worker 7", vec![], vec![], 1),
    ];
    let mut expected = Vec::new();
    for (pid, tid, thread, stack, labels, count) in truth {
        expected.extend((0..count).map(|tick| Read {
            time: 2_000 + tick * PERIOD,
            kind: "cpu".to_owned(),
            pid,
            tid,
            thread: thread.to_owned(),
            cpu: 0,
            value: 1,
            stack: stack.clone(),
            labels: labels.clone(),
            numbers: Vec::new(),
        }));
    }
    let mut found = file.samples.clone();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);

    for (pid, base) in [(100, FIRST), (200, SECOND)] {
        assert_eq!(file.name(pid, base + 0x4101), Some("main"));
        assert_eq!(file.name(pid, base + 0x4200), Some("work(int; char)"));
        assert_eq!(file.name(pid, kernel), Some("vfs_read"));
        assert_eq!(file.name(pid, base + 0x8123), None);
    }
    assert_eq!(file.name(100, FIRST + 0x4300), Some("recurse"));
    assert_eq!(file.name(100, FIRST + 0x4311), Some("recurse"));
    assert_eq!(file.name(200, FIRST + 0x4300), None);
}

/// By the specification, byte for byte: the header, the trace's block, and that the end is the last.
#[test]
fn the_first_and_last_bytes_are_those_of_the_specification() {
    let made = Made::new();
    let bytes = written(&made.machine, &made.symbols);
    assert_eq!(bytes[..20], *b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0");
    assert_eq!(bytes[23], 1);
    // 2025-06-15, a Sunday, 15:06:40.123.
    let date: Vec<u16> = bytes[24..40].chunks(2).map(|part| u16::from_le_bytes([part[0], part[1]])).collect();
    assert_eq!(date, [2025, 6, 0, 15, 15, 6, 40, 123]);
    assert_eq!(bytes[bytes.len() - 4..], [0; 4]);
}

#[test]
fn a_recording_of_nothing_is_a_trace() {
    let machine = ExportMachine::default();
    let file = File::of(&written(&machine, &Symbols::unresolved(&machine)));
    assert_eq!((file.summary.events, file.summary.lost), (0, 0));
}

#[test]
fn lives_of_processes_are_told() {
    let mut machine = ExportMachine::default();
    (machine.system_mut().start, machine.system_mut().end) = (Nanos(100), Nanos(900));
    let there = machine.add_process(Pid(1), "there", None, Nanos(0));
    let made = machine.add_process(Pid(2), "made", Some(there), Nanos(300));
    machine.end_process(made, Nanos(500));
    let name = machine.intern_string("made");
    let thread = machine.intern_thread(made, Tid(2), name);
    let kind = machine.add_kind("memory", Unit::Bytes, 1);
    for (time, value) in [(500, -7), (300, 9)] {
        let (stack, attributes) = (machine.intern_stack(&[]), AttributeListId::NONE);
        machine.add_sample(&Sample { time: Nanos(time), thread, stack, cpu: 3, kind, value, attributes });
    }
    let file = File::of(&written(&machine, &Symbols::unresolved(&machine)));
    let step = |time, what: &str, pid, name: &str| (time, what.to_owned(), pid, name.to_owned());
    let expected = [
        step(100, "ExistingProcess", 1, "there"),
        step(300, "ProcessCreate", 2, "made"),
        step(500, "ProcessExit", 2, ""),
    ];
    assert_eq!(file.processes, expected);
    let samples: Vec<_> = file.samples.iter().map(|sample| (sample.time, sample.value, sample.cpu)).collect();
    assert_eq!(samples, [(300, 9, 3), (500, -7, 3)]);
}

/// A machine of one process and thread, without code.
fn small() -> (ExportMachine, ThreadId) {
    let mut machine = ExportMachine::default();
    let process = machine.add_process(Pid(9), "prog", None, Nanos(0));
    let name = machine.intern_string("prog");
    let thread = machine.intern_thread(process, Tid(9), name);
    machine.add_kind("cpu", Unit::Count, 1_000_000);
    (machine, thread)
}

fn kernel_frame(machine: &mut ExportMachine, address: u64) -> FrameId {
    let flags = FrameFlags(FrameFlags::KERNEL);
    machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(address), flags })
}

fn sample_at(machine: &mut ExportMachine, thread: ThreadId, time: u64, stack: &[FrameId]) {
    let stack = machine.intern_stack(stack);
    machine.add_sample(&Sample {
        time: Nanos(time),
        thread,
        stack,
        cpu: 1,
        kind: SampleKindId(0),
        value: 1,
        attributes: AttributeListId::NONE,
    });
}

/// More stacks than are numbered between two sequence points, and more bytes than a block has room for.
#[test]
fn many_stacks_are_numbered_anew() {
    const COUNT: u64 = 70_000;
    let (mut machine, thread) = small();
    let bottom: Vec<FrameId> = (0..40).map(|at| kernel_frame(&mut machine, 1 << 63 | at)).collect();
    for at in 0..COUNT {
        let leaf = kernel_frame(&mut machine, 1 << 63 | 0x10_0000 | at);
        let stack: Vec<FrameId> = [leaf].into_iter().chain(bottom.iter().copied()).collect();
        sample_at(&mut machine, thread, 10 + at, &stack);
    }
    let bytes = written(&machine, &Symbols::unresolved(&machine));
    assert!(bytes.len() > 1 << 24);
    let file = File::of(&bytes);
    assert_eq!(file.summary.sequence_points, 1 + COUNT / (1 << 15));
    assert_eq!(file.samples.len() as u64, COUNT);
    for (sample, at) in file.samples.iter().zip(0..) {
        assert_eq!((sample.time, sample.stack.len()), (10 + at, 41));
        assert_eq!((sample.stack[0], sample.stack[40]), (1 << 63 | 0x10_0000 | at, (1 << 63) + 39));
    }
    // References reach back to the last sequence point by the other reader's rules, too.
    let Some(mut reader) = python("nettrace_trace.py") else { return };
    let written = tools::file(&bytes, ".nettrace");
    let trace: serde_json::Value = serde_json::from_str(&output(reader.arg(&*written))).unwrap();
    let events = trace["events"].as_array().unwrap();
    let times: Vec<_> = events.iter().map(|event| event["time"].as_u64().unwrap()).collect();
    assert!(times.into_iter().eq(10..10 + COUNT));
    assert!(events.iter().all(|event| event["stack"].as_array().unwrap().len() == 41));
}

/// One file is loaded again and again, at another place each time, and all stacks are the kernel's.
#[test]
fn stacks_are_told_once_while_a_file_moves() {
    const SAMPLES: u64 = 20_000;
    const STACKS: u64 = 2_000;
    const LOADS: u64 = 500;
    let (mut machine, thread) = small();
    let path = machine.intern_string("/lib/plugin.so");
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    for at in 0..LOADS {
        machine.add_mapping(ModuleMapping {
            process: ProcessId(0),
            module,
            start: Avma(base(1 + at)),
            end: Avma(base(1 + at) + 0x1000),
            file_offset: FileOffset(0),
            bias: base(1 + at),
            since: Nanos(at * SAMPLES / LOADS),
        });
    }
    let bottom: Vec<FrameId> = (0..38).map(|at| kernel_frame(&mut machine, 1 << 63 | at)).collect();
    for at in 0..SAMPLES {
        let leaf = kernel_frame(&mut machine, 1 << 63 | 0x10_0000 | (at % STACKS));
        let stack: Vec<FrameId> = [leaf].into_iter().chain(bottom.iter().copied()).collect();
        sample_at(&mut machine, thread, at, &stack);
    }
    let bytes = written(&machine, &Symbols::unresolved(&machine));
    // A stack is 4 bytes and 39 addresses, the rest of a sample at most 16, and a mapping and what is told of it at most 256.
    let most = STACKS * (4 + 39 * 8) + SAMPLES * 16 + LOADS * 256;
    assert!((bytes.len() as u64) < most, "{} of {most} bytes", bytes.len());
    assert_eq!(File::of(&bytes).samples.len() as u64, SAMPLES);
}

#[test]
fn what_is_too_long_for_its_field_is_cut() {
    let long = "ñ".repeat(50_000);
    let mut machine = ExportMachine::default();
    machine.system_mut().command.clone_from(&long);
    let process = machine.add_process(Pid(9), &long, None, Nanos(0));
    let name = machine.intern_string(&long);
    let thread = machine.intern_thread(process, Tid(9), name);
    let kind = machine.add_kind(&long, Unit::Count, 1);
    let attributes = machine.attributes_mut().intern(&[(name, name)]);
    let frame = kernel_frame(&mut machine, u64::MAX - 5);
    let other = kernel_frame(&mut machine, u64::MAX - 9);
    // A deeper stack than `PerfView` has room for.
    let deep: Vec<FrameId> = (0..5_000).flat_map(|_| [frame, other]).collect();
    let stack = machine.intern_stack(&deep);
    machine.add_sample(&Sample { time: Nanos(5), thread, stack, cpu: 0, kind, value: 1, attributes });
    let mut symbols = Symbols::unresolved(&machine);
    symbols.set(frame, &long, &long);
    let file = File::of(&written(&machine, &symbols));
    let begins = |text: &str| text.len() > 32_000 && long.starts_with(text);
    let sample = &file.samples[0];
    assert_eq!(sample.stack.len(), (65_535 - 8) / 8);
    assert_eq!(sample.stack[..3], [u64::MAX - 5, u64::MAX - 9, u64::MAX - 5]);
    assert_eq!(sample.labels[0], ("stack".to_owned(), "cut".to_owned()));
    let (key, value) = &sample.labels[1];
    let texts = [&sample.kind, &sample.thread, key, value, &file.processes[0].3, &file.symbols[0].3];
    assert!(texts.into_iter().all(|text| begins(text)));
}

/// What a machine is made from.
#[derive(Clone, Debug)]
struct Plan {
    /// Pid.
    processes: Vec<u32>,
    /// Process, and where in the address space.
    mappings: Vec<(usize, u64, u64)>,
    /// Module (0 is the kernel), address, whether it is returned to.
    frames: Vec<(usize, u64, bool)>,
    stacks: Vec<Vec<usize>>,
    /// Time, process, stack, CPU, kind, value, label.
    samples: Vec<(u64, usize, usize, u16, usize, i64, usize)>,
    lost: u64,
}

const MODULES: usize = 3;
const LABELS: [&str; 4] = ["", "-12", "x", "007"];

fn plan() -> impl Strategy<Value = Plan> {
    let processes = proptest::collection::btree_set(1_u32..1000, 1..4);
    let processes = processes.prop_map(|pids| pids.into_iter().collect::<Vec<_>>());
    let mappings = proptest::collection::vec((0_usize..4, 1_u64..50, 0_u64..2_000), 0..6);
    let frames = proptest::collection::vec((0..=MODULES, 0_u64..0x3000, any::<bool>()), 1..10);
    let stacks = proptest::collection::vec(proptest::collection::vec(0_usize..10, 0..6), 1..6);
    let values = prop_oneof![Just(1_i64), any::<i64>()];
    let sample =
        (0_u64..3_000, 0_usize..4, 0_usize..6, 0_u16..300, 0_usize..3, values, 0_usize..LABELS.len());
    let samples = proptest::collection::vec(sample, 0..40);
    (processes, mappings, frames, stacks, samples, 0_u64..1 << 31).prop_map(
        |(processes, mappings, frames, stacks, samples, lost)| Plan {
            processes,
            mappings,
            frames,
            stacks,
            samples,
            lost,
        },
    )
}

const KINDS: [&str; 3] = ["cpu", "off", "off/2"];

/// Base of the mapping of a number: all modules are linked for 0x1000 to 0x3000.
fn base(number: u64) -> u64 {
    number * 0x10_0000
}

fn module_of(mapping: usize) -> usize {
    1 + mapping % MODULES
}

impl Plan {
    fn machine(&self) -> ExportMachine {
        let mut machine = ExportMachine::default();
        machine.system_mut().lost = Some(self.lost);
        for kind in KINDS {
            machine.add_kind(kind, Unit::Count, 1);
        }
        let mut threads = Vec::new();
        for &pid in &self.processes {
            let process = machine.add_process(Pid(pid), "p", None, Nanos(0));
            let name = machine.intern_string("t");
            threads.push(machine.intern_thread(process, Tid(pid + 5_000), name));
        }
        for module in 1..=MODULES {
            let path = machine.intern_string(&format!("/lib/{module}.so"));
            machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
        }
        for (at, &(process, number, since)) in self.mappings.iter().enumerate() {
            machine.add_mapping(ModuleMapping {
                process: ProcessId((process % self.processes.len()) as u32),
                module: ModuleId(module_of(at) as u32),
                start: Avma(base(number) + 0x1000),
                end: Avma(base(number) + 0x3000),
                file_offset: FileOffset(0x1000),
                bias: base(number),
                since: Nanos(since),
            });
        }
        let frames: Vec<FrameId> =
            self.frames.iter().map(|&frame| machine.intern_frame(raw(frame))).collect();
        let name = machine.intern_string("name");
        for &(time, process, stack, cpu, kind, value, label) in &self.samples {
            let stack: Vec<FrameId> =
                self.stacks[stack % self.stacks.len()].iter().map(|at| frames[at % frames.len()]).collect();
            let stack = machine.intern_stack(&stack);
            let text = machine.intern_string(LABELS[label]);
            let list: &[_] = if label == 0 { &[] } else { &[(name, text)] };
            let attributes = machine.attributes_mut().intern(list);
            let thread = threads[process % threads.len()];
            let kind = SampleKindId(kind as u16);
            machine.add_sample(&Sample { time: Nanos(time), thread, stack, cpu, kind, value, attributes });
        }
        machine
    }

    /// What lies between the addresses of a module that is mapped nowhere in a process and those that it has there in a file: there is one
    /// mapping of it, which overlaps with none.
    fn own_bias(&self, file: &File, process: usize, module: usize) -> u64 {
        let pid = u64::from(self.processes[process]);
        let of_process =
            file.mappings.iter().filter(|mapping| mapping.pid == pid && mapping.path != "vmlinux");
        let path = format!("/lib/{module}.so");
        let (own, others): (Vec<_>, Vec<_>) = of_process.partition(|mapping| mapping.path == path);
        let [own] = &own[..] else { panic!("{own:?}") };
        assert!(others.iter().all(|other| other.end <= own.start || own.end <= other.start), "{file:?}");
        let about: serde_json::Value =
            serde_json::Deserializer::from_str(&own.file).into_iter().next().unwrap().unwrap();
        let linked = about["p_vaddr"].as_str().unwrap().trim_start_matches("0x");
        own.start.wrapping_sub(u64::from_str_radix(linked, 16).unwrap())
    }

    /// Modules on stacks of processes in which they are mapped nowhere.
    fn homeless(&self) -> BTreeSet<(usize, usize)> {
        let mapped: BTreeSet<(usize, usize)> = (self.mappings.iter().enumerate())
            .map(|(at, &(process, ..))| (process % self.processes.len(), module_of(at)))
            .collect();
        let used = self.samples.iter().flat_map(|&(_, process, stack, ..)| {
            let stack = &self.stacks[stack % self.stacks.len()];
            stack
                .iter()
                .map(move |at| (process % self.processes.len(), self.frames[at % self.frames.len()].0))
        });
        used.filter(|pair| pair.1 > 0 && !mapped.contains(pair)).collect()
    }

    /// Where a frame is, found the slow way: in the mapping of its module that is the last by then, and holds it.
    fn address(&self, file: &File, process: usize, frame: (usize, u64, bool), time: u64) -> u64 {
        let Frame { module, address, .. } = raw(frame);
        let mut of_module: Vec<(usize, u64, u64)> = Vec::new();
        for (at, &(owner, number, since)) in self.mappings.iter().enumerate() {
            if owner % self.processes.len() == process && module_of(at) == module.0 as usize {
                of_module.push((at, number, since));
            }
        }
        of_module.sort_by_key(|&(at, _, since)| (since, at));
        let last = of_module.iter().rev().find(|&&(.., since)| since <= time).or(of_module.first());
        match last {
            // All mappings hold the same addresses, so that the first choice is right whether it holds this one or not.
            Some(&(_, number, _)) => address.0 + base(number),
            None if module.0 > 0 => address.0.wrapping_add(self.own_bias(file, process, module.0 as usize)),
            None => address.0,
        }
    }

    fn expected(&self, file: &File) -> Vec<Read> {
        let mut samples: Vec<Read> = self
            .samples
            .iter()
            .map(|&(time, process, stack, cpu, kind, value, label)| {
                let process = process % self.processes.len();
                let pid = u64::from(self.processes[process]);
                let stack = &self.stacks[stack % self.stacks.len()];
                let frames = stack.iter().map(|at| self.frames[at % self.frames.len()]);
                let labels = [("name".to_owned(), LABELS[label].to_owned())];
                Read {
                    time,
                    kind: KINDS[kind].to_owned(),
                    pid,
                    tid: pid + 5_000,
                    thread: "t".to_owned(),
                    cpu: cpu.into(),
                    value: if kind == 0 { value.max(0) } else { value },
                    stack: frames.map(|frame| self.address(file, process, frame, time)).collect(),
                    labels: labels.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
                    numbers: Vec::new(),
                }
            })
            .collect();
        samples.sort_by_key(|sample| sample.time);
        samples
    }
}

fn raw((module, address, is_return): (usize, u64, bool)) -> Frame {
    let high = if module == 0 { 0xffff_ffff_8000_0000 } else { 0x1000 };
    let flags = if is_return { FrameFlags::RETURN_ADDRESS } else { 0 };
    Frame { module: ModuleId(module as u32), address: Svma(high + address), flags: FrameFlags(flags) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_machine_is_read_back(plan in plan()) {
        let machine = plan.machine();
        let file = File::of(&written(&machine, &Symbols::unresolved(&machine)));
        prop_assert_eq!(&file.samples, &plan.expected(&file));
        prop_assert_eq!(file.summary.lost, plan.lost);
        prop_assert_eq!(file.processes.len(), plan.processes.len());
        let files = file.mappings.iter().filter(|mapping| mapping.path != "vmlinux").count();
        prop_assert_eq!(files, plan.mappings.len() + plan.homeless().len());
    }

    #[test]
    fn noise_is_survived(noise in proptest::collection::vec(any::<u8>(), 0..400), kind in 1_u8..10) {
        let made = Made::new();
        let mut bytes = written(&made.machine, &made.symbols);
        let first = usize::from(bytes[20]) | usize::from(bytes[21]) << 8;
        bytes.truncate(24 + first);
        let whole = [&bytes[..], &[0; 4]].concat();
        prop_assert_eq!(read_all(&whole).unwrap().events, 0);
        bytes.extend_from_slice(&(noise.len() as u32 | u32::from(kind) << 24).to_le_bytes());
        bytes.extend_from_slice(&noise);
        bytes.extend_from_slice(&[0; 4]);
        let _ = read_all(&bytes);
    }
}

/// Reads all there is, fields included.
pub(crate) fn read_all(bytes: &[u8]) -> Result<Summary, ReadError> {
    read(
        bytes,
        |_| (),
        |event| {
            let _ = (event.values(), event.stack().count(), event.labels.len());
        },
    )
}

/// The time, type, stack and bytes of an event.
type Told = (u64, String, Vec<u64>, Vec<u8>);

/// Compares what is read of a file's beginnings with what is of all: some have the first events, and say where they end, the others have
/// none, and say that.
pub(crate) fn beginnings_are_read(bytes: &[u8], lengths: impl Iterator<Item = usize>) {
    let told = |bytes: &[u8]| {
        let mut events: Vec<Told> = Vec::new();
        let read = read(
            bytes,
            |_| (),
            |event| {
                let name = event.event_type.name.clone();
                events.push((event.time, name, event.stack().collect(), event.payload.to_vec()));
            },
        );
        (read, events)
    };
    let (whole, all) = told(bytes);
    assert_eq!(whole.unwrap().cut_at, None);
    let mut with_events = 0;
    for length in lengths {
        match told(&bytes[..length]) {
            (Ok(summary), events) => {
                assert_eq!((summary.cut_at, summary.events), (Some(length as u64), events.len() as u64));
                assert!(!events.is_empty() && all.starts_with(&events), "{length}");
                with_events += 1;
            }
            (Err(ReadError::Cut { position, .. }), events) => {
                assert!(events.is_empty() && position == length as u64, "{length}: {position}");
            }
            (Err(error), _) => panic!("{length}: {error}"),
        }
    }
    assert!(with_events > 0);
}

/// A file that is cut anywhere says so, and one with any of its bits turned is survived.
pub(crate) fn any_damage_is_survived(mut bytes: Vec<u8>) {
    beginnings_are_read(&bytes, 0..bytes.len());
    for at in 0..bytes.len() * 8 {
        bytes[at / 8] ^= 1 << (at % 8);
        if let Err(
            ReadError::Malformed { position, .. }
            | ReadError::TooLarge { position, .. }
            | ReadError::Cut { position, .. },
        ) = read_all(&bytes)
        {
            assert!(position <= bytes.len() as u64, "{at}: {position}");
        }
        bytes[at / 8] ^= 1 << (at % 8);
    }
}

#[test]
fn a_file_that_is_damaged_is_survived() {
    let made = Made::new();
    any_damage_is_survived(written(&made.machine, &made.symbols));
}

#[test]
fn text_that_is_none_is_named_by_its_place() {
    let made = Made::new();
    let good = written(&made.machine, &made.symbols);
    for text in ["build-07", "ProcessMapping", "FileName"] {
        let at = good.windows(text.len()).position(|bytes| bytes == text.as_bytes()).unwrap();
        let mut bytes = good.clone();
        bytes[at + 3] = 0xff;
        let error = read_all(&bytes).unwrap_err().to_string();
        let expected = format!("it has text that is not UTF-8 at byte {at}");
        assert!(error.ends_with(&expected), "{error}");
    }
}

/// The day of the week is at byte 28: a Sunday. It says nothing that the rest of the date does not, and some writers begin with Monday.
#[test]
fn a_week_that_begins_on_monday_is_read() {
    let made = Made::new();
    let mut bytes = written(&made.machine, &made.symbols);
    let summary = read_all(&bytes).unwrap();
    assert_eq!(bytes[28], 0);
    bytes[28] = 6;
    assert_eq!(read_all(&bytes).unwrap(), summary);
}
