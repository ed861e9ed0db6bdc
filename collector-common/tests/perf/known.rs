//! Records with values that are known, told apart part by part.

use collector_common::ids::{Avma, BuildId, FileOffset, Nanos, Pid, Tid};
use collector_common::perf::{
    BranchFlags, BranchSampleType, BranchStack, ByteOrder, Bytes, Callchain, ChainContext, ChainEntry, Comm,
    Context, Counters, DataSource, GroupValues, Ksymbol, KsymbolFlags, Lost, MappedFile, Misc, Mmap2,
    OwnedRecord, ParseConfig, ParseError, Parsed, ReadFormat, ReadValue, ReadValues, Record, RecordKind,
    RecordsError, Registers, RegistersAbi, Sample, SampleId, SampleType, Switch, Text, Transaction,
    UserStack, Visitor, Weight, Words, WriteError, records,
};

const EVERYTHING: SampleType = SampleType(0x1ff_ffff & !(1 << 14));

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn config(sample_type: SampleType) -> ParseConfig {
    ParseConfig { sample_type, byte_order: ByteOrder::Little, ..ParseConfig::default() }
}

fn record(kind: RecordKind, misc: Misc, body: Vec<u8>) -> OwnedRecord {
    OwnedRecord { kind, misc, body }
}

/// The order is that of `perf_output_sample`; the numbers say which part they are.
#[test]
#[expect(clippy::too_many_lines, reason = "a sample with every part")]
fn every_part_of_a_sample_has_its_own_value() {
    let config = ParseConfig {
        read_format: ReadFormat::GROUP | ReadFormat::ID | ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::LOST,
        branch_sample_type: BranchSampleType::HW_INDEX | BranchSampleType::COUNTERS,
        sample_regs_user: 1 << 3 | 1 << 63,
        sample_regs_intr: 1,
        ..config(EVERYTHING)
    };
    let body = words(&[
        0x10,           // identifier
        0x11,           // ip
        0x13_0000_0012, // tid, pid
        0x14,           // time
        0x15,           // addr
        0x16,           // id
        0x17,           // stream id
        0x18,           // cpu
        0x19,           // period
        2,
        0x20,
        0x21,
        0x22,
        0x23,
        0x24,
        0x25,
        0x26, // read: count, enabled, (value, id, lost) twice
        2,
        0x30,
        0x31,                  // callchain
        0x7776_7574_0000_0004, // raw
        1,
        0x40,
        0x41,
        0x42,
        0b10,
        0x43, // branches: count, index, from, to, flags, counter
        2,
        0x50,
        0x51, // user registers
        16,
        0x60,
        0x61,
        8,                     // user stack
        0x0073_0072_0000_0071, // weight
        0x80,                  // data source
        0x81,                  // transaction
        1,
        0x90, // interrupted registers
        0xa0, // physical address
        0xa1, // cgroup
        0xa2, // data page size
        0xa3, // code page size
        8,
        0xb0, // aux
    ]);
    let record = record(RecordKind::SAMPLE, Misc(2), body);
    let parsed = record.as_raw().parse(&config).unwrap();
    let Record::Sample(sample) = parsed.record else { panic!("{parsed:?}") };
    let counter = |value, id, lost| ReadValue { value, id: Some(id), lost: Some(lost) };
    let values = sample.read.unwrap();
    assert_eq!(values.time_enabled, Some(0x20));
    assert_eq!(values.time_running, None);
    let counters: Vec<_> = values.iter().collect();
    assert_eq!(counters, [counter(0x21, 0x22, 0x23), counter(0x24, 0x25, 0x26)]);
    let branches = sample.branch_stack.unwrap();
    assert_eq!(branches.hw_index, Some(0x40));
    let branch = branches.iter().next().unwrap();
    assert_eq!((branch.from, branch.to, branch.counters), (Avma(0x41), Avma(0x42), Some(0x43)));
    assert!(branch.flags.is_predicted() && !branch.flags.is_mispredicted());
    let registers = sample.user_registers.unwrap();
    assert_eq!(registers.abi, RegistersAbi::BITS_64);
    assert_eq!(registers.iter().collect::<Vec<_>>(), [(3, 0x50), (63, 0x51)]);
    assert_eq!([0, 3, 62, 63, 64].map(|bit| registers.get(bit)), [None, Some(0x50), None, Some(0x51), None]);
    assert_eq!(sample.user_stack.unwrap().copied(), words(&[0x60])[..]);
    let weight = sample.weight.unwrap();
    assert_eq!((weight.var1(), weight.var2(), weight.var3()), (0x71, 0x72, 0x73));
    let stack = words(&[0x60, 0x61]);
    let aux = words(&[0xb0]);
    let expected = Sample {
        identifier: Some(0x10),
        ip: Some(Avma(0x11)),
        pid: Some(Pid(0x12)),
        tid: Some(Tid(0x13)),
        time: Some(Nanos(0x14)),
        addr: Some(Avma(0x15)),
        id: Some(0x16),
        stream_id: Some(0x17),
        cpu: Some(0x18),
        period: Some(0x19),
        read: Some(ReadValues {
            time_enabled: Some(0x20),
            time_running: None,
            counters: Counters::Group(GroupValues::new(
                Words::from(&[0x21, 0x22, 0x23, 0x24, 0x25, 0x26][..]),
                config.read_format,
            )),
        }),
        callchain: Some(Words::from(&[0x30, 0x31][..]).into()),
        raw: Some(b"tuvw".into()),
        branch_stack: BranchStack::new(
            Some(0x40),
            Words::from(&[0x41, 0x42, 0b10][..]),
            Some(Words::from(&[0x43][..])),
        ),
        user_registers: Registers::new(
            RegistersAbi::BITS_64,
            config.sample_regs_user,
            Words::from(&[0x50, 0x51][..]),
        ),
        user_stack: Some(UserStack { data: Bytes::from(&stack), dyn_size: 8 }),
        weight: Some(Weight(0x0073_0072_0000_0071)),
        data_source: Some(DataSource(0x80)),
        transaction: Some(Transaction(0x81)),
        interrupted_registers: Registers::new(RegistersAbi::BITS_32, 1, Words::from(&[0x90][..])),
        phys_addr: Some(0xa0),
        cgroup: Some(0xa1),
        data_page_size: Some(0xa2),
        code_page_size: Some(0xa3),
        aux: Some(Bytes::from(&aux)),
    };
    assert_eq!(sample, expected);
    assert_eq!(parsed.sample_id, expected.sample_id());
    let mut bytes = Vec::new();
    let made = Parsed {
        misc: Misc(2),
        record: Record::Sample(expected),
        sample_id: SampleId::default(),
        rest: Bytes::default(),
    };
    made.write(&config, &mut bytes).unwrap();
    assert_eq!(bytes[8..], record.body);
}

#[test]
fn registers_without_an_abi_take_no_space() {
    let config = ParseConfig {
        sample_regs_user: 0xff,
        ..config(SampleType::REGS_USER | SampleType::STACK_USER | SampleType::CGROUP)
    };
    let record = record(RecordKind::SAMPLE, Misc(1), words(&[0, 0, 7]));
    let parsed = record.as_raw().parse(&config).unwrap();
    let Record::Sample(sample) = parsed.record else { panic!("{parsed:?}") };
    assert_eq!(sample.user_registers, Some(Registers::default()));
    assert_eq!(sample.user_stack, Some(UserStack::default()));
    assert_eq!(sample.cgroup, Some(7));
}

/// An event that has no branches, such as a software event in a group with one that has, gets a count of 0 alone; a
/// processor without branches to tell gets the index as well.
#[test]
fn a_branch_stack_without_branches_may_have_an_index() {
    let config = ParseConfig {
        branch_sample_type: BranchSampleType::HW_INDEX,
        ..config(SampleType::BRANCH_STACK | SampleType::CGROUP)
    };
    for (body, index) in [(vec![0, 7], None), (vec![0, 5, 7], Some(5))] {
        let record = record(RecordKind::SAMPLE, Misc(2), words(&body));
        let parsed = record.as_raw().parse(&config).unwrap();
        let Record::Sample(sample) = parsed.record else { panic!("{parsed:?}") };
        assert_eq!(sample.branch_stack.unwrap().hw_index, index);
        assert_eq!(sample.cgroup, Some(7));
    }
}

#[test]
fn contexts_and_cookies_are_told_from_addresses() {
    let numbers = [ChainContext::KERNEL.0, 0xffff_ffff_8100_0000, ChainContext::USER_DEFERRED.0, 42];
    let chain = Callchain::from(Words::from(&numbers[..]));
    let entries: Vec<_> = chain.iter().collect();
    let expected = [
        ChainEntry::Context(ChainContext::KERNEL),
        ChainEntry::Address(Avma(0xffff_ffff_8100_0000)),
        ChainEntry::Context(ChainContext::USER_DEFERRED),
        ChainEntry::Cookie(42),
    ];
    assert_eq!(entries, expected);
}

/// Bit-fields begin at the other end on a big-endian machine: `mispred` is the highest bit, `cycles` 16 bits from 44 on.
#[test]
fn flags_of_branches_are_bit_fields() {
    let mut body = words(&[1, 0x1000, 0x2000, 1 << 63 | 1 << 60 | 0x1234 << 44 | 5 << 40]);
    body.chunks_exact_mut(8).for_each(<[u8]>::reverse);
    let config = ParseConfig { byte_order: ByteOrder::Big, ..config(SampleType::BRANCH_STACK) };
    let record = record(RecordKind::SAMPLE, Misc(2), body);
    let Record::Sample(sample) = record.as_raw().parse(&config).unwrap().record else { panic!() };
    let flags = sample.branch_stack.unwrap().iter().next().unwrap().flags;
    assert_eq!(flags, BranchFlags(1 | 1 << 3 | 0x1234 << 4 | 5 << 20));
    assert_eq!((flags.cycles(), flags.kind()), (0x1234, 5));
}

#[test]
fn the_sample_id_is_not_part_of_a_name() {
    let config = ParseConfig { sample_id_all: true, ..config(SampleType::TID | SampleType::TIME) };
    let mut body = words(&[0x8_0000_0007]);
    body.extend(b"12345678");
    body.extend(words(&[0x8_0000_0007, 99]));
    let record = record(RecordKind::COMM, Misc::COMM_EXEC, body);
    let parsed = record.as_raw().parse(&config).unwrap();
    let comm = Comm { pid: Pid(7), tid: Tid(8), name: Text::new(b"12345678") };
    assert_eq!(parsed.record, Record::Comm(comm));
    assert_eq!(parsed.misc, Misc::COMM_EXEC);
    let (pid, tid) = (Some(Pid(7)), Some(Tid(8)));
    assert_eq!(parsed.sample_id, SampleId { pid, tid, time: Some(Nanos(99)), ..SampleId::default() });
}

#[test]
fn kernel_code_may_have_anything_behind_it() {
    let config =
        ParseConfig { sample_id_all: true, ..config(SampleType::TID | SampleType::TIME | SampleType::CPU) };
    let id = words(&[0x8_0000_0007, 99, 3]);
    let symbol = [words(&[0xffff_ffff_c000_1000, 0x1_0001_0000_0040]), b"a_symbol\0\0\0\0\0\0\0\0".to_vec()];
    let program = [words(&[0x5_0000_0001, 0x1122_3344_5566_7788])];
    let poke = [words(&[0xffff_ffff_c000_1000]), vec![1, 0, 2, 0, 0xcc, 0x90, 0x91, 0]];
    let kinds = [
        (RecordKind::KSYMBOL, symbol.concat()),
        (RecordKind::BPF_EVENT, program.concat()),
        (RecordKind::TEXT_POKE, poke.concat()),
    ];
    for (kind, fields) in kinds {
        let body = [fields, id.clone()].concat();
        let clean = record(kind, Misc(0), body.clone());
        let clean = clean.as_raw().parse(&config).unwrap();
        let expected = SampleId {
            pid: Some(Pid(7)),
            tid: Some(Tid(8)),
            time: Some(Nanos(99)),
            cpu: Some(3),
            ..SampleId::default()
        };
        assert_eq!(clean.sample_id, expected, "{kind:?}");
        for recorders in 1..4 {
            let longer = record(kind, Misc(0), [body.as_slice(), &[0x5a; 3 * 24][..recorders * 24]].concat());
            assert_eq!(longer.as_raw().parse(&config), Ok(clean), "{kind:?} beside {recorders} others");
        }
        if let Record::Ksymbol(symbol) = clean.record {
            let expected = Ksymbol {
                start: Avma(0xffff_ffff_c000_1000),
                len: 64,
                kind: 1,
                flags: KsymbolFlags::UNREGISTER,
                name: Text::new(b"a_symbol"),
            };
            assert_eq!(symbol, expected);
        }
    }
}

#[test]
fn a_build_id_is_one_where_build_ids_were_asked_for() {
    let mut body = words(&[0x8_0000_0007, 0x1000, 0x2000, 0x3000]);
    body.extend([4, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef]);
    body.extend(words(&[0, 0, 0x2_0000_0005]));
    body.extend(b"/bin/true\0\0\0\0\0\0\0");
    let asked = ParseConfig { build_id: true, ..config(SampleType::TID) };
    let not_asked = config(SampleType::TID);
    let inode = MappedFile::Inode { major: 4, minor: 0xefbe_adde, inode: 0, generation: 0 };
    let build_id = MappedFile::BuildId(BuildId::new(&[0xde, 0xad, 0xbe, 0xef]));
    let cases = [
        (asked, Misc::MMAP_BUILD_ID, build_id),
        (asked, Misc(0), inode),
        (not_asked, Misc::MMAP_BUILD_ID, inode),
    ];
    for (config, misc, file) in cases {
        let record = record(RecordKind::MMAP2, misc, body.clone());
        let expected = Mmap2 {
            pid: Pid(7),
            tid: Tid(8),
            start: Avma(0x1000),
            len: 0x2000,
            file_offset: FileOffset(0x3000),
            file,
            protection: 5,
            flags: 2,
            path: Text::new(b"/bin/true"),
        };
        assert_eq!(record.as_raw().parse(&config).unwrap().record, Record::Mmap2(expected));
    }
}

/// What a newer kernel puts before the sample id is kept, and the id is found behind it.
#[test]
fn fields_of_a_newer_kernel_are_kept() {
    let config = ParseConfig { sample_id_all: true, ..config(SampleType::TIME) };
    let record = record(RecordKind::LOST, Misc(0), words(&[1, 2, 0xee, 99]));
    let parsed = record.as_raw().parse(&config).unwrap();
    assert_eq!(parsed.record, Record::Lost(Lost { id: 1, count: 2 }));
    assert_eq!(parsed.rest, words(&[0xee])[..]);
    assert_eq!(parsed.sample_id.time, Some(Nanos(99)));
    let mut bytes = Vec::new();
    parsed.write(&config, &mut bytes).unwrap();
    assert_eq!(bytes[8..], record.body);
}

#[test]
fn unknown_types_are_passed_on() {
    let config = ParseConfig { sample_id_all: true, ..config(SampleType::TIME) };
    for (kind, time) in [(RecordKind(23), Some(Nanos(99))), (RecordKind(70), None)] {
        let record = record(kind, Misc(3), words(&[1, 99]));
        let parsed = record.as_raw().parse(&config).unwrap();
        assert_eq!(parsed.record, Record::Other(record.as_raw()));
        assert_eq!(parsed.sample_id.time, time);
    }
    let too_short = record(RecordKind(23), Misc(3), vec![1]);
    assert_eq!(too_short.as_raw().parse(&config).unwrap().sample_id, SampleId::default());
}

#[test]
fn errors_say_where() {
    let short = record(RecordKind::SAMPLE, Misc(2), words(&[1, 2]));
    let parts = SampleType::IP | SampleType::TIME | SampleType::ADDR;
    let error = ParseError::CutOff { kind: RecordKind::SAMPLE, len: 16, at: 16 };
    assert_eq!(short.as_raw().parse(&config(parts)), Err(error));

    let mut buffer = Vec::new();
    short.as_raw().write(ByteOrder::Little, &mut buffer).unwrap();
    buffer.extend([9, 0, 0, 0, 0, 0, 200, 0]);
    buffer.extend(words(&[1, 2, 3]));
    let read: Vec<_> = records(&buffer, ByteOrder::Little).collect();
    assert_eq!(read, [Ok(short.as_raw()), Err(RecordsError::Size { offset: 24, size: 200, left: 32 })]);
    let read: Vec<_> = records(&buffer[..30], ByteOrder::Little).collect();
    assert_eq!(read, [Ok(short.as_raw()), Err(RecordsError::Header { offset: 24, left: 6 })]);
    let empty = [0; 8];
    let read: Vec<_> = records(&empty, ByteOrder::Little).collect();
    assert_eq!(read, [Err(RecordsError::Size { offset: 0, size: 0, left: 8 })]);
}

#[test]
fn what_an_event_cannot_have_is_not_written() {
    let written = |record, config: &ParseConfig| {
        let mut bytes = vec![1];
        let parsed = Parsed { misc: Misc(0), record, sample_id: SampleId::default(), rest: Bytes::default() };
        let result = parsed.write(config, &mut bytes);
        assert!(result.is_ok() || bytes == [1]);
        result
    };
    let sample = Sample { ip: Some(Avma(1)), ..Sample::default() };
    assert_eq!(written(Record::Sample(sample), &config(SampleType::IP)), Ok(()));
    let missing = Err(WriteError::Missing(SampleType::TIME));
    assert_eq!(written(Record::Sample(sample), &config(SampleType::IP | SampleType::TIME)), missing);
    let id = ParseConfig { sample_id_all: true, ..config(SampleType::TIME) };
    assert_eq!(written(Record::Switch(Switch), &id), missing);
    let registers = Registers::new(RegistersAbi::BITS_64, 1, Words::from(&[1][..]));
    let sample = Sample { user_registers: registers, ..Sample::default() };
    let layout = Err(WriteError::Layout(SampleType::REGS_USER));
    assert_eq!(written(Record::Sample(sample), &config(SampleType::REGS_USER)), layout);
    let long = vec![0; 1 << 16];
    let sample = Sample { aux: Some(Bytes::from(&long)), ..Sample::default() };
    let too_long = Err(WriteError::TooLong(8 + 8 + (1 << 16)));
    assert_eq!(written(Record::Sample(sample), &config(SampleType::AUX)), too_long);
}

#[test]
fn a_visitor_gets_what_it_asks_for_and_the_others_together() {
    #[derive(Default)]
    struct Counts {
        lost: u64,
        others: Vec<RecordKind>,
    }

    impl Visitor for Counts {
        type Error = String;

        fn lost(&mut self, lost: &Lost, context: &Context<'_, '_>) -> Result<(), String> {
            assert_eq!(context.sample_id.time, Some(Nanos(99)));
            self.lost += lost.count;
            Ok(())
        }

        fn other(&mut self, context: &Context<'_, '_>) -> Result<(), String> {
            self.others.push(context.record.kind());
            if context.misc == Misc(7) { Err("seven".into()) } else { Ok(()) }
        }
    }

    let config = ParseConfig { sample_id_all: true, ..config(SampleType::TIME) };
    let mut counts = Counts::default();
    let mut visit = |kind, misc, body: &[u64]| {
        record(kind, misc, words(body)).as_raw().parse(&config).unwrap().visit(&mut counts)
    };
    assert_eq!(visit(RecordKind::LOST, Misc(0), &[1, 30, 99]), Ok(()));
    assert_eq!(visit(RecordKind::SWITCH, Misc(0), &[99]), Ok(()));
    assert_eq!(visit(RecordKind(99), Misc(7), &[]), Err("seven".into()));
    assert_eq!((counts.lost, counts.others), (30, vec![RecordKind::SWITCH, RecordKind(99)]));
}

/// From a ring's bytes in two pieces to the values of each part.
#[test]
fn reading_allocates_nothing() {
    let config = ParseConfig {
        read_format: ReadFormat::GROUP | ReadFormat::ID,
        branch_sample_type: BranchSampleType::HW_INDEX,
        sample_regs_user: 0xff_0fff,
        sample_regs_intr: 0xff_0fff,
        sample_id_all: true,
        ..config(EVERYTHING)
    };
    let noise: Vec<u64> = (1..90).collect();
    let mut ring = Vec::new();
    for kind in crate::layout::KINDS {
        let record = crate::layout::record(RecordKind(kind), &config, &noise);
        record.as_raw().write(ByteOrder::Little, &mut ring).unwrap();
    }
    let (first, second) = ring.split_at(ring.len() / 2 - 3);
    let mut sum = 0_u64;
    let used = allocation_counter::measure(|| {
        for raw in records(Bytes::wrapped(first, second), ByteOrder::Little) {
            let parsed = raw.unwrap().parse(&config).unwrap();
            let Record::Sample(sample) = parsed.record else { continue };
            let add = |sum: u64, value: u64| sum.wrapping_add(value);
            sum = sample.callchain.unwrap().words.iter().fold(sum, add);
            sum = sample.user_registers.unwrap().iter().map(|(_, value)| value).fold(sum, add);
            sum = sample.read.unwrap().iter().map(|value| value.value).fold(sum, add);
            sum = sample.branch_stack.unwrap().iter().map(|branch| branch.to.0).fold(sum, add);
            sum = sample.user_stack.unwrap().copied().iter().map(u64::from).fold(sum, add);
        }
    });
    assert_ne!(sum, 0);
    assert_eq!(used.count_total, 0);
}
