//! Records of several buffers come in the order of time, however their buffers lie.

use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::{prop_assert, prop_assert_eq, proptest};
use windows_etw::etl::EtlFile;

use crate::data::bytes;
use crate::written::{Buffer, TICKS, Trace, event};

/// A buffer whose records came at these times, their number in the file as payload.
fn buffer(buffer: Buffer, first: u32, ticks: &[i64], is_packed: bool) -> Vec<u8> {
    let numbers = first..;
    let records: Vec<_> = ticks
        .iter()
        .zip(numbers)
        .map(|(ticks, number)| event(19, 0, *ticks, b"", &number.to_le_bytes()))
        .collect();
    if is_packed { buffer.packed(&records) } else { buffer.bytes(&records) }
}

/// Times and numbers in the order in which they are read, and how many of them were late.
fn read(file: Vec<u8>, memory: usize) -> (Vec<(i64, u32)>, u64) {
    let mut file = EtlFile::open_within(Cursor::new(file), memory).unwrap();
    file.next_record().unwrap().unwrap();
    let mut found = Vec::new();
    while let Some(record) = file.next_record().unwrap() {
        found.push((record.ticks, u32::from_le_bytes(record.payload.try_into().unwrap())));
    }
    assert_eq!((file.losses().damages, file.losses().missing_buffers), (0, 0));
    (found, file.losses().late_records)
}

#[test]
fn buffers_of_one_cpu_that_overlap_and_lie_in_disorder() {
    let one = |cpu, first, ticks: &[i64]| buffer(Buffer { cpu, ..Buffer::default() }, first, ticks, false);
    let file = Trace::default().file(&[
        one(1, 0, &[5000, 5001, 9000]),
        // A merged file has two sessions' buffers for a CPU.
        one(1, 10, &[4000, 6000]),
        one(0, 20, &[5001, 5002]),
        one(1, 30, &[]),
        one(0, 40, &[1000]),
    ]);
    let expected =
        [(1000, 40), (4000, 10), (5000, 0), (5001, 1), (5001, 20), (5002, 21), (6000, 11), (9000, 2)];
    assert_eq!(read(file.clone(), 1 << 20), (expected.to_vec(), 0), "of one time in the order of the file");
    assert_eq!(read(file, 0), (expected.to_vec(), 0), "with one buffer in memory");
}

/// Records of a buffer are put in order, those of one time as they lie. One that is older than its buffer's first, and
/// than what was given by then, is late.
#[test]
fn records_of_a_buffer_in_disorder() {
    let plain = Buffer::default();
    let file = Trace::default()
        .file(&[buffer(plain, 0, &[2000, 2002, 2001, 2001], false), buffer(plain, 10, &[2003, 1999], false)]);
    let expected = [(2000, 0), (2001, 2), (2001, 3), (2002, 1), (1999, 11), (2003, 10)];
    assert_eq!(read(file, 1 << 20), (expected.to_vec(), 1));
}

#[test]
fn the_cpu_of_a_buffer() {
    let record = [event(19, 0, 2000, b"", b"")];
    // Since Windows 8 there is a flag for more than 256 CPUs; before, the byte above is an alignment.
    for (cpu, flags, expected) in [(0x0803, 0, 3), (0x0803, 0x20, 3), (0x0703, 0x20, 0x703), (0xff, 1, 0xff)]
    {
        let buffer = Buffer { cpu, flags, ..Buffer::default() }.bytes(&record);
        let mut file = EtlFile::open(Cursor::new(Trace::default().file(&[buffer]))).unwrap();
        file.next_record().unwrap().unwrap();
        assert_eq!(file.next_record().unwrap().unwrap().cpu, expected);
    }
}

#[test]
fn buffers_say_that_others_were_lost() {
    let with = |flags| Buffer { flags, ..Buffer::default() }.bytes(&[]);
    let file = Trace::default().file(&[with(0), with(1), with(2), with(4), with(0x26)]);
    let file = EtlFile::open(Cursor::new(file)).unwrap();
    assert_eq!(file.losses().flagged_buffers, 3);
}

#[test]
fn buffers_that_the_header_counts_and_the_file_does_not_have() {
    let trace = Trace { buffers_written: 5, ..Trace::default() };
    let buffers =
        |trace: Trace| EtlFile::open(Cursor::new(trace.first_buffer())).unwrap().losses().missing_buffers;
    assert_eq!(buffers(trace), 4);
    assert_eq!(buffers(Trace { mode: 2, ..trace }), 0, "a circular file has the last ones");
}

/// With too little memory a file that alternates between two buffers is given up, not read for ever.
#[test]
fn too_little_memory_for_too_many_buffers_is_told() {
    let records =
        |odd: i64| (0..500).map(|number| event(19, 0, 2000 + 2 * number + odd, b"", b"")).collect::<Vec<_>>();
    let buffers = [0, 1].map(|odd| Buffer { size: 1 << 16, ..Buffer::default() }.bytes(&records(odd)));
    let file = Trace { buffer_size: 1 << 16, ..Trace::default() }.file(&buffers);
    let count = |memory| {
        let mut file = EtlFile::open_within(Cursor::new(&file), memory).unwrap();
        let mut records = 0;
        loop {
            match file.next_record() {
                Ok(Some(_)) => records += 1,
                Ok(None) => return (records, None),
                Err(error) => {
                    assert!(file.next_record().unwrap().is_none(), "after an error it is at its end");
                    return (records, Some(error.to_string()));
                }
            }
        }
    };
    assert_eq!(count(1 << 20), (1001, None));
    let (records, error) = count(1 << 16);
    assert!((20..1000).contains(&records), "{records}");
    let expected = "the buffers of the .etl file overlap in time more than 65536 bytes of memory allow for";
    assert_eq!(error.unwrap(), expected);
}

/// Reading allocates for buffers, and not for records.
#[test]
fn no_record_is_allocated() {
    let Some(bytes) = bytes("Process.etl") else { return };
    let mut file = EtlFile::open(Cursor::new(bytes)).unwrap();
    let mut records = 0;
    let allocated = allocation_counter::measure(|| {
        while file.next_record().unwrap().is_some() {
            records += 1;
        }
    });
    // 182 buffers, of which two and a few more are loaded at a time: these grow to their size.
    assert_eq!(records, 10_344);
    assert!(allocated.count_total < 100, "{allocated:?}");
    // The file has 1.5 MB.
    assert!(allocated.bytes_max < 64 << 10, "{allocated:?}");
}

proptest! {
    /// What a sort says, with any memory.
    #[test]
    fn order_is_that_of_a_sort(
        buffers in vec((vec(0_i64..60, 0..5), 0_u16..4, any::<bool>()), 0..12),
        memory in 0_usize..4000,
    ) {
        let (mut lie, mut expected) = (Vec::new(), Vec::new());
        for (number, (mut ticks, cpu, is_packed)) in buffers.into_iter().enumerate() {
            ticks.sort_unstable();
            let ticks: Vec<_> = ticks.into_iter().map(|ticks| ticks + TICKS).collect();
            let first = number as u32 * 100;
            expected.extend(ticks.iter().copied().zip(first..));
            lie.push(buffer(Buffer { cpu, ..Buffer::default() }, first, &ticks, is_packed));
        }
        expected.sort_by_key(|(ticks, _)| *ticks);
        let (found, late) = read(Trace::default().file(&lie), memory);
        prop_assert_eq!(found, expected);
        prop_assert_eq!(late, 0);
    }

    /// In disorder each is there once, and what is late is counted.
    #[test]
    fn none_is_left_out(
        buffers in vec(vec(0_i64..60, 0..5), 0..12),
        memory in 0_usize..4000,
    ) {
        let (mut lie, mut numbers) = (Vec::new(), Vec::new());
        for (number, ticks) in buffers.into_iter().enumerate() {
            let ticks: Vec<_> = ticks.into_iter().map(|ticks| ticks + TICKS).collect();
            let first = number as u32 * 100;
            numbers.extend((first..).take(ticks.len()));
            lie.push(buffer(Buffer::default(), first, &ticks, false));
        }
        let (found, late) = read(Trace::default().file(&lie), memory);
        let (mut newest, mut older) = (i64::MIN, 0);
        for (ticks, _) in &found {
            older += u64::from(*ticks < newest);
            newest = newest.max(*ticks);
        }
        prop_assert_eq!(older, late);
        let mut found: Vec<_> = found.into_iter().map(|(_, number)| number).collect();
        found.sort_unstable();
        prop_assert_eq!(found, numbers);
        prop_assert!(late == 0 || newest > TICKS);
    }
}
