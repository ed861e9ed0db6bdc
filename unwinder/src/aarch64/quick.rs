//! A quick step: from (pc, sp, x29, x30) to the caller's, by the rules that nearly all code has, and by guesses where
//! there is no rule.

use super::registers::ReturnAddressMask;
use super::rule::{Base, Quick};
use crate::word::Word;
use crate::{StackMemory, StopReason, arch};

/// The registers that a quick walk follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Core {
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) fp: u64,
    /// In any frame that has called another: `ip`.
    pub(super) lr: u64,
    pub(super) mask: ReturnAddressMask,
    /// A frame record lies anywhere in its frame, so a guess by one gives no more than the least that `sp` can be.
    pub(super) exact_sp: bool,
}

impl Core {
    /// The caller that a guess leads to; its return address may be signed.
    fn guessed(self, address: u64, sp: u64, fp: u64, exact_sp: bool) -> Core {
        let ip = self.mask.strip(address);
        Core { ip, sp, fp, lr: ip, exact_sp, ..self }
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

    #[inline]
    fn frame_pointer(self) -> u64 {
        self.fp
    }

    #[inline]
    fn has_exact_sp(self) -> bool {
        self.exact_sp
    }

    #[inline]
    fn caller<M: StackMemory>(self, rule: Quick, stack: &M) -> Result<Core, StopReason> {
        let cfa = match (rule.base, rule.frame.below_cfa()) {
            // Within a function that keeps its record, `x29` points to it.
            (Base::Sp, Some(below)) if !self.exact_sp && rule.has_record() => self.fp.wrapping_add(below),
            (Base::Sp, _) => self.sp.wrapping_add(rule.offset()),
            (Base::Fp, _) => self.fp.wrapping_add(rule.offset()),
        };
        let ip = match rule.link.below_cfa() {
            Some(below) if cfa > self.sp => stack.read_u64(cfa.wrapping_sub(below))?,
            None if cfa >= self.sp && self.lr != self.ip => self.lr,
            _ => return Err(StopReason::CfaDidNotGrow),
        };
        let ip = if rule.signed { self.mask.strip(ip) } else { ip };
        let fp = match rule.frame.below_cfa() {
            None => self.fp,
            Some(below) => Word::Eight.read_slot(stack, cfa.wrapping_sub(below))?.unwrap_or(self.fp),
        };
        Ok(Core { ip, sp: cfa, fp, lr: ip, exact_sp: true, ..self })
    }

    /// `(pc, sp, x29) = (*(x29 + 8), x29 + 16 or more, *x29)`
    fn by_frame_pointer<M: StackMemory>(self, stack: &M) -> Option<Core> {
        if self.fp < self.sp || !self.fp.is_multiple_of(8) {
            return None;
        }
        let fp = stack.read_u64(self.fp).ok()?;
        let address = stack.read_u64(self.fp.checked_add(8)?).ok()?;
        Some(self.guessed(address, self.fp.checked_add(16)?, fp, false))
    }

    /// `(pc, sp, x29) = (x30, sp, x29)`
    fn by_entry<M: StackMemory>(self, _stack: &M) -> Option<Core> {
        let caller = self.guessed(self.lr, self.sp, self.fp, true);
        (caller.ip != self.ip).then_some(caller)
    }

    /// `(pc, sp, x29) = (*slot, slot + 8 or more, *(slot - 8) or x29)`: with the return address the caller's `x29` is
    /// saved, if this function saves it at all.
    fn by_slot<M: StackMemory>(self, slot: u64, word: u64, stack: &M) -> Option<Core> {
        let sp = slot.checked_add(8)?;
        let below = slot.checked_sub(8).filter(|&below| below >= self.sp);
        let saved = below.and_then(|below| stack.read_u64(below).ok());
        // A frame pointer leads up the stack, and not out of it.
        let fp = saved.filter(|&fp| fp >= sp && fp.is_multiple_of(8) && stack.read_u64(fp).is_ok());
        Some(self.guessed(word, sp, fp.unwrap_or(self.fp), false))
    }

    /// `(pc, sp, x29) = (word, entry, x29)`
    #[inline]
    fn returned(self, word: u64, entry: u64, fp: u64) -> Option<Core> {
        Some(self.guessed(word, entry, fp, true))
    }

    fn return_address(self, word: u64) -> u64 {
        self.mask.strip(word)
    }
}
