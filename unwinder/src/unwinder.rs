//! The walk: from a thread's registers, frame by frame, to its root or to a [`StopReason`].
//!
//! A walk is quick: it follows a few registers (on x86-64 `ip`, `sp` and `bp`), which is what nearly all code needs. Where a frame's rule
//! reads another register (a realigned stack's CFA in `r10`, the runtime linker's in `rbx`), the walk starts again
//! from the innermost frame and restores every register from there on; frames that were already handed out are not
//! handed out twice. That happens at most once a stack.

mod landing;
mod noting;
mod switch;
mod without_rule;

use std::num::NonZeroU64;

use crate::arch::Core;
use crate::cache::{CacheKey, RuleCache, Slot};
use crate::code::{Code, Site, is_signal_return};
use crate::code_memory::CodeMemory;
use crate::epilogue::{Departure, ShortEpilogue};
use crate::expression::Steps;
use crate::general::{GeneralStep, Known};
use crate::metered::{CodeBudget, Metered};
use crate::region::{self, Region, RegionMemory};
use crate::rule::{Rule, RuleOf};
use crate::table::RuleId;
use crate::x86_64::X86_64;
use crate::{
    AddressSpace, Architecture, Frame, FrameKind, Registers, StackMemory, StackReadError, StopReason,
};

/// Frames after which a walk stops, unless told otherwise.
pub const DEFAULT_DEPTH_LIMIT: usize = 1024;

/// Walks stacks. Keep one per thread: it holds the caches of rules, of mappings, and of what code says.
#[derive(Debug)]
pub struct Unwinder<A: Architecture = X86_64> {
    cache: RuleCache<A>,
    memory: RegionMemory,
    code: CodeMemory,
    depth_limit: usize,
}

impl<A: Architecture> Default for Unwinder<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Architecture> Unwinder<A> {
    /// An unwinder that stops after [`DEFAULT_DEPTH_LIMIT`] frames.
    pub fn new() -> Self {
        Self::with_depth_limit(DEFAULT_DEPTH_LIMIT)
    }

    /// An unwinder that stops after `depth_limit` frames.
    pub fn with_depth_limit(depth_limit: usize) -> Self {
        Unwinder {
            cache: RuleCache::new(),
            memory: RegionMemory::new(),
            code: CodeMemory::default(),
            depth_limit,
        }
    }

    /// Forgets what guesses learnt from [`AddressSpace::code`]. Needed only where code may be replaced without a change of
    /// the address space's generation, as JIT compilers do; how often is how long guesses may go by code of old.
    pub fn forget_code(&mut self) {
        self.code.clear();
        self.cache.forget_code();
        self.memory.clear();
    }

    /// Hands each frame to `visit`, innermost first, and says why there is no further one.
    ///
    /// Allocates nothing, but for rules of functions that are met the first few times, and for the memory of guesses at the
    /// first of them.
    pub fn unwind<S: AddressSpace<A>, M: StackMemory>(
        &mut self,
        space: &S,
        registers: &Registers<A>,
        stack: &M,
        mut visit: impl FnMut(Frame),
    ) -> StopReason {
        let mut walk = Walk {
            cache: &mut self.cache,
            memory: &mut self.memory,
            code: &mut self.code,
            space,
            generation: space.generation(),
            stack,
            place: Place { region: Region::NOWHERE, slot: Slot::EMPTY },
            depth_limit: self.depth_limit,
            steps: Steps::of_frames(self.depth_limit),
            code_budget: CodeBudget::of_frames(self.depth_limit),
            by_frame_pointer: false,
        };
        match walk.quick_pass(registers, &mut visit) {
            Pass::Stopped(reason) => reason,
            Pass::NeedsAllRegisters { visited } => walk.full_pass(registers, visited, &mut visit),
        }
    }
}

/// How the quick pass ended.
enum Pass {
    Stopped(StopReason),
    /// The last of this many frames needs registers that a quick walk does not restore.
    NeedsAllRegisters {
        visited: usize,
    },
}

/// Why a frame has no next one in this pass.
enum Halt {
    Stop(StopReason),
    NeedsAllRegisters,
}

impl From<StopReason> for Halt {
    fn from(reason: StopReason) -> Self {
        Halt::Stop(reason)
    }
}

/// The caller, when it took more than a quick step to find.
struct Caller<A: Architecture> {
    registers: Registers<A>,
    /// Which of them are the caller's.
    known: Known,
    kind: FrameKind,
    heuristic: bool,
    /// The stack pointer went to memory that is not in the copy: there is no frame beyond.
    switched: bool,
}

/// Where the last address that was looked up lies, in the process and in the cache.
#[derive(Clone, Copy)]
struct Place {
    region: Region,
    slot: Slot,
}

struct Walk<'w, A: Architecture, S, M> {
    cache: &'w mut RuleCache<A>,
    memory: &'w mut RegionMemory,
    code: &'w mut CodeMemory,
    space: &'w S,
    generation: Option<NonZeroU64>,
    stack: &'w M,
    place: Place,
    depth_limit: usize,
    steps: Steps,
    code_budget: CodeBudget,
    /// The last guess was by a frame pointer.
    by_frame_pointer: bool,
}

impl<A: Architecture, S: AddressSpace<A>, M: StackMemory> Walk<'_, A, S, M> {
    /// The code of the address space, as guesses ask about it.
    fn code(&mut self) -> Code<'_, A, S> {
        let space = Metered { space: self.space, budget: &self.code_budget };
        Code::new(space, self.generation, self.memory, self.code)
    }

    /// Follows the registers of [`Core`].
    #[inline]
    fn quick_pass(&mut self, initial: &Registers<A>, visit: &mut impl FnMut(Frame)) -> Pass {
        let mut core = initial.core();
        let mut frame = Frame { address: core.ip(), kind: FrameKind::Ip, heuristic: false };
        let mut visited = 0;
        // Where the guess that led to the frame is cached, if it was one by code.
        let mut guessed_by = None;
        while visited < self.depth_limit {
            visited += 1;
            visit(frame);
            let first = self.rule_of(frame);
            if let Some(slot) = guessed_by.take() {
                self.cache.foretell(slot, self.place.slot);
                self.cache.set_called(self.place.slot);
            }
            if A::MISSES_PUSHES
                && frame.kind == FrameKind::Ip
                && let Some(caller) = self.caller_despite(first, frame, &initial.with_core(core))
            {
                core = caller;
                frame = returned_to(core, true);
                continue;
            }
            let mut rule = first;
            let rule = loop {
                let before = visited;
                let steps = match rule {
                    Rule::Quick(_) => self.quick_steps(rule, &mut core, &mut visited, visit),
                    Rule::Guessed(_) => self.guessed_steps(rule, &mut core, &mut visited, visit),
                    Rule::Root => return Pass::Stopped(StopReason::Root),
                    _ => break rule,
                };
                let heuristic = matches!(rule, Rule::Guessed(_));
                rule = match steps {
                    Ok(rule) => rule,
                    Err(reason) => return Pass::Stopped(reason),
                };
                if visited == before {
                    break rule;
                }
                frame = returned_to(core, heuristic);
            };
            if let Rule::Guessed(epilogue) = rule
                && let Some(caller) = self.caller_by_code(epilogue, core)
            {
                guessed_by = Some(self.place.slot);
                core = caller;
                frame = returned_to(core, true);
                continue;
            }
            if matches!(rule, Rule::Missing | Rule::Guessed(_))
                && let Some(way_out) = self.code.way_out(self.generation, Departure::of(frame, core.sp()), 0)
            {
                core = match self.guessed_core(frame, core, Some(way_out)) {
                    Ok(caller) => caller,
                    Err(reason) => return Pass::Stopped(reason),
                };
                frame = returned_to(core, true);
                continue;
            }
            let known = if visited == 1 { Known::All } else { Known::Quick };
            match self.slow_step(rule, frame, &initial.with_core(core), known) {
                Ok(caller) => {
                    core = caller.registers.core();
                    frame = Frame { address: core.ip(), kind: caller.kind, heuristic: caller.heuristic };
                    if caller.switched && visited < self.depth_limit {
                        visit(frame);
                        return Pass::Stopped(StopReason::SwitchedStack);
                    }
                }
                Err(Halt::Stop(reason)) => return Pass::Stopped(reason),
                Err(Halt::NeedsAllRegisters) => return Pass::NeedsAllRegisters { visited },
            }
        }
        Pass::Stopped(StopReason::DepthLimit)
    }

    /// Goes on from the frame of `core`, whose rule is `first`, as long as rules are quick. What comes out is the rule, then of
    /// the frame of `core` again, that takes another step.
    #[inline]
    fn quick_steps(
        &mut self,
        first: RuleOf<A>,
        core: &mut A::Core,
        visited: &mut usize,
        visit: &mut impl FnMut(Frame),
    ) -> Result<RuleOf<A>, StopReason> {
        // In registers, as is all that the loop needs.
        let (mut at, mut place, mut rule) = (*core, self.place, first);
        let mut left = self.depth_limit - *visited;
        while let Rule::Quick(quick) = rule {
            at = at.caller(quick, self.stack)?;
            if at.ip() == 0 {
                return Err(StopReason::Root);
            }
            left = left.checked_sub(1).ok_or(StopReason::DepthLimit)?;
            let frame = returned_to(at, false);
            visit(frame);
            rule = self.rule_from(&mut place, frame);
        }
        if rule == Rule::Root {
            return Err(StopReason::Root);
        }
        (*core, self.place, *visited) = (at, place, self.depth_limit - left);
        Ok(rule)
    }

    /// Goes on from the frame of `core`, whose rule is `first`, as long as rules are guesses that lead to an address behind a call.
    #[inline(never)]
    fn guessed_steps(
        &mut self,
        first: RuleOf<A>,
        core: &mut A::Core,
        visited: &mut usize,
        visit: &mut impl FnMut(Frame),
    ) -> Result<RuleOf<A>, StopReason> {
        let (mut at, mut place, mut rule) = (*core, self.place, first);
        let mut left = self.depth_limit - *visited;
        while let Rule::Guessed(epilogue) = rule
            && let Some((caller, next, behind)) = self.known_caller(epilogue, at, place)
        {
            left = left.checked_sub(1).ok_or(StopReason::DepthLimit)?;
            self.by_frame_pointer = is_by_frame_pointer::<A>(caller, at);
            visit(returned_to(caller, true));
            (at, rule, place) = (caller, next, behind);
        }
        (*core, self.place, *visited) = (at, place, self.depth_limit - left);
        Ok(rule)
    }

    /// The caller that code goes on to from a return address, with its rule, if the call before its address has been seen.
    #[inline]
    fn known_caller(
        &mut self,
        epilogue: ShortEpilogue,
        at: A::Core,
        Place { mut region, slot: last }: Place,
    ) -> Option<(A::Core, RuleOf<A>, Place)> {
        let caller = self.caller_by_epilogue(epilogue, at)?;
        let key = self.key_at(&mut region, returned_to(caller, true).lookup_address())?;
        let (rule, slot) = self.cache.foretold(key, last).or_else(|| {
            let known = self.cache.known(key)?;
            self.cache.foretell(last, known.1);
            Some(known)
        })?;
        self.cache.is_called(slot).then_some((caller, rule, Place { region, slot }))
    }

    /// The caller that code goes on to from a return address, if there is a call before it.
    fn caller_by_code(&mut self, epilogue: ShortEpilogue, at: A::Core) -> Option<A::Core> {
        let caller = self.caller_by_epilogue(epilogue, at)?;
        let site = self.code().site(caller.ip());
        self.by_frame_pointer = is_by_frame_pointer::<A>(caller, at);
        (site != Site::Other).then_some(caller)
    }

    /// Not where the frame pointer is zero: it may say that this is the root.
    #[inline]
    fn caller_by_epilogue(&self, epilogue: ShortEpilogue, at: A::Core) -> Option<A::Core> {
        if at.frame_pointer() == 0 {
            return None;
        }
        epilogue.caller(at, A::WORD, self.stack)
    }

    /// Restores every register. The first `visited` frames were handed out before.
    #[cold]
    fn full_pass(
        &mut self,
        initial: &Registers<A>,
        visited: usize,
        visit: &mut impl FnMut(Frame),
    ) -> StopReason {
        let mut registers = *initial;
        let mut known = Known::All;
        let mut frame = Frame { address: registers.ip(), kind: FrameKind::Ip, heuristic: false };
        let mut switched = false;
        for depth in 0..self.depth_limit {
            if depth >= visited {
                visit(frame);
            }
            if switched {
                return StopReason::SwitchedStack;
            }
            let caller = match self.full_step(frame, &registers, known) {
                Ok(caller) => caller,
                Err(Halt::Stop(reason)) => return reason,
                // A guess lost them on the way.
                Err(Halt::NeedsAllRegisters) => return StopReason::Unsupported,
            };
            (registers, known) = (caller.registers, caller.known);
            switched = caller.switched;
            frame = Frame { address: registers.ip(), kind: caller.kind, heuristic: caller.heuristic };
        }
        StopReason::DepthLimit
    }

    /// The rule of a frame, [`Rule::Missing`] where neither a table nor code says anything.
    #[inline]
    fn rule_of(&mut self, frame: Frame) -> RuleOf<A> {
        let mut region = self.place.region;
        let key = self.key_at(&mut region, frame.lookup_address());
        self.place = Place { region, slot: Slot::EMPTY };
        let is_behind_call = frame.kind == FrameKind::ReturnAddress;
        let Some(key) = key.filter(|key| is_behind_call || !key.is_of_code()) else { return Rule::Missing };
        let (rule, slot) = self.cache.known(key).unwrap_or_else(|| self.computed(key, frame));
        if !is_behind_call && matches!(rule, Rule::Guessed(_) | Rule::Interrupted) {
            return compiled_rule(self.space, frame.address, key).unwrap_or(Rule::Missing);
        }
        self.place.slot = slot;
        rule
    }

    /// The same of a caller, for a walk that goes on from `place`, which stays in registers where this is part of its loop.
    #[allow(clippy::inline_always, reason = "a call would take a third of a step, and `place` to memory")]
    #[inline(always)]
    fn rule_from(&mut self, place: &mut Place, caller: Frame) -> RuleOf<A> {
        let Some(key) = self.key_at(&mut place.region, caller.lookup_address()) else { return Rule::Missing };
        let (rule, slot) = self.cache.foretold(key, place.slot).unwrap_or_else(|| {
            let found = self.looked_up(key, caller.address, caller.kind);
            self.cache.foretell(place.slot, found.1);
            found
        });
        place.slot = slot;
        rule
    }

    /// The cache's key of an address, which `region` contains then; if there is one.
    #[allow(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn key_at(&mut self, region: &mut Region, address: u64) -> Option<CacheKey> {
        if !region.contains(address) {
            let found = self.memory.region(self.space, self.generation, address);
            *region = found.emptied_without_keys();
            if !found.has_keys() {
                return None;
            }
        }
        Some(region.key(address))
    }

    /// The rule of a frame, whose key this is, and where in the cache it is.
    #[inline(never)]
    fn looked_up(&mut self, key: CacheKey, address: u64, kind: FrameKind) -> (RuleOf<A>, Slot) {
        let known = self.cache.known(key);
        known.unwrap_or_else(|| self.computed(key, Frame { address, kind, heuristic: false }))
    }

    /// The same, the first time.
    #[cold]
    #[inline(never)]
    fn computed(&mut self, key: CacheKey, frame: Frame) -> (RuleOf<A>, Slot) {
        let Some(rule) = compiled_rule(self.space, frame.lookup_address(), key) else {
            return (Rule::Missing, Slot::EMPTY);
        };
        let rule = self.code().rule(frame, rule);
        // A guess that was not made for want of code may be the next time.
        let slot = if self.code_budget.is_spent() { Slot::EMPTY } else { self.cache.remember(key, rule) };
        (rule, slot)
    }

    fn full_step(&mut self, frame: Frame, registers: &Registers<A>, known: Known) -> Result<Caller<A>, Halt> {
        let rule = self.rule_of(frame);
        // As in the quick pass, or frames beyond were those of a rule that it had rejected.
        if A::MISSES_PUSHES
            && frame.kind == FrameKind::Ip
            && let Some(caller) = self.caller_despite(rule, frame, registers)
        {
            let (registers, known) = (registers.with_core(caller), Known::Quick);
            let kind = FrameKind::ReturnAddress;
            return Ok(Caller { registers, known, kind, heuristic: true, switched: false });
        }
        match rule {
            Rule::Quick(_) => self.step_by_table(frame, registers, known),
            rule => self.slow_step(rule, frame, registers, known),
        }
    }

    /// A step by any rule but a quick one.
    #[cold]
    fn slow_step(
        &mut self,
        rule: RuleOf<A>,
        frame: Frame,
        registers: &Registers<A>,
        known: Known,
    ) -> Result<Caller<A>, Halt> {
        match rule {
            Rule::NeedsAll(_) if known != Known::All => Err(Halt::NeedsAllRegisters),
            Rule::General(id) => {
                let step = self.general_step(id, frame, registers, known);
                self.or_by_landing(step, id, frame)
            }
            Rule::NeedsAll(id) => {
                let step = self.general_step(id, frame, registers, known);
                self.or_by_switch(step, frame, registers)
            }
            Rule::Root => Err(StopReason::Root.into()),
            Rule::Missing | Rule::Guessed(_) => self.guess(frame, registers),
            Rule::Interrupted => match self.interrupted(frame, registers) {
                Some(interrupted) => Ok(interrupted),
                None => self.step_by_table(frame, registers, known),
            },
            Rule::Unsupported | Rule::Quick(_) => Err(StopReason::Unsupported.into()),
        }
    }

    /// A step by the table that covers the frame, whatever its rule.
    fn step_by_table(&self, frame: Frame, registers: &Registers<A>, known: Known) -> Result<Caller<A>, Halt> {
        let address = frame.lookup_address();
        let (table, bias) = region::find(self.space, address).table.ok_or(StopReason::NoRule)?;
        let id = table.rule_id(address.wrapping_sub(bias)).ok_or(StopReason::NoRule)?;
        self.general_step(id, frame, registers, known)
    }

    /// A step by the rule `id` of the table that covers the frame.
    fn general_step(
        &self,
        id: RuleId,
        frame: Frame,
        registers: &Registers<A>,
        known: Known,
    ) -> Result<Caller<A>, Halt> {
        self.general_step_on(self.stack, id, frame, registers, known)
    }

    /// The same, with another way to read the stack.
    fn general_step_on(
        &self,
        stack: &impl StackMemory,
        id: RuleId,
        frame: Frame,
        registers: &Registers<A>,
        known: Known,
    ) -> Result<Caller<A>, Halt> {
        let found = region::find(self.space, frame.lookup_address());
        let (table, bias) = found.table.ok_or(StopReason::NoRule)?;
        let step = GeneralStep { registers, known, stack, bias, steps: &self.steps };
        let applied =
            table.with_rule(id, |rule| Ok::<_, StopReason>((step.apply(rule)?, rule.traits.signal)));
        let (caller, signal) = applied.ok_or(StopReason::NoRule)??;
        if signal
            && is_signal_return(self.space, frame.address)
            && let Some(interrupted) = self.interrupted(frame, registers)
        {
            return Ok(interrupted);
        }
        if caller.ip() == 0 {
            return Err(StopReason::Root.into());
        }
        // A function that pushed nothing may hold its return address in a register, as glibc's `vfork` does; only the
        // innermost frame can, so this is no way to run in circles.
        let innermost = frame.kind == FrameKind::Ip && caller.ip() != registers.ip();
        let grew = caller.sp() > registers.sp() || (innermost && caller.sp() == registers.sp());
        if !signal && !grew {
            return Err(StopReason::CfaDidNotGrow.into());
        }
        let switched = signal && self.is_elsewhere(&caller);
        let kind = if signal { FrameKind::Ip } else { FrameKind::ReturnAddress };
        Ok(Caller { registers: caller, known, kind, heuristic: false, switched })
    }

    /// The frame that a signal interrupted; `frame` is the code that its handler returns to.
    fn interrupted(&self, frame: Frame, registers: &Registers<A>) -> Option<Caller<A>> {
        let registers = Registers { values: A::interrupted(&registers.values, self.stack)? };
        Some(Caller {
            switched: self.is_elsewhere(&registers),
            registers,
            known: Known::All,
            kind: FrameKind::Ip,
            heuristic: frame.heuristic,
        })
    }

    /// Whether the stack pointer is not in the copy.
    fn is_elsewhere(&self, registers: &Registers<A>) -> bool {
        matches!(
            A::WORD.read(self.stack, registers.sp()),
            Err(StackReadError::Below | StackReadError::Beyond)
        )
    }
}

/// The frame of a caller.
#[inline]
fn returned_to(core: impl Core, heuristic: bool) -> Frame {
    Frame { address: core.ip(), kind: FrameKind::ReturnAddress, heuristic }
}

/// Whether the frame pointer of `core` leads to `caller`.
#[inline]
fn is_by_frame_pointer<A: Architecture>(caller: A::Core, core: A::Core) -> bool {
    caller.sp().wrapping_sub(core.frame_pointer()) == 2 * A::WORD.bytes()
}

/// The rule that the table of `address` has for it; `None` if that table is not the one that `key` names (an address
/// space that changed under an unchanged generation).
#[cold]
fn compiled_rule<A: Architecture, S: AddressSpace<A>>(
    space: &S,
    address: u64,
    key: CacheKey,
) -> Option<RuleOf<A>> {
    let found = region::find(space, address);
    let Some((table, bias)) = found.table else { return key.is_of_code().then_some(Rule::Missing) };
    (found.region.key(address) == key).then(|| table.rule(address.wrapping_sub(bias)))
}
