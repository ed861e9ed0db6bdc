//! The registers of x86-64 that a walk restores: sixteen general-purpose ones and the instruction pointer.

use super::Core;
use crate::table::RegisterNumber;

/// Registers that have rules; vector registers and flags are not restored.
pub(crate) const REGISTER_COUNT: usize = 17;
pub(crate) const BP: RegisterNumber = 6;
pub(crate) const SP: RegisterNumber = 7;
/// The column of the return address: the caller's instruction pointer.
pub(crate) const RETURN_ADDRESS: RegisterNumber = 16;

/// A thread's registers at one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// By DWARF number.
    values: [u64; REGISTER_COUNT],
}

impl Registers {
    /// `gprs` in DWARF order: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15.
    pub fn new(ip: u64, gprs: [u64; 16]) -> Self {
        let mut values = [ip; REGISTER_COUNT];
        values[..16].copy_from_slice(&gprs);
        Registers { values }
    }

    /// The instruction pointer.
    pub fn ip(&self) -> u64 {
        self.values[RETURN_ADDRESS as usize]
    }

    /// The stack pointer, `rsp`.
    pub fn sp(&self) -> u64 {
        self.values[SP as usize]
    }

    /// The frame pointer, `rbp` (which code may use for anything).
    pub fn bp(&self) -> u64 {
        self.values[BP as usize]
    }

    /// The register with this DWARF number; `None` beyond 16.
    pub fn get(&self, register: u16) -> Option<u64> {
        self.values.get(usize::from(register)).copied()
    }

    pub(crate) fn core(&self) -> Core {
        Core { ip: self.ip(), sp: self.sp(), bp: self.bp() }
    }

    /// These registers with `core`'s `ip`, `sp` and `bp`.
    pub(crate) fn with_core(&self, core: Core) -> Self {
        let mut registers = *self;
        registers.set(RETURN_ADDRESS, core.ip);
        registers.set(SP, core.sp);
        registers.set(BP, core.bp);
        registers
    }

    pub(crate) fn set(&mut self, register: RegisterNumber, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(register)) {
            *slot = value;
        }
    }
}
