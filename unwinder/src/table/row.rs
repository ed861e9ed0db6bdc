//! What CFI says about one address: how to find the CFA, and where each register's value of the caller is.
//!
//! Terms and semantics are those of DWARF 5, section 6.4. A register without a rule keeps its value, as in libgcc:
//! `same_value` and `undefined` of any register but the return address are therefore one and the same here, and only
//! what changes a register is kept.

use crate::arch::REGISTER_COUNT;

/// A DWARF register number below [`REGISTER_COUNT`].
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

/// A row while its program runs: a rule for every register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) cfa: CfaRule,
    pub(crate) registers: [RegisterRule; REGISTER_COUNT],
}

impl Row {
    pub(crate) const EMPTY: Row =
        Row { cfa: CfaRule::Unsupported, registers: [RegisterRule::Unspecified; REGISTER_COUNT] };
}
