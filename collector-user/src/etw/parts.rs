//! The files of one recording in, their records in the order of time out.
//!
//! Sessions that run at once write a file each. They count the ticks of one clock, from the machine's boot on, so that their records are put in order
//! by these alone; and none of them began after another had ended, but what .NET's runtime was asked for when the recording was over: that is how
//! things were at its end.

use std::io::{Read, Seek};
use std::path::PathBuf;

use collector_common::record::ExportMachine;
use export::import::{ImportError, Imported, checked};
use thiserror::Error;
use windows_etw::etl::{Clock, EtlFile, TraceHeader};
use windows_etw::part::Part;

use super::file::{Etl, account, taker, unread};
use super::taker::Taker;

/// Why files are not of one recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Difference {
    /// Ticks of the one are not those of the other.
    #[error("its clock is another")]
    Clock,
    /// They are of two machines, or one was booted in between.
    #[error("its machine was booted at another time")]
    Boot,
    /// The one had ended when the other began.
    #[error("it was recorded at another time")]
    Time,
}

/// Files of one recording that can't be read together.
#[derive(Debug, Error)]
pub enum PartsError {
    /// The first of them.
    #[error(transparent)]
    First(#[from] ImportError),
    /// One that was found beside it.
    #[error(
        "{}, which is taken for a part of it by its name, can't be read: {source}; move it elsewhere to do without it",
        path.display()
    )]
    Part {
        /// Its place.
        path: PathBuf,
        /// Why.
        source: ImportError,
    },
    /// One that is of another recording.
    #[error(
        "{}, which is taken for a part of it by its name, is of another recording: {why}; move it elsewhere",
        path.display()
    )]
    Other {
        /// Its place.
        path: PathBuf,
        /// How that is known.
        why: Difference,
    },
}

impl Etl {
    /// Reads a file with those that its recording has written besides ([`Part::beside`](windows_etw::part::Part::beside)): the clock and the times
    /// are those of the first. The rest is as for [`import_into`](export::import::ImportFormat::import_into).
    ///
    /// # Errors
    /// When one can't be read, or is of another recording than the first.
    pub fn import_with_parts<R: Read + Seek>(
        self,
        machine: ExportMachine,
        first: R,
        parts: Vec<(PathBuf, R)>,
        event_bytes: u64,
    ) -> Result<Imported, PartsError> {
        let first = EtlFile::open(first).map_err(unread)?;
        let header = first.header().clone();
        let (mut files, mut paths) = (vec![first], Vec::new());
        let (rundowns, parts): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|(path, _)| Part::is_rundown(path));
        let during = parts.len() + 1;
        for (path, part) in parts.into_iter().chain(rundowns) {
            let part = match EtlFile::open(part) {
                Ok(part) => part,
                Err(error) => return Err(PartsError::Part { path, source: unread(error) }),
            };
            if let Some(why) = difference(&header, part.header(), Part::is_rundown(&path)) {
                return Err(PartsError::Other { path, why });
            }
            files.push(part);
            paths.push(path);
        }
        let mut taker = taker(machine, &header, event_bytes);
        take_all(&mut files, during, &mut taker).map_err(|(index, source)| {
            match index.checked_sub(1).and_then(|index| paths.get(index)) {
                Some(path) => PartsError::Part { path: path.clone(), source },
                None => PartsError::First(source),
            }
        })?;
        let mut imported = taker.finish();
        account(files.iter().map(EtlFile::losses), &mut imported);
        Ok(checked(imported)?)
    }
}

/// Gives the records of all files, the oldest first; of one time those of the first file come first. Those of files behind the first `during` are no
/// later than the last of these. An error is that of the file at a position.
pub(super) fn take_all<R: Read + Seek>(
    files: &mut [EtlFile<R>],
    during: usize,
    taker: &mut Taker,
) -> Result<(), (usize, ImportError)> {
    let mut last = i64::MIN;
    loop {
        let mut oldest = None;
        for (file, index) in files.iter_mut().zip(0..) {
            let Some(ticks) = file.next_ticks().map_err(|error| (index, unread(error)))? else { continue };
            if oldest.is_none_or(|(oldest, _)| ticks < oldest) {
                oldest = Some((ticks, index));
            }
        }
        let Some((_, index)) = oldest else { return Ok(()) };
        let Some(file) = files.get_mut(index) else { return Ok(()) };
        if let Some(mut record) = file.next_record().map_err(|error| (index, unread(error)))? {
            if index < during {
                last = last.max(record.ticks);
            } else {
                record.ticks = record.ticks.min(last);
            }
            taker.take(&record);
        }
    }
}

/// Whether ticks of both mean the same.
pub(super) fn is_one_clock(one: &Clock, other: &Clock) -> bool {
    (one.kind, one.frequency) == (other.kind, other.frequency)
}

/// Why two files are not of one recording; none where they may be. What is told when it is over begins later.
fn difference(one: &TraceHeader, other: &TraceHeader, is_rundown: bool) -> Option<Difference> {
    let has_ended_before = |one: &TraceHeader, other: &TraceHeader| {
        last_ticks(one).is_some_and(|last| last < i128::from(other.clock.start_ticks))
    };
    if !is_one_clock(&one.clock, &other.clock) {
        Some(Difference::Clock)
    } else if one.boot != other.boot {
        Some(Difference::Boot)
    } else if !is_rundown && has_ended_before(one, other) || has_ended_before(other, one) {
        Some(Difference::Time)
    } else {
        None
    }
}

/// Ticks at the end of a trace; none where its session was not closed.
fn last_ticks(header: &TraceHeader) -> Option<i128> {
    let Clock { frequency, start, start_ticks, .. } = header.clock;
    let nanos = header.end?.unix_nanos() - start.unix_nanos();
    Some(i128::from(start_ticks) + nanos.saturating_mul(frequency.into()) / 1_000_000_000)
}
