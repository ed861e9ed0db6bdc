//! Reads a journal, an item after the other.

use std::io::{self, Read};

use collector_common::ids::Nanos;
use collector_common::loss::Ledger;
use collector_common::perf::{Bytes, Misc, RawRecord, RecordKind};
use collector_common::record::{Histogram, Table};
use collector_common::wire::{self, SampleHeader, TrappedReturns};

use super::error::JournalError;
use super::told::{Ending, Start};
use super::{MAGIC, MOST, VERSION, kind};
use crate::event_clock::ClockReading;
use crate::modules::NotedFile;
use crate::packed::{Packed, Unpacker};
use crate::recorder::MOST_EVENTS;
use crate::session::SessionSettings;
use crate::source::{Account, EventIndex, Source, SourceRecord};

/// A journal of which the beginning has been read.
pub struct Journal<R> {
    reader: R,
    /// Bytes that were read.
    at: u64,
    start: Start,
}

impl<R: Read> Journal<R> {
    /// Begins to read a journal. It is read piece by piece: buffered is better.
    ///
    /// # Errors
    /// When it is none, or of another version.
    pub fn open(mut reader: R) -> Result<Self, JournalError> {
        let mut head = [0; MAGIC.len() + size_of::<u32>() + size_of::<u16>()];
        reader.read_exact(&mut head).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => JournalError::NoJournal,
            _ => JournalError::Io { at: 0, source: error },
        })?;
        let versions = head.strip_prefix(MAGIC).and_then(|rest| Unpacker::new(rest).whole());
        let (version, wire): (u32, u16) = versions.ok_or(JournalError::NoJournal)?;
        if (version, wire) != (VERSION, wire::VERSION) {
            let (own, own_wire) = (VERSION, wire::VERSION);
            return Err(JournalError::Version { version, wire, own, own_wire });
        }
        let mut items = Items { reader, at: head.len() as u64, begins: 0, bytes: Vec::new() };
        let first = items.next()?;
        let start = if first == kind::START { Unpacker::new(&items.bytes).whole::<Start>() } else { None };
        let start = start.filter(|start| start.events.len() <= MOST_EVENTS && start.hooks().is_some());
        let start = start.ok_or_else(|| items.damaged("beginning of a session"))?;
        Ok(Self { reader: items.reader, at: items.at, start })
    }

    /// Settings of a session that makes the same recording: of the events, closures and filters are whose they are.
    pub fn settings(&self) -> SessionSettings {
        let events = self.start.hooks().unwrap_or_default();
        SessionSettings { sampling: self.start.sampling.clone(), events, ..SessionSettings::default() }
    }

    pub(crate) fn into_source(self) -> (Start, JournalSource<R>) {
        let Self { reader, at, start } = self;
        let items = Items { reader, at, begins: at, bytes: Vec::new() };
        let parts = Parts::default();
        (start, JournalSource { items, next: None, failure: None, parts, ending: None })
    }
}

/// What a record of the sideband is.
pub(crate) const OF_PERF: &str = "record of perf's";

/// The items of a journal.
struct Items<R> {
    reader: R,
    at: u64,
    /// Where the last one begins.
    begins: u64,
    /// What it has.
    bytes: Vec<u8>,
}

impl<R: Read> Items<R> {
    fn damaged(&self, what: &'static str) -> JournalError {
        JournalError::Damaged { at: self.begins, what }
    }

    /// Reads the next item into `bytes`. Out: what it is.
    fn next(&mut self) -> Result<u8, JournalError> {
        self.begins = self.at;
        self.read(5)?;
        let head = Unpacker::new(&self.bytes).whole::<(u8, u32)>();
        let (kind, len) = head.filter(|(_, len)| *len <= MOST).ok_or_else(|| self.damaged("item"))?;
        self.read(len)?;
        Ok(kind)
    }

    /// Reads so many bytes. No more is set aside than there are.
    fn read(&mut self, len: u32) -> Result<(), JournalError> {
        self.bytes.clear();
        let read = self.reader.by_ref().take(len.into()).read_to_end(&mut self.bytes);
        self.at += self.bytes.len() as u64;
        read.map_err(|source| JournalError::Io { at: self.at, source })?;
        if self.bytes.len() < len as usize { Err(JournalError::Cut { at: self.at }) } else { Ok(()) }
    }

    fn unpack<T: Packed>(&self, what: &'static str) -> Result<T, JournalError> {
        Unpacker::new(&self.bytes).whole().ok_or_else(|| self.damaged(what))
    }
}

/// The records of a journal, as a source hands them over; and what is between them.
pub(crate) struct JournalSource<R> {
    items: Items<R>,
    /// An item that was read before its turn.
    next: Option<u8>,
    /// What is wrong with the records.
    failure: Option<JournalError>,
    parts: Parts,
    ending: Option<Ending>,
}

/// What a record is put together from; kept for its memory.
struct Parts {
    header: SampleHeader,
    returns: TrappedReturns,
    /// As they lie in a ring, whose records begin where a word does.
    words: Vec<u64>,
    user: Vec<u64>,
}

impl Default for Parts {
    fn default() -> Self {
        let (header, returns) = (bytemuck::Zeroable::zeroed(), bytemuck::Zeroable::zeroed());
        Self { header, returns, words: Vec::new(), user: Vec::new() }
    }
}

/// What a journal has, and a session did.
pub(crate) enum Item<'a> {
    /// There are records: [`Source::drain`] hands them over.
    Records,
    Answers(&'a [u8]),
    File(NotedFile),
    Scan,
    Sideband(RawRecord<'a>, Nanos),
    Look,
    Round(Nanos),
    Rescan(Nanos),
    Clocks(ClockReading),
    /// The last one: [`Source::close`] and [`JournalSource::ending`] tell what it has.
    End,
}

impl<R: Read> JournalSource<R> {
    /// What was read last is not what it may be.
    pub(crate) fn damaged(&self, what: &'static str) -> JournalError {
        self.items.damaged(what)
    }

    /// The next item.
    pub(crate) fn item(&mut self) -> Result<Item<'_>, JournalError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let kind = match self.next.take() {
            Some(kind) => kind,
            None => self.items.next()?,
        };
        let items = &self.items;
        let nothing = |item| if items.bytes.is_empty() { Ok(item) } else { Err(items.damaged("item")) };
        match kind {
            kind::ANSWERS => Ok(Item::Answers(&items.bytes)),
            kind::FILE => items.unpack("file").map(Item::File),
            kind::SCAN => nothing(Item::Scan),
            kind::SIDEBAND => {
                let (time, record) = sideband(&items.bytes).ok_or_else(|| items.damaged(OF_PERF))?;
                Ok(Item::Sideband(record, time))
            }
            kind::LOOK => nothing(Item::Look),
            kind::RING | kind::RECORD => {
                self.next = Some(kind);
                Ok(Item::Records)
            }
            kind::ROUND => items.unpack("end of a round").map(Item::Round),
            kind::RESCAN => items.unpack("time").map(Item::Rescan),
            kind::CLOCKS => items.unpack("reading of clocks").map(Item::Clocks),
            kind::END => {
                let ending: Ending = items.unpack("end of a session")?;
                let tables = ending.account.tables.iter().all(is_even);
                if !tables || !ending.account.histograms.iter().all(is_countable) {
                    return Err(items.damaged("table"));
                }
                self.ending = Some(ending);
                Ok(Item::End)
            }
            _ => Err(items.damaged("item")),
        }
    }

    /// What the last item has.
    pub(crate) fn ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    /// Hands over the record that was read last.
    fn record(&mut self, kind: u8, visit: &mut dyn FnMut(&SourceRecord<'_>)) -> Option<()> {
        let Self { items, parts, .. } = self;
        let mut from = Unpacker::new(&items.bytes);
        let event = EventIndex(Packed::unpack(&mut from)?);
        if kind == kind::RECORD {
            visit(&parts.record(event, from)?);
            return Some(());
        }
        let written = from.rest();
        parts.words.clear();
        parts.words.resize(written.len().div_ceil(size_of::<u64>()), 0);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut parts.words);
        let bytes = bytes.get_mut(..written.len())?;
        bytes.copy_from_slice(written);
        visit(&SourceRecord { event, ..SourceRecord::of_ring(bytes)? });
        Some(())
    }
}

impl Parts {
    fn record<'a>(&'a mut self, event: EventIndex, mut from: Unpacker<'a>) -> Option<SourceRecord<'a>> {
        let (is_named, value) = Packed::unpack(&mut from)?;
        self.header = bytemuck::try_pod_read_unaligned(from.bytes(SampleHeader::SIZE)?).ok()?;
        for addresses in [&mut self.words, &mut self.user] {
            let bytes = from.counted()?;
            addresses.clear();
            addresses.resize(bytes.len() / size_of::<u64>(), 0);
            if size_of_val(addresses.as_slice()) != bytes.len() {
                return None;
            }
            bytemuck::cast_slice_mut(addresses).copy_from_slice(bytes);
        }
        let stack = from.counted()?;
        let returns = from.counted()?;
        if !returns.is_empty() {
            self.returns = bytemuck::try_pod_read_unaligned(returns).ok()?;
        }
        let data = from.counted()?;
        let returns = (!returns.is_empty()).then_some(&self.returns);
        let (header, kernel, user) = (&self.header, self.words.as_slice(), self.user.as_slice());
        let written = &[];
        from.rest().is_empty().then_some(SourceRecord {
            event,
            header,
            is_named,
            kernel,
            stack,
            returns,
            outer: None,
            user,
            value,
            data,
            written,
        })
    }
}

/// A record of the sideband, and its time.
fn sideband(bytes: &[u8]) -> Option<(Nanos, RawRecord<'_>)> {
    const HEADER: usize = 8;
    let mut from = Unpacker::new(bytes);
    let time = Packed::unpack(&mut from)?;
    let (kind, (misc, size)): (u32, (u16, u16)) = Packed::unpack(&mut from)?;
    let body = from.rest();
    if usize::from(size) != HEADER + body.len() {
        return None;
    }
    let raw = RawRecord { kind: RecordKind(kind), misc: Misc(misc), body: Bytes::from(body) };
    Some((time, raw))
}

/// Whether each row has a number for each column.
fn is_even(table: &Table) -> bool {
    table.rows.iter().all(|(_, numbers)| numbers.len() == table.columns.len())
}

/// Whether the sum of all buckets is a number.
fn is_countable(histogram: &Histogram) -> bool {
    histogram.buckets.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count)).is_some()
}

impl<R: Read> Source for JournalSource<R> {
    fn name(&self) -> &'static str {
        "journal"
    }

    /// The records up to the next item that is none, which are of a round: whatever is to be known then has been told.
    fn drain(&mut self, _until: Nanos, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
        while let Some(kind) = self.next.take() {
            if kind != kind::RING && kind != kind::RECORD {
                self.next = Some(kind);
                break;
            }
            if self.record(kind, visit).is_none() {
                self.failure = Some(self.items.damaged("record of a source"));
                break;
            }
            match self.items.next() {
                Ok(kind) => self.next = Some(kind),
                Err(error) => self.failure = Some(error),
            }
        }
    }

    fn dropped(&self) -> u64 {
        self.ending.as_ref().map_or(0, |ending| ending.losses.total_lost())
    }

    fn close(&mut self, ledger: &mut Ledger) -> io::Result<Account> {
        let ending = self.ending.as_mut().ok_or(io::ErrorKind::UnexpectedEof)?;
        ending.losses.causes().for_each(|(cause, count)| ledger.lose(cause, count));
        Ok(std::mem::take(&mut ending.account))
    }
}
