//! Makes the bytes of records as the kernel lays them out, from the structures of `perf_event.h` and without the code
//! under test: field by field, in either byte order, with numbers from a source of noise.

use collector_common::perf::{
    BranchSampleType, ByteOrder, OwnedRecord, ParseConfig, ReadFormat, RecordKind, SampleType,
};
use proptest::prelude::*;

/// Every `sample_type` bit that there is.
pub(crate) const SAMPLE_TYPE_BITS: u32 = 25;

/// Every type of record that the kernel has.
pub(crate) const KINDS: std::ops::RangeInclusive<u32> = 1..=22;

/// Appends fields, whose values come from noise.
pub(crate) struct Layout<'n> {
    order: ByteOrder,
    noise: std::iter::Cycle<std::slice::Iter<'n, u64>>,
    pub(crate) bytes: Vec<u8>,
}

impl<'n> Layout<'n> {
    pub(crate) fn new(order: ByteOrder, noise: &'n [u64]) -> Self {
        Self { order, noise: noise.iter().cycle(), bytes: Vec::new() }
    }

    pub(crate) fn any(&mut self) -> u64 {
        *self.noise.next().unwrap()
    }

    /// A number of things in a list.
    pub(crate) fn count(&mut self) -> u64 {
        self.any() % 5
    }

    pub(crate) fn put(&mut self, value: u64, len: usize) {
        let little = value.to_le_bytes();
        match self.order {
            ByteOrder::Little => self.bytes.extend(&little[..len]),
            ByteOrder::Big => self.bytes.extend(little[..len].iter().rev()),
        }
    }

    pub(crate) fn any_words(&mut self, count: u64) {
        for _ in 0..count {
            let value = self.any();
            self.put(value, 8);
        }
    }

    pub(crate) fn any_halves(&mut self, count: u64) {
        for _ in 0..count {
            let value = self.any();
            self.put(value, 4);
        }
    }

    pub(crate) fn any_bytes(&mut self, count: u64) {
        for _ in 0..count {
            let value = self.any();
            self.put(value, 1);
        }
    }

    pub(crate) fn text(&mut self) {
        let letters = self.any() % 20;
        for letter in 0..letters {
            self.put(u64::from(b'a') + letter, 1);
        }
        self.zeros_to_a_word(1);
    }

    /// At least so many zeros, to the next multiple of 8.
    pub(crate) fn zeros_to_a_word(&mut self, least: usize) {
        let len = (self.bytes.len() + least).next_multiple_of(8);
        self.bytes.resize(len, 0);
    }

    fn read_values(&mut self, format: ReadFormat) {
        let has = |bit| u64::from(format.contains(bit));
        let times = has(ReadFormat::TOTAL_TIME_ENABLED) + has(ReadFormat::TOTAL_TIME_RUNNING);
        let beside = has(ReadFormat::ID) + has(ReadFormat::LOST);
        if format.contains(ReadFormat::GROUP) {
            let count = self.count();
            self.put(count, 8);
            self.any_words(times + count * (1 + beside));
        } else {
            self.any_words(1 + times + beside);
        }
    }

    fn registers(&mut self, mask: u64) {
        let abi = self.any() % 3;
        self.put(abi, 8);
        if abi != 0 {
            self.any_words(u64::from(mask.count_ones()));
        }
    }

    fn cpu(&mut self) {
        self.any_halves(1);
        self.put(0, 4);
    }

    /// `perf_output_sample`
    fn sample(&mut self, config: &ParseConfig) {
        let has = |bit| config.sample_type.contains(bit);
        let words_before_cpu = [
            SampleType::IDENTIFIER,
            SampleType::IP,
            SampleType::TID,
            SampleType::TIME,
            SampleType::ADDR,
            SampleType::ID,
            SampleType::STREAM_ID,
        ];
        for part in words_before_cpu {
            if has(part) {
                self.any_words(1);
            }
        }
        if has(SampleType::CPU) {
            self.cpu();
        }
        if has(SampleType::PERIOD) {
            self.any_words(1);
        }
        if has(SampleType::READ) {
            self.read_values(config.read_format);
        }
        if has(SampleType::CALLCHAIN) {
            let count = self.count();
            self.put(count, 8);
            self.any_words(count);
        }
        if has(SampleType::RAW) {
            let len = 4 + self.count() * 8;
            self.put(len, 4);
            self.any_bytes(len);
        }
        if has(SampleType::BRANCH_STACK) {
            let count = self.count();
            self.put(count, 8);
            // Without branches there may be an index or not.
            if config.branch_sample_type.contains(BranchSampleType::HW_INDEX)
                && (count > 0 || !self.any().is_multiple_of(2))
            {
                self.any_words(1);
            }
            self.any_words(count * 3);
            if config.branch_sample_type.contains(BranchSampleType::COUNTERS) {
                self.any_words(count);
            }
        }
        if has(SampleType::REGS_USER) {
            self.registers(config.sample_regs_user);
        }
        if has(SampleType::STACK_USER) {
            let len = self.count() * 8;
            self.put(len, 8);
            if len > 0 {
                self.any_bytes(len);
                let copied = self.any() % (len + 1);
                self.put(copied, 8);
            }
        }
        let words_before_registers =
            [SampleType::WEIGHT, SampleType::WEIGHT_STRUCT, SampleType::DATA_SRC, SampleType::TRANSACTION];
        for part in words_before_registers {
            if has(part) {
                self.any_words(1);
            }
        }
        if has(SampleType::REGS_INTR) {
            self.registers(config.sample_regs_intr);
        }
        let words_at_the_end = [
            SampleType::PHYS_ADDR,
            SampleType::CGROUP,
            SampleType::DATA_PAGE_SIZE,
            SampleType::CODE_PAGE_SIZE,
        ];
        for part in words_at_the_end {
            if has(part) {
                self.any_words(1);
            }
        }
        if has(SampleType::AUX) {
            let len = self.count() * 8;
            self.put(len, 8);
            self.any_bytes(len);
        }
    }

    /// `perf_event__output_id_sample`
    pub(crate) fn sample_id(&mut self, config: &ParseConfig) {
        if !config.sample_id_all {
            return;
        }
        let words = [SampleType::TID, SampleType::TIME, SampleType::ID, SampleType::STREAM_ID];
        for part in words {
            if config.sample_type.contains(part) {
                self.any_words(1);
            }
        }
        if config.sample_type.contains(SampleType::CPU) {
            self.cpu();
        }
        if config.sample_type.contains(SampleType::IDENTIFIER) {
            self.any_words(1);
        }
    }

    /// The structures in the comments of `enum perf_event_type`; the header's `misc`.
    pub(crate) fn body(&mut self, kind: RecordKind, config: &ParseConfig) -> u16 {
        let mut misc = self.any() as u16;
        match kind {
            RecordKind::MMAP => {
                self.any_words(4);
                self.text();
            }
            RecordKind::COMM | RecordKind::CGROUP => {
                self.any_words(1);
                self.text();
            }
            RecordKind::EXIT
            | RecordKind::FORK
            | RecordKind::THROTTLE
            | RecordKind::UNTHROTTLE
            | RecordKind::AUX => self.any_words(3),
            RecordKind::READ => {
                self.any_words(1);
                self.read_values(config.read_format);
            }
            RecordKind::SAMPLE => {
                self.sample(config);
                return misc;
            }
            RecordKind::MMAP2 => {
                self.any_words(4);
                if config.build_id && misc & 1 << 14 != 0 {
                    let len = self.any() % 21;
                    self.put(len, 4);
                    if self.order == ByteOrder::Big {
                        let at = self.bytes.len() - 4;
                        self.bytes[at..].reverse();
                    }
                    self.any_bytes(len);
                    self.bytes.resize(self.bytes.len() + 20 - len as usize, 0);
                } else {
                    self.any_words(3);
                }
                self.any_halves(2);
                self.text();
            }
            RecordKind::ITRACE_START
            | RecordKind::LOST_SAMPLES
            | RecordKind::SWITCH_CPU_WIDE
            | RecordKind::AUX_OUTPUT_HW_ID => self.any_words(1),
            RecordKind::SWITCH => {}
            RecordKind::NAMESPACES => {
                self.any_words(1);
                let count = self.count();
                self.put(count, 8);
                self.any_words(count * 2);
            }
            RecordKind::KSYMBOL => {
                self.any_words(2);
                self.text();
            }
            RecordKind::LOST | RecordKind::BPF_EVENT => self.any_words(2),
            RecordKind::TEXT_POKE => {
                self.any_words(1);
                let (old, new) = (self.any() % 16, self.any() % 16);
                self.put(old, 2);
                self.put(new, 2);
                self.any_bytes(old + new);
                self.zeros_to_a_word(0);
            }
            RecordKind::CALLCHAIN_DEFERRED => {
                self.any_words(1);
                let count = self.count();
                self.put(count, 8);
                self.any_words(count);
            }
            unknown => {
                misc = unknown.0 as u16;
                self.any_words(3);
            }
        }
        self.sample_id(config);
        misc
    }
}

/// A record of `kind` as an event with `config` gets it.
pub(crate) fn record(kind: RecordKind, config: &ParseConfig, noise: &[u64]) -> OwnedRecord {
    let mut layout = Layout::new(config.byte_order, noise);
    let misc = layout.body(kind, config);
    OwnedRecord { kind, misc: collector_common::perf::Misc(misc), body: layout.bytes }
}

/// The values of fields: small and large ones.
pub(crate) fn noise() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(prop_oneof![any::<u64>(), 0..16_u64], 1..64)
}

/// Events of any kind.
pub(crate) fn configs() -> impl Strategy<Value = ParseConfig> {
    let masks = || prop_oneof![Just(0), any::<u64>(), Just(u64::MAX), Just(0xff_0fff)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (0..1_u64 << SAMPLE_TYPE_BITS, 0..32_u64, any::<u64>(), masks(), masks(), flags).prop_map(
        |(sample_type, read_format, branches, sample_regs_user, sample_regs_intr, flags)| ParseConfig {
            sample_type: without_two_weights(SampleType(sample_type)),
            read_format: ReadFormat(read_format),
            branch_sample_type: BranchSampleType(branches),
            sample_regs_user,
            sample_regs_intr,
            sample_id_all: flags.0,
            build_id: flags.1,
            byte_order: if flags.2 { ByteOrder::Little } else { ByteOrder::Big },
        },
    )
}

/// The kernel takes one of the two only.
pub(crate) fn without_two_weights(parts: SampleType) -> SampleType {
    if parts.contains(SampleType::WEIGHT_STRUCT) { parts.without(SampleType::WEIGHT) } else { parts }
}
