//! The input's first bytes say how records are laid out and where a ring wraps, the rest is records.
//!
//! `sample_type` (u32), `read_format` (u8), flags (u8: sample ids at the end of all records, build ids, big-endian), 2
//! bytes that are not in use, `branch_sample_type`, the registers of user space and of interrupts, and the seam (u32
//! each); all little-endian.

use std::convert::Infallible;

use collector_common::perf::{
    BranchSampleType, ByteOrder, Bytes, Context, Counters, ParseConfig, Parsed, RawRecord, ReadFormat,
    ReadValues, Record, Registers, Sample, SampleType, Text, UserStack, Visitor, Words, records,
};

use super::within_memory;

/// Bytes before the records.
const LAYOUT: usize = 24;

/// Reads all records in one piece and in two, writes them, and reads them again.
pub(crate) fn run(input: &[u8]) {
    let Some((layout, bytes)) = input.split_first_chunk() else { return };
    let (config, seam) = layout_of(layout);
    let (first, second) = bytes.split_at(seam % (bytes.len() + 1));
    let mut in_two = records(Bytes::wrapped(first, second), config.byte_order);
    for raw in records(bytes, config.byte_order) {
        assert_eq!(in_two.next(), Some(raw), "the ring wraps at {seam}");
        if let Ok(raw) = raw {
            use_record(&raw, &config, seam);
        }
    }
    assert_eq!(in_two.next(), None);
}

fn layout_of(bytes: &[u8; LAYOUT]) -> (ParseConfig, usize) {
    let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
    let has = |bit: u8| bytes[5] >> bit & 1 != 0;
    let config = ParseConfig {
        sample_type: SampleType(number(0).into()),
        read_format: ReadFormat(bytes[4].into()),
        branch_sample_type: BranchSampleType(number(8).into()),
        sample_regs_user: number(12).into(),
        sample_regs_intr: number(16).into(),
        sample_id_all: has(0),
        build_id: has(1),
        byte_order: if has(2) { ByteOrder::Big } else { ByteOrder::Little },
    };
    (config, number(20) as usize)
}

fn use_record(raw: &RawRecord<'_>, config: &ParseConfig, seam: usize) {
    let body = raw.body.to_cow();
    let (first, second) = body.split_at(seam % (body.len() + 1));
    let wrapped = RawRecord { body: Bytes::wrapped(first, second), ..*raw };
    let parsed = within_memory(0, || {
        let parsed = raw.parse(config);
        assert!(wrapped.parse(config) == parsed, "in two pieces it is another record");
        parsed
    });
    let Ok(parsed) = parsed else {
        // What is asked of records that can't be read has an answer or none.
        let _ = (config.event_id(raw), config.time(raw));
        return;
    };
    let in_two = wrapped.parse(config).expect("it was read before");
    within_memory(0, || {
        walk(&parsed, body.len());
        walk(&in_two, body.len());
    });
    for raw in [raw, &wrapped] {
        assert_eq!(config.time(raw), parsed.sample_id.time, "{parsed:?}");
        assert_eq!(config.event_id(raw), parsed.sample_id.event(), "{parsed:?}");
    }
    let once = written(&parsed, config);
    assert_eq!(written(&in_two, config), once, "in two pieces");
    again(&parsed, &once, config);
    // Through the other byte order and back. What is not known is not turned.
    if !matches!(parsed.record, Record::Other(_)) {
        let order = if config.byte_order == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
        let other = ParseConfig { byte_order: order, ..*config };
        let turned = written(&parsed, &other);
        assert_eq!(turned.len(), once.len(), "{parsed:?}");
        let turned = only(&turned, &other).parse(&other).expect("what was written is read");
        assert_eq!(written(&turned, config), once, "{parsed:?}");
    }
}

/// The bytes of a record, for which no more memory is taken than a vector that grows needs.
fn written(parsed: &Parsed<'_>, config: &ParseConfig) -> Vec<u8> {
    within_memory(3 << 16, || {
        let mut bytes = Vec::new();
        parsed.write(config, &mut bytes).expect("what was read can be written");
        bytes
    })
}

fn only<'a>(bytes: &'a [u8], config: &ParseConfig) -> RawRecord<'a> {
    let mut all = records(bytes, config.byte_order);
    let raw = all.next().expect("there is a record").expect("it is whole");
    assert!(all.next().is_none());
    raw
}

/// What was written is read as the same record, but for the bytes that fill up a part to a multiple of 8.
fn again(parsed: &Parsed<'_>, bytes: &[u8], config: &ParseConfig) {
    let again = only(bytes, config).parse(config).expect("what was written is read");
    assert_eq!(written(&again, config), bytes);
    let mut expected = *parsed;
    if let (Record::Sample(expected), Record::Sample(sample)) = (&mut expected.record, &again.record) {
        expected.raw = filled_up(expected.raw, sample.raw);
        expected.aux = filled_up(expected.aux, sample.aux);
        let data =
            filled_up(expected.user_stack.map(|stack| stack.data), sample.user_stack.map(|stack| stack.data));
        expected.user_stack = expected.user_stack.zip(data).map(|(stack, data)| UserStack { data, ..stack });
    }
    if let (Record::Other(expected), Record::Other(other)) = (&mut expected.record, &again.record) {
        assert_eq!(expected, other);
    }
    assert_eq!(again, expected);
}

/// `longer` if it is `part` with less than 8 zeros behind it, else `part`.
fn filled_up<'a>(part: Option<Bytes<'a>>, longer: Option<Bytes<'a>>) -> Option<Bytes<'a>> {
    let (own, longer) = part.zip(longer)?;
    let same = longer
        .split_at_checked(own.len())
        .filter(|(head, tail)| *head == own && tail.len() < 8 && tail.iter().all(|byte| byte == 0));
    same.map(|_| longer).or(part)
}

/// Counts what a record's type has no method for: all.
struct Count(usize);

impl Visitor for Count {
    type Error = Infallible;

    fn other(&mut self, _: &Context<'_, '_>) -> Result<(), Infallible> {
        self.0 += 1;
        Ok(())
    }
}

/// Goes through all views of a record of `len` bytes.
fn walk(parsed: &Parsed<'_>, len: usize) {
    let mut count = Count(0);
    let _ = parsed.visit(&mut count);
    assert_eq!(count.0, 1);
    assert!(parsed.rest.len() <= len);
    let _ = parsed.misc.cpu_mode();
    match &parsed.record {
        Record::Mmap(mmap) => text(mmap.path, len),
        Record::Mmap2(mmap) => text(mmap.path, len),
        Record::Comm(comm) => text(comm.name, len),
        Record::Cgroup(cgroup) => text(cgroup.path, len),
        Record::Ksymbol(symbol) => text(symbol.name, len),
        Record::Read(read) => values(&read.values, len),
        Record::Sample(sample) => parts(sample, len),
        Record::Namespaces(namespaces) => {
            words(namespaces.words, len);
            assert_eq!(namespaces.iter().count(), namespaces.words.len() / 2);
        }
        Record::TextPoke(poke) => assert!(poke.old.len() + poke.new.len() <= len),
        Record::CallchainDeferred(deferred) => {
            words(deferred.callchain.words, len);
            assert_eq!(deferred.callchain.iter().count(), deferred.callchain.words.len());
        }
        _ => {}
    }
}

fn parts(sample: &Sample<'_>, len: usize) {
    if let Some(read) = &sample.read {
        values(read, len);
    }
    if let Some(chain) = sample.callchain {
        words(chain.words, len);
        assert_eq!(chain.iter().count(), chain.words.len());
    }
    for bytes in [sample.raw, sample.aux].into_iter().flatten() {
        assert!(bytes.len() <= len && bytes.iter().count() == bytes.len());
        assert_eq!(bytes.get(bytes.len()), None);
    }
    if let Some(branches) = sample.branch_stack {
        assert!(branches.len() <= len / 24 && branches.iter().count() == branches.len());
        for branch in branches.iter() {
            let flags = branch.flags;
            let _ = (flags.is_mispredicted(), flags.is_predicted(), flags.is_in_transaction());
            let _ = (flags.is_abort(), flags.cycles(), flags.kind(), flags.speculation());
            let _ = (flags.new_kind(), flags.privilege());
        }
    }
    for registers in [sample.user_registers, sample.interrupted_registers].into_iter().flatten() {
        walk_registers(&registers);
    }
    if let Some(stack) = sample.user_stack {
        assert!(stack.data.len() <= len && stack.copied().len() as u64 <= stack.dyn_size);
    }
    if let Some(weight) = sample.weight {
        let _ = (weight.var1(), weight.var2(), weight.var3());
    }
    if let Some(source) = sample.data_source {
        let _ = (source.operation(), source.level(), source.snoop(), source.lock(), source.tlb());
        let _ = (source.level_number(), source.is_remote(), source.snoop_more(), source.blocked());
        let _ = source.hops();
    }
    if let Some(transaction) = sample.transaction {
        let _ = (transaction.flags(), transaction.abort_code());
    }
}

fn walk_registers(registers: &Registers<'_>) {
    let mut left = registers.mask();
    for (number, value) in registers.iter() {
        assert_eq!(registers.get(number), Some(value));
        left &= !(1 << number);
    }
    assert_eq!(left, 0, "each register has a value");
    for number in 0..=64 {
        let is_there = registers.mask().checked_shr(number).unwrap_or(0) & 1 != 0;
        assert_eq!(registers.get(number).is_some(), is_there);
    }
}

fn values(read: &ReadValues<'_>, len: usize) {
    let count = match read.counters {
        Counters::One(_) => 1,
        Counters::Group(values) => values.len(),
    };
    assert!(count <= len / 8 && read.iter().count() == count);
}

fn words(words: Words<'_>, len: usize) {
    assert!(words.len() <= len / 8 && words.iter().len() == words.len());
    for (index, word) in words.iter().enumerate() {
        assert_eq!(words.get(index), Some(word));
    }
    assert_eq!(words.get(words.len()), None);
}

fn text(text: Text<'_>, len: usize) {
    let bytes = text.bytes();
    assert!(bytes.len() <= len && bytes.iter().all(|byte| byte != 0));
}
