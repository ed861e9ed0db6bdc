//! The records of all buffers in the order of time, with as much in memory as is needed for that and not more.
//!
//! ```text
//!  time ──────────────►
//!  buffer 4   ▒▒▒▒▓▓▓│▓▓▓░           ▒ given   ▓ loaded   ░ not loaded
//!  buffer 1     ▒▒▒▓▓│▓▓▓▓▓▓▓
//!  buffer 7          │ ▓▓▓▓
//!  buffer 2          │    ░░░░░░     loaded once the line comes to its first record
//! ```
//!
//! A buffer's records are in order, or are put in order when it is loaded. The index says when the first of each buffer came;
//! a buffer is loaded before any later record is given. So the oldest of what is loaded is the oldest there is, whatever
//! order buffers have in the file, and whether a CPU has one row of buffers or several, as in merged files. Loaded are the
//! buffers that overlap, about one a CPU. Where these are more than may be in memory, those that are needed last are
//! forgotten and loaded again: how far each was given is kept.
//!
//! Records of one time are given in the order of the file.
//!
//! A buffer says that something was lost before it. Where it has no records of the kernel's, that is said with the next one of its CPU that has: of
//! a session that has both. A file may be put together of sessions, of which one has those of providers alone, and loses nothing else.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::io::{Read, Seek};

use super::error::EtlError;
use super::index::{Entry, Lost};
use super::loaded::{Loaded, Record};
use super::losses::Losses;
use super::source::Source;

/// Order of records: the time, then the place of their buffer.
type Key = (i64, u64);

/// How often all of the file may be loaded again, on average.
const MOST_AGAIN: u64 = 16;

/// Emptied buffers that are kept for the next ones.
const MOST_SPARE: usize = 16;

/// A buffer of which records are left.
#[derive(Debug)]
struct Run {
    entry: Entry,
    /// None where it was forgotten.
    loaded: Option<Loaded>,
    /// Records that were given.
    given: usize,
    /// When the next one came.
    next: i64,
    /// Whether events of the kernel may have been lost before it; known once one was given.
    is_after_loss: bool,
}

/// Losses that no record of the kernel's was told of yet.
#[derive(Debug, Default)]
struct Untold {
    cpus: HashSet<u16>,
    /// Whether the kernel's records and others are in one session.
    is_mixed: bool,
}

impl Untold {
    /// A buffer begins. Out: whether that is behind a loss of the kernel's.
    fn begin(&mut self, entry: &Entry, loaded: &Loaded) -> bool {
        // The first buffer has what describes the file.
        self.is_mixed |= entry.at > 0 && loaded.has_kernel && loaded.has_others;
        let is_of_kernel = match entry.lost {
            Lost::No => false,
            Lost::Before => loaded.has_kernel || self.is_mixed || loaded.records.is_empty(),
            Lost::BeforeEmpty => true,
        };
        if is_of_kernel {
            self.cpus.insert(entry.cpu);
        }
        loaded.has_kernel && self.cpus.remove(&entry.cpu)
    }
}

impl Run {
    fn key(&self) -> Key {
        (self.next, self.entry.at)
    }
}

/// Goes through all buffers.
#[derive(Debug)]
pub(super) struct Merge {
    /// By the time of their first records.
    entries: Vec<Entry>,
    /// How many of them were loaded once.
    opened: usize,
    runs: Vec<Option<Run>>,
    /// Places of `runs` that are free.
    free: Vec<usize>,
    /// Of all runs but the current one.
    heap: BinaryHeap<Reverse<(Key, usize)>>,
    /// The run whose records are given until there is an older one.
    current: Option<usize>,
    /// The key up to which that is so.
    until: Key,
    untold: Untold,
    spare: Vec<Loaded>,
    /// Bytes of `runs` and `spare`.
    memory: usize,
    /// Bytes that there may be.
    most_memory: usize,
    /// Bytes that may still be loaded again.
    again: u64,
}

impl Merge {
    /// `entries` are in the order of their first records.
    pub(super) fn new(entries: Vec<Entry>, most_memory: usize) -> Self {
        let all: u64 = entries.iter().map(|entry| entry.memory() as u64).sum();
        Self {
            again: all.saturating_mul(MOST_AGAIN),
            entries,
            opened: 0,
            runs: Vec::new(),
            free: Vec::new(),
            heap: BinaryHeap::new(),
            current: None,
            until: (i64::MIN, 0),
            untold: Untold::default(),
            spare: Vec::new(),
            memory: 0,
            most_memory,
        }
    }

    /// Goes to the next record: the place of its run, and it.
    pub(super) fn advance<R: Read + Seek>(
        &mut self,
        source: &mut Source<R>,
        losses: &mut Losses,
    ) -> Result<Option<(usize, Record)>, EtlError> {
        loop {
            if let Some(place) = self.current {
                if let Some(record) = self.take(place) {
                    return Ok(Some((place, record)));
                }
                self.leave(place);
            }
            let Some(place) = self.oldest(source, losses)? else { return Ok(None) };
            self.load_again(place, source)?;
            self.until = self.heap.peek().map_or((i64::MAX, u64::MAX), |Reverse((key, _))| *key);
            if let Some(entry) = self.entries.get(self.opened) {
                self.until = self.until.min((entry.first, entry.at));
            }
            self.current = Some(place);
        }
    }

    /// The bytes of the record that was given last, its CPU, and whether events of the kernel may have been lost just before it.
    pub(super) fn last(&self, place: usize, record: Record) -> Option<(&[u8], u16, bool)> {
        let Run { entry, loaded, given, is_after_loss, .. } = self.runs.get(place)?.as_ref()?;
        let loaded = loaded.as_ref()?;
        Some((loaded.bytes_of(record), entry.cpu, *given == 1 && *is_after_loss))
    }

    /// The next record of the current run, if none is older.
    fn take(&mut self, place: usize) -> Option<Record> {
        let run = self.runs.get_mut(place)?.as_mut()?;
        let loaded = run.loaded.as_ref()?;
        let record = *loaded.records.get(run.given)?;
        if (record.ticks, run.entry.at) > self.until {
            return None;
        }
        if run.given == 0 {
            run.is_after_loss = self.untold.begin(&run.entry, loaded);
        }
        run.given += 1;
        Some(record)
    }

    /// Puts the current run back, or away if all of it was given.
    fn leave(&mut self, place: usize) {
        self.current = None;
        let Some(slot) = self.runs.get_mut(place) else { return };
        let next = slot.as_ref().and_then(|run| run.loaded.as_ref()?.records.get(run.given));
        if let (Some(next), Some(run)) = (next.copied(), slot.as_mut()) {
            run.next = next.ticks;
            self.heap.push(Reverse((run.key(), place)));
        } else if let Some(loaded) = slot.take().and_then(|run| run.loaded) {
            self.free.push(place);
            self.put_by(loaded);
        }
    }

    fn put_by(&mut self, loaded: Loaded) {
        if self.spare.len() < MOST_SPARE && self.memory <= self.most_memory {
            self.spare.push(loaded);
        } else {
            self.memory -= loaded.memory();
        }
    }

    /// The run with the oldest record, once all buffers are loaded that may have it.
    fn oldest<R: Read + Seek>(
        &mut self,
        source: &mut Source<R>,
        losses: &mut Losses,
    ) -> Result<Option<usize>, EtlError> {
        while let Some(entry) = self.entries.get(self.opened).copied() {
            if self.heap.peek().is_some_and(|Reverse((key, _))| *key < (entry.first, entry.at)) {
                break;
            }
            self.opened += 1;
            let loaded = self.load(&entry, source, losses)?;
            let Some(next) = loaded.first() else {
                self.untold.begin(&entry, &loaded);
                self.put_by(loaded);
                continue;
            };
            let run = Run { entry, loaded: Some(loaded), given: 0, next, is_after_loss: false };
            let key = run.key();
            let place = self.free.pop().unwrap_or(self.runs.len());
            if place == self.runs.len() {
                self.runs.push(Some(run));
            } else {
                self.runs[place] = Some(run);
            }
            self.heap.push(Reverse((key, place)));
        }
        Ok(self.heap.pop().map(|Reverse((_, place))| place))
    }

    fn load<R: Read + Seek>(
        &mut self,
        entry: &Entry,
        source: &mut Source<R>,
        losses: &mut Losses,
    ) -> Result<Loaded, EtlError> {
        self.make_room(entry);
        let mut loaded = self.spare.pop().unwrap_or_default();
        self.memory -= loaded.memory();
        loaded.load(source, entry, losses)?;
        self.memory += loaded.memory();
        Ok(loaded)
    }

    /// Loads a run that was forgotten.
    fn load_again<R: Read + Seek>(&mut self, place: usize, source: &mut Source<R>) -> Result<(), EtlError> {
        let forgotten = self.runs[place].as_ref().filter(|run| run.loaded.is_none());
        if let Some(entry) = forgotten.map(|run| run.entry) {
            let again = self.again.checked_sub(entry.memory() as u64);
            self.again = again.ok_or(EtlError::Overlapping { memory: self.most_memory })?;
            // What is wrong with it was told before.
            let loaded = self.load(&entry, source, &mut Losses::default())?;
            if let Some(run) = &mut self.runs[place] {
                run.loaded = Some(loaded);
            }
        }
        Ok(())
    }

    /// Forgets what is needed last, if there would be too much with this buffer. Then it forgets half, so that this is rare.
    fn make_room(&mut self, entry: &Entry) {
        let needed = entry.memory();
        if self.memory + needed <= self.most_memory {
            return;
        }
        self.memory -= self.spare.drain(..).map(|loaded| loaded.memory()).sum::<usize>();
        if self.memory + needed <= self.most_memory {
            return;
        }
        let mut by_need: Vec<&mut Run> =
            self.runs.iter_mut().flatten().filter(|run| run.loaded.is_some()).collect();
        by_need.sort_by_key(|run| Reverse(run.key()));
        for run in by_need {
            if self.memory + needed <= self.most_memory / 2 {
                break;
            }
            self.memory -= run.loaded.take().map_or(0, |loaded| loaded.memory());
        }
    }
}
