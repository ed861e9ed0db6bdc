//! Records in the order of their times, of files that pack very much.

use collector_common::perf::file::{FileReader, Ordered};
use collector_common::perf::{ByteOrder, Bytes, Misc, RawRecord, RecordKind};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::user::Part::{U32, U64};
use crate::user::made;

/// Samples of each of two processors, those of the second one older.
const SAMPLES: usize = 200_000;

/// `PERF_SAMPLE_TIME` of `include/uapi/linux/perf_event.h`.
const TIME: u64 = 1 << 2;

/// A stream that packs them, and tells of no round.
fn packed() -> Vec<u8> {
    let order = ByteOrder::Little;
    let mut stream = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    let write = |out: &mut Vec<u8>, kind, body: &[u8]| {
        RawRecord { kind, misc: Misc(0), body: Bytes::from(body) }.write(order, out).unwrap();
    };
    let attr = [U32(1), U32(64), U64(0), U64(1), U64(TIME), U64(0), U64(0), U32(0), U32(0), U64(0)];
    write(&mut stream, RecordKind::HEADER_ATTR, &made(RecordKind::HEADER_ATTR, order, &attr).body);
    let mut plain = Vec::new();
    for time in [2_000_u64, 1_000] {
        let mut one = Vec::new();
        write(&mut one, RecordKind::SAMPLE, &time.to_le_bytes());
        plain.extend(one.repeat(SAMPLES));
    }
    let packed = compress_to_vec(plain.as_slice(), CompressionLevel::Fastest);
    assert!(packed.len() < plain.len() / 100, "{}", packed.len());
    for piece in packed.chunks(60_000) {
        write(&mut stream, RecordKind::COMPRESSED, piece);
    }
    stream
}

/// Times of all samples, and how many of them are told to come too late.
fn times(mut file: Ordered<&[u8]>) -> (Vec<u64>, u64) {
    let mut times = Vec::new();
    while let Some(record) = file.next_record().unwrap() {
        times.extend(record.config.time(&record.raw).map(|time| time.0));
    }
    (times, file.out_of_order())
}

#[test]
fn a_small_file_of_many_records_is_not_held_whole() {
    const HELD: u64 = 4 << 20;
    let stream = packed();
    let open = || Ordered::new(FileReader::stream(stream.as_slice()).unwrap());
    let (in_order, too_late) = times(open());
    let [older, younger] = [1_000, 2_000].map(|time| vec![time; SAMPLES]);
    assert!(in_order == [older, younger].concat() && too_late == 0, "{} {too_late}", in_order.len());
    let mut count = 0;
    let used = allocation_counter::measure(|| {
        let mut file = open().holding(HELD);
        while file.next_record().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(file.out_of_order(), SAMPLES as u64, "the younger ones were given out first");
    });
    assert_eq!(count, 2 * SAMPLES + 1);
    // With what unpacking takes.
    assert!(used.bytes_max < 4 * HELD, "{} bytes", used.bytes_max);
}
