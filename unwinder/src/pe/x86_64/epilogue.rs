//! Tells by its instructions whether an address is in an epilogue, as Windows does for unwind information of version 1.
//!
//! An epilogue is, from its first instruction or any later one: `add rsp, n` or `lea rsp, n[frame register]`; any number of
//! `pop`; and a return or a jump out of the function. What has been executed of it is not undone, the rest is followed. A
//! return from an interrupt is one, too, which Windows sees in epilogues of version 2 only.

use super::prologue::{Frame, dwarf_number};
use crate::table::RegisterNumber;
use crate::x86_64::SP;

/// There are no more registers.
const MAX_POPS: usize = 16;
const RSP: u8 = 4;

/// Instructions from an address on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instructions<'d> {
    pub(super) code: &'d [u8],
    /// Their address.
    pub(super) rva: u32,
    /// The function's frame register by the number of its encoding; 0 where it has none.
    pub(super) frame_register: u8,
}

impl Instructions<'_> {
    /// The frame at the address, if it is in an epilogue. `leaves` says whether a jump to an address is one out of the
    /// function.
    pub(super) fn epilogue(&self, leaves: impl FnOnce(i64) -> bool) -> Option<Frame> {
        let (register, offset, length) = self.release();
        let mut rest = self.code.get(length..)?;
        let mut popped = [0; MAX_POPS];
        let mut pops = 0;
        while let Some((number, behind)) = pop(rest) {
            *popped.get_mut(pops)? = number;
            pops += 1;
            rest = behind;
        }
        let rest = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
        let at = i64::from(self.rva) + (self.code.len() - rest.len()) as i64;
        let ends = match *rest {
            // ret, ret n, rep ret; jmp [rip + n]; with REX.W, jmp of any operand
            [0xc3 | 0xc2, ..] | [0xf3, 0xc3, ..] | [0xff, 0x25, ..] => true,
            [0x48..=0x4f, 0xff, operand, ..] => operand & 0x38 == 0x20,
            [0xeb, distance, ..] => leaves(at + 2 + i64::from(distance.cast_signed())),
            [0xe9, a, b, c, d, ..] => leaves(at + 5 + i64::from(i32::from_le_bytes([a, b, c, d]))),
            _ => false,
        };
        let mut frame = match rest {
            // iretq
            [0x48, 0xcf, ..] => Frame::of_interrupt(false),
            _ if ends => Frame::at_entry(),
            _ => return None,
        };
        for &number in popped.get(..pops)?.iter().rev() {
            frame.push(number);
        }
        frame.release_from(register, offset);
        Some(frame)
    }

    /// Where the pops begin, as an offset from a register; and the length of the instruction that moves `rsp` there.
    fn release(&self) -> (RegisterNumber, i32, usize) {
        match *self.code {
            [0x48, 0x83, 0xc4, n, ..] => (SP, n.cast_signed().into(), 4),
            [0x48, 0x81, 0xc4, a, b, c, d, ..] => (SP, i32::from_le_bytes([a, b, c, d]), 7),
            [rex @ (0x48 | 0x49), 0x8d, operand, ref displacement @ ..] => {
                let register = (rex & 1) << 3 | operand & 7;
                let of_frame = register != 0 && register == self.frame_register;
                match (operand & 0xf8, displacement) {
                    (0x60, &[n, ..]) if of_frame => (dwarf_number(register), n.cast_signed().into(), 4),
                    (0xa0, &[a, b, c, d, ..]) if of_frame => {
                        (dwarf_number(register), i32::from_le_bytes([a, b, c, d]), 7)
                    }
                    _ => (SP, 0, 0),
                }
            }
            _ => (SP, 0, 0),
        }
    }
}

/// The register that the first instruction pops, and what is behind it.
fn pop(code: &[u8]) -> Option<(u8, &[u8])> {
    let (register, rest) = match *code {
        [opcode @ 0x58..=0x5f, ref rest @ ..] => (opcode & 7, rest),
        [rex @ 0x40..=0x4f, opcode @ 0x58..=0x5f, ref rest @ ..] => ((rex & 1) << 3 | opcode & 7, rest),
        _ => return None,
    };
    (register != RSP).then_some((register, rest))
}
