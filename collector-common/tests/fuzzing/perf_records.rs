//! Input: 24 bytes of an event's attributes, and the records of a ring. What is read is written, read again and written
//! again, the same; and it does not matter where the ring wraps.

use collector_common::perf::{
    BranchSampleType, ByteOrder, Bytes, ParseConfig, RawRecord, ReadFormat, SampleType, records,
};

pub(crate) fn run(data: &[u8]) {
    let Some((head, ring)) = data.split_first_chunk::<24>() else { return };
    let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| head[at + index]));
    let config = ParseConfig {
        sample_type: SampleType(u32_at(0).into()),
        read_format: ReadFormat(head[4].into()),
        branch_sample_type: BranchSampleType(u32_at(8).into()),
        sample_regs_user: u32_at(12).into(),
        sample_regs_intr: u32_at(16).into(),
        sample_id_all: head[5] & 1 != 0,
        build_id: head[5] & 2 != 0,
        byte_order: if head[5] & 4 != 0 { ByteOrder::Big } else { ByteOrder::Little },
    };
    let (first, second) = ring.split_at(u32_at(20) as usize % (ring.len() + 1));
    let wrapped = records(Bytes::wrapped(first, second), config.byte_order);
    for (raw, raw_in_two) in records(ring, config.byte_order).zip(wrapped) {
        assert_eq!(raw, raw_in_two);
        if let (Ok(raw), Ok(raw_in_two)) = (raw, raw_in_two) {
            use_record(&raw, &raw_in_two, &config);
        }
    }
}

fn use_record(raw: &RawRecord<'_>, raw_in_two: &RawRecord<'_>, config: &ParseConfig) {
    let parsed = raw.parse(config);
    assert_eq!(parsed, raw_in_two.parse(config));
    let _ = (config.time(raw), config.event_id(raw));
    let Ok(parsed) = parsed else { return };
    let mut written = Vec::new();
    if parsed.write(config, &mut written).is_err() {
        return;
    }
    let again = records(&written, config.byte_order).next();
    let Some(Ok(again)) = again else { panic!("{parsed:?} is not written as a record") };
    let Ok(again) = again.parse(config) else { panic!("{parsed:?} is not written as it is read") };
    let mut written_again = Vec::new();
    assert_eq!(again.write(config, &mut written_again), Ok(()));
    assert_eq!(written, written_again);
}
