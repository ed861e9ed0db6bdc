//! The ring of a BPF map of type ringbuf, which programs of anybody write to. Layout: `kernel/bpf/ringbuf.c`; the protocol is
//! in `Documentation/bpf/ringbuf.rst`.
//!
//! ```text
//! | page: consumer's position | page: producer's position | data: 2^n pages | the same data once more |
//!   ▲ written here              ▲ read only                 each record: length and two flags, page, data
//! ```
//!
//! A ring has one position that records are read up to, whoever reads. Each record is copied first and then claimed by moving
//! that position: if somebody else has moved it meanwhile, the kernel may have written over the copied bytes, and they are
//! thrown away.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes before a record's data.
const HEADER: usize = 8;

/// `BPF_RINGBUF_BUSY_BIT`: the program has not finished the record.
const BUSY: u32 = 1 << 31;

/// `BPF_RINGBUF_DISCARD_BIT`: the program has thought better of it.
const DISCARDED: u32 = 1 << 30;

/// A mapped ring.
#[derive(Debug)]
pub(crate) struct BpfRing {
    consumer: Mapping,
    producer: Mapping,
    page: usize,
    /// Bytes of data, a power of two.
    size: usize,
    /// Where the last take left the consumer's position.
    left: usize,
}

/// Records that were taken, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    /// Where each one ends.
    ends: Vec<usize>,
}

impl Records {
    /// The records, as they were begun.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| self.bytes.get(start..end).unwrap_or_default())
    }

    /// Forgets them, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// How a take went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Whether somebody else has moved the consumer's position.
    pub(crate) others: bool,
    /// Whether there was a record that can't be, and all of the ring up to now was given up.
    pub(crate) malformed: bool,
}

impl BpfRing {
    /// Maps a ring map of `size` bytes.
    pub(crate) fn map(map: impl AsFd, size: u32) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let size = size as usize;
        if !size.is_power_of_two() || !size.is_multiple_of(page) {
            return Err(io::Error::other("its size is no power of two pages"));
        }
        let consumer = Mapping::new(&map, page, ProtFlags::READ | ProtFlags::WRITE, 0)?;
        let producer = Mapping::new(&map, page + 2 * size, ProtFlags::READ, page as u64)?;
        let mut ring = Self { consumer, producer, page, size, left: 0 };
        ring.left = ring.consumed().load(Ordering::Acquire);
        Ok(ring)
    }

    /// Where the next record will be written.
    pub(crate) fn end(&self) -> usize {
        // SAFETY: the first page of the mapping begins with this number, which the kernel writes atomically.
        let position = unsafe { AtomicUsize::from_ptr(self.producer.base.as_ptr().cast()) };
        position.load(Ordering::Acquire)
    }

    /// Adds each finished record up to the first unfinished one to `records`, as far as there is one before `end`, in the order
    /// in which they were begun. It takes no more than the ring holds.
    pub(crate) fn take(&mut self, end: usize, records: &mut Records) -> Taken {
        let mut at = self.consumed().load(Ordering::Acquire);
        let mut taken = Taken { others: at != self.left, malformed: false };
        let waiting = |at: usize| end.wrapping_sub(at).cast_signed();
        while waiting(at) > 0 {
            let Some(record) = self.record(at, waiting(at).cast_unsigned()) else {
                taken.malformed = true;
                taken.others |= !self.claim(at, end);
                break;
            };
            if record.is_busy {
                break;
            }
            let known = records.bytes.len();
            if !record.is_discarded {
                self.copy(at, record.len, &mut records.bytes);
            }
            if !self.claim(at, at.wrapping_add(record.taken)) {
                records.bytes.truncate(known);
                taken.others = true;
                break;
            }
            if !record.is_discarded {
                records.ends.push(records.bytes.len());
            }
            at = at.wrapping_add(record.taken);
        }
        self.left = self.consumed().load(Ordering::Relaxed);
        taken
    }

    fn consumed(&self) -> &AtomicUsize {
        // SAFETY: the page begins with this number, and whoever maps it accesses it atomically.
        unsafe { AtomicUsize::from_ptr(self.consumer.base.as_ptr().cast()) }
    }

    /// Moves the consumer's position, if nobody else has.
    fn claim(&self, from: usize, to: usize) -> bool {
        self.consumed().compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The record at a position with so many bytes behind it; `None` where it can't be as it says.
    fn record(&self, at: usize, waiting: usize) -> Option<Record> {
        if waiting > self.size || !at.is_multiple_of(HEADER) {
            return None;
        }
        // SAFETY: the position is aligned, and with its header it is within the data, which is mapped twice in a row.
        let word = unsafe { AtomicU32::from_ptr(self.data(at).cast().as_ptr()) };
        let word = word.load(Ordering::Acquire);
        let len = (word & !(BUSY | DISCARDED)) as usize;
        let taken = (HEADER + len).next_multiple_of(HEADER);
        let (is_busy, is_discarded) = (word & BUSY != 0, word & DISCARDED != 0);
        (taken <= waiting).then_some(Record { len, taken, is_busy, is_discarded })
    }

    fn data(&self, at: usize) -> NonNull<u8> {
        // SAFETY: behind its first page, the mapping has the ring's bytes, and the offset is less than those.
        unsafe { self.producer.base.add(self.page + (at & (self.size - 1))) }
    }

    /// Adds the data of a record that [`Self::record`] has found at a position.
    fn copy(&self, at: usize, len: usize, bytes: &mut Vec<u8>) {
        bytes.reserve(len);
        let from = self.data(at);
        // SAFETY: the record with its header is no longer than the ring, which is mapped twice in a row, and there is room
        // for it behind the bytes that there are. The kernel does not write to it before the consumer's position is beyond;
        // where somebody else has moved that, the copy is torn, and is thrown away.
        unsafe {
            let to = bytes.as_mut_ptr().add(bytes.len());
            std::ptr::copy_nonoverlapping(from.as_ptr().add(HEADER), to, len);
            bytes.set_len(bytes.len() + len);
        }
    }
}

/// What is in a record's header.
struct Record {
    len: usize,
    /// With header, and filled up to eight bytes.
    taken: usize,
    is_busy: bool,
    is_discarded: bool,
}

/// Mapped memory.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is the process's, not a thread's, and what is in it is accessed by its owner alone.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(map: impl AsFd, len: usize, access: ProtFlags, offset: u64) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, map, offset)? };
        Ok(Self { base: NonNull::new(base.cast()).ok_or(io::ErrorKind::Other)?, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` and no reference to it outlives `self`. An error would mean that it is not
        // mapped, which leaves nothing to do.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests;
