//! The registers of aarch64 that a walk restores: x0 to x30, the stack pointer and the program counter; and which bits of
//! a return address are the address.

use super::Aarch64;
use super::quick::Core;
use crate::table::RegisterNumber;

/// Registers that have rules; vector registers are not restored.
pub(super) const REGISTER_COUNT: usize = 33;
/// `x0`, which has a function's first argument and what it returns: none but a few functions of runtimes keep it for their caller.
pub(crate) const FIRST_ARGUMENT: RegisterNumber = 0;
/// `x29`, which points to the frame record: the caller's `x29`, and above it the return address.
pub(crate) const FP: RegisterNumber = 29;
/// `x30`, the column of the return address.
pub(crate) const LR: RegisterNumber = 30;
pub(crate) const SP: RegisterNumber = 31;
pub(crate) const PC: RegisterNumber = 32;

/// Which bits of a signed return address are the address; the others hold its pointer authentication code.
///
/// The code fills what the size of virtual addresses leaves (Arm Architecture Reference Manual, "Pointer
/// authentication"), and that size is a matter of the kernel. Addresses of user space have zeros there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnAddressMask(u64);

impl ReturnAddressMask {
    /// For addresses of `bits` bits: 39, 42, 48 or 52 on Linux, 48 by far the most often. The kernel tells it by
    /// `NT_ARM_PAC_MASK`, whose set bits are those that are none of the address.
    pub const fn of_address_bits(bits: u32) -> Self {
        ReturnAddressMask(if bits < 64 { (1 << bits) - 1 } else { u64::MAX })
    }

    /// For a process of which only the mappings are known: `highest` is the last address of its highest executable
    /// mapping, beyond which no return address can lead.
    pub const fn of_highest_address(highest: u64) -> Self {
        Self::of_address_bits(u64::BITS - highest.leading_zeros())
    }

    #[inline]
    pub(super) fn strip(self, address: u64) -> u64 {
        address & self.0
    }
}

/// The registers by DWARF number, and what is known of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    numbered: [u64; REGISTER_COUNT],
    pub(super) mask: ReturnAddressMask,
    /// See [`Core::exact_sp`].
    pub(super) exact_sp: bool,
}

impl AsRef<[u64]> for Values {
    fn as_ref(&self) -> &[u64] {
        &self.numbered
    }
}

impl AsMut<[u64]> for Values {
    fn as_mut(&mut self) -> &mut [u64] {
        &mut self.numbered
    }
}

impl Values {
    pub(super) fn get(&self, register: RegisterNumber) -> u64 {
        self.numbered.get(usize::from(register)).copied().unwrap_or_default()
    }

    pub(super) fn with_exact_sp(self) -> Self {
        Values { exact_sp: true, ..self }
    }

    pub(super) fn set(&mut self, register: RegisterNumber, value: u64) {
        if let Some(slot) = self.numbered.get_mut(usize::from(register)) {
            *slot = value;
        }
    }
}

/// A thread's registers at one point.
pub type Registers = crate::Registers<Aarch64>;

impl Registers {
    /// `general` are x0 to x30.
    pub fn new(pc: u64, sp: u64, general: [u64; 31], mask: ReturnAddressMask) -> Self {
        let mut numbered = [0; REGISTER_COUNT];
        numbered[..31].copy_from_slice(&general);
        let mut values = Values { numbered, mask, exact_sp: true };
        values.set(SP, sp);
        values.set(PC, pc);
        Registers { values }
    }

    /// The frame pointer, `x29`.
    pub fn fp(&self) -> u64 {
        self.values.get(FP)
    }

    /// The link register, `x30`.
    pub fn lr(&self) -> u64 {
        self.values.get(LR)
    }
}

pub(super) fn core(values: &Values) -> Core {
    Core {
        ip: values.get(PC),
        sp: values.get(SP),
        fp: values.get(FP),
        lr: values.get(LR),
        mask: values.mask,
        exact_sp: values.exact_sp,
    }
}

pub(super) fn set_core(values: &mut Values, core: Core) {
    values.set(PC, core.ip);
    values.set(SP, core.sp);
    values.set(FP, core.fp);
    values.set(LR, core.lr);
    values.exact_sp = core.exact_sp;
}

#[cfg(test)]
mod tests {
    use super::ReturnAddressMask;

    #[test]
    fn codes_are_stripped_and_addresses_kept() {
        let address = 0xffff_8abc_1234;
        for mask in [
            ReturnAddressMask::of_address_bits(48),
            ReturnAddressMask::of_address_bits(52),
            ReturnAddressMask::of_highest_address(0xffff_9000_0fff),
        ] {
            assert_eq!(mask.strip(address), address);
            assert_eq!(mask.strip(address | 0x5a70 << 48), address);
        }
        // A process that is mapped low has more bits for the code.
        assert_eq!(
            ReturnAddressMask::of_highest_address(0x55_0000_3fff).strip(0x7f00_0055_0000_1234),
            0x55_0000_1234
        );
        assert_eq!(ReturnAddressMask::of_address_bits(64).strip(u64::MAX), u64::MAX);
        assert_eq!(ReturnAddressMask::of_highest_address(0).strip(0x1234), 0);
    }
}
