//! What is read from bytes is written as the same bytes: every type of record with every `sample_type`, in both byte
//! orders, in one piece and in two; and noise breaks nothing.

use collector_common::perf::{
    ByteOrder, Bytes, OwnedRecord, ParseConfig, Parsed, RawRecord, Record, RecordKind, SampleType, records,
};
use proptest::prelude::*;

use crate::layout::{self, KINDS, SAMPLE_TYPE_BITS};

/// The bytes of a record with its header.
fn whole(record: &OwnedRecord, order: ByteOrder) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.as_raw().write(order, &mut bytes).unwrap();
    bytes
}

fn other(order: ByteOrder) -> ByteOrder {
    if order == ByteOrder::Little { ByteOrder::Big } else { ByteOrder::Little }
}

fn written(parsed: &Parsed<'_>, config: &ParseConfig) -> Vec<u8> {
    let mut bytes = Vec::new();
    parsed.write(config, &mut bytes).unwrap();
    bytes
}

/// Reads, writes, and compares.
fn round_trip(kind: RecordKind, config: &ParseConfig, noise: &[u64]) {
    let record = layout::record(kind, config, noise);
    let bytes = whole(&record, config.byte_order);
    let parsed = record.as_raw().parse(config).unwrap();
    assert_eq!(parsed.record.kind(), kind);
    assert!(parsed.rest.is_empty(), "{parsed:?}");
    assert_eq!(written(&parsed, config), bytes, "{parsed:?}");
    for at in 0..=record.body.len() {
        let (first, second) = record.body.split_at(at);
        let wrapped = RawRecord { body: Bytes::wrapped(first, second), ..record.as_raw() };
        let in_two = wrapped.parse(config).unwrap();
        assert_eq!(in_two, parsed, "in two pieces at {at}");
        if at % 5 == 0 {
            assert_eq!(written(&in_two, config), bytes, "in two pieces at {at}");
        }
    }
    // Through the other byte order and back. What has no numbers in it stays as it is.
    if !matches!(parsed.record, Record::Other(_)) {
        let others = ParseConfig { byte_order: other(config.byte_order), ..*config };
        let swapped = written(&parsed, &others);
        let raw = records(&swapped, others.byte_order).next().unwrap().unwrap();
        assert_eq!(written(&raw.parse(&others).unwrap(), config), bytes);
    }
}

#[test]
fn each_part_alone_and_with_each_other() {
    let noise: Vec<u64> =
        (0..29).map(|step| 0x0123_4567_89ab_cdef_u64.rotate_left(step * 5) ^ u64::from(step)).collect();
    for one in 0..SAMPLE_TYPE_BITS {
        for two in one..SAMPLE_TYPE_BITS {
            for order in [ByteOrder::Little, ByteOrder::Big] {
                let sample_type = layout::without_two_weights(SampleType(1 << one | 1 << two));
                let config = ParseConfig {
                    sample_type,
                    sample_regs_user: 0xf0,
                    sample_regs_intr: 0x1f,
                    sample_id_all: true,
                    byte_order: order,
                    ..ParseConfig::default()
                };
                for kind in KINDS {
                    round_trip(RecordKind(kind), &config, &noise);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_record_of_any_event(
        kind in prop_oneof![9..=9_u32, KINDS, 20..100_u32],
        config in layout::configs(),
        noise in layout::noise(),
    ) {
        round_trip(RecordKind(kind), &config, &noise);
    }

    #[test]
    fn a_record_that_is_cut_off_is_an_error_or_another_record(
        kind in KINDS,
        config in layout::configs(),
        noise in layout::noise(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut record = layout::record(RecordKind(kind), &config, &noise);
        record.body.truncate(cut.index(record.body.len() + 1));
        if let Ok(parsed) = record.as_raw().parse(&config) {
            // Views end where the record does, and what was read can be written.
            prop_assert!(written(&parsed, &config).len() <= record.body.len() + 8 + 16);
        }
    }

    #[test]
    fn noise_is_never_fatal(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        kind in prop_oneof![KINDS, any::<u32>()],
        misc: u16,
        config in layout::configs(),
        seam in any::<prop::sample::Index>(),
    ) {
        let (first, second) = bytes.split_at(seam.index(bytes.len() + 1));
        let misc = collector_common::perf::Misc(misc);
        let raw = RawRecord { kind: RecordKind(kind), misc, body: Bytes::wrapped(first, second) };
        if let Ok(parsed) = raw.parse(&config) {
            let _ = format!("{parsed:?}");
            let _ = parsed.write(&config, &mut Vec::new());
        }
        for raw in records(Bytes::wrapped(first, second), config.byte_order) {
            let _ = raw.map(|raw| raw.parse(&config).is_ok());
        }
    }

    #[test]
    fn a_ring_is_read_wherever_it_wraps(
        kinds in proptest::collection::vec(KINDS, 1..6),
        config in layout::configs(),
        noise in layout::noise(),
    ) {
        let written: Vec<_> =
            kinds.iter().map(|&kind| layout::record(RecordKind(kind), &config, &noise)).collect();
        let ring: Vec<u8> = written.iter().flat_map(|record| whole(record, config.byte_order)).collect();
        for at in 0..=ring.len() {
            let (first, second) = ring.split_at(at);
            let read = records(Bytes::wrapped(first, second), config.byte_order);
            let read: Vec<OwnedRecord> = read.map(|raw| raw.unwrap().into()).collect();
            prop_assert_eq!(&read, &written);
        }
    }
}
