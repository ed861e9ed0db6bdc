//! The quick form of a rule: what most code needs to get from (pc, sp, x29, x30) to the caller's, in 8 bytes.

use super::registers::FIRST_ARGUMENT;
use super::{FP, LR, SP};
use crate::table::{CfaRule, RegisterNumber, RegisterRule, RuleView};

/// What the CFA is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Sp,
    Fp,
}

/// Where the caller's value of a register is: `*(cfa - 8n)`, or still in the register if `n` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u16);

impl Slot {
    /// The distance below the CFA in bytes; `None` if the register has the value.
    #[inline]
    pub(super) fn below_cfa(self) -> Option<u64> {
        (self.0 != 0).then(|| u64::from(self.0) * 8)
    }

    /// `raised` is by how much the CFA is above the rule's.
    fn of(rule: RegisterRule, raised: i32) -> Option<Self> {
        match rule {
            RegisterRule::Unspecified => Some(Slot(0)),
            RegisterRule::Offset(offset) => {
                let below = raised.checked_sub(offset).filter(|below| *below > 0 && below % 8 == 0)?;
                u16::try_from(below / 8).ok().map(Slot)
            }
            _ => None,
        }
    }
}

/// `cfa = base + 16n`, `(pc, sp, x29) = (*(cfa - link) or x30, cfa, *(cfa - frame) or x29)`, and `x30 = pc`, which the
/// call left there
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quick {
    pub(super) base: Base,
    /// The return address is signed.
    pub(super) signed: bool,
    /// In 16 bytes, to which a stack pointer is aligned.
    offset: u16,
    pub(super) frame: Slot,
    pub(super) link: Slot,
}

impl Quick {
    pub(super) fn of(rule: &RuleView<'_>) -> Option<Quick> {
        let CfaRule::RegisterOffset { register, offset } = rule.cfa else { return None };
        let base = base(register)?;
        let raised = uncounted(rule);
        let offset = offset.checked_add(raised)?;
        let offset = (offset % 16 == 0).then(|| u16::try_from(offset / 16).ok())??;
        let is_unusual = |register| rule.register(register) != RegisterRule::Unspecified;
        if rule.traits.return_address != LR || is_unusual(SP) || is_unusual(FIRST_ARGUMENT) {
            return None;
        }
        let (frame, link) = (Slot::of(rule.register(FP), raised)?, Slot::of(rule.register(LR), raised)?);
        Some(Quick { base, signed: rule.traits.signed, offset, frame, link })
    }

    /// In bytes.
    #[inline]
    pub(super) fn offset(self) -> u64 {
        u64::from(self.offset) * 16
    }

    /// Whether `x29` and `x30` are saved as a frame record.
    #[inline]
    pub(super) fn has_record(self) -> bool {
        self.link.0 != 0 && self.frame.0 == self.link.0.wrapping_add(1)
    }
}

/// How far above a rule's CFA the stack pointer of the caller is, if the return address is above it, too: glibc's
/// `_dl_runtime_resolve` does not count the 16 bytes that the linkage table pushed.
pub(super) fn uncounted(rule: &RuleView<'_>) -> i32 {
    match (rule.cfa, rule.register(LR)) {
        (CfaRule::RegisterOffset { register, offset: 0.. }, RegisterRule::Offset(offset @ 0..))
            if base(register).is_some() =>
        {
            offset.checked_add(8 + 15).map_or(0, |end| end & !15)
        }
        _ => 0,
    }
}

fn base(register: RegisterNumber) -> Option<Base> {
    match register {
        SP => Some(Base::Sp),
        FP => Some(Base::Fp),
        _ => None,
    }
}
