//! Frames without a rule: where a stack ends in one, and what is left to a guess. And frames that have called nothing, the innermost or
//! one that a signal interrupted, whose rule leads to no code.

use super::noting::Noting;
use super::{Caller, Halt, Walk, is_by_frame_pointer};
use crate::arch::{Core, LONGEST_CODE};
use crate::code::{WayOut, code, code_before, is_behind_switch, is_entry, is_signal_return};
use crate::epilogue::Departure;
use crate::general::Known;
use crate::guess::Guess;
use crate::region;
use crate::rule::{Rule, RuleOf};
use crate::{
    AddressSpace, Architecture, Frame, FrameKind, Registers, StackMemory, StackReadError, StopReason,
};

/// Zeros on a thread's stack before it has pushed anything: what the C library has further up (a thread's variables) need not be zero.
const EMPTY: u64 = 8;

impl<A: Architecture, S: AddressSpace<A>, M: StackMemory> Walk<'_, A, S, M> {
    /// Whether a frame without a rule is the outermost one: the frame pointer is zero, which is how the psABI ("process
    /// initialization") has the outermost frame marked, and nothing but what it pushed itself is left above it.
    fn is_bottom(&self, core: A::Core) -> bool {
        core.frame_pointer() == 0
            && matches!(
                A::WORD.read(self.stack, core.sp().wrapping_add(A::OUTERMOST_FRAME)),
                Err(StackReadError::Beyond)
            )
    }

    /// Whether a return address was not pushed by a call, but put on the stack to have a root begin there, as `makecontext`
    /// does with `__start_context`: there is no call before it, and it is the first of a function with rules. Where that function has
    /// none ([`crate::arch::Machine::BEFORE_ROOT`]), rules have led to it, and the one before it ends there.
    fn begins_root(&mut self, frame: Frame) -> bool {
        if frame.kind != FrameKind::ReturnAddress {
            return false;
        }
        let begins = self.rule_of(Frame { kind: FrameKind::Ip, ..frame }) != Rule::Missing
            || A::BEFORE_ROOT.is_some_and(|before| {
                !frame.heuristic
                    && region::find(self.space, frame.address).table.is_some()
                    && self.is_behind(frame.address, before)
            });
        // Where the frame lies is asked about again.
        self.rule_of(frame);
        begins && self.is_uncalled(frame.address)
    }

    /// Whether a return address that lies in no mapping is what rules made of the words above a function that runs on another
    /// stack than it was called on, as Go's runtime does on its threads' own: what is above is none of its callers.
    fn is_beyond_switch(&mut self, frame: Frame, registers: &Registers<A>) -> bool {
        /// Frames from there up, each of which led to some code by chance.
        const FRAMES: usize = 4;
        if frame.kind != FrameKind::ReturnAddress || frame.heuristic || self.place.region.is_mapped() {
            return false;
        }
        let mut caller = *registers;
        let mut is_beyond = false;
        for _ in 0..FRAMES {
            let Some(callee) = self.callee(&caller) else { break };
            is_beyond = is_behind_switch(self.space, callee.ip());
            if is_beyond {
                break;
            }
            caller = callee;
        }
        // Where the frame lies is asked about again.
        self.rule_of(frame);
        is_beyond
    }

    /// The frame whose rule leads from its stack pointer to `caller`, if it is near enough: its return address is on the stack.
    fn callee(&mut self, caller: &Registers<A>) -> Option<Registers<A>> {
        const WORDS: u64 = 32;
        // A rule that goes by another register leads nowhere.
        let mut callee = *caller;
        for &register in A::FOLLOWED {
            callee.set(register, 0);
        }
        (2..WORDS).find_map(|number| {
            let slot = caller.sp().checked_sub(number * A::WORD.bytes())?;
            let word = A::WORD.read(self.stack, slot).ok()?;
            let frame = Frame { address: word, kind: FrameKind::ReturnAddress, heuristic: false };
            let Rule::Quick(rule) = self.rule_of(frame) else { return None };
            callee.set(A::IP, word);
            callee.set(A::SP, A::WORD.above(slot, 1)?);
            let found = callee.core().caller(rule, self.stack).ok()?;
            ((found.ip(), found.sp()) == (caller.ip(), caller.sp())).then_some(callee)
        })
    }

    /// The caller of a frame without a rule.
    pub(super) fn guess(&mut self, frame: Frame, registers: &Registers<A>) -> Result<Caller<A>, Halt> {
        let from = Departure::of(frame, registers.core().sp());
        let way_out = self.code.way_out(self.generation, from, 0);
        if way_out.is_none() {
            if is_signal_return(self.space, frame.address)
                && let Some(interrupted) = self.interrupted(frame, registers)
            {
                return Ok(interrupted);
            }
            if self.begins_root(frame)
                || is_entry(self.space, frame)
                || self.is_beyond_switch(frame, registers)
            {
                return Err(StopReason::Root.into());
            }
        }
        let caller = self.guessed_core(frame, registers.core(), way_out)?;
        let registers = registers.with_core(caller);
        let known = Known::Quick;
        Ok(Caller { registers, known, kind: FrameKind::ReturnAddress, heuristic: true, switched: false })
    }

    /// The caller that code goes on to from a frame that has called nothing and whose `rule` leads to no code: it may have pushed what
    /// the rule does not count. Where memory that the rule goes by was not copied, that is where it leads.
    pub(super) fn caller_despite(
        &mut self,
        rule: RuleOf<A>,
        frame: Frame,
        registers: &Registers<A>,
    ) -> Option<A::Core> {
        let core = registers.core();
        let noting = Noting::of(self.stack);
        let found = match rule {
            Rule::Quick(rule) => core.caller(rule, &noting).map(Core::ip),
            Rule::General(id) => match self.general_step_on(&noting, id, frame, registers, Known::Quick) {
                Ok(caller) => Ok(caller.registers.ip()),
                Err(Halt::Stop(reason)) => Err(reason),
                Err(Halt::NeedsAllRegisters) => return None,
            },
            _ => return None,
        };
        let is_good = match found {
            Ok(ip) => ip == 0 || self.code().is_executable(ip),
            Err(reason) => {
                matches!(reason, StopReason::Root | StopReason::StackExhausted) || noting.was_absent()
            }
        };
        if is_good {
            return None;
        }
        let stack = self.stack;
        let caller = Guess { code: self.code(), stack, frame, core }.caller_by_code()?;
        (!self.code_budget.is_spent()).then_some(caller)
    }

    /// Whether an address has code before it, which is no call.
    fn is_uncalled(&self, address: u64) -> bool {
        let mut buffer = [0; LONGEST_CODE];
        let before = code_before(self.space, address, &mut buffer);
        before.is_some_and(|code| A::call_at_end(code).is_none())
    }

    /// Whether the innermost frame, which has no caller, is a thread's first: it goes on behind a system call, as the thread does
    /// that called it to make this one, and with nothing but zeros on the stack. glibc's `clone3` has no rule there.
    #[cold]
    fn begins_thread(&self, frame: Frame, core: A::Core) -> bool {
        frame.kind == FrameKind::Ip
            && self.is_empty(core.sp())
            && self.is_behind(frame.address, A::SYSTEM_CALL)
            && !self.code_budget.is_spent()
    }

    /// Whether the words from `sp` on are zeros, [`EMPTY`] of them or, if there are fewer, all of the stack; but for none at all.
    fn is_empty(&self, sp: u64) -> bool {
        let word = |number| A::WORD.read(self.stack, A::WORD.wrap(sp.wrapping_add(number * A::WORD.bytes())));
        word(0) == Ok(0)
            && (1..EMPTY).all(|number| matches!(word(number), Ok(0) | Err(StackReadError::Beyond)))
    }

    /// Whether the code before `address` ends with this instruction.
    fn is_behind(&self, address: u64, instruction: &[u8]) -> bool {
        let mut buffer = [0; LONGEST_CODE];
        let start = address.checked_sub(instruction.len() as u64);
        let before = start.and_then(|start| code(self.space, start, buffer.get_mut(..instruction.len())?));
        before.is_some_and(|before| before == instruction)
    }

    /// The likeliest caller of a frame that neither a signal handler returns to nor a stack begins with.
    #[inline]
    pub(super) fn guessed_core(
        &mut self,
        frame: Frame,
        core: A::Core,
        way_out: Option<WayOut>,
    ) -> Result<A::Core, StopReason> {
        let mapped = self.place.region.is_mapped();
        // A chain of frame pointers ends in a zero, by which runtimes mark the first frame of the stacks they make.
        // Its address is one that nothing calls where the runtime put it there, as Go's does that of `goexit`.
        let chain_ended = frame.heuristic
            && core.frame_pointer() == 0
            && (self.by_frame_pointer || self.is_uncalled(frame.address));
        if mapped && (chain_ended || self.is_bottom(core)) {
            return Err(StopReason::Root);
        }
        let reason = if mapped { StopReason::NoRule } else { StopReason::NoMapping };
        let stack = self.stack;
        let mut guess = Guess { code: self.code(), stack, frame, core };
        let caller = guess.caller(mapped, way_out);
        // By less code than a guess goes by nothing is found that is worth one.
        let caller = if self.code_budget.is_spent() { None } else { caller? };
        let Some(caller) = caller else {
            return Err(if self.begins_thread(frame, core) { StopReason::Root } else { reason });
        };
        self.by_frame_pointer = is_by_frame_pointer::<A>(caller, core);
        if caller.ip() == 0 {
            // Zeros lie anywhere: they end a chain of frames, but are none by themselves.
            return Err(if frame.heuristic && mapped { StopReason::Root } else { reason });
        }
        Ok(caller)
    }
}
