//! Records in the order of their times.
//!
//! `perf record` writes one ring after the other, so that a file jumps back in time at each ring; after each round over
//! all rings it writes a `FINISHED_ROUND`.
//!
//! ```text
//!          round 1          round 2          round 3
//! ring 0   1 3 5         |  8 11          |  14 ...
//! ring 1       4 6 7     |     10 12 13   |
//!                        ^                ^ all up to 7 may go: what is older was in a ring when round 2 began,
//!                          newest is 7      and round 2 has taken it out
//! ```

use std::collections::BTreeMap;
use std::io::Read;

use super::reader::OwnedFileRecord;
use super::{FileError, FileReader, FileRecord};
use crate::perf::RecordKind;

/// What is held of any file.
const HELD: u64 = 512 << 20;

/// What is held more for each byte of it: the smallest record with a time has 16, and takes nine times as many. So all that is
/// not packed is held, and what is packed up to that, beyond what is held of any file.
const HELD_PER_BYTE: u64 = 24;

/// Bytes that a record takes beside its own.
const HELD_PER_RECORD: u64 = 64 + size_of::<OwnedFileRecord>() as u64;

/// Gives out records in the order of their times. Those without a time come at once. Two rounds are held in memory;
/// of a file without rounds and of several files, everything. A file that packs more than any real one does is not held whole: its older
/// half is given out when there is no more room, and [`Self::out_of_order`] counts what came too late for that.
pub struct Ordered<R> {
    reader: FileReader<R>,
    waiting: BTreeMap<(u64, u64), OwnedFileRecord>,
    /// Records of the same time keep the order of the file.
    count: u64,
    newest: u64,
    newest_of_last_round: u64,
    /// Up to this time no older record can come.
    safe: u64,
    current: Option<OwnedFileRecord>,
    /// Bytes that the waiting ones take, and may take of any file.
    held: u64,
    most_held: u64,
    /// Up to this time records were given out that older ones could come behind.
    given_up_to: u64,
    out_of_order: u64,
}

impl<R: Read> Ordered<R> {
    /// All records that `reader` has not given out yet.
    pub fn new(reader: FileReader<R>) -> Self {
        Self {
            reader,
            waiting: BTreeMap::new(),
            count: 0,
            newest: 0,
            newest_of_last_round: 0,
            safe: 0,
            current: None,
            held: 0,
            most_held: HELD,
            given_up_to: 0,
            out_of_order: 0,
        }
    }

    /// Holds so many bytes of any file, and not 512 MiB, before more for each of its bytes.
    #[must_use]
    pub fn holding(self, bytes: u64) -> Self {
        Self { most_held: bytes, ..self }
    }

    /// How many records came behind younger ones, since there was no room to hold these for longer.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// The file: its events and features.
    pub fn file(&self) -> &FileReader<R> {
        &self.reader
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// When the file can't be read on. What was read before it comes all the same.
    pub fn next_record(&mut self) -> Result<Option<FileRecord<'_>>, FileError> {
        self.current = self.find_next()?;
        let current = self.current.as_ref();
        Ok(current.map(|next| self.reader.with_event(next.record.as_raw(), next.event, &next.payload)))
    }

    fn find_next(&mut self) -> Result<Option<OwnedFileRecord>, FileError> {
        loop {
            if let Some(first) = self.waiting.first_entry()
                && first.key().0 <= self.safe
            {
                let first = first.remove();
                self.held -= size_of_held(&first);
                return Ok(Some(first));
            }
            let Some(record) = self.reader.next_record()? else {
                if self.waiting.is_empty() {
                    return Ok(None);
                }
                self.safe = u64::MAX;
                continue;
            };
            let owned = OwnedFileRecord {
                record: record.raw.into(),
                payload: record.payload.to_vec(),
                event: record.event,
            };
            // As in perf, neither of these is a time.
            let time = record.config.time(&record.raw).map(|time| time.0);
            let Some(time) = time.filter(|time| ![0, u64::MAX].contains(time)) else {
                if owned.record.kind == RecordKind::FINISHED_ROUND && !self.reader.has_parts() {
                    self.safe = self.safe.max(self.newest_of_last_round);
                    self.newest_of_last_round = self.newest;
                }
                return Ok(Some(owned));
            };
            self.newest = self.newest.max(time);
            self.count += 1;
            self.out_of_order += u64::from(time < self.given_up_to);
            self.held += size_of_held(&owned);
            self.waiting.insert((time, self.count), owned);
            let room = self.reader.bytes_read().saturating_mul(HELD_PER_BYTE).saturating_add(self.most_held);
            if self.held > room
                && let Some(&(time, _)) = self.waiting.keys().nth(self.waiting.len() / 2)
            {
                self.safe = self.safe.max(time);
                self.given_up_to = self.safe;
            }
        }
    }
}

fn size_of_held(held: &OwnedFileRecord) -> u64 {
    HELD_PER_RECORD + (held.record.body.len() + held.payload.len()) as u64
}
