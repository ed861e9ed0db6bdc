//! What a function's first instructions do to the stack, which says where the caller is found while the function runs.

use crate::StackMemory;
use crate::arch::Core;
use crate::word::Word;

/// Bytes of a function that are looked at.
pub(crate) const LONGEST_PROLOGUE: usize = 96;

/// What a function has done to the stack since its first instruction. Distances count down from where the stack pointer was
/// then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prologue {
    /// By how many bytes it lowered the stack pointer.
    pub(crate) lowered: u64,
    /// Where the return address is; `None` while it is in a register.
    pub(crate) return_address: Option<u64>,
    /// Where it put the caller's frame pointer; `None` if that is still in the register.
    pub(crate) frame_pointer: Option<u64>,
    /// Whether it then aligned the stack pointer, which is lower by an unknown number of bytes since.
    pub(crate) realigned: bool,
}

impl Prologue {
    /// Where the stack pointer was at the first instruction, if the return address is in `slot`.
    pub(crate) fn entry_by_slot(&self, slot: u64, word: Word) -> Option<u64> {
        Some(word.wrap(slot.wrapping_add(self.return_address?)))
    }

    /// The caller, with the stack pointer at `entry` at the first instruction, and `word` for its return address.
    pub(crate) fn caller<C: Core>(
        &self,
        core: C,
        word: u64,
        entry: u64,
        size: Word,
        stack: &impl StackMemory,
    ) -> Option<C> {
        let frame_pointer = match self.frame_pointer {
            Some(below) => size.read(stack, size.wrap(entry.wrapping_sub(below))).ok()?,
            None => core.frame_pointer(),
        };
        core.returned(word, entry, frame_pointer)
    }

    /// Where the stack pointer was at the first instruction, if `slot` has the return address of the frame record that the
    /// function made: the caller's frame pointer is just below.
    pub(crate) fn entry_by_record(&self, slot: u64, word: Word) -> Option<u64> {
        let below = self.return_address?;
        let has_record = self.frame_pointer == Some(below.wrapping_add(word.bytes()));
        has_record.then(|| word.wrap(slot.wrapping_add(below)))
    }
}
