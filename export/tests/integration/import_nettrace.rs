//! nettrace files become machines again: those that we write as they were, and captures of .NET programs with the methods'
//! names.

use std::collections::BTreeMap;
use std::io::{self, Cursor};

use collector_common::event::{ByteOrder, EventField, EventFormat, Extent, FieldKind, Place, Width};
use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::intern::StackId;
use collector_common::record::{
    EventRecord, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleDetails, ModuleId, ModuleKind,
    ModuleMapping, Pdb, PerfMap, Process, ProcessId, Sample, Signature, Unit,
};
use export::format::folded::Folded;
use export::format::jsonl::JsonLines;
use export::format::nettrace::Nettrace;
use export::format::{ExportFormat as _, Profile};
use export::import::Imported;
use export::import::nettrace::{import, import_with_events};
use export::symbolize::Symbols;
use proptest::prelude::*;

use crate::made::{Made, PACKAGE};
use crate::nettrace::File;
use crate::nettrace_old::{captures, unzipped};
use crate::random::{self, imported, of_thread, recording, rows, written};
use crate::raw_events::{Recorded, event_kind};

/// A sample, by what it says and not by what it is known as; outermost frames last, with their modules.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    time: u64,
    kind: String,
    value: i64,
    cpu: u16,
    pid: u32,
    tid: u32,
    thread: String,
    frames: Vec<String>,
    attributes: Vec<(String, String)>,
}

fn told(machine: &ExportMachine, symbols: &Symbols) -> Vec<Told> {
    let string = |id| machine.string(id).to_owned();
    let of = |sample: Sample| {
        let thread = machine.thread(sample.thread);
        let frames = machine.stacks().get(sample.stack).iter();
        let frames = frames.map(|&frame| symbols.name(frame).function.to_owned());
        let attributes = machine.attributes().get(sample.attributes).iter();
        let attributes =
            attributes.map(|&(key, value)| (string(key), machine.attribute_text(value).into_owned()));
        // What nettrace says of a stack as a whole, not of a frame.
        let attributes = attributes.filter(|(key, _)| key != "frames");
        Told {
            time: sample.time.0,
            kind: string(machine.kinds()[usize::from(sample.kind.0)].name),
            value: sample.value,
            cpu: sample.cpu,
            pid: machine.process(thread.process).pid.0,
            tid: thread.tid.0,
            thread: string(thread.name),
            frames: frames.collect(),
            attributes: attributes.collect(),
        }
    };
    let mut all: Vec<Told> = machine.samples().iter().map(of).collect();
    all.sort();
    all
}

#[test]
fn what_we_write_is_read_as_it_was() {
    let Made { machine, symbols } = Made::new();
    let mut bytes = Vec::new();
    Nettrace.write(Profile { machine: &machine, symbols: &symbols }, &mut bytes).unwrap();
    let imported = import(Cursor::new(bytes)).unwrap();
    assert!(imported.left_out.is_empty(), "{:?}", imported.left_out);
    let [before, after] = [(&machine, &symbols), (&imported.machine, &imported.symbols)]
        .map(|(machine, symbols)| told(machine, symbols));
    assert_eq!(before, after);
    let system = imported.machine.system();
    assert_eq!((&*system.host, system.cpus, system.lost), ("build-07", 2, Some(3)));
    assert_eq!(system.account, machine.system().account);
    let of_machine = |machine: &ExportMachine| {
        let system = machine.system();
        (system.distribution.clone(), system.processor.clone(), system.memory, system.clocks.booted())
    };
    assert_eq!(of_machine(&machine), of_machine(&imported.machine));
    let facts = |machine: &ExportMachine| -> Vec<_> {
        let of = |mapping: &ModuleMapping| {
            let module = machine.module(mapping.module);
            (
                mapping.start,
                mapping.end,
                mapping.file_offset,
                mapping.bias,
                module.build_id,
                machine.string(module.path).to_owned(),
            )
        };
        machine.mappings().iter().map(of).collect()
    };
    assert_eq!(facts(&machine), facts(&imported.machine));
}

/// By the members that `PerfView`'s reader takes from them, and by ours.
#[test]
fn images_of_windows_and_dotnet_have_their_versions_and_symbols() {
    let Made { mut machine, symbols } = Made::new();
    let path = machine.intern_string("/usr/lib/dotnet/System.Memory.dll");
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    // The example of Microsoft's "SymStore", {497B72F6-390A-44FC-878E-5A2D63B6CC4B}, as it is stored.
    let signature = Signature([
        0xf6, 0x72, 0x7b, 0x49, 0x0a, 0x39, 0xfc, 0x44, 0x87, 0x8e, 0x5a, 0x2d, 0x63, 0xb6, 0xcc, 0x4b,
    ]);
    let details = ModuleDetails {
        version: Some("8.0.24.52809".to_owned()),
        pdb: Some(Pdb { path: "C:\\x\\\"a\".pdb".to_owned(), signature, age: u32::MAX }),
        perf_map: Some(PerfMap {
            path: "System.Memory.ni.r2rmap".to_owned(),
            signature: signature.0,
            version: 1,
        }),
        ..ModuleDetails::default()
    };
    machine.set_details(module, details.clone());
    machine.add_mapping(ModuleMapping {
        process: ProcessId(0),
        module,
        start: Avma(0x7100_0000_1000),
        end: Avma(0x7100_0000_9000),
        file_offset: FileOffset(0x400),
        bias: 0x7100_0000_0000,
        since: Nanos(0),
    });
    let bytes = written(&Nettrace, &machine, &symbols);
    let file = File::of(&bytes);
    let mapping = file.mappings.iter().find(|mapping| mapping.path.contains("dotnet")).unwrap();
    let mut about = serde_json::Deserializer::from_str(&mapping.file).into_iter::<serde_json::Value>();
    let expected = serde_json::json!({
        "type": "PE",
        "name": "C:\\x\\\"a\".pdb",
        "age": i32::MAX,
        "signature": "497b72f6390a44fc878e5a2d63b6cc4b",
        "perfmap_signature": "f6727b490a39fc44878e5a2d63b6cc4b",
        "perfmap_version": 1,
        "perfmap_name": "System.Memory.ni.r2rmap",
        "p_vaddr": "0x1000",
        "p_offset": "0x400",
    });
    assert_eq!(about.next().unwrap().unwrap(), expected);
    assert_eq!(about.next().unwrap().unwrap(), serde_json::json!({ "version": "8.0.24.52809" }));

    let again = imported(&bytes).unwrap().machine;
    let mapping = again.mappings().iter().find(|mapping| mapping.start == Avma(0x7100_0000_1000)).unwrap();
    assert_eq!(mapping.bias, 0x7100_0000_0000);
    let mut told = again.details(mapping.module).unwrap().clone();
    assert_eq!(told.pdb.as_mut().map(|pdb| std::mem::replace(&mut pdb.age, u32::MAX)), Some(i32::MAX as u32));
    assert_eq!(told, details);
    let program = again.modules().iter().position(|module| again.string(module.path) == "/opt/prog").unwrap();
    let details = again.details(ModuleId(program as u32)).unwrap();
    assert_eq!(details.package.as_deref(), Some(PACKAGE));
}

/// Two pieces of code without a file, each with a function at the same distance from its start.
#[test]
fn code_without_a_file_is_not_mixed_up() {
    let mut machine = ExportMachine::default();
    machine.system_mut().end = Nanos(100);
    let process = machine.add_process(Pid(7), "prog", None, Nanos(0));
    let name = machine.intern_string("prog");
    let thread = machine.intern_thread(process, Tid(7), name);
    let kind = machine.add_kind("cpu", Unit::Count, 1);
    let mut names = Vec::new();
    for (path, base, function) in [
        ("[anon]", 0x7000_0000, "one"),
        ("[anon]", 0x7100_0000, "other"),
        ("/app/a.dll", 0x7200_0000, "third"),
    ] {
        let path = machine.intern_string(path);
        let module =
            machine.add_module(Module { kind: ModuleKind::Anonymous(process), path, build_id: None });
        // Where memory has no file, the kernel may tell any offset.
        let file_offset = FileOffset(if function == "third" { base } else { 0 });
        let (start, end) = (Avma(base), Avma(base + 0x1000));
        machine.add_mapping(ModuleMapping {
            process,
            module,
            start,
            end,
            file_offset,
            bias: 0,
            since: Nanos(0),
        });
        let flags = FrameFlags(0);
        let frame = machine.intern_frame(Frame { module, address: Svma(base + 0x10), flags });
        names.push((frame, function));
        let stack = machine.intern_stack(&[frame]);
        machine.add_sample(&Sample { time: Nanos(50), thread, stack, kind, value: 1, ..Sample::default() });
    }
    let mut symbols = Symbols::unresolved(&machine);
    for (frame, name) in names {
        symbols.set(frame, name, name);
    }
    let again = imported(&written(&Nettrace, &machine, &symbols)).unwrap();
    let told = told(&again.machine, &again.symbols);
    let frames: Vec<&str> = told.iter().flat_map(|told| &told.frames).map(String::as_str).collect();
    assert_eq!(frames, ["one", "other", "third"]);
    let machine = &again.machine;
    let modules = machine.modules().iter().filter(|of| matches!(of.kind, ModuleKind::Anonymous(_)));
    let paths: Vec<&str> = modules.map(|module| machine.string(module.path)).collect();
    assert_eq!(paths, ["[anon]", "/app/a.dll"]);
}

/// A process with a driver of Windows, at its place in the kernel's half, with frames in it and others of the kernel.
fn with_driver(details: &ModuleDetails, others: &[u64], is_named: bool) -> (ExportMachine, Symbols) {
    const BASE: u64 = 0xffff_f800_0212_6000;
    let mut machine = ExportMachine::default();
    machine.system_mut().end = Nanos(100);
    let process = machine.add_process(Pid(7), "prog", None, Nanos(0));
    // Its number is used again, and what is told of its kernel is told again.
    machine.end_process(process, Nanos(60));
    let next = machine.add_process(Pid(7), "prog", None, Nanos(70));
    let name = machine.intern_string("prog");
    let kind = machine.add_kind("cpu", Unit::Count, 1);
    let path = machine.intern_string(r"C:\Windows\system32\drivers\tcpip.sys");
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    machine.set_details(module, details.clone());
    machine.add_mapping(ModuleMapping {
        process,
        module,
        start: Avma(BASE),
        end: Avma(BASE + 0x1000),
        file_offset: FileOffset(0),
        bias: BASE,
        since: Nanos(0),
    });
    let flags = [0, FrameFlags::RETURN_ADDRESS, FrameFlags::RETURN_ADDRESS];
    let own = [0x10, 0x20, 0x1000].into_iter().zip(flags).map(|(address, flags)| (module, address, flags));
    let others = others.iter().map(|&address| (ModuleId::KERNEL, address, FrameFlags::RETURN_ADDRESS));
    let stack: Vec<FrameId> = own
        .chain(others)
        .map(|(module, address, flags)| {
            let flags = FrameFlags(flags | FrameFlags::KERNEL);
            machine.intern_frame(Frame { module, address: Svma(address), flags })
        })
        .collect();
    let frames = machine.intern_stack(&stack);
    let thread = machine.intern_thread(process, Tid(7), name);
    machine.add_sample(&Sample {
        time: Nanos(50),
        thread,
        stack: frames,
        kind,
        value: 1,
        ..Sample::default()
    });
    machine.intern_thread(next, Tid(7), name);
    let mut symbols = Symbols::unresolved(&machine);
    symbols.set(stack[1], "send", "send");
    if is_named {
        symbols.set(stack[3], "other", "other");
    }
    (machine, symbols)
}

/// Stacks whole, with what Windows's kernel and its drivers are found by: `vmlinux`, which is all over the kernel's half where anything else there has a
/// name, hides none of them.
#[test]
fn files_in_the_kernel_are_themselves() {
    let pdb = Pdb { path: "tcpip.pdb".to_owned(), signature: Signature([7; 16]), age: 2 };
    let known = ModuleDetails { pdb: Some(pdb), ..ModuleDetails::default() };
    for details in [ModuleDetails::default(), known] {
        let others = &[0xffff_f800_0212_5000, 1 << 63, u64::MAX - 1][..];
        for (others, is_named) in [(&[][..], false), (others, false), (others, true)] {
            let (machine, symbols) = with_driver(&details, others, is_named);
            let bytes = written(&Nettrace, &machine, &symbols);
            let again = imported(&bytes).unwrap();
            assert_eq!(facts(&machine, &symbols), facts(&again.machine, &again.symbols));
            let [mapping] = again.machine.mappings() else { panic!("{:?}", again.machine.mappings()) };
            assert_eq!(*mapping, ModuleMapping { module: mapping.module, ..machine.mappings()[0] });
            assert_eq!(again.machine.details(mapping.module).cloned().unwrap_or_default(), details);
            let told = File::of(&bytes).mappings;
            let of_linux = told.iter().filter(|mapping| mapping.path == "vmlinux").count();
            assert_eq!(of_linux, if is_named { 2 } else { 0 });
        }
    }
}

/// What one process has: modules, each with where it is mapped since when, and samples, each of one address in a module.
struct OverTime {
    machine: ExportMachine,
    names: Vec<(FrameId, &'static str)>,
}

impl OverTime {
    fn new() -> Self {
        let mut machine = ExportMachine::default();
        machine.system_mut().end = Nanos(1_000);
        machine.add_process(Pid(7), "prog", None, Nanos(0));
        machine.add_kind("cpu", Unit::Count, 1);
        Self { machine, names: Vec::new() }
    }

    fn module(&mut self, kind: ModuleKind, path: &str) -> ModuleId {
        let path = self.machine.intern_string(path);
        self.machine.add_module(Module { kind, path, build_id: None })
    }

    /// Maps a module from an address to another, since a time.
    fn map(&mut self, module: ModuleId, range: [u64; 2], since: u64) {
        let is_file = self.machine.module(module).kind == ModuleKind::File;
        let [start, end] = range;
        self.machine.add_mapping(ModuleMapping {
            process: ProcessId(0),
            module,
            start: Avma(start),
            end: Avma(end),
            file_offset: FileOffset(0),
            bias: if is_file { start } else { 0 },
            since: Nanos(since),
        });
    }

    /// Adds a sample of a function at an address in a module.
    fn sample(&mut self, time: u64, module: ModuleId, address: u64, name: &'static str) {
        let machine = &mut self.machine;
        let thread = machine.string(machine.process(ProcessId(0)).name).to_owned();
        let thread = machine.intern_string(&thread);
        let thread = machine.intern_thread(ProcessId(0), Tid(7), thread);
        let frame = machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags(0) });
        self.names.push((frame, name));
        let stack = machine.intern_stack(&[frame]);
        machine.add_sample(&Sample { time: Nanos(time), thread, stack, value: 1, ..Sample::default() });
    }

    /// Has it written, read, and that written and read; compares the function of each sample.
    fn check(self) {
        let Self { machine, names } = self;
        let mut symbols = Symbols::unresolved(&machine);
        for &(frame, name) in names.iter().filter(|(_, name)| !name.is_empty()) {
            symbols.set(frame, name, name);
        }
        let of = |machine: &ExportMachine, symbols: &Symbols| -> Vec<(u64, String, String)> {
            let of = |sample: Sample| {
                let frame = machine.stacks().get(sample.stack)[0];
                let path = machine.string(machine.module(machine.frames().get(frame).module).path);
                let name = if symbols.is_resolved(frame) { symbols.name(frame).function } else { "" };
                (sample.time.0, path.to_owned(), name.to_owned())
            };
            let mut all: Vec<_> = machine.samples().iter().map(of).collect();
            all.sort();
            all
        };
        let before = of(&machine, &symbols);
        let once = imported(&written(&Nettrace, &machine, &symbols)).unwrap();
        assert_eq!(before, of(&once.machine, &once.symbols));
        assert_eq!(machine.mappings().len(), once.machine.mappings().len());
        let again = imported(&written(&Nettrace, &once.machine, &once.symbols)).unwrap();
        assert_eq!(before, of(&again.machine, &again.symbols));
    }
}

/// Two libraries, one of them loaded where the other one was, and that one again at its place.
#[test]
fn a_library_has_its_own_functions_while_it_is_loaded() {
    let mut recorded = OverTime::new();
    let [a, b] = ["/lib/a.so", "/lib/b.so"].map(|path| recorded.module(ModuleKind::File, path));
    for (module, since) in [(a, 0), (b, 100), (a, 200), (a, 300)] {
        recorded.map(module, [0x1000, 0x2000], since);
    }
    for (time, module, address, name) in [
        (50, a, 0x10, "alpha"),
        (99, a, 0x20, "alpha"),
        (100, b, 0x10, "beta"),
        (150, b, 0x30, ""),
        (250, a, 0x10, "alpha"),
        (251, a, 0x40, "gamma"),
        (350, a, 0x20, "alpha"),
        (351, a, 0x40, "gamma"),
    ] {
        recorded.sample(time, module, address, name);
    }
    recorded.check();
}

/// Code that a JIT replaced, as it is told apart: what was there first is in the module as recorded, the rest is laid over it. The memory is
/// mapped anew in between.
#[test]
fn replaced_code_has_the_functions_of_its_time() {
    let mut recorded = OverTime::new();
    let kind = ModuleKind::Anonymous(ProcessId(0));
    let [below, first, second] = ["[anon]"; 3].map(|path| recorded.module(kind, path));
    recorded.map(below, [0x1000, 0x3000], 0);
    recorded.map(first, [0x1000, 0x1100], 100);
    recorded.map(second, [0x1080, 0x1180], 200);
    recorded.map(below, [0x1000, 0x5000], 300);
    for (time, module, address, name) in [
        (10, below, 0x1010, "a"),
        (20, below, 0x1150, "b"),
        (110, first, 0x1010, "c"),
        (120, first, 0x1090, "c"),
        (130, below, 0x1150, "b"),
        (210, second, 0x1090, "d"),
        (220, second, 0x1150, "d"),
        (230, first, 0x1010, "c"),
        // No sample of what was there before is at this address.
        (240, below, 0x1040, "e"),
        (310, below, 0x4000, "f"),
        (320, first, 0x1010, "c"),
        (330, second, 0x1150, "d"),
    ] {
        recorded.sample(time, module, address, name);
    }
    recorded.check();
}

/// A library where code was that was made at run time: that one's names are none of its own.
#[test]
fn names_of_made_code_are_none_of_a_file() {
    let mut recorded = OverTime::new();
    let made = recorded.module(ModuleKind::Anonymous(ProcessId(0)), "[anon]");
    let file = recorded.module(ModuleKind::File, "/lib/a.so");
    recorded.map(made, [0x1000, 0x2000], 0);
    recorded.map(file, [0x1000, 0x2000], 100);
    recorded.sample(50, made, 0x1010, "made");
    recorded.sample(150, file, 0x10, "");
    recorded.sample(160, file, 0x20, "own");
    recorded.check();
}

/// Of a pid, each process has what was of it in its time: names, threads, mappings; the first one ends when the second one begins.
#[test]
fn a_pid_that_is_given_again_is_another_process() {
    let mut machine = ExportMachine::default();
    machine.system_mut().end = Nanos(1_000);
    let kind = machine.add_kind("cpu", Unit::Count, 1);
    let mut names = Vec::new();
    for (name, function, start, end, namespace) in [
        ("first", "alpha", 0, Some(500), 3),
        ("second", "beta", 500, Some(700), 5),
        ("third", "gamma", 800, None, 8),
    ] {
        let process = machine.add_process(Pid(400), name, None, Nanos(start));
        if let Some(end) = end {
            machine.end_process(process, Nanos(end));
        }
        machine.process_mut(process).unwrap().namespace_pid = Some(Pid(namespace));
        let path = machine.intern_string(&format!("/bin/{name}"));
        let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
        machine.add_mapping(ModuleMapping {
            process,
            module,
            start: Avma(0x40_0000),
            end: Avma(0x41_0000),
            file_offset: FileOffset(0),
            bias: 0x40_0000,
            since: Nanos(start),
        });
        let frame = machine.intern_frame(Frame { module, address: Svma(0x10), flags: FrameFlags(0) });
        names.push((frame, function));
        let stack = machine.intern_stack(&[frame]);
        let name = machine.intern_string(name);
        let thread = machine.intern_thread(process, Tid(400), name);
        for time in [start + 20, start + 100] {
            let time = Nanos(time);
            machine.add_sample(&Sample { time, thread, stack, kind, value: 1, ..Sample::default() });
        }
    }
    let mut symbols = Symbols::unresolved(&machine);
    for &(frame, name) in &names {
        symbols.set(frame, name, name);
    }
    let again = imported(&written(&Nettrace, &machine, &symbols)).unwrap();
    assert_eq!(facts(&machine, &symbols), facts(&again.machine, &again.symbols));
    let lives = |machine: &ExportMachine| -> Vec<_> {
        let of = |process: &Process| {
            let name = machine.string(process.name).to_owned();
            (name, process.start, process.end, process.namespace_pid)
        };
        machine.processes().iter().map(of).collect()
    };
    assert_eq!(lives(&machine), lives(&again.machine));
    let owners = again.machine.mappings().iter().map(|mapping| mapping.process);
    assert!(owners.eq([0, 1, 2].map(ProcessId)));
}

#[test]
fn a_thread_has_its_name_of_the_time() {
    let Made { mut machine, symbols } = Made::new();
    let names = ["before", "after"].map(|name| machine.intern_string(name));
    for (name, time) in names.into_iter().zip(3_000..) {
        let thread = machine.intern_thread(ProcessId(0), Tid(102), name);
        machine.add_sample(&Sample { time: Nanos(time), thread, value: 1, ..Sample::default() });
    }
    let mut bytes = Vec::new();
    Nettrace.write(Profile { machine: &machine, symbols: &symbols }, &mut bytes).unwrap();
    let imported = import(Cursor::new(bytes)).unwrap();
    let told = told(&imported.machine, &imported.symbols);
    let of_thread: Vec<_> =
        told.iter().filter(|told| told.tid == 102).map(|told| (told.time, &*told.thread)).collect();
    assert_eq!(of_thread, [(3_000, "before"), (3_001, "after")]);
}

/// Others have the calling instruction on stacks, not where it returns to: a caller may be at the first byte of what is mapped.
#[test]
fn a_caller_at_the_first_byte_of_its_mapping_keeps_its_name() {
    let mut machine = ExportMachine::default();
    let kind = machine.add_kind("cpu", Unit::Count, 1);
    let process = machine.add_process(Pid(7), "prog", None, Nanos(0));
    let name = machine.intern_string("prog");
    let thread = machine.intern_thread(process, Tid(7), name);
    let path = machine.intern_string("/usr/bin/prog");
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    machine.add_mapping(ModuleMapping {
        process,
        module,
        start: Avma(0x40_1000),
        end: Avma(0x40_3000),
        file_offset: FileOffset(0x1000),
        bias: 0x40_0000,
        since: Nanos(0),
    });
    let mut frame = |address| {
        machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags::default() })
    };
    let [leaf, main] = [frame(0x2000), frame(0x1000)];
    let stack = machine.intern_stack(&[leaf, main]);
    machine.add_sample(&Sample { thread, stack, kind, value: 1, ..Sample::default() });
    let mut symbols = Symbols::unresolved(&machine);
    for (frame, name) in [(leaf, "leaf"), (main, "main")] {
        symbols.set(frame, name, name);
    }
    let again = imported(&written(&Nettrace, &machine, &symbols)).unwrap();
    let folded = |Imported { machine, symbols, .. }: &Imported| {
        String::from_utf8(written(&Folded, machine, symbols)).unwrap()
    };
    assert_eq!(folded(&again), "prog;main;leaf 1\n");
    // And so in what is written of it.
    assert_eq!(
        folded(&imported(&written(&Nettrace, &again.machine, &again.symbols)).unwrap()),
        folded(&again)
    );
    let lookups: Vec<u64> = again.machine.frames().iter().map(|frame| frame.lookup_address().0).collect();
    assert!(lookups.iter().all(|address| *address >= 0x1000), "{lookups:x?}");
}

/// Whether the stack of each sample is cut, and its attributes.
fn cuts(machine: &ExportMachine) -> Vec<(bool, Vec<String>)> {
    let of = |sample: Sample| {
        let mut frames = machine.stacks().get(sample.stack).iter();
        let is_cut = frames.any(|&frame| machine.frames().get(frame).flags.has(FrameFlags::CUT));
        let list = machine.attributes().get(sample.attributes).iter();
        let told =
            list.map(|&(key, value)| format!("{}={}", machine.string(key), machine.attribute_text(value)));
        (is_cut, told.collect())
    };
    machine.samples().iter().map(of).collect()
}

#[test]
fn an_attribute_that_is_called_like_our_label_of_stacks_stays_one() {
    let again = |has_cuts: bool| {
        let mut machine = ExportMachine::default();
        let kind = machine.add_kind("cpu", Unit::Count, 1);
        let process = machine.add_process(Pid(7), "prog", None, Nanos(0));
        let name = machine.intern_string("prog");
        let thread = machine.intern_thread(process, Tid(7), name);
        let [lock, stack, cut] = ["lock", "stack", "cut"].map(|text| machine.intern_string(text));
        let lists = [&[(stack, cut)][..], &[(lock, cut), (stack, cut)], &[]];
        let lists = lists.map(|list| machine.attributes_mut().intern(list));
        let frame = |flags| Frame { module: ModuleId::KERNEL, address: Svma(0), flags: FrameFlags(flags) };
        let mut frames = vec![machine.intern_frame(frame(FrameFlags::KERNEL))];
        if has_cuts {
            frames.push(machine.intern_frame(frame(FrameFlags::CUT)));
        }
        let stack = machine.intern_stack(&frames);
        for (attributes, time) in lists.into_iter().zip(1..) {
            let time = Nanos(time);
            machine.add_sample(&Sample {
                time,
                thread,
                kind,
                value: 1,
                stack,
                attributes,
                ..Sample::default()
            });
        }
        let bytes = written(&Nettrace, &machine, &Symbols::unresolved(&machine));
        cuts(&imported(&bytes).unwrap().machine)
    };
    let attributes = [vec!["stack=cut"], vec!["lock=cut", "stack=cut"], vec![]];
    let attributes = attributes.map(|list| list.into_iter().map(str::to_owned).collect::<Vec<_>>());
    for has_cuts in [false, true] {
        assert_eq!(again(has_cuts), attributes.clone().map(|list| (has_cuts, list)));
    }
}

/// Each sample, with the functions that there is code of: those that were inlined have no address of their own.
fn facts(machine: &ExportMachine, symbols: &Symbols) -> BTreeMap<String, i64> {
    let tell = |sample: &Sample| {
        let kind = machine.kinds()[usize::from(sample.kind.0)];
        let kind = format!("{} {:?} {}", machine.string(kind.name), kind.unit, kind.period);
        let place = of_thread(machine, sample);
        Some((format!("{kind} at {} on {} {place}", sample.time.0, sample.cpu), sample.value))
    };
    random::told(machine, tell, |id| {
        let frame = machine.frames().get(id);
        let module = machine.module(frame.module);
        let path = machine.string(module.path);
        let name = symbols.name(id).function;
        vec![format!("{name} {path} {:?} {:#x} {}", module.build_id, frame.address.0, frame.is_kernel())]
    })
}

proptest! {
    #[test]
    fn whatever_we_write_is_read_as_it_was(rows in rows()) {
        let kinds = [
            ("cpu", Unit::Count, 1_003_009),
            ("off_cpu", Unit::Nanoseconds, 1),
            ("alloc_space", Unit::Bytes, 1),
            ("faults", Unit::Count, 1),
        ];
        let (machine, symbols) = recording(&rows, &kinds);
        let again = imported(&written(&Nettrace, &machine, &symbols)).unwrap();
        prop_assert_eq!(facts(&machine, &symbols), facts(&again.machine, &again.symbols));
        prop_assert!(again.left_out.is_empty(), "{:?}", again.left_out);
    }
}

/// An event with the stack of a sample: which one, its kind, its time, and whether a sample was taken of it.
type Plan = (prop::sample::Index, u8, u32, bool);

/// Raw events of three kinds: none of the first are samples, all of the second, and some of the third.
fn add_events(machine: &mut ExportMachine, plans: &[Plan]) {
    let samples: Vec<Sample> =
        machine.samples().iter().filter(|sample| sample.stack != StackId::EMPTY).collect();
    let kinds = [("alone", 3), ("sampled", 4), ("some", 5)].map(|(name, id)| {
        let mut format = EventFormat::new(ByteOrder::Little);
        let number = FieldKind::Unsigned(Width::W32);
        format.add_field(EventField::new("n", "", number, Extent::One, Place::AfterPrevious)).unwrap();
        let kind = event_kind(machine, ["made", name], id, format);
        (kind, machine.add_kind(&format!("made:{name}"), Unit::Count, 1))
    });
    if samples.is_empty() {
        return;
    }
    for ((index, of, time, is_sampled), number) in plans.iter().zip(0_u32..) {
        let (kind, sample_kind) = kinds[usize::from(*of)];
        let like = *index.get(&samples);
        // Soon after the sample, as what is at its addresses changes.
        let time = Nanos(like.time.0 + u64::from(*time) % 1000);
        let like = Sample { time, kind: sample_kind, value: 1, ..like };
        if *of == 1 || *of == 2 && *is_sampled {
            machine.add_sample_of_event(&like, kind, &number.to_le_bytes());
        } else {
            let Sample { time, thread, stack, cpu, attributes, .. } = like;
            let record = EventRecord { time, thread, stack, cpu, kind, attributes };
            machine.add_event_record(&record, &number.to_le_bytes()).unwrap();
        }
    }
}

/// Each raw event, with the names on its stack.
fn told_events(machine: &ExportMachine, symbols: &Symbols) -> Vec<String> {
    let tell = |(_, record, bytes): (_, EventRecord, &[u8])| {
        let kind = machine.string(machine.event_kinds()[usize::from(record.kind.0)].name);
        let tid = machine.thread(record.thread).tid.0;
        let frames = machine.stacks().get(record.stack).iter();
        let names: Vec<_> = frames.map(|&frame| symbols.name(frame).function.to_owned()).collect();
        format!("{kind} {bytes:?} at {} on {} of {tid}: {names:?}", record.time.0, record.cpu)
    };
    let mut told: Vec<String> = machine.event_records().iter().map(tell).collect();
    told.sort();
    told
}

proptest! {
    /// An event that no sample was taken of is none afterwards, with a stack or without.
    #[test]
    fn events_and_samples_are_told_apart(
        rows in rows(),
        plans in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..3, 0_u32..1_000_000, any::<bool>()), 0..20),
    ) {
        let (mut machine, symbols) = recording(&rows, &[("cpu", Unit::Count, 1_003_009)]);
        add_events(&mut machine, &plans);
        let bytes = written(&Nettrace, &machine, &symbols);
        let again = import_with_events(Cursor::new(&bytes), 1 << 20).unwrap();
        prop_assert_eq!(facts(&machine, &symbols), facts(&again.machine, &again.symbols));
        prop_assert_eq!(told_events(&machine, &symbols), told_events(&again.machine, &again.symbols));
        let without = import(Cursor::new(&bytes)).unwrap();
        prop_assert_eq!(facts(&machine, &symbols), facts(&without.machine, &without.symbols));
        let bytes = written(&Nettrace, &again.machine, &again.symbols);
        let third = import_with_events(Cursor::new(&bytes), 1 << 20).unwrap();
        prop_assert_eq!(facts(&machine, &symbols), facts(&third.machine, &third.symbols));
        prop_assert_eq!(told_events(&machine, &symbols), told_events(&third.machine, &third.symbols));
    }
}

/// Whatever is read of events can be written.
#[test]
fn damaged_events_are_survived() {
    let Recorded { machine, symbols } = Recorded::new();
    let mut bytes = Vec::new();
    Nettrace.write(Profile { machine: &machine, symbols: &symbols }, &mut bytes).unwrap();
    let mut survived = 0;
    for at in 0..bytes.len() {
        for mask in [1, 0x10, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            let Ok(imported) = import_with_events(Cursor::new(damaged), 1 << 20) else { continue };
            let profile = Profile { machine: &imported.machine, symbols: &imported.symbols };
            JsonLines.write(profile, &mut io::sink()).unwrap();
            Nettrace.write(profile, &mut io::sink()).unwrap();
            survived += 1;
        }
    }
    assert!(survived > 100, "{survived}");
}

#[test]
fn a_damaged_file_is_survived() {
    let Made { machine, symbols } = Made::new();
    let mut bytes = Vec::new();
    Nettrace.write(Profile { machine: &machine, symbols: &symbols }, &mut bytes).unwrap();
    let mut survived = 0;
    for at in 0..bytes.len() {
        for mask in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            survived += u32::from(import(Cursor::new(damaged)).is_ok());
        }
    }
    // In names, for one.
    assert!(survived > 100, "{survived}");
}

/// Names of the stacks of samples of a kind, outermost last.
fn stacks<'a>(imported: &'a Imported, kind: &str) -> Vec<Vec<&'a str>> {
    let machine = &imported.machine;
    let of_kind = machine
        .samples()
        .iter()
        .filter(|sample| machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == kind);
    let name = |&frame: &FrameId| imported.symbols.name(frame).function;
    of_kind.map(|sample| machine.stacks().get(sample.stack).iter().map(name).collect()).collect()
}

/// An event of a source of one's own is written by the method of its name.
#[test]
fn captures_have_the_methods_names() {
    for path in captures() {
        let imported = import(Cursor::new(unzipped(&path))).unwrap();
        if path.to_string_lossy().contains("arraytypes") {
            for event in 1..=3 {
                let method = format!("EventSourceTest.TestEventSource0.TestEvent{event}");
                let stacks = stacks(&imported, &format!("TestEventSource0/TestEvent{event}"));
                let [stack] = &*stacks else { panic!("{stacks:?}") };
                let at = stack.iter().position(|name| *name == method).unwrap();
                assert_eq!(
                    stack[at + 1..],
                    ["EventSourceTest.Program.WriteEvents", "EventSourceTest.Program.Main"]
                );
                assert!(stack[..at].iter().all(|name| name.starts_with("System.Diagnostics.Tracing.")));
            }
            continue;
        }
        // As many as `PerfView` counts, less those without a stack.
        let sampled = stacks(&imported, "thread_sample");
        assert!((30_000..=35_161).contains(&sampled.len()), "{}", sampled.len());
        assert!((35_450..=35_458).contains(&stacks(&imported, "alloc_space").len()));
        // The framework's own code was compiled before, and this capture does not tell its names.
        let in_main = sampled.iter().flatten().filter(|name| name.starts_with("EventGenerator.Program"));
        assert!(in_main.count() > 1000);
    }
}
