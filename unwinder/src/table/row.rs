//! What CFI says about one address: how to find the CFA, and where each register's value of the caller is.
//!
//! Terms and semantics are those of DWARF 5, section 6.4. A register without a rule keeps its value, as in libgcc:
//! `same_value` and `undefined` of any register but the return address are therefore one and the same here, and only
//! what changes a register is kept.

use super::rules::Saved;
use crate::Architecture;

/// A DWARF register number below the architecture's count.
pub(crate) type RegisterNumber = u8;

/// Bytes of an expression inside of the unwind section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpressionSpan {
    pub(crate) offset: u32,
    pub(crate) length: u16,
}

impl ExpressionSpan {
    /// The expression's bytes; empty for a span that is not of this section.
    pub(crate) fn bytes(self, section: &[u8]) -> &[u8] {
        let start = self.offset as usize;
        section.get(start..start + usize::from(self.length)).unwrap_or_default()
    }
}

/// How to find the CFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CfaRule {
    /// Nothing usable: not defined, or a program that went wrong before this row.
    Unsupported,
    /// `cfa = register + offset`
    RegisterOffset { register: RegisterNumber, offset: i32 },
    /// `cfa = expression()`
    Expression(ExpressionSpan),
}

/// Where the caller's value of a register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegisterRule {
    /// No rule.
    Unspecified,
    /// It can't be recovered; as the rule of the return address, it marks the root.
    Undefined,
    /// It was not changed.
    SameValue,
    /// `*(cfa + n)`
    Offset(i32),
    /// `cfa + n`
    ValOffset(i32),
    /// `register`, as this frame has it
    Register(RegisterNumber),
    /// `*expression(cfa)`
    Expression(ExpressionSpan),
    /// `expression(cfa)`
    ValExpression(ExpressionSpan),
}

/// A row while its program runs: the rule of every register that changes, and what finds the same row again quickly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<A: Architecture> {
    pub(crate) cfa: CfaRule,
    /// By register; [`Saved::NONE`] where it keeps its value.
    saved: A::Saved,
    /// Whether the return address is signed.
    pub(crate) signed: bool,
    /// How many change.
    count: u8,
    /// The hashes of all that change, combined so that one can be taken out again.
    hash: u64,
}

impl<A: Architecture> Row<A> {
    pub(crate) const EMPTY: Self =
        Row { cfa: CfaRule::Unsupported, saved: A::NOTHING_SAVED, signed: false, count: 0, hash: 0 };

    /// Sets the rule of a register; registers that a walk does not restore (vector registers) are none of it.
    #[inline]
    pub(crate) fn set(&mut self, register: u64, saved: Saved) {
        let Some(slot) =
            usize::try_from(register).ok().and_then(|number| self.saved.as_mut().get_mut(number))
        else {
            return;
        };
        self.count = self.count - u8::from(*slot != Saved::NONE) + u8::from(saved != Saved::NONE);
        self.hash ^= slot.hash() ^ saved.hash();
        *slot = saved;
    }

    pub(crate) fn get(&self, register: u64) -> Saved {
        let slot = usize::try_from(register).ok().and_then(|number| self.saved.as_ref().get(number));
        slot.copied().unwrap_or(Saved::NONE)
    }

    /// All registers by their numbers, with [`Saved::NONE`] for those that don't change.
    pub(crate) fn all(&self) -> &[Saved] {
        self.saved.as_ref()
    }

    /// The registers that change, in the order of their numbers.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Saved> {
        self.saved.as_ref().iter().copied().filter(|&saved| saved != Saved::NONE)
    }

    /// Whether `saved`, each of another register, is all that changes.
    #[inline]
    pub(crate) fn has_just(&self, saved: &[Saved]) -> bool {
        saved.len() == usize::from(self.count)
            && saved.iter().all(|saved| self.get(saved.register().into()) == *saved)
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }
}
