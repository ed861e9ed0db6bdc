//! Symbols without a size, as assembly has them, against `nm` and `addr2line` of binutils. Such a symbol goes on to the next one, which
//! a stripped file's own table may lack.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use export::symbolize::{Detail, symbolize};
use tempfile::TempDir;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::symbols::{CHOSEN, function_at, stub_of_ifunc};
use crate::symbols::{Files, address_of, compiled, folder, machine_of, names};
use crate::tools::output;

/// Of its symbols, other files see `bare` and `called`. Functions do not follow each other at once.
const SOURCE: &str = r#"
__asm__(".text\nearly:\n nop\n nop\n.globl bare\nbare:\n nop\n nop\nlate:\n nop\n");
__attribute__((noinline)) static int hidden(int x) { return x * 3; }
int called(int x) { return hidden(x) + 1; }
"#;

/// Names by address.
type Names = BTreeMap<u64, Option<String>>;

/// A library, whole and in two files.
struct Made {
    folder: TempDir,
    whole: PathBuf,
    stripped: PathBuf,
    debug: PathBuf,
}

impl Made {
    fn new(further: &[&str]) -> Option<Self> {
        let folder = folder(&["gcc", "nm", "addr2line", "strip", "objcopy", "xz"])?;
        let alone = ["-shared", "-fPIC", "-nostdlib", "-O1", "-fno-toplevel-reorder", "-falign-functions=64"];
        let whole = compiled(folder.path(), "whole", SOURCE, &[&alone[..], further].concat());
        let [stripped, debug] = ["stripped", "debug"].map(|name| folder.path().join(name));
        output(Command::new("objcopy").arg("--only-keep-debug").arg(&whole).arg(&debug));
        output(Command::new("strip").arg("-o").arg(&stripped).arg(&whole));
        Some(Self { folder, whole, stripped, debug })
    }

    /// What is at the first and last addresses of each symbol, by `nm`. It has the sizes of functions alone.
    fn truth(&self) -> Names {
        let [early, bare, late, hidden, called] =
            ["early", "bare", "late", "hidden", "called"].map(|name| address_of(&self.whole, name));
        let hidden_end = hidden + self.size("hidden");
        assert!(late + 1 < hidden && hidden_end < called);
        let truth = [
            (early, Some("early")),
            (bare - 1, Some("early")),
            (bare, Some("bare")),
            (late - 1, Some("bare")),
            (late, Some("late")),
            (hidden - 1, Some("late")),
            (hidden, Some("hidden")),
            (hidden_end - 1, Some("hidden")),
            (hidden_end, None),
            (called - 1, None),
            (called, Some("called")),
            (called + self.size("called") - 1, Some("called")),
        ];
        truth.into_iter().map(|(address, name)| (address, name.map(str::to_owned))).collect()
    }

    fn size(&self, name: &str) -> u64 {
        let listed = output(Command::new("nm").arg("-S").arg(&self.whole));
        let line = listed.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
        u64::from_str_radix(line.split(' ').nth(1).unwrap(), 16).unwrap()
    }

    /// The stripped file with symbols of the whole one in `.gnu_debugdata`: these.
    fn packing(&self, symbols: &[&str]) -> PathBuf {
        let [packed, named] = ["packed", "named"].map(|name| self.folder.path().join(name));
        let kept = symbols.iter().map(|name| format!("--keep-symbol={name}"));
        output(Command::new("objcopy").arg("-S").args(kept).arg(&self.debug).arg(&packed));
        output(Command::new("xz").arg("-f").arg(&packed));
        let section = format!(".gnu_debugdata={}.xz", packed.display());
        output(Command::new("objcopy").args(["--add-section", &section]).arg(&self.stripped).arg(&named));
        named
    }
}

/// What `addr2line` says of a file.
fn by_addr2line(file: &Path, address: u64) -> String {
    let text = output(Command::new("addr2line").arg("-fe").arg(file).arg(format!("{address:#x}")));
    text.lines().next().unwrap().to_owned()
}

/// What we say of these addresses, and how often the debug file was asked for.
fn ours(file: &Path, debug: Option<&Path>, wanted: &Names, detail: Detail) -> (Names, usize) {
    let machine = machine_of(file, wanted.keys().copied());
    let mut files = Files::of(&machine);
    files.debug = debug.map(Path::to_owned);
    let symbols = symbolize(&machine, &files, detail);
    assert!(symbols.unreadable().is_empty(), "{:?}", symbols.unreadable());
    (names(&machine, &symbols), files.debug_opened.get())
}

#[test]
fn a_debug_file_tells_what_follows_a_symbol_without_a_size() {
    for further in [&["-g"][..], &[]] {
        let Some(made) = Made::new(further) else { return };
        let truth = made.truth();
        for (&address, name) in &truth {
            if let Some(name) = name {
                assert_eq!(by_addr2line(&made.debug, address), *name, "{address:#x}");
            }
        }
        for detail in [Detail::Names, Detail::Lines] {
            let told = ours(&made.stripped, Some(&made.debug), &truth, detail);
            assert_eq!(told, (truth.clone(), 1), "{further:?}, {detail:?}");
        }
    }
}

/// What nothing tells better of goes on to the next symbol that is known.
#[test]
fn without_a_debug_file_a_symbol_without_a_size_goes_on_to_the_next_that_is_known() {
    let Some(made) = Made::new(&["-g"]) else { return };
    let mut expected = made.truth();
    let [bare, called] = ["bare", "called"].map(|name| address_of(&made.whole, name));
    expected.range_mut(..bare).for_each(|(_, name)| *name = None);
    expected.range_mut(bare..called).for_each(|(_, name)| *name = Some("bare".to_owned()));
    assert_eq!(ours(&made.stripped, None, &expected, Detail::Names), (expected.clone(), 1));
}

#[test]
fn packed_symbols_tell_what_follows_a_symbol_without_a_size() {
    let Some(made) = Made::new(&[]) else { return };
    let truth = made.truth();
    // Those that are not among the dynamic symbols, as distributions have it.
    let named = made.packing(&["early", "late", "hidden"]);
    assert_eq!(ours(&named, None, &truth, Detail::Names).0, truth);
    // `early`, which is packed, is farther than `bare`, which is not.
    let named = made.packing(&["early", "hidden"]);
    let mut expected = truth;
    for name in expected.values_mut().filter(|name| name.as_deref() == Some("late")) {
        *name = Some("bare".to_owned());
    }
    assert_eq!(ours(&named, None, &expected, Detail::Names).0, expected);
}

#[test]
fn a_program_with_all_its_symbols_needs_no_debug_file() {
    let Some(made) = Made::new(&["-g"]) else { return };
    let mut truth = made.truth();
    assert_eq!(ours(&made.whole, None, &truth, Detail::Names).0, truth);
    truth.retain(|_, name| name.is_some());
    for detail in [Detail::Names, Detail::Lines] {
        let told = ours(&made.whole, Some(&made.debug), &truth, detail);
        assert_eq!(told, (truth.clone(), 0), "{detail:?}");
    }
}

/// A table that lacks a symbol after all.
#[test]
fn debug_information_of_a_function_counts_before_a_symbol_without_a_size() {
    let Some(made) = Made::new(&["-g"]) else { return };
    let hidden = address_of(&made.whole, "hidden");
    let wanted = Names::from([(hidden, Some("hidden".to_owned()))]);
    for file in [&made.whole, &made.debug] {
        output(Command::new("objcopy").args(["-N", "hidden"]).arg(file));
        assert_eq!(by_addr2line(file, hidden), "hidden");
    }
    for (file, debug) in [(&made.whole, None), (&made.stripped, Some(&*made.debug))] {
        assert_eq!(ours(file, debug, &wanted, Detail::Lines).0, wanted);
        assert_eq!(ours(file, debug, &wanted, Detail::Names).0[&hidden].as_deref(), Some("late"));
    }
}

/// A stub that a resolver fills is called as the resolver is. Where that has no symbol, none that is before it names the stub.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_stub_is_not_named_after_a_symbol_before_its_resolver() {
    let Some(folder) = folder(&["gcc", "nm", "objdump", "strip"]) else { return };
    let bare = r#"__asm__(".text\n.globl bare\nbare:\n nop\n");"#;
    let source = [bare, CHOSEN, "int main(void) { return chosen(); }"].concat();
    let program = compiled(folder.path(), "ifunc", &source, &["-rdynamic", "-fno-toplevel-reorder"]);
    let stub = stub_of_ifunc(&program);
    assert!(address_of(&program, "bare") < address_of(&program, "resolve"));
    assert_eq!(function_at(&program, &stub), "chosen@plt");
    output(Command::new("strip").arg(&program));
    assert!(output(Command::new("nm").arg("-D").arg(&program)).contains(" T bare"));
    assert_eq!(function_at(&program, &stub), format!("ifunc+0x{}", stub.trim_start_matches('0')));
}
