//! Unwind codes of a full record: bytes, the most significant first, each code for one instruction.

/// A register of 64 bits by its number, or a vector register, which a walk does not restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    General(u8),
    /// Its size on the stack in bytes.
    Vector(u8),
}

/// What an instruction of a prologue did; that of an epilogue undoes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// `sub sp, sp, #size`
    Allocate {
        size: u32,
    },
    /// `stp first, second, [sp, #offset]` after `sp` went down by `grows`; without `second`, `str`.
    Save {
        first: Register,
        second: Option<Register>,
        offset: u32,
        grows: u32,
    },
    /// The next pair of registers is saved behind the one before.
    SaveNext,
    /// `add x29, sp, #offset`
    SetFramePointer {
        offset: u32,
    },
    /// The return address was signed.
    Sign,
    Nothing,
    /// A special frame lies at `sp`. No instruction made it.
    Special(Special),
}

/// Frames that are no function's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    /// The kernel's `KTRAP_FRAME`.
    Trap,
    /// The interrupted `sp`, then `pc`.
    Machine,
    /// A `CONTEXT`.
    Context,
    /// None; the return address is an exact one, not that of a call.
    ClearUnwoundToCall,
}

impl Step {
    pub(super) fn instructions(self) -> u32 {
        u32::from(!matches!(self, Step::Special(_)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Step(Step),
    End,
    /// What follows is of the function that this one is a part of.
    EndOfPart,
}

/// Decodes the first code: it, and what is behind it. `None` where it is unknown or cut off.
pub(super) fn decode(bytes: &[u8]) -> Option<(Code, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let step = |step| Some((Code::Step(step), rest));
    let scaled = |bits: u8, scale: u32| u32::from(first & bits) * scale;
    let (fp, lr) = (Register::General(29), Some(Register::General(30)));
    match first {
        0x00..=0x1f => return step(Step::Allocate { size: scaled(0x1f, 16) }),
        0x20..=0x3f => {
            let (first, second) = (Register::General(19), Some(Register::General(20)));
            return step(Step::Save { first, second, offset: 0, grows: scaled(0x1f, 8) });
        }
        0x40..=0x7f => {
            return step(Step::Save { first: fp, second: lr, offset: scaled(0x3f, 8), grows: 0 });
        }
        0x80..=0xbf => {
            return step(Step::Save { first: fp, second: lr, offset: 0, grows: scaled(0x3f, 8) + 8 });
        }
        0xc0..=0xdf => {
            let (&second, rest) = rest.split_first()?;
            return Some((Code::Step(two_bytes(u16::from_be_bytes([first, second]))?), rest));
        }
        _ => {}
    }
    let (code, operands) = match (first, rest) {
        (0xe0, &[a, b, c, ..]) => (Step::Allocate { size: u32::from_be_bytes([0, a, b, c]) * 16 }, 3),
        (0xe1, _) => (Step::SetFramePointer { offset: 0 }, 0),
        (0xe2, &[offset, ..]) => (Step::SetFramePointer { offset: u32::from(offset) * 8 }, 1),
        (0xe3 | 0xfd..=0xff, _) => (Step::Nothing, 0),
        (0xe4, _) => return Some((Code::End, rest)),
        (0xe5, _) => return Some((Code::EndOfPart, rest)),
        (0xe6, _) => (Step::SaveNext, 0),
        (0xe7, &[a, b, ..]) => (any_register(a, b)?, 2),
        (0xe8, _) => (Step::Special(Special::Trap), 0),
        (0xe9, _) => (Step::Special(Special::Machine), 0),
        (0xea, _) => (Step::Special(Special::Context), 0),
        (0xec, _) => (Step::Special(Special::ClearUnwoundToCall), 0),
        // Reserved, with one to four operands.
        (0xf8..=0xfb, _) => (Step::Nothing, usize::from(first & 3) + 1),
        (0xfc, _) => (Step::Sign, 0),
        _ => return None,
    };
    Some((Code::Step(code), rest.get(operands..)?))
}

/// Codes `0xc0` to `0xdf`.
fn two_bytes(code: u16) -> Option<Step> {
    let byte = |shift: u32, bits: u16| ((code >> shift) & bits) as u8;
    let offset = u32::from(code & 0x3f) * 8;
    let small = u32::from(code & 0x1f) * 8;
    let general = |number: u8| (number <= 30).then_some(Register::General(number));
    let vector = Register::Vector(8);
    let save = |first, second, offset, grows| Some(Step::Save { first, second, offset, grows });
    match code >> 8 {
        0xc0..=0xc7 => Some(Step::Allocate { size: u32::from(code & 0x7ff) * 16 }),
        0xc8..=0xcb => {
            let first = 19 + byte(6, 15);
            save(general(first)?, Some(general(first + 1)?), offset, 0)
        }
        0xcc..=0xcf => {
            let first = 19 + byte(6, 15);
            save(general(first)?, Some(general(first + 1)?), 0, offset + 8)
        }
        0xd0..=0xd3 => save(general(19 + byte(6, 15))?, None, offset, 0),
        0xd4 | 0xd5 => save(general(19 + byte(5, 15))?, None, 0, small + 8),
        0xd6 | 0xd7 => save(general(19 + 2 * byte(6, 7))?, general(30), offset, 0),
        0xd8 | 0xd9 => save(vector, Some(vector), offset, 0),
        0xda | 0xdb => save(vector, Some(vector), 0, offset + 8),
        0xdc | 0xdd => save(vector, None, offset, 0),
        0xde => save(vector, None, 0, small + 8),
        _ => None,
    }
}

/// `save_any_reg`: `0pxrrrrr ffoooooo`, for a pair, with `sp` going down, the register's number, its kind (`x`, `d`, `q`)
/// and the offset.
fn any_register(a: u8, b: u8) -> Option<Step> {
    let (is_pair, goes_down, number, kind) = (a & 0x40 != 0, a & 0x20 != 0, a & 0x1f, b >> 6);
    let register = |number: u8| match kind {
        0 => (number <= 30).then_some(Register::General(number)),
        1 => Some(Register::Vector(8)),
        2 => Some(Register::Vector(16)),
        _ => None,
    };
    if a & 0x80 != 0 {
        return None;
    }
    let (first, second) = (register(number)?, if is_pair { Some(register(number + 1)?) } else { None });
    let scale = if goes_down || is_pair || kind == 2 { 16 } else { 8 };
    let offset = u32::from(b & 0x3f);
    Some(if goes_down {
        Step::Save { first, second, offset: 0, grows: (offset + 1) * scale }
    } else {
        Step::Save { first, second, offset: offset * scale, grows: 0 }
    })
}
