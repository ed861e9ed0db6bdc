//! The registers of x86-64 that a walk restores: sixteen general-purpose ones and the instruction pointer.

use super::X86_64;
use super::quick::Core;
use crate::arch::Core as _;
use crate::table::RegisterNumber;

/// Registers that have rules; vector registers and flags are not restored.
pub(super) const REGISTER_COUNT: usize = 17;
pub(super) const BP: RegisterNumber = 6;
pub(crate) const SP: RegisterNumber = 7;
/// The column of the return address: the caller's instruction pointer.
pub(crate) const RETURN_ADDRESS: RegisterNumber = 16;

/// By DWARF number.
pub(super) type Values = [u64; REGISTER_COUNT];

/// A thread's registers at one point.
pub type Registers = crate::Registers<X86_64>;

impl Registers {
    /// `gprs` in DWARF order: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15.
    pub fn new(ip: u64, gprs: [u64; 16]) -> Self {
        let mut values = [ip; REGISTER_COUNT];
        values[..16].copy_from_slice(&gprs);
        Registers { values }
    }

    /// The frame pointer, `rbp` (which code may use for anything).
    pub fn bp(&self) -> u64 {
        self.values[BP as usize]
    }
}

pub(super) fn core(values: &Values) -> Core<X86_64> {
    Core::new(values[RETURN_ADDRESS as usize], values[SP as usize], values[BP as usize])
}

pub(super) fn set_core(values: &mut Values, core: Core<X86_64>) {
    values[RETURN_ADDRESS as usize] = core.ip();
    values[SP as usize] = core.sp();
    values[BP as usize] = core.frame_pointer();
}
