//! Registers and user stack in a sample.

use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{Bytes, SampleType, Words};

/// Whose registers they are: `enum perf_sample_regs_abi`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegistersAbi(pub u64);

impl RegistersAbi {
    /// There are none: the thread has no user space, or was not interrupted in a way that keeps them.
    pub const NONE: Self = Self(0);
    /// Those of a 32-bit process.
    pub const BITS_32: Self = Self(1);
    /// Those of a 64-bit process.
    pub const BITS_64: Self = Self(2);
}

/// Registers by the numbers that the architecture's `perf_regs.h` gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers<'a> {
    /// Whose they are.
    pub abi: RegistersAbi,
    mask: u64,
    values: Words<'a>,
}

impl<'a> Registers<'a> {
    /// Of the registers in `mask`, the lowest bit's first. `None` if there is not a value for each.
    pub fn new(abi: RegistersAbi, mask: u64, values: Words<'a>) -> Option<Self> {
        let mask = if abi == RegistersAbi::NONE { 0 } else { mask };
        (values.len() == mask.count_ones() as usize).then_some(Self { abi, mask, values })
    }

    /// A bit for each register there is.
    pub const fn mask(&self) -> u64 {
        self.mask
    }

    /// The value of the register with the number `bit`.
    pub fn get(&self, bit: u32) -> Option<u64> {
        let below = 1_u64.checked_shl(bit)? - 1;
        let is_there = self.mask >> bit & 1 != 0;
        is_there.then(|| self.values.get((self.mask & below).count_ones() as usize)).flatten()
    }

    /// Number and value of each register.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + use<'a> {
        let mut left = self.mask;
        self.values.iter().map(move |value| {
            let bit = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (bit, value)
        })
    }

    #[inline]
    pub(super) fn read(fields: &mut Fields<'a>, mask: u64) -> Option<Self> {
        let abi = RegistersAbi(fields.u64()?);
        let mask = if abi == RegistersAbi::NONE { 0 } else { mask };
        Some(Self { abi, mask, values: fields.words(u64::from(mask.count_ones()))? })
    }

    pub(super) fn write(
        &self,
        writer: &mut Writer<'_>,
        mask: u64,
        part: SampleType,
    ) -> Result<(), WriteError> {
        if self.abi != RegistersAbi::NONE && self.mask != mask {
            return Err(WriteError::Layout(part));
        }
        writer.u64(self.abi.0);
        writer.words(self.values);
        Ok(())
    }
}

/// A copy of the user stack, from the stack pointer up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserStack<'a> {
    /// All bytes of the record; what is behind [`Self::dyn_size`] was not copied and is of no meaning.
    pub data: Bytes<'a>,
    /// How many bytes were copied.
    pub dyn_size: u64,
}

impl<'a> UserStack<'a> {
    /// The bytes that were copied.
    pub fn copied(&self) -> Bytes<'a> {
        let len = usize::try_from(self.dyn_size).unwrap_or(usize::MAX);
        self.data.split_at_checked(len).map_or(self.data, |(copied, _)| copied)
    }

    #[inline]
    pub(super) fn read(fields: &mut Fields<'a>) -> Option<Self> {
        let size = fields.u64()?;
        if size == 0 {
            return Some(Self::default());
        }
        Some(Self { data: fields.bytes_of(size)?, dyn_size: fields.u64()? })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        let filled_up = self.data.len().next_multiple_of(8);
        writer.u64(filled_up as u64);
        if filled_up > 0 {
            writer.bytes(self.data);
            writer.zeros(filled_up - self.data.len());
            writer.u64(self.dyn_size);
        }
    }
}
