//! The table against an independent reading of the same sections (gimli's own row evaluation), for real files and for
//! damaged copies of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, EndianSlice, LittleEndian, UnwindContext, UnwindSection,
    UnwindTableRow, Vendor,
};
use object::{Object, ObjectSection, ObjectSegment};

use super::compile::Scratch;
use super::unwind_table::Glance;
use super::{CfaRule, ExpressionSpan, RegisterRule, UnwindTable};
use crate::arch::Core;
use crate::expression::Steps;
use crate::general::{GeneralStep, Known};
use crate::rule::{Rule, RuleOf};
use crate::x86_64::{self, X86_64};
use crate::{Architecture, Registers, StackMemory, StackReadError, StopReason};

mod aarch64;
mod made;
mod x86;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// An architecture whose tables are compared with gimli's reading.
trait Tested: Architecture {
    const VENDOR: Vendor;

    /// Distinct values, the frame pointer's above the stack pointer's.
    fn registers() -> Registers<Self>;

    /// Whether the return address is signed.
    fn is_signed(row: &UnwindTableRow<usize>) -> bool;
}

impl Tested for X86_64 {
    const VENDOR: Vendor = Vendor::Default;

    fn registers() -> x86_64::Registers {
        let mut gprs = std::array::from_fn(|register| 0x7fff_0000_0000 + 0x1_0000 * register as u64);
        gprs.swap(6, 7);
        x86_64::Registers::new(0x40_0123, gprs)
    }

    fn is_signed(_row: &UnwindTableRow<usize>) -> bool {
        false
    }
}

/// Memory whose every word is known from its address.
struct Scrambled;

impl StackMemory for Scrambled {
    fn read_u64(&self, address: u64) -> Result<u64, StackReadError> {
        Ok(address.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5555)
    }
}

#[derive(Debug, Default)]
struct Compared {
    functions: usize,
    rows: usize,
    general: usize,
    errors: usize,
}

fn span(expression: gimli::UnwindExpression<usize>) -> ExpressionSpan {
    ExpressionSpan { offset: expression.offset as u32, length: expression.length as u16 }
}

fn expected_cfa(rule: &gimli::CfaRule<usize>) -> CfaRule {
    match *rule {
        gimli::CfaRule::RegisterAndOffset { register, offset } => {
            CfaRule::RegisterOffset { register: register.0 as u8, offset: offset as i32 }
        }
        gimli::CfaRule::Expression(expression) => CfaRule::Expression(span(expression)),
    }
}

fn expected_register(rule: Option<gimli::RegisterRule<usize>>, is_return_address: bool) -> RegisterRule {
    use gimli::RegisterRule as G;
    match rule {
        Some(G::Undefined) if is_return_address => RegisterRule::Undefined,
        None | Some(G::Undefined | G::SameValue) => RegisterRule::Unspecified,
        Some(G::Offset(offset)) => RegisterRule::Offset(offset as i32),
        Some(G::ValOffset(offset)) => RegisterRule::ValOffset(offset as i32),
        Some(G::Register(register)) => RegisterRule::Register(register.0 as u8),
        Some(G::Expression(expression)) => RegisterRule::Expression(span(expression)),
        Some(G::ValExpression(expression)) => RegisterRule::ValExpression(span(expression)),
        Some(other) => panic!("unexpected rule {other:?}"),
    }
}

/// Compares the first and the last address of every row of every function. `place` is where the section begins among those
/// of the table.
fn compare<'a, A: Tested, S: UnwindSection<Slice<'a>>>(
    table: &UnwindTable<A>,
    section: &S,
    bases: &BaseAddresses,
    place: usize,
) -> Compared {
    let mut compared = Compared::default();
    let mut scratch = Scratch::new(usize::MAX);
    let mut context = UnwindContext::new();
    let mut entries = section.entries(bases);
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(S::cie_from_offset).unwrap();
        if fde.len() == 0 || fde.initial_address() < table.text_start {
            continue;
        }
        compared.functions += 1;
        let mut rows = fde.rows(section, bases, &mut context).unwrap();
        let traits = (fde.cie().return_address_register().0, fde.is_signal_trampoline());
        loop {
            let row = match rows.next_row() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(_) => {
                    compared.errors += 1;
                    break;
                }
            };
            if row.start_address() >= fde.end_address() {
                // BOLT leaves instructions behind a function's end.
                continue;
            }
            compared.rows += 1;
            for address in [row.start_address(), row.end_address().min(fde.end_address()) - 1] {
                compared.general += usize::from(compare_row(table, address, row, traits));
                let function = table.index.find((fde.initial_address() - table.text_start) as u32).unwrap();
                let (at, offset) = ((place + fde.offset()) as u32, (address - fde.initial_address()) as u32);
                compare_glance(table, address, table.glance(function, at, offset, &mut scratch));
            }
        }
    }
    compared
}

/// What a glance into a function gives against what its rows, which were compared with gimli's, do.
fn compare_glance<A: Tested>(table: &UnwindTable<A>, address: u64, glance: Glance<RuleOf<A>>) {
    match table.locate(address).map(|(_, quick)| quick) {
        None => assert_eq!(glance, Glance::Outside, "at {address:#x}"),
        Some(Rule::General(_) | Rule::NeedsAll(_)) => {
            assert_eq!(glance, Glance::NotEnough, "at {address:#x}");
        }
        Some(quick) => assert_eq!(glance, Glance::Rule(quick), "at {address:#x}"),
    }
}

fn compare_row<A: Tested>(
    table: &UnwindTable<A>,
    address: u64,
    row: &UnwindTableRow<usize>,
    (return_address, signal): (u16, bool),
) -> bool {
    let (id, quick) = table.locate(address).unwrap_or_else(|| panic!("no rule at {address:#x}"));
    table
        .with_rule(id, |view| {
            assert_eq!(view.cfa, expected_cfa(row.cfa()), "CFA at {address:#x}");
            assert_eq!(view.traits.signal, signal, "signal at {address:#x}");
            assert_eq!(view.traits.signed, A::is_signed(row), "signed at {address:#x}");
            for register in 0..A::REGISTER_COUNT as u16 {
                let expected =
                    expected_register(row.register(gimli::Register(register)), register == return_address);
                assert_eq!(view.register(register as u8), expected, "register {register} at {address:#x}");
            }
            compare_quick(quick, view, &A::registers())
        })
        .unwrap()
}

/// The quick form against the full one, on registers and memory whose values are all distinct.
fn compare_quick<A: Architecture>(
    quick: RuleOf<A>,
    view: &super::RuleView<'_>,
    registers: &Registers<A>,
) -> bool {
    let steps = Steps::of_frames(1);
    let step = |known, registers| {
        GeneralStep { registers, known, stack: &Scrambled, bias: 0, steps: &steps }.apply(view)
    };
    let core = |caller: Registers<A>| caller.core();
    let full = step(Known::All, registers).map(core);
    match quick {
        Rule::Quick(quick) => {
            assert_eq!(registers.core().caller(quick, &Scrambled), full);
            false
        }
        Rule::Root => {
            assert_eq!(full, Err(StopReason::Root));
            true
        }
        Rule::NeedsAll(_) => true,
        Rule::General(_) => {
            // What the rule says it does not need, it must not read.
            let mut quick_only = *registers;
            quick_only.values.as_mut().fill(0xdead);
            let quick_only = quick_only.with_core(registers.core());
            assert_eq!(step(Known::Quick, &quick_only).map(core), full);
            true
        }
        _ => panic!("{quick:?} for a row that gimli evaluates: {view:?}"),
    }
}

fn section<'d>(file: &object::File<'d>, name: &str) -> Option<(u64, std::borrow::Cow<'d, [u8]>)> {
    let section = file.section_by_name(name)?;
    Some((section.address(), section.uncompressed_data().unwrap()))
}

/// Compares with `.eh_frame`, or where there is none with `.debug_frame`.
fn compare_file<A: Tested>(data: &[u8]) -> Compared {
    let file = object::File::parse(data).unwrap();
    let name = if section(&file, ".eh_frame").is_some() { ".eh_frame" } else { ".debug_frame" };
    compare_section::<A>(data, name)
}

fn compare_section<A: Tested>(data: &[u8], name: &str) -> Compared {
    let table = UnwindTable::<A>::from_elf(data).unwrap();
    let file = object::File::parse(data).unwrap();
    let mut bases = BaseAddresses::default();
    let (address, bytes) = section(&file, name).unwrap();
    if name == ".eh_frame" {
        bases = bases.set_eh_frame(address);
        for (name, set) in [
            (".eh_frame_hdr", BaseAddresses::set_eh_frame_hdr as fn(_, _) -> _),
            (".text", BaseAddresses::set_text),
            (".got", BaseAddresses::set_got),
        ] {
            if let Some((address, _)) = section(&file, name) {
                bases = set(bases, address);
            }
        }
        let mut eh_frame = EhFrame::new(&bytes, LittleEndian);
        eh_frame.set_address_size(A::WORD.bytes() as u8);
        eh_frame.set_vendor(A::VENDOR);
        return compare(&table, &eh_frame, &bases, 0);
    }
    let mut debug_frame = DebugFrame::new(&bytes, LittleEndian);
    debug_frame.set_address_size(A::WORD.bytes() as u8);
    debug_frame.set_vendor(A::VENDOR);
    compare(&table, &debug_frame, &bases, table.frame.debug_start)
}

fn sysroot_driver() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let lib = Path::new(String::from_utf8(output.stdout).ok()?.trim()).join("lib");
    let entries = std::fs::read_dir(lib).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    entries.into_iter().find(|path| path.to_string_lossy().contains("librustc_driver"))
}

fn assert_agrees<A: Tested>(path: &Path) {
    let Ok(data) = std::fs::read(path) else {
        eprintln!("SKIPPED: {} is not on this machine", path.display());
        return;
    };
    let compared = compare_file::<A>(&data);
    eprintln!("{}: {compared:?}", path.display());
    assert!(compared.functions > 10 && compared.rows > compared.functions, "{compared:?}");
    assert_eq!(compared.errors, 0);
}

fn library(name: &str) -> PathBuf {
    let folders = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"];
    let candidates = folders.iter().map(|folder| Path::new(folder).join(name));
    candidates.into_iter().find(|path| path.exists()).unwrap_or_else(|| PathBuf::from(name))
}

#[test]
fn libc_agrees_with_gimli() {
    assert_agrees::<X86_64>(&library("libc.so.6"));
}

#[test]
fn the_runtime_linker_agrees_with_gimli() {
    assert_agrees::<X86_64>(&library("ld-linux-x86-64.so.2"));
}

#[test]
fn libstdcxx_agrees_with_gimli() {
    assert_agrees::<X86_64>(&library("libstdc++.so.6"));
}

#[test]
fn openssl_with_its_assembly_agrees_with_gimli() {
    assert_agrees::<X86_64>(&library("libcrypto.so.3"));
}

#[test]
fn this_test_binary_agrees_with_gimli() {
    #[cfg(target_arch = "x86_64")]
    assert_agrees::<X86_64>(&std::env::current_exe().unwrap());
    #[cfg(target_arch = "aarch64")]
    assert_agrees::<crate::aarch64::Aarch64>(&std::env::current_exe().unwrap());
}

#[test]
fn the_rust_compiler_agrees_with_gimli() {
    match sysroot_driver() {
        Some(path) => assert_agrees::<X86_64>(&path),
        None => eprintln!("SKIPPED: there is no librustc_driver in rustc's sysroot"),
    }
}

/// A debug-info-only build of a small program: `.debug_frame` for its functions, and no `.eh_frame`.
fn debug_frame_only(compression: &str) -> Option<Vec<u8>> {
    compiled(X86_64_GCC, &["-fno-asynchronous-unwind-tables"], &["-shared", "-nostdlib", compression])
}

/// For x86-64, whatever machine this is.
const X86_64_GCC: &str = if cfg!(target_arch = "x86_64") { "gcc" } else { "x86_64-linux-gnu-gcc" };

/// A small program, compiled by `gcc` with `flags` and linked with `link`.
fn compiled(gcc: &str, flags: &[&str], link: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("a.c");
    std::fs::write(
        &source,
        "int odd(int); int even(int n) { volatile char b[100]; b[n & 63] = 1; return n ? odd(n - 1) + b[3] : 1; }\n\
         int odd(int n) { return n ? even(n - 1) * 3 : 0; } int main(int c, char **v) { return even(c); }\n",
    )
    .unwrap();
    let output = folder.path().join("a.so");
    // A shared object without start files has no .eh_frame of the C library's.
    let status = Command::new(gcc)
        .args(["-O1", "-g", "-fPIC", "-Wl,--build-id=none"])
        .args(flags)
        .args(link)
        .arg("-o")
        .args([&output, &source])
        .status();
    match status {
        Ok(status) if status.success() => Some(std::fs::read(output).unwrap()),
        _ => {
            eprintln!("SKIPPED: {gcc} {flags:?} {link:?} can't build here");
            None
        }
    }
}

#[test]
fn functions_of_both_sections_are_known() {
    // The C library's start files have `.eh_frame`, the program `.debug_frame`.
    let Some(data) = compiled(X86_64_GCC, &["-fno-asynchronous-unwind-tables"], &[]) else { return };
    let (eh_frame, debug_frame) =
        (compare_section::<X86_64>(&data, ".eh_frame"), compare_section::<X86_64>(&data, ".debug_frame"));
    assert!(eh_frame.functions > 0 && eh_frame.errors == 0, "{eh_frame:?}");
    assert!(debug_frame.functions == 3 && debug_frame.errors == 0, "{debug_frame:?}");
}

#[test]
fn debug_frame_is_read_plain_and_compressed() {
    for compression in ["-gz=none", "-gz=zlib", "-Wl,--compress-debug-sections=zstd"] {
        let Some(mut data) = debug_frame_only(compression) else { continue };
        hide_section(&mut data, ".eh_frame");
        let compared = compare_file::<X86_64>(&data);
        assert!(compared.functions == 3 && compared.errors == 0, "{compression}: {compared:?}");
    }
}

#[test]
fn a_damaged_debug_frame_leaves_the_rules_of_eh_frame() {
    let Some(mut data) = compiled(X86_64_GCC, &["-fno-asynchronous-unwind-tables"], &["-gz=zlib"]) else {
        return;
    };
    let functions = |data: &[u8]| <UnwindTable>::from_elf(data).map(|table| table.size_report().functions);
    let whole = functions(&data).unwrap();
    let packed = file_range(&data, ".debug_frame");
    data[packed].fill(0xff);
    let left = functions(&data).unwrap();
    assert!(left > 0 && left < whole, "{left} of {whole}");
    let mut data = debug_frame_only("-gz=zlib").unwrap();
    hide_section(&mut data, ".eh_frame");
    let packed = file_range(&data, ".debug_frame");
    data[packed].fill(0xff);
    let error = functions(&data).unwrap_err();
    let problem = crate::SectionProblem::UnknownCompression { method: u32::MAX };
    assert!(matches!(&error, crate::TableError::Unread(unread) if unread.problem == problem), "{error}");
}

fn file_range(data: &[u8], name: &str) -> std::ops::Range<usize> {
    let file = object::File::parse(data).unwrap();
    let (start, size) = file.section_by_name(name).unwrap().file_range().unwrap();
    start as usize..(start + size) as usize
}

/// Renames a section, so that it can't be found.
fn hide_section(data: &mut [u8], name: &str) {
    let needle: Vec<u8> = [b"\0", name.as_bytes(), b"\0"].concat();
    let mut from = 0;
    while let Some(at) = data[from..].windows(needle.len()).position(|window| window == needle) {
        data[from + at + 1] = b'!';
        from += at + 1;
    }
}

fn some_addresses(data: &[u8]) -> Vec<u64> {
    let file = object::File::parse(data).unwrap();
    let text = file.section_by_name(".text").unwrap();
    (text.address()..text.address() + text.size()).step_by(97).collect()
}

fn rules(table: &UnwindTable, addresses: &[u64]) -> Vec<Option<String>> {
    let rule = |&address| {
        table.with_rule(table.rule_id(address)?, |view| format!("{:?} {:?}", view.cfa, view.saved))
    };
    addresses.iter().map(rule).collect()
}

/// Damages a copy of libc and expects the same rules from it.
fn assert_same_rules(damage: impl FnOnce(&mut Vec<u8>)) {
    let Ok(mut data) = std::fs::read(library("libc.so.6")) else {
        eprintln!("SKIPPED: there is no libc.so.6");
        return;
    };
    let addresses = some_addresses(&data);
    let whole = rules(&<UnwindTable>::from_elf(data.as_slice()).unwrap(), &addresses);
    assert!(whole.iter().flatten().count() > addresses.len() / 2);
    damage(&mut data);
    let damaged = rules(&<UnwindTable>::from_elf(data.as_slice()).unwrap(), &addresses);
    let differing =
        addresses.iter().zip(whole.iter().zip(&damaged)).find(|(_, (whole, damaged))| whole != damaged);
    assert_eq!(differing, None);
}

#[test]
fn an_unsorted_hdr_falls_back_to_the_section() {
    assert_same_rules(|data| {
        let hdr = file_range(data, ".eh_frame_hdr").start + 12;
        let (left, right) = data[hdr..].split_at_mut(8 * 100);
        left[..8].swap_with_slice(&mut right[..8]);
    });
}

#[test]
fn a_truncated_hdr_falls_back_to_the_section() {
    assert_same_rules(|data| {
        let count = file_range(data, ".eh_frame_hdr").start + 8;
        data[count..count + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    });
}

#[test]
fn an_hdr_that_names_other_fdes_falls_back_to_the_section() {
    assert_same_rules(|data| {
        let range = file_range(data, ".eh_frame_hdr");
        for entry in data[range.start + 12..range.end].chunks_exact_mut(8) {
            let start = i32::from_le_bytes(*entry.first_chunk().unwrap());
            entry[..4].copy_from_slice(&(start - 1).to_le_bytes());
        }
    });
}

#[test]
fn no_hdr_at_all_falls_back_to_the_section() {
    assert_same_rules(|data| {
        hide_section(data, ".eh_frame_hdr");
        let headers = u64::from_le_bytes(*data[32..].first_chunk().unwrap()) as usize;
        let eh_frame = 0x6474_e550_u32.to_le_bytes();
        let at = (headers..).step_by(56).find(|&at| data[at..at + 4] == eh_frame).unwrap();
        data[at..at + 4].copy_from_slice(&[0; 4]);
    });
}

#[test]
fn segments_lead_to_the_section_where_section_headers_are_cut_off() {
    assert_same_rules(|data| {
        let file = object::File::parse(data.as_slice()).unwrap();
        let end = file
            .segments()
            .map(|segment| segment.file_range())
            .map(|(start, size)| start + size)
            .max()
            .unwrap();
        data.truncate(end as usize);
    });
}
