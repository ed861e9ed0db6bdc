//! The caller of a frame without a rule: code of JIT compilers, assembly, files that can't be read.
//!
//! Candidates, in the order in which they are believed:
//!
//! 1. what the instructions from the frame's address on to the function's return would return to, if there is any call before
//!    that, or it is the end of a chain of frame pointers: jumps that depend on a condition are passed over (but taken where
//!    there is no other way to such a return), others followed, and every call returns. Ways that leave the stack pointer as
//!    callers have it come first: others have mostly run on, past a call that never returns, into another function. Where
//!    one of the first leads to a word that was not copied, or all ways do, there is no guess at all;
//! 2. the frame pointer's, where the call before its return address is of this very function;
//! 3. the word on the stack that lies where the function's first instructions leave the return address (they store registers
//!    and lower the stack pointer), if these are what the code before the frame's address looks like they are, and there
//!    is a call before it that may be of this function;
//! 4. of the words on the stack up to the frame pointer's, the first that is the return address of a call of this very
//!    function and lies where the function's first instructions leave it;
//! 5. of those that are the return address of a call of this function, the one whose call names the nearest address: no
//!    function begins within another;
//! 6. the word of 3, if the call before it is of another function;
//! 7. the frame pointer's, where there is any call before its return address (on architectures whose rules have code keep
//!    the frame pointer, before 5);
//! 8. the nearest word on the stack that is the return address of a call that may be of this function, or of a signal
//!    handler;
//! 9. the nearest that is one of a call of another function, which may have jumped on to this one.
//!
//! Where calls leave the return address in a register, the innermost frame may have its own still there: that is believed
//! as the frame pointer's is, and after it, if both have the same to say for them.
//!
//! A return address is one in executable memory with a call instruction before it. The call is of this function where it
//! names an address shortly before the frame's, or of one that does nothing but jump there; it may be where it names none (a
//! register, a word in memory) or the address of a jump (a linkage table's, a JIT compiler's stub). Where the address space
//! has no code to look at, the frame pointer is believed, and then what a function finds when it is called.

use std::cmp::Reverse;

use crate::arch::Core;
use crate::code::{Called, Code, Site, WayOut};
use crate::epilogue::{Base, Departure, Epilogue};
use crate::prologue::Prologue;
use crate::{AddressSpace, Architecture, Frame, FrameKind, StackMemory, StackReadError};

/// How far into a function an address may be for a call of the function to be one of it, if the stack is as the function's
/// first instructions leave it; and if it is not, which it need not be.
const MAX_FUNCTION: u64 = 16 << 10;
const NEAR: u64 = 1 << 10;

/// Words on the stack that are looked at: frames are hardly larger, and old return addresses lie everywhere.
const SCANNED: u64 = 256;

/// A frame pointer further above the stack pointer than this is none.
const LARGEST_FRAME: u64 = 1 << 20;

/// Ways to a function's return that are tried after the first.
const MOST_FURTHER_WAYS: usize = 3;

/// Further from a frame than this no call names the frame's function, nor a jump to it: both reach 2 GiB.
const REACH: u64 = 1 << 33;

/// What speaks for a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    /// There is a call of another function before it, which may have jumped on to the frame's.
    CallOfAnother,
    /// There is a call before it that may be of the frame's function.
    Call,
    /// There is a call of the frame's function before it, which begins this far before the frame's address.
    CallOfThis(Reverse<u64>),
    /// There is a call of the frame's function before it, and it is where the function's first instructions leave it.
    Frame,
}

/// Where a return address may be.
#[derive(Clone, Copy, Debug)]
enum Place {
    Register,
    /// In this slot of the stack,
    Stack(u64),
    /// where the frame pointer says so.
    Record(u64),
}

/// What is known of a return address.
#[derive(Clone, Copy, Debug)]
struct Finding {
    evidence: Evidence,
    /// The stack pointer at the function's first instruction, and how it went on, where that leads to the address' place.
    begun: Option<(u64, Prologue)>,
}

impl From<Evidence> for Finding {
    fn from(evidence: Evidence) -> Self {
        Finding { evidence, begun: None }
    }
}

/// A frame without a rule and what is known around it.
pub(crate) struct Guess<'a, A: Architecture, S, M> {
    pub(crate) code: Code<'a, A, S>,
    pub(crate) stack: &'a M,
    pub(crate) frame: Frame,
    pub(crate) core: A::Core,
}

impl<A: Architecture, S: AddressSpace<A>, M: StackMemory> Guess<'_, A, S, M> {
    /// The likeliest caller. Code that is not mapped can't have pushed a frame: there the top of the stack comes first, and
    /// a return address into such a place is not worth a guess.
    /// `way_out` is that of the frame's code, if it is known already. Where it leads to a word that can't be read there is no better guess.
    pub(crate) fn caller(
        &mut self,
        mapped: bool,
        way_out: Option<WayOut>,
    ) -> Result<Option<A::Core>, StackReadError> {
        let from = Departure::of(self.frame, self.core.sp());
        let way_out = way_out.or_else(|| if mapped { self.code.way_out(self.frame, from) } else { None });
        if let Some(WayOut::Known(epilogue)) = way_out
            && let Some(caller) = self.by_ways_out(from, epilogue)?
        {
            return Ok(Some(caller));
        }
        Ok(self.caller_otherwise(mapped, from, way_out))
    }

    /// The likeliest caller, where no way out leads to one.
    fn caller_otherwise(
        &mut self,
        mapped: bool,
        from: Departure,
        way_out: Option<WayOut>,
    ) -> Option<A::Core> {
        let innermost = self.frame.kind == FrameKind::Ip;
        let by_entry = self.core.by_entry(self.stack).filter(|_| innermost);
        let by_frame_pointer = self.core.by_frame_pointer(self.stack).filter(|_| innermost || mapped);
        if !mapped {
            return [by_entry, by_frame_pointer].into_iter().flatten().find(|&core| self.is_plausible(core));
        }
        let by_frame_pointer = by_frame_pointer.filter(|&core| self.is_plausible(core));
        if way_out.is_none() {
            return by_frame_pointer.or(by_entry.filter(|&core| self.is_plausible(core)));
        }
        let pointed = by_frame_pointer.and_then(|core| self.pointed(core));
        let held = by_entry.filter(|_| A::RETURNS_BY_REGISTER).and_then(|core| self.held(core));
        let known = match (pointed, held) {
            (Some(pointed), Some(held)) if held.0 > pointed.0 && self.tells_more(&held, &pointed) => {
                Some(held)
            }
            _ => pointed.or(held),
        };
        if let Some((Evidence::Frame | Evidence::CallOfThis(_), core)) = known {
            return Some(core);
        }
        // Where the function goes on to its return its beginning has nothing better to say.
        let is_left = matches!(way_out, Some(WayOut::Known(way)) if from.is_left_by::<A>(&way));
        let beginning = if is_left { None } else { self.code.begun(self.frame, from) };
        let begun = beginning.and_then(|beginning| self.by_beginning(beginning));
        if let Some((Evidence::Frame, core)) = begun {
            return Some(core);
        }
        // A frame pointer that is not this function's is that of one further out.
        let end = by_frame_pointer.filter(|_| pointed.is_some()).map_or(u64::MAX, Core::sp);
        let scanned = self.scan(end, known.map(|_| Evidence::Call));
        let (_, caller) = match (scanned, known) {
            (Some(scanned @ (Evidence::Frame, _)), _) => scanned,
            (_, Some(known @ (Evidence::Call, _))) if A::KEEPS_FRAME_POINTER => known,
            (Some(scanned @ (Evidence::CallOfThis(_), _)), _) => scanned,
            (scanned, known) => begun.or(known).or(scanned)?,
        };
        Some(caller)
    }

    /// The caller that the frame's code goes on to, if there is a call before that.
    pub(crate) fn caller_by_code(&mut self) -> Option<A::Core> {
        let from = Departure::of(self.frame, self.core.sp());
        let Some(WayOut::Known(first)) = self.code.way_out(self.frame, from) else { return None };
        let caller = self.by_ways_out(from, first).ok()??;
        (self.code.site(caller.ip()) != Site::Other).then_some(caller)
    }

    /// The caller by the first way out that leads to one, of which `first` is the first of all. None is looked for behind one that
    /// leaves the stack pointer as callers have it, and leads to a word that can't be read, nor elsewhere if all ways lead to such words.
    #[inline]
    fn by_ways_out(&mut self, from: Departure, first: Epilogue) -> Result<Option<A::Core>, StackReadError> {
        let (mut way, mut number, mut is_read) = (first, 0, false);
        loop {
            let unread = match self.by_way_out(&way) {
                Ok(Some(caller)) => return Ok(Some(caller)),
                Err(error) if self.may_be_taken(&way, error) => Some(error),
                _ => None,
            };
            if let Some(error) = unread.filter(|_| from.is_left_by::<A>(&way)) {
                return Err(error);
            }
            is_read |= unread.is_none();
            number += 1;
            let further =
                if number <= MOST_FURTHER_WAYS { self.code.further_way(from, number) } else { None };
            match (further, unread) {
                (Some(further), _) => way = further,
                (None, Some(error)) if !is_read => return Err(error),
                (None, _) => return Ok(None),
            }
        }
    }

    /// Whether a way out may lead to the caller though the word that it leads to can't be read: it is not by a register that has
    /// something else.
    #[cold]
    fn may_be_taken(&self, way: &Epilogue, error: StackReadError) -> bool {
        let by_frame_pointer = way.base == Base::FramePointer || !self.core.has_exact_sp();
        let is_near =
            !by_frame_pointer || self.core.frame_pointer().wrapping_sub(self.core.sp()) < LARGEST_FRAME;
        error != StackReadError::Below && is_near
    }

    /// The caller that the instructions from here on to the function's return lead to, if there is a call before it. The
    /// end of a chain of frame pointers need not be called: Go's runtime puts an address in `goexit` there, others a zero.
    #[inline]
    fn by_way_out(&mut self, epilogue: &Epilogue) -> Result<Option<A::Core>, StackReadError> {
        let in_register = if epilogue.return_address.is_none() && self.frame.kind == FrameKind::Ip {
            self.core.by_entry(self.stack).map(Core::ip)
        } else {
            None
        };
        let led = epilogue.caller(self.core, in_register, A::WORD, self.stack)?;
        Ok(led.filter(|&(word, caller)| self.is_led_to(epilogue, word, caller)).map(|(_, caller)| caller))
    }

    /// Whether the `word` that a way out returns to is one that a `caller` can have.
    #[inline]
    fn is_led_to(&mut self, epilogue: &Epilogue, word: u64, caller: A::Core) -> bool {
        let return_address = self.core.return_address(word);
        let is_called = self.code.site(return_address) != Site::Other;
        let ends_chain = epilogue.frame_pointer.is_some() && caller.frame_pointer() == 0;
        let is_code = |guess: &mut Self| {
            return_address.checked_sub(1).is_some_and(|before| guess.code.is_executable(before))
        };
        is_called || ends_chain && is_code(self)
    }

    /// The caller that a function leads to which seems to begin at `beginning`, if there is a call before its return address.
    fn by_beginning(&mut self, beginning: u64) -> Option<(Evidence, A::Core)> {
        let prologue = self.code.prologue(beginning, self.frame.address.wrapping_sub(beginning));
        if prologue.realigned || !self.core.has_exact_sp() {
            return None;
        }
        let entry = A::WORD.wrap(self.core.sp().wrapping_add(prologue.lowered));
        let slot = A::WORD.wrap(entry.wrapping_sub(prologue.return_address?));
        let word = A::WORD.read(self.stack, slot).ok()?;
        let evidence = match self.code.site_of_word(self.core.return_address(word)) {
            Site::Other => return None,
            Site::Direct(called) if called.is_stub == Some(false) && !called.leads_to(beginning) => {
                Evidence::CallOfAnother
            }
            Site::Direct(_) | Site::Indirect | Site::SignalReturn => Evidence::Frame,
        };
        Some((evidence, prologue.caller(self.core, word, entry, A::WORD, self.stack)?))
    }

    /// The frame pointer's caller.
    fn pointed(&mut self, core: A::Core) -> Option<(Evidence, A::Core)> {
        match self.finding(core.ip(), Place::Record(core.sp().wrapping_sub(A::WORD.bytes()))) {
            Some(finding) => Some(self.found(finding, core.ip(), || Some(core))?),
            // The end of a chain need not be called: as below.
            None => (core.frame_pointer() == 0).then_some((Evidence::Call, core)),
        }
    }

    /// The caller that the register for return addresses leads to.
    fn held(&mut self, core: A::Core) -> Option<(Evidence, A::Core)> {
        let finding = self.finding(core.ip(), Place::Register)?;
        let held = self.found(finding, core.ip(), || Some(core))?;
        (held.0 != Evidence::CallOfAnother).then_some(held)
    }

    /// Whether the register that holds a return address is to be believed before the frame pointer. The call may be one
    /// that this frame made and that is over, of a function before this one: then it lies behind that function's beginning.
    fn tells_more(&self, held: &(Evidence, A::Core), pointed: &(Evidence, A::Core)) -> bool {
        let Evidence::CallOfThis(Reverse(into)) = held.0 else { return false };
        let behind = held.1.ip().wrapping_sub(self.frame.address.wrapping_sub(into));
        matches!(pointed.0, Evidence::CallOfThis(_)) || behind >= MAX_FUNCTION
    }

    /// A return address is executable; a chain of frame pointers ends in two zeros.
    fn is_plausible(&mut self, caller: A::Core) -> bool {
        (caller.ip() == 0 && caller.frame_pointer() == 0)
            || self.code.is_executable(caller.ip().wrapping_sub(1))
            || self.code.is_signal_return(caller.ip())
    }

    /// What speaks for the return address `word` in a place.
    fn finding(&mut self, word: u64, place: Place) -> Option<Finding> {
        let address = self.core.return_address(word);
        let site = match place {
            Place::Stack(_) => self.code.site_of_word(address),
            Place::Register | Place::Record(_) => self.code.site(address),
        };
        let called = match site {
            Site::Other => return None,
            Site::SignalReturn | Site::Indirect => return Some(Evidence::Call.into()),
            Site::Direct(called) => called,
        };
        let Called { target, is_stub, onward } = called;
        // A linkage table may lie as near as a function's beginning.
        let of_this = if is_stub == Some(true) { None } else { self.finding_of_call(target, place) };
        let other = if is_stub == Some(false) { Evidence::CallOfAnother } else { Evidence::Call };
        of_this.or_else(|| self.finding_of_call(onward?, place)).or(Some(other.into()))
    }

    /// What a call of the function at `target` says, if that may be the frame's.
    fn finding_of_call(&mut self, target: u64, place: Place) -> Option<Finding> {
        let into = self.frame.address.wrapping_sub(target);
        if into >= MAX_FUNCTION {
            return None;
        }
        let prologue = self.code.prologue(target, into);
        let lowered_from = A::WORD.wrap(self.core.sp().wrapping_add(prologue.lowered));
        let (entry, is_frame) = match place {
            // The call may be over, and the register as it left it.
            Place::Register => (prologue.return_address.is_none().then_some(lowered_from), false),
            Place::Stack(slot) => {
                let entry = prologue.entry_by_slot(slot, A::WORD);
                // Behind its first instructions a function may have pushed more.
                (
                    entry.filter(|&entry| entry >= lowered_from),
                    entry == Some(lowered_from) && !prologue.realigned,
                )
            }
            Place::Record(slot) => {
                let entry = prologue.entry_by_record(slot, A::WORD);
                (entry, entry.is_some())
            }
        };
        let evidence = match is_frame {
            true => Evidence::Frame,
            false if into < NEAR => Evidence::CallOfThis(Reverse(into)),
            false => Evidence::Call,
        };
        Some(Finding { evidence, begun: entry.map(|entry| (entry, prologue)) })
    }

    /// The caller that a return address leads to: by how the function began, if that is known.
    fn found(
        &self,
        finding: Finding,
        word: u64,
        otherwise: impl FnOnce() -> Option<A::Core>,
    ) -> Option<(Evidence, A::Core)> {
        let core = match finding.begun {
            Some((entry, prologue)) => prologue.caller(self.core, word, entry, A::WORD, self.stack),
            None => otherwise(),
        };
        Some((finding.evidence, core?))
    }

    /// The likeliest return address on the stack below `end`, if there is one with more than `enough` to say for it.
    fn scan(&mut self, end: u64, enough: Option<Evidence>) -> Option<(Evidence, A::Core)> {
        let mut best: Option<(Evidence, A::Core)> = None;
        for number in 0..SCANNED {
            let slot = A::WORD.above(self.core.sp(), number)?;
            if slot >= end || matches!(best, Some((Evidence::Frame, _))) {
                break;
            }
            let Ok(word) = A::WORD.read(self.stack, slot) else { break };
            let known = best.map(|(known, _)| known).max(enough);
            if known >= Some(Evidence::Call) && !self.is_in_reach(word) {
                continue;
            }
            let Some(finding) = self.finding(word, Place::Stack(slot)) else { continue };
            if Some(finding.evidence) > known {
                best = self.found(finding, word, || self.core.by_slot(slot, word, self.stack)).or(best);
            }
        }
        best
    }

    /// Whether the call before a return address may be one of this function.
    fn is_in_reach(&self, word: u64) -> bool {
        let distance = self.core.return_address(word).wrapping_sub(self.frame.address);
        A::WORD.signed(distance).unsigned_abs() < REACH
    }
}

#[cfg(test)]
mod tests;
