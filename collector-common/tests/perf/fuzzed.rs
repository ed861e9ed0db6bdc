//! The bodies of the fuzz targets, over noise and over a recording that is spoilt.

use proptest::prelude::*;

use crate::fuzzing::{perf_file, perf_records};
use crate::layout;

proptest! {
    #[test]
    fn noise(data in proptest::collection::vec(any::<u8>(), 0..3000)) {
        perf_records::run(&data);
        perf_file::run(&data);
    }

    #[test]
    fn spoilt_records(
        head: [u8; 24],
        kinds in proptest::collection::vec(layout::KINDS, 1..4),
        config in layout::configs(),
        noise in layout::noise(),
        spoilt in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        let mut data = head.to_vec();
        data[..4].copy_from_slice(&(config.sample_type.0 as u32).to_le_bytes());
        for kind in kinds {
            let record = layout::record(collector_common::perf::RecordKind(kind), &config, &noise);
            record.as_raw().write(config.byte_order, &mut data).unwrap();
        }
        let at = spoilt.index(data.len());
        data[at] = byte;
        perf_records::run(&data);
    }

    #[test]
    fn spoilt_files(places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut data = include_bytes!("data/packed.data").to_vec();
        for (at, byte) in places {
            let at = at.index(data.len());
            data[at] = byte;
        }
        perf_file::run(&data);
    }
}
