//! A thread's registers, whatever its architecture; how they are made is in each architecture's `registers.rs`.

use crate::Architecture;
use crate::arch::Machine;
use crate::table::RegisterNumber;
use crate::x86_64::X86_64;

type ValuesOf<A> = <A as Machine>::Values;

/// A thread's registers at one point: those that a walk restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers<A: Architecture = X86_64> {
    pub(crate) values: ValuesOf<A>,
}

impl<A: Architecture> Registers<A> {
    /// The instruction pointer.
    pub fn ip(&self) -> u64 {
        self.get(A::IP.into()).unwrap_or_default()
    }

    /// The stack pointer.
    pub fn sp(&self) -> u64 {
        self.get(A::SP.into()).unwrap_or_default()
    }

    /// The register with this DWARF number, the instruction pointer's being the one behind the general-purpose
    /// registers; `None` beyond it.
    pub fn get(&self, register: u16) -> Option<u64> {
        self.values.as_ref().get(usize::from(register)).copied()
    }

    pub(crate) fn core(&self) -> A::Core {
        A::core(&self.values)
    }

    /// These registers with those of `core`.
    pub(crate) fn with_core(&self, core: A::Core) -> Self {
        let mut registers = *self;
        A::set_core(&mut registers.values, core);
        registers
    }

    pub(crate) fn set(&mut self, register: RegisterNumber, value: u64) {
        if let Some(slot) = self.values.as_mut().get_mut(usize::from(register)) {
            *slot = value;
        }
    }
}
