//! Frames of code that loads the registers of elsewhere, as `longjmp` and `setcontext` do. Their rules lead to the buffer that
//! they load them from: it is on no stack more often than not, and what it has may be in disguise (glibc's pointer guard).

use super::{Caller, Halt, Walk};
use crate::arch::Core;
use crate::code::{Site, code};
use crate::general::Known;
use crate::metered::Metered;
use crate::region;
use crate::table::CfaRule;
use crate::{AddressSpace, Architecture, Frame, FrameKind, Registers, StackMemory};

/// Bytes of such a function that are looked at.
const LONGEST_SWITCH: usize = 256;

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
    /// the return address is loaded, and where it goes once both are.
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
        let has_frame_pointer =
            A::agreeing(code(&space, frame.address.wrapping_sub(length as u64), buffer)?)?;

        let caller = registers.core().by_entry(self.stack)?;
        // A frame pointer of elsewhere would lead there.
        let frame_pointer = if has_frame_pointer { caller.frame_pointer() } else { 0 };
        let caller = caller.returned(caller.ip(), caller.sp(), frame_pointer)?;
        (self.code().site(caller.ip()) != Site::Other).then_some(Caller {
            registers: registers.with_core(caller),
            known: Known::Quick,
            kind: FrameKind::ReturnAddress,
            heuristic: true,
            switched: false,
        })
    }
}
