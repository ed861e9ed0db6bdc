//! What an instruction does to the stack. Encodings are those of the Arm Architecture Reference Manual (section C4.1). All
//! have one length, so those that do nothing to it need not be known.

use super::{FP, SP};
use crate::table::RegisterNumber;

/// What an instruction does to the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    None,
    /// Jumps to so far behind its own beginning, if a condition holds.
    Branches(i64),
    /// Moves the stack pointer up by so much.
    Moves(i64),
    /// Moves the stack pointer by what this register has: up, or else down.
    MovesBy {
        register: RegisterNumber,
        up: bool,
    },
    /// `x29 = sp + offset`
    SetsFp(i64),
    /// `sp = x29 + offset`
    SetsFromFp(i64),
    /// Gives a register this value,
    Sets(RegisterNumber, u64),
    /// or these 16 bits of it, from one of them on.
    SetsPart(RegisterNumber, u64, u32),
    /// Moves the stack pointer up by `moved`, then stores these registers one after the other, from `offset` above it on.
    Stores {
        moved: i64,
        offset: i64,
        registers: [Option<RegisterNumber>; 2],
    },
    /// Moves the stack pointer up by `before`, loads these registers likewise, then moves it up by `after`.
    Loads {
        before: i64,
        offset: i64,
        registers: [Option<RegisterNumber>; 2],
        after: i64,
    },
    Call,
    /// Jumps on to so far behind its own beginning.
    Jumps(i64),
    Returns,
    /// Hands on to another function, which returns for this one: as entries of linkage tables do, and calls in place of a
    /// return.
    HandsOn,
    /// Goes elsewhere, or moves the stack pointer in a way that it does not tell.
    Unknown,
}

/// A frame's size that no instruction has room for: the number that was last put into a register.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size(Option<(RegisterNumber, u64)>);

impl Size {
    /// The effect of the next instruction, in which registers that hold a size are known.
    pub(super) fn seen(&mut self, word: u32) -> Effect {
        let effect = effect(word);
        match (effect, &mut self.0) {
            (Effect::Sets(register, value), size) => *size = Some((register, value)),
            (Effect::SetsPart(register, bits, from), Some((known, value))) if *known == register => {
                *value = *value & !(0xffff << from) | bits << from;
            }
            (Effect::SetsPart(..), _) => {}
            (Effect::MovesBy { register, up }, Some((known, value))) if *known == register => {
                let size = i64::try_from(*value).ok();
                return size.map_or(Effect::Unknown, |size| Effect::Moves(if up { size } else { -size }));
            }
            (Effect::MovesBy { .. }, _) => return Effect::Unknown,
            // The registers that hold sizes are not kept by what is called.
            (Effect::Call, size) => {
                *size = None;
                return effect;
            }
            (_, size) => {
                // Where instructions name a register that they give a value; others name one there, too, or none.
                let may_set = |register| [word & 31, word >> 10 & 31].contains(&u32::from(register));
                if size.is_some_and(|(register, _)| may_set(register)) {
                    *size = None;
                }
                return effect;
            }
        }
        Effect::None
    }
}

pub(super) fn effect(word: u32) -> Effect {
    let field = |low: u32, width: u32| word >> low & ((1 << width) - 1);
    let signed =
        |low: u32, width: u32| i64::from((field(low, width) << (32 - width)).cast_signed() >> (32 - width));
    let is_sp = |low: u32| field(low, 5) == u32::from(SP);
    let register = |low: u32| field(low, 5) as RegisterNumber;
    let number = || i64::from(field(10, 12)) << if field(22, 1) == 1 { 12 } else { 0 };
    match word >> 24 {
        // add and sub of a number to the stack pointer or the frame pointer; of an extended register
        0x91 if is_sp(0) && is_sp(5) => Effect::Moves(number()),
        0xd1 if is_sp(0) && is_sp(5) => Effect::Moves(-number()),
        0x91 if register(0) == FP && is_sp(5) => Effect::SetsFp(number()),
        0x91 if is_sp(0) && register(5) == FP => Effect::SetsFromFp(number()),
        0xd1 if is_sp(0) && register(5) == FP => Effect::SetsFromFp(-number()),
        0x8b if word & 0xffe0_ffff == 0x8b20_63ff => Effect::MovesBy { register: register(16), up: true },
        0xcb if word & 0xffe0_ffff == 0xcb20_63ff => Effect::MovesBy { register: register(16), up: false },
        // movz, movk
        0xd2 if field(23, 1) == 1 => {
            Effect::Sets(register(0), u64::from(field(5, 16)) << (field(21, 2) * 16))
        }
        0xf2 if field(23, 1) == 1 => Effect::SetsPart(register(0), field(5, 16).into(), field(21, 2) * 16),
        // What else gives the stack pointer a value: these with other operands, and and orr of a number.
        0x91 | 0xd1 | 0x92 | 0xb2 if is_sp(0) => Effect::Unknown,
        0x8b | 0xcb if is_sp(0) && field(21, 1) == 1 => Effect::Unknown,
        // Pairs of registers in memory, with the stack pointer as the base: x, d and q.
        0xa8 | 0xa9 | 0x6c | 0x6d | 0xac | 0xad if is_sp(5) => {
            let is_general = field(26, 1) == 0;
            let offset = signed(15, 7) * if !is_general && field(30, 2) == 0b10 { 16 } else { 8 };
            access(
                field(22, 1) == 1,
                field(23, 2),
                offset,
                [register(0), register(10)].map(|register| is_general.then_some(register)),
            )
        }
        // One register, 64 bits (and the vector registers, of which only the move of the stack pointer matters).
        0xf9 if is_sp(5) && field(23, 1) == 0 => {
            access(field(22, 1) == 1, 0b10, i64::from(field(10, 12)) * 8, [Some(register(0)), None])
        }
        0xf8 | 0xfc | 0x3c if is_sp(5) && field(21, 1) == 0 && field(10, 1) == 1 => {
            let mode = if field(11, 1) == 1 { 0b11 } else { 0b01 };
            access(field(22, 1) == 1, mode, signed(12, 9), [(word >> 24 == 0xf8).then(|| register(0)), None])
        }
        // b.cond, cbz and cbnz; tbz and tbnz
        0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => Effect::Branches(signed(5, 19) * 4),
        0x36 | 0x37 | 0xb6 | 0xb7 => Effect::Branches(signed(5, 14) * 4),
        0x14..=0x17 => Effect::Jumps(signed(0, 26) * 4),
        0x94..=0x97 => Effect::Call,
        // blr and its like; ret, retaa, retab
        0xd6 | 0xd7 if field(21, 3) == 0b001 => Effect::Call,
        0xd6 if matches!(word, 0xd65f_03c0 | 0xd65f_0bff | 0xd65f_0fff) => Effect::Returns,
        // br x17, which is no jump within a function: that register is the linker's (AAPCS64, section 6.1.1).
        0xd6 if word == 0xd61f_0220 => Effect::HandsOn,
        // br and its like, brk
        0xd6 | 0xd7 => Effect::Unknown,
        0xd4 if field(21, 3) == 0b001 => Effect::Unknown,
        // What else moves the stack pointer on the way to or from memory: single registers, pairs, vectors, and tags.
        _ if is_sp(5) && word & 0x3b20_0400 == 0x3800_0400 => Effect::Unknown,
        _ if is_sp(5) && word & 0x3a80_0000 == 0x2880_0000 => Effect::Unknown,
        _ if is_sp(5) && word & 0xbe80_0000 == 0x0c80_0000 => Effect::Unknown,
        0xd9 if is_sp(5) && field(21, 1) == 1 && field(10, 1) == 1 => Effect::Unknown,
        _ => Effect::None,
    }
}

/// A load or a store by its mode: with an offset, or with the base moved after (`0b01`) or before it.
fn access(is_load: bool, mode: u32, number: i64, registers: [Option<RegisterNumber>; 2]) -> Effect {
    let (before, offset, after) = match mode {
        0b01 => (0, 0, number),
        0b11 => (number, 0, 0),
        // With an offset; and pairs of which no copy is to stay in caches.
        _ => (0, number, 0),
    };
    match (is_load, after) {
        (true, _) => Effect::Loads { before, offset, registers, after },
        (false, 0) => Effect::Stores { moved: before, offset, registers },
        (false, _) => Effect::Unknown,
    }
}
