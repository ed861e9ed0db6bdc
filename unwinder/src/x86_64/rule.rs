//! The quick form of a rule: what most code needs to get from (ip, sp, bp) to the caller's, in 8 bytes.

use crate::arch::Machine;
use crate::table::{CfaRule, RegisterNumber, RegisterRule, RuleView};
use crate::word::Word;

/// Where the caller's `bp` is: `n` words below the CFA, or unchanged if `n` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedBase(u16);

impl SavedBase {
    const UNCHANGED: SavedBase = SavedBase(0);

    /// The distance below the CFA in bytes; `None` if the caller's `bp` is this frame's.
    #[inline]
    pub(crate) fn below_cfa(self, word: Word) -> Option<u64> {
        (self.0 != 0).then(|| u64::from(self.0) * word.bytes())
    }
}

/// How to get to the caller with `ip`, `sp` and `bp` alone, `w` being the size of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quick {
    /// `cfa = sp + offset`, `(ip, sp, bp) = (*(cfa - w), cfa, *(cfa - nw) or bp)`
    FromSp { offset: i32, base: SavedBase },
    /// `cfa = bp + offset`, `(ip, sp, bp) = (*(cfa - w), cfa, *(cfa - nw) or bp)`
    FromBp { offset: i32, base: SavedBase },
}

impl Quick {
    /// Of a rule of `A`, whose frame pointer is `bp`.
    pub(crate) fn of<A: Machine>(rule: &RuleView<'_>, bp: RegisterNumber) -> Option<Quick> {
        let CfaRule::RegisterOffset { register, offset } = rule.cfa else { return None };
        let just_below = RegisterRule::Offset(-(A::WORD.bytes() as i32));
        let is_usual = rule.traits.return_address == A::IP
            && rule.register(A::IP) == just_below
            && rule.register(A::SP) == RegisterRule::Unspecified;
        let base = saved_base(rule.register(bp), A::WORD.bytes() as i32).filter(|_| is_usual)?;
        if register == A::SP {
            // A function that popped its return address is stepped out of in full.
            return (offset > 0).then_some(Quick::FromSp { offset, base });
        }
        (register == bp).then_some(Quick::FromBp { offset, base })
    }
}

fn saved_base(rule: RegisterRule, word: i32) -> Option<SavedBase> {
    match rule {
        RegisterRule::Unspecified => Some(SavedBase::UNCHANGED),
        RegisterRule::Offset(offset) if offset < 0 && offset % word == 0 => {
            u16::try_from(offset.unsigned_abs() / word.unsigned_abs()).ok().map(SavedBase)
        }
        _ => None,
    }
}
