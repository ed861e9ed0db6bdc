//! A quick step: from (ip, sp, bp) to the caller's, by the rules that nearly all code has, and by guesses where there
//! is no rule.

use std::hint::cold_path;

use super::rule::{Quick, SavedBase};
use crate::memory::read_slot;
use crate::prologue::Prologue;
use crate::{StackMemory, StopReason, arch};

/// The registers that a quick walk follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Core {
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) bp: u64,
}

impl Core {
    /// `cfa = from + offset`, `(ip, sp, bp) = (*(cfa - 8), cfa, *(cfa - 8n) or bp)`
    #[inline]
    fn step<M: StackMemory>(
        self,
        from: u64,
        offset: i32,
        base: SavedBase,
        stack: &M,
    ) -> Result<Core, StopReason> {
        let cfa = from.wrapping_add_signed(offset.into());
        if cfa <= self.sp {
            return Err(StopReason::CfaDidNotGrow);
        }
        let ip = stack.read_u64(cfa.wrapping_sub(8))?;
        let bp = match base.below_cfa() {
            None => self.bp,
            Some(below) => read_slot(stack, cfa.wrapping_sub(below))?.unwrap_or(self.bp),
        };
        Ok(Core { ip, sp: cfa, bp })
    }
}

impl arch::Core for Core {
    type Quick = Quick;

    #[inline]
    fn ip(self) -> u64 {
        self.ip
    }

    #[inline]
    fn sp(self) -> u64 {
        self.sp
    }

    fn frame_pointer(self) -> u64 {
        self.bp
    }

    #[inline]
    fn caller<M: StackMemory>(self, rule: Quick, stack: &M) -> Result<Core, StopReason> {
        match rule {
            Quick::FromSp { offset, base } => self.step(self.sp, offset, base, stack),
            Quick::FromBp { offset, base } => {
                // A branch, not a choice of one of two values: what is above `sp` need not wait for `bp` then.
                cold_path();
                self.step(self.bp, offset, base, stack)
            }
        }
    }

    /// `(ip, sp, bp) = (*(bp + 8), bp + 16, *bp)`
    fn by_frame_pointer<M: StackMemory>(self, stack: &M) -> Option<Core> {
        if self.bp < self.sp || !self.bp.is_multiple_of(8) {
            return None;
        }
        let bp = stack.read_u64(self.bp).ok()?;
        let ip = stack.read_u64(self.bp.checked_add(8)?).ok()?;
        Some(Core { ip, sp: self.bp.checked_add(16)?, bp })
    }

    /// `(ip, sp, bp) = (*sp, sp + 8, bp)`
    fn by_entry<M: StackMemory>(self, stack: &M) -> Option<Core> {
        let ip = stack.read_u64(self.sp).ok()?;
        Some(Core { ip, sp: self.sp.checked_add(8)?, bp: self.bp })
    }

    /// `(ip, sp, bp) = (*slot, slot + 8, *(slot - 8) or bp)`: below the return address lies the caller's `bp`, if this
    /// function pushed it first of all.
    fn by_slot<M: StackMemory>(self, slot: u64, word: u64, stack: &M) -> Option<Core> {
        let sp = slot.checked_add(8)?;
        let below = slot.checked_sub(8).filter(|&below| below >= self.sp);
        let pushed = below.and_then(|below| stack.read_u64(below).ok());
        // A frame pointer leads up the stack, and not out of it.
        let bp = pushed.filter(|&bp| bp >= sp && bp.is_multiple_of(8) && stack.read_u64(bp).is_ok());
        Some(Core { ip: word, sp, bp: bp.unwrap_or(self.bp) })
    }

    /// `(ip, sp, bp) = (word, entry + 8, *(entry - n) or bp)`
    fn by_prologue<M: StackMemory>(
        self,
        word: u64,
        entry: u64,
        prologue: Prologue,
        stack: &M,
    ) -> Option<Core> {
        let bp = prologue.callers_frame_pointer(entry, self.bp, stack)?;
        Some(Core { ip: word, sp: entry.checked_add(8)?, bp })
    }

    fn return_address(self, word: u64) -> u64 {
        word
    }
}
