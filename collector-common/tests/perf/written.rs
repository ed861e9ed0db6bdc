//! Files that are written: what is read of them again.

use std::cell::Cell;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::rc::Rc;

use collector_common::ids::{Avma, BuildId, FileOffset, Nanos, Pid, Tid};
use collector_common::perf::file::{
    BuildIdOfFile, CacheLevel, ClockData, Feature, FileError, FileReader, FileWriteError, FileWriter,
    GroupDescription, NumaNode, SampleTimes,
};
use collector_common::perf::{
    Attr, AttrFlags, ByteOrder, Bytes, Comm, MappedFile, Misc, Mmap2, OwnedRecord, ParseConfig, Parsed,
    RawRecord, Record, RecordKind, Sample, SampleId, SampleType, Text,
};
use proptest::prelude::*;

use crate::layout;

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

fn open(bytes: &[u8]) -> FileReader<Cursor<&[u8]>> {
    FileReader::open(Cursor::new(bytes)).unwrap()
}

fn records(file: &mut FileReader<Cursor<&[u8]>>) -> Vec<(OwnedRecord, Vec<u8>)> {
    let mut all = Vec::new();
    while let Ok(Some(record)) = file.next_record() {
        all.push((record.raw.into(), record.payload.to_vec()));
    }
    all
}

/// A process that maps a file and is sampled in it: two events, all features that have setters.
pub(crate) fn recording(order: ByteOrder) -> Vec<u8> {
    let attr = |config| Attr {
        kind: 1,
        config,
        sample_period: 250,
        sample_type: SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::PERIOD,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::MMAP2 | AttrFlags::COMM,
        ..Attr::default()
    };
    let mut file = FileWriter::new(Cursor::new(Vec::new()), order).unwrap();
    let clock = file.add_event(&attr(0), vec![11, 12], Some("cpu-clock".into())).unwrap();
    let faults = file.add_event(&attr(2), vec![21], Some("page-faults".into())).unwrap();
    let (pid, tid) = (Pid(4711), Tid(4712));
    let at = |time, id| SampleId {
        pid: Some(pid),
        tid: Some(tid),
        time: Some(Nanos(time)),
        identifier: Some(id),
        ..SampleId::default()
    };
    let write = |file: &mut FileWriter<_>, event, misc, record, sample_id| {
        file.write(event, &Parsed { misc, record, sample_id, rest: Bytes::default() }).unwrap();
    };
    let user = Misc(2);
    let comm = Comm { pid, tid, name: Text::new(b"baker") };
    write(&mut file, clock, user, Record::Comm(comm), at(1_000_000_000, 11));
    let mmap = Mmap2 {
        pid,
        tid,
        start: Avma(0x40_0000),
        len: 0x1000,
        file_offset: FileOffset(0),
        file: MappedFile::Inode { major: 8, minor: 1, inode: 5, generation: 0 },
        protection: 5,
        flags: 2,
        path: Text::new(b"/no/such/bakery"),
    };
    write(&mut file, clock, user, Record::Mmap2(mmap), at(1_000_001_000, 11));
    for (event, id, ip, time) in
        [(clock, 12, 0x40_0123, 1_500_000_000), (faults, 21, 0x40_0456, 1_250_000_000)]
    {
        let sample = Sample {
            identifier: Some(id),
            ip: Some(Avma(ip)),
            pid: Some(pid),
            tid: Some(tid),
            time: Some(Nanos(time)),
            period: Some(250),
            ..Sample::default()
        };
        write(&mut file, event, user, Record::Sample(sample), SampleId::default());
    }
    file.finish_round().unwrap();
    describe(&mut file);
    file.finish().unwrap().into_inner()
}

const TEXTS: [(Feature, &str); 6] = [
    (Feature::HOSTNAME, "oven"),
    (Feature::OSRELEASE, "6.1.0-bread"),
    (Feature::VERSION, "6.1.1"),
    (Feature::ARCH, "x86_64"),
    (Feature::CPUDESC, "Rye 9000"),
    (Feature::CPUID, "GenuineRye,6,1,2"),
];

const BUILD_ID: [u8; 20] = *b"\x01\x23\x45\x67\x89\xab\xcd\xef0123456789ab";

fn build_id() -> BuildIdOfFile {
    BuildIdOfFile {
        misc: Misc(2 | 1 << 15),
        pid: Pid(u32::MAX),
        build_id: BuildId::new(&BUILD_ID),
        path: "/no/such/bakery".into(),
    }
}

const TIMES: SampleTimes = SampleTimes { first: Nanos(1_250_000_000), last: Nanos(1_500_000_000) };

/// A section that is not perf's, which passes it over.
const SPAN: (Nanos, Nanos) = (Nanos(1_000_000_000), Nanos(1_750_000_000));

const CLOCKS: ClockData =
    ClockData { clockid: 1, wall_clock: 1_700_000_000_000_000_000, clock: Nanos(1_000_000_000) };

fn describe(file: &mut FileWriter<Cursor<Vec<u8>>>) {
    let features = file.features();
    for (feature, text) in TEXTS {
        features.set_text(feature, text).unwrap();
    }
    features.set_cpus(8, 6);
    features.set_total_memory(1 << 20);
    features.set_command_line(&["perf", "record", "bake"]).unwrap();
    features.set_sample_times(TIMES);
    features.set_span(SPAN);
    features.set_clock_resolution(Nanos(1));
    features.set_clock_data(CLOCKS);
    features.set_build_ids(&[build_id()]).unwrap();
    features.set_pmus(&[(1, "software".into())]).unwrap();
    features.set_groups(&[GroupDescription { name: "dough".into(), leader: 0, members: 2 }]).unwrap();
    features.set_numa_nodes(&[numa_node()]).unwrap();
    features.set_caches(&[cache()]).unwrap();
    features.set_section(Feature(77), b"rising".to_vec());
}

fn numa_node() -> NumaNode {
    NumaNode { node: 0, total: 1 << 20, free: 1 << 19, cpus: "0-7".into() }
}

fn cache() -> CacheLevel {
    CacheLevel {
        level: 1,
        line_size: 64,
        sets: 64,
        ways: 8,
        kind: "Data".into(),
        size: "32K".into(),
        cpus: "0,4".into(),
    }
}

#[test]
fn a_file_is_read_again() {
    for order in ORDERS {
        let bytes = recording(order);
        let mut file = open(&bytes);
        assert_eq!(file.byte_order(), order);
        let events: Vec<_> =
            file.events().iter().map(|event| (event.name.clone().unwrap(), event.ids.clone())).collect();
        assert_eq!(events, [("cpu-clock".into(), vec![11, 12]), ("page-faults".into(), vec![21])]);
        let features = file.features();
        for (feature, text) in TEXTS {
            assert_eq!(features.text(feature).as_deref(), Some(text));
        }
        assert_eq!(features.cpus(), Some((8, 6)));
        assert_eq!(features.total_memory(), Some(1 << 20));
        assert_eq!(features.command_line().unwrap(), ["perf", "record", "bake"]);
        assert_eq!(features.sample_times(), Some(TIMES));
        assert_eq!(features.span(), Some(SPAN));
        assert_eq!(features.clock_resolution(), Some(Nanos(1)));
        assert_eq!(features.clock_data(), Some(CLOCKS));
        assert_eq!(features.build_ids().unwrap(), [build_id()]);
        assert_eq!(features.pmus().unwrap(), [(1, "software".into())]);
        assert_eq!(features.groups().unwrap()[0].members, 2);
        assert_eq!(features.numa_nodes().unwrap(), [numa_node()]);
        assert_eq!(features.caches().unwrap(), [cache()]);
        assert_eq!(features.section(Feature(77)), Some(&b"rising"[..]));
        let mut seen = Vec::new();
        while let Some(record) = file.next_record().unwrap() {
            seen.push((record.raw.kind, record.event, record.config.time(&record.raw)));
        }
        let at = |time| Some(Nanos(time));
        assert_eq!(
            seen,
            [
                (RecordKind::COMM, Some(0), at(1_000_000_000)),
                (RecordKind::MMAP2, Some(0), at(1_000_001_000)),
                (RecordKind::SAMPLE, Some(0), at(1_500_000_000)),
                (RecordKind::SAMPLE, Some(1), at(1_250_000_000)),
                (RecordKind::FINISHED_ROUND, None, None),
            ]
        );
    }
}

/// Behind the place where its records would be are ids, which are no record, whatever they are.
#[test]
fn a_file_of_events_alone_has_no_records() {
    let mut file = FileWriter::new(Cursor::new(Vec::new()), ByteOrder::Little).unwrap();
    file.add_event(&Attr::default(), vec![8 << 48], None).unwrap();
    let bytes = file.finish().unwrap().into_inner();
    let mut file = open(&bytes);
    assert!(records(&mut file).is_empty() && !file.is_unfinished());
    assert_eq!(file.events()[0].ids, [8 << 48]);
}

#[test]
fn what_was_not_finished_is_no_file() {
    let mut out = Cursor::new(Vec::new());
    let mut file = FileWriter::new(&mut out, ByteOrder::NATIVE).unwrap();
    file.finish_round().unwrap();
    assert!(matches!(file.write(0, &parsed_switch()), Err(FileWriteError::NoEvent(0))));
    drop(file);
    assert!(matches!(
        FileReader::open(Cursor::new(out.into_inner())),
        Err(FileError::Magic([0, 0, 0, 0, 0, 0, 0, 0]))
    ));
}

fn parsed_switch() -> Parsed<'static> {
    let raw = RawRecord { kind: RecordKind::SWITCH, misc: Misc(0), body: Bytes::default() };
    raw.parse(&ParseConfig::default()).unwrap()
}

#[test]
fn mistakes_are_errors() {
    let mut file = FileWriter::new(Cursor::new(Vec::new()), ByteOrder::NATIVE).unwrap();
    let bad = Attr { size: 63, ..Attr::default() };
    assert!(matches!(file.add_event(&bad, Vec::new(), None), Err(FileWriteError::Attr(_))));
    let size = 9_u64.to_ne_bytes();
    let aux = RawRecord { kind: RecordKind::AUXTRACE, misc: Misc(0), body: Bytes::from(&size) };
    let written = file.write_raw(&aux, b"12345678");
    assert!(matches!(written, Err(FileWriteError::Payload { size: 9, len: 8, .. })));
    file.features().set_section(Feature(256), Vec::new());
    assert!(matches!(file.finish(), Err(FileWriteError::Feature(Feature(256)))));
}

/// A disk that is full for a while.
struct Full {
    inner: Cursor<Vec<u8>>,
    room: Rc<Cell<usize>>,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.room.get());
        if len == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room.set(self.room.get() - len);
        self.inner.write(&bytes[..len])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Full {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

#[test]
fn a_record_that_failed_leaves_nothing() {
    let room = Rc::new(Cell::new(usize::MAX));
    let out = Full { inner: Cursor::new(Vec::new()), room: Rc::clone(&room) };
    let mut file = FileWriter::new(out, ByteOrder::NATIVE).unwrap();
    let size = 8_u64.to_ne_bytes();
    let aux = RawRecord { kind: RecordKind::AUXTRACE, misc: Misc(0), body: Bytes::from(&size) };
    file.write_raw(&aux, b"before  ").unwrap();
    for left in 0..24 {
        room.set(left);
        assert!(matches!(file.write_raw(&aux, b"too much"), Err(FileWriteError::Io(_))), "{left}");
    }
    room.set(usize::MAX);
    file.write_raw(&aux, b"after   ").unwrap();
    let bytes = file.finish().unwrap().inner.into_inner();
    let mut read = open(&bytes);
    // A count, and for each the place in the file and the size of the record without the data behind it.
    let index: Vec<u8> = [2_u64, 104, 16, 128, 16].into_iter().flat_map(u64::to_ne_bytes).collect();
    assert_eq!(read.features().section(Feature::AUXTRACE), Some(index.as_slice()));
    let places: Vec<_> =
        read.features().aux_index().unwrap().iter().map(|entry| (entry.offset.0, entry.size)).collect();
    assert_eq!(places, [(104, 16), (128, 16)]);
    let payloads: Vec<_> = records(&mut read).into_iter().map(|(_, payload)| payload).collect();
    assert_eq!(payloads, [b"before  ", b"after   "]);
}

proptest! {
    #[test]
    fn any_file_is_read_as_it_was_written(
        config in layout::configs(),
        noise in layout::noise(),
        kinds in proptest::collection::vec(prop_oneof![layout::KINDS, 20..64_u32], 0..20),
        ids in proptest::collection::vec(proptest::collection::vec(any::<u64>(), 0..5), 1..4),
        config3 in prop_oneof![Just(0), any::<u64>()],
        features in proptest::collection::btree_map(32..256_u32, any::<Vec<u8>>(), 0..5),
    ) {
        let order = config.byte_order;
        let flag = |is_set, flag| if is_set { flag } else { AttrFlags::default() };
        let attr = Attr {
            sample_type: config.sample_type,
            read_format: config.read_format,
            branch_sample_type: config.branch_sample_type,
            sample_regs_user: config.sample_regs_user,
            sample_regs_intr: config.sample_regs_intr,
            flags: flag(config.sample_id_all, AttrFlags::SAMPLE_ID_ALL) | flag(config.build_id, AttrFlags::BUILD_ID),
            config3,
            ..Attr::default()
        };
        let mut file = FileWriter::new(Cursor::new(Vec::new()), order).unwrap();
        for ids in &ids {
            file.add_event(&attr, ids.clone(), None).unwrap();
        }
        let mut written = Vec::new();
        for kind in kinds {
            let record = layout::record(RecordKind(kind), &config, &noise);
            file.write(0, &record.as_raw().parse(&config).unwrap()).unwrap();
            written.push((record, Vec::new()));
        }
        for (feature, bytes) in &features {
            file.features().set_section(Feature(*feature), bytes.clone());
        }
        let bytes = file.finish().unwrap().into_inner();
        let mut file = open(&bytes);
        prop_assert_eq!(file.events().len(), ids.len());
        for (event, ids) in file.events().iter().zip(&ids) {
            prop_assert_eq!(&event.ids, ids);
            prop_assert_eq!(event.config, config);
            prop_assert_eq!(&event.attr, &Attr { size: event.attr.size, ..attr.clone() });
        }
        for (feature, bytes) in &features {
            prop_assert_eq!(file.features().section(Feature(*feature)), Some(bytes.as_slice()));
        }
        prop_assert_eq!(records(&mut file), written);
    }
}
