//! Rings in memory of ours, laid out as the kernel's, and others that are spoilt.

use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt as _;

use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fs::{MemfdFlags, memfd_create};

use super::*;

/// A ring's file: what is written to it is seen in the ring.
struct Forged {
    file: File,
    page: u64,
    /// Where the next record goes.
    head: u64,
}

const HEAD: u64 = offset_of!(perf_event_mmap_page, data_head) as u64;
const TAIL: u64 = offset_of!(perf_event_mmap_page, data_tail) as u64;

impl Forged {
    /// Of one page, with both positions at `start`.
    fn new(start: u64) -> (Self, PerfRing) {
        let file = File::from(memfd_create("ring", MemfdFlags::CLOEXEC).unwrap());
        let forged = Self { file, page: rustix::param::page_size() as u64, head: start };
        forged.file.set_len(2 * forged.page).unwrap();
        forged.file.write_all_at(&start.to_ne_bytes(), TAIL).unwrap();
        forged.set_head(start);
        let ring = PerfRing::map(&forged.file, 0).unwrap();
        (forged, ring)
    }

    fn set_head(&self, head: u64) {
        self.file.write_all_at(&head.to_ne_bytes(), HEAD).unwrap();
    }

    fn tail(&self) -> u64 {
        let mut tail = [0; 8];
        self.file.read_exact_at(&mut tail, TAIL).unwrap();
        u64::from_ne_bytes(tail)
    }

    fn put(&mut self, bytes: &[u8]) {
        for (at, byte) in (self.head..).zip(bytes) {
            self.file.write_all_at(&[*byte], self.page + at % self.page).unwrap();
        }
        self.head += bytes.len() as u64;
        self.set_head(self.head);
    }

    /// A header that says it is of a record of `len` bytes, and `body`.
    fn write(&mut self, kind: u32, len: u16, body: &[u8]) {
        self.put(&[&kind.to_ne_bytes()[..], &7_u16.to_ne_bytes(), &len.to_ne_bytes(), body].concat());
    }

    fn write_whole(&mut self, kind: u32, body: &[u8]) {
        self.write(kind, (HEADER + body.len()) as u16, body);
    }
}

/// Type and bytes of all that wait.
fn drain(ring: &mut PerfRing) -> Vec<(u32, Vec<u8>)> {
    let mut all = Vec::new();
    ring.drain(|record| {
        assert_eq!(record.misc, Misc(7));
        all.push((record.kind.0, record.body.to_cow().into_owned()));
    });
    all
}

#[test]
fn records_come_whole_and_in_order_around_the_end() {
    let (mut forged, mut ring) = Forged::new(8);
    for round in 0..2000_u64 {
        let body = vec![round as u8; (round % 9 * 8) as usize];
        forged.write_whole(round as u32, &body);
        assert_eq!(drain(&mut ring), [(round as u32, body)], "{round}");
        assert_eq!(forged.tail(), forged.head);
    }
    assert!(forged.head > 10 * 4096);
    assert_eq!(ring.take_malformed(), 0);
}

#[test]
fn a_record_of_an_impossible_size_is_counted_and_what_comes_later_is_read() {
    // Less than a header, no multiple of 8 bytes, and more than there is.
    for len in [0, 7, 12, 48, u16::MAX] {
        let (mut forged, mut ring) = Forged::new(4096 - 24);
        forged.write_whole(1, &[1; 8]);
        forged.write(2, len, &[2; 8]);
        // A whole one that can't be found, as nothing tells where it begins.
        forged.write_whole(3, &[3; 8]);
        assert_eq!(drain(&mut ring), [(1, vec![1; 8])], "{len}");
        assert_eq!(forged.tail(), forged.head, "{len}: its room is free");
        forged.write_whole(4, &[4; 16]);
        assert_eq!(drain(&mut ring), [(4, vec![4; 16])], "{len}: from the head on");
        assert_eq!([ring.take_malformed(), ring.take_malformed()], [1, 0], "{len}: once");
    }
}

#[test]
fn what_is_written_while_a_ring_is_given_up_is_read() {
    let (mut forged, mut ring) = Forged::new(0);
    forged.write(2, 4, &[2; 8]);
    let waiting = ring.waiting();
    forged.write_whole(4, &[4; 8]);
    assert!(waiting.peek().is_none());
    drop(waiting);
    assert_eq!(drain(&mut ring), [(4, vec![4; 8])]);
    assert_eq!(ring.take_malformed(), 1);
}

#[test]
fn what_waits_is_not_given_up() {
    let (mut forged, mut ring) = Forged::new(0);
    forged.write_whole(1, &[1; 8]);
    assert!(ring.waiting().peek().is_some());
    assert_eq!(forged.tail(), 0);
    assert_eq!(drain(&mut ring), [(1, vec![1; 8])]);
    drop(ring.waiting());
    assert_eq!(ring.take_malformed(), 0, "an empty ring has nothing to give up");
}

#[test]
fn a_head_that_is_no_place_of_a_record_is_counted() {
    // A part of a header, more than the ring has, and behind the tail.
    for head in [4, 4096 + 8, u64::MAX - 7] {
        let (mut forged, mut ring) = Forged::new(0);
        forged.set_head(head);
        assert_eq!(drain(&mut ring), []);
        assert_eq!((ring.take_malformed(), forged.tail()), (1, head));
        // Where it is at no multiple of 8 nothing is read before it is again.
        forged.head = 8192;
        forged.set_head(8192);
        assert_eq!(drain(&mut ring), []);
        forged.write_whole(4, &[4; 8]);
        assert_eq!(drain(&mut ring), [(4, vec![4; 8])], "{head}");
    }
}

proptest! {
    #[test]
    fn noise_is_never_fatal(bytes in vec(any::<u8>(), 4096), head: u64, tail in 0..1_u64 << 20) {
        let (mut forged, mut ring) = Forged::new(tail);
        forged.put(&bytes);
        let _ = ring.waiting().peek().map(|record| record.body.len());
        let mut seen = 0;
        ring.drain(|record| seen += HEADER + record.body.len());
        prop_assert!(seen <= 4096 && (seen == 4096 || ring.take_malformed() == 1));
        forged.set_head(head);
        ring.drain(|_| {});
        prop_assert_eq!(forged.tail(), head);
    }
}
