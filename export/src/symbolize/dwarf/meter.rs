//! What reading a file's debug information may cost: bytes, memory, time, and depth of calls.
//!
//! `gimli` and `addr2line` read what a file says for as long as it says so, and go down into functions inlined into
//! each other by calling themselves. All of their reading goes through our reader, and all of that through
//! [`Meter::charge`]: from there the file's claims end in an error.

use std::cell::{Cell, RefCell};
use std::io;
use std::time::{Duration, Instant};

use super::LineError;

/// How many times the bytes of its sections a file's debug information may be read, names again and again included. Real
/// files take less than twice when every function of theirs is looked up.
const TIMES: u64 = 6;

/// What may be read of every file, and for every address.
const ALWAYS: u64 = 4 << 20;
const PER_ADDRESS: u64 = 4 << 10;

/// What may be held of one file and of those it refers to.
const MAX_HELD: u64 = 2 << 30;

/// The longest for one module.
const MAX_TIME: Duration = Duration::from_mins(1);

/// Bytes of the stack for what is called to read: more than 100 functions inlined into each other, in a debug build.
const MAX_STACK: usize = 1 << 20;

/// A limit, and how much of it is left.
#[derive(Debug)]
pub(super) struct Meter {
    left: Cell<u64>,
    held: Cell<u64>,
    deadline: Instant,
    /// Where the stack was when reading began.
    stack: usize,
    /// Why nothing is read any more.
    stop: RefCell<Option<LineError>>,
}

impl Meter {
    /// For so many addresses of one module.
    pub(super) fn new(addresses: usize) -> Self {
        Self {
            left: Cell::new(ALWAYS.saturating_add((addresses as u64).saturating_mul(PER_ADDRESS))),
            held: Cell::new(0),
            deadline: Instant::now() + MAX_TIME,
            stack: stack_address(),
            stop: RefCell::new(None),
        }
    }

    /// A file with sections of so many bytes is read, too.
    pub(super) fn add_file(&self, size: u64) {
        self.left.set(self.left.get().saturating_add(size.saturating_mul(TIMES)));
    }

    /// Before so many bytes are read.
    #[inline]
    pub(super) fn charge(&self, bytes: usize) -> Result<(), gimli::Error> {
        let left = self.left.get().checked_sub(bytes as u64 + 1);
        if let Some(left) = left
            && self.stack.abs_diff(stack_address()) < MAX_STACK
        {
            self.left.set(left);
            return Ok(());
        }
        // Nothing is left, so that whoever goes on after an error gets the same.
        self.left.set(0);
        Err(self.stop(if left.is_none() { LineError::Endless } else { LineError::Deep }))
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
        if Instant::now() < self.deadline { Ok(()) } else { Err(self.stop(LineError::Endless)) }
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

    /// What an error of `gimli` means.
    pub(super) fn explain(&self, error: gimli::Error) -> LineError {
        self.stop.borrow_mut().take().unwrap_or(LineError::Malformed(error))
    }
}

/// About where the stack ends now.
#[inline]
fn stack_address() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}
