//! What a walk does at an address, in 8 bytes: a quick step, or the name of the rule in full.

use crate::Architecture;
use crate::arch::Machine;
use crate::epilogue::ShortEpilogue;
use crate::expression;
use crate::table::{CfaRule, ExpressionSpan, RegisterRule, RuleId, RuleView};

pub(crate) type RuleOf<A> = Rule<<A as Machine>::Quick>;

/// How to get to the caller; `Q` is an architecture's rule for a quick step. The last two are of return addresses alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule<Q> {
    /// No rule covers the address.
    Missing,
    /// The outermost frame: the return address is undefined.
    Root,
    /// The rule has no usable form.
    Unsupported,
    Quick(Q),
    /// Another rule of the table that needs no registers but those that a quick walk follows.
    General(RuleId),
    /// Another that does.
    NeedsAll(RuleId),
    /// None covers the address, and the function's code goes on to its return like this.
    Guessed(ShortEpilogue),
    /// A signal handler returned to the address.
    Interrupted,
}

impl<Q> Rule<Q> {
    /// The form of the rule `id` that a walk uses.
    pub(crate) fn of<A: Architecture<Quick = Q>>(id: RuleId, rule: &RuleView<'_>) -> Self {
        match (rule.register(rule.traits.return_address), rule.cfa) {
            (_, CfaRule::Unsupported) => return Rule::Unsupported,
            (RegisterRule::Unspecified | RegisterRule::SameValue, _) if !A::RETURNS_BY_REGISTER => {
                return Rule::Unsupported;
            }
            (RegisterRule::Undefined, _) => return Rule::Root,
            _ => {}
        }
        match A::quick(rule).filter(|_| !rule.traits.signal) {
            Some(quick) => Rule::Quick(quick),
            None if needs_all::<A>(rule) => Rule::NeedsAll(id),
            None => Rule::General(id),
        }
    }
}

fn is_quick<A: Architecture>(register: u16) -> bool {
    register == A::IP.into() || A::FOLLOWED.iter().any(|&followed| register == followed.into())
}

/// Whether the step to the registers that a quick walk follows reads one that is not one of them.
fn needs_all<A: Architecture>(rule: &RuleView<'_>) -> bool {
    let expression_needs =
        |span: ExpressionSpan| !expression::reads_only(span.bytes(rule.section), A::WORD, is_quick::<A>);
    let cfa_needs = match rule.cfa {
        CfaRule::RegisterOffset { register, .. } => !is_quick::<A>(register.into()),
        CfaRule::Expression(span) => expression_needs(span),
        CfaRule::Unsupported => false,
    };
    let followed = |register| A::FOLLOWED.contains(&register) || register == rule.traits.return_address;
    let return_address = rule.traits.return_address;
    // Where calls return by a register it need not be the usual one: some of glibc's return by x15.
    let is_kept = rule.register(return_address) == RegisterRule::Unspecified;
    cfa_needs
        || is_kept && !is_quick::<A>(return_address.into())
        || rule.saved.iter().filter(|saved| followed(saved.register())).any(|saved| match saved.rule() {
            RegisterRule::Register(source) => !is_quick::<A>(source.into()),
            RegisterRule::Expression(span) | RegisterRule::ValExpression(span) => expression_needs(span),
            _ => false,
        })
}
