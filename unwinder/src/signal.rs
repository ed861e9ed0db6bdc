//! Signal frames without unwind information: musl's and Go's handlers return to code that has none, and does nothing but
//! have the kernel bring the interrupted registers back from the stack.

use crate::guess::code;
use crate::table::RegisterNumber;
use crate::{AddressSpace, Architecture, Registers, StackMemory, StopReason};

/// Room for the code that any architecture looks at.
pub(crate) const LONGEST_RETURN: usize = 16;

/// How the kernel's signal frames look on an architecture.
pub(crate) struct SignalFrame {
    /// Forms of the code that a handler returns to; at most [`LONGEST_RETURN`] bytes each.
    pub(crate) returns: &'static [&'static [u8]],
    /// Where each interrupted register is, in bytes above the stack pointer that this code starts with.
    pub(crate) registers: &'static [(RegisterNumber, u16)],
}

/// The interrupted registers, if the code at `address` returns from a signal's handler.
pub(crate) fn interrupted<A: Architecture>(
    space: &impl AddressSpace<A>,
    stack: &impl StackMemory,
    address: u64,
    registers: &Registers<A>,
) -> Option<Result<Registers<A>, StopReason>> {
    let is_return = |form: &&[u8]| {
        let mut buffer = [0; LONGEST_RETURN];
        let buffer = buffer.get_mut(..form.len());
        buffer.and_then(|buffer| code(space, address, buffer)).is_some_and(|code| code == *form)
    };
    A::SIGNAL_FRAME.returns.iter().any(is_return).then(|| {
        let mut interrupted = *registers;
        for &(register, above) in A::SIGNAL_FRAME.registers {
            let slot = registers.sp().wrapping_add(above.into());
            interrupted.set(register, stack.read_u64(slot)?);
        }
        Ok(interrupted)
    })
}
