//! How a function's first instructions move the stack pointer, and where they put `x29` and `x30`. Encodings are those of
//! the Arm Architecture Reference Manual (section C4.1). All instructions have one length, so what compilers put between
//! is passed over, up to what calls, jumps, or moves the stack pointer in another way.

use super::{FP, LR, SP};
use crate::prologue::Prologue;
use crate::table::RegisterNumber;

/// What an instruction does to the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    /// Moves the stack pointer up by so much.
    Moves(i64),
    /// Moves the stack pointer up by `moved`, then stores these registers one after the other, from `offset` above it on.
    Stores {
        moved: i64,
        offset: i64,
        registers: [Option<RegisterNumber>; 2],
    },
    /// Moves the stack pointer down by what this register has.
    MovesBy(RegisterNumber),
    /// Gives a register this value,
    Sets(RegisterNumber, u64),
    /// or these 16 bits of it, from one of them on.
    SetsPart(RegisterNumber, u64, u32),
    /// Jumps on to so far behind its own beginning.
    Jumps(i64),
    /// Goes elsewhere, or moves the stack pointer in a way that it does not tell.
    Unknown,
}

/// Of `code`, from a function's first instruction on up to the one that was about to run.
pub(super) fn prologue(code: &[u8]) -> Prologue {
    let mut prologue = Prologue::default();
    // A frame's size that no instruction has room for.
    let mut size = (SP, 0);
    for word in code.as_chunks::<4>().0 {
        match effect(u32::from_le_bytes(*word)) {
            Effect::Moves(moved) => prologue.lowered = prologue.lowered.wrapping_add_signed(-moved),
            Effect::MovesBy(register) if register == size.0 => {
                prologue.lowered = prologue.lowered.wrapping_add(size.1);
            }
            Effect::Sets(register, value) => size = (register, value),
            Effect::SetsPart(register, bits, from) if register == size.0 => {
                size.1 = size.1 & !(0xffff << from) | bits << from;
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
            Effect::None | Effect::SetsPart(..) => {}
            Effect::MovesBy(_) | Effect::Jumps(_) | Effect::Unknown => break,
        }
    }
    prologue
}

/// Where, from its beginning, `code` jumps to before it does anything to the stack.
pub(super) fn tail_jump(code: &[u8]) -> Option<i64> {
    let mut at = 0;
    for word in code.as_chunks::<4>().0 {
        match effect(u32::from_le_bytes(*word)) {
            Effect::None | Effect::Sets(..) | Effect::SetsPart(..) => at += 4,
            Effect::Jumps(distance) => return Some(at + distance),
            _ => break,
        }
    }
    None
}

fn effect(word: u32) -> Effect {
    let field = |low: u32, width: u32| word >> low & ((1 << width) - 1);
    let signed =
        |low: u32, width: u32| i64::from((field(low, width) << (32 - width)).cast_signed() >> (32 - width));
    let is_sp = |low: u32| field(low, 5) == u32::from(SP);
    let register = |low: u32| field(low, 5) as RegisterNumber;
    match word >> 24 {
        // sub sp, sp, #...
        0xd1 if is_sp(0) && is_sp(5) => {
            let size = i64::from(field(10, 12));
            Effect::Moves(if field(22, 1) == 1 { -(size << 12) } else { -size })
        }
        0xcb if word & 0xffe0_ffff == 0xcb20_63ff => Effect::MovesBy(register(16)),
        // movz, movk
        0xd2 if field(23, 1) == 1 => {
            Effect::Sets(register(0), u64::from(field(5, 16)) << (field(21, 2) * 16))
        }
        0xf2 if field(23, 1) == 1 => Effect::SetsPart(register(0), field(5, 16).into(), field(21, 2) * 16),
        // add and sub of a number or an extended register, and and orr of a number: to the stack pointer.
        0x91 | 0xd1 | 0x92 | 0xb2 if is_sp(0) => Effect::Unknown,
        0x8b | 0xcb if is_sp(0) && field(21, 1) == 1 => Effect::Unknown,
        // Pairs of registers in memory: x, d and q, stored (bit 22 is clear) with the stack pointer as the base.
        0xa8 | 0xa9 | 0x6c | 0x6d | 0xac | 0xad if is_sp(5) => {
            let (is_load, mode) = (field(22, 1) == 1, field(23, 3));
            let offset = signed(15, 7) * if field(30, 2) == 0b10 && field(26, 1) == 1 { 16 } else { 8 };
            let is_general = field(26, 1) == 0;
            let registers = if is_general { [Some(register(0)), Some(register(10))] } else { [None; 2] };
            match (is_load, mode) {
                (false, 0b010) => Effect::Stores { moved: 0, offset, registers },
                (false, 0b011) => Effect::Stores { moved: offset, offset: 0, registers },
                (true, 0b010) => Effect::None,
                _ => Effect::Unknown,
            }
        }
        // str of a register, 64 bits: with an offset, or with the stack pointer moved before.
        0xf9 if is_sp(5) && field(22, 2) == 0 => Effect::Stores {
            moved: 0,
            offset: i64::from(field(10, 12)) * 8,
            registers: [Some(register(0)), None],
        },
        0xf8 | 0xfc | 0x3c if is_sp(5) && field(21, 1) == 0 && field(10, 1) == 1 => {
            let is_general = word >> 24 == 0xf8;
            match (field(22, 1), field(10, 2)) {
                (0, 0b11) => Effect::Stores {
                    moved: signed(12, 9),
                    offset: 0,
                    registers: [is_general.then(|| register(0)), None],
                },
                _ => Effect::Unknown,
            }
        }
        0x14..=0x17 => Effect::Jumps(signed(0, 26) * 4),
        // bl; br, blr, ret and their like; svc, brk
        0x94..=0x97 | 0xd6 | 0xd7 | 0xd4 => Effect::Unknown,
        _ => Effect::None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Prologue, prologue, tail_jump};

    fn assembled(text: &str) -> Option<Vec<u8>> {
        crate::arch::assembled("aarch64-linux-gnu-", &format!(".arch armv8.5-a+pauth\n{text}"))
    }

    #[test]
    fn registers_are_where_they_were_stored() {
        let at = |lowered, return_address, frame_pointer| Prologue { lowered, return_address, frame_pointer };
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
