//! An `.etl` file: its header, and its records in the order of time.

use std::io::{Read, Seek};

use super::buffer::{BufferHeader, HEADER};
use super::error::EtlError;
use super::header::TraceHeader;
use super::index::{entry, index};
use super::kernel_groups::EVENT_TRACE;
use super::loaded::{Loaded, Record};
use super::losses::Losses;
use super::merge::Merge;
use super::parse::{Around, parse};
use super::source::Source;
use crate::record::{EtwRecord, PointerSize, Schema};

/// Bytes of buffers that are in memory at once, unless it is said otherwise.
const MOST_MEMORY: usize = 512 << 20;

/// A file that is read.
#[derive(Debug)]
pub struct EtlFile<R> {
    source: Source<R>,
    header: TraceHeader,
    merge: Merge,
    losses: Losses,
    /// What comes next, where that was looked at: the place of its buffer, and it.
    next: Option<(usize, Record)>,
    /// Time of the last record.
    last: i64,
    has_failed: bool,
}

impl<R: Read + Seek> EtlFile<R> {
    /// Reads the header of the file and of each buffer.
    ///
    /// # Errors
    /// When the file can't be read, or does not begin as an `.etl` file does.
    pub fn open(file: R) -> Result<Self, EtlError> {
        Self::open_within(file, MOST_MEMORY)
    }

    /// As [`Self::open`], with at most so many bytes of buffers in memory at once (and one buffer, if that is more), instead
    /// of 512 MiB. Besides them there are 32 to 64 bytes for each buffer of the file. If the buffers of one time are more, some are
    /// read several times.
    pub fn open_within(file: R, most_memory: usize) -> Result<Self, EtlError> {
        let mut source = Source::new(file)?;
        let header = read_header(&mut source)?;
        let mut losses =
            Losses { events: header.events_lost, buffers: header.buffers_lost, ..Losses::default() };
        let index = index(&mut source, &header, &mut losses)?;
        if !header.is_circular() {
            losses.missing_buffers = u64::from(header.buffers_written).saturating_sub(index.buffers);
        }
        let merge = Merge::new(index.entries, most_memory);
        Ok(Self { source, header, merge, losses, next: None, last: i64::MIN, has_failed: false })
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// What is not there, as far as was read.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The next record in the order of time. As a rule the first one is that with the file's header. After an error there is none.
    ///
    /// # Errors
    /// When the file can't be read, changed while it was read, or has so many buffers of one time that reading them several
    /// times comes to no end. Damage is no error, but told by [`Self::losses`].
    pub fn next_record(&mut self) -> Result<Option<EtwRecord<'_>>, EtlError> {
        if self.has_failed {
            return Ok(None);
        }
        self.look_ahead()?;
        let Some((place, record)) = self.next.take() else { return Ok(None) };
        if record.ticks < self.last {
            self.losses.late_records += 1;
        } else {
            self.last = record.ticks;
        }
        // Each record was read before, when its buffer was loaded.
        let pointer_size = self.header.pointer_size;
        let found = self.merge.last(place, record).and_then(|(bytes, cpu, is_after_loss)| {
            let mut found = parse(record.kind, bytes, Around { cpu, ticks: record.ticks, pointer_size })?;
            found.extended.is_after_loss = is_after_loss;
            Some(found)
        });
        self.has_failed = found.is_none();
        found.map(Some).ok_or(EtlError::Changed)
    }

    /// When the next record came, in ticks, for who reads several files at once; none behind the last one.
    ///
    /// # Errors
    /// As [`Self::next_record`].
    pub fn next_ticks(&mut self) -> Result<Option<i64>, EtlError> {
        if !self.has_failed {
            self.look_ahead()?;
        }
        Ok(self.next.map(|(_, record)| record.ticks))
    }

    fn look_ahead(&mut self) -> Result<(), EtlError> {
        if self.next.is_none() {
            let next = self.merge.advance(&mut self.source, &mut self.losses);
            self.has_failed = next.is_err();
            self.next = next?;
        }
        Ok(())
    }
}

/// The header of the file: the first record of its first buffer.
fn read_header<R: Read + Seek>(source: &mut Source<R>) -> Result<TraceHeader, EtlError> {
    let not_etl = |at: usize, why| EtlError::NotEtl { at: at as u64, why };
    let mut bytes = [0; HEADER];
    let cut = |at: u64, size: u64| EtlError::Cut { at, missing: size - at };
    match source.read(0, &mut bytes)? {
        0 => return Err(EtlError::Empty),
        HEADER => {}
        read => return Err(cut(read as u64, HEADER as u64)),
    }
    let buffer = BufferHeader::parse(&bytes)
        .ok_or(not_etl(0, "there should be the header of a buffer, with a size of 72 bytes to 16 MiB"))?;
    let mut loaded = Loaded::default();
    let there = source.length - HEADER as u64;
    loaded.load(source, &entry(0, &buffer, there, 0), &mut Losses::default())?;
    let no_header = if source.length < buffer.size.into() {
        cut(source.length, buffer.size.into())
    } else {
        not_etl(HEADER, "the first record should be that of the trace, EventTrace with opcode 0")
    };
    let Some(first) = loaded.records.iter().find(|record| record.at == 0) else { return Err(no_header) };
    let around = Around { cpu: buffer.cpu, ticks: first.ticks, pointer_size: PointerSize::Bits64 };
    let record = parse(first.kind, loaded.bytes_of(*first), around).filter(|record| {
        record.provider == EVENT_TRACE && record.descriptor.opcode == 0 && record.schema == Schema::Classic
    });
    let Some(record) = record else { return Err(no_header) };
    TraceHeader::parse(record.payload, record.pointer_size, record.ticks)
        .ok_or(not_etl(HEADER, "the record of the trace is shorter than TRACE_LOGFILE_HEADER"))
}
