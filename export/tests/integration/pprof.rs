//! Our profiles, read by `go tool pprof`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::record::{
    AttributeListId, ExportMachine, Frame, FrameFlags, Module, ModuleKind, ModuleMapping, Sample, Unit,
};
use export::format::pprof::Pprof;
use export::format::{ExportFormat, Profile};
use export::symbolize::Symbols;

use crate::lines;
use crate::made::{CONTAINER, Made, PERIOD};
use crate::symbols::{PROGRAM, address_of, compiled};
use crate::tools::{output, tool};

pub(crate) fn written(machine: &ExportMachine, symbols: &Symbols) -> Vec<u8> {
    let mut out = Vec::new();
    Pprof.write(Profile { machine, symbols }, &mut out).unwrap();
    out
}

/// A profile in a folder of its own, and `go tool pprof` for it.
pub(crate) struct Go {
    folder: tempfile::TempDir,
    profile: PathBuf,
}

impl Go {
    pub(crate) fn new(profile: &[u8]) -> Option<Self> {
        tool("go")?;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.pb.gz");
        std::fs::write(&path, profile).unwrap();
        Some(Self { folder, profile: path })
    }

    pub(crate) fn pprof(&self, arguments: &[&str]) -> String {
        let home = self.folder.path();
        let mut go = Command::new("go");
        go.args(["tool", "pprof"]).args(arguments).arg(&self.profile);
        go.env("HOME", home)
            .env("PPROF_TMPDIR", home)
            .env("PPROF_BINARY_PATH", home)
            .env("GOFLAGS", "-mod=mod");
        output(&mut go)
    }
}

/// `flat flat% sum% cum cum% name` as name to (flat, cum).
pub(crate) fn top(text: &str) -> HashMap<String, (String, String)> {
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    rows.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words[5..].join(" "), (words[0].to_owned(), words[3].to_owned()))
    })
    .collect()
}

#[test]
fn go_sees_the_hottest_functions() {
    let made = Made::new();
    let Some(go) = Go::new(&written(&made.machine, &made.symbols)) else { return };
    let text = go.pprof(&["-top", "-sample_index=samples", "-nodefraction=0"]);
    let rows = top(&text);
    for (function, flat, cum) in [
        ("work(int; char)", "60", "68"),
        ("recurse", "10", "10"),
        ("vfs_read", "8", "8"),
        ("main", "0", "78"),
        ("[stack cut]", "0", "4"),
    ] {
        assert_eq!(rows.get(function), Some(&(flat.to_owned(), cum.to_owned())), "{function}: {text}");
    }
    // The time is the count times the period: 85 samples.
    let text = go.pprof(&["-top", "-nodefraction=0", "-unit=ms"]);
    assert!(text.contains("Type: cpu"), "{text}");
    assert!(text.contains("Duration: 2s, Total samples = 85.26ms"), "{text}");
    assert_eq!(top(&text)["vfs_read"].0, "8.02ms", "{text}");
}

#[test]
fn go_sees_stacks_and_labels() {
    let made = Made::new();
    let Some(go) = Go::new(&written(&made.machine, &made.symbols)) else { return };
    let text = go.pprof(&["-traces", "-sample_index=samples"]);
    let traces: Vec<Vec<&str>> = text
        .split("-----------+-------------------------------------------------------\n")
        .skip(1)
        .map(|trace| trace.lines().map(str::trim).collect())
        .collect();
    let trace = |lines: &[&str]| {
        let joined: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        assert!(traces.iter().any(|trace| squeezed(trace) == joined), "{lines:?} in {text}");
    };
    trace(&["comm: worker 7", "process: prog", "pid: 100", "tid: 101", "20 work(int; char)", "main"]);
    trace(&[
        "comm: prog",
        "frames: guessed",
        "process: prog",
        "pid: 100",
        "tid: 100",
        "10 recurse",
        "recurse",
        "recurse",
        "main",
    ]);
    let container = format!("container: {CONTAINER}");
    let labels = ["comm: prog", "process: prog", &container, "pid: 200", "tid: 200"];
    trace(&[&labels[..], &["8 vfs_read", "work(int; char)", "main"]].concat());
}

fn squeezed(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn go_sees_what_was_mapped() {
    let made = Made::new();
    let Some(go) = Go::new(&written(&made.machine, &made.symbols)) else { return };
    let raw = go.pprof(&["-raw"]);
    for line in [
        "PeriodType: cpu nanoseconds",
        &format!("Period: {PERIOD}"),
        "Duration: 2s",
        "samples/count cpu/nanoseconds[dflt]",
        "0x4000/0x9000/0x3000 /opt/prog abcd01 [FN]",
        "0x8000000000000000/0xffffffffffffffff/0x0 [kernel.kallsyms]  [FN]",
    ] {
        assert!(raw.contains(line), "{line} in {raw}");
    }
    assert!(raw.lines().any(|line| line.starts_with("Time: 2025-06-15 ")), "{raw}");
    // A caller's location is in the call: one byte before where it returns to.
    let locations: Vec<String> = raw
        .lines()
        .skip_while(|line| *line != "Locations")
        .skip(1)
        .take_while(|line| *line != "Mappings")
        .map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
        .collect();
    for location in ["0x4200 M=1 work(int; char) :0:0 s=0", "0x4100 M=1 main :0:0 s=0", "0x8123 M=1"] {
        let start = location.trim_end_matches(" :0:0 s=0");
        assert!(locations.iter().any(|line| line.starts_with(start)), "{location} in {raw}");
    }
    assert_eq!(raw.matches("/opt/prog").count(), 1, "two processes, one mapping: {raw}");
    let comments = go.pprof(&["-comments"]);
    for comment in [
        "build-07",
        "prog --fast",
        "bookworm",
        "A B @ 2 GHz",
        "8192 MiB",
        "3 lost (ring_full 3)",
        "100.00 % are complete",
    ] {
        assert!(comments.contains(comment), "{comments}");
    }
}

/// A profile without names, of one function in a file that is there.
fn unnamed(program: &Path, name: &str) -> Vec<u8> {
    let address = address_of(program, name);
    let segment = code_segment(program);
    let mut machine = ExportMachine::default();
    let kind = machine.add_kind("cpu", Unit::Count, PERIOD);
    let process = machine.add_process(Pid(1), "self", None, Nanos(0));
    let path = machine.intern_string(program.to_str().unwrap());
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    let bias = 0x7f12_3456_7000;
    // Mapped from the beginning of the page that the segment starts in.
    let inside = segment.offset % 0x1000;
    machine.add_mapping(ModuleMapping {
        process,
        module,
        start: Avma(bias + segment.address - inside),
        end: Avma(bias + (segment.address + segment.size).next_multiple_of(0x1000)),
        file_offset: FileOffset(segment.offset - inside),
        bias,
        since: Nanos(0),
    });
    let name = machine.intern_string("self");
    let thread = machine.intern_thread(process, Tid(1), name);
    let flags = FrameFlags::default();
    let frame = machine.intern_frame(Frame { module, address: Svma(address), flags });
    let stack = machine.intern_stack(&[frame]);
    let attributes = AttributeListId::NONE;
    machine.add_sample(&Sample { time: Nanos(1), thread, stack, cpu: 0, kind, value: 1, attributes });
    written(&machine, &Symbols::unresolved(&machine))
}

struct Segment {
    offset: u64,
    address: u64,
    size: u64,
}

/// The segment with code, by what `readelf` says.
fn code_segment(program: &Path) -> Segment {
    let headers = output(Command::new("readelf").args(["-lW"]).arg(program));
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let lines = headers.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut code = lines.filter(|words| words.first() == Some(&"LOAD") && words.contains(&"E"));
    let words = code.next().unwrap();
    Segment { offset: number(words[1]), address: number(words[2]), size: number(words[5]) }
}

/// Addresses, mapping and file agree as the format wants it: pprof itself finds the name in the file, also where
/// the linked address is not the offset in the file.
#[cfg(target_os = "linux")]
#[test]
fn go_finds_names_in_the_file_by_our_addresses() {
    if ["gcc", "nm", "readelf"].iter().any(|name| tool(name).is_none()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments) in [
        ("pie", &["-g", "-pie"][..]),
        ("fixed", &["-g", "-no-pie"]),
        ("moved", &["-g", "-shared", "-fPIC", "-Wl,-Ttext-segment=0x70000"]),
    ] {
        let program = compiled(folder.path(), name, PROGRAM, arguments);
        let Some(go) = Go::new(&unnamed(&program, "global")) else { return };
        let text = go.pprof(&["-symbolize=local", "-top", "-nodefraction=0"]);
        assert!(text.contains("100%  global"), "{name}: {text}");
    }
}

/// Names, lines and files of what is inlined at an address, without the file that they are from.
#[test]
fn go_sees_lines_and_inlined_functions() {
    let folder = tempfile::tempdir().unwrap();
    let Some((machine, symbols)) = lines::innermost_place(folder.path()) else { return };
    let Some(go) = Go::new(&written(&machine, &symbols)) else { return };
    let text = go.pprof(&["-traces", "-lines"]);
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let text = words.join(" ");
    let path = folder.path().display();
    // In the order of `C_PROGRAM`'s and `C_HEADER`'s lines.
    let expected =
        format!("innermost {path}/inner.h:4 (inline) middle {path}/main.c:6 (inline) outer {path}/main.c:10");
    assert!(text.contains(&expected), "{text}");
    let text = go.pprof(&["-list", "innermost"]);
    let hot = text.lines().find(|line| line.contains("a = a * a + sink;")).unwrap_or_default();
    assert!(hot.trim_start().starts_with("1s ") || hot.trim_start().starts_with("1 "), "{text}");
    let raw = go.pprof(&["-raw"]);
    assert!(raw.contains("[FN][FL][LN][IN]"), "{raw}");
    let rows = top(&go.pprof(&["-top", "-sample_index=samples", "-nodefraction=0"]));
    assert_eq!(rows["innermost (inline)"], ("1".to_owned(), "1".to_owned()));
    assert_eq!(rows["outer"], ("0".to_owned(), "1".to_owned()));
}

/// Kinds with units of their own, and facts about single samples.
pub(crate) fn of_all_kinds() -> (ExportMachine, Symbols) {
    let mut machine = ExportMachine::default();
    let cpu = machine.add_kind("cpu", Unit::Count, 1_000_000);
    let waited = machine.add_kind("off-cpu", Unit::Nanoseconds, 1);
    let bytes = machine.add_kind("alloc", Unit::Bytes, 1);
    let faults = machine.add_kind("page-faults", Unit::Count, 1);
    let process = machine.add_process(Pid(1), "p", None, Nanos(0));
    let name = machine.intern_string("t");
    let thread = machine.intern_thread(process, Tid(1), name);
    let path = machine.intern_string("/p");
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    let frame = machine.intern_frame(Frame { module, address: Svma(16), flags: FrameFlags::default() });
    let stack = machine.intern_stack(&[frame]);
    let request = [machine.intern_string("request"), machine.intern_string("GET /")];
    let list = machine.attributes_mut().intern(&[(request[0], request[1])]);
    let none = AttributeListId::NONE;
    for (kind, value, attributes) in
        [(cpu, 1, none), (waited, 70_000, none), (bytes, 4096, none), (bytes, 100, list), (faults, 1, list)]
    {
        machine.add_sample(&Sample { time: Nanos(1), thread, stack, cpu: 0, kind, value, attributes });
    }
    let mut symbols = Symbols::unresolved(&machine);
    symbols.set(frame, "f", "f");
    (machine, symbols)
}

#[test]
fn go_sees_each_kind_and_its_attributes() {
    let (machine, symbols) = of_all_kinds();
    let Some(go) = Go::new(&written(&machine, &symbols)) else { return };
    let raw = go.pprof(&["-raw"]);
    let types = "cpu_samples/count cpu/nanoseconds[dflt] off-cpu_samples/count off-cpu/nanoseconds \
                 alloc_samples/count alloc/bytes page-faults/count";
    assert!(raw.contains(types), "{raw}");
    let squeezed: Vec<String> = squeezed(&raw.lines().collect::<Vec<_>>());
    assert!(squeezed.iter().any(|line| line == "1 1000000 1 70000 1 4096 0: 1"), "{raw}");
    assert!(squeezed.iter().any(|line| line == "0 0 0 0 1 100 1: 1"), "{raw}");
    assert!(raw.contains("request:[GET /]"), "{raw}");
}
