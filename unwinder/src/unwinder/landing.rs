//! Frames of code that goes on where an exception is caught, as libgcc's `_Unwind_Resume` does. It writes the registers of there over
//! the ones that it saved itself, and returns: from then on the rule of its frame leads to an address where the exception is caught,
//! or that had called what threw it, with the stack pointer of who called this code.

use super::{Caller, Halt, Walk, returned_to};
use crate::arch::Core;
use crate::code::Site;
use crate::region;
use crate::table::{RegisterNumber, RegisterRule, RuleId};
use crate::{AddressSpace, Architecture, Frame, FrameKind, StackMemory};

impl<A: Architecture, S: AddressSpace<A>, M: StackMemory> Walk<'_, A, S, M> {
    /// The caller that the rule `id` of a frame has led to in `step`, with the stack pointer of where the frame goes on, if its
    /// return address is that of there.
    #[inline]
    pub(super) fn or_by_landing(
        &mut self,
        step: Result<Caller<A>, Halt>,
        id: RuleId,
        frame: Frame,
    ) -> Result<Caller<A>, Halt> {
        let Some(register) = A::LANDING else { return step };
        step.map(|caller| match self.landing(&caller, id, frame, register) {
            Some((kind, sp)) => {
                let mut landed = Caller { kind, heuristic: true, ..caller };
                landed.registers.set(A::SP, sp);
                landed
            }
            None => caller,
        })
    }

    /// How the frame that `caller` is in goes on and with which stack pointer, if not as one that has called this function.
    #[cold]
    fn landing(
        &mut self,
        caller: &Caller<A>,
        id: RuleId,
        frame: Frame,
        register: RegisterNumber,
    ) -> Option<(FrameKind, u64)> {
        if caller.kind != FrameKind::ReturnAddress {
            return None;
        }
        let address = frame.lookup_address();
        let (table, bias) = region::find(self.space, address).table?;
        let is_landing =
            table.with_rule(id, |rule| matches!(rule.register(register), RegisterRule::Offset(_)))?;
        if !is_landing {
            return None;
        }
        let start = address.wrapping_sub(table.offset_in_function(address.wrapping_sub(bias))?.into());
        let core = caller.registers.core();
        let goes_on = match self.code().site(core.ip()) {
            // Where an exception is caught is behind no call, or behind one that never returns.
            Site::Other if self.code().is_executable(core.ip()) => {
                Frame { kind: FrameKind::Ip, ..returned_to(core, true) }
            }
            // What else is called may jump on to this function. Then the rule is right, and the place that is looked for is the caller's,
            // if a call of it by name was made from there; where the call may have been another, nothing tells which it is.
            Site::Direct(called) if called.is_stub == Some(false) && !called.leads_to(start) => {
                let frame = returned_to(core, true);
                if self.may_be_called_from(core, frame) {
                    return None;
                }
                frame
            }
            _ => return None,
        };
        let sp = self.sp_of(core, goes_on, true)?;
        (sp != core.sp()).then_some((goes_on.kind, sp))
    }
}
