//! What a function still does to the stack before it returns, which says where its caller is found.

use crate::arch::Core;
use crate::word::Word;
use crate::{Architecture, Frame, FrameKind, StackMemory, StackReadError};

/// Bytes of code that are looked at in one piece.
pub(crate) const LONGEST_EPILOGUE: usize = 128;

/// What distances are counted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Base {
    #[default]
    StackPointer,
    FramePointer,
}

/// What code does to the stack. Distances count up from the value that a register has at its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epilogue {
    pub(crate) base: Base,
    /// Where the stack pointer is left.
    pub(crate) raised: u64,
    /// Where the return address is taken from; `None` while it is in a register.
    pub(crate) return_address: Option<u64>,
    /// Where the caller's frame pointer is taken from; `None` if it is still in the register.
    pub(crate) frame_pointer: Option<u64>,
    /// What the function's own frame pointer is, as long as code has given the register that on the way.
    pub(crate) own_frame_pointer: Option<u64>,
}

/// Calling conventions have the stack pointer be a multiple of this at calls.
const STACK_ALIGNMENT: u64 = 16;

/// What of a frame decides how its function seems to go on to a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) address: u64,
    /// It is behind a call.
    pub(crate) has_called: bool,
    /// By how much the stack pointer is above a multiple of [`STACK_ALIGNMENT`].
    pub(crate) misaligned: u8,
}

impl Departure {
    /// Behind calls the stack pointer counts as aligned, so that what is known of a return address follows from code alone.
    #[inline]
    pub(crate) fn of(frame: Frame, sp: u64) -> Self {
        let has_called = frame.kind == FrameKind::ReturnAddress;
        let misaligned = if has_called { 0 } else { (sp % STACK_ALIGNMENT) as u8 };
        Departure { address: frame.address, has_called, misaligned }
    }

    /// Whether code that does this to the stack leaves the stack pointer as callers have it, and takes the return address
    /// from where it can have been put. That of another function, on to which code seems to run behind a call that never
    /// returns, does not.
    pub(crate) fn is_left_by<A: Architecture>(self, epilogue: &Epilogue) -> bool {
        if epilogue.base == Base::FramePointer {
            return true;
        }
        let is_there = epilogue.return_address.map_or(!self.has_called, |place| place.cast_signed() >= 0);
        self.left_by::<A>(epilogue).is_multiple_of(STACK_ALIGNMENT) && is_there
    }

    /// Where the stack pointer is left, from a multiple of [`STACK_ALIGNMENT`].
    fn left_by<A: Architecture>(self, epilogue: &Epilogue) -> u64 {
        let popped = if A::RETURNS_BY_REGISTER { 0 } else { A::WORD.bytes() };
        epilogue.raised.wrapping_add(u64::from(self.misaligned)).wrapping_add(popped)
    }

    /// The same code, if what it lacks to leave the stack pointer as callers have it is what the function that was called dropped
    /// of its arguments.
    fn past_arguments<A: Architecture>(self, epilogue: &Epilogue) -> Option<Epilogue> {
        let dropped = self.left_by::<A>(epilogue).wrapping_neg() % STACK_ALIGNMENT;
        let may_be = A::MAY_DROP_ARGUMENTS && self.has_called && dropped.is_multiple_of(A::WORD.bytes());
        let further = |place: u64| place.wrapping_add(dropped);
        let past = Epilogue {
            base: epilogue.base,
            raised: further(epilogue.raised),
            return_address: epilogue.return_address.map(further),
            frame_pointer: epilogue.frame_pointer.map(further),
            own_frame_pointer: None,
        };
        (may_be && self.is_left_by::<A>(&past)).then_some(past)
    }
}

/// What ways to a return do to the stack: first those that leave it as callers have it, in the order in which they were found.
#[derive(Debug)]
pub(crate) struct Ends {
    from: Departure,
    fitting: [Option<Epilogue>; Self::MOST],
    others: [Option<Epilogue>; Self::MOST],
}

impl Ends {
    /// So many different ones are kept of each.
    const MOST: usize = 3;

    pub(crate) fn from(from: Departure) -> Self {
        Ends { from, fitting: [None; Self::MOST], others: [None; Self::MOST] }
    }

    /// `end`, unless there is one like it.
    pub(crate) fn add<A: Architecture>(&mut self, end: Epilogue) {
        let fits = self.from.is_left_by::<A>(&end);
        let ends = if fits { &mut self.fitting } else { &mut self.others };
        let place = ends.iter_mut().find(|known| known.is_none_or(|known| known == end));
        if let Some(place) = place {
            *place = Some(end);
        }
    }

    /// The one after `number` others, if no way that is followed later can come before it.
    pub(crate) fn certain(&self, number: usize) -> Option<Epilogue> {
        *self.fitting.get(number)?
    }

    /// The one after `number` others.
    pub(crate) fn nth<A: Architecture>(&self, number: usize) -> Option<Epilogue> {
        let others = self.others.iter().flatten();
        let others = others.flat_map(|end| [self.from.past_arguments::<A>(end), Some(*end)]).flatten();
        self.fitting.iter().flatten().copied().chain(others).nth(number)
    }
}

/// Where code goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Returns,
    /// So far behind its beginning.
    Jumps(i64),
    Unknown,
}

/// Ways through a function that are to be followed one after the other: where each begins, and what was done to the stack by
/// then.
#[derive(Debug)]
pub(crate) struct Ways {
    known: [(u64, Epilogue); MOST_WAYS],
    count: usize,
    followed: usize,
    pieces: usize,
}

/// Further ones are not followed.
const MOST_WAYS: usize = 32;

/// Pieces of code that all of them have together.
const MOST_PIECES: usize = 64;

impl Ways {
    pub(crate) fn from(address: u64) -> Self {
        Ways { known: [(address, Epilogue::default()); MOST_WAYS], count: 1, followed: 0, pieces: 0 }
    }

    /// Whether another piece of code may be looked at.
    pub(crate) fn go_on(&mut self) -> bool {
        self.pieces += 1;
        self.pieces <= MOST_PIECES
    }

    /// One that begins at `address`, unless there is one already.
    pub(crate) fn add(&mut self, address: u64, epilogue: Epilogue) {
        let (known, free) = self.known.split_at_mut(self.count);
        if let Some(way) = free.first_mut().filter(|_| known.iter().all(|way| way.0 != address)) {
            *way = (address, epilogue);
            self.count += 1;
        }
    }
}

impl Iterator for Ways {
    type Item = (u64, Epilogue);

    fn next(&mut self) -> Option<Self::Item> {
        let way = *self.known.get(..self.count)?.get(self.followed)?;
        self.followed += 1;
        Some(way)
    }
}

impl Epilogue {
    pub(crate) fn raise(&mut self, bytes: i64) {
        self.raised = self.raised.wrapping_add_signed(bytes);
    }

    /// The frame pointer is loaded from so far above where the stack pointer is; with the caller's, if it is the last time. What
    /// is below where the stack pointer was at the beginning has been put there since: it is still in the register.
    pub(crate) fn load_frame_pointer(&mut self, above: i64) {
        let place = self.place(above);
        self.own_frame_pointer = None;
        self.frame_pointer = (self.base == Base::FramePointer || place.cast_signed() >= 0).then_some(place);
    }

    /// The frame pointer becomes so much more than the stack pointer: the caller's has been saved by then.
    pub(crate) fn set_frame_pointer(&mut self, above: i64) {
        self.own_frame_pointer = Some(self.place(above));
    }

    /// The return address is loaded into its register likewise.
    pub(crate) fn load_return_address(&mut self, above: i64) {
        let place = self.place(above);
        self.return_address = (self.base == Base::FramePointer || place.cast_signed() >= 0).then_some(place);
    }

    /// Whether nothing is left on the stack of what was pushed on the way.
    pub(crate) fn has_popped_all(&self) -> bool {
        self.base == Base::FramePointer || self.raised.cast_signed() >= 0
    }

    fn place(&self, above: i64) -> u64 {
        self.raised.wrapping_add_signed(above)
    }

    /// The return address is where the stack pointer is.
    pub(crate) fn return_here(&mut self) {
        self.return_address = Some(self.raised);
    }

    /// The stack pointer becomes that register's value with `offset` added. `false` if the register has another value by now.
    #[must_use]
    pub(crate) fn rebase(&mut self, base: Base, offset: i64) -> bool {
        if let Some(own) = self.own_frame_pointer.filter(|_| base == Base::FramePointer) {
            self.raised = own.wrapping_add_signed(offset);
            return self.return_address.is_none();
        }
        let is_known = self.frame_pointer.is_none() && self.return_address.is_none();
        (self.base, self.raised) = (base, 0_u64.wrapping_add_signed(offset));
        is_known
    }

    /// The word that the code returns to, and its caller; `in_register` is the word that a register has for it. There
    /// is none where the stack does not get smaller.
    #[inline]
    pub(crate) fn caller<C: Core, M: StackMemory>(
        &self,
        core: C,
        in_register: Option<u64>,
        word: Word,
        stack: &M,
    ) -> Result<Option<(u64, C)>, StackReadError> {
        let Some(base) = self.base_of(core, word) else { return Ok(None) };
        let read = |above| word.read(stack, word.wrap(base.wrapping_add(above)));
        let returned_to = match (self.return_address, in_register) {
            (Some(above), _) => read(above)?,
            (None, Some(in_register)) => in_register,
            (None, None) => return Ok(None),
        };
        let frame_pointer = self.frame_pointer.map_or(Ok(core.frame_pointer()), read)?;
        let entry = word.wrap(base.wrapping_add(self.raised));
        let caller = core.returned(returned_to, entry, frame_pointer);
        let is_further = |sp| sp > core.sp() || self.return_address.is_none() && sp == core.sp();
        Ok(caller.filter(|caller| is_further(caller.sp())).map(|caller| (returned_to, caller)))
    }

    /// What distances are counted from.
    fn base_of<C: Core>(&self, core: C, word: Word) -> Option<u64> {
        Some(match self.base {
            Base::StackPointer if core.has_exact_sp() => core.sp(),
            // Where a function keeps its frame record the frame pointer has that one's address.
            Base::StackPointer => core.frame_pointer().wrapping_sub(self.record(word)?),
            Base::FramePointer => core.frame_pointer(),
        })
    }

    /// Where the frame record is, if the return address and the caller's frame pointer are loaded from one.
    fn record(&self, word: Word) -> Option<u64> {
        let record = self.frame_pointer?;
        (self.return_address? == record.wrapping_add(word.bytes())).then_some(record)
    }
}

/// An [`Epilogue`] in 4 bytes, as most are: the return address is on the stack, everything is a whole number of words,
/// and there are not too many of them. From the lowest bit:
///
/// ```text
///  1   from the frame pointer
///  15  words that the stack pointer is raised by
///  8   words from the return address up to there
///  8   the same of the caller's frame pointer; all ones if it is still in the register
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortEpilogue(u32);

impl ShortEpilogue {
    const UNCHANGED: u64 = 0xff;

    pub(crate) fn of(epilogue: &Epilogue, word: Word) -> Option<Self> {
        let words = |bytes: u64| bytes.is_multiple_of(word.bytes()).then(|| bytes / word.bytes());
        let raised = words(epilogue.raised).filter(|raised| raised >> 15 == 0)?;
        let below =
            |place: u64| words(epilogue.raised.wrapping_sub(place)).filter(|&below| below < Self::UNCHANGED);
        let return_address = below(epilogue.return_address?)?;
        let frame_pointer = epilogue.frame_pointer.map_or(Some(Self::UNCHANGED), below)?;
        let base = u64::from(epilogue.base == Base::FramePointer);
        let bits = base | raised << 1 | return_address << 16 | frame_pointer << 24;
        u32::try_from(bits).ok().map(ShortEpilogue)
    }

    /// As [`Epilogue::caller`] finds it.
    #[allow(clippy::inline_always, reason = "a call would take a third of a guessed step")]
    #[inline(always)]
    pub(crate) fn caller<C: Core, M: StackMemory>(self, core: C, word: Word, stack: &M) -> Option<C> {
        let bits = u64::from(self.0);
        let raised = bits >> 1 & 0x7fff;
        let (from, by) = if bits & 1 == 1 {
            (core.frame_pointer(), raised)
        } else if core.has_exact_sp() {
            (core.sp(), raised)
        } else {
            let [return_address, record] = [bits >> 16 & 0xff, bits >> 24];
            if record == Self::UNCHANGED || record != return_address + 1 {
                return None;
            }
            (core.frame_pointer(), record)
        };
        let entry = word.wrap(from.wrapping_add(by * word.bytes()));
        let saved = |below| word.read(stack, word.wrap(entry.wrapping_sub(below * word.bytes()))).ok();
        let returned_to = saved(bits >> 16 & 0xff)?;
        let frame_pointer = match bits >> 24 {
            Self::UNCHANGED => core.frame_pointer(),
            below => saved(below)?,
        };
        let caller = core.returned(returned_to, entry, frame_pointer)?;
        (caller.sp() > core.sp()).then_some(caller)
    }
}

#[cfg(test)]
mod tests {
    use super::{Base, Core, Epilogue, MOST_WAYS, ShortEpilogue, Ways};
    use crate::word::Word;
    use crate::{CopiedStack, StackReadError, x86_64};

    #[test]
    fn a_caller_is_further_up() {
        let core = x86_64::Registers::new(0x1000, [0x7008; 16]).core();
        let stack = [7_u64, 8, 9].map(u64::to_le_bytes).concat();
        let stack = CopiedStack::new(0x7000, &stack, 0);
        let caller = |raised: i64| {
            let raised = 0_u64.wrapping_add_signed(raised);
            let epilogue = Epilogue { raised, return_address: Some(raised), ..Epilogue::default() };
            let caller = epilogue.caller(core, None, Word::Eight, &stack);
            caller.map(|caller| caller.map(|(word, caller)| (word, Core::sp(caller))))
        };
        assert_eq!(caller(0), Ok(Some((8, 0x7010))));
        assert_eq!(caller(8), Ok(Some((9, 0x7018))));
        // `push %rax; ret`, as retpolines have it, goes nowhere that the stack tells.
        assert_eq!(caller(-8), Ok(None));
        assert_eq!(caller(16), Err(StackReadError::Beyond));
    }

    #[test]
    fn ways_are_followed_once_and_not_for_ever() {
        let mut ways = Ways::from(0);
        let mut followed = Vec::new();
        while let Some((address, epilogue)) = ways.next() {
            followed.push(address);
            for next in [address, address + 1, 3 * address] {
                ways.add(next, epilogue);
            }
        }
        assert_eq!(followed[..8], [0, 1, 2, 3, 6, 4, 9, 7]);
        assert_eq!(followed.len(), MOST_WAYS);
    }

    #[test]
    fn the_short_form_leads_to_the_same_caller() {
        let leave = Epilogue {
            base: Base::FramePointer,
            raised: 8,
            return_address: Some(8),
            frame_pointer: Some(0),
            own_frame_pointer: None,
        };
        let pops = Epilogue { raised: 0x58, return_address: Some(0x58), ..Epilogue::default() };
        let record = Epilogue { raised: 32, return_address: Some(8), frame_pointer: Some(0), ..pops };
        let large = Epilogue { raised: 8 * 0x7fff, return_address: Some(8 * 0x7fff), ..pops };
        let words: Vec<u8> = (1..0x9000_u64).flat_map(|word| (0x1_0000 + word).to_le_bytes()).collect();
        let stack = CopiedStack::new(0x7000, &words, 0);
        let mut registers = [0; 16];
        // rbp and rsp
        [registers[6], registers[7]] = [0x7100, 0x7008];
        let core = x86_64::Registers::new(0x1000, registers).core();
        for epilogue in [leave, pops, record, large] {
            let (_, caller) = epilogue.caller(core, None, Word::Eight, &stack).unwrap().unwrap();
            let short = ShortEpilogue::of(&epilogue, Word::Eight).unwrap();
            assert_eq!(short.caller(core, Word::Eight, &stack), Some(caller), "{epilogue:?}");
        }
        [registers[6], registers[7]] = [0x7100, 0x9000];
        let core = x86_64::Registers::new(0x1000, registers).core();
        let short = ShortEpilogue::of(&leave, Word::Eight).unwrap();
        assert_eq!(
            (leave.caller(core, None, Word::Eight, &stack), short.caller(core, Word::Eight, &stack)),
            (Ok(None), None)
        );
    }

    #[test]
    fn what_does_not_fit_is_not_cut() {
        let pops = Epilogue { raised: 0x58, return_address: Some(0x58), ..Epilogue::default() };
        for epilogue in [
            Epilogue { return_address: None, ..pops },
            Epilogue { raised: 0x5c, ..pops },
            Epilogue { raised: 8 * 0x8000, return_address: Some(8 * 0x8000), ..pops },
            Epilogue { raised: 8 << 16, return_address: Some(8 << 16), ..pops },
            Epilogue { raised: 0x58, return_address: Some(0x60), ..pops },
            Epilogue { raised: 8 * 300, return_address: Some(8 * 300), frame_pointer: Some(8 * 45), ..pops },
            Epilogue { raised: 8 * 300, return_address: Some(8 * 300), frame_pointer: Some(8 * 10), ..pops },
        ] {
            assert_eq!(ShortEpilogue::of(&epilogue, Word::Eight), None, "{epilogue:?}");
        }
        assert!(
            ShortEpilogue::of(&Epilogue { raised: 0x5c, return_address: Some(0x5c), ..pops }, Word::Four)
                .is_some()
        );
    }
}
