//! Source lines and inlined functions against `addr2line` of binutils and `llvm-symbolizer`, which read the same files
//! another way.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::record::{
    AttributeListId, ExportMachine, FrameId, ModuleId, Sample, SampleKindId, Unit,
};
use export::format::folded::Folded;
use export::format::{ExportFormat, Profile};
use export::hottest::Hottest;
use export::symbolize::{Detail, KernelModule, ModuleFiles, Symbols, symbolize};

use crate::symbols::machine_of;
use crate::tools::{output, tool};

/// A function as told for an address: linkage name, file, line.
type Place = (String, String, u32);

/// Files by name in one folder.
struct Folder<'a> {
    program: &'a Path,
    debug: Option<&'a str>,
    shared: bool,
    package: bool,
}

impl<'a> Folder<'a> {
    fn of(program: &'a Path) -> Self {
        Self { program, debug: None, shared: false, package: false }
    }

    fn file(&self, name: &str) -> Option<File> {
        File::open(self.program.parent()?.join(name)).ok()
    }
}

impl ModuleFiles for Folder<'_> {
    type File = File;

    fn open(&self, _: ModuleId) -> Option<File> {
        File::open(self.program).ok()
    }

    fn open_debug(&self, _: ModuleId) -> Option<File> {
        self.file(self.debug?)
    }

    fn open_shared(&self, _: ModuleId, path: &[u8], build_id: &[u8]) -> Option<File> {
        assert_eq!(build_id.len(), 20);
        self.shared.then(|| self.file(str::from_utf8(path).ok()?))?
    }

    fn open_split(&self, _: ModuleId, folder: &[u8], name: &[u8]) -> Option<File> {
        let (folder, name) = (str::from_utf8(folder).ok()?, str::from_utf8(name).ok()?);
        assert!(Path::new(folder).is_absolute(), "{folder}");
        File::open(Path::new(folder).join(name)).ok()
    }

    fn open_package(&self, _: ModuleId) -> Option<File> {
        self.package.then(|| self.file("package.dwp"))?
    }
}

/// What is found for each of some addresses, in their order.
fn ours(files: &Folder<'_>, addresses: &[u64]) -> Vec<Vec<Place>> {
    let machine = machine_of(files.program, addresses.iter().copied());
    let symbols = symbolize(&machine, files, Detail::Lines);
    assert!(symbols.unreadable().is_empty(), "{:?}", symbols.unreadable());
    places(&machine, &symbols)
}

fn places(machine: &ExportMachine, symbols: &Symbols) -> Vec<Vec<Place>> {
    let of_frame = |id| {
        let functions = symbols.functions(FrameId(id)).map(|function| {
            let [name, file] = [function.linkage, function.file].map(|id| symbols.function(id).to_owned());
            (name, file, function.line)
        });
        functions.collect()
    };
    (0..machine.frames().len() as u32).map(of_frame).collect()
}

/// What another reader tells of each of some addresses, in their order, as `addr2line -a -f -i` prints it.
fn theirs(mut command: Command, addresses: &[u64]) -> Vec<Vec<Place>> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let asked = addresses.to_vec();
    let feeding = std::thread::spawn(move || {
        for address in asked {
            writeln!(input, "{address:#x}").unwrap();
        }
    });
    let printed = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let mut found: Vec<Vec<Place>> = Vec::new();
    let mut lines = printed.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            found.push(Vec::new());
            continue;
        }
        let (file, number) = lines.next().unwrap().rsplit_once(':').unwrap();
        let number = number.split(' ').next().unwrap().parse().unwrap_or(0);
        let file = if file == "??" { "" } else { file };
        found.last_mut().unwrap().push((line.to_owned(), file.to_owned(), number));
    }
    assert_eq!(found.len(), addresses.len());
    found
}

fn by_binutils(program: &Path, addresses: &[u64]) -> Option<Vec<Vec<Place>>> {
    let mut command = tool("addr2line")?;
    command.args(["-a", "-f", "-i", "-e"]).arg(program);
    Some(theirs(command, addresses))
}

fn by_llvm(program: &Path, addresses: &[u64]) -> Option<Vec<Vec<Place>>> {
    let mut command = tool("llvm-symbolizer")?;
    command.args(["--output-style=GNU", "-a", "--functions=linkage", "--no-demangle", "--inlining", "-e"]);
    command.arg(program);
    Some(theirs(command, addresses))
}

/// Addresses of instructions in the functions that `nm` knows, every `step`-th byte of them.
fn addresses(program: &Path, of: impl Fn(&str) -> bool, step: usize) -> Vec<u64> {
    let mut command = Command::new("nm");
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let mut addresses: Vec<u64> = output(command.args(["--defined-only", "-S"]).arg(program))
        .lines()
        .filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [start, size, "t" | "T" | "w" | "W", name] if of(name) => {
                Some((hex(start)..hex(start) + hex(size)).step_by(step))
            }
            _ => None,
        })
        .flatten()
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// Two functions inlined one into the other, and into `outer`, from two files.
const C_HEADER: &str = "
static inline __attribute__((always_inline)) int innermost(int a) {
    for (int i = 0; i < 3; i++)
        a = a * a + sink;
    return a;
}
";

const C_PROGRAM: &str = "
volatile int sink;
#include \"inner.h\"
static inline __attribute__((always_inline)) int middle(int a) {
    sink = a;
    return innermost(a + 1) ^ innermost(a + 2);
}
__attribute__((noinline)) int outer(int a) {
    sink = 2;
    return middle(a) * 3;
}
int main(int argc, char **argv) {
    return outer(argc) + middle((int)(long)argv);
}
";

fn run(folder: &Path, program: &str, arguments: &[&str]) {
    output(Command::new(program).args(arguments).current_dir(folder));
}

/// The program, compiled in a folder.
pub(crate) fn compiled(folder: &Path, arguments: &[&str]) -> PathBuf {
    std::fs::write(folder.join("inner.h"), C_HEADER).unwrap();
    std::fs::write(folder.join("main.c"), C_PROGRAM).unwrap();
    run(folder, "gcc", &[&["-O2", "main.c", "-o", "main"], arguments].concat());
    folder.join("main")
}

const FUNCTIONS: [&str; 2] = ["main", "outer"];

/// Compares all addresses of the two functions with both other readers.
fn agrees(files: &Folder<'_>, truth: &Path) {
    let addresses = addresses(truth, |name| FUNCTIONS.contains(&name), 1);
    assert!(addresses.len() > 80, "{}", addresses.len());
    let ours = ours(files, &addresses);
    assert!(ours.iter().any(|places| places.iter().map(|place| place.0.as_str()).eq([
        "innermost",
        "middle",
        "outer"
    ])));
    for theirs in [by_binutils(truth, &addresses), by_llvm(truth, &addresses)].into_iter().flatten() {
        for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(theirs) {
            assert_eq!(*ours, theirs, "{address:#x}");
        }
    }
}

/// A recording of one sample at a place in `outer` where both others are inlined, by the account of `addr2line`.
pub(crate) fn innermost_place(folder: &Path) -> Option<(ExportMachine, Symbols)> {
    let program = has_tools().then(|| compiled(folder, &["-g"]))?;
    let wanted = addresses(&program, |name| name == "outer", 1);
    let told = by_binutils(&program, &wanted)?;
    let is_innermost = |places: &&Vec<Place>| places.len() == 3 && places[0].2 == 4 && places[1].2 == 6;
    let at = told.iter().position(|places| is_innermost(&places)).unwrap();
    let mut machine = machine_of(&program, [wanted[at]]);
    let kind = machine.add_kind("cpu", Unit::Count, 1_000_000_000);
    let process = machine.add_process(Pid(1), "main", None, Nanos(0));
    let name = machine.intern_string("main");
    let thread = machine.intern_thread(process, Tid(1), name);
    let stack = machine.intern_stack(&[FrameId(0)]);
    let attributes = AttributeListId::NONE;
    machine.add_sample(&Sample { time: Nanos(1), thread, stack, cpu: 0, kind, value: 1, attributes });
    let symbols = symbolize(&machine, &Folder::of(&program), Detail::Lines);
    Some((machine, symbols))
}

/// Inlined functions stand above what they are inlined into, and count as functions.
#[test]
fn folded_stacks_and_the_hottest_functions_have_inlined_functions() {
    let folder = tempfile::tempdir().unwrap();
    let Some((machine, symbols)) = innermost_place(folder.path()) else { return };
    let profile = Profile { machine: &machine, symbols: &symbols };
    let mut out = Vec::new();
    Folded.write(profile, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "main;outer;middle_[i];innermost_[i] 1\n");
    let rows = Hottest::of(profile, SampleKindId(0)).rows;
    let rows: Vec<_> = rows.iter().map(|row| (row.function.as_str(), row.own, row.total)).collect();
    assert_eq!(rows, [("innermost", 1, 1), ("middle", 0, 1), ("outer", 0, 1)]);
    // Without lines there is the one function that was called.
    let symbols = symbolize(&machine, &Folder::of(&folder.path().join("main")), Detail::Names);
    let mut out = Vec::new();
    Folded.write(Profile { machine: &machine, symbols: &symbols }, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "main;outer 1\n");
}

/// Whether programs can be made, and compared with what another reader says of them.
fn has_tools() -> bool {
    ["gcc", "nm", "objcopy", "strip"].into_iter().all(|name| tool(name).is_some())
        && ["addr2line", "llvm-symbolizer"].into_iter().any(|name| tool(name).is_some())
}

#[test]
fn inlined_functions_and_lines_in_c_are_those_of_others() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["-g", "-gdwarf-5"][..],
        &["-g", "-gdwarf-4"],
        &["-g", "-gz=zlib"],
        &["-g", "-gz=zlib-gnu"],
        &["-g", "-fdebug-types-section"],
        &["-g3"],
        &["-g1"],
    ] {
        let program = compiled(folder.path(), arguments);
        // Not all of them read what is compressed.
        run(folder.path(), "objcopy", &["--decompress-debug-sections", "main", "plain"]);
        agrees(&Folder::of(&program), &folder.path().join("plain"));
    }
}

#[test]
fn a_debug_file_is_asked_where_the_program_has_no_dwarf() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), &["-g"]);
    for (flag, packing) in [("--strip-debug", "none"), ("--strip-all", "zlib"), ("--strip-debug", "zstd")] {
        let packing = format!("--compress-debug-sections={packing}");
        run(folder.path(), "objcopy", &["--only-keep-debug", &packing, "main", "main.debug"]);
        run(folder.path(), "strip", &[flag, "-o", "stripped", "main"]);
        let stripped = folder.path().join("stripped");
        agrees(&Folder { debug: Some("main.debug"), ..Folder::of(&stripped) }, &program);
    }
}

fn split_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "dwo")).collect()
}

#[test]
fn dwarf_that_is_split_into_files_is_found() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let whole = compiled(folder.path(), &["-g", version]);
        run(folder.path(), "mv", &["main", "whole"]);
        let program = compiled(folder.path(), &["-g", version, "-gsplit-dwarf"]);
        let truth = whole.with_file_name("whole");
        agrees(&Folder::of(&program), &truth);
        let split = split_files(folder.path());
        assert_eq!(split.len(), 1, "{split:?}");
        let name = split[0].file_name().unwrap().to_str().unwrap();

        // That of another compilation is none.
        std::fs::rename(&split[0], folder.path().join("kept")).unwrap();
        std::fs::write(folder.path().join("main.c"), format!("int another;{C_PROGRAM}")).unwrap();
        run(folder.path(), "gcc", &["-O2", "main.c", "-o", "main2", "-g", version, "-gsplit-dwarf"]);
        std::fs::rename(&split_files(folder.path())[0], &split[0]).unwrap();
        let wanted = addresses(&program, |name| name == "outer", 1);
        let machine = machine_of(&program, wanted.iter().copied());
        let symbols = symbolize(&machine, &Folder::of(&program), Detail::Lines);
        let message = symbols.unreadable()[0].message(&machine);
        assert!(message.contains("1 of the files") && message.ends_with(name), "{message}");
        assert!(places(&machine, &symbols).iter().all(|places| places.len() == 1 && places[0].2 > 0));
        std::fs::rename(folder.path().join("kept"), &split[0]).unwrap();

        let Some(mut packer) = tool(if version == "-gdwarf-5" { "llvm-dwp" } else { "dwp" }) else {
            continue;
        };
        output(packer.args(["-o", "package.dwp", name]).current_dir(folder.path()));
        std::fs::remove_file(&split[0]).unwrap();
        agrees(&Folder { package: true, ..Folder::of(&program) }, &truth);
    }
}

/// Two functions inlined one into the other, and into `outer`, and types that have sections of their own.
const CPP_PROGRAM: &str = "
struct first { int a; long b; };
struct second { first c; char *d; };
volatile int sink;
static inline __attribute__((always_inline)) int innermost(first *x, int a) {
    for (int i = 0; i < 3; i++)
        a = a * a + sink + x->a;
    return a;
}
static inline __attribute__((always_inline)) int middle(second *x, int a) {
    sink = a;
    return innermost(&x->c, a + 1) ^ innermost(&x->c, a + 2);
}
extern \"C\" __attribute__((noinline)) int outer(second *x, int a) {
    sink = 2;
    return middle(x, a) * 3;
}
int main(int argc, char **argv) {
    second x = {{argc, 2}, argv[0]};
    return outer(&x, argc);
}
";

#[test]
fn split_dwarf_with_sections_of_types_is_found() {
    if !has_tools() || tool("g++").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // More types than a file without them has sections.
    let types: Vec<String> = (0..150).map(|n| format!("struct t{n} {{ int a{n}; }} v{n};")).collect();
    std::fs::write(folder.path().join("main.cc"), types.join("\n") + CPP_PROGRAM).unwrap();
    let compile = |arguments: &[&str]| {
        run(folder.path(), "g++", &[&["-O2", "-g", "main.cc", "-o"], arguments].concat());
    };
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        compile(&["whole", version]);
        compile(&["main", version, "-gsplit-dwarf", "-fdebug-types-section"]);
        let [whole, program] = ["whole", "main"].map(|name| folder.path().join(name));
        let addresses = addresses(&whole, |name| name == "outer", 1);
        assert_eq!(self::addresses(&program, |name| name == "outer", 1), addresses);
        let ours = ours(&Folder::of(&program), &addresses);
        assert!(ours.iter().any(|places| places.len() == 3));
        compare(&whole, &addresses, &ours, 1.0);
    }
}

/// Nothing is there, and what looks it up asks for the address behind it.
#[test]
fn the_last_address_of_all_has_no_lines() {
    if !has_tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), &["-g"]);
    assert_eq!(ours(&Folder::of(&program), &[u64::MAX])[0].len(), 1);
}

/// Each is told of as what it is: there, and damaged.
#[test]
fn damaged_files_with_parts_of_the_dwarf_are_not_called_missing() {
    if !has_tools() || tool("dwz").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let told = |files: &Folder<'_>, name: &str| {
        let machine = machine_of(files.program, addresses(files.program, |name| name == "outer", 1));
        let told = symbolize(&machine, files, Detail::Lines).unreadable()[0].message(&machine);
        assert!(told.contains(&format!("{name}, which has a part of its DWARF, can't be read: ")), "{told}");
    };
    let cut = |path: &Path| {
        let whole = std::fs::read(path).unwrap();
        std::fs::write(path, &whole[..whole.len() / 2]).unwrap();
        whole
    };
    let program = compiled(folder.path(), &["-g", "-gdwarf-5", "-gsplit-dwarf"]);
    let [split] = &split_files(folder.path())[..] else { panic!("one file") };
    std::fs::copy(split, folder.path().join("package.dwp")).unwrap();
    cut(&folder.path().join("package.dwp"));
    let in_package = Folder { package: true, ..Folder::of(&program) };
    // What the package can't tell, the file does.
    told(&in_package, "its .dwp");
    cut(split);
    told(&in_package, "its .dwp");
    told(&Folder::of(&program), split.file_name().unwrap().to_str().unwrap());

    let program = shared_dwarf(folder.path(), "-gdwarf-5");
    cut(&folder.path().join("shared"));
    told(&Folder { shared: true, ..Folder::of(&program) }, "shared");
}

/// A program that shares DWARF with another in the file `shared`. What it was is in `whole`.
fn shared_dwarf(folder: &Path, version: &str) -> PathBuf {
    // What two programs have in common is worth sharing if there is enough of it.
    let types: Vec<String> =
        (0..200).map(|n| format!("struct s{n} {{ int a{n}; long b{n}; char *c{n}; }} v{n};")).collect();
    let types = types.join("\n");
    for name in ["main", "second"] {
        std::fs::write(folder.join("inner.h"), C_HEADER).unwrap();
        std::fs::write(folder.join("main.c"), types.clone() + C_PROGRAM).unwrap();
        run(folder, "gcc", &["-O2", "main.c", "-o", name, "-g", version]);
    }
    run(folder, "cp", &["main", "whole"]);
    run(folder, "dwz", &["-m", "shared", "main", "second"]);
    folder.join("main")
}

#[test]
fn dwarf_that_files_share_is_found() {
    if !has_tools() || tool("dwz").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let program = shared_dwarf(folder.path(), version);
        let truth = folder.path().join("whole");
        agrees(&Folder { shared: true, ..Folder::of(&program) }, &truth);

        let wanted = addresses(&program, |name| name == "outer", 1);
        let machine = machine_of(&program, wanted.iter().copied());
        let symbols = symbolize(&machine, &Folder::of(&program), Detail::Lines);
        let message = symbols.unreadable()[0].message(&machine);
        assert!(message.ends_with("shares DWARF with is missing: shared"), "{message}");
    }
}

/// Calls inlined two levels deep, generic code and closures.
const RUST_PROGRAM: &str = r#"
#[inline(always)]
fn innermost<T: std::ops::Mul<Output = T> + Copy>(a: T) -> T {
    a * a
}
#[inline(always)]
fn middle(a: u64) -> u64 {
    innermost(a ^ 0x55) + innermost(a >> 3)
}
#[inline(never)]
fn outer(list: &[u64]) -> u64 {
    list.iter().map(|&a| middle(a)).filter(|a| a % 3 != 0).sum()
}
fn main() {
    let list: Vec<u64> = std::env::args().map(|a| a.len() as u64).collect();
    println!("{}", outer(&list));
}
"#;

#[test]
fn inlined_functions_and_lines_in_rust_are_those_of_others() {
    if tool("rustc").is_none() || tool("nm").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.rs"), RUST_PROGRAM).unwrap();
    for detail in ["2", "line-tables-only"] {
        let detail = format!("debuginfo={detail}");
        run(folder.path(), "rustc", &["-O", "-C", &detail, "main.rs"]);
        let program = folder.path().join("main");
        let addresses = addresses(&program, |name| name.contains("4main"), 1);
        assert!(addresses.len() > 100, "{}", addresses.len());
        let ours = ours(&Folder::of(&program), &addresses);
        let has_both = |places: &Vec<Place>| {
            let contains = |name| places.iter().any(|place| place.0.contains(name));
            contains("innermost") && contains("middle") && contains("outer")
        };
        assert!(ours.iter().any(has_both));
        compare(&program, &addresses, &ours, 1.0);
    }
}

/// Compares with both other readers; of the addresses so many must agree.
fn compare(program: &Path, addresses: &[u64], ours: &[Vec<Place>], share: f64) {
    for (name, theirs) in
        [("binutils", by_binutils(program, addresses)), ("LLVM", by_llvm(program, addresses))]
    {
        let Some(theirs) = theirs else { continue };
        let all = addresses.iter().zip(ours).zip(&theirs);
        let differ: Vec<_> = all.filter(|((_, ours), theirs)| !is_same(ours, theirs)).collect();
        let agreeing = addresses.len() - differ.len();
        println!("{name}: {agreeing} of {}", addresses.len());
        assert!(
            agreeing as f64 >= addresses.len() as f64 * share,
            "{name}: {agreeing} of {}: {:#?}",
            addresses.len(),
            differ.first()
        );
    }
}

/// Whether files and lines are equal, and names as far as all mean the same by them: the function that is not inlined has
/// its symbol's name with us; with binutils the innermost one has it; with LLVM, and with binutils else, the outermost one
/// has the name in DWARF, which may be without path and parameters.
fn is_same(ours: &[Place], theirs: &[Place]) -> bool {
    let Some((symbol, inlined)) = ours.split_last() else { return false };
    let Some((outermost, their_inlined)) = theirs.split_last() else { return false };
    let place = |place: &Place| (place.1.clone(), place.2);
    let bare = outermost.0.split('<').next().unwrap_or_default();
    let has_symbol = |place: Option<&Place>| place.is_some_and(|place| place.0 == symbol.0);
    ours.iter().map(place).eq(theirs.iter().map(place))
        && (symbol.0.contains(bare) || has_symbol(theirs.first()))
        && inlined
            .iter()
            .zip(their_inlined)
            .enumerate()
            .all(|(index, (ours, theirs))| ours.0 == theirs.0 || index == 0 && has_symbol(Some(theirs)))
}

/// This program has thousands of units, most of them of Rust's and others' crates.
#[cfg(target_os = "linux")]
#[test]
fn lines_in_this_program_are_those_of_others() {
    if tool("nm").is_none() {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let addresses = addresses(&program, |_| true, 9973);
    assert!(addresses.len() > 1_000, "{}", addresses.len());
    let ours = ours(&Folder::of(&program), &addresses);
    compare(&program, &addresses, &ours, 0.99);
}

/// A kernel that lies elsewhere than where it was linked, or one with a module.
struct Kernel {
    image: PathBuf,
    moved: u64,
    kallsyms: String,
    placed: Vec<(String, u64)>,
}

impl ModuleFiles for Kernel {
    type File = File;

    fn open(&self, _: ModuleId) -> Option<File> {
        None
    }

    fn kernel_symbols(&self) -> Option<Box<dyn std::io::BufRead + Send>> {
        Some(Box::new(std::io::Cursor::new(self.kallsyms.clone())))
    }

    fn kernel_image(&self) -> Option<(File, u64)> {
        self.placed.is_empty().then_some((File::open(&self.image).ok()?, self.moved))
    }

    fn kernel_module(&self, name: &str) -> Option<KernelModule<File>> {
        let (file, sections) = (File::open(&self.image).ok()?, self.placed.clone());
        (name == "snd_pcm").then_some(KernelModule { file, sections })
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn lines_of_the_kernel_come_from_its_image_wherever_it_lies() {
    use collector_common::ids::Svma;
    use collector_common::record::{Frame, FrameFlags};

    if tool("gcc").is_none() || tool("nm").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, image) = (folder.path().join("kernel.c"), folder.path().join("vmlinux"));
    let text = "static volatile int sink;
static inline __attribute__((always_inline)) void inner(void) { sink = 1; sink = 2; }
__attribute__((noinline)) void vfs_read(void) { sink = 0; inner(); sink = 3; }
void _start(void) { vfs_read(); }
";
    std::fs::write(&source, text).unwrap();
    let options = [
        "-g",
        "-O1",
        "-nostdlib",
        "-static",
        "-fno-pic",
        "-no-pie",
        "-mcmodel=kernel",
        "-Wl,-Ttext=0xffffffff81000000",
        "-o",
    ];
    assert!(Command::new("gcc").args(options).args([&image, &source]).status().unwrap().success());
    let start = crate::symbols::address_of(&image, "vfs_read");
    let linked: Vec<u64> = (start..start + 24).collect();
    let Some(theirs) = by_binutils(&image, &linked) else { return };

    let moved = 0x1240_0000;
    let kallsyms = format!("{:x} T vfs_read\nffffffffc0000000 t vfs_read\t[mod]\n", start + moved);
    let mut machine = ExportMachine::default();
    let flags = FrameFlags(FrameFlags::KERNEL);
    let mut frame =
        |address| machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(address), flags });
    for address in &linked {
        frame(address + moved);
    }
    frame(0xffff_ffff_c000_0001);
    let kernel = Kernel { image, moved, kallsyms, placed: Vec::new() };
    let symbols = symbolize(&machine, &kernel, Detail::Lines);
    assert!(symbols.unreadable().is_empty(), "{:?}", symbols.unreadable());
    let mut ours = places(&machine, &symbols);
    assert_eq!(ours.pop().unwrap(), [("vfs_read [mod]".to_owned(), String::new(), 0)]);
    assert_eq!(ours, theirs);
    assert!(ours.iter().any(|levels| levels.len() == 2 && levels[0].0 == "inner"));
    let names = symbolize(&machine, &kernel, Detail::Names);
    assert!(places(&machine, &names).iter().all(|levels| levels.len() == 1 && levels[0].2 == 0));
}

/// A module is an object file: its debug information has nothing of where it was loaded. `ld` makes of the same file what it would be
/// there, and binutils tell that.
#[cfg(target_arch = "x86_64")]
#[test]
fn lines_of_modules_of_the_kernel_are_those_of_what_ld_makes_of_them() {
    use collector_common::ids::Svma;
    use collector_common::record::{Frame, FrameFlags};

    if tool("gcc").is_none() || tool("ld").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| {
        format!(
            "static volatile int sink;
static inline __attribute__((always_inline)) void inner(void) {{ sink = 1; sink = 2; }}
__attribute__((noinline)) void {name}_read(void) {{ sink = 0; inner(); sink = 3; }}
__attribute__((section(\".init.text\"))) void {name}_start(void) {{ sink = 4; inner(); sink = 5; }}
"
        )
    };
    let [text_at, init_at] = [0xffff_ffff_c030_1000_u64, 0xffff_ffff_c040_0000];
    for options in [&["-gdwarf-4"][..], &["-gdwarf-5"], &["-gdwarf-5", "-gz=zlib"]] {
        for name in ["first", "second"] {
            std::fs::write(path(&format!("{name}.c")), text(name)).unwrap();
            let mut gcc = Command::new("gcc");
            gcc.args(["-c", "-O1", "-mcmodel=kernel", "-fno-pic"]).args(options).arg("-o");
            assert!(
                gcc.args([path(&format!("{name}.o")), path(&format!("{name}.c"))])
                    .status()
                    .unwrap()
                    .success()
            );
        }
        let ld = |options: &[String], from: &[&str], to: &str| {
            let mut ld = Command::new("ld");
            ld.args(options).arg("-o").arg(path(to)).args(from.iter().map(|name| path(name)));
            assert!(ld.status().unwrap().success(), "{options:?}");
        };
        ld(&["-r".to_owned()], &["first.o", "second.o"], "module.ko");
        let options_of_ld =
            [format!("-Ttext={text_at:#x}"), format!("--section-start=.init.text={init_at:#x}")];
        ld(&[&options_of_ld[..], &["-e0".to_owned()]].concat(), &["module.ko"], "linked");
        let linked = path("linked");
        let names = ["first_read", "second_read", "first_start", "second_start"];
        let starts = names.map(|name| crate::symbols::address_of(&linked, name));
        let addresses: Vec<u64> = starts.iter().flat_map(|&start| start..start + 24).collect();
        let Some(theirs) = by_binutils(&linked, &addresses) else { return };

        let kallsyms =
            starts.iter().zip(names).map(|(start, name)| format!("{start:x} t {name}\t[snd_pcm]\n"));
        let placed = vec![(".text".to_owned(), text_at), (".init.text".to_owned(), init_at)];
        let kernel = Kernel {
            image: path("module.ko"),
            moved: 0,
            kallsyms: kallsyms.collect::<Vec<_>>().concat(),
            placed,
        };
        let mut machine = ExportMachine::default();
        let flags = FrameFlags(FrameFlags::KERNEL);
        for &address in &addresses {
            machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(address), flags });
        }
        let symbols = symbolize(&machine, &kernel, Detail::Lines);
        assert!(symbols.unreadable().is_empty(), "{:?}", symbols.unreadable());
        let mut ours = places(&machine, &symbols);
        for levels in &mut ours {
            let outermost = &mut levels.last_mut().unwrap().0;
            *outermost = outermost.strip_suffix(" [snd_pcm]").unwrap().to_owned();
        }
        assert_eq!(ours, theirs, "{options:?}");
        assert!(ours.iter().filter(|levels| levels.len() == 2 && levels[0].0 == "inner").count() > 4);

        // Whatever its tables say, it ends.
        let whole = std::fs::read(path("module.ko")).unwrap();
        for at in (0..whole.len() - 4).step_by(131) {
            let mut spoilt = whole.clone();
            for byte in &mut spoilt[at..at + 4] {
                *byte ^= 0xff;
            }
            std::fs::write(path("module.ko"), &spoilt).unwrap();
            symbolize(&machine, &kernel, Detail::Lines);
        }
    }
}
