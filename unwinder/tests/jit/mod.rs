//! Code of a JIT compiler with the unwind sections of a jitdump file.

use std::ops::Range;
use std::process::Command;

use unwinder::x86_64::Registers;
use unwinder::{
    AddressSpace, CopiedStack, Mapping, Section, TableError, UnwindSections, UnwindTable, Unwinder,
};

/// Where V8 (of Node.js 20) put the code of a function that its optimizer had compiled, and its size, from the record
/// `JIT_CODE_LOAD` of what `node --perf-prof --perf-prof-unwinding-info` wrote.
const CODE: u64 = 0x7f51_3802_4b00;
const CODE_SIZE: u64 = 0x270;

/// That function's `.eh_frame`, and its `.eh_frame_hdr`, from `JIT_CODE_UNWINDING_INFO`.
const EH_FRAME: [u8; 68] = [
    0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x7a, 0x4c, 0x52, 0x00, 0x01, 0x78, 0x10, 0x02,
    0xff, 0x1b, 0x0c, 0x07, 0x08, 0x90, 0x01, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x20, 0x00,
    0x00, 0x00, 0x6c, 0xfd, 0xff, 0xff, 0x6d, 0x02, 0x00, 0x00, 0x00, 0x4f, 0x0e, 0x10, 0x86, 0x02, 0x43,
    0x0d, 0x06, 0x74, 0x0d, 0x07, 0x41, 0x0e, 0x08, 0x52, 0x0c, 0x06, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00,
];
const EH_FRAME_HDR: [u8; 20] = [
    0x01, 0x1b, 0x03, 0x3b, 0xb8, 0xff, 0xff, 0xff, 0x01, 0x00, 0x00, 0x00, 0x4c, 0xfd, 0xff, 0xff, 0xd8,
    0xff, 0xff, 0xff,
];

/// A process with that code and no other.
struct Code<'a>(&'a UnwindTable);

impl AddressSpace for Code<'_> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_>> {
        let (start, end) = (CODE, CODE + CODE_SIZE);
        (start..end).contains(&address).then_some(Mapping { start, end, bias: 0, table: Some(self.0) })
    }
}

/// Where V8 maps the sections: aligned, behind the code.
const EH_FRAME_START: u64 = (CODE + CODE_SIZE).next_multiple_of(8);

fn sections() -> UnwindSections<'static> {
    let eh_frame = Section { address: EH_FRAME_START, bytes: &EH_FRAME };
    let hdr = EH_FRAME_START + EH_FRAME.len() as u64;
    UnwindSections {
        text: CODE..CODE + CODE_SIZE,
        eh_frame: Some(eh_frame),
        eh_frame_hdr: Some(Section { address: hdr, bytes: &EH_FRAME_HDR }),
        debug_frame: None,
    }
}

const STACK: u64 = 0x7000_0000;
const SP: u64 = STACK + 0x40;
const BP: u64 = STACK + 0x80;

/// Each word of the stack says where it is.
fn word_at(address: u64) -> u64 {
    address ^ 0x1234_0000_0000
}

fn caller(table: &UnwindTable, ip: u64) -> Option<u64> {
    let mut gprs = [0; 16];
    (gprs[6], gprs[7]) = (BP, SP);
    let stack: Vec<u8> = (STACK..STACK + 0x200).step_by(8).flat_map(|at| word_at(at).to_le_bytes()).collect();
    let mut frames = Vec::new();
    let stack = CopiedStack::new(STACK, &stack, 0);
    Unwinder::new().unwind(&Code(table), &Registers::new(ip, gprs), &stack, |frame| {
        assert!(!frame.heuristic);
        frames.push(frame.address);
    });
    frames.get(1).copied()
}

/// Where rules begin to hold, and the caller's address by them, as `readelf` reads the section.
fn callers_by_readelf() -> Vec<(u64, u64)> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [bytes, object] = ["bytes", "object"].map(|name| folder.path().join(name));
    std::fs::write(&bytes, EH_FRAME).unwrap();
    let mut objcopy = Command::new("objcopy");
    objcopy.args([
        "-I",
        "binary",
        "-O",
        "elf64-x86-64",
        "--rename-section",
        ".data=.eh_frame,alloc,load,data,contents",
    ]);
    objcopy.arg(format!("--change-section-address=.data={EH_FRAME_START:#x}"));
    assert!(objcopy.args([&bytes, &object]).status().unwrap().success());
    let printed = Command::new("readelf").arg("--debug-dump=frames-interp").arg(&object).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let rows = printed.lines().filter_map(|line| {
        let mut columns = line.split_whitespace();
        let start = u64::from_str_radix(columns.next()?, 16).ok().filter(|&start| start >= CODE)?;
        let (register, offset) = columns.next()?.split_once('+')?;
        let register = if register == "rsp" { SP } else { BP };
        Some((start, word_at(register + offset.parse::<u64>().ok()? - 8)))
    });
    rows.collect()
}

#[test]
fn compiled_code_is_walked_by_the_rules_of_its_jitdump() {
    let rows = callers_by_readelf();
    // Before the frame is set up, with the frame pointer saved, by it, and the same on the way out.
    assert_eq!(rows.len(), 6);
    let without_hdr = UnwindSections { eh_frame_hdr: None, ..sections() };
    for sections in [sections(), without_hdr] {
        let table = <UnwindTable>::from_sections(&sections).unwrap();
        // The code's size is rounded up.
        let described = CODE..CODE + 0x26d;
        for ip in described.clone() {
            let row = rows.iter().rfind(|(start, _)| *start <= ip).unwrap();
            assert_eq!(caller(&table, ip), Some(row.1), "at {:#x}", ip - CODE);
        }
        assert_eq!(table.size_report().functions, 1);
    }
}

#[test]
fn sections_that_hold_no_rules_are_an_error() {
    // What V8 writes of code that it has no rules for: it has frame pointers.
    let terminator = Section { address: CODE + CODE_SIZE, bytes: &[0; 4] };
    let without_rules = UnwindSections { eh_frame: Some(terminator), ..sections() };
    let error = <UnwindTable>::from_sections(&without_rules).unwrap_err();
    assert!(matches!(error, TableError::NoUnwindSection), "{error}");
    let of_text = |text| <UnwindTable>::from_sections(&UnwindSections { text, ..sections() });
    assert!(matches!(of_text(CODE..CODE), Err(TableError::NoText)));
    assert!(matches!(of_text(Range { start: CODE + 1, end: CODE }), Err(TableError::NoText)));
    assert!(matches!(of_text(0..1 << 32), Err(TableError::TextTooLarge { span: 0x1_0000_0000 })));
    // Rules of other code than the caller says are none.
    let elsewhere = of_text(CODE - 0x1000..CODE - 0x800).unwrap();
    assert_eq!(elsewhere.size_report().functions, 0);
}
