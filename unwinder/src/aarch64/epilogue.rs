//! How the instructions from an address on to the function's return move the stack pointer, and from where they take `x29` and
//! `x30` back.

use super::instruction::{Effect, Size};
use super::{FP, LR};
use crate::epilogue::{Base, Epilogue, Next};

/// What the first entry of a linkage table pushes for the runtime linker, `x30` above: 16 bytes.
const PUSHED_FOR_LINKER: i64 = 16;
/// It alone ends with so many of these, for it is longer than the others.
const PADDING: [[u8; 4]; 3] = [0xd503_201f_u32.to_le_bytes(); 3];

/// What `code` does to the stack from its beginning on, and where it goes then; `fork` is told of where it might go before.
pub(super) fn follow(code: &[u8], epilogue: &mut Epilogue, mut fork: impl FnMut(i64, Epilogue)) -> Next {
    let (mut at, mut size) = (0, Size::default());
    let words = code.as_chunks::<4>().0;
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
                let is_first_entry = words.get(index + 1..).is_some_and(|rest| rest.starts_with(&PADDING));
                if is_first_entry && epilogue.raised == 0 {
                    epilogue.return_address =
                        Some(epilogue.raised.wrapping_add_signed(PUSHED_FOR_LINKER - 8));
                }
                if is_first_entry {
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
    use super::follow;
    use crate::epilogue::{Base, Epilogue, Next};

    fn followed(text: &str) -> Option<(Next, Epilogue)> {
        let text = format!(".arch armv8.5-a+pauth\n{text}");
        let code = crate::arch::assembled("aarch64-linux-gnu-", &text)?;
        let mut epilogue = Epilogue::default();
        Some((follow(&code, &mut epilogue, |_, _| {}), epilogue))
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
                (Next::Returns, Epilogue { base, raised, return_address, frame_pointer }),
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
        assert_eq!(follow(&code, &mut Epilogue::default(), fork), Next::Unknown);
        assert_eq!(forks, [(28, 16), (28, 32), (24, 32)]);
    }

    #[test]
    fn entries_of_linkage_tables_return_to_who_called_them() {
        // As GNU ld makes them: the first, and another.
        let first =
            "stp x16, x30, [sp, #-16]!; adrp x16, .; ldr x17, [x16, #4088]; add x16, x16, #0xff8; br x17";
        let cases = [
            (first, 0, 0, None),
            (first, 1, 16, Some(8)),
            (first, 4, 16, Some(8)),
            ("adrp x16, .; ldr x17, [x16, #8]; add x16, x16, #8; br x17", 0, 0, None),
            ("adrp x16, .; ldr x17, [x16, #8]; add x16, x16, #8; br x17", 3, 0, None),
            ("bti c; adrp x16, .; ldr x17, [x16, #8]; add x16, x16, #8; autia1716; br x17", 0, 0, None),
        ];
        for (entry, executed, raised, return_address) in cases {
            let behind =
                if entry == first { "; nop; nop; nop" } else { "; adrp x16, .; ldr x17, [x16, #16]" };
            let rest: Vec<&str> = entry.split("; ").skip(executed).collect();
            let text = rest.join("; ") + behind;
            let Some(found) = followed(&text) else { return };
            let epilogue = Epilogue { raised, return_address, ..Epilogue::default() };
            assert_eq!(found, (Next::Returns, epilogue), "{text}");
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
