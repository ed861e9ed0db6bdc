//! How the instructions from an address on to the function's return move the stack pointer, and from where they take `x29` and
//! `x30` back.

use super::instruction::{Effect, Size};
use super::{FP, LR};
use crate::epilogue::{Base, Epilogue, Next};

/// What the first entry of a linkage table pushes for the runtime linker, `x30` above: 16 bytes.
const PUSHED_FOR_LINKER: i64 = 16;

/// Its instructions up to the jump, by the registers that GNU ld and lld make them with: `stp x16, x30, [sp, #-16]!`; `adrp x16`;
/// `ldr x17, [x16, #n]`; `add x16, x16, #n`. Each with the bits that are always so.
const FIRST_ENTRY: [(u32, u32); 4] = [
    (0xa9bf_7bf0, 0xffff_ffff),
    (0x9000_0010, 0x9f00_001f),
    (0xf940_0211, 0xffc0_03ff),
    (0x9100_0210, 0xffc0_03ff),
];
pub(super) const LONGEST_BEFORE: usize = 4 * FIRST_ENTRY.len();

/// Whether the last instructions of `before` and then of `code` are that entry's.
fn ends_first_entry(before: &[[u8; 4]], code: &[[u8; 4]]) -> bool {
    let mut last = code.iter().rev().chain(before.iter().rev()).map(|word| u32::from_le_bytes(*word));
    FIRST_ENTRY.iter().rev().all(|(expected, mask)| last.next().is_some_and(|word| word & mask == *expected))
}

/// What `code` does to the stack from its beginning on, and where it goes then; `fork` is told of where it might go before.
/// `before` is the code before that.
pub(super) fn follow(
    before: &[u8],
    code: &[u8],
    epilogue: &mut Epilogue,
    mut fork: impl FnMut(i64, Epilogue),
) -> Next {
    let (mut at, mut size) = (0, Size::default());
    let [before, words] = [before, code].map(|code| code.as_chunks::<4>().0);
    for (index, word) in words.iter().enumerate() {
        match size.seen(u32::from_le_bytes(*word)) {
            // The return address is in the register again, and no call is made any more.
            Effect::Call if epilogue.return_address.is_some() => return Next::Unknown,
            Effect::None | Effect::Call => {}
            Effect::Branches(distance) => {
                if distance > 0 {
                    fork(at + distance, *epilogue);
                }
            }
            Effect::Moves(moved) | Effect::Stores { moved, .. } => epilogue.raise(moved),
            Effect::SetsFp(above) => epilogue.set_frame_pointer(above),
            Effect::SetsFromFp(offset) => {
                if !epilogue.rebase(Base::FramePointer, offset) {
                    return Next::Unknown;
                }
            }
            Effect::Loads { before, offset, registers, after } => {
                epilogue.raise(before);
                for (above, register) in (offset..).step_by(8).zip(registers) {
                    match register {
                        Some(LR) => epilogue.load_return_address(above),
                        Some(FP) => epilogue.load_frame_pointer(above),
                        _ => {}
                    }
                }
                epilogue.raise(after);
            }
            Effect::Jumps(distance) => return Next::Jumps(at + distance),
            Effect::Returns => return Next::Returns,
            Effect::HandsOn => {
                if ends_first_entry(before, words.get(..index).unwrap_or_default()) {
                    // Otherwise the push is on the way.
                    if index < FIRST_ENTRY.len() {
                        epilogue.load_return_address(PUSHED_FOR_LINKER - 8);
                    }
                    epilogue.raise(PUSHED_FOR_LINKER);
                }
                return Next::Returns;
            }
            _ => return Next::Unknown,
        }
        at += 4;
    }
    Next::Unknown
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{LONGEST_BEFORE, follow};
    use crate::epilogue::{Base, Epilogue, Next};

    fn followed(text: &str) -> Option<(Next, Epilogue)> {
        let text = format!(".arch armv8.5-a+pauth\n{text}");
        let code = crate::arch::assembled("aarch64-linux-gnu-", &text)?;
        let mut epilogue = Epilogue::default();
        Some((follow(&[], &code, &mut epilogue, |_, _| {}), epilogue))
    }

    #[test]
    fn loads_lead_to_the_return_address() {
        use Base::{FramePointer, StackPointer};
        let cases = [
            ("ret", StackPointer, 0, None, None),
            ("ldp x29, x30, [sp], #32; ret", StackPointer, 32, Some(8), Some(0)),
            (
                "bl .+64; mov w0, w19; cbz x0, .+8; ldp x19, x20, [sp, #16]; ldp x29, x30, [sp], #48; autiasp; ret",
                StackPointer,
                48,
                Some(8),
                Some(0),
            ),
            ("ldp x29, x30, [sp, #16]; add sp, sp, #0x40; retaa", StackPointer, 64, Some(24), Some(16)),
            ("ldr x30, [sp, #24]; ldr d8, [sp], #48; ret", StackPointer, 48, Some(24), None),
            ("ldp d8, d9, [sp, #16]; ldr x30, [sp], #32; ret", StackPointer, 32, Some(0), None),
            (
                "mov x12, #0x1280; ldp x19, x30, [sp]; add sp, sp, x12; ret",
                StackPointer,
                0x1280,
                Some(8),
                None,
            ),
            (
                "add sp, sp, #1, lsl #12; ldp x29, x30, [sp], #16; ret",
                StackPointer,
                0x1010,
                Some(0x1008),
                Some(0x1000),
            ),
            ("mov sp, x29; ldp x29, x30, [sp], #96; ret", FramePointer, 96, Some(8), Some(0)),
            (
                "sub sp, x29, #16; ldr x19, [sp], #16; ldp x29, x30, [sp], #16; ret",
                FramePointer,
                16,
                Some(8),
                Some(0),
            ),
            ("blr x1; add sp, sp, #16; ret", StackPointer, 16, None, None),
        ];
        for (text, base, raised, return_address, frame_pointer) in cases {
            let Some(found) = followed(text) else { return };
            assert_eq!(
                found,
                (
                    Next::Returns,
                    Epilogue { base, raised, return_address, frame_pointer, own_frame_pointer: None }
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn conditions_are_told_of_with_the_stack_as_it_is() {
        let text = "0: add sp, sp, #16; b.ne 1f; cbnz w0, 0b; add sp, sp, #16; cbz x0, 1f; tbnz w1, #3, 2f; 2: nop; 1: br x0";
        let Some(code) = crate::arch::assembled("aarch64-linux-gnu-", text) else { return };
        let mut forks = Vec::new();
        let fork = |to, epilogue: Epilogue| forks.push((to, epilogue.raised));
        assert_eq!(follow(&[], &code, &mut Epilogue::default(), fork), Next::Unknown);
        assert_eq!(forks, [(28, 16), (28, 32), (24, 32)]);
    }

    /// The linkage table that a linker makes for two functions of another library.
    fn linkage_table(linker: &str, options: &[&str]) -> Option<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let command = Command::new(program).args(arguments).current_dir(folder.path()).status();
            command.is_ok_and(|status| status.success())
        };
        std::fs::write(folder.path().join("a.s"), "bl one; bl other\n").unwrap();
        if !run("aarch64-linux-gnu-as", &["-o", "a.o", "a.s"])
            || !run(linker, &[&["-shared", "-z", "lazy", "-o", "a.so", "a.o"], options].concat())
        {
            eprintln!("SKIPPED: there is no assembler for aarch64, or no {linker}");
            return None;
        }
        assert!(run("aarch64-linux-gnu-objcopy", &["-O", "binary", "-j", ".plt", "a.so", "plt"]));
        Some(std::fs::read(folder.path().join("plt")).unwrap())
    }

    #[test]
    fn entries_of_linkage_tables_return_to_who_called_them() {
        for (linker, options, pushes_at) in [
            ("aarch64-linux-gnu-ld", &[][..], 0),
            ("aarch64-linux-gnu-ld", &["-z", "force-bti"], 4),
            ("aarch64-linux-gnu-ld", &["-z", "pac-plt"], 0),
            ("aarch64-linux-gnu-ld", &["-z", "force-bti", "-z", "pac-plt"], 4),
            ("ld.lld-22", &[], 0),
            ("ld.lld-22", &["-z", "force-bti"], 4),
            ("ld.lld-22", &["-z", "force-bti", "-z", "pac-plt"], 4),
        ] {
            let Some(table) = linkage_table(linker, options) else { continue };
            assert!(table.len() >= 32 + 2 * 16, "{linker} {options:?}: {table:x?}");
            // Something comes before it.
            let code = [&[0; LONGEST_BEFORE], table.as_slice()].concat();
            for at in (0..table.len()).step_by(4) {
                let (before, code) = code[at..].split_at(LONGEST_BEFORE);
                if code.starts_with(&0xd503_201f_u32.to_le_bytes()) {
                    // No entry's.
                    continue;
                }
                let mut epilogue = Epilogue::default();
                let next = follow(before, code, &mut epilogue, |_, _| {});
                let is_pushed = (pushes_at + 4..pushes_at + 20).contains(&at);
                let (raised, return_address) = if is_pushed { (16, Some(8)) } else { (0, None) };
                let expected = Epilogue { raised, return_address, ..Epilogue::default() };
                assert_eq!((next, epilogue), (Next::Returns, expected), "{linker} {options:?}, at {at}");
            }
        }
    }

    #[test]
    fn calls_in_place_of_a_return_are_no_entries() {
        for text in ["add x16, x16, #8; br x17; nop; nop; nop", "ldr x17, [x1, #8]; br x17; nop; nop"] {
            let Some(found) = followed(text) else { return };
            assert_eq!(found, (Next::Returns, Epilogue::default()), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_ends_it() {
        for text in [
            "brk #1",
            "br x16",
            "mov sp, x9; ret",
            "add sp, sp, x9; ret",
            "mov x1, #2; and x1, x1, #-16; add sp, sp, x1; ret",
            "mov x1, #32; ldp x2, x1, [x0]; add sp, sp, x1; ret",
            "str w0, [sp, #-16]!; ret",
            "ldp w0, w1, [sp], #16; ret",
            "st1 {v0.16b}, [sp], #16; ret",
            "ldp x29, x30, [sp], #16; mov sp, x29; ret",
            "ldp x29, x30, [sp], #16; bl .+64; ret",
            "nop",
        ] {
            let Some((next, _)) = followed(text) else { return };
            assert_eq!(next, Next::Unknown, "{text}");
        }
        assert_eq!(followed("ldp x29, x30, [sp], #16; b .+0x1000").unwrap().0, Next::Jumps(4 + 0x1000));
    }
}
