//! Files that are damaged: no panic, what can be read is read, what can't is told with its place.

use std::env;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::num::NonZero;
use std::thread;

use windows_etw::etl::{DamageKind, EtlError, EtlFile, Losses};

use crate::data::bytes;
use crate::written::{Buffer, Trace, event, perf_info};

/// Reads all that there is.
fn read(file: &[u8]) -> Result<(u64, Losses), EtlError> {
    let mut file = EtlFile::open(Cursor::new(file))?;
    let mut records = 0;
    while let Some(record) = file.next_record()? {
        records += 1;
        assert!(record.payload.len() <= 0xffff);
    }
    Ok((records, file.losses().clone()))
}

/// The files of `PerfView`, with their records.
fn files() -> impl Iterator<Item = (&'static str, Vec<u8>, u64)> {
    let files = [
        ("net.4.5.2.x64.etl", 179_474),
        ("Process.etl", 10_344),
        ("gcevents.etl", 71),
        ("primitive-types.etl", 7),
    ];
    files.into_iter().filter_map(|(name, records)| Some((name, bytes(name)?, records)))
}

#[test]
fn cut_at_multiples_of_4_kib() {
    for (name, bytes, records) in files() {
        // Of the large one, every cut of its beginning, and some behind that: each takes as long as all that is before it.
        // `cargo xtask test --all` cuts it at every one, too.
        let beginning = bytes.len().min(400 << 10);
        let is_large = bytes.len() > 0x20_0000;
        let pages = if is_large && env::var_os("COLLECTOR_TEST_ALL").is_none() { 225 } else { 1 };
        let near = (0..beginning).step_by(4096);
        let far = (beginning..bytes.len()).step_by(pages << 12);
        let cuts: Vec<usize> = near.chain(far).collect();
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let check_each = |first: usize| {
            let mut most = 0;
            for &cut in cuts.iter().skip(first).step_by(threads) {
                let Ok((found, losses)) = read(&bytes[..cut]) else {
                    assert!(cut < 8192, "{name} of {cut} bytes has a beginning");
                    continue;
                };
                assert!((most..=records).contains(&found), "{name} of {cut} bytes has {found} records");
                // In a circular file it is not known how many buffers there were: a cut between two can't be told.
                let is_between = cut % (64 << 10) == 0 && name == "gcevents.etl";
                let is_told = losses.missing_buffers > 0 || losses.damages > 0;
                assert!(is_told || is_between, "{name} of {cut} bytes: {losses:?}");
                most = found;
            }
            most
        };
        let check = &check_each;
        let most = thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|first| scope.spawn(move || check(first))).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
        });
        assert!(most > 0 || records < 100, "{name}");
    }
}

#[test]
fn flipped_bits() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for (name, bytes, records) in files() {
        let rounds = if bytes.len() > 1 << 20 { 4 } else { 400 };
        for _ in 0..rounds {
            let mut bytes = bytes.clone();
            for _ in 0..=next() % 8 {
                let at = next() as usize % bytes.len();
                // The beginning is where most depends on.
                let at = if next() % 4 == 0 { at % 700 } else { at };
                bytes[at] ^= 1 << (next() % 8);
            }
            match read(&bytes) {
                Ok((found, _)) => assert!(found <= 2 * records + 1000, "{name}"),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

/// Of a file of equal buffers each tells a wrong size in turn, or is spoilt altogether.
#[test]
fn a_size_that_is_wrong_leads_nobody_astray() {
    let trace = Trace { buffer_size: 1024, ..Trace::default() };
    let record = |number: u8| event(19, 0, 2000 + i64::from(number), b"", &[number; 800]);
    let buffers: Vec<Vec<u8>> =
        (1..=6).map(|number| Buffer { size: 1024, ..Buffer::default() }.bytes(&[record(number)])).collect();
    let file = trace.file(&buffers);
    assert_eq!(file.len(), 7 * 1024);
    for at in (1024..file.len()).step_by(1024) {
        for size in [0_u32, 1, 72, 512, 1016, 1032, 2048, 3072, 0x8000, 16 << 20 | 1, u32::MAX] {
            let mut bytes = file.clone();
            bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
            let (records, losses) = read(&bytes).unwrap();
            let told: Vec<_> = losses.places.iter().map(|it| (it.buffer, it.kind)).collect();
            assert_eq!((records, told), (7, vec![(at as u64, DamageKind::Size)]), "{size} at {at}");
            assert_eq!((losses.damaged_bytes, losses.missing_buffers), (0, 0));
        }
        let mut bytes = file.clone();
        bytes[at..at + 72].fill(0x41);
        let (records, losses) = read(&bytes).unwrap();
        assert_eq!((records, losses.damages, losses.missing_buffers), (6, 1, 1), "{at}");
        assert_eq!((losses.places[0].kind, losses.damaged_bytes), (DamageKind::Buffer, 1024));
    }
    // They are not equal in this one, and none is wrong.
    let other = Buffer { size: 2048, ..Buffer::default() }.bytes(&[record(9)]);
    let (records, losses) = read(&trace.file(&[&buffers[..3], &[other], &buffers[3..]].concat())).unwrap();
    assert_eq!((records, losses.is_none()), (8, true));
}

#[test]
fn sizes_that_can_not_be() {
    let record = |number: u8| event(19, 0, 2000 + i64::from(number), b"", &[number; 200]);
    let buffers = [1, 2, 3].map(|number| Buffer::default().bytes(&[record(number)]));
    let file = Trace { buffer_size: 0x280, ..Trace::default() }.file(&buffers);
    let whole = read(&file).unwrap();
    assert_eq!((whole.0, whole.1.is_none()), (4, true));
    let first = file.len() - 3 * 512;
    for size in [0_u32, 1, 71, 16 << 20 | 1, u32::MAX] {
        // Of a buffer: those behind it can't be found in the distance of 640 bytes, and that is told.
        let mut bytes = file.clone();
        bytes[first + 512..first + 516].copy_from_slice(&size.to_le_bytes());
        let (records, losses) = read(&bytes).unwrap();
        assert_eq!((records, losses.damages), (2, 1), "{size}: {losses:?}");
        assert_eq!(
            (losses.places[0].buffer, losses.places[0].kind),
            (first as u64 + 512, DamageKind::Buffer)
        );
        assert_eq!(losses.damaged_bytes, 1024);
        // Of the bytes of it that are used: less than its header, or more than it has.
        let mut bytes = file.clone();
        bytes[first + 0x30..first + 0x34].copy_from_slice(&size.to_le_bytes());
        let (records, losses) = read(&bytes).unwrap();
        assert_eq!((records, losses.damages), (if size < 72 { 3 } else { 4 }, 1), "{size}: {losses:?}");
        assert_eq!((losses.places[0].buffer, losses.places[0].kind), (first as u64, DamageKind::Used));
        assert_eq!(losses.damaged_bytes, if size < 72 { 512 } else { 0 });
    }
    // Of a record.
    for size in [0_u16, 7, 79, 1000, u16::MAX] {
        let mut bytes = file.clone();
        bytes[first + 72..first + 74].copy_from_slice(&size.to_le_bytes());
        let (records, losses) = read(&bytes).unwrap();
        assert_eq!((records, losses.damages), (3, 1), "{size}: {losses:?}");
        assert_eq!((losses.places[0].at, losses.places[0].kind), (72, DamageKind::Record));
        assert_eq!(losses.damaged_bytes, 280);
    }
}

/// Behind a buffer that can't be one the next is found where it should be.
#[test]
fn behind_a_damaged_buffer_it_goes_on() {
    let buffers = [1, 2, 3].map(|number| {
        Buffer { size: 1024, ..Buffer::default() }.bytes(&[event(19, 0, 2000 + number, b"", &[0; 8])])
    });
    let mut file = Trace { buffer_size: 1024, ..Trace::default() }.file(&buffers);
    file[2048..3072].fill(0xaa);
    let (records, losses) = read(&file).unwrap();
    assert_eq!((records, losses.damages, losses.damaged_bytes, losses.missing_buffers), (3, 1, 1024, 1));
    assert_eq!(losses.places[0].to_string(), "no buffer can begin at byte 2048");
}

#[test]
fn a_packed_buffer_that_is_damaged() {
    let records = [1, 2, 3].map(|number| event(19, 0, 2000 + number, b"", &number.to_le_bytes()));
    let whole =
        Trace::default().file(&[Buffer::default().packed(&records), Buffer::default().packed(&records)]);
    assert_eq!(read(&whole).unwrap().0, 7);
    let length = (whole.len() - 0x280) / 2;
    // Its last byte is gone, so that the last record is.
    let (found, losses) = read(&whole[..whole.len() - 1]).unwrap();
    assert_eq!((found, losses.damages), (6, 1));
    assert_eq!(losses.places[0].buffer, (0x280 + length) as u64);
    // It begins with a copy of what is before it.
    let mut bytes = whole.clone();
    bytes[0x280 + 72 + 3] |= 0x80;
    let (found, losses) = read(&bytes).unwrap();
    assert_eq!((found, losses.damages), (4, 1));
    assert_eq!((losses.places[0].buffer, losses.places[0].kind), (0x280, DamageKind::Packed));
    // It says that it unpacks to more than it does.
    let mut bytes = whole.clone();
    bytes[0x280 + 0x30] += 8;
    let (found, losses) = read(&bytes).unwrap();
    assert_eq!((found, losses.places[0].kind), (7, DamageKind::Packed));
    // To more than any.
    bytes[0x280 + 0x33] = 0xff;
    let (found, losses) = read(&bytes).unwrap();
    assert_eq!((found, losses.places[0].kind), (7, DamageKind::Packed));
    assert!(losses.damaged_bytes < 16 << 20);
}

/// A packed buffer of a hundred bytes that unpacks to 256 KiB: a record, and its last byte again and again.
fn much_of_little(ticks: i64) -> Vec<u8> {
    const UNPACKED: u32 = 256 << 10;
    let record = perf_info(17, 2, (15, 46), ticks, &[0xff; 8]);
    assert_eq!(record.len(), 24);
    // As many bytes as they are; one byte before, for a length of all widths; and as all flags are behind the end.
    let long = [&[7, 0, 0x0f, 255, 0, 0][..], &(UNPACKED - 24 - 3).to_le_bytes()].concat();
    let packed = [&0xff_u32.to_le_bytes()[..], &record, &long].concat();
    // Room to be unpacked to so much.
    let packed = [packed, vec![0; 28]].concat();
    let mut buffer = Buffer { size: 72 + packed.len() as u32, ..Buffer::default() }.bytes(&[]);
    buffer[0x30..0x34].copy_from_slice(&(72 + UNPACKED).to_le_bytes());
    buffer[0x34] |= 0x40;
    buffer[72..].copy_from_slice(&packed);
    buffer
}

/// 160 KB that would be 300 MB.
#[test]
fn packed_buffers_that_are_much_together() {
    const BUFFERS: u64 = 1200;
    const MOST: u64 = 256 << 20;
    let file = |buffers: u64| {
        let buffers: Vec<_> = (0..buffers).map(|number| much_of_little(2000 + number as i64)).collect();
        Trace::default().file(&buffers)
    };
    let (records, losses) = read(&file(4)).unwrap();
    assert_eq!((records, losses.damages), (5, 0), "{losses:?}");
    let bytes = file(BUFFERS);
    let (records, losses) = read(&bytes).unwrap();
    let room = (MOST + 64 * bytes.len() as u64) / (256 << 10);
    assert_eq!((records, losses.damages), (1 + room, BUFFERS - room));
    assert_eq!(losses.places[0].kind, DamageKind::Beyond);
    assert!(losses.places[0].to_string().contains("unpack to more than"), "{}", losses.places[0]);
}

/// A file that is longer than it was when it was opened, as one that is still written.
struct Growing(Cursor<Vec<u8>>, u64);

impl Read for Growing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Seek for Growing {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if matches!(to, SeekFrom::End(_)) { Ok(self.1) } else { self.0.seek(to) }
    }
}

#[test]
fn a_file_that_grows() {
    let buffer = Buffer::default().bytes(&[event(19, 0, 2000, b"", b"payload")]);
    let file = Trace::default().file(&[buffer.clone(), buffer]);
    for length in 0..file.len() {
        let whole = read(&file[..length]);
        let grown = EtlFile::open(Growing(Cursor::new(file.clone()), length as u64));
        let Ok(mut grown) = grown else {
            assert!(whole.is_err());
            continue;
        };
        let mut records = 0;
        while grown.next_record().unwrap().is_some() {
            records += 1;
        }
        assert_eq!(whole.unwrap(), (records, grown.losses().clone()));
    }
}

#[test]
fn what_is_no_etl_file() {
    let text = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(text(b""), "the .etl file is empty");
    let cut = "the .etl file is cut short: it ends at byte ";
    assert_eq!(text(&[0; 70]), format!("{cut}70, in its first buffer, at least 2 bytes too early"));
    assert!(text(&[0; 100]).contains("at byte 0, there should be the header of a buffer"));
    assert!(text(&Buffer::default().bytes(&[])).contains("at byte 72, the first record should be"));
    let other = Buffer::default().bytes(&[event(19, 0, 1, b"", b"")]);
    assert!(text(&other).contains("at byte 72, the first record should be"));
    let first = Trace::default().first_buffer();
    assert!(read(&first).is_ok());
    for cut in 0..first.len() {
        let _ = read(&first[..cut]);
    }
}
