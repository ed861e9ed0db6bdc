//! Chunks of samples in a file: written when memory is to be spared, and read back one at a time.
//!
//! A chunk that can't be written stays in memory, and is tried again. One that can't be read back is missing: that is kept as a failure,
//! and whoever writes the recording asks for it.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chunk::{Chunk, Row};

/// Chunks that are held beside each other when samples are read in another order than that in which they were added: 64 take up to
/// 9 MB, and 4 MB as samples are.
const HELD: usize = 64;

/// A file of the samples' own, in which nobody else writes: nothing is in it when it is opened, and nobody wants it when it is closed.
pub trait SpillFile: Read + Write + Seek + Send {}

impl<T: Read + Write + Seek + Send> SpillFile for T {}

type Open = dyn Fn() -> io::Result<Box<dyn SpillFile>> + Send + Sync;

/// How much stays in memory, and where the rest goes.
#[derive(Clone)]
pub(super) struct Cap {
    bytes: u64,
    open: Arc<Open>,
}

/// Where a chunk is in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    at: u64,
    length: u32,
    /// Bytes that are its own, from `at` on.
    room: u32,
}

/// The file, once there is one.
#[derive(Default)]
pub(super) struct Spill {
    cap: Option<Cap>,
    /// The end of what was written.
    end: u64,
    /// Why something could not be written.
    unwritten: Option<Failure>,
    reading: Mutex<Reading>,
}

/// What is needed to read. Samples are read by several at once.
#[derive(Default)]
struct Reading {
    file: Option<Box<dyn SpillFile>>,
    held: Vec<Held>,
    /// Where the one is among them that was asked for last.
    last: usize,
    turn: u64,
    failure: Option<Failure>,
}

/// What kind of failure it was, and what it said.
type Failure = (io::ErrorKind, String);

struct Held {
    index: usize,
    /// When it was asked for last.
    turn: u64,
    chunk: Chunk,
}

impl Spill {
    /// One with the same cap, and a file of its own.
    pub(super) fn like(&self) -> Self {
        Self { cap: self.cap.clone(), ..Self::default() }
    }

    /// Takes over that something could not be read.
    pub(super) fn inherit(&mut self, other: &Self) {
        let failure = &mut self.reading.get_mut().unwrap_or_else(PoisonError::into_inner).failure;
        *failure = failure.take().or_else(|| other.unread());
    }

    pub(super) fn set_cap(
        &mut self,
        bytes: u64,
        open: impl Fn() -> io::Result<Box<dyn SpillFile>> + Send + Sync + 'static,
    ) {
        self.cap = Some(Cap { bytes, open: Arc::new(open) });
    }

    /// Whether so many bytes are too many.
    pub(super) fn is_over(&self, bytes: u64) -> bool {
        self.cap.as_ref().is_some_and(|cap| bytes > cap.bytes)
    }

    /// Bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    pub(super) fn unwritten(&self) -> Option<(io::ErrorKind, &str)> {
        self.unwritten.as_ref().map(|(kind, told)| (*kind, told.as_str()))
    }

    /// Writes a chunk where it was, if it has room there, or behind all others.
    pub(super) fn write(&mut self, chunk: &Chunk, before: Option<Place>) -> Option<Place> {
        let written = self.try_write(chunk.bytes(), before);
        written.map_err(|error| self.unwritten = Some((error.kind(), error.to_string()))).ok()
    }

    fn try_write(&mut self, bytes: &[u8], before: Option<Place>) -> io::Result<Place> {
        let Self { cap, end, reading, .. } = self;
        let file = &mut reading.get_mut().unwrap_or_else(PoisonError::into_inner).file;
        let file = match (&mut *file, cap) {
            (Some(file), _) => file,
            (None, Some(cap)) => file.insert((cap.open)()?),
            (None, None) => return Err(io::ErrorKind::Unsupported.into()),
        };
        let length = bytes.len() as u32;
        let place = match before.filter(|place| place.room >= length) {
            Some(place) => Place { length, ..place },
            None => Place { at: *end, length, room: length },
        };
        file.seek(SeekFrom::Start(place.at))?;
        file.write_all(bytes)?;
        *end = (*end).max(place.at + u64::from(length));
        Ok(place)
    }

    /// A chunk that is read from its start to its end.
    pub(super) fn read(&self, place: Place) -> Option<Chunk> {
        self.reading().read(place)
    }

    /// A sample of a chunk; `None` if that can't be read.
    pub(super) fn row(&self, index: usize, place: Place, row: usize) -> Option<Row> {
        self.reading().hold(index, place).map(|chunk| chunk.row(row))
    }

    /// Forgets what is held of a chunk, which is about to change.
    pub(super) fn forget(&mut self, index: usize) {
        let held = &mut self.reading.get_mut().unwrap_or_else(PoisonError::into_inner).held;
        held.retain(|held| held.index != index);
    }

    /// Why something could not be read.
    pub(super) fn unread(&self) -> Option<Failure> {
        self.reading().failure.clone()
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    fn hold(&mut self, index: usize, place: Place) -> Option<&Chunk> {
        self.turn += 1;
        let is_it = |held: &Held| held.index == index;
        if !self.held.get(self.last).is_some_and(is_it) {
            self.last = if let Some(at) = self.held.iter().position(is_it) {
                at
            } else {
                let chunk = self.read(place)?;
                self.put(Held { index, turn: 0, chunk })
            };
        }
        let held = self.held.get_mut(self.last)?;
        held.turn = self.turn;
        Some(&held.chunk)
    }

    /// Puts a chunk in the place of the one that was not asked for for the longest time.
    fn put(&mut self, new: Held) -> usize {
        if self.held.len() < HELD {
            self.held.push(new);
            return self.held.len() - 1;
        }
        let oldest = self.held.iter_mut().enumerate().min_by_key(|(_, held)| held.turn);
        oldest.map_or(0, |(at, held)| {
            *held = new;
            at
        })
    }

    fn read(&mut self, place: Place) -> Option<Chunk> {
        let read = self.try_read(place);
        read.map_err(|error| {
            let failure = || (error.kind(), error.to_string());
            self.failure.get_or_insert_with(failure);
        })
        .ok()
    }

    fn try_read(&mut self, place: Place) -> io::Result<Chunk> {
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = vec![0; place.length as usize].into_boxed_slice();
        file.seek(SeekFrom::Start(place.at))?;
        file.read_exact(&mut bytes)?;
        let changed = || io::Error::new(io::ErrorKind::InvalidData, "it was changed");
        Chunk::parse(bytes).ok_or_else(changed)
    }
}

impl fmt::Debug for Spill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cap = self.cap.as_ref().map(|cap| cap.bytes);
        f.debug_struct("Spill").field("cap", &cap).field("bytes", &self.end).finish_non_exhaustive()
    }
}
