//! All samples of a recording, in chunks that are packed when they are full, of which the oldest go into a file where that is wanted.
//!
//! ```text
//! in the file          in memory, up to the cap     as they come
//! [chunk 0][chunk 1]   [chunk 2] ... [chunk n]      rows, at most 4096
//! ```
//!
//! A sample of a clock takes about 10 bytes, one with a value, attributes and a raw event less than 24: see `chunk.rs`.

mod chunk;
mod sort;
mod spill;
#[cfg(test)]
mod tests;

use std::io;
use std::mem;

use super::{EventRecordId, Sample, SampleKindId};
use crate::ids::Nanos;
use chunk::{Chunk, ROWS, Row};
use spill::{Place, Spill};

pub use spill::SpillFile;

/// Chunks, so that positions have 32 bits.
const MOST_CHUNKS: usize = (1 << 32) / ROWS - 1;

/// Chunks that are written for each one that comes, so that a file that could not be written for a while does not hold up what comes.
const WRITTEN_AT_ONCE: usize = 4;

/// All samples of a recording, in the order they were taken out of the rings: per CPU in time order, between CPUs not.
///
/// They are in memory unless [`Self::spill_beyond`] was told of a file.
#[derive(Debug, Default)]
pub struct Samples {
    chunks: Vec<Stored>,
    /// The samples behind those of the chunks.
    open: Vec<Row>,
    kinds: Kinds,
    /// Bytes of the chunks that are in memory.
    in_memory: u64,
    /// The first chunk that may be in memory.
    next: usize,
    refused: u64,
    spill: Spill,
}

/// A full chunk.
#[derive(Debug)]
struct Stored {
    first: Nanos,
    last: Nanos,
    at: Where,
}

#[derive(Debug)]
enum Where {
    /// In memory, and where it was before it changed.
    Memory(Box<Chunk>, Option<Place>),
    File(Place),
}

/// The kinds that there are samples of, a bit each.
#[derive(Clone, Debug, Default)]
struct Kinds(Vec<u64>);

impl Kinds {
    #[inline]
    fn add(&mut self, kind: SampleKindId) {
        let (word, bit) = (usize::from(kind.0 / 64), 1 << (kind.0 % 64));
        match self.0.get_mut(word) {
            Some(bits) => *bits |= bit,
            None => self.grow(word, bit),
        }
    }

    #[cold]
    fn grow(&mut self, word: usize, bit: u64) {
        self.0.resize(word + 1, 0);
        self.0[word] = bit;
    }

    fn has(&self, kind: SampleKindId) -> bool {
        self.0.get(usize::from(kind.0 / 64)).is_some_and(|bits| bits >> (kind.0 % 64) & 1 != 0)
    }

    fn iter(&self) -> impl Iterator<Item = SampleKindId> + '_ {
        (0..64 * self.0.len()).map(|kind| SampleKindId(kind as u16)).filter(|&kind| self.has(kind))
    }
}

/// Some samples that lie side by side.
enum Part<'a> {
    Open(&'a [Row]),
    Memory(&'a Chunk),
    File(Box<Chunk>),
}

impl Part<'_> {
    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Open(rows) => rows.len(),
            Self::Memory(_) | Self::File(_) => ROWS,
        }
    }

    #[inline]
    fn row(&self, at: usize) -> Row {
        match self {
            Self::Open(rows) => rows[at],
            Self::Memory(chunk) => chunk.row(at),
            Self::File(chunk) => chunk.row(at),
        }
    }

    #[inline]
    fn sample(&self, at: usize) -> Sample {
        match self {
            Self::Open(rows) => rows[at].sample,
            Self::Memory(chunk) => chunk.sample(at),
            Self::File(chunk) => chunk.sample(at),
        }
    }

    #[inline]
    fn time(&self, at: usize) -> Nanos {
        match self {
            Self::Open(rows) => rows[at].sample.time,
            Self::Memory(chunk) => chunk.time(at),
            Self::File(chunk) => chunk.time(at),
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        (0..self.len()).map(|at| self.row(at))
    }
}

/// A chunk's samples; `None` if they can't be read.
fn part_of<'a>(stored: &'a Stored, spill: &Spill) -> Option<Part<'a>> {
    match &stored.at {
        Where::Memory(chunk, _) => Some(Part::Memory(chunk)),
        Where::File(place) => spill.read(*place).map(|chunk| Part::File(Box::new(chunk))),
    }
}

/// Adding and changing.
impl Samples {
    /// What stays in memory where nothing else is said: 256 MiB.
    pub const LIMIT: u64 = 256 << 20;

    /// Has samples written into a file as soon as they take more than so many bytes of memory, and one more chunk of 4096. It is opened
    /// when it is needed. What can't be written stays in memory: see [`Self::unwritten`].
    pub fn spill_beyond(
        &mut self,
        bytes: u64,
        open: impl Fn() -> io::Result<Box<dyn SpillFile>> + Send + Sync + 'static,
    ) {
        self.spill.set_cap(bytes, open);
        self.write_chunks(self.chunks.len());
    }

    /// Adds a sample. Out: its position; `None` where there are 4 billion, which is counted.
    pub fn push(&mut self, sample: &Sample) -> Option<usize> {
        self.push_row(Row::new(sample))
    }

    #[inline]
    fn push_row(&mut self, row: Row) -> Option<usize> {
        if self.open.len() == ROWS && !self.close() {
            self.refused += 1;
            return None;
        }
        self.kinds.add(row.sample.kind);
        self.open.push(row);
        Some(self.len() - 1)
    }

    /// Packs the rows, which are [`ROWS`]. Says whether there was room for one chunk more.
    #[cold]
    #[inline(never)]
    fn close(&mut self) -> bool {
        if self.chunks.len() == MOST_CHUNKS {
            return false;
        }
        let chunk = Chunk::pack(&self.open);
        self.in_memory += chunk.size();
        self.chunks.push(Stored::of(chunk, &self.open, None));
        self.open.clear();
        self.write_chunks(WRITTEN_AT_ONCE);
        true
    }

    /// Writes chunks, not more than that, until the others are no more than may be in memory.
    fn write_chunks(&mut self, most: usize) {
        let mut written = 0;
        while written < most && self.spill.is_over(self.in_memory) {
            let Some(stored) = self.chunks.get_mut(self.next) else { return };
            if let Where::Memory(chunk, before) = &stored.at {
                let Some(place) = self.spill.write(chunk, *before) else { return };
                self.in_memory -= chunk.size();
                stored.at = Where::File(place);
                written += 1;
            }
            self.next += 1;
        }
    }

    /// Says that the last sample is of a raw event.
    pub fn set_record(&mut self, record: EventRecordId) {
        if let Some(last) = self.open.last_mut() {
            last.set_record(record);
        }
    }

    /// Multiplies the values of the samples at some positions; where there is none, nothing. Positions in order need each part of a
    /// file once.
    pub fn scale(&mut self, indexes: &[usize], factor: f64) {
        let scaled = |value: i64| (value as f64 * factor).round() as i64;
        for indexes in indexes.chunk_by(|one, other| one / ROWS == other / ROWS) {
            let Some(at) = indexes.first().map(|index| index / ROWS) else { continue };
            let rows = indexes.iter().map(|index| index % ROWS);
            if at == self.chunks.len() {
                for row in rows {
                    if let Some(row) = self.open.get_mut(row) {
                        row.sample.value = scaled(row.sample.value);
                    }
                }
                continue;
            }
            self.bring_back(at);
            if let Some(Stored { at: Where::Memory(chunk, _), .. }) = self.chunks.get_mut(at) {
                let before = chunk.size();
                for row in rows {
                    chunk.set_value(row, scaled(chunk.sample(row).value));
                }
                self.in_memory = self.in_memory - before + chunk.size();
            }
            self.write_chunks(WRITTEN_AT_ONCE);
        }
    }

    /// Reads a chunk into memory, so that it can be changed.
    fn bring_back(&mut self, at: usize) {
        let Some(stored) = self.chunks.get_mut(at) else { return };
        if let Where::File(place) = stored.at
            && let Some(chunk) = self.spill.read(place)
        {
            self.in_memory += chunk.size();
            stored.at = Where::Memory(Box::new(chunk), Some(place));
            self.spill.forget(at);
            self.next = self.next.min(at);
        }
    }

    /// Shows each sample to `change`, which may change it.
    pub fn change_each(&mut self, mut change: impl FnMut(&mut Sample)) {
        let mut kinds = Kinds::default();
        let mut change = |row: &mut Row| {
            let before = row.sample;
            change(&mut row.sample);
            kinds.add(row.sample.kind);
            row.sample != before
        };
        let mut rows = Vec::new();
        for at in 0..self.chunks.len() {
            let Some(part) = part_of(&self.chunks[at], &self.spill) else { continue };
            rows.clear();
            rows.extend(part.rows());
            drop(part);
            let changed = rows.iter_mut().map(&mut change).filter(|is_changed| *is_changed).count();
            if changed > 0 {
                self.replace(at, &rows);
            }
        }
        self.open.iter_mut().for_each(|row| _ = change(row));
        self.kinds = kinds;
    }

    /// Packs a chunk anew.
    fn replace(&mut self, at: usize, rows: &[Row]) {
        let stored = &mut self.chunks[at];
        let before = match &stored.at {
            Where::File(place) => Some(*place),
            Where::Memory(chunk, place) => {
                self.in_memory -= chunk.size();
                *place
            }
        };
        let new = Chunk::pack(rows);
        self.in_memory += new.size();
        *stored = Stored::of(new, rows, before);
        self.spill.forget(at);
        self.next = self.next.min(at);
        self.write_chunks(WRITTEN_AT_ONCE);
    }

    /// None, with the same cap, and a file of their own.
    pub(super) fn none_like(&self) -> Self {
        Self { spill: self.spill.like(), ..Self::default() }
    }

    /// The samples that `keep` takes, with the raw events that they are of, with the same cap and a file of their own.
    pub(super) fn part(&self, keep: impl Fn(&Sample) -> bool) -> Self {
        let mut kept = self.none_like();
        for part in self.parts() {
            for row in part.rows().filter(|row| keep(&row.sample)) {
                kept.push_row(row);
            }
        }
        kept.spill.inherit(&self.spill);
        kept
    }

    /// Leaves out the samples that `keep` refuses. Out: the raw events that those were of.
    pub fn retain(&mut self, mut keep: impl FnMut(&Sample) -> bool) -> Vec<EventRecordId> {
        self.retain_mut(|sample, _| keep(sample))
    }

    /// The same, where `keep` may change those that it takes, too. It is given the raw event that a sample is of, which it does not change.
    pub fn retain_mut(
        &mut self,
        mut keep: impl FnMut(&mut Sample, Option<EventRecordId>) -> bool,
    ) -> Vec<EventRecordId> {
        let none = self.none_like();
        let Self { chunks, open, spill, .. } = mem::replace(self, none);
        let mut left_out = Vec::new();
        let mut look = |mut row: Row| {
            let record = row.record();
            if keep(&mut row.sample, record) {
                self.push_row(row);
            } else {
                left_out.extend(record);
            }
        };
        // Each chunk goes when it was looked through.
        for stored in chunks {
            let Some(part) = part_of(&stored, &spill) else { continue };
            part.rows().for_each(&mut look);
        }
        open.into_iter().for_each(look);
        self.spill.inherit(&spill);
        left_out
    }
}

/// Reading. What can't be read back from the file is left out, and told by [`Self::check`].
impl Samples {
    /// Number of samples.
    #[inline]
    pub fn len(&self) -> usize {
        self.chunks.len() * ROWS + self.open.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sample at a position.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Sample> {
        (index < self.len()).then(|| self.at(index))
    }

    /// The sample at a position that is known to be there. Of those in the file, one is found quickly that is near others that were asked
    /// for lately.
    ///
    /// # Panics
    /// Where there is none.
    #[inline]
    pub fn at(&self, index: usize) -> Sample {
        match self.chunks.get(index / ROWS) {
            None => self.open[index - self.chunks.len() * ROWS].sample,
            Some(Stored { at: Where::Memory(chunk, _), .. }) => chunk.sample(index % ROWS),
            Some(_) => self.row(index).sample,
        }
    }

    /// The raw event that the sample at a position is of.
    pub fn record(&self, index: usize) -> Option<EventRecordId> {
        if index < self.len() { self.row(index).record() } else { None }
    }

    /// The sample at a position that is known to be there, and the raw event that it is of.
    #[inline]
    pub(super) fn with_record(&self, index: usize) -> (Sample, Option<EventRecordId>) {
        let row = self.row(index);
        (row.sample, row.record())
    }

    #[inline]
    fn row(&self, index: usize) -> Row {
        let (at, row) = (index / ROWS, index % ROWS);
        match self.chunks.get(at).map(|stored| &stored.at) {
            None => self.open[index - self.chunks.len() * ROWS],
            Some(Where::Memory(chunk, _)) => chunk.row(row),
            Some(Where::File(place)) => self.spill.row(at, *place, row).unwrap_or_default(),
        }
    }

    /// All samples, in stored order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Sample> + '_ {
        self.parts().flat_map(|part| (0..part.len()).map(move |at| part.sample(at)))
    }

    /// The raw events that samples are of.
    pub(super) fn records(&self) -> impl Iterator<Item = EventRecordId> + '_ {
        self.parts().flat_map(|part| (0..part.len()).filter_map(move |at| part.row(at).record()))
    }

    /// The times of all samples, in stored order.
    #[inline]
    pub fn times(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.parts().flat_map(|part| (0..part.len()).map(move |at| part.time(at)))
    }

    /// Positions and times of samples, with all of those since `since` and before `end`, where these are given. Chunks that have none of
    /// them are not looked at.
    pub(super) fn times_about(
        &self,
        since: Option<Nanos>,
        end: Option<Nanos>,
    ) -> impl Iterator<Item = (u32, Nanos)> + '_ {
        let may_have = move |stored: &Stored| {
            since.is_none_or(|since| stored.last >= since) && end.is_none_or(|end| stored.first < end)
        };
        let chunks = self.chunks.iter().enumerate().filter(move |(_, stored)| may_have(stored));
        let parts = chunks.filter_map(|(at, stored)| Some((at, part_of(stored, &self.spill)?)));
        let parts = parts.chain([(self.chunks.len(), Part::Open(&self.open))]);
        parts.flat_map(|(chunk, part)| {
            (0..part.len()).map(move |at| ((chunk * ROWS + at) as u32, part.time(at)))
        })
    }

    /// The first and the last time of samples.
    pub fn span(&self) -> Option<(Nanos, Nanos)> {
        let chunks = self.chunks.iter().map(|stored| (stored.first, stored.last));
        let open = self.open.iter().map(|row| (row.sample.time, row.sample.time));
        chunks.chain(open).reduce(|(first, last), (from, to)| (first.min(from), last.max(to)))
    }

    /// The kinds that there are samples of, in order.
    pub fn kinds(&self) -> impl Iterator<Item = SampleKindId> + '_ {
        self.kinds.iter()
    }

    /// Whether there are samples of a kind.
    pub fn has_kind(&self, kind: SampleKindId) -> bool {
        self.kinds.has(kind)
    }

    #[inline]
    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let chunks = self.chunks.iter().filter_map(|stored| part_of(stored, &self.spill));
        chunks.chain([Part::Open(&self.open)])
    }

    /// Bytes of memory that the samples take, but for what is held while they are read.
    pub fn bytes(&self) -> u64 {
        let own = self.chunks.capacity() * size_of::<Stored>() + self.open.capacity() * size_of::<Row>();
        self.in_memory + own as u64
    }

    /// Bytes of the file that samples are in.
    pub fn bytes_in_file(&self) -> u64 {
        self.spill.bytes()
    }

    /// Why samples that should be in the file are in memory, or were for a while.
    pub fn unwritten(&self) -> Option<(io::ErrorKind, &str)> {
        self.spill.unwritten()
    }

    /// Samples that were not added, because there were 4 billion.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Tells whether all samples could be read so far that were asked for: what was written of them is not whole otherwise.
    ///
    /// # Errors
    /// When some were in the file and could not be read back.
    pub fn check(&self) -> io::Result<()> {
        let told = |cause| format!("samples that were put into a temporary file can't be read back: {cause}");
        self.spill.unread().map_or(Ok(()), |(kind, cause)| Err(io::Error::new(kind, told(cause))))
    }
}

impl Stored {
    fn of(chunk: Chunk, rows: &[Row], before: Option<Place>) -> Self {
        let times = rows.iter().map(|row| row.sample.time);
        let (first, last) =
            times.fold((Nanos(u64::MAX), Nanos(0)), |(first, last), time| (first.min(time), last.max(time)));
        Self { first, last, at: Where::Memory(Box::new(chunk), before) }
    }
}
