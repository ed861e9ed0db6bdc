//! A buffer that is in memory. In: an entry of the index. Out: its records in the order of time.

use std::io::{Read, Seek};
use std::mem;

use super::buffer::{HEADER, most_unpacked};
use super::bytes::u32_at;
use super::error::EtlError;
use super::frame::{Frame, Kind, PADDING};
use super::index::Entry;
use super::losses::{Damage, DamageKind, Losses};
use super::parse::{Around, parse};
use super::source::Source;
use super::xpress;
use crate::record::PointerSize;

/// A record of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) ticks: i64,
    /// From the end of the buffer's header.
    pub(super) at: u32,
    /// All that are parsed tell it in two bytes.
    pub(super) size: u16,
    pub(super) kind: Kind,
}

/// A buffer in memory, whose memory is used again for another.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    stored: Vec<u8>,
    /// What is stored, unpacked. It keeps its length.
    unpacked: Vec<u8>,
    /// Bytes of it that are this buffer's; none where that is not packed.
    unpacked_length: Option<usize>,
    /// Whether records of the kernel's are among those below.
    pub(super) has_kernel: bool,
    /// Whether others are.
    pub(super) has_others: bool,
    pub(super) records: Vec<Record>,
}

impl Loaded {
    /// Replaces what it holds.
    pub(super) fn load<R: Read + Seek>(
        &mut self,
        source: &mut Source<R>,
        entry: &Entry,
        losses: &mut Losses,
    ) -> Result<(), EtlError> {
        // No more than what was seen to be there when the index was made.
        self.stored.resize(entry.stored as usize, 0);
        let length = source.read(entry.at + HEADER as u64, &mut self.stored)?;
        self.stored.truncate(length);
        let used = entry.used as usize;
        // The file may be shorter by now.
        let most = entry.unpacked().min(most_unpacked(length));
        self.unpacked_length =
            entry.is_packed.then(|| xpress::unpack(&self.stored, most, &mut self.unpacked));
        let there = self.bytes().len();
        // That the file ends in it was told when the index was made.
        if there < used && !entry.is_cut {
            let (kind, bytes) =
                if entry.is_packed { (DamageKind::Packed, used - there) } else { (DamageKind::Used, 0) };
            losses.damage(damage(entry, there, kind), bytes as u64);
        }
        self.find_records(entry, losses);
        Ok(())
    }

    /// What is behind the buffer's header.
    fn bytes(&self) -> &[u8] {
        self.unpacked_length.map_or(&self.stored, |length| &self.unpacked[..length])
    }

    /// Bytes of memory that it has.
    pub(super) fn memory(&self) -> usize {
        self.stored.capacity() + self.unpacked.capacity() + self.records.capacity() * size_of::<Record>()
    }

    pub(super) fn bytes_of(&self, record: Record) -> &[u8] {
        let begin = record.at as usize;
        self.bytes().get(begin..begin + usize::from(record.size)).unwrap_or_default()
    }

    /// When the first of its records came.
    pub(super) fn first(&self) -> Option<i64> {
        self.records.first().map(|record| record.ticks)
    }

    fn find_records(&mut self, entry: &Entry, losses: &mut Losses) {
        let mut records: Vec<Record> = mem::take(&mut self.records);
        records.clear();
        let (mut has_kernel, mut has_others) = (false, false);
        let bytes = self.bytes();
        let (mut at, mut is_sorted) = (0, true);
        // Records without a time came with the one before them, or the first of the buffer's with one.
        let mut last = None;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if u32_at(rest, 0) == Some(PADDING) {
                break;
            }
            let Some(frame) = Frame::parse(rest).filter(|frame| frame.size <= rest.len()) else {
                // A record may be cut with the file.
                if !entry.is_cut {
                    losses.damage(damage(entry, at, DamageKind::Record), rest.len() as u64);
                }
                break;
            };
            let ticks = frame.ticks.or(last).unwrap_or(entry.first);
            let around = Around { cpu: entry.cpu, ticks, pointer_size: PointerSize::Bits64 };
            if frame.kind == Kind::Unread {
                losses.unread_records += 1;
            } else if parse(frame.kind, &rest[..frame.size], around).is_none() {
                losses.damage(damage(entry, at, DamageKind::Inside), frame.size as u64);
            } else {
                is_sorted &= last.is_none_or(|last| last <= ticks);
                if last.is_none() && frame.ticks.is_some() {
                    for record in &mut records {
                        record.ticks = ticks;
                    }
                }
                let is_kernel = matches!(frame.kind, Kind::System(_) | Kind::Compact(_) | Kind::PerfInfo(_));
                has_kernel |= is_kernel;
                has_others |= !is_kernel;
                last = frame.ticks.or(last);
                let (at, size, kind) = (at as u32, frame.size as u16, frame.kind);
                records.push(Record { ticks, at, size, kind });
            }
            at += frame.size.next_multiple_of(8);
        }
        if !is_sorted {
            records.sort_by_key(|record| record.ticks);
        }
        (self.has_kernel, self.has_others, self.records) = (has_kernel, has_others, records);
    }
}

/// `at` is from the end of the buffer's header.
pub(super) fn damage(entry: &Entry, at: usize, kind: DamageKind) -> Damage {
    Damage { buffer: entry.at, at: u32::try_from(HEADER + at).unwrap_or(u32::MAX), kind }
}
