//! `UNWIND_INFO`: how a function's prologue changed the stack and registers.
//!
//! ```text
//!  byte 0   version (3 bits), flags (5 bits)
//!       1   size of the prologue
//!       2   count of code slots
//!       3   frame register (4 bits), its offset from the stack pointer / 16 (4 bits)
//!       4   slots of two bytes: code offset; operation (4 bits), its info (4 bits); or an operand
//!       ..  padded to an even count of slots; then, if chained, a RUNTIME_FUNCTION
//! ```

use super::runtime_function::RuntimeFunction;
use crate::pe::{Entry as _, Image};

/// Windows follows no longer chains.
pub(super) const MAX_CHAIN: usize = 32;

/// What there is at most: a header, slots, and a `RUNTIME_FUNCTION`.
const LARGEST: usize = 4 + 2 * 256 + 12;

/// `UNW_FLAG_CHAININFO`
const CHAINED: u8 = 4;

/// A function's unwind information.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnwindInfo {
    pub(super) version: u8,
    /// 0: there is none.
    pub(super) frame_register: u8,
    /// Distance in bytes of the frame register from the stack pointer, where it is set.
    pub(super) frame_offset: u8,
    slots: [[u8; 2]; 255],
    count: u8,
    /// The function that this one is a part of.
    pub(super) chained: Option<RuntimeFunction>,
}

impl UnwindInfo {
    /// The information at an RVA; `None` where it is cut off, of a version that is not known, or one too many.
    pub(super) fn read(image: &Image, rva: u32) -> Option<Self> {
        image.count_record()?;
        let mut buffer = [0; LARGEST];
        let (&[version_and_flags, _, count, frame], rest) =
            image.read_at(rva, &mut buffer).split_first_chunk()?;
        let (read, _) = rest.as_chunks::<2>();
        let read = read.get(..count.into())?;
        image.count_codes(read.len())?;
        let version = version_and_flags & 7;
        if !matches!(version, 1 | 2) {
            return None;
        }
        let chained = if version_and_flags >> 3 & CHAINED != 0 {
            let padded = 2 * usize::from(count).next_multiple_of(2);
            Some(RuntimeFunction::parse(rest.get(padded..)?)?)
        } else {
            None
        };
        let mut slots = [[0; 2]; 255];
        slots.get_mut(..read.len())?.copy_from_slice(read);
        Some(UnwindInfo {
            version,
            frame_register: frame & 15,
            frame_offset: (frame >> 4) * 16,
            slots,
            count,
            chained,
        })
    }

    /// The codes, the last instruction of the prologue first.
    pub(super) fn codes(&self) -> Codes<'_> {
        let slots = self.slots.get(..self.count.into()).unwrap_or_default();
        Codes { version: self.version, slots }
    }
}

/// What an instruction of the prologue did. Registers have the numbers of their encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// `UWOP_PUSH_NONVOL`
    Push { register: u8 },
    /// `UWOP_ALLOC_LARGE`, `UWOP_ALLOC_SMALL`: in bytes.
    Allocate { size: u32 },
    /// `UWOP_SET_FPREG`; `UWOP_SET_FPREG_LARGE`, which .NET has on Linux (`unwindamd64.cpp` of its compiler), with the register's
    /// distance in bytes from the stack pointer.
    SetFrameRegister { offset: Option<u32> },
    /// `UWOP_SAVE_NONVOL`, `UWOP_SAVE_NONVOL_FAR`: at this offset from the frame's base.
    Save { register: u8, offset: u32 },
    /// `UWOP_PUSH_MACHFRAME`: an interrupt or exception pushed a return address, flags, and the stack pointer.
    MachineFrame { error_code: bool },
    /// `UWOP_EPILOG`, in version 2.
    Epilogue { info: u8 },
    /// `UWOP_SAVE_XMM128`, `UWOP_SAVE_XMM128_FAR`, `UWOP_SPARE_CODE`, and operation 6 of version 1: nothing that a walk
    /// restores.
    Nothing,
}

/// An operation and the offset into the prologue at which it has been executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) offset: u8,
    pub(super) operation: Operation,
}

/// Decodes slots; an item is `None`, and the last, where an operation is unknown or cut off.
#[derive(Clone, Debug)]
pub(super) struct Codes<'d> {
    version: u8,
    slots: &'d [[u8; 2]],
}

impl Iterator for Codes<'_> {
    type Item = Option<Code>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&[offset, operation], rest) = self.slots.split_first()?;
        let info = operation >> 4;
        let short = || rest.first().map(|&operand| u32::from(u16::from_le_bytes(operand)));
        let long = || Some(u32::from_le_bytes(*rest.as_flattened().first_chunk()?));
        let decoded = match operation & 15 {
            0 => Some((0, Operation::Push { register: info })),
            1 if info == 0 => short().map(|size| (1, Operation::Allocate { size: size * 8 })),
            1 if info == 1 => long().map(|size| (2, Operation::Allocate { size })),
            2 => Some((0, Operation::Allocate { size: u32::from(info) * 8 + 8 })),
            3 => Some((0, Operation::SetFrameRegister { offset: None })),
            4 => short().map(|offset| (1, Operation::Save { register: info, offset: offset * 8 })),
            5 => long().map(|offset| (2, Operation::Save { register: info, offset })),
            6 if self.version == 2 => Some((0, Operation::Epilogue { info })),
            7 | 9 => long().map(|_| (2, Operation::Nothing)),
            6 | 8 => short().map(|_| (1, Operation::Nothing)),
            // One that reaches too far makes a row that is unsupported.
            11 => long().map(|units| {
                let offset = Some(units.saturating_mul(16));
                (2, Operation::SetFrameRegister { offset })
            }),
            10 if info < 2 => Some((0, Operation::MachineFrame { error_code: info == 1 })),
            _ => None,
        };
        self.slots = decoded.and_then(|(operands, _)| rest.get(operands..)).unwrap_or_default();
        Some(decoded.map(|(_, operation)| Code { offset, operation }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotnet_sets_a_frame_register_farther_from_the_stack_pointer() {
        // `UWOP_SET_FPREG_LARGE` of 0x1230 bytes behind offset 9, and `UWOP_PUSH_NONVOL` of rbp behind offset 1.
        let slots = [[9, 11], [0x23, 0x01], [0, 0], [1, 5 << 4]];
        let codes: Option<Vec<Code>> = Codes { version: 1, slots: &slots }.collect();
        let set = Code { offset: 9, operation: Operation::SetFrameRegister { offset: Some(0x1230) } };
        let push = Code { offset: 1, operation: Operation::Push { register: 5 } };
        assert_eq!(codes, Some(vec![set, push]));
        let codes: Option<Vec<Code>> = Codes { version: 1, slots: &slots[..2] }.collect();
        assert_eq!(codes, None, "cut off");
    }
}
