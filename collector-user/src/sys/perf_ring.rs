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
    /// A record that wraps around the end is put together here.
    scratch: Vec<u8>,
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
        Ok(Self { base, page, size, scratch: Vec::new() })
    }

    /// Hands every waiting record to `visit` as (type, misc, bytes after the header), then frees their room.
    /// A record whose size cannot be is the end: the ring is emptied.
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(u32, u16, &[u8])) {
        let meta = self.base.cast::<perf_event_mmap_page>().as_ptr();
        // SAFETY: the first page of the mapping is this structure for as long as it is mapped, and both
        // fields are only accessed atomically.
        let (head, tail) = unsafe {
            (AtomicU64::from_ptr(&raw mut (*meta).data_head), AtomicU64::from_ptr(&raw mut (*meta).data_tail))
        };
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        let mut scratch = std::mem::take(&mut self.scratch);
        while end.wrapping_sub(at) >= HEADER as u64 {
            // Records are aligned to 8 bytes, so a header never wraps.
            let header = self.contiguous(at, HEADER);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let misc = u16::from_ne_bytes([header[4], header[5]]);
            let len = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if len < HEADER || len as u64 > end.wrapping_sub(at) {
                at = end;
                break;
            }
            let body = at.wrapping_add(HEADER as u64);
            let first = self.contiguous(body, len - HEADER);
            if first.len() == len - HEADER {
                visit(kind, misc, first);
            } else {
                scratch.clear();
                scratch.extend_from_slice(first);
                let rest = len - HEADER - first.len();
                scratch.extend_from_slice(self.contiguous(body.wrapping_add(first.len() as u64), rest));
                visit(kind, misc, &scratch);
            }
            at = at.wrapping_add(len as u64);
        }
        self.scratch = scratch;
        tail.store(at, Ordering::Release);
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

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` and no reference to it outlives `self`. An error would mean
        // that it is not mapped, which leaves nothing to do.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.page + self.size) };
    }
}
