//! Samples in memory and in a file, against a list of the same; and files that are full, or gone.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;
use crate::intern::StackId;
use crate::record::{AttributeListId, ThreadId};

/// A file in memory that is full, or gone, when that is told.
#[derive(Clone, Debug, Default)]
struct File {
    bytes: Arc<Mutex<Cursor<Vec<u8>>>>,
    is_full: Arc<AtomicBool>,
    is_gone: Arc<AtomicBool>,
}

impl File {
    fn beyond(&self, samples: &mut Samples, bytes: u64) {
        let file = self.clone();
        samples.spill_beyond(bytes, move || Ok(Box::new(file.clone())));
    }
}

impl Read for File {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.is_gone.load(Ordering::Relaxed) {
            return Err(io::Error::other("the disk is gone"));
        }
        self.bytes.lock().unwrap().read(bytes)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.lock().unwrap().seek(to)
    }
}

fn sample(number: u64) -> Sample {
    Sample {
        time: Nanos((1_000_000 + number * 1_000) ^ ((number % 7) << 11)),
        thread: ThreadId(number as u32 % 50),
        stack: StackId((number * 7_919 % 10_000) as u32),
        cpu: number as u16 % 4,
        kind: SampleKindId((number / 30_000) as u16),
        value: if number < 10_000 { 1 } else { number as i64 % 1_000 - 10 },
        attributes: AttributeListId(number as u32 / 20_000),
    }
}

/// So many samples, of which each third is of a raw event.
fn filled(samples: &mut Samples, count: u64) -> Vec<Row> {
    (0..count)
        .map(|number| {
            let mut row = Row::new(&sample(number));
            assert_eq!(samples.push(&row.sample), Some(number as usize));
            if number.is_multiple_of(3) {
                row.set_record(EventRecordId(number as u32));
                samples.set_record(EventRecordId(number as u32));
            }
            row
        })
        .collect()
}

/// What there is, read in each of the ways there are.
fn assert_has(samples: &Samples, rows: &[Row]) {
    assert_eq!(samples.len(), rows.len());
    assert!(samples.iter().eq(rows.iter().map(|row| row.sample)));
    assert!(samples.times().eq(rows.iter().map(|row| row.sample.time)));
    assert!(samples.records().eq(rows.iter().filter_map(Row::record)));
    for (at, row) in rows.iter().enumerate() {
        assert_eq!((samples.at(at), samples.record(at)), (row.sample, row.record()), "{at}");
    }
    let times = rows.iter().map(|row| row.sample.time);
    assert_eq!(samples.span(), times.clone().min().zip(times.max()));
    let mut kinds: Vec<_> = rows.iter().map(|row| row.sample.kind).collect();
    kinds.sort();
    kinds.dedup();
    assert!(samples.kinds().eq(kinds));
    assert!(samples.get(rows.len()).is_none() && samples.record(rows.len()).is_none());
    samples.check().unwrap();
}

#[test]
fn samples_in_a_file_are_those_that_were_added() {
    let (mut samples, file) = (Samples::default(), File::default());
    file.beyond(&mut samples, 300_000);
    let rows = filled(&mut samples, 100_001);
    assert!(samples.bytes_in_file() > 500_000, "{} bytes", samples.bytes_in_file());
    // The cap, the rows that are not packed yet, and one chunk more.
    assert!(samples.bytes() < 300_000 + 4096 * 40 + 4096 * 35, "{} bytes", samples.bytes());
    assert_has(&samples, &rows);
    // One after the other from 64 chunks more than are held.
    let strided = (0..4096).flat_map(|row| (0..24).map(move |chunk| chunk * 4096 + row));
    assert!(strided.clone().all(|at| samples.at(at) == rows[at].sample));
    let among = |since, end| {
        samples
            .times_about(since, end)
            .filter(move |(_, time)| since.is_none_or(|it| *time >= it) && end.is_none_or(|it| *time < it))
            .map(|(at, _)| at as usize)
            .collect::<Vec<_>>()
    };
    let (since, end) = (Nanos(20_000_000), Nanos(61_000_000));
    let expected: Vec<_> =
        (0..rows.len()).filter(|&at| (since..end).contains(&rows[at].sample.time)).collect();
    assert_eq!(among(Some(since), Some(end)), expected);
    assert_eq!(among(None, None).len(), rows.len());
}

#[test]
fn samples_in_a_file_can_be_changed() {
    let (mut samples, file) = (Samples::default(), File::default());
    file.beyond(&mut samples, 100_000);
    let mut rows = filled(&mut samples, 60_000);
    let before = samples.bytes_in_file();
    let places: Vec<usize> =
        (0..60_000).step_by(1_777).flat_map(|at| [at, at + 1]).chain((5..60_000).step_by(9_999)).collect();
    samples.scale(&places, 1e9);
    for &at in &places {
        rows[at].sample.value *= 1_000_000_000;
    }
    samples.scale(&[60_000], 2.0);
    assert_has(&samples, &rows);
    samples.change_each(|sample| {
        if sample.thread == ThreadId(7) && sample.cpu == 1 {
            sample.stack = StackId(u32::MAX);
        }
        sample.kind = SampleKindId(sample.kind.0.max(1));
    });
    for Row { sample, .. } in &mut rows {
        if sample.thread == ThreadId(7) && sample.cpu == 1 {
            sample.stack = StackId(u32::MAX);
        }
        sample.kind = SampleKindId(sample.kind.0.max(1));
    }
    assert_has(&samples, &rows);
    assert!(samples.bytes() < 100_000 + 4096 * 40 + 4096 * 35);
    // What grows has a new place, and what stays as long its own.
    let grown = samples.bytes_in_file();
    samples.scale(&(0..60_000).step_by(1_777).collect::<Vec<_>>(), 1.0);
    assert!(
        before < grown && samples.bytes_in_file() == grown,
        "{before} {grown} {}",
        samples.bytes_in_file()
    );

    let part = samples.part(|sample| sample.cpu == 2);
    let of_part: Vec<Row> = rows.iter().copied().filter(|row| row.sample.cpu == 2).collect();
    assert_has(&samples, &rows);
    let left_out = samples.retain(|sample| sample.cpu == 2);
    assert_has(&samples, &of_part);
    assert!(left_out.into_iter().eq(rows.iter().filter(|row| row.sample.cpu != 2).filter_map(Row::record)));
    drop(part);
}

#[test]
fn a_sorted_copy_is_that_of_a_list() {
    for (cap, count) in [(None, 30_000), (Some(0), 30_000), (Some(0), 4096 * 6), (Some(100_000), 100)] {
        let mut samples = Samples::default();
        if let Some(bytes) = cap {
            samples.spill_beyond(bytes, move || Ok(Box::new(File::default())));
        }
        let mut rows = filled(&mut samples, count);
        let key = |sample: &Sample| (sample.thread, sample.cpu);
        rows.sort_by_key(|row| key(&row.sample));
        for chunks in [1, 2, 128] {
            assert_has(&samples.sorted_in_runs(chunks, key), &rows);
        }
        assert!(samples.sorted_by_key(|_| 0).iter().eq(samples.iter()));
    }
}

#[test]
fn what_cannot_be_written_stays_in_memory_and_is_tried_again() {
    let (mut samples, file) = (Samples::default(), File::default());
    file.beyond(&mut samples, 0);
    file.is_full.store(true, Ordering::Relaxed);
    let mut rows = filled(&mut samples, 50_000);
    assert_eq!(samples.unwritten(), Some((io::ErrorKind::StorageFull, "no storage space")));
    assert_eq!(samples.bytes_in_file(), 0);
    assert_has(&samples, &rows);
    file.is_full.store(false, Ordering::Relaxed);
    for number in 50_000..100_000 {
        rows.push(Row::new(&sample(number)));
        samples.push(&sample(number));
    }
    assert!(samples.bytes() < 500_000, "{} bytes", samples.bytes());
    assert_has(&samples, &rows);
}

#[test]
fn a_file_that_cannot_be_opened_is_told() {
    let mut samples = Samples::default();
    let rows = filled(&mut samples, 10_000);
    samples.spill_beyond(0, || Err(io::Error::other("no such folder")));
    assert_eq!(samples.unwritten(), Some((io::ErrorKind::Other, "no such folder")));
    assert_has(&samples, &rows);
}

#[test]
fn what_cannot_be_read_is_told_for_good() {
    for damage in [0, 1] {
        let (mut samples, file) = (Samples::default(), File::default());
        file.beyond(&mut samples, 0);
        let rows = filled(&mut samples, 10_000);
        samples.check().unwrap();
        match damage {
            0 => file.is_gone.store(true, Ordering::Relaxed),
            _ => file.bytes.lock().unwrap().get_mut()[64] = 9,
        }
        assert!(samples.iter().count() < rows.len());
        let told = samples.check().unwrap_err().to_string();
        assert!(told.contains(["the disk is gone", "it was changed"][damage]), "{told}");
        assert_eq!(samples.at(1), Sample::default());
        let part = samples.part(|_| true);
        assert!(part.check().is_err() && part.len() < rows.len());
        file.is_gone.store(false, Ordering::Relaxed);
        samples.retain(|_| true);
        assert!(samples.check().is_err());
    }
}

/// What is done with samples.
#[derive(Clone, Debug)]
enum Step {
    Add(u64, u16),
    Scale(prop::sample::Index, i64),
    Restack(u16, u32),
    Retain(u16),
    Cap(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<u64>(), 1_u16..9_000).prop_map(|(seed, count)| Step::Add(seed, count)),
        2 => (any::<prop::sample::Index>(), 0_i64..1 << 40).prop_map(|(at, factor)| Step::Scale(at, factor)),
        1 => (0_u16..4, any::<u32>()).prop_map(|(cpu, stack)| Step::Restack(cpu, stack)),
        1 => (0_u16..4).prop_map(Step::Retain),
        1 => (0_u64..200_000).prop_map(Step::Cap),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_steps_leave_what_they_leave_in_a_list(steps in proptest::collection::vec(step(), 1..16)) {
        let (mut samples, mut rows) = (Samples::default(), Vec::new());
        for step in steps {
            match step {
                Step::Add(seed, count) => for number in 0..u64::from(count) {
                    let number = seed.wrapping_mul(number + 1) >> (seed % 60);
                    let value = (number % 1_000_000).cast_signed() - 1_000;
                    let row = Row::new(&Sample { value, time: Nanos(number), ..sample(number % 1_000_000) });
                    samples.push(&row.sample);
                    rows.push(row);
                },
                Step::Scale(at, factor) => if !rows.is_empty() {
                    let at = at.index(rows.len());
                    samples.scale(&[at], factor as f64);
                    let value = &mut rows[at].sample.value;
                    *value = (*value as f64 * factor as f64).round() as i64;
                },
                Step::Restack(cpu, stack) => {
                    let change = |sample: &mut Sample| if sample.cpu == cpu { sample.stack = StackId(stack) };
                    samples.change_each(change);
                    for row in &mut rows {
                        change(&mut row.sample);
                    }
                }
                Step::Retain(cpu) => {
                    samples.retain(|sample| sample.cpu != cpu);
                    rows.retain(|row| row.sample.cpu != cpu);
                }
                Step::Cap(bytes) => File::default().beyond(&mut samples, bytes),
            }
        }
        prop_assert!(samples.iter().eq(rows.iter().map(|row| row.sample)));
        prop_assert!((0..rows.len()).all(|at| samples.at(at) == rows[at].sample));
        samples.check().unwrap();
    }
}
