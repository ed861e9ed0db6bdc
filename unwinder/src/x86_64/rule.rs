//! The quick form of a rule: what most code needs to get from (ip, sp, bp) to the caller's, in 8 bytes.

use super::{BP, RETURN_ADDRESS, SP};
use crate::table::{CfaRule, RegisterRule, RuleView};

/// Where the caller's `bp` is: `*(cfa - 8n)`, or unchanged if `n` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedBase(u16);

impl SavedBase {
    const UNCHANGED: SavedBase = SavedBase(0);

    /// The distance below the CFA in bytes; `None` if the caller's `bp` is this frame's.
    #[inline]
    pub(crate) fn below_cfa(self) -> Option<u64> {
        (self.0 != 0).then(|| u64::from(self.0) * 8)
    }
}

/// How to get to the caller with `ip`, `sp` and `bp` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quick {
    /// `cfa = sp + offset`, `(ip, sp, bp) = (*(cfa - 8), cfa, *(cfa - 8n) or bp)`
    FromSp { offset: i32, base: SavedBase },
    /// `cfa = bp + offset`, `(ip, sp, bp) = (*(cfa - 8), cfa, *(cfa - 8n) or bp)`
    FromBp { offset: i32, base: SavedBase },
}

impl Quick {
    pub(super) fn of(rule: &RuleView<'_>) -> Option<Quick> {
        let CfaRule::RegisterOffset { register, offset } = rule.cfa else { return None };
        let is_usual = rule.traits.return_address == RETURN_ADDRESS
            && rule.register(RETURN_ADDRESS) == RegisterRule::Offset(-8)
            && rule.register(SP) == RegisterRule::Unspecified;
        let base = saved_base(rule.register(BP)).filter(|_| is_usual)?;
        match register {
            SP => Some(Quick::FromSp { offset, base }),
            BP => Some(Quick::FromBp { offset, base }),
            _ => None,
        }
    }
}

fn saved_base(rule: RegisterRule) -> Option<SavedBase> {
    match rule {
        RegisterRule::Unspecified => Some(SavedBase::UNCHANGED),
        RegisterRule::Offset(offset) if offset < 0 && offset % 8 == 0 => {
            u16::try_from(offset.unsigned_abs() / 8).ok().map(SavedBase)
        }
        _ => None,
    }
}
