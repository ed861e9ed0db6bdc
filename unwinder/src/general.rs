//! A step by a rule in full: any CFA, any rule for any register.

use crate::expression::{self, Operands, Steps};
use crate::table::{CfaRule, RegisterRule, RuleView};
use crate::{Architecture, Registers, StackMemory, StopReason};

/// Which registers of a frame have their true values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Those that a quick walk follows.
    Quick,
    All,
}

/// What a step needs beside the rule.
#[derive(Debug)]
pub(crate) struct GeneralStep<'a, A: Architecture, M> {
    pub(crate) registers: &'a Registers<A>,
    pub(crate) known: Known,
    pub(crate) stack: &'a M,
    /// The mapping's bias, for expressions that name an address.
    pub(crate) bias: u64,
    pub(crate) steps: &'a Steps,
}

impl<A: Architecture, M: StackMemory> GeneralStep<'_, A, M> {
    /// The caller's registers. Those that are not known stay as they are.
    pub(crate) fn apply(&self, rule: &RuleView<'_>) -> Result<Registers<A>, StopReason> {
        let cfa = match rule.cfa {
            CfaRule::Unsupported => return Err(StopReason::Unsupported),
            CfaRule::RegisterOffset { register, offset } => {
                let base = self.registers.get(register.into()).ok_or(StopReason::Unsupported)?;
                A::WORD.offset(base, offset.into())
            }
            CfaRule::Expression(span) => self.evaluate(span.bytes(rule.section), None)?,
        };
        let mut caller = *self.registers;
        caller.set(A::SP, A::WORD.offset(cfa, A::uncounted(rule).into()));
        let mut return_address = None;
        for saved in rule.saved {
            let is_return_address = saved.register() == rule.traits.return_address;
            let followed = is_return_address || A::FOLLOWED.contains(&saved.register());
            if self.known == Known::All || followed {
                let value = self.value(saved.rule(), cfa, rule)?;
                if is_return_address {
                    return_address = Some(value.ok_or(StopReason::Unreadable)?);
                }
                if let Some(value) = value {
                    caller.set(saved.register(), value);
                }
            }
        }
        A::return_to(&mut caller.values, return_address, rule.traits).ok_or(StopReason::Unsupported)?;
        Ok(caller)
    }

    /// `None`: the register was already restored (see [`read_slot`]).
    fn value(&self, rule: RegisterRule, cfa: u64, view: &RuleView<'_>) -> Result<Option<u64>, StopReason> {
        let slot = |address| A::WORD.read_slot(self.stack, address);
        match rule {
            // Kept only for the return address.
            RegisterRule::Undefined => Err(StopReason::Root),
            // Not kept: they change nothing.
            RegisterRule::Unspecified | RegisterRule::SameValue => Err(StopReason::Unsupported),
            RegisterRule::Offset(offset) => slot(A::WORD.offset(cfa, offset.into())),
            RegisterRule::ValOffset(offset) => Ok(Some(A::WORD.offset(cfa, offset.into()))),
            RegisterRule::Register(source) => {
                self.registers.get(source.into()).map(Some).ok_or(StopReason::Unsupported)
            }
            RegisterRule::Expression(span) => slot(self.evaluate(span.bytes(view.section), Some(cfa))?),
            RegisterRule::ValExpression(span) => self.evaluate(span.bytes(view.section), Some(cfa)).map(Some),
        }
    }

    fn evaluate(&self, bytes: &[u8], cfa: Option<u64>) -> Result<u64, StopReason> {
        expression::evaluate(
            bytes,
            &Operands {
                registers: self.registers,
                stack: self.stack,
                bias: self.bias,
                cfa,
                steps: self.steps,
            },
        )
    }
}
