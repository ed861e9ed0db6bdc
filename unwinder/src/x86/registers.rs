//! The registers of x86 that a walk restores: eight general-purpose ones and the instruction pointer.

use super::X86;
use crate::arch::Core as _;
use crate::table::RegisterNumber;
use crate::x86_64::quick::Core;

/// Registers that have rules; those of the floating-point unit, vector registers and flags are not restored.
pub(super) const REGISTER_COUNT: usize = 9;
pub(super) const SP: RegisterNumber = 4;
pub(super) const BP: RegisterNumber = 5;
/// The column of the return address: the caller's instruction pointer.
pub(super) const RETURN_ADDRESS: RegisterNumber = 8;

/// By DWARF number.
pub(super) type Values = [u64; REGISTER_COUNT];

/// A thread's registers at one point.
pub type Registers = crate::Registers<X86>;

impl Registers {
    /// `gprs` in DWARF order: eax, ecx, edx, ebx, esp, ebp, esi, edi.
    pub fn new(ip: u32, gprs: [u32; 8]) -> Self {
        let mut values = [ip.into(); REGISTER_COUNT];
        values[..8].copy_from_slice(&gprs.map(u64::from));
        Registers { values }
    }

    /// The frame pointer, `ebp` (which code may use for anything).
    pub fn bp(&self) -> u64 {
        self.values[BP as usize]
    }
}

pub(super) fn core(values: &Values) -> Core<X86> {
    Core::new(values[RETURN_ADDRESS as usize], values[SP as usize], values[BP as usize])
}

pub(super) fn set_core(values: &mut Values, core: Core<X86>) {
    values[RETURN_ADDRESS as usize] = core.ip();
    values[SP as usize] = core.sp();
    values[BP as usize] = core.frame_pointer();
}
