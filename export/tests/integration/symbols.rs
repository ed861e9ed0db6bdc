//! Names of functions against `nm`, `objdump` and `addr2line` of binutils, which read the same files another way.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use collector_common::ids::Svma;
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind};
use export::symbolize::{Detail, ModuleFiles, Symbols, symbolize, symbolize_rest};
use tempfile::TempDir;

use crate::tools::{output, tool};

/// Files of modules by their paths.
pub(crate) struct Files<'a> {
    pub(crate) machine: &'a ExportMachine,
    pub(crate) debug: Option<PathBuf>,
    pub(crate) kallsyms: &'static [u8],
    pub(crate) vdso: Option<Vec<u8>>,
    pub(crate) opened: Cell<usize>,
    /// How often the debug file was asked for.
    pub(crate) debug_opened: Cell<usize>,
}

impl<'a> Files<'a> {
    pub(crate) fn of(machine: &'a ExportMachine) -> Self {
        let (opened, debug_opened) = (Cell::new(0), Cell::new(0));
        Self { machine, debug: None, kallsyms: &[], vdso: None, opened, debug_opened }
    }
}

impl ModuleFiles for Files<'_> {
    type File = File;

    fn open(&self, module: ModuleId) -> Option<File> {
        self.opened.set(self.opened.get() + 1);
        File::open(self.machine.string(self.machine.module(module).path)).ok()
    }

    fn open_debug(&self, _: ModuleId) -> Option<File> {
        self.debug_opened.set(self.debug_opened.get() + 1);
        self.debug.as_ref().and_then(|path| File::open(path).ok())
    }

    fn kernel_symbols(&self) -> Option<Box<dyn BufRead + Send>> {
        Some(Box::new(BufReader::new(Cursor::new(self.kallsyms))))
    }

    fn vdso(&self, _: ModuleId) -> Option<&[u8]> {
        self.vdso.as_deref()
    }
}

/// A machine with one file and a frame at each of some addresses.
pub(crate) fn machine_of(path: &Path, addresses: impl IntoIterator<Item = u64>) -> ExportMachine {
    let mut machine = ExportMachine::default();
    let path = machine.intern_string(path.to_str().unwrap());
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    for address in addresses {
        let flags = FrameFlags::default();
        machine.intern_frame(Frame { module, address: Svma(address), flags });
    }
    machine
}

/// Linkage names by address, without versions.
pub(crate) fn names(machine: &ExportMachine, symbols: &Symbols) -> BTreeMap<u64, Option<String>> {
    let frames = machine.frames().iter().zip(0..);
    frames
        .map(|(frame, id)| {
            let name = symbols.name(FrameId(id)).linkage;
            let name = name.strip_suffix("@plt").unwrap_or_else(|| name.split('@').next().unwrap_or(name));
            (frame.address.0, symbols.is_resolved(FrameId(id)).then(|| name.to_owned()))
        })
        .collect()
}

/// A symbol of code with a size, as `nm` prints it.
#[derive(Debug)]
struct Symbol {
    start: u64,
    size: u64,
    kind: char,
    name: String,
}

fn nm(path: &Path, dynamic: bool) -> Vec<Symbol> {
    let mut command = Command::new("nm");
    command.args(["--defined-only", "-S"]).args(dynamic.then_some("-D")).arg(path);
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    output(&mut command)
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [start, size, kind, name] = words[..] else { return None };
            let name = name.split('@').next().unwrap().to_owned();
            Some(Symbol { start: hex(start), size: hex(size), kind: kind.chars().next().unwrap(), name })
        })
        .filter(|symbol| "tTwWi".contains(symbol.kind))
        .collect()
}

/// Names that the rule allows at an address, by `nm`'s account: those of the smallest and most visible symbols
/// around it.
fn allowed(symbols: &[Symbol], address: u64) -> BTreeSet<&str> {
    let around =
        || symbols.iter().filter(|symbol| (symbol.start..symbol.start + symbol.size).contains(&address));
    let smallest = around().map(|symbol| symbol.size).min();
    let of_size = || around().filter(|symbol| Some(symbol.size) == smallest);
    let rank = |symbol: &Symbol| match symbol.kind {
        'T' => 2,
        't' => 0,
        // `nm` shows an ifunc's kind and not its visibility.
        'i' => 3,
        _ => 1,
    };
    let best = of_size().map(rank).filter(|&rank| rank < 3).max();
    of_size()
        .filter(|symbol| rank(symbol) == 3 || Some(rank(symbol)) == best)
        .map(|s| s.name.as_str())
        .collect()
}

/// First, middle and last address of every `step`-th function.
fn addresses(symbols: &[Symbol], step: usize) -> BTreeSet<u64> {
    let spread = |symbol: &Symbol| [0, symbol.size / 2, symbol.size - 1].map(|offset| symbol.start + offset);
    symbols.iter().filter(|symbol| symbol.size > 0).step_by(step).flat_map(spread).collect()
}

fn agrees_with_nm(path: &Path, dynamic: bool, step: usize) {
    if tool("nm").is_none() {
        return;
    }
    let truth = nm(path, dynamic);
    let wanted = addresses(&truth, step);
    assert!(wanted.len() > 1_000, "{}: {} addresses", path.display(), wanted.len());
    let machine = machine_of(path, wanted);
    let files = Files::of(&machine);
    let symbols = symbolize(&machine, &files, Detail::default());
    assert_eq!(files.opened.get(), 1);
    assert!(symbols.unreadable().is_empty(), "{:?}", symbols.unreadable());
    for (address, name) in names(&machine, &symbols) {
        let allowed = allowed(&truth, address);
        let name = name.unwrap_or_default();
        assert!(
            allowed.contains(name.as_str()),
            "{}: {address:#x} is {name}, not {allowed:?}",
            path.display()
        );
    }
}

/// The file that a library is, among this process's or the compiler's.
pub(crate) fn library(name: &str) -> Option<PathBuf> {
    let found = output(Command::new("gcc").arg(format!("-print-file-name={name}")));
    let path = PathBuf::from(found.trim());
    path.is_absolute().then(|| path.canonicalize().unwrap())
}

#[test]
fn names_in_libc_and_libstdcxx_are_those_of_nm() {
    if tool("gcc").is_none() {
        return;
    }
    agrees_with_nm(&library("libc.so.6").unwrap(), true, 1);
    agrees_with_nm(&library("libstdc++.so.6").unwrap(), true, 2);
}

#[cfg(target_os = "linux")]
#[test]
fn names_in_this_program_are_those_of_nm() {
    agrees_with_nm(&std::env::current_exe().unwrap(), false, 20);
}

/// `addr2line` reads symbols where there is no debug information.
#[test]
fn names_in_libstdcxx_are_those_of_addr2line() {
    if tool("gcc").is_none() || tool("addr2line").is_none() {
        return;
    }
    let path = library("libstdc++.so.6").unwrap();
    let truth = nm(&path, true);
    let wanted = addresses(&truth, 7);
    let machine = machine_of(&path, wanted.iter().copied());
    let found = names(&machine, &symbolize(&machine, &Files::of(&machine), Detail::default()));

    let mut addr2line = Command::new("addr2line");
    let mut child =
        addr2line.args(["-f", "-e"]).arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let asked = wanted.clone();
    let feeding = std::thread::spawn(move || {
        for address in asked {
            writeln!(input, "{address:#x}").unwrap();
        }
    });
    let answers = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    let answers = String::from_utf8(answers.stdout).unwrap();
    let starts: BTreeMap<&str, u64> =
        truth.iter().map(|symbol| (symbol.name.as_str(), symbol.start)).collect();
    let mut compared = 0;
    for (address, theirs) in wanted.iter().zip(answers.lines().step_by(2)) {
        let ours = found[address].as_deref().unwrap_or_default();
        let theirs = theirs.split('@').next().unwrap();
        // Several names may be right: then they start at one place.
        assert!(
            ours == theirs || starts.get(ours) == starts.get(theirs),
            "{address:#x}: {ours}, not {theirs}"
        );
        compared += 1;
    }
    assert!(compared > 1_000, "{compared}");
}

/// Names of stubs as `objdump` makes them up.
fn agrees_with_objdump(path: &Path) {
    let mut objdump = Command::new("objdump");
    objdump.args(["-d", "--no-show-raw-insn", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got"]).arg(path);
    let text = output(&mut objdump);
    let stubs: BTreeMap<u64, &str> = text
        .lines()
        .filter_map(|line| {
            let (address, name) = line.split_once(" <")?;
            let name = name.strip_suffix(">:")?.strip_suffix("@plt")?;
            Some((u64::from_str_radix(address, 16).ok()?, name))
        })
        .filter(|(_, name)| !name.starts_with("*ABS*"))
        .collect();
    assert!(stubs.len() > 3, "{}: {text}", path.display());
    let machine = machine_of(path, stubs.keys().map(|start| start + 5));
    let symbols = symbolize(&machine, &Files::of(&machine), Detail::default());
    for (frame, id) in machine.frames().iter().zip(0..) {
        let expected = format!("{}@plt", stubs[&(frame.address.0 - 5)].split('@').next().unwrap());
        assert_eq!(symbols.name(FrameId(id)).linkage, expected, "{:#x}", frame.address.0);
    }
}

/// A folder for what these programs make; none where one of them is missing.
pub(crate) fn folder(tools: &[&str]) -> Option<TempDir> {
    tools.iter().all(|name| tool(name).is_some()).then(|| tempfile::tempdir().unwrap())
}

/// A program compiled for a test.
pub(crate) fn compiled(folder: &Path, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let program = folder.join(name);
    output(Command::new("gcc").args(arguments).arg("-o").arg(&program).arg(&file));
    program
}

pub(crate) const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int (*compare)(const char *, const char *) = strcmp;
__attribute__((noinline)) static int local(int x) { return x * 3 + rand(); }
__attribute__((noinline)) int global(int x) { puts("x"); return local(x) + 1; }
__asm__(".text\n.globl bare\nbare:\n nop\n nop\n ret\n inner_label:\n ret\n.globl sized\n.type sized,@function\n"
        "sized:\n nop\n ret\n.size sized, . - sized\n nop\n nop\n");
int main(int argc, char **argv) { free(malloc(argc)); return global(argc) + compare(argv[0], "a"); }
"#;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn stubs_are_named_after_what_they_call() {
    let Some(folder) = folder(&["gcc", "objdump"]) else { return };
    for (name, arguments) in [
        ("lazy", &["-Wl,-z,lazy"][..]),
        ("now", &["-Wl,-z,now", "-fno-plt"]),
        ("ibt", &["-fcf-protection=full", "-Wl,-z,ibtplt", "-Wl,-z,lazy"]),
        ("fixed", &["-no-pie", "-Wl,-z,lazy"]),
    ] {
        let program = compiled(folder.path(), name, PROGRAM, arguments);
        if name != "now" {
            agrees_with_objdump(&program);
        }
    }
    agrees_with_objdump(&library("libstdc++.so.6").unwrap());
}

/// Those of 32-bit programs, which need no C library here: they are linked with a library of their own.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn stubs_of_32_bit_programs_are_named() {
    let Some(folder) = folder(&["gcc", "objdump"]) else { return };
    let functions = ["copy", "compare", "print", "finish"];
    let alone = ["-m32", "-nostdlib"];
    let source: String = functions.map(|name| format!("int {name}(int x) {{ return x; }}\n")).concat();
    let library =
        compiled(folder.path(), "libcalled.so", &source, &[&alone[..], &["-shared", "-fPIC"]].concat());
    let declared: String = functions.map(|name| format!("int {name}(int);\n")).concat();
    let calls: String = functions.map(|name| format!("x += {name}(x);\n")).concat();
    let source =
        format!("{declared} int all(int x) {{ {calls} return x; }}\nvoid _start(void) {{ all(1); }}");
    for (name, arguments) in [
        ("moved", &["-pie", "-fPIE", "-Wl,-z,lazy"][..]),
        ("now", &["-pie", "-fPIE", "-Wl,-z,now"]),
        ("fixed", &["-no-pie", "-fno-pie", "-Wl,-z,lazy"]),
        ("ibt", &["-pie", "-fPIE", "-fcf-protection=full", "-Wl,-z,ibtplt", "-Wl,-z,lazy"]),
        ("ibt_fixed", &["-no-pie", "-fno-pie", "-fcf-protection=full", "-Wl,-z,ibtplt", "-Wl,-z,lazy"]),
    ] {
        let shared = ["-Wl,--no-as-needed", library.to_str().unwrap()];
        let program = compiled(folder.path(), name, &source, &[&alone[..], arguments, &shared].concat());
        agrees_with_objdump(&program);
    }
}

/// An ifunc, which is `one`.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) const CHOSEN: &str = r#"
    static int one(void) { return 1; }
    static int (*resolve(void))(void) { return one; }
    int chosen(void) __attribute__((ifunc("resolve"), visibility("hidden")));
"#;

/// What the function at an address is called, of which there are the digits.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn function_at(program: &Path, digits: &str) -> String {
    let machine = machine_of(program, [u64::from_str_radix(digits, 16).unwrap()]);
    let symbols = symbolize(&machine, &Files::of(&machine), Detail::default());
    symbols.name(FrameId(0)).function.to_owned()
}

/// A stub that a resolver fills: its relocation has no addend, and the slot says which one it is.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn stubs_of_32_bit_ifuncs_are_named_after_the_ifunc() {
    let Some(folder) = folder(&["gcc", "objdump"]) else { return };
    let source = [CHOSEN, "int _start(void) { return chosen(); }"].concat();
    for (name, how) in [("ifunc_fixed", ["-no-pie", "-fno-pie"]), ("ifunc_moved", ["-pie", "-fPIE"])] {
        let program = compiled(folder.path(), name, &source, &[&["-m32", "-nostdlib"][..], &how].concat());
        let text = output(Command::new("objdump").args(["-d", "-j", ".plt", "-j", ".iplt"]).arg(&program));
        // Behind the one that all of them lead to.
        let jump = text.lines().rfind(|line| line.contains("jmp    *")).unwrap();
        let stub = jump.trim().split_once(':').unwrap().0;
        assert_eq!(function_at(&program, stub), "chosen@plt", "{name}: {text}");
    }
}

/// glibc calls some of its own functions through stubs that a resolver fills: `nm` knows those as ifuncs.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn stubs_of_ifuncs_are_named_after_the_ifunc() {
    let Some(folder) = folder(&["gcc", "objdump"]) else { return };
    let source = [CHOSEN, "int main(void) { return chosen(); }"].concat();
    let program = compiled(folder.path(), "ifunc", &source, &[]);
    assert_eq!(function_at(&program, &stub_of_ifunc(&program)), "chosen@plt");
}

/// The digits of the address of a program's only stub that a resolver fills.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn stub_of_ifunc(program: &Path) -> String {
    let text = output(Command::new("objdump").args(["-d", "-j", ".plt"]).arg(program));
    let mut lines = text.lines().filter(|line| line.contains("*ABS*") && line.ends_with("@plt>:"));
    lines.next().and_then(|line| line.split_once(' ')).unwrap().0.to_owned()
}

/// The address of a symbol.
pub(crate) fn address_of(program: &Path, name: &str) -> u64 {
    let text = output(Command::new("nm").arg(program));
    let line = text.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_symbol_without_a_size_goes_on_to_the_next() {
    let Some(folder) = folder(&["gcc", "nm"]) else { return };
    let program = compiled(folder.path(), "bare", PROGRAM, &["-O1"]);
    let (bare, label, sized) =
        (address_of(&program, "bare"), address_of(&program, "inner_label"), address_of(&program, "sized"));
    let truth = BTreeMap::from([
        (bare, Some("bare")),
        (bare + 2, Some("bare")),
        (label, Some("inner_label")),
        (sized, Some("sized")),
        (sized + 1, Some("sized")),
        // Behind the end of a symbol that has one.
        (sized + 2, None),
        (address_of(&program, "local") + 1, Some("local")),
        (0x10, None),
        (u64::MAX, None),
    ]);
    let machine = machine_of(&program, truth.keys().copied());
    let found = names(&machine, &symbolize(&machine, &Files::of(&machine), Detail::default()));
    let expected: BTreeMap<u64, Option<String>> =
        truth.into_iter().map(|(address, name)| (address, name.map(str::to_owned))).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_stripped_program_is_named_by_its_debug_file() {
    let Some(folder) = folder(&["gcc", "nm", "strip", "objcopy"]) else { return };
    let program = compiled(folder.path(), "whole", PROGRAM, &["-g"]);
    let (local, main) = (address_of(&program, "local"), address_of(&program, "main"));
    let debug = folder.path().join("whole.debug");
    output(Command::new("objcopy").arg("--only-keep-debug").arg(&program).arg(&debug));
    output(Command::new("strip").arg(&program));
    let machine = machine_of(&program, [local, main + 4]);
    let mut files = Files::of(&machine);
    let alone = symbolize(&machine, &files, Detail::default());
    assert!(!alone.is_resolved(FrameId(0)));
    assert_eq!(alone.name(FrameId(0)).function, format!("whole+{local:#x}"));
    assert!(alone.unreadable().is_empty(), "a stripped file is whole: {:?}", alone.unreadable());
    files.debug = Some(debug);
    let both = symbolize(&machine, &files, Detail::default());
    assert_eq!((both.name(FrameId(0)).function, both.name(FrameId(1)).function), ("local", "main"));
}

#[test]
fn a_stripped_program_is_named_by_the_symbols_that_are_packed_in_it() {
    let Some(folder) = folder(&["gcc", "nm", "strip", "objcopy", "xz"]) else { return };
    let program = compiled(folder.path(), "whole", PROGRAM, &[]);
    let truth = nm(&program, false);
    let wanted = addresses(&truth, 1);
    // As `find-debuginfo` of RPM makes it, but that it drops what the dynamic symbols have.
    let packed = folder.path().join("packed");
    output(Command::new("objcopy").arg("--only-keep-debug").arg(&program).arg(&packed));
    output(Command::new("xz").arg(&packed));
    output(Command::new("strip").arg(&program));
    let whole = std::fs::read(packed.with_extension("xz")).unwrap();
    let add = |bytes: &[u8]| {
        let section = folder.path().join("section");
        std::fs::write(&section, bytes).unwrap();
        let named = folder.path().join("named");
        let argument = format!(".gnu_debugdata={}", section.display());
        output(Command::new("objcopy").args(["--add-section", &argument]).arg(&program).arg(&named));
        named
    };
    let machine = machine_of(&add(&whole), wanted.iter().copied());
    let symbols = symbolize(&machine, &Files::of(&machine), Detail::default());
    assert!(symbols.unreadable().is_empty(), "{:?}", symbols.unreadable());
    for (address, name) in names(&machine, &symbols) {
        let allowed = allowed(&truth, address);
        assert!(name.as_deref().is_some_and(|name| allowed.contains(name)), "{address:#x}: {name:?}");
    }
    for damaged in [&whole[..whole.len() / 2], b"no xz file"] {
        let machine = machine_of(&add(damaged), wanted.iter().copied());
        assert_eq!(symbolize(&machine, &Files::of(&machine), Detail::default()).unreadable().len(), 1);
    }
}

#[test]
fn a_file_that_is_gone_is_reported() {
    let machine = machine_of(Path::new("/nowhere/gone"), [0x1000]);
    let symbols = symbolize(&machine, &Files::of(&machine), Detail::default());
    assert_eq!(symbols.name(FrameId(0)).function, "gone+0x1000");
    let messages: Vec<String> = symbols.unreadable().iter().map(|gone| gone.message(&machine)).collect();
    assert_eq!(messages, ["no names for /nowhere/gone: its file could not be opened"]);
}

/// A return address is looked up in the call before it, which may be the end of a function.
#[test]
fn a_call_at_the_end_of_a_function_belongs_to_it() {
    let Some(folder) = folder(&["gcc", "nm"]) else { return };
    let program = compiled(folder.path(), "ends", PROGRAM, &["-O1"]);
    let symbols = nm(&program, false);
    let local = symbols.iter().find(|symbol| symbol.name == "local").unwrap();
    let end = local.start + local.size;
    let mut machine = machine_of(&program, [end]);
    let module = ModuleId(1);
    let flags = FrameFlags(FrameFlags::RETURN_ADDRESS);
    let frame = machine.intern_frame(Frame { module, address: Svma(end), flags });
    let symbols = symbolize(&machine, &Files::of(&machine), Detail::default());
    assert_eq!(symbols.name(frame).function, "local");
    assert_ne!(symbols.name(FrameId(0)).function, "local");
}

#[test]
fn kernel_frames_and_the_vdso_have_their_own_sources() {
    let Some(folder) = folder(&["gcc", "nm"]) else { return };
    let image = compiled(folder.path(), "vdso.so", PROGRAM, &["-shared", "-fPIC"]);
    let global = address_of(&image, "global");
    let mut machine = ExportMachine::default();
    let path = machine.intern_string("[vdso]");
    let vdso = machine.add_module(Module { kind: ModuleKind::Vdso, path, build_id: None });
    let kernel = FrameFlags(FrameFlags::KERNEL);
    let mut frame =
        |module, address, flags| machine.intern_frame(Frame { module, address: Svma(address), flags });
    let frames = [
        frame(ModuleId::KERNEL, 0xffff_ffff_8100_0010, kernel),
        frame(ModuleId::KERNEL, 0xffff_ffff_c010_0000, kernel),
        frame(ModuleId::KERNEL, 0xffff_ffff_0000_0000, kernel),
        frame(vdso, global, FrameFlags::default()),
        frame(vdso, 0, FrameFlags(FrameFlags::CUT)),
    ];
    let mut files = Files::of(&machine);
    files.kallsyms = b"ffffffff81000000 T _RNvCs1234_6kernel4open\nffffffffc0100000 t submit\t[zram]\n";
    files.vdso = Some(std::fs::read(&image).unwrap());
    let symbols = symbolize(&machine, &files, Detail::default());
    assert_eq!(
        frames.map(|frame| symbols.name(frame).function),
        ["kernel::open", "submit [zram]", "[kernel]+0xffffffff00000000", "global", "[stack cut]"]
    );
}

#[test]
fn files_can_be_left_for_later() {
    let Some(folder) = folder(&["gcc", "nm"]) else { return };
    let program = compiled(folder.path(), "later", PROGRAM, &["-O1", "-g"]);
    let global = address_of(&program, "global");
    let mut machine = machine_of(&program, [global]);
    let flags = FrameFlags(FrameFlags::KERNEL);
    let in_kernel =
        machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(0xffff_ffff_8100_0010), flags });
    let mut files = Files::of(&machine);
    files.kallsyms = b"ffffffff81000000 T vfs_read\n";
    let symbols = symbolize(&machine, &files, Detail::Addresses);
    assert_eq!(files.opened.get(), 0);
    assert!(symbols.unreadable().is_empty());
    let names = [FrameId(0), in_kernel].map(|frame| symbols.name(frame).function);
    assert_eq!(names, [&*format!("later+{global:#x}"), "vfs_read"]);
    let later = symbolize_rest(&machine, &Files::of(&machine), Detail::Lines, symbols);
    let names = [FrameId(0), in_kernel].map(|frame| later.name(frame).function);
    assert_eq!(names, ["global", "vfs_read"]);
    assert!(later.functions(FrameId(0)).all(|function| function.line > 0));
}
