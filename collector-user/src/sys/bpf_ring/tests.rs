//! Rings in memory of ours, laid out as the kernel's, and others that are spoilt.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fs::{MemfdFlags, memfd_create};

use super::*;

/// A ring's file: what is written to it is seen in the ring.
struct Forged {
    file: File,
    page: u64,
    size: u64,
    /// Where the next record goes.
    end: u64,
}

impl Forged {
    /// Whose positions are both `start`.
    fn new(start: u64) -> (Self, BpfRing) {
        let file = File::from(memfd_create("ring", MemfdFlags::CLOEXEC).unwrap());
        let page = rustix::param::page_size() as u64;
        let forged = Self { file, page, size: page, end: start };
        forged.file.set_len(2 * page + 2 * forged.size).unwrap();
        forged.set_positions(start, start);
        let ring = BpfRing::map(&forged.file, forged.size as u32).unwrap();
        (forged, ring)
    }

    fn set_positions(&self, consumer: u64, producer: u64) {
        self.file.write_all_at(&consumer.to_ne_bytes(), 0).unwrap();
        self.file.write_all_at(&producer.to_ne_bytes(), self.page).unwrap();
    }

    fn consumer(&self) -> u64 {
        let mut position = [0; 8];
        self.file.read_exact_at(&mut position, 0).unwrap();
        u64::from_ne_bytes(position)
    }

    /// Both times that the data are mapped.
    fn put(&self, position: u64, bytes: &[u8]) {
        for (at, byte) in (position..).zip(bytes) {
            let offset = at % self.size;
            for data in [2 * self.page, 2 * self.page + self.size] {
                self.file.write_all_at(&[*byte], data + offset).unwrap();
            }
        }
    }

    fn write(&mut self, flags: u32, data: &[u8]) {
        self.put(self.end, &(flags | data.len() as u32).to_ne_bytes());
        self.put(self.end + 8, data);
        self.end += (8 + data.len() as u64).next_multiple_of(8);
        self.file.write_all_at(&self.end.to_ne_bytes(), self.page).unwrap();
    }
}

fn take(ring: &mut BpfRing) -> (Vec<Vec<u8>>, Taken) {
    let end = ring.end();
    take_until(ring, end)
}

fn take_until(ring: &mut BpfRing, end: usize) -> (Vec<Vec<u8>>, Taken) {
    let mut records = Records::default();
    let taken = ring.take(end, &mut records);
    let all = records.iter().map(<[u8]>::to_vec).collect();
    records.clear();
    assert_eq!(records.iter().count(), 0);
    (all, taken)
}

const NOTHING: Taken = Taken { others: false, malformed: false };

#[test]
fn records_come_whole_and_in_order_around_the_end() {
    // Of 17 bytes, so that they wrap at each place.
    let (mut forged, mut ring) = Forged::new(4096 * 3 - 8);
    for round in 0..500_u32 {
        let records: Vec<_> =
            (0..round % 7).map(|it| [&it.to_le_bytes()[..], &[round as u8; 13]].concat()).collect();
        for record in &records {
            forged.write(0, record);
        }
        assert_eq!(take(&mut ring), (records, NOTHING), "{round}");
        assert_eq!(forged.consumer(), forged.end);
    }
}

#[test]
fn what_is_not_finished_is_waited_for_and_what_is_discarded_left_out() {
    let (mut forged, mut ring) = Forged::new(0);
    forged.write(0, b"one");
    forged.write(DISCARDED, b"gone");
    let busy = forged.end;
    forged.write(BUSY, b"busy");
    forged.write(0, b"last");
    assert_eq!(take(&mut ring), (vec![b"one".to_vec()], NOTHING));
    assert_eq!(forged.consumer(), busy);
    assert_eq!(take(&mut ring), (vec![], NOTHING));
    forged.put(busy, &4_u32.to_ne_bytes());
    assert_eq!(take(&mut ring), (vec![b"busy".to_vec(), b"last".to_vec()], NOTHING));
}

#[test]
fn what_comes_after_the_end_is_left() {
    let (mut forged, mut ring) = Forged::new(0);
    forged.write(0, b"before");
    let end = ring.end();
    forged.write(0, b"after");
    assert_eq!(take_until(&mut ring, end), (vec![b"before".to_vec()], NOTHING));
    assert_eq!(take_until(&mut ring, end), (vec![], NOTHING));
    assert_eq!(take(&mut ring), (vec![b"after".to_vec()], NOTHING));
}

#[test]
fn another_reader_is_noticed_and_not_set_back() {
    let (mut forged, mut ring) = Forged::new(0);
    for record in [b"a", b"b", b"c"] {
        forged.write(0, record);
    }
    // It takes the first.
    forged.set_positions(16, forged.end);
    let others = Taken { others: true, malformed: false };
    assert_eq!(take(&mut ring), (vec![b"b".to_vec(), b"c".to_vec()], others));
    assert_eq!(take(&mut ring), (vec![], NOTHING));
    // It takes all, and more than was there when this one looked.
    forged.write(0, b"d");
    let end = ring.end();
    forged.write(0, b"e");
    forged.set_positions(forged.end, forged.end);
    assert_eq!(take_until(&mut ring, end), (vec![], others));
    assert_eq!(forged.consumer(), forged.end);
    assert!(!ring.claim(end, end + 16), "what was copied meanwhile is not its own");
}

#[test]
fn a_size_that_no_ring_has_is_refused() {
    let (forged, _) = Forged::new(0);
    for size in [0, 1, 4095, 3 * 4096] {
        assert!(BpfRing::map(&forged.file, size).is_err(), "{size}");
    }
}

proptest! {
    /// Any bytes and any positions: it ends, and gives no more than the ring holds.
    #[test]
    fn spoilt_rings_end(
        consumer in prop_oneof![any::<u64>(), 0..8192_u64],
        ahead in prop_oneof![any::<u64>(), 0..5000_u64],
        words in vec(prop_oneof![any::<u32>(), 0..64_u32, Just(BUSY), Just(DISCARDED | 8)], 64),
    ) {
        let (forged, mut ring) = Forged::new(0);
        let producer = consumer.wrapping_add(ahead);
        for (index, word) in (0..).zip(words) {
            forged.put(consumer % 4096 + 8 * index, &word.to_ne_bytes());
        }
        forged.set_positions(consumer, producer);
        let (records, taken) = take(&mut ring);
        prop_assert!(records.iter().map(|record| 8 + record.len()).sum::<usize>() <= 4096);
        if taken.malformed {
            prop_assert_eq!(forged.consumer(), producer);
        }
    }
}
