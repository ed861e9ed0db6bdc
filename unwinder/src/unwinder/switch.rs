//! Frames of code that loads the registers of elsewhere, as `longjmp` and `setcontext` do. Their rules lead to the buffer that
//! they load them from: it is on no stack more often than not, and what it has may be in disguise (glibc's pointer guard).

use super::{Caller, Halt, Walk, returned_to};
use crate::arch::{Core, Loaded};
use crate::code::{Site, code};
use crate::general::Known;
use crate::metered::Metered;
use crate::region;
use crate::table::{CfaRule, RegisterRule, RuleView};
use crate::{AddressSpace, Architecture, Frame, FrameKind, Registers, StackMemory, StackReadError};

/// Bytes of such a function that are looked at.
const LONGEST_SWITCH: usize = 256;

/// Bytes of the stack in which the frame is looked for that such a function goes to.
const FAR: u64 = 64 << 10;

/// To which stack pointers are aligned where registers have return addresses.
const STACK_ALIGNMENT: u64 = 16;

/// How a frame lies that has called another, by the rule for it.
#[derive(Clone, Copy)]
struct Layout {
    /// What the CFA is counted from: the frame pointer, or else the stack pointer.
    by_frame_pointer: bool,
    /// The CFA from there.
    cfa: i64,
    /// The return address from the CFA.
    return_address: i64,
}

impl Layout {
    fn of<A: Architecture>(rule: &RuleView<'_>) -> Option<Layout> {
        let CfaRule::RegisterOffset { register, offset } = rule.cfa else { return None };
        let RegisterRule::Offset(return_address) = rule.register(rule.traits.return_address) else {
            return None;
        };
        let is_followed = register != rule.traits.return_address && A::FOLLOWED.contains(&register);
        is_followed.then_some(Layout {
            by_frame_pointer: register != A::SP,
            cfa: offset.into(),
            return_address: return_address.into(),
        })
    }

    /// The return address, where what the CFA is counted from is `base`; it may be signed as those around `core` are.
    fn return_address_from<A: Architecture>(
        &self,
        base: u64,
        core: A::Core,
        stack: &impl StackMemory,
    ) -> Result<u64, StackReadError> {
        let slot = A::WORD.offset(base, self.cfa.wrapping_add(self.return_address));
        A::WORD.read(stack, slot).map(|word| core.return_address(word))
    }
}

impl<A: Architecture, S: AddressSpace<A>, M: StackMemory> Walk<'_, A, S, M> {
    /// The caller that the rule of a frame has led to in `step`, or else the one in its registers, if it loads those of elsewhere.
    #[inline]
    pub(super) fn or_by_switch(
        &mut self,
        step: Result<Caller<A>, Halt>,
        frame: Frame,
        registers: &Registers<A>,
    ) -> Result<Caller<A>, Halt> {
        // Only what has called nothing can have its return address in a register.
        if !A::RETURNS_BY_REGISTER || frame.kind != FrameKind::Ip {
            return step;
        }
        match &step {
            Err(Halt::NeedsAllRegisters) => step,
            Ok(caller) if self.code().is_executable(caller.registers.ip()) => step,
            _ => self.by_switch(frame, registers).map_or(step, Ok),
        }
    }

    /// The caller in the registers of a frame whose rule goes by another: who called it, as long as neither the stack pointer nor
    /// the return address is loaded, and where it goes from then on.
    #[cold]
    fn by_switch(&mut self, frame: Frame, registers: &Registers<A>) -> Option<Caller<A>> {
        let (table, bias) = region::find(self.space, frame.address).table?;
        let svma = frame.address.wrapping_sub(bias);
        let goes_by_other = table.with_rule(table.rule_id(svma)?, |rule| {
            matches!(rule.cfa, CfaRule::RegisterOffset { register, .. } if !A::FOLLOWED.contains(&register))
        })?;
        let length = usize::try_from(table.offset_in_function(svma)?).ok()?;
        let mut buffer = [0; LONGEST_SWITCH];
        let buffer = buffer.get_mut(..length).filter(|_| goes_by_other)?;
        let space = Metered { space: self.space, budget: &self.code_budget };
        let loaded = A::loaded(code(&space, frame.address.wrapping_sub(length as u64), buffer)?)?;

        let caller = registers.core().by_entry(self.stack)?;
        if self.code().site(caller.ip()) == Site::Other {
            return None;
        }
        let (sp, has_frame_pointer) = match loaded {
            Loaded::AllOrNone { frame_pointer } => (caller.sp(), frame_pointer),
            Loaded::ReturnAddress { frame_pointer } => {
                (self.sp_of(caller, returned_to(caller, true), frame_pointer)?, frame_pointer)
            }
        };
        // A frame pointer of elsewhere would lead there.
        let frame_pointer = if has_frame_pointer { caller.frame_pointer() } else { 0 };
        Some(Caller {
            registers: registers.with_core(caller.returned(caller.ip(), sp, frame_pointer)?),
            known: Known::Quick,
            kind: FrameKind::ReturnAddress,
            heuristic: true,
            switched: false,
        })
    }

    /// The stack pointer of the function that `caller` goes on in, as a `frame`. `longjmp` goes to a function that is still being
    /// run, further up the same stack: its frame is the one from where, by the rule for that address, a call of this function is
    /// returned from. `None` where there is none, or more than one: functions may call themselves.
    pub(super) fn sp_of(&mut self, caller: A::Core, frame: Frame, has_frame_pointer: bool) -> Option<u64> {
        let (layout, start) = self.layout(frame)?;
        let return_address = |base: u64| layout.return_address_from::<A>(base, caller, self.stack);
        if layout.by_frame_pointer {
            // The least that it can be: whoever called that function has a stack pointer by the frame pointer.
            let above = return_address(caller.frame_pointer()).ok().filter(|_| has_frame_pointer)?;
            return (self.code().site(above) != Site::Other).then_some(caller.sp());
        }
        let mut found = None;
        for sp in (caller.sp()..caller.sp().checked_add(FAR)?).step_by(STACK_ALIGNMENT as usize) {
            let above = match return_address(sp) {
                Ok(above) => above,
                Err(StackReadError::Beyond) => break,
                Err(StackReadError::Below | StackReadError::Absent) => return None,
            };
            let is_call_of_it =
                matches!(self.code().site_of_word(above), Site::Direct(called) if called.leads_to(start));
            if is_call_of_it && found.replace(sp).is_some() {
                return None;
            }
        }
        found.filter(|_| !self.code_budget.is_spent())
    }

    /// Whether the function that `caller` goes on in, as a `frame`, has its return address where the stack pointer of `caller` says,
    /// by a call that does not tell of which function it is.
    pub(super) fn may_be_called_from(&mut self, caller: A::Core, frame: Frame) -> bool {
        let above = self.layout(frame).filter(|(layout, _)| !layout.by_frame_pointer);
        let above = above
            .and_then(|(layout, _)| layout.return_address_from::<A>(caller.sp(), caller, self.stack).ok());
        above.is_some_and(|above| match self.code().site_of_word(above) {
            Site::Indirect => true,
            Site::Direct(called) => called.is_stub != Some(false),
            Site::Other | Site::SignalReturn => false,
        })
    }

    /// How a `frame` lies that has called another, and where its function begins.
    fn layout(&self, frame: Frame) -> Option<(Layout, u64)> {
        let address = frame.lookup_address();
        let (table, bias) = region::find(self.space, address).table?;
        let svma = address.wrapping_sub(bias);
        let layout = table.with_rule(table.rule_id(svma)?, Layout::of::<A>)??;
        Some((layout, address.wrapping_sub(table.offset_in_function(svma)?.into())))
    }
}
