//! The input is a `perf.data`, as a file and as a stream: its records, in either order, and what it says of the machine.

use std::io::{Cursor, Read};

use collector_common::perf::file::{Feature, Features, FileReader, FileRecord, Ordered, UserRecord};
use collector_common::perf::{RecordKind, records};

use super::within_memory;

/// Bytes that reading any file may hold.
const FIXED_MEMORY: u64 = 1 << 20;

/// Bytes that may be held for each of the file's: it, and its parts decoded.
const PER_BYTE: u64 = 64;

/// Bytes that unpacking may hold: two of the largest windows.
const UNPACKING: u64 = 300 << 20;

/// Records that are read of a file; packed ones can be many more than the file has bytes.
const MOST_RECORDS: usize = 1 << 14;

/// Reads the input in all ways.
pub(crate) fn run(input: &[u8]) {
    // What a frame of zstd begins with.
    let may_be_packed = input.windows(4).any(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]);
    let most = FIXED_MEMORY + input.len() as u64 * PER_BYTE + if may_be_packed { UNPACKING } else { 0 };
    let of_file =
        within_memory(most, || FileReader::open(Cursor::new(input)).ok().map(|file| use_file(file).0));
    let of_stream = within_memory(most, || FileReader::stream(input).ok().map(use_file));
    if let Some((records, is_stream)) = of_stream {
        assert!(is_stream);
        assert_eq!(of_file, Some(records), "a file with a stream in it is that stream");
    }
    // To give records out in order, all unpacked ones may have to be held.
    if !may_be_packed && let Ok(file) = FileReader::open(Cursor::new(input)) {
        let ordered = within_memory(most, || count(Ordered::new(file)));
        let in_file_order = of_file.expect("it was opened before");
        assert_eq!(ordered, in_file_order, "each record comes in either order");
    }
}

/// How many records a file has, up to a bound; and whether it was a stream.
fn use_file<R: Read>(mut file: FileReader<R>) -> (usize, bool) {
    let is_stream = file.events().is_empty();
    use_features(file.features());
    let mut count = 0;
    while count < MOST_RECORDS {
        match file.next_record() {
            Ok(Some(record)) => {
                use_record(&record);
                let event = record.event;
                assert!(event.is_none_or(|event| event < file.events().len()));
                count += 1;
            }
            Ok(None) => break,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert!(matches!(file.next_record(), Ok(None)), "after an error a file is at its end");
                break;
            }
        }
    }
    use_features(file.features());
    use_branch_counters(&file);
    (count, is_stream)
}

fn count<R: Read>(mut file: Ordered<R>) -> usize {
    let mut count = 0;
    let mut has_failed = false;
    while count < MOST_RECORDS {
        match file.next_record() {
            Ok(Some(record)) => {
                use_record(&record);
                count += 1;
            }
            Ok(None) => break,
            Err(_) => {
                assert!(!has_failed, "a file fails once");
                has_failed = true;
            }
        }
    }
    count
}

fn use_record(record: &FileRecord<'_>) {
    assert!(![RecordKind::COMPRESSED, RecordKind::COMPRESSED2].contains(&record.raw.kind));
    if let Ok(parsed) = record.parse() {
        assert_eq!(parsed.record.kind(), record.raw.kind);
    }
    use_user_record(record);
}

/// Goes over what is in a record of `perf` itself, and writes it twice.
fn use_user_record(record: &FileRecord<'_>) {
    let (parsed, order) = (record.parse_user(), record.config.byte_order);
    assert_eq!(parsed.record.kind(), record.raw.kind);
    let size = record.raw.size();
    match parsed.record {
        UserRecord::HeaderAttr(event) => assert!(event.ids.iter().count() * 8 < size),
        UserRecord::IdIndex(index) => assert!(index.iter().count() * 32 < size),
        UserRecord::ThreadMap(threads) => assert!(threads.iter().count() * 24 < size),
        UserRecord::StatConfig(config) => assert!(config.iter().count() * 16 < size),
        UserRecord::BpfMetadata(metadata) => assert!(metadata.iter().count() * 320 < size),
        UserRecord::CpuMap(cpus) => assert!(cpus.iter().count() <= 1 << 22),
        UserRecord::Other(raw) => assert_eq!(raw, record.raw),
        _ => {}
    }
    let mut written = Vec::new();
    parsed.write(order, &mut written).expect("it is as long as it was");
    assert_eq!(written.len(), size);
    let again = records(&written, order).next().expect("it was written").expect("it is whole");
    let mut twice = Vec::new();
    again.parse_user(order).write(order, &mut twice).expect("it is as long as it was");
    assert_eq!(written, twice);
}

/// Counts of branches have an event each, whatever the file says of groups and PMUs.
fn use_branch_counters<R: Read>(file: &FileReader<R>) {
    for event in 0..file.events().len().min(4) {
        let Some(counters) = file.branch_counters(event) else { continue };
        assert!(counters.events().iter().all(|event| *event < file.events().len()));
        assert_eq!(counters.counts(u64::MAX).count(), counters.events().len());
    }
}

/// Decodes each feature.
fn use_features(features: &Features) {
    for feature in [
        Feature::HOSTNAME,
        Feature::OSRELEASE,
        Feature::VERSION,
        Feature::ARCH,
        Feature::CPUDESC,
        Feature::CPUID,
    ] {
        let _ = features.text(feature);
    }
    let _ = (features.cpus(), features.total_memory(), features.command_line(), features.events());
    let _ = (features.build_ids(), features.pmus(), features.groups(), features.cpu_topology());
    let _ = (features.numa_nodes(), features.caches(), features.memory_topology());
    let _ = (features.sample_times(), features.clock_resolution(), features.clock_data());
    let _ = (features.compression(), features.pmu_caps(), features.hybrid_topology());
    let _ = (features.bpf_programs(), features.bpf_types(), features.aux_index(), features.folder_version());
    for (feature, section) in features.sections() {
        assert_eq!(features.section(feature), Some(section), "each feature is there once");
    }
}
