//! The same records through the crates `linux-perf-event-reader` 0.10 and `perf-event-data` 0.1.
//!
//! Where they are right, all three agree. Their known faults, each shown by a test:
//!
//! | fault | `linux-perf-event-reader` | `perf-event-data` |
//! |---|---|---|
//! | the sample id of an MMAP is read as part of the path | no: stops at the NUL | yes |
//! | the sample id of a COMM without a NUL is read as part of the name | yes | no |
//! | counters: a group's are read as if there was one, one as a group | yes | no |
//! | registers that have no ABI are read all the same | no | yes |
//! | `WEIGHT_STRUCT` is not read over, so all that follows is shifted | yes | yes |
//! | `CGROUP` is not read over | yes | no |
//! | the counts of branches are not read over | yes | yes |
//! | `AUX` is taken to be before the page sizes | yes | no |
//! | a branch stack without branches must have an index | yes | yes |
//! | a list without entries is an error at a record's end | no | yes |
//! | SWITCH is unknown | no | yes |
//! | a stale `MISC_MMAP_BUILD_ID` makes an inode a build id | yes | not looked at |

use byteorder::LittleEndian;
use collector_common::perf::{
    Attr, AttrFlags, BranchSampleType, ByteOrder, MappedFile, Misc, OwnedRecord, ParseConfig, ReadFormat,
    Record, RecordKind, Sample, SampleType,
};
use linux_perf_event_reader::{
    EventRecord, Mmap2FileId, PerfEventAttr, RawData, RawEventRecord, RecordParseInfo, RecordType,
    SampleRecord,
};
use perf_event_data::endian::Little;
use perf_event_data::parse::Parser;
use perf_event_open_sys::bindings::perf_event_attr;
use proptest::prelude::*;

use crate::layout;

fn attr(config: &ParseConfig) -> Attr {
    let mut flags = AttrFlags::default();
    if config.sample_id_all {
        flags = flags | AttrFlags::SAMPLE_ID_ALL;
    }
    Attr {
        // `PERF_TYPE_SOFTWARE`; the reader wants one that it knows.
        kind: 1,
        sample_type: config.sample_type,
        read_format: config.read_format,
        branch_sample_type: config.branch_sample_type,
        sample_regs_user: config.sample_regs_user,
        sample_regs_intr: config.sample_regs_intr,
        flags,
        ..Attr::default()
    }
}

/// `linux-perf-event-reader`'s reading.
fn reader<'a>(record: &'a OwnedRecord, config: &ParseConfig) -> Option<EventRecord<'a>> {
    let mut bytes = Vec::new();
    attr(config).write(ByteOrder::Little, &mut bytes);
    let (attr, _) = PerfEventAttr::parse::<_, LittleEndian>(bytes.as_slice()).unwrap();
    let info = RecordParseInfo::new(&attr, linux_perf_event_reader::Endianness::LittleEndian);
    let data = RawData::from(record.body.as_slice());
    RawEventRecord::new(RecordType(record.kind.0), record.misc.0, data, info).parse().ok()
}

/// `perf-event-data`'s reading.
fn data<'a>(whole: &'a [u8], config: &ParseConfig) -> Option<perf_event_data::Record<'a>> {
    let mut attr = perf_event_attr::default();
    attr.sample_type = config.sample_type.0;
    attr.read_format = config.read_format.0;
    attr.branch_sample_type = config.branch_sample_type.0;
    attr.sample_regs_user = config.sample_regs_user;
    attr.sample_regs_intr = config.sample_regs_intr;
    attr.set_sample_id_all(config.sample_id_all.into());
    Parser::new(whole, perf_event_data::parse::ParseConfig::<Little>::from(attr)).parse().ok()
}

fn whole(record: &OwnedRecord) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.as_raw().write(ByteOrder::Little, &mut bytes).unwrap();
    bytes
}

fn ours<'a>(record: &'a OwnedRecord, config: &ParseConfig) -> Sample<'a> {
    let Record::Sample(sample) = record.as_raw().parse(config).unwrap().record else { panic!() };
    sample
}

/// The parts that both have, as numbers.
fn numbers_of_ours(sample: &Sample<'_>) -> Vec<Option<u64>> {
    vec![
        sample.identifier.or(sample.id),
        sample.ip.map(|ip| ip.0),
        sample.pid.map(|pid| u64::from(pid.0)),
        sample.tid.map(|tid| u64::from(tid.0)),
        sample.time.map(|time| time.0),
        sample.addr.map(|addr| addr.0),
        sample.stream_id,
        sample.cpu.map(u64::from),
        sample.period,
        sample.phys_addr,
        sample.data_page_size,
        sample.code_page_size,
    ]
}

fn numbers_of_reader(sample: &SampleRecord<'_>) -> Vec<Option<u64>> {
    vec![
        sample.id,
        sample.ip,
        sample.pid.map(|pid| u64::from(pid as u32)),
        sample.tid.map(|tid| u64::from(tid as u32)),
        sample.timestamp,
        sample.addr,
        sample.stream_id,
        sample.cpu.map(u64::from),
        sample.period,
        sample.phys_addr,
        sample.data_page_size,
        sample.code_page_size,
    ]
}

fn numbers_of_data(sample: &perf_event_data::Sample<'_>) -> Vec<Option<u64>> {
    vec![
        sample.id(),
        sample.ip(),
        sample.pid().map(u64::from),
        sample.tid().map(u64::from),
        sample.time(),
        sample.addr(),
        sample.stream_id(),
        sample.cpu().map(u64::from),
        sample.period(),
        sample.phys_addr(),
        sample.data_page_size(),
        sample.code_page_size(),
    ]
}

/// One with the id in one place only: the peers give out one of two.
fn little(config: ParseConfig) -> ParseConfig {
    let sample_type = config.sample_type.without(SampleType::ID);
    ParseConfig { sample_type, byte_order: ByteOrder::Little, ..config }
}

proptest! {
    #[test]
    fn the_reader_agrees_where_it_is_right(config in layout::configs(), noise in layout::noise()) {
        let faulty = SampleType::READ | SampleType::WEIGHT_STRUCT | SampleType::CGROUP | SampleType::AUX;
        let config = little(config);
        let config = ParseConfig {
            sample_type: config.sample_type.without(faulty),
            branch_sample_type: BranchSampleType::default(),
            ..config
        };
        let record = layout::record(RecordKind::SAMPLE, &config, &noise);
        let ours = ours(&record, &config);
        let Some(EventRecord::Sample(theirs)) = reader(&record, &config) else { panic!() };
        prop_assert_eq!(numbers_of_ours(&ours), numbers_of_reader(&theirs));
        let chain = theirs.callchain.map(|chain| (0..chain.len()).map(|at| chain.get(at).unwrap()).collect());
        prop_assert_eq!(ours.callchain.map(|chain| chain.words.iter().collect::<Vec<_>>()), chain);
        prop_assert_eq!(ours.raw.map(|raw| raw.to_cow()), theirs.raw.map(|raw| raw.as_slice()));
        let stack = theirs.user_stack.map(|(data, size)| (data.as_slice(), size));
        prop_assert_eq!(ours.user_stack.map(|stack| (stack.data.to_cow(), stack.dyn_size)), stack);
        for bit in 0..64 {
            let user = theirs.user_regs.as_ref().and_then(|registers| registers.get(bit));
            prop_assert_eq!(ours.user_registers.and_then(|registers| registers.get(bit as u32)), user);
            let interrupted = theirs.intr_regs.as_ref().and_then(|registers| registers.get(bit));
            prop_assert_eq!(ours.interrupted_registers.and_then(|registers| registers.get(bit as u32)), interrupted);
        }
    }

    #[test]
    fn the_data_agrees_where_it_is_right(config in layout::configs(), noise in layout::noise()) {
        let config = little(config);
        let config = ParseConfig {
            // What is empty at a record's end is a fault.
            sample_type: config.sample_type.without(SampleType::WEIGHT_STRUCT | SampleType::AUX)
                | SampleType::CODE_PAGE_SIZE,
            branch_sample_type: BranchSampleType::default(),
            // Registers without an ABI are a fault.
            sample_regs_user: 0,
            sample_regs_intr: 0,
            ..config
        };
        let record = layout::record(RecordKind::SAMPLE, &config, &noise);
        let ours = ours(&record, &config);
        let whole = whole(&record);
        let Some(perf_event_data::Record::Sample(theirs)) = data(&whole, &config) else { panic!() };
        prop_assert_eq!(numbers_of_ours(&ours), numbers_of_data(&theirs));
        prop_assert_eq!(ours.callchain.map(|chain| chain.words.iter().collect::<Vec<_>>()), theirs.callchain().map(<[u64]>::to_vec));
        prop_assert_eq!(ours.raw.map(|raw| raw.to_cow().into_owned()), theirs.raw().map(<[u8]>::to_vec));
        prop_assert_eq!(ours.user_stack.map(|stack| stack.copied().to_cow().into_owned()), theirs.stack_user().map(<[u8]>::to_vec));
        prop_assert_eq!(ours.cgroup, theirs.cgroup());
        prop_assert_eq!(ours.weight.map(|weight| weight.0), theirs.weight());
        let counters = theirs.values().map(|group| group.entries().map(|entry| (entry.value(), entry.id(), entry.lost())).collect());
        let our_counters = ours.read.map(|read| read.iter().map(|value| (value.value, value.id, value.lost)).collect::<Vec<_>>());
        prop_assert_eq!(our_counters, counters);
        let branches = theirs.lbr().map(|all| all.iter().map(|branch| (branch.from(), branch.to(), branch.cycles())).collect());
        let our_branches = ours.branch_stack.map(|stack| {
            stack.iter().map(|branch| (branch.from.0, branch.to.0, branch.flags.cycles())).collect::<Vec<_>>()
        });
        prop_assert_eq!(our_branches, branches);
    }
}

/// Which of the two read a sample as we do; the sample has one part with a fault, and what follows it.
fn agree(config: &ParseConfig, body: &[u64]) -> (bool, bool) {
    let body = body.iter().flat_map(|word| word.to_le_bytes()).collect();
    let record = OwnedRecord { kind: RecordKind::SAMPLE, misc: Misc(2), body };
    let parsed = record.as_raw().parse(config).unwrap();
    assert!(parsed.rest.is_empty(), "{parsed:?}");
    let ours = numbers_of_ours(&ours(&record, config));
    let reader = match reader(&record, config) {
        Some(EventRecord::Sample(sample)) => numbers_of_reader(&sample) == ours,
        _ => false,
    };
    let whole = whole(&record);
    let data = match data(&whole, config) {
        Some(perf_event_data::Record::Sample(sample)) => numbers_of_data(&sample) == ours,
        _ => false,
    };
    (reader, data)
}

fn with(parts: SampleType) -> ParseConfig {
    let sample_type = parts | SampleType::DATA_PAGE_SIZE;
    ParseConfig { sample_type, byte_order: ByteOrder::Little, ..ParseConfig::default() }
}

#[test]
fn parts_of_samples_that_they_read_wrongly() {
    assert_eq!(agree(&with(SampleType::WEIGHT), &[1, 4096]), (true, true));
    assert_eq!(agree(&with(SampleType::WEIGHT_STRUCT), &[1, 4096]), (false, false));
    assert_eq!(agree(&with(SampleType::CGROUP), &[1, 4096]), (false, true));
    assert_eq!(agree(&with(SampleType::AUX), &[4096, 8, 2]), (false, true));
    assert_eq!(agree(&with(SampleType::READ), &[7, 4096]), (false, true));
    let group = ParseConfig { read_format: ReadFormat::GROUP, ..with(SampleType::READ) };
    assert_eq!(agree(&group, &[2, 7, 8, 4096]), (false, true));
    let none = ParseConfig { sample_regs_user: 1, ..with(SampleType::REGS_USER) };
    assert_eq!(agree(&none, &[0, 4096]), (true, false));
    let branches = |branch_sample_type| ParseConfig { branch_sample_type, ..with(SampleType::BRANCH_STACK) };
    assert_eq!(agree(&branches(BranchSampleType::HW_INDEX), &[1, 0, 7, 8, 9, 4096]), (true, true));
    assert_eq!(agree(&branches(BranchSampleType::HW_INDEX), &[0, 4096]), (false, false));
    assert_eq!(agree(&branches(BranchSampleType::COUNTERS), &[1, 7, 8, 9, 10, 4096]), (false, false));
}

#[test]
fn sample_ids_that_they_read_into_names() {
    let config = ParseConfig { sample_id_all: true, ..with(SampleType::TIME) };
    let id = 0x6161_6161_6161_6161_u64.to_le_bytes();
    let mmap = [&[0; 32][..], b"/a\0\0\0\0\0\0", &id].concat();
    let mmap = OwnedRecord { kind: RecordKind::MMAP, misc: Misc(2), body: mmap };
    let Record::Mmap(ours) = mmap.as_raw().parse(&config).unwrap().record else { panic!() };
    assert_eq!(ours.path.bytes(), b"/a".as_slice());
    let Some(EventRecord::Mmap(theirs)) = reader(&mmap, &config) else { panic!() };
    assert_eq!(theirs.path.as_slice(), b"/a".as_slice());
    let whole_mmap = whole(&mmap);
    let Some(perf_event_data::Record::Mmap(theirs)) = data(&whole_mmap, &config) else { panic!() };
    assert_eq!(&theirs.filename[..], b"/a\0\0\0\0\0\0aaaaaaaa");

    let comm = [&[0; 8][..], b"12345678", &id].concat();
    let comm = OwnedRecord { kind: RecordKind::COMM, misc: Misc(0), body: comm };
    let Record::Comm(ours) = comm.as_raw().parse(&config).unwrap().record else { panic!() };
    assert_eq!(ours.name.bytes(), b"12345678".as_slice());
    let theirs = reader(&comm, &config);
    assert!(!matches!(theirs, Some(EventRecord::Comm(comm)) if comm.name.as_slice().len() == 8));
}

#[test]
fn records_that_they_do_not_know() {
    let config = ParseConfig { sample_id_all: true, ..with(SampleType::TIME) };
    let switch = OwnedRecord { kind: RecordKind::SWITCH, misc: Misc::SWITCH_OUT, body: vec![0; 8] };
    assert!(matches!(reader(&switch, &config), Some(EventRecord::ContextSwitch(_))));
    let whole_switch = whole(&switch);
    assert!(!matches!(data(&whole_switch, &config), Some(perf_event_data::Record::Switch)));
}

#[test]
fn an_inode_that_is_read_as_a_build_id() {
    let config = with(SampleType::TIME);
    let body = [&[0; 32][..], &[8, 0, 0, 0], &[1; 20], &[5, 0, 0, 0, 2, 0, 0, 0], b"/a\0\0\0\0\0\0"].concat();
    let mmap = OwnedRecord { kind: RecordKind::MMAP2, misc: Misc::MMAP_BUILD_ID, body };
    let Record::Mmap2(ours) = mmap.as_raw().parse(&config).unwrap().record else { panic!() };
    assert!(matches!(ours.file, MappedFile::Inode { major: 8, .. }));
    let Some(EventRecord::Mmap2(theirs)) = reader(&mmap, &config) else { panic!() };
    assert!(matches!(theirs.file_id, Mmap2FileId::BuildId(_)));
}
