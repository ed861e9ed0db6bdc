//! What reading a file's debug information may cost: bytes, memory, time, and depth of calls.
//!
//! `gimli` and `addr2line` read what a file says for as long as it says so, and go down into functions inlined into
//! each other by calling themselves. All of their reading goes through our reader, and all of that through
//! [`Meter::charge`]: from there the file's claims end in an error.

use std::cell::{Cell, RefCell};
use std::io;
use std::time::Instant;

use gimli::SectionId;

use super::LineError;

/// How many times the bytes of its sections a file's debug information may be read, names again and again included. Real
/// files take less than twice when every function of theirs is looked up.
const TIMES: u64 = 6;

/// A section counts as no more than so many times its bytes in the file, however it is packed.
const MOST_UNPACKED: u64 = 16;

/// What may be read of every file, and for every address.
const ALWAYS: u64 = 4 << 20;
const PER_ADDRESS: u64 = 4 << 10;

/// What may be held of one file and of those it refers to.
const MAX_HELD: u64 = 2 << 30;

/// What may be made of that, by estimate, which for real files is some three times what is made.
const MAX_MADE: u64 = 4 << 30;

/// What may be made of any file, and for every byte in it of its sections.
const ALWAYS_MADE: u64 = 64 << 20;
const MADE_PER_BYTE: u64 = 128;

/// What `addr2line` makes of an entry that it reads: a function with an address, and one that is inlined, have a little less.
const ENTRY: u64 = 128;

/// Reads between two looks at the clock.
const READS: u32 = 64;

/// Bytes of the stack for what is called to read: more than 100 functions inlined into each other, in a debug build.
const MAX_STACK: usize = 1 << 20;

/// What `gimli` and `addr2line` make of a byte that they read, at most: a row of lines of 24 bytes is told by one byte, an
/// abbreviation of 112 by 5, a range of 32 by 3. Vectors that grow take up to three times that for a moment. Of entries see
/// [`Meter::next_entry`].
fn made_of_byte(section: SectionId) -> u64 {
    match section {
        SectionId::DebugLine | SectionId::DebugAbbrev => 24,
        SectionId::DebugAranges | SectionId::DebugRanges | SectionId::DebugRngLists => 12,
        SectionId::DebugInfo => 0,
        _ => 1,
    }
}

/// What was done of an entry so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Untouched,
    /// It was read, and nothing more may be known of it than its number.
    Read,
    /// Some of it was skipped, which is not done with entries that are wanted.
    Passed,
}

/// A limit, and how much of it is left.
#[derive(Debug)]
pub(super) struct Meter {
    left: Cell<u64>,
    held: Cell<u64>,
    /// What was made of what was read, by estimate, and how much that may be.
    made: Cell<u64>,
    most_made: Cell<u64>,
    entry: Cell<Entry>,
    deadline: Instant,
    reads: Cell<u32>,
    /// Where the stack was when reading began.
    stack: usize,
    /// Why nothing is read any more.
    stop: RefCell<Option<LineError>>,
}

impl Meter {
    /// For so many addresses of one module, up to some time.
    pub(super) fn new(addresses: usize, deadline: Instant) -> Self {
        Self {
            left: Cell::new(ALWAYS.saturating_add((addresses as u64).saturating_mul(PER_ADDRESS))),
            held: Cell::new(0),
            made: Cell::new(0),
            most_made: Cell::new(ALWAYS_MADE),
            entry: Cell::new(Entry::Untouched),
            deadline,
            reads: Cell::new(0),
            stack: stack_address(),
            stop: RefCell::new(None),
        }
    }

    /// A section is read, too, that has so many bytes in the file and so many unpacked.
    pub(super) fn add_section(&self, packed: u64, unpacked: u64) {
        let size = unpacked.min(packed.saturating_mul(MOST_UNPACKED));
        self.left.set(self.left.get().saturating_add(size.saturating_mul(TIMES)));
        let most = self.most_made.get().saturating_add(packed.saturating_mul(MADE_PER_BYTE));
        self.most_made.set(most.min(MAX_MADE));
    }

    /// Before so many bytes of a section are read.
    #[inline]
    pub(super) fn charge(&self, section: SectionId, bytes: usize) -> Result<(), gimli::Error> {
        let left = self.left.get().checked_sub(bytes as u64 + 1);
        let made = self.made.get().saturating_add((bytes as u64).saturating_mul(made_of_byte(section)));
        if let Some(left) = left
            && made <= self.most_made.get()
            && self.stack.abs_diff(stack_address()) < MAX_STACK
        {
            self.left.set(left);
            self.made.set(made);
            let reads = self.reads.get().wrapping_add(1);
            self.reads.set(reads);
            return if reads.is_multiple_of(READS) { self.check_time() } else { Ok(()) };
        }
        // Nothing is left, so that whoever goes on after an error gets the same.
        self.left.set(0);
        Err(self.stop(if left.is_none() {
            LineError::Endless
        } else if made > self.most_made.get() {
            LineError::TooLarge { limit: self.most_made.get() }
        } else {
            LineError::Deep
        }))
    }

    /// An entry begins. Of one that was read something is kept; one byte may be all that it has.
    #[inline]
    pub(super) fn next_entry(&self) {
        if self.entry.replace(Entry::Untouched) == Entry::Read {
            self.made.set(self.made.get().saturating_add(ENTRY));
        }
    }

    /// Something of an entry is read.
    #[inline]
    pub(super) fn read_entry(&self) {
        if self.entry.get() == Entry::Untouched {
            self.entry.set(Entry::Read);
        }
    }

    /// Something of an entry is skipped, so that nothing is kept of it.
    #[inline]
    pub(super) fn pass_entry(&self) {
        self.entry.set(Entry::Passed);
    }

    /// Before so many bytes are held.
    pub(super) fn hold(&self, bytes: u64) -> Result<(), gimli::Error> {
        self.held.set(self.held.get().saturating_add(bytes));
        if self.held.get() > MAX_HELD {
            return Err(self.stop(LineError::TooLarge { limit: MAX_HELD }));
        }
        self.check_time()
    }

    /// Between two pieces of work that may be long.
    pub(super) fn check_time(&self) -> Result<(), gimli::Error> {
        if Instant::now() < self.deadline {
            return Ok(());
        }
        self.left.set(0);
        Err(self.stop(LineError::Late))
    }

    /// Reading failed.
    pub(super) fn failed(&self, error: io::Error) -> gimli::Error {
        self.stop(LineError::Read(error))
    }

    /// Notes the first reason.
    pub(super) fn stop(&self, why: LineError) -> gimli::Error {
        self.stop.borrow_mut().get_or_insert(why);
        gimli::Error::Io
    }

    /// Whether nothing can be read any more.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.borrow().is_some()
    }

    /// Why nothing can be read any more, also where nobody passed on the error that said so.
    pub(super) fn reason(&self) -> Result<(), LineError> {
        self.stop.borrow_mut().take().map_or(Ok(()), Err)
    }
}

/// About where the stack ends now.
#[inline]
fn stack_address() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}
