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

/// Gives out records in the order of their times. Those without a time come at once. Two rounds are held in memory;
/// of a file without rounds and of several files, everything.
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
        }
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
                return Ok(Some(first.remove()));
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
            self.waiting.insert((time, self.count), owned);
        }
    }
}
