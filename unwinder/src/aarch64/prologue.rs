//! How a function's first instructions move the stack pointer, and where they put `x29` and `x30`. What compilers put between
//! is passed over, up to what calls, jumps, or moves the stack pointer in another way.

use super::instruction::{Effect, Size, effect};
use super::{FP, LR};
use crate::prologue::Prologue;

/// Of `code`, from a function's first instruction on up to the one that was about to run.
pub(super) fn prologue(code: &[u8]) -> Prologue {
    let mut prologue = Prologue::default();
    let mut size = Size::default();
    for word in code.as_chunks::<4>().0 {
        match size.seen(u32::from_le_bytes(*word)) {
            Effect::Moves(moved) if moved < 0 => {
                prologue.lowered = prologue.lowered.wrapping_add_signed(-moved);
            }
            Effect::Stores { moved, offset, registers } => {
                prologue.lowered = prologue.lowered.wrapping_add_signed(-moved);
                for (place, register) in registers.into_iter().enumerate() {
                    let below = prologue.lowered.wrapping_add_signed(-offset).wrapping_sub(place as u64 * 8);
                    match register {
                        Some(LR) if prologue.return_address.is_none() => {
                            prologue.return_address = Some(below);
                        }
                        Some(FP) if prologue.frame_pointer.is_none() => prologue.frame_pointer = Some(below),
                        _ => {}
                    }
                }
            }
            Effect::None
            | Effect::SetsFp(_)
            | Effect::Branches(_)
            | Effect::Loads { before: 0, after: 0, .. } => {}
            _ => break,
        }
    }
    prologue
}

/// Whether `code` looks like a function's first instruction, as it does where code is protected from jumps: it signs the return
/// address or is where calls may lead to, behind a jump, a return or a `nop`. What takes stack is no sign: a frame's record is at its
/// bottom, and so a return address would be found by another function's first instructions, and the stack pointer lost.
pub(super) fn begins_function(before: &[u8], code: &[u8]) -> bool {
    const NOP: u32 = 0xd503_201f;
    const PACIASP: u32 = 0xd503_233f;
    const BTI_C: u32 = 0xd503_245f;
    let word = |bytes: Option<&[u8; 4]>| bytes.map(|bytes| u32::from_le_bytes(*bytes));
    let (Some(before), Some(first)) = (word(before.last_chunk()), word(code.first_chunk())) else {
        return false;
    };
    matches!(first, PACIASP | BTI_C)
        && (before == NOP
            || matches!(
                effect(before),
                Effect::Returns | Effect::Jumps(_) | Effect::HandsOn | Effect::Unknown
            ))
}

/// Where, from its beginning, `code` jumps to before it does anything to the stack.
pub(super) fn tail_jump(code: &[u8]) -> Option<i64> {
    let mut at = 0;
    for word in code.as_chunks::<4>().0 {
        match effect(u32::from_le_bytes(*word)) {
            Effect::None
            | Effect::SetsFp(_)
            | Effect::Branches(_)
            | Effect::Sets(..)
            | Effect::SetsPart(..) => at += 4,
            Effect::Jumps(distance) => return Some(at + distance),
            _ => break,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Prologue, begins_function, prologue, tail_jump};

    fn assembled(text: &str) -> Option<Vec<u8>> {
        crate::arch::assembled("aarch64-linux-gnu-", &format!(".arch armv8.5-a+pauth\n{text}"))
    }

    #[test]
    fn functions_begin_behind_the_end_of_others() {
        for (before, text, begins) in [
            ("ret", "paciasp", true),
            ("retaa", "bti c", true),
            ("b .+64", "paciasp", true),
            ("br x16", "paciasp", true),
            ("nop", "bti c", true),
            ("ret", "mov x0, x1", false),
            ("ret", "stp x29, x30, [sp, #-32]!", false),
            ("mov x0, x1", "paciasp", false),
            ("bl .+64", "paciasp", false),
            ("cbz x0, .+64", "bti c", false),
        ] {
            let (Some(before_it), Some(code)) = (assembled(before), assembled(text)) else { return };
            assert_eq!(begins_function(&before_it, &code), begins, "{before}; {text}");
        }
    }

    #[test]
    fn registers_are_where_they_were_stored() {
        let at = |lowered, return_address, frame_pointer| Prologue {
            lowered,
            return_address,
            frame_pointer,
            realigned: false,
        };
        let cases = [
            ("stp x29, x30, [sp, #-32]!; mov x29, sp; str x19, [sp, #16]", at(32, Some(24), Some(32))),
            ("paciasp; stp x29, x30, [sp, #-512]!; mov x29, sp", at(512, Some(504), Some(512))),
            ("sub sp, sp, #64; stp x29, x30, [sp, #48]; add x29, sp, #48", at(64, Some(8), Some(16))),
            (
                "mov x12, #1; sub sp, sp, #4, lsl #12; sub sp, sp, #32; str x30, [sp, #8]",
                at(0x4020, Some(0x4018), None),
            ),
            (
                "mov x12, #0x1280; sub sp, sp, x12; mov x12, #1; stp x29, x30, [sp]",
                at(0x1280, Some(0x1278), Some(0x1280)),
            ),
            ("mov x16, #0x1280; movk x16, #1, lsl #16; sub sp, sp, x16", at(0x1_1280, None, None)),
            ("str x30, [sp, #-16]!; sub sp, sp, #0x100", at(0x110, Some(16), None)),
            (
                "stp x19, x30, [sp, #-16]!; cbz x0, .+8; tbnz x1, #3, .+16; ldr x0, [x1]",
                at(16, Some(8), None),
            ),
            ("stp d8, d9, [sp, #-32]!; stp x30, x19, [sp, #16]", at(32, Some(16), None)),
            ("stp q8, q9, [sp, #-64]!; str x29, [sp, #32]", at(64, None, Some(32))),
            ("str d8, [sp, #-48]!; stp x29, x30, [sp, #16]", at(48, Some(24), Some(32))),
            ("sub sp, sp, #16; str w0, [sp, #12]; ldr w0, [sp, #12]", at(16, None, None)),
            ("ldr x0, [sp, #8]; ldp x1, x2, [sp, #16]; sub sp, sp, #16; add x0, sp, #8", at(16, None, None)),
            // Up to where it is not the beginning any more.
            ("sub sp, sp, #16; bl .+64; sub sp, sp, #16", at(16, None, None)),
            ("sub sp, sp, #16; ret; sub sp, sp, #16", at(16, None, None)),
            ("sub sp, sp, #16; add sp, sp, #16; sub sp, sp, #16", at(16, None, None)),
            ("sub sp, sp, #16; sub sp, sp, x1; sub sp, sp, #16", at(16, None, None)),
            ("sub sp, sp, #16; mov sp, x29; sub sp, sp, #16", at(16, None, None)),
            ("sub sp, sp, #16; and sp, x9, #0xfffffffffffffff0; sub sp, sp, #16", at(16, None, None)),
            ("sub sp, sp, #16; ldp x29, x30, [sp], #16; sub sp, sp, #16", at(16, None, None)),
            ("sub sp, sp, #16; ldr x30, [sp], #16; sub sp, sp, #16", at(16, None, None)),
            // What only looks alike.
            (
                "stp x29, x30, [x1, #-32]!; sub x1, x1, #16; str x30, [x0, #8]; add xzr, x1, x2",
                at(0, None, None),
            ),
        ];
        for (text, expected) in cases {
            let Some(code) = assembled(text) else { return };
            assert_eq!(prologue(&code), expected, "{text}");
        }
    }

    #[test]
    fn what_was_about_to_run_does_not_count() {
        let Some(code) = assembled("sub sp, sp, #16; stp x29, x30, [sp, #-32]!; sub sp, sp, #64") else {
            return;
        };
        let lowered: Vec<u64> = (0..=3).map(|length| prologue(&code[..length * 4]).lowered).collect();
        assert_eq!(lowered, [0, 16, 48, 112]);
    }

    #[test]
    fn functions_that_hand_on_are_followed() {
        let Some(code) = assembled("bti c; mov x1, x0; b .+0x1000") else { return };
        assert_eq!(tail_jump(&code), Some(8 + 0x1000));
        assert_eq!(tail_jump(&assembled("b .-0x20").unwrap()), Some(-0x20));
        for other in ["sub sp, sp, #16; b .+0x1000", "ret; b .+0x1000", "mov x0, x1", "bl .+64; b .+64"] {
            assert_eq!(tail_jump(&assembled(other).unwrap()), None, "{other}");
        }
    }
}
