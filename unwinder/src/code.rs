//! What guesses ask about the code of an address space: what is called where, how functions begin, and how they go on to
//! their return. Answers are remembered ([`CodeMemory`]).

use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;

use crate::arch::{Call, LONGEST_CODE};
use crate::code_memory::CodeMemory;
use crate::epilogue::{Departure, Ends, Epilogue, LONGEST_EPILOGUE, Next, ShortEpilogue, Ways};
use crate::metered::Metered;
use crate::prologue::{LONGEST_PROLOGUE, Prologue};
use crate::region::RegionMemory;
use crate::rule::{Rule, RuleOf};
use crate::{AddressSpace, Architecture, Frame, FrameKind};

/// Pieces of code on a way to a function's return.
const LONGEST_WAY_OUT: usize = 16;

/// How far back a function's beginning is looked for, and in pieces of which size; before each piece there is as much as tells
/// that what comes before a function has ended.
const FAR: usize = 64 << 10;
const PIECES: RangeInclusive<usize> = 64..=2048;
const FIRST_PIECE: usize = 256;
const BEFORE: usize = 16;

/// Mappings begin at multiples of this, if not of more.
const PAGE: u64 = 4096;

/// What there is before an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Site {
    /// No call, or no code: it is no return address.
    #[default]
    Other,
    /// It is that of the code that a signal handler returns to.
    SignalReturn,
    /// A call of an address in a register or in memory.
    Indirect,
    Direct(Called),
}

/// What a call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) target: u64,
    /// Whether it does nothing but jump on (`None`: there is no code to tell by).
    pub(crate) is_stub: Option<bool>,
    /// Where it jumps to before it does anything to the stack.
    pub(crate) onward: Option<u64>,
}

impl Called {
    pub(crate) fn leads_to(&self, address: u64) -> bool {
        self.target == address || self.onward == Some(address)
    }
}

/// What code does from an address on up to its function's return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WayOut {
    #[default]
    Unknown,
    Known(Epilogue),
}

/// The code of an address space.
pub(crate) struct Code<'a, A, S> {
    space: Metered<'a, S>,
    generation: Option<NonZeroU64>,
    regions: &'a mut RegionMemory,
    memory: &'a mut CodeMemory,
    architecture: PhantomData<A>,
}

impl<'a, A: Architecture, S: AddressSpace<A>> Code<'a, A, S> {
    pub(crate) fn new(
        space: Metered<'a, S>,
        generation: Option<NonZeroU64>,
        regions: &'a mut RegionMemory,
        memory: &'a mut CodeMemory,
    ) -> Self {
        Code { space, generation, regions, memory, architecture: PhantomData }
    }

    /// The generation under which answers are remembered, as long as what they follow from has been read.
    fn learning(&self) -> Option<NonZeroU64> {
        self.generation.filter(|_| !self.space.budget.is_spent())
    }

    pub(crate) fn is_executable(&mut self, address: u64) -> bool {
        self.regions.is_mapped(&self.space, self.generation, address)
    }

    /// Whether `address` is that of the code that a signal handler returns to.
    pub(crate) fn is_signal_return(&self, address: u64) -> bool {
        is_signal_return(&self.space, address)
    }

    /// What the code of a frame adds to the `rule` that a table has for it, or has not.
    #[cold]
    pub(crate) fn rule(&mut self, frame: Frame, rule: RuleOf<A>) -> RuleOf<A> {
        let may_be_code = matches!(rule, Rule::Missing | Rule::General(_) | Rule::NeedsAll(_));
        if frame.kind != FrameKind::ReturnAddress || !may_be_code {
            return rule;
        }
        match rule {
            _ if is_signal_return(&self.space, frame.address) => Rule::Interrupted,
            Rule::Missing if is_entry(&self.space, frame) => Rule::Root,
            Rule::Missing => self.guess(frame).map_or(rule, Rule::Guessed),
            _ => rule,
        }
    }

    /// How the code of a return address goes on to its function's return, if that may be remembered.
    fn guess(&mut self, frame: Frame) -> Option<ShortEpilogue> {
        self.generation?;
        // Stacks begin where no call is.
        if self.site(frame.address) == Site::Other {
            return None;
        }
        match self.way_out(frame, Departure::of(frame, 0))? {
            WayOut::Known(epilogue) => ShortEpilogue::of(&epilogue, A::WORD),
            WayOut::Unknown => None,
        }
    }

    /// How the code of a frame goes on to its function's return; `None` where there is no code to look at.
    #[cold]
    pub(crate) fn way_out(&mut self, frame: Frame, from: Departure) -> Option<WayOut> {
        if self.space.code(frame.lookup_address(), &mut [0]) == 0 {
            return None;
        }
        let way = match self.end(from, 0) {
            Some(epilogue) => WayOut::Known(epilogue),
            None => WayOut::Unknown,
        };
        // Whether a handler's way back can be taken depends on the stack: that is asked about each time.
        if !is_signal_return(&self.space, frame.address) {
            self.memory.set_way_out(self.learning(), from, 0, way);
        }
        Some(way)
    }

    /// How it may go on, too, where the first `number` ways led nowhere.
    #[cold]
    pub(crate) fn further_way(&mut self, from: Departure, number: usize) -> Option<Epilogue> {
        let known = self.memory.way_out(self.generation, from, number);
        let way = known.unwrap_or_else(|| {
            let way = self.end(from, number).map_or(WayOut::Unknown, WayOut::Known);
            self.memory.set_way_out(self.learning(), from, number, way);
            way
        });
        match way {
            WayOut::Known(epilogue) => Some(epilogue),
            WayOut::Unknown => None,
        }
    }

    /// What the way after `number` others does to the stack. That on which no condition holds may go round for ever, or where code
    /// can't be followed, or past a call that never returns; the others leave it where one does, the first time.
    fn end(&self, from: Departure, number: usize) -> Option<Epilogue> {
        let (mut ways, mut ends) = (Ways::from(from.address), Ends::from(from));
        while let Some(way) = ways.next() {
            if let Some(end) = self.end_of(way, &mut ways) {
                ends.add::<A>(end);
            }
            if let Some(end) = ends.certain(number) {
                return Some(end);
            }
        }
        ends.nth::<A>(number)
    }

    fn end_of(&self, (mut at, mut epilogue): (u64, Epilogue), ways: &mut Ways) -> Option<Epilogue> {
        let mut followed = [None; LONGEST_WAY_OUT];
        for number in 0..LONGEST_WAY_OUT {
            if followed.contains(&Some(at)) || !ways.go_on() {
                return None;
            }
            *followed.get_mut(number)? = Some(at);
            let mut buffer = [0; LONGEST_CODE + LONGEST_EPILOGUE];
            let (before, code) = code_around(&self.space, at, &mut buffer)?;
            let fork = |distance, epilogue| ways.add(A::WORD.offset(at, distance), epilogue);
            match A::epilogue(before, code, &mut epilogue, fork) {
                Next::Returns => return Some(Epilogue { own_frame_pointer: None, ..epilogue }),
                Next::Jumps(distance) => at = A::WORD.offset(at, distance),
                Next::Unknown => return None,
            }
        }
        None
    }

    /// Where the function of a frame seems to begin, whose way out has been asked about.
    #[cold]
    pub(crate) fn begun(&mut self, frame: Frame, from: Departure) -> Option<u64> {
        let look = || {
            let beginning = beginning(&self.space, frame.lookup_address());
            (beginning, !self.space.budget.is_spent())
        };
        self.memory.beginning(self.generation, from, look)
    }

    /// What there is before `address`.
    #[inline]
    pub(crate) fn site(&mut self, address: u64) -> Site {
        let known = self.memory.site(self.generation, address);
        known.unwrap_or_else(|| self.look_at(address))
    }

    /// The same, of any word on the stack: only what is mapped is looked at.
    #[inline]
    pub(crate) fn site_of_word(&mut self, word: u64) -> Site {
        let known = self.memory.site(self.generation, word);
        known.unwrap_or_else(|| {
            let is_code =
                self.is_behind_code(word) || (word.is_multiple_of(PAGE) && self.is_executable(word));
            if is_code { self.look_at(word) } else { Site::Other }
        })
    }

    fn is_behind_code(&mut self, address: u64) -> bool {
        address.checked_sub(1).is_some_and(|before| self.is_executable(before))
    }

    fn look_at(&mut self, address: u64) -> Site {
        let mut buffer = [0; LONGEST_CODE];
        let is_behind_code = self.is_behind_code(address);
        let code = if is_behind_code { code_before(&self.space, address, &mut buffer) } else { None };
        let is_read = code.is_some() || !is_behind_code;
        let site = match code.and_then(A::call_at_end) {
            Some(Call::Direct(distance)) => {
                Site::Direct(self.called(A::WORD.offset(address, distance.into())))
            }
            Some(Call::Indirect) => Site::Indirect,
            None if self.is_signal_return(address) => Site::SignalReturn,
            None => Site::Other,
        };
        // What can't be read now may be later.
        if is_read {
            self.memory.set_site(self.learning(), address, site);
        }
        site
    }

    fn called(&self, target: u64) -> Called {
        let mut buffer = [0; LONGEST_CODE];
        let beginning =
            buffer.get_mut(..A::LONGEST_STUB).and_then(|buffer| code(&self.space, target, buffer));
        let distance =
            A::tail_jump(function(&self.space, target, LONGEST_PROLOGUE, &mut [0; LONGEST_PROLOGUE]));
        Called {
            target,
            is_stub: beginning.map(A::is_stub),
            onward: distance.map(|distance| A::WORD.offset(target, distance)),
        }
    }

    /// What the function at `entry` has done to the stack up to `into` bytes behind its beginning.
    pub(crate) fn prologue(&mut self, entry: u64, into: u64) -> Prologue {
        let length = u8::try_from(into).map_or(LONGEST_PROLOGUE, |into| LONGEST_PROLOGUE.min(into.into()));
        self.memory.prologue(self.generation, entry, length as u8, || {
            let mut buffer = [0; LONGEST_PROLOGUE];
            let code = function(&self.space, entry, length, &mut buffer);
            (A::prologue(code), code.len() == length)
        })
    }
}

/// The nearest address up to `address` that looks like a function's beginning.
fn beginning<A: Architecture>(space: &impl AddressSpace<A>, address: u64) -> Option<u64> {
    let mut buffer = [0; BEFORE + *PIECES.end()];
    let alignment = A::FUNCTION_ALIGNMENT as u64;
    let mut end = (address - address % alignment).checked_add(alignment)?;
    let (mut length, mut left) = (FIRST_PIECE, FAR);
    while PIECES.contains(&length) && left > 0 {
        let start = end.checked_sub(length as u64)?;
        let buffer = buffer.get_mut(..BEFORE + length)?;
        let Some(piece) = code(space, start.checked_sub(BEFORE as u64)?, buffer) else {
            // Code may begin within the piece.
            length /= 2;
            continue;
        };
        let begins = |&at: &usize| {
            piece.split_at_checked(at).is_some_and(|(before, code)| A::begins_function(before, code))
        };
        let mut places = (BEFORE..piece.len()).step_by(A::FUNCTION_ALIGNMENT).rev();
        if let Some(at) = places.find(begins) {
            return start.checked_add((at - BEFORE) as u64);
        }
        end = start;
        left = left.saturating_sub(length);
        length = (2 * length).min(*PIECES.end());
    }
    None
}

/// The code of the function at `entry`, `length` bytes or as many as are looked at.
fn function<'b, A: Architecture>(
    space: &impl AddressSpace<A>,
    entry: u64,
    length: usize,
    buffer: &'b mut [u8; LONGEST_PROLOGUE],
) -> &'b [u8] {
    let read = space.code(entry, buffer).min(length);
    buffer.get(..read).unwrap_or_default()
}

/// The code of a way from an address on, and what before it tells what it does, if there is that much.
fn code_around<'b, A: Architecture>(
    space: &impl AddressSpace<A>,
    address: u64,
    buffer: &'b mut [u8; LONGEST_CODE + LONGEST_EPILOGUE],
) -> Option<(&'b [u8], &'b [u8])> {
    if let Some(start) = address.checked_sub(A::TOLD_BY as u64).filter(|_| A::TOLD_BY > 0) {
        let read = space.code(start, buffer.get_mut(..A::TOLD_BY + LONGEST_EPILOGUE)?);
        if read > A::TOLD_BY {
            return buffer.get(..read)?.split_at_checked(A::TOLD_BY);
        }
    }
    let read = space.code(address, buffer.get_mut(..LONGEST_EPILOGUE)?);
    Some((&[], buffer.get(..read)?))
}

/// The code before an address that may be a call.
pub(crate) fn code_before<'b, A: Architecture>(
    space: &impl AddressSpace<A>,
    address: u64,
    buffer: &'b mut [u8; LONGEST_CODE],
) -> Option<&'b [u8]> {
    let start = address.checked_sub(A::LONGEST_CALL as u64)?;
    code(space, start, buffer.get_mut(..A::LONGEST_CALL)?)
}

/// Whether a frame without a rule is where its file is started, as musl's `_start` is.
pub(crate) fn is_entry<A: Architecture>(space: &impl AddressSpace<A>, frame: Frame) -> bool {
    let address = frame.lookup_address();
    let mapping = space.lookup(address).filter(|mapping| mapping.contains(address));
    let table = mapping.and_then(|mapping| Some((mapping.table?, mapping.bias)));
    table.is_some_and(|(table, bias)| table.is_entry(address.wrapping_sub(bias)))
}

/// Whether the call before a return address is made on a stack that the code before it has just changed to.
#[cold]
pub(crate) fn is_behind_switch<A: Architecture>(space: &impl AddressSpace<A>, address: u64) -> bool {
    /// From the change of stacks to the call's end.
    const LONGEST_SWITCH: usize = 32;
    let mut buffer = [0; LONGEST_SWITCH];
    let start = address.checked_sub(LONGEST_SWITCH as u64);
    start.and_then(|start| code(space, start, &mut buffer)).is_some_and(A::switches_stack)
}

/// Whether `address` is that of the code that a signal handler returns to.
pub(crate) fn is_signal_return<A: Architecture>(space: &impl AddressSpace<A>, address: u64) -> bool {
    let mut buffer = [0; LONGEST_CODE];
    let code = buffer.get_mut(..A::SIGNAL_RETURN).and_then(|buffer| code(space, address, buffer));
    code.is_some_and(A::is_signal_return)
}

/// All of `buffer`, filled with the code at `address`.
pub(crate) fn code<'b, A: Architecture>(
    space: &impl AddressSpace<A>,
    address: u64,
    buffer: &'b mut [u8],
) -> Option<&'b [u8]> {
    (space.code(address, buffer) >= buffer.len()).then_some(buffer)
}
