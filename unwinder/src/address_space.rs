//! What the walk asks about an address: which mapping it lies in, and that mapping's unwind table.

use std::num::NonZeroU64;

use crate::x86_64::X86_64;
use crate::{Architecture, UnwindTable};

/// Executable memory of a process, at one moment.
pub trait AddressSpace<A: Architecture = X86_64> {
    /// The executable mapping that contains `address`; `None` if there is none.
    ///
    /// Called when an address leaves the mapping of the frame before, so a binary search is quick enough.
    fn lookup(&self, address: u64) -> Option<Mapping<'_, A>>;

    /// A number that stands for this address space as it is now: no other address space that the same
    /// [`crate::Unwinder`] walks has it, and it changes whenever a mapping does. A walk then reuses what
    /// [`Self::lookup`] told an earlier walk.
    ///
    /// `None`, as here by default, has each walk ask anew.
    fn generation(&self) -> Option<NonZeroU64> {
        None
    }

    /// Fills `buffer` with the code at `address` and says how many bytes of it could be had; none, as here by default,
    /// where the caller has no code.
    ///
    /// Asked only where there is no rule, as in a JIT compiler's code: whether an instruction is a call tells a return
    /// address from other words on the stack.
    ///
    /// What it says is remembered as long as [`Self::generation`] stays the same. Code that is replaced meanwhile is looked
    /// at again after [`crate::Unwinder::forget_code`].
    fn code(&self, _address: u64, _buffer: &mut [u8]) -> usize {
        0
    }
}

/// An executable mapping.
#[derive(Clone, Copy, Debug)]
pub struct Mapping<'a, A: Architecture = X86_64> {
    /// The first address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// Address in the process minus address as linked, wrapping: what was added to each `p_vaddr` at load.
    pub bias: u64,
    /// The file's unwind rules; `None` for executable memory that has none (JIT code, an unreadable file).
    pub table: Option<&'a UnwindTable<A>>,
}

impl<A: Architecture> Mapping<'_, A> {
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}
