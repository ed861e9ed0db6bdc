//! A quick step: from (ip, sp, bp) to the caller's, by the rules that nearly all code has, and by guesses where there
//! is no rule.

use std::hint::cold_path;
use std::marker::PhantomData;

use super::rule::{Quick, SavedBase};
use crate::arch::{self, Machine};
use crate::{StackMemory, StopReason};

/// The registers that a quick walk follows, on an architecture with the words of `A`, whose size is `w` below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Core<A> {
    ip: u64,
    sp: u64,
    bp: u64,
    architecture: PhantomData<A>,
}

impl<A: Machine> Core<A> {
    #[inline]
    pub(crate) fn new(ip: u64, sp: u64, bp: u64) -> Self {
        Core { ip, sp, bp, architecture: PhantomData }
    }

    /// `cfa = from + offset`, `(ip, sp, bp) = (*(cfa - w), cfa, *(cfa - nw) or bp)`
    #[inline]
    fn step<M: StackMemory>(
        self,
        from: u64,
        offset: i32,
        base: SavedBase,
        stack: &M,
    ) -> Result<Self, StopReason> {
        let cfa = A::WORD.offset(from, offset.into());
        if cfa <= self.sp {
            return Err(StopReason::CfaDidNotGrow);
        }
        let ip = A::WORD.read(stack, A::WORD.wrap(cfa.wrapping_sub(A::WORD.bytes())))?;
        let bp = match base.below_cfa(A::WORD) {
            None => self.bp,
            Some(below) => {
                A::WORD.read_slot(stack, A::WORD.wrap(cfa.wrapping_sub(below)))?.unwrap_or(self.bp)
            }
        };
        Ok(Core::new(ip, cfa, bp))
    }
}

impl<A: Machine> Core<A> {
    /// The caller's stack pointer, if this function realigned its own. GCC has it push a copy of its return address, on
    /// top of which `sp` is and `bp` is saved, and before other registers or behind them the address behind the true one.
    fn before_realignment<M: StackMemory>(self, sp: u64, return_address: u64, stack: &M) -> Option<u64> {
        /// The registers that a function may save.
        const SAVED: u64 = 6;
        const LARGEST_ALIGNMENT: u64 = 64;
        let word = A::WORD.bytes();
        (1..=SAVED).find_map(|number| {
            let slot = self.bp.checked_sub(number * word).filter(|&slot| slot >= self.sp)?;
            let saved = A::WORD.read(stack, slot).ok()?;
            let distance = saved.checked_sub(sp).filter(|&distance| distance <= LARGEST_ALIGNMENT)?;
            let is_behind = distance > 0 && distance.is_multiple_of(word);
            let is_true = || A::WORD.read(stack, saved.wrapping_sub(word)) == Ok(return_address);
            (is_behind && is_true()).then_some(saved)
        })
    }
}

impl<A: Machine> arch::Core for Core<A> {
    type Quick = Quick;

    #[inline]
    fn ip(self) -> u64 {
        self.ip
    }

    #[inline]
    fn sp(self) -> u64 {
        self.sp
    }

    #[inline]
    fn frame_pointer(self) -> u64 {
        self.bp
    }

    #[inline]
    fn caller<M: StackMemory>(self, rule: Quick, stack: &M) -> Result<Self, StopReason> {
        match rule {
            Quick::FromSp { offset, base } => self.step(self.sp, offset, base, stack),
            Quick::FromBp { offset, base } => {
                // A branch, not a choice of one of two values: what is above `sp` need not wait for `bp` then.
                cold_path();
                self.step(self.bp, offset, base, stack)
            }
        }
    }

    /// `(ip, sp, bp) = (*(bp + w), bp + 2w, *bp)`, or a larger `sp` in a function that realigned its stack
    fn by_frame_pointer<M: StackMemory>(self, stack: &M) -> Option<Self> {
        if self.bp < self.sp || !self.bp.is_multiple_of(A::WORD.bytes()) {
            return None;
        }
        let bp = A::WORD.read(stack, self.bp).ok()?;
        let slot = A::WORD.above(self.bp, 1)?;
        let ip = A::WORD.read(stack, slot).ok()?;
        let sp = A::WORD.above(slot, 1)?;
        Some(Core::new(ip, self.before_realignment(sp, ip, stack).unwrap_or(sp), bp))
    }

    /// `(ip, sp, bp) = (*sp, sp + w, bp)`
    fn by_entry<M: StackMemory>(self, stack: &M) -> Option<Self> {
        let ip = A::WORD.read(stack, self.sp).ok()?;
        Some(Core::new(ip, A::WORD.above(self.sp, 1)?, self.bp))
    }

    /// `(ip, sp, bp) = (*slot, slot + w, *(slot - w) or bp)`: below the return address lies the caller's `bp`, if this
    /// function pushed it first of all.
    fn by_slot<M: StackMemory>(self, slot: u64, word: u64, stack: &M) -> Option<Self> {
        let sp = A::WORD.above(slot, 1)?;
        let below = slot.checked_sub(A::WORD.bytes()).filter(|&below| below >= self.sp);
        let pushed = below.and_then(|below| A::WORD.read(stack, below).ok());
        // A frame pointer leads up the stack, and not out of it.
        let leads_up = |bp: u64| bp >= sp && bp.is_multiple_of(A::WORD.bytes());
        let bp = pushed.filter(|&bp| leads_up(bp) && A::WORD.read(stack, bp).is_ok());
        Some(Core::new(word, sp, bp.unwrap_or(self.bp)))
    }

    /// `(ip, sp, bp) = (word, entry + w, bp)`
    #[inline]
    fn returned(self, word: u64, entry: u64, bp: u64) -> Option<Self> {
        Some(Core::new(word, A::WORD.above(entry, 1)?, bp))
    }

    fn return_address(self, word: u64) -> u64 {
        word
    }
}
