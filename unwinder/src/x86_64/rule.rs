//! The quick form of a rule: what most code needs to get from (ip, sp, bp) to the caller's, in 8 bytes.

use super::{BP, RETURN_ADDRESS, SP};
use crate::expression;
use crate::table::{CfaRule, RegisterRule, RuleId, RuleView};

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

/// How to get to the caller with `ip`, `sp` and `bp` alone; anything else names the rule in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// No rule covers the address.
    Missing,
    /// The outermost frame: the return address is undefined.
    Root,
    /// The rule has no usable form.
    Unsupported,
    /// `cfa = sp + offset`, `(ip, sp, bp) = (*(cfa - 8), cfa, *(cfa - 8n) or bp)`
    FromSp { offset: i32, base: SavedBase },
    /// `cfa = bp + offset`, `(ip, sp, bp) = (*(cfa - 8), cfa, *(cfa - 8n) or bp)`
    FromBp { offset: i32, base: SavedBase },
    /// Anything else: see the table's rule `id`.
    General {
        id: RuleId,
        /// It reads registers other than `ip`, `sp` and `bp`, which a quick walk does not restore.
        needs_all: bool,
    },
}

impl Rule {
    /// The quick form of the rule `id`.
    pub(crate) fn of(id: RuleId, rule: &RuleView<'_>) -> Rule {
        let return_address = rule.register(rule.traits.return_address);
        match (return_address, rule.cfa) {
            (_, CfaRule::Unsupported) | (RegisterRule::Unspecified | RegisterRule::SameValue, _) => {
                Rule::Unsupported
            }
            (RegisterRule::Undefined, _) => Rule::Root,
            (RegisterRule::Offset(-8), CfaRule::RegisterOffset { register, offset })
                if rule.traits.return_address == RETURN_ADDRESS && !rule.traits.signal =>
            {
                let general = Rule::General { id, needs_all: needs_all(rule) };
                let sp_is_cfa = rule.register(SP) == RegisterRule::Unspecified;
                match (register, saved_base(rule.register(BP))) {
                    (SP, Some(base)) if sp_is_cfa => Rule::FromSp { offset, base },
                    (BP, Some(base)) if sp_is_cfa => Rule::FromBp { offset, base },
                    _ => general,
                }
            }
            _ => Rule::General { id, needs_all: needs_all(rule) },
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

fn is_quick(register: u16) -> bool {
    [BP, SP, RETURN_ADDRESS].map(u16::from).contains(&register)
}

/// Whether the step to the caller's (ip, sp, bp) reads a register that is not one of them.
fn needs_all(rule: &RuleView<'_>) -> bool {
    let expression_needs =
        |span: crate::table::ExpressionSpan| !expression::reads_only(span.bytes(rule.section), is_quick);
    let cfa_needs = match rule.cfa {
        CfaRule::RegisterOffset { register, .. } => !is_quick(register.into()),
        CfaRule::Expression(span) => expression_needs(span),
        CfaRule::Unsupported => false,
    };
    let followed = [BP, SP, rule.traits.return_address];
    cfa_needs
        || rule.saved.iter().filter(|saved| followed.contains(&saved.register())).any(|saved| {
            match saved.rule() {
                RegisterRule::Register(source) => !is_quick(source.into()),
                RegisterRule::Expression(span) | RegisterRule::ValExpression(span) => expression_needs(span),
                _ => false,
            }
        })
}
