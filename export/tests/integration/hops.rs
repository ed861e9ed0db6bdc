//! A recording that goes through two formats, one after the other, is the same recording: names, processes, threads and totals, and which kind is
//! shown.
//!
//! The recordings are of others (samply, the JDK, .NET), and one with processes that share a library. The reader of the second format has only
//! what the first one told.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::record::{
    ExportMachine, Frame, FrameFlags, Module, ModuleKind, Sample, SampleKindId, Unit,
};
use export::format::firefox::Firefox;
use export::format::jfr::Jfr;
use export::format::nettrace::Nettrace;
use export::format::pprof::Pprof;
use export::format::{ExportFormat, formats};
use export::import::{self, BEGIN, ImportFormat, Imported, importers};
use export::symbolize::Symbols;

use crate::made::Made;
use crate::nettrace_old::unzipped;
use crate::random::{imported, written};

/// Each kind with its unit.
type Kind = (String, String);

/// What is the same in all formats: the kind that is shown, values by kind, and those of the kind that is shown by process, thread, and the
/// names on the stack.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    shown: Option<Kind>,
    totals: BTreeMap<Kind, i64>,
    stacks: BTreeMap<(u32, u32, String), i64>,
}

fn told(machine: &ExportMachine, symbols: &Symbols) -> Told {
    let kind = |id: SampleKindId| {
        let kind = &machine.kinds()[usize::from(id.0)];
        (machine.string(kind.name).to_owned(), kind.unit.name().to_owned())
    };
    let (mut totals, mut stacks) = (BTreeMap::new(), BTreeMap::new());
    for Sample { kind: id, value, thread, stack, .. } in machine.samples().iter() {
        // pprof has the number of a kind's samples beside their values.
        if !kind(id).0.ends_with("_samples") {
            *totals.entry(kind(id)).or_default() += value;
        }
        if machine.shown_kind() == Some(id) {
            // What has no name is a file and an address, of which no profile tells whether it is one that a call returns to.
            let name = |&frame| symbols.name(frame).function.split("+0x").next().unwrap_or_default();
            let names = machine.stacks().get(stack).iter().map(name).collect::<Vec<_>>().join(";");
            let thread = machine.thread(thread);
            let pid = machine.process(thread.process).pid.0;
            *stacks.entry((pid, thread.tid.0, names)).or_default() += value;
        }
    }
    Told { shown: machine.shown_kind().map(kind), totals, stacks }
}

fn again(format: &dyn ExportFormat, machine: &ExportMachine, symbols: &Symbols) -> Imported {
    imported(&written(format, machine, symbols)).unwrap()
}

/// Writes a recording as pprof, Firefox Profiler and JFR, and each of these as all of them.
fn go(name: &str, machine: &ExportMachine, symbols: &Symbols) {
    let formats: [&dyn ExportFormat; 4] = [&Nettrace, &Pprof, &Firefox, &Jfr];
    let before = told(machine, symbols);
    for first in formats {
        let once = again(first, machine, symbols);
        let by_first = told(&once.machine, &once.symbols);
        assert_eq!(before, by_first, "{name} as {}", first.name());
        for second in formats {
            let twice = again(second, &once.machine, &once.symbols);
            let by_second = told(&twice.machine, &twice.symbols);
            assert_eq!(by_first, by_second, "{name} as {}, then as {}", first.name(), second.name());
        }
    }
}

#[test]
fn what_others_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration");
    for (file, is_packed) in [
        ("samply/busy.json.gz", false),
        ("samply/busy_fixed.json.gz", false),
        ("java/25.jfr.zip", true),
        ("dotnet/9.nettrace.zip", true),
    ] {
        let path = folder.join(file);
        let bytes = if is_packed { unzipped(&path) } else { fs::read(&path).unwrap() };
        let Imported { machine, symbols, .. } = imported(&bytes).unwrap();
        go(file, &machine, &symbols);
    }
}

#[test]
fn what_is_made() {
    let Made { machine, symbols } = Made::new();
    go("made", &machine, &symbols);
}

/// No format's files are taken for those of another.
#[test]
fn files_are_taken_for_what_they_are() {
    let Made { machine, symbols } = Made::new();
    for format in formats() {
        let bytes = written(*format, &machine, &symbols);
        let taken_for = import::of(&bytes[..bytes.len().min(BEGIN)]).map(ImportFormat::name);
        let is_read = importers().iter().any(|reader| reader.name() == format.name());
        assert_eq!(taken_for, is_read.then_some(format.name()), "{}", format.name());
    }
}

/// Two processes with two files of the same addresses, of which no place in them is known: names are those of each file.
#[test]
fn files_at_no_known_place_are_apart() {
    let mut machine = ExportMachine::default();
    let kind = machine.add_kind("cpu", Unit::Count, 1_000_000);
    let mut names = Vec::new();
    let modules = ["/bin/a", "/lib/b.so"].map(|path| {
        let path = machine.intern_string(path);
        machine.add_module(Module { kind: ModuleKind::File, path, build_id: None })
    });
    for (module, own) in modules.into_iter().zip(["a", "b"]) {
        for (address, function) in [(0x1000, "first"), (0x1040, "second")] {
            let frame = Frame { module, address: Svma(address), flags: FrameFlags(0) };
            names.push((machine.intern_frame(frame), format!("{own}_{function}")));
        }
    }
    for pid in [7, 8] {
        let process = machine.add_process(Pid(pid), "prog", None, Nanos(0));
        let name = machine.intern_string("prog");
        let thread = machine.intern_thread(process, Tid(pid), name);
        for (at, callee) in [(1, 2), (0, 3)] {
            let stack = machine.intern_stack(&[names[callee].0, names[at].0]);
            machine.add_sample(&Sample {
                time: Nanos(u64::from(pid)),
                thread,
                stack,
                kind,
                value: 1,
                ..Sample::default()
            });
        }
    }
    let mut symbols = Symbols::unresolved(&machine);
    for (frame, name) in &names {
        symbols.set(*frame, name, name);
    }
    let before = told(&machine, &symbols);
    assert!(before.stacks.contains_key(&(8, 8, "b_second;a_first".to_owned())));
    let Imported { machine: after, symbols: names, .. } = again(&Nettrace, &machine, &symbols);
    assert_eq!(before, told(&after, &names));
    go("two files", &machine, &symbols);
}
