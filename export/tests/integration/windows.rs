//! Names, lines and inlined functions of PE images by their exports and PDBs, against `llvm-symbolizer` and `llvm-readobj` (those of LLVM 22: 14 tells other lines of inlined functions), which
//! read the same files another way. `clang` and `lld` make them, without anything of Windows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use collector_common::record::{FrameId, ModuleId};
use export::symbolize::{Detail, ModuleFiles, PdbId, symbolize};

use crate::symbols::machine_of;
use crate::tools::{output, tool};

/// Functions of a namespace and of a class, one that is inlined into another that is, and two of a second object file.
const MAIN: &str = r#"
namespace shapes {
static volatile int sink;
__attribute__((noinline)) int leaf(int value) { sink = value; return value * 3; }
inline __attribute__((always_inline)) int once(int value) {
  sink = value + 2;
  return value + sink;
}
inline __attribute__((always_inline)) int twice(int value) {
  sink = value + 1;
  int first = once(value);
  return leaf(first) * 2;
}
struct Square {
  int side;
  static inline __attribute__((always_inline)) int grow(int by) { sink = by; return by + sink; }
  __attribute__((noinline)) int area() const {
    int first = twice(side);
    sink = first + grow(side);
    for (int i = 0; i < 3; i++) {
      sink = twice(i);
    }
    return first + 1;
  }
};
}
extern "C" int other(int);
extern "C" __declspec(dllexport) int exported(int value) { return shapes::Square{value}.area() + other(value); }
extern "C" __declspec(dllexport) int second(int value) { return shapes::leaf(value) + 1; }
extern "C" int entry() { return exported(7) + second(8) + shapes::leaf(1); }
"#;

const OTHER: &str = "static volatile int sink;
__attribute__((noinline)) static int hidden(int value) { sink = value; return value + 9; }
int other(int value) { return hidden(value) + 1; }
";

/// An image with its PDB.
struct Made {
    image: PathBuf,
    pdb: PathBuf,
    with_pdb: bool,
}

impl ModuleFiles for Made {
    type File = File;

    fn open(&self, _: ModuleId) -> Option<File> {
        File::open(&self.image).ok()
    }

    fn open_pdb(&self, _: ModuleId, id: &PdbId) -> Option<File> {
        assert_eq!(id.name(), b"main.pdb");
        self.with_pdb.then(|| File::open(&self.pdb).ok())?
    }
}

fn made(folder: &Path) -> Option<Made> {
    for name in ["clang-22", "lld-link-22", "llvm-symbolizer-22", "llvm-readobj-22"] {
        tool(name)?;
    }
    let target = ["--target=x86_64-pc-windows-msvc", "-O1", "-g", "-gcodeview", "-gcolumn-info", "-c"];
    for (name, source) in [("main.cpp", MAIN), ("other.c", OTHER)] {
        std::fs::write(folder.join(name), source).unwrap();
        output(Command::new("clang-22").args(target).arg(name).current_dir(folder));
    }
    let link = ["/nologo", "/debug", "/nodefaultlib", "/entry:entry", "/subsystem:console", "/out:main.exe"];
    output(Command::new("lld-link-22").args(link).args(["main.o", "other.o"]).current_dir(folder));
    Some(Made { image: folder.join("main.exe"), pdb: folder.join("main.pdb"), with_pdb: true })
}

/// Where the image is linked for.
const BASE: u64 = 0x1_4000_0000;

/// Addresses of code, by the headers.
fn code(made: &Made) -> Vec<u64> {
    let text = output(Command::new("llvm-readobj-22").arg("--sections").arg(&made.image));
    let text = text.split("Name: .text").nth(1).unwrap();
    let number = |key: &str| {
        let value = text.split(key).nth(1).unwrap().split_whitespace().next().unwrap();
        u64::from_str_radix(value.trim_start_matches("0x"), 16).unwrap()
    };
    (number("VirtualAddress: ")..number("VirtualAddress: ") + number("VirtualSize: ")).collect()
}

/// Function without its parameters, file, line, column.
type Told = (String, String, u32, u32);

fn theirs(made: &Made, addresses: &[u64]) -> Vec<Vec<Told>> {
    let asked = addresses.iter().map(|address| format!("{:#x}", BASE + address));
    let mut command = Command::new("llvm-symbolizer-22");
    let text = output(command.arg("--inlines").arg("--obj").arg(&made.image).args(asked));
    let of_address = |block: &str| {
        let lines: Vec<&str> = block.lines().collect();
        let level = |pair: &[&str]| {
            let mut place = pair[1].rsplitn(3, ':');
            let mut number = || place.next().unwrap().parse().unwrap();
            let (column, line) = (number(), number());
            let file = place.next().unwrap();
            let file = if file == "??" { "" } else { file };
            let name = pair[0].split('(').next().unwrap();
            (name.to_owned(), file.to_owned(), line, column)
        };
        lines.chunks_exact(2).map(level).collect()
    };
    text.trim_end().split("\n\n").map(of_address).collect()
}

fn ours(made: &Made, addresses: &[u64]) -> Vec<Vec<Told>> {
    let machine = machine_of(&made.image, addresses.iter().copied());
    let symbols = symbolize(&machine, made, Detail::Lines);
    assert!(symbols.unreadable().is_empty(), "{:?}", symbols.unreadable());
    let of_frame = |id| {
        let functions = symbols.functions(FrameId(id)).map(|function| {
            let [name, file] = [function.linkage, function.file].map(|id| symbols.function(id).to_owned());
            (name, file, function.line, function.column)
        });
        functions.collect()
    };
    (0..machine.frames().len() as u32).map(of_frame).collect()
}

#[test]
fn names_and_lines_are_those_of_llvm_symbolizer() {
    let folder = tempfile::tempdir().unwrap();
    let Some(made) = made(folder.path()) else { return };
    let addresses = code(&made);
    assert!(addresses.len() > 150, "{}", addresses.len());
    let (ours, theirs) = (ours(&made, &addresses), theirs(&made, &addresses));
    let mut deepest = 0;
    for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(&theirs) {
        // Between functions it tells what is next to them.
        if theirs[0].2 == 0 {
            continue;
        }
        deepest = deepest.max(theirs.len());
        assert_eq!(ours, theirs, "{address:#x}");
    }
    assert_eq!(deepest, 3);
    let named = |name: &str| ours.iter().flatten().any(|(it, ..)| it == name);
    for name in ["shapes::Square::area", "shapes::Square::grow", "hidden", "entry"] {
        assert!(named(name), "{name}");
    }
}

/// What an image exports, and where, by the tables that `llvm-readobj` reads.
fn exports(made: &Made) -> Vec<(u64, String)> {
    let text = output(Command::new("llvm-readobj-22").arg("--coff-exports").arg(&made.image));
    let mut words = text.split_whitespace();
    let mut exports = Vec::new();
    while let Some(word) = words.next() {
        if word == "Name:" {
            let name = words.next().unwrap();
            assert_eq!(words.next(), Some("RVA:"));
            exports.push((u64::from_str_radix(&words.next().unwrap()[2..], 16).unwrap(), name.to_owned()));
        }
    }
    assert_eq!(exports.len(), 2);
    exports
}

#[test]
fn without_a_pdb_exports_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut made) = made(folder.path()) else { return };
    made.with_pdb = false;
    let exports = exports(&made);
    let addresses: Vec<u64> = exports.iter().map(|(address, _)| address + 1).collect();
    let machine = machine_of(&made.image, addresses);
    let symbols = symbolize(&machine, &made, Detail::Lines);
    assert!(symbols.unreadable().is_empty(), "{:?}", symbols.unreadable());
    for ((_, name), id) in exports.iter().zip(0..) {
        assert_eq!(symbols.name(FrameId(id)).function, *name);
    }
    let machine = machine_of(&made.image, [0x1000_0000, 0x10]);
    assert!(!symbolize(&machine, &made, Detail::Lines).is_resolved(FrameId(0)));
}

#[test]
fn exports_are_named_though_the_directory_of_debug_information_leads_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let Some(made) = made(folder.path()) else { return };
    let exports = exports(&made);
    let mut bytes = std::fs::read(&made.image).unwrap();
    // Of the header "PE\0\0", then 20 bytes, then the optional header of PE32+, whose seventh directory it is.
    let header = u32::from_le_bytes(bytes[0x3c..0x40].try_into().unwrap()) as usize;
    let directory = header + 4 + 20 + 112 + 6 * 8;
    assert_ne!(bytes[directory..directory + 4], [0; 4]);
    let mut spoil = |at: usize, word: u32| {
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        std::fs::write(&made.image, &bytes).unwrap();
        let machine = machine_of(&made.image, exports.iter().map(|(address, _)| address + 1));
        let symbols = symbolize(&machine, &made, Detail::Names);
        for ((_, name), id) in exports.iter().zip(0..) {
            assert_eq!(symbols.name(FrameId(id)).function, *name);
        }
        let [unreadable] = symbols.unreadable() else { panic!("{:?}", symbols.unreadable()) };
        unreadable.message(&machine)
    };
    // It lies in no section, so that nothing tells which PDB is the image's, nor which map.
    let told = spoil(directory, 0x10);
    let start = format!("not all names for {}: ", made.image.display());
    assert_eq!(told, format!("{start}not a whole PE image"));
    // Where the table of symbols is, and how many it has: what is wrong with that is told first.
    spoil(header + 12, 1);
    let told = spoil(header + 16, u32::MAX);
    assert!(told.starts_with(&format!("{start}its table of symbols claims {} entries", u32::MAX)), "{told}");
}

#[test]
fn which_pdb_is_an_images_is_told_as_symbol_servers_do() {
    let id = PdbId {
        guid: [
            0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
        ],
        age: 0x1a,
        path: br"d:\build\obj/amd64\main.pdb".to_vec(),
    };
    // {00112233-4455-6677-8899-AABBCCDDEEFF}
    assert_eq!(id.key(), "00112233445566778899AABBCCDDEEFF1A");
    assert_eq!(id.name(), b"main.pdb");
}

/// A program that GCC links for Windows, which has a table of symbols and neither exports nor a PDB.
#[test]
fn names_of_gcc_are_those_of_its_table_of_symbols() {
    const GCC: &str = "x86_64-w64-mingw32-gcc";
    const NM: &str = "x86_64-w64-mingw32-nm";
    if tool(GCC).is_none() || tool(NM).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let main = "int other(int); int a_function_with_a_long_name(int x) { return other(x) + 1; }
int main(void) { return a_function_with_a_long_name(3); }";
    std::fs::write(path("main.c"), main).unwrap();
    std::fs::write(path("other.c"), OTHER).unwrap();
    let compile = ["-O1", "-fno-inline", "-o", "main.exe", "main.c", "other.c"];
    output(Command::new(GCC).args(compile).current_dir(folder.path()));
    let made = Made { image: path("main.exe"), pdb: path("none"), with_pdb: false };
    let listed = output(Command::new(NM).arg(&made.image));
    let mut symbols: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
    let (mut globals, mut functions) = (BTreeSet::new(), Vec::new());
    for line in listed.lines() {
        let [address, kind, name] = line.split_whitespace().collect::<Vec<_>>()[..] else { continue };
        let address = u64::from_str_radix(address, 16).unwrap();
        // Those of data lie in other sections.
        if ["T", "t"].contains(&kind) {
            symbols.entry(address - BASE).or_default().insert(name);
        }
        if kind == "T" {
            globals.insert(address - BASE);
        }
        if ["a_function_with_a_long_name", "main", "other", "hidden"].contains(&name) {
            functions.push((address - BASE, name));
        }
    }
    assert_eq!(functions.len(), 4, "{listed}");
    // Each function's first byte and its last one.
    for (first, name) in functions {
        let after = symbols.range(first + 1..).next().unwrap();
        let told = ours(&made, &[first, after.0 - 1]);
        assert!(told.iter().all(|levels| levels[0].0 == name), "{name}: {told:?}");
    }
    // Local ones may be sections and labels.
    let told = ours(&made, &globals.iter().copied().collect::<Vec<u64>>());
    for (address, levels) in globals.iter().zip(&told) {
        assert!(symbols[address].contains(levels[0].0.as_str()), "{address:#x}: {levels:?}");
    }
    assert!(globals.len() > 50, "{}", globals.len());

    cut_and_spoilt_it_tells_less(&made, &symbols.keys().copied().collect::<Vec<u64>>());
}

/// An image that is cut anywhere names what it still can as the whole one does, and says why it names less. One with four wrong bytes
/// anywhere has no name that is not in the file.
fn cut_and_spoilt_it_tells_less(made: &Made, wanted: &[u64]) {
    let whole = std::fs::read(&made.image).unwrap();
    let (all, _) = told(made, wanted);
    let known: BTreeSet<&String> = all.iter().flatten().collect();
    assert!(known.len() > 50, "{known:?}");
    let changed = |bytes: &[u8]| {
        let image = made.image.with_file_name("changed.exe");
        std::fs::write(&image, bytes).unwrap();
        told(&Made { image, pdb: made.pdb.clone(), with_pdb: false }, wanted)
    };
    let mut less = 0;
    for at in (0..whole.len()).step_by(997) {
        let (names, is_whole) = changed(&whole[..at]);
        for (name, expected) in names.iter().zip(&all) {
            assert!(name.is_none() || name == expected, "cut at {at}: {name:?}, not {expected:?}");
        }
        assert!(names == all || !is_whole, "cut at {at}");
        less += usize::from(!is_whole);

        let mut spoilt = whole.clone();
        spoilt[at..].iter_mut().take(4).for_each(|byte| *byte ^= 0xff);
        let is_there =
            |part: &str| part.is_empty() || spoilt.windows(part.len()).any(|bytes| bytes == part.as_bytes());
        for name in changed(&spoilt).0.iter().flatten().filter(|name| !known.contains(name)) {
            // What is no UTF-8 is replaced.
            assert!(name.split('\u{fffd}').all(is_there), "spoilt at {at}: {name}");
        }
    }
    assert!(less > 10, "{less}");
}

/// The names of addresses, and whether all of the file could be read.
fn told(made: &Made, wanted: &[u64]) -> (Vec<Option<String>>, bool) {
    let machine = machine_of(&made.image, wanted.iter().copied());
    let symbols = symbolize(&machine, made, Detail::Names);
    let frames = (0..machine.frames().len() as u32).map(FrameId);
    let name = |frame| symbols.is_resolved(frame).then(|| symbols.name(frame).linkage.to_owned());
    (frames.map(name).collect(), symbols.unreadable().is_empty())
}
