//! The ring that a perf event writes its records to. Layout: `struct perf_event_mmap_page` in
//! `include/uapi/linux/perf_event.h`; the protocol is in the comment at its `data_head`.
//!
//! ```text
//! | page 0: head, tail | data: 2^n pages ................. |
//!                        ▲ tail (ours)   ▲ head (kernel's)    both count up for ever
//! ```

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use collector_common::perf::{Bytes, Misc, RawRecord, RecordKind};
use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes of `struct perf_event_header`: type, misc, size.
const HEADER: usize = 8;

/// A mapped ring.
#[derive(Debug)]
pub(crate) struct PerfRing {
    base: NonNull<u8>,
    page: usize,
    /// Bytes of data, a power of two.
    size: usize,
    /// How often a record could not be as it said, since it was last asked for.
    malformed: u64,
}

// SAFETY: the mapping is the process's, not a thread's, and this is its only owner: it is read through `&mut self` alone.
unsafe impl Send for PerfRing {}

impl PerfRing {
    /// Maps the ring of an event, with 2^`order` pages of data.
    pub(crate) fn map(event: impl AsFd, order: u32) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let size = page << order;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                page + size,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                event,
                0,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::Other)?;
        Ok(Self { base, page, size, malformed: 0 })
    }

    /// Hands every waiting record to `visit`, then frees its room.
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(&RawRecord<'_>)) {
        let mut waiting = self.waiting();
        while let Some(record) = waiting.peek() {
            visit(&record);
            waiting.advance();
        }
    }

    /// The records that wait now.
    pub(crate) fn waiting(&mut self) -> Waiting<'_> {
        let (head, tail) = self.positions();
        let (end, at) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        Waiting { at, end, ring: self }
    }

    /// How often all that waited was given up since the last call, as a record was no record. What is behind such a one can't be found, so
    /// that each stands for that record and for as many others as there were.
    pub(crate) fn take_malformed(&mut self) -> u64 {
        std::mem::take(&mut self.malformed)
    }

    /// Of what the kernel has written and what has been read here.
    fn positions(&self) -> (&AtomicU64, &AtomicU64) {
        let meta = self.base.cast::<perf_event_mmap_page>().as_ptr();
        // SAFETY: the first page of the mapping is this structure for as long as it is mapped, and both
        // fields are only accessed atomically.
        unsafe {
            (AtomicU64::from_ptr(&raw mut (*meta).data_head), AtomicU64::from_ptr(&raw mut (*meta).data_tail))
        }
    }

    /// The bytes at a position, as many of `len` as there are before the ring's end.
    fn contiguous(&self, position: u64, len: usize) -> &[u8] {
        let offset = (position as usize) & (self.size - 1);
        let len = len.min(self.size - offset);
        // SAFETY: the range lies in the data pages of the mapping; the kernel does not write between tail and
        // head, which the caller stays in.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(self.page + offset), len) }
    }
}

/// The records that waited in a ring at some time, oldest first.
pub(crate) struct Waiting<'a> {
    ring: &'a mut PerfRing,
    at: u64,
    end: u64,
}

/// What a record's header says.
#[derive(Clone, Copy)]
struct Header {
    kind: u32,
    misc: u16,
    /// With the header.
    len: usize,
}

impl Waiting<'_> {
    /// The oldest one, in two pieces where it wraps around the ring's end. None where there is no further one, or where what is there can't
    /// be one: that is given up up to the ring's head of when this was made, which the next look goes on from, as whole records end there.
    #[inline]
    pub(crate) fn peek(&self) -> Option<RawRecord<'_>> {
        let Header { kind, misc, len } = self.header()?;
        let body = self.at.wrapping_add(HEADER as u64);
        let first = self.ring.contiguous(body, len - HEADER);
        let second = self.ring.contiguous(body.wrapping_add(first.len() as u64), len - HEADER - first.len());
        Some(RawRecord { kind: RecordKind(kind), misc: Misc(misc), body: Bytes::wrapped(first, second) })
    }

    /// Frees the room of the oldest one, for the kernel to write to.
    #[inline]
    pub(crate) fn advance(&mut self) {
        match self.header() {
            Some(header) => {
                self.at = self.at.wrapping_add(header.len as u64);
                self.free();
            }
            None => self.give_up(),
        }
    }

    /// That of the oldest one, if it can be.
    #[inline]
    fn header(&self) -> Option<Header> {
        let waiting = self.end.wrapping_sub(self.at);
        // The kernel writes records in multiples of 8 bytes, so a header never wraps.
        let is_possible = waiting <= self.ring.size as u64 && self.at.is_multiple_of(HEADER as u64);
        if waiting < HEADER as u64 || !is_possible {
            return None;
        }
        let header = self.ring.contiguous(self.at, HEADER);
        let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let misc = u16::from_ne_bytes([header[4], header[5]]);
        let len = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        let can_be = len >= HEADER && len.is_multiple_of(HEADER) && len as u64 <= waiting;
        can_be.then_some(Header { kind, misc, len })
    }

    /// Counts what is there and is no record, and frees its room.
    #[cold]
    fn give_up(&mut self) {
        if self.at != self.end {
            self.ring.malformed += 1;
            self.at = self.end;
            self.free();
        }
    }

    fn free(&self) {
        let (_, tail) = self.ring.positions();
        tail.store(self.at, Ordering::Release);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.header().is_none() {
            self.give_up();
        }
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` and no reference to it outlives `self`. An error would mean
        // that it is not mapped, which leaves nothing to do.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.page + self.size) };
    }
}

#[cfg(test)]
mod tests;
