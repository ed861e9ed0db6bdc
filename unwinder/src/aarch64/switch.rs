//! Code that loads the registers of elsewhere from a buffer, as `longjmp` and `setcontext` do: which of `sp`, `x29` and `x30`
//! are still the caller's, and which are already those of where it goes. Encodings are those of the Arm Architecture
//! Reference Manual (section C4.1).

use super::instruction::{Effect, effect};
use super::{FP, LR};
use crate::arch::Loaded;
use crate::table::RegisterNumber;

/// `add sp, xN, #0`, and the bits that are always so.
const MOVE_TO_SP: (u32, u32) = (0x9100_001f, 0xffff_fc1f);

/// What happened to a register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Kept,
    Given,
    Unknown,
}

impl State {
    /// After an instruction that `gives` it a value, if that is told, and that `always` runs.
    fn after(self, gives: Option<bool>, always: bool) -> Self {
        match gives {
            Some(false) => self,
            Some(true) if always => State::Given,
            _ => State::Unknown,
        }
    }
}

/// What is loaded; `None` where `sp` is and `x30` is not yet, or where that is not told. `code` is from a function's first
/// instruction on up to the one that is about to run.
pub(super) fn loaded(code: &[u8]) -> Option<Loaded> {
    let [mut sp, mut fp, mut lr] = [State::Kept; 3];
    // Up to where jumps may have led past the instructions before.
    let (mut at, mut reached) = (0, 0);
    for word in code.as_chunks::<4>().0 {
        let word = u32::from_le_bytes(*word);
        let always = at >= reached;
        match effect(word) {
            Effect::None | Effect::SetsFp(_) | Effect::Sets(..) | Effect::SetsPart(..) => {}
            Effect::Branches(distance) | Effect::Jumps(distance) => reached = reached.max(at + distance),
            Effect::Unknown if word & MOVE_TO_SP.1 == MOVE_TO_SP.0 => sp = sp.after(Some(true), always),
            _ => return None,
        }
        fp = fp.after(gives(word, FP), always);
        lr = lr.after(gives(word, LR), always);
        at += 4;
    }
    let frame_pointer = fp == lr;
    match (sp, lr) {
        (State::Kept, State::Kept) | (State::Given, State::Given) => {
            Some(Loaded::AllOrNone { frame_pointer })
        }
        (State::Kept, State::Given) => Some(Loaded::ReturnAddress { frame_pointer }),
        _ => None,
    }
}

/// Whether an instruction gives a register a value; `None` where that is not told.
fn gives(word: u32, register: RegisterNumber) -> Option<bool> {
    let names = |low: u32| word >> low & 31 == u32::from(register);
    let bit = |at: u32| word >> at & 1 == 1;
    let unless = |may: bool| (!may).then_some(false);
    match word >> 25 & 0b1111 {
        // Arithmetic, of a number or of registers.
        0b1000 | 0b1001 | 0b0101 | 0b1101 => Some(names(0)),
        // Memory; the base may be moved.
        0b0100 | 0b0110 | 0b1100 | 0b1110 if names(5) => None,
        0b0110 | 0b1110 => Some(false),
        0b0100 | 0b1100 => match word >> 27 & 0b111 {
            // Pairs; a single register; a constant beside the code.
            0b101 => Some(bit(22) && (names(0) || names(10))),
            0b111 if bit(24) || !bit(21) => Some(names(0) && word >> 22 & 0b11 != 0),
            0b011 if !bit(24) => Some(names(0)),
            _ => unless(names(0) || names(10) || names(16)),
        },
        // Jumps name none but those that they read; system registers are read into one.
        0b1010 | 0b1011 => unless(word >> 24 == 0xd5 && names(0)),
        _ => unless(names(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::loaded;
    use crate::arch::Loaded;

    const ALL_OR_NONE: Option<Loaded> = Some(Loaded::AllOrNone { frame_pointer: true });
    const ALL_BUT_X29: Option<Loaded> = Some(Loaded::AllOrNone { frame_pointer: false });
    const X29_AND_X30: Option<Loaded> = Some(Loaded::ReturnAddress { frame_pointer: true });
    const X30: Option<Loaded> = Some(Loaded::ReturnAddress { frame_pointer: false });

    #[test]
    fn what_is_loaded_is_told_by_code() {
        let cases = [
            ("nop", ALL_OR_NONE),
            ("ldp x19, x20, [x0]; mov x8, #135; svc #0; str x30, [x0, #8]; stp x29, x30, [x1]", ALL_OR_NONE),
            ("ldp x29, x4, [x0, #80]; ldp d30, d31, [x0]", ALL_BUT_X29),
            ("ldp x29, x4, [x0, #80]; eor x30, x4, x3", X29_AND_X30),
            ("ldp x29, x30, [x0, #80]; ldr x2, [x0]", X29_AND_X30),
            ("ldr x30, [x0, #80]; ldr x2, [x0]", X30),
            ("mov sp, x2", None),
            (
                "ldp x29, x4, [x0]; eor x30, x4, x3; ldr x4, [x0, #104]; eor x5, x4, x3; mov sp, x5",
                ALL_OR_NONE,
            ),
            ("ldr x30, [x0]; ldr x2, [x0]; mov sp, x2; cmp x1, #0; csel x0, x1, x0, ne", ALL_BUT_X29),
            ("cbz x0, 1f; b .+64; 1: ldp x29, x30, [x0]; mov sp, x2", None),
            ("cbz x0, 1f; b .-64; 1: ldp x29, x30, [x0]; mov sp, x2; b.ne 2f; nop; 2: nop", ALL_OR_NONE),
            ("cbz x0, 1f; ldp x29, x30, [x0]; 1: mov sp, x2", None),
            ("cbz x0, .+64; mrs x30, fpsr", None),
            ("mrs x4, fpsr; msr fpsr, x4; ldr x30, .+8; mov sp, x2", ALL_BUT_X29),
            // No such code.
            ("stp x29, x30, [sp, #-16]!", None),
            ("ldp x29, x30, [sp], #16", None),
            ("bl .+64", None),
            ("mov sp, x29", None),
            ("ldr x1, [x30], #8", None),
            ("ldadd x1, x30, [x2]", None),
            ("ldxr x30, [x2]", None),
        ];
        for (text, expected) in cases {
            let text = format!(".arch armv8.5-a+lse\n{text}");
            let Some(code) = crate::arch::assembled("aarch64-linux-gnu-", &text) else { return };
            assert_eq!(loaded(&code), expected, "{text}");
        }
    }
}
