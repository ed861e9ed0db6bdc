//! Where the buffers of a file are, and when the first record of each came: what has to be known to read them in the order
//! of time. In: the file, of which a header and a record of each buffer are read. Out: an entry of 32 bytes a buffer.
//!
//! Buffers stand one behind the other. Where no buffer can begin, the next one is looked for in the distance that the
//! file's header gives as the size of its buffers; packed ones have any size, so that behind damage few of them are found.
//! Where all have that size, one that tells another is not believed against the buffer that begins where it should.

use std::collections::HashSet;
use std::io::{Read, Seek};

use super::buffer::{BufferHeader, HEADER, LARGEST, most_unpacked, most_unpacked_of_file};
use super::bytes::u32_at;
use super::error::EtlError;
use super::frame::{BEGINNING, Frame, PADDING};
use super::header::TraceHeader;
use super::loaded::{Loaded, damage};
use super::losses::{Damage, DamageKind, Losses};
use super::source::Source;
use super::xpress;

/// Packed bytes in which a record's beginning is, whatever it is: a word of flags for 32 of them.
const PACKED_BEGINNING: usize = BEGINNING + 4 * BEGINNING.div_ceil(32);

/// Bytes of a buffer in which the first time is looked for.
const LOOKED_THROUGH: u32 = 64 << 10;

/// A buffer of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Where its header is.
    pub(super) at: u64,
    /// When its first record came.
    pub(super) first: i64,
    /// Bytes behind its header that are in the file.
    pub(super) stored: u32,
    /// Bytes of its records once unpacked, as it says.
    pub(super) used: u32,
    pub(super) cpu: u16,
    pub(super) is_packed: bool,
    /// The file ends in it.
    pub(super) is_cut: bool,
    pub(super) lost: Lost,
}

/// Whether events or buffers were lost before a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    No,
    /// As it says itself.
    Before,
    /// Before another one of its CPU, which stands before it in the file and has no records.
    BeforeEmpty,
}

impl Entry {
    /// Bytes of memory that it takes once loaded, about: what is stored, what it unpacks to, and a list of its records.
    pub(super) fn memory(&self) -> usize {
        let stored = self.stored as usize;
        if self.is_packed { stored + self.unpacked() + self.unpacked() / 4 } else { stored + stored / 4 }
    }

    /// Bytes that it is unpacked to at most.
    pub(super) fn unpacked(&self) -> usize {
        (self.used as usize).min(most_unpacked(self.stored as usize))
    }
}

/// The buffers of a file.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Those with records, in the order of their first records; of those of one time in the order of the file.
    pub(super) entries: Vec<Entry>,
    /// How many there are, also of those without records.
    pub(super) buffers: u64,
}

/// Finds all buffers.
pub(super) fn index<R: Read + Seek>(
    source: &mut Source<R>,
    header: &TraceHeader,
    losses: &mut Losses,
) -> Result<Index, EtlError> {
    let mut index = Index::default();
    let distance = u64::from(header.buffer_size.max(HEADER as u32));
    let mut loaded = Loaded::default();
    let start = header.clock.start_ticks;
    let mut at = 0;
    let mut beginning = [0; HEADER + PACKED_BEGINNING];
    let (mut is_lost, mut is_even) = (false, true);
    // CPUs of buffers without records that tell of losses.
    let mut losing = HashSet::new();
    let mut left = most_unpacked_of_file(source.length);
    while at < source.length {
        let length = source.read(at, &mut beginning)?;
        let mut parse = if is_lost { BufferHeader::find } else { BufferHeader::parse };
        let told = u32_at(&beginning, 0).map_or(0, u64::from);
        let has_wrong_size = is_even && told != distance && {
            let is_packed = beginning.first_chunk().is_some_and(BufferHeader::says_packed);
            is_even = !is_packed && is_off(source, (at, told, distance), index.buffers)?;
            is_even
        };
        if has_wrong_size {
            beginning[..4].copy_from_slice(&(distance as u32).to_le_bytes());
            parse = BufferHeader::find;
        }
        let read = &beginning[..length];
        let Some(header) = read.first_chunk().and_then(parse) else {
            let next = at.saturating_add(distance).min(source.length);
            if is_lost {
                losses.damaged_bytes += next - at;
            } else {
                losses.damage(Damage { buffer: at, at: 0, kind: DamageKind::Buffer }, next - at);
            }
            (at, is_lost) = (next, true);
            continue;
        };
        is_lost = false;
        if has_wrong_size {
            losses.damage(Damage { buffer: at, at: 0, kind: DamageKind::Size }, 0);
        }
        index.buffers += 1;
        losses.flagged_buffers += u64::from(header.has_lost);
        let entry = entry(at, &header, source.length - at - HEADER as u64, start);
        if entry.is_cut {
            let cut = u64::from(header.stored() - entry.stored);
            losses.damage(damage(&entry, entry.stored as usize, DamageKind::Cut), cut);
        }
        if header.used.is_none() {
            losses.damage(damage(&entry, 0, DamageKind::Used), u64::from(header.size));
        }
        at += u64::from(header.size);
        let unpacked = if entry.is_packed { entry.unpacked() as u64 } else { 0 };
        let Some(rest) = left.checked_sub(unpacked) else {
            losing.extend(header.has_lost.then_some(entry.cpu));
            losses.damage(damage(&entry, 0, DamageKind::Beyond), entry.stored.into());
            continue;
        };
        left = rest;
        let behind = &read[HEADER..];
        let behind = &behind[..behind.len().min(entry.stored as usize)];
        if let Some(first) = first_ticks(source, &entry, behind, &mut loaded)? {
            let lost = if losing.remove(&entry.cpu) { Lost::BeforeEmpty } else { entry.lost };
            index.entries.push(Entry { first, lost, ..entry });
        } else {
            losing.extend(header.has_lost.then_some(entry.cpu));
        }
    }
    index.entries.sort_by_key(|entry| entry.first);
    Ok(index)
}

/// Whether a buffer is wrong that tells another size than the `before` ones, which all have `distance`: by whether others begin where it ends by
/// the one and by the other.
fn is_off<R: Read + Seek>(
    source: &mut Source<R>,
    (at, told, distance): (u64, u64, u64),
    before: u64,
) -> Result<bool, EtlError> {
    let length = source.length;
    let mut begins = |at: u64| -> Result<bool, EtlError> {
        let mut header = [0; HEADER];
        Ok(source.read(at, &mut header)? == HEADER && BufferHeader::find(&header).is_some())
    };
    let (by_others, by_itself) = (at.saturating_add(distance), at.saturating_add(told));
    // One that tells several times their size has no other within itself.
    if (told % distance != 0 || told == 0) && begins(by_itself)? {
        return Ok(false);
    }
    if begins(by_others)? || before > 0 && by_others == length {
        return Ok(true);
    }
    // It may be larger, and cut. Else it leads to nothing, as theirs does.
    Ok(before > 1 && by_itself < length && !begins(by_itself)?)
}

/// Of the buffer at `at`, behind whose header there are `there` bytes.
pub(super) fn entry(at: u64, header: &BufferHeader, there: u64, first: i64) -> Entry {
    let (there, used) = (u32::try_from(there).unwrap_or(u32::MAX), header.used.unwrap_or(0));
    let stored = header.stored().min(there);
    Entry {
        at,
        first,
        stored,
        used: used.min(LARGEST),
        cpu: header.cpu,
        is_packed: header.is_packed,
        is_cut: there < header.size - HEADER as u32,
        lost: if header.has_lost { Lost::Before } else { Lost::No },
    }
}

/// When the first record came; none where there is no record.
fn first_ticks<R: Read + Seek>(
    source: &mut Source<R>,
    entry: &Entry,
    behind: &[u8],
    loaded: &mut Loaded,
) -> Result<Option<i64>, EtlError> {
    let most = BEGINNING.min(entry.used as usize);
    let mut unpacked = Vec::new();
    let first = if entry.is_packed {
        let length = xpress::unpack(behind, most, &mut unpacked);
        &unpacked[..length]
    } else {
        &behind[..behind.len().min(most)]
    };
    if entry.used == 0 || u32_at(first, 0) == Some(PADDING) {
        return Ok(None);
    }
    if let Some(Frame { ticks: Some(ticks), .. }) = Frame::parse(first) {
        return Ok(Some(ticks));
    }
    // One without a time, or none: those behind it may tell, and damage is found once the buffer is read.
    let beginning =
        Entry { stored: entry.stored.min(LOOKED_THROUGH), used: entry.used.min(LOOKED_THROUGH), ..*entry };
    loaded.load(source, &beginning, &mut Losses::default())?;
    Ok(Some(loaded.first().unwrap_or(entry.first)))
}
