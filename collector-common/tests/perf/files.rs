//! Files of `perf record` that others wrote.

use std::io::Cursor;
use std::path::Path;

use collector_common::ids::Nanos;
use collector_common::perf::file::{BpfTypes, Feature, FileError, FileReader, FileWriter};
use collector_common::perf::{
    Attr, AttrFlags, ByteOrder, Bytes, LostSamples, Misc, OwnedRecord, Parsed, Record, RecordKind, Sample,
    SampleId, SampleType,
};

use crate::user::Part::{self, Text, U32, U64};
use crate::user::{ORDERS, made};
use crate::written::recording;

/// A recording that lies beside the checkout, if it is there.
pub(crate) fn shared(name: &str) -> Option<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/perf").join(name);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        eprintln!("NOT BESIDE THE CHECKOUT: {}", path.display());
    }
    bytes
}

fn open(bytes: &[u8]) -> FileReader<Cursor<&[u8]>> {
    FileReader::open(Cursor::new(bytes)).unwrap()
}

/// All records, in the order of the file, and the error at its end.
fn all(mut file: FileReader<Cursor<&[u8]>>) -> (Vec<OwnedRecord>, Option<FileError>) {
    let mut records = Vec::new();
    loop {
        match file.next_record() {
            Ok(Some(record)) => {
                record.parse().unwrap();
                records.push(record.raw.into());
            }
            Ok(None) => return (records, None),
            Err(error) => {
                assert!(matches!(file.next_record(), Ok(None)), "after an error a file is at its end");
                return (records, Some(error));
            }
        }
    }
}

fn count(records: &[OwnedRecord], kind: RecordKind) -> usize {
    records.iter().filter(|record| record.kind == kind).count()
}

/// Recordings of `sleep`, two of them packed.
#[test]
fn packed_and_plain_files_and_streams() {
    for name in ["sleep.data", "sleep.compressed.data", "sleep.compressed2.pipe.data"] {
        let Some(bytes) = shared(name) else { continue };
        let (records, error) = all(open(&bytes));
        let of_kind = |kind| count(&records, kind);
        assert!(of_kind(RecordKind::SAMPLE) > 5, "{name}");
        assert_eq!(of_kind(RecordKind::EXIT), 1, "{name}");
        assert_eq!(of_kind(RecordKind::COMPRESSED) + of_kind(RecordKind::COMPRESSED2), 0, "{name}");
        // It was not packed, and comes behind what was, which the decoder keeps back.
        assert_eq!(records.last().unwrap().kind, RecordKind::FINISHED_ROUND, "{name}");
        // What `perf record` said to its user is at the end of one of them.
        let has_text_behind = name.contains("pipe");
        assert_eq!(matches!(error, Some(FileError::CutOff { .. })), has_text_behind, "{name}: {error:?}");
    }
}

/// A file can't be read as a stream, but a stream can be.
#[test]
fn streams_are_told_from_files() {
    let kept = include_bytes!("data/packed.data").as_slice();
    assert!(matches!(FileReader::stream(kept), Err(FileError::NotAStream(104))));
    assert!(matches!(FileReader::stream(&b"PERFFILE0123456789"[..]), Err(FileError::FirstVersion)));
    assert!(matches!(FileReader::stream(&b"ELF0123456789012345"[..]), Err(FileError::Magic(_))));
    let Some(bytes) = shared("sleep.compressed2.pipe.data") else { return };
    let mut stream = FileReader::stream(bytes.as_slice()).unwrap();
    let mut count_of_stream = 0;
    while let Ok(Some(_)) = stream.next_record() {
        count_of_stream += 1;
    }
    assert_eq!(count_of_stream, all(open(&bytes)).0.len());
    assert_eq!(stream.events()[0].ids.len(), 16);
}

/// A recording that ends anywhere, as one does that was killed: no panic, an error, and then the end.
#[test]
fn files_that_are_cut_off() {
    let kept = include_bytes!("data/packed.data").as_slice();
    let (whole, error) = all(open(kept));
    assert!(error.is_none(), "{error:?}");
    for len in (0..kept.len()).step_by(41) {
        let Ok(file) = FileReader::open(Cursor::new(&kept[..len])) else { continue };
        let (records, _) = all(file);
        assert!(records.len() <= whole.len() && records[..] == whole[..records.len()], "{len}");
    }
    let data_end = 0x200;
    for (at, byte) in (data_end..kept.len()).zip((1..=255_u8).cycle()).step_by(7) {
        let mut spoilt = kept.to_vec();
        spoilt[at] ^= byte;
        let Ok(mut file) = FileReader::open(Cursor::new(spoilt.as_slice())) else { continue };
        while let Ok(Some(record)) = file.next_record() {
            let _ = record.parse();
        }
        let _ = format!("{:?} {:?}", file.features().events(), file.features().cpu_topology());
    }
}

/// Features are behind the records: their list first, and then each.
#[test]
fn records_are_read_where_features_are_cut_off() {
    let kept = include_bytes!("data/packed.data").as_slice();
    let [from, size] = [40, 48].map(|at| u64::from_le_bytes(kept[at..at + 8].try_into().unwrap()) as usize);
    let all_features = open(kept).features().sections().count();
    assert!(open(kept).missing_features().is_none());
    let (whole, _) = all(open(kept));
    let mut last = 0;
    for len in (from + size..kept.len()).step_by(97).chain([kept.len() - 1]) {
        let file = open(&kept[..len]);
        let missing = file.missing_features().unwrap().clone();
        let there = file.features().sections().count();
        assert_eq!(there + missing.features.len(), all_features, "{len}");
        assert!(there >= last && !file.is_unfinished(), "{len}");
        last = there;
        let (records, error) = all(file);
        assert!(error.is_none() && records == whole, "{len}: {error:?}");
    }
    assert_eq!(last, all_features - 1);
    let told = |len: usize| open(&kept[..len]).missing_features().unwrap().to_string();
    let list = from + size;
    assert_eq!(
        told(list),
        format!(
            "what these features tell of the recording is missing: HOSTNAME, OSRELEASE, VERSION, ARCH, NRCPUS, CPUDESC, CPUID, \
             TOTAL_MEM and {} more; the perf.data is cut off in its list of features at byte {list}: 0 bytes of {}",
            all_features - 8,
            all_features * 16
        )
    );
    let last = told(kept.len() - 1);
    assert!(
        last.contains(" missing: PMU_CAPS; the perf.data is cut off in its feature PMU_CAPS at byte "),
        "{last}"
    );
}

/// Errors name the byte that is to be looked at.
#[test]
fn errors_tell_where() {
    let kept = include_bytes!("data/packed.data").as_slice();
    let from = u64::from_le_bytes(kept[40..48].try_into().unwrap()) as usize;
    // The second record's size becomes 0.
    let second = from + usize::from(u16::from_le_bytes([kept[from + 6], kept[from + 7]]));
    let mut spoilt = kept.to_vec();
    spoilt[second + 6..second + 8].fill(0);
    let (_, error) = all(open(&spoilt));
    let error = error.unwrap().to_string();
    assert!(
        error.contains(&format!(" at byte {second} of the perf.data says that it has 0 bytes")),
        "{error}"
    );
    let (_, error) = all(open(&kept[..second + 3]));
    let error = error.unwrap().to_string();
    assert!(error.contains(&format!("in its records at byte {second}: 3 bytes of ")), "{error}");
    // What is packed is no zstd any more.
    let packed = kept.windows(4).position(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    let mut spoilt = kept.to_vec();
    spoilt[packed] ^= 0xff;
    let (_, error) = all(open(&spoilt));
    let error = error.unwrap().to_string();
    assert!(error.contains(&format!(" as far as byte {} of the perf.data: ", packed - 8)), "{error}");
}

/// `perf record` writes what its header says of the records, and what is behind them, when it ends.
#[test]
fn a_recording_that_was_killed_is_read_to_its_end() {
    let kept = include_bytes!("data/packed.data").as_slice();
    let [from, size] = [40, 48].map(|at| u64::from_le_bytes(kept[at..at + 8].try_into().unwrap()) as usize);
    let mut killed = kept[..from + size].to_vec();
    killed[48..56].fill(0);
    let (whole, _) = all(open(kept));
    let file = open(&killed);
    assert!(file.is_unfinished() && !open(kept).is_unfinished());
    assert_eq!(file.features().sections().count(), 0);
    let (records, error) = all(file);
    assert!(error.is_none() && records == whole, "{error:?}, {} of {}", records.len(), whole.len());
    // A piece of the last record.
    let cut = &killed[..killed.len() - 3];
    let (records, error) = all(open(cut));
    assert!(matches!(error, Some(FileError::CutOff { .. })), "{error:?}");
    assert!(!records.is_empty() && records[..] == whole[..records.len()]);
    // Nothing was written but the header, or the recording has no records.
    let file = open(&killed[..from]);
    assert!(!file.is_unfinished());
    assert!(all(file).0.is_empty());
    for order in ORDERS {
        let mut whole = recording(order);
        let (records, _) = all(open(&whole));
        whole[48..56].fill(0);
        let file = open(&whole);
        assert!(file.is_unfinished(), "{order:?}");
        // What is behind them are no records.
        assert_eq!(all(file).0[..records.len()], records, "{order:?}");
        let mut empty = FileWriter::new(Cursor::new(Vec::new()), order).unwrap();
        empty.features().set_text(Feature::HOSTNAME, "oven").unwrap();
        let empty = empty.finish().unwrap().into_inner();
        let file = open(&empty);
        assert!(!file.is_unfinished(), "{order:?}");
        assert_eq!(file.features().text(Feature::HOSTNAME).as_deref(), Some("oven"), "{order:?}");
    }
}

/// As in perf, which drops samples of ids that it does not know; what it writes itself has none.
#[test]
fn samples_of_unknown_ids_are_of_no_event() {
    for order in ORDERS {
        let sample_type = SampleType::IDENTIFIER | SampleType::TIME;
        let attr = Attr { kind: 1, sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() };
        let mut file = FileWriter::new(Cursor::new(Vec::new()), order).unwrap();
        for (event, id) in [11, 21].into_iter().enumerate() {
            assert_eq!(file.add_event(&attr, vec![id], None).unwrap(), event);
        }
        let mut expected = Vec::new();
        for (id, of_sample) in [(11, Some(0)), (21, Some(1)), (31, None), (0, Some(0))] {
            let time = Some(Nanos(1000 + id));
            let parsed =
                |record, sample_id| Parsed { misc: Misc(2), record, sample_id, rest: Bytes::default() };
            let sample = Sample { identifier: Some(id), time, ..Sample::default() };
            file.write(0, &parsed(Record::Sample(sample), SampleId::default())).unwrap();
            let sample_id = SampleId { identifier: Some(id), time, ..SampleId::default() };
            file.write(0, &parsed(Record::LostSamples(LostSamples { count: 1 }), sample_id)).unwrap();
            // Those of the kernel that are no samples have the parts that they all have, whatever the event.
            expected
                .extend([(RecordKind::SAMPLE, of_sample), (RecordKind::LOST_SAMPLES, of_sample.or(Some(0)))]);
        }
        let bytes = file.finish().unwrap().into_inner();
        let mut file = open(&bytes);
        let mut events = Vec::new();
        while let Some(record) = file.next_record().unwrap() {
            events.push((record.raw.kind, record.event));
        }
        assert_eq!(events, expected, "{order:?}");
    }
}

/// What `perf report --header-only` of Linux 6.1 prints of this recording.
#[test]
fn features_of_a_recording() {
    let Some(bytes) = shared("sleep.compressed2.pipe.data") else { return };
    let mut file = open(&bytes);
    while let Ok(Some(_)) = file.next_record() {}
    let features = file.features();
    let texts = [
        (Feature::HOSTNAME, "arthur-des"),
        (Feature::OSRELEASE, "5.15.193-1-MANJARO"),
        (Feature::VERSION, "6.16-1"),
        (Feature::ARCH, "x86_64"),
        (Feature::CPUDESC, "Intel(R) Core(TM) i7-10700K CPU @ 3.80GHz"),
        (Feature::CPUID, "GenuineIntel,6,165,5"),
    ];
    for (feature, text) in texts {
        assert_eq!(features.text(feature).as_deref(), Some(text));
    }
    assert_eq!(features.cpus(), Some((16, 16)));
    assert_eq!(features.total_memory(), Some(32_768_096));
    let command_line = features.command_line().unwrap().join(" ");
    assert_eq!(command_line, "/usr/bin/perf record -z -o - sleep 1");
    let event = &features.events().unwrap()[0];
    assert_eq!((event.name.as_str(), event.attr.size, event.attr.sample_period), ("cycles:P", 136, 4000));
    assert_eq!(event.ids, (3049..=3064).collect::<Vec<_>>());
    assert_eq!(file.events()[0].name.as_deref(), Some("cycles:P"));
    assert_eq!(file.events()[0].ids, event.ids);
    let pmus = features.pmus().unwrap();
    for (number, name) in [(4, "cpu"), (8, "intel_bts"), (4_294_967_294, "tool"), (11, "uncore_imc")] {
        assert!(pmus.contains(&(number, name.to_owned())), "{pmus:?}");
    }
    let compression = features.compression().unwrap();
    assert_eq!((compression.kind, compression.level), (1, 1));
    let caps = features.pmu_caps();
    let cpu = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        caps[0].capabilities,
        [cpu("branches", "32"), cpu("max_precise", "3"), cpu("pmu_name", "skylake")]
    );
    assert!(
        caps.iter()
            .any(|caps| caps.name == "intel_pt" && caps.capabilities.contains(&cpu("psb_periods", "3f")))
    );
    assert_eq!(features.numa_nodes().unwrap()[0].cpus, "0-15");
    let topology = features.cpu_topology().unwrap();
    assert_eq!(topology.core_and_socket.len(), 16);
    assert!(features.memory_topology().is_some());
}

/// A program of two instructions and types for it were loaded by hand; what is said of both is from there and from the
/// print of `perf report --header-only -I`: `bpf_prog_info 41432: bpf_prog_59f4a931744dcdc6_bake addr 0xffffffffc00010c8`, `btf info of id 27341`.
#[test]
fn programs_that_were_loaded() {
    let file = open(include_bytes!("data/bpf.data"));
    let programs = file.features().bpf_programs().unwrap();
    let [program] = programs.as_slice() else { panic!("{programs:?}") };
    // `BPF_PROG_TYPE_SOCKET_FILTER`
    assert_eq!((program.kind, program.id, program.name.as_str()), (1, 41432, "baker"));
    assert_eq!(program.tag, [0x59, 0xf4, 0xa9, 0x31, 0x74, 0x4d, 0xcd, 0xc6]);
    let address = 0xffff_ffff_c000_10c8_u64.to_le_bytes();
    assert!(
        program.arrays & PERF_BPIL_JITED_KSYMS != 0 && program.data.windows(8).any(|word| word == address)
    );
    let types = file.features().bpf_types().unwrap();
    let [BpfTypes { id: 27341, btf }] = types.as_slice() else { panic!("{types:?}") };
    assert_eq!(btf[..2], 0xeb9f_u16.to_le_bytes());
    assert!(btf.ends_with(b"\0int\0bake\0"), "{btf:?}");
    assert!(!file.features().is_stat() && !file.features().has_branch_stacks());
    assert_eq!((file.features().aux_index(), file.features().folder_version()), (None, None));
}

/// `enum perf_bpil_array_types`: addresses of the functions.
const PERF_BPIL_JITED_KSYMS: u64 = 1 << 3;

/// By the functions `write_*` of `tools/perf/util/header.c`, `struct perf_bpil`, and `auxtrace_index__write`.
#[test]
fn features_that_perf_does_not_write_here() {
    let program = [&[U32(80), U32(4), U64(5), U32(6), U32(7), Text("tag", 8)], &[U64(0); 6][..]].concat();
    let program = [&program[..], &[Text("baker", 16), Text("data", 4)]].concat();
    // As Linux 4.14 had it: without a name.
    let old = [U32(64), U32(0), U64(0), U32(6), U32(8), Text("old", 8)];
    let programs = [&[U32(2)][..], &program, &old, &[U64(0); 6]].concat();
    let types = [U32(2), U32(9), U32(3), Text("btf", 3), U32(10), U32(0)];
    let index = [U64(2), U64(104), U64(48), U64(500), U64(48)];
    for order in ORDERS {
        let section = |parts: &[Part<'_>]| made(RecordKind(0), order, parts).body;
        let mut file = FileWriter::new(Cursor::new(Vec::new()), order).unwrap();
        let features = file.features();
        features.set_section(Feature::BPF_PROG_INFO, section(&programs));
        features.set_section(Feature::BPF_BTF, section(&types));
        features.set_section(Feature::AUXTRACE, section(&index));
        features.set_section(Feature::DIR_FORMAT, section(&[U64(1)]));
        features.set_section(Feature::STAT, Vec::new());
        features.set_branch_stack();
        let bytes = file.finish().unwrap().into_inner();
        let file = open(&bytes);
        let features = file.features();
        let programs = features.bpf_programs().unwrap();
        let short: Vec<_> = programs
            .iter()
            .map(|program| (program.kind, program.id, program.name.as_str(), program.arrays))
            .collect();
        assert_eq!(short, [(6, 7, "baker", 5), (6, 8, "", 0)]);
        assert_eq!((&programs[0].tag, programs[0].data.as_slice()), (b"tag\0\0\0\0\0", &b"data"[..]));
        let types: Vec<_> =
            features.bpf_types().unwrap().into_iter().map(|types| (types.id, types.btf)).collect();
        assert_eq!(types, [(9, b"btf".to_vec()), (10, Vec::new())]);
        let index: Vec<_> =
            features.aux_index().unwrap().iter().map(|entry| (entry.offset.0, entry.size)).collect();
        assert_eq!(index, [(104, 48), (500, 48)]);
        assert_eq!(features.folder_version(), Some(1));
        assert!(features.is_stat() && features.has_branch_stacks());
    }
    // A count or a length that is made up is no list.
    let mut file = FileWriter::new(Cursor::new(Vec::new()), ByteOrder::Little).unwrap();
    for feature in [Feature::BPF_PROG_INFO, Feature::BPF_BTF, Feature::AUXTRACE] {
        file.features().set_section(feature, vec![0xff; 64]);
    }
    let bytes = file.finish().unwrap().into_inner();
    let file = open(&bytes);
    assert_eq!((file.features().bpf_programs(), file.features().bpf_types()), (None, None));
    assert_eq!(file.features().aux_index(), None);
}

/// The header says how large the list of events is, at byte 32, and an entry of it, at byte 16.
#[test]
fn lists_of_events_that_are_not_whole() {
    let kept = include_bytes!("data/packed.data");
    for (at, wrong) in [(32, 1_u64), (16, 1 << 40), (16, u64::MAX)] {
        let mut spoilt = kept.to_vec();
        spoilt[at..at + 8].copy_from_slice(&wrong.to_le_bytes());
        let error = FileReader::open(Cursor::new(spoilt.as_slice())).err();
        assert!(matches!(error, Some(FileError::Entries { .. })), "{wrong} at {at}: {error:?}");
    }
}
