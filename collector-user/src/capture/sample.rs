//! From a source's record to a sample of `perf`.

use collector_common::ids::{Avma, Nanos, Pid, Tid};
use collector_common::perf::{
    Bytes, Callchain, ChainContext, Misc, Parsed, Record, Registers, RegistersAbi, Sample, SampleId,
    UserStack, Words,
};
use collector_common::wire::{PAGE_SIZE, SampleFlags, SampleHeader};

use crate::source::SourceRecord;
use crate::source::perf::decode::{INSTRUCTION_POINTER, STACK_POINTER, WORDS};

/// Registers in each sample: those of [`WORDS`].
pub(super) const REGISTERS: u64 = {
    let (mut mask, mut word) = (0, 0);
    while word < WORDS.len() {
        if let Some(register) = WORDS[word] {
            mask |= 1 << register;
        }
        word += 1;
    }
    mask
};

/// A record's size is a number of 16 bits, and a multiple of 8.
const LARGEST_RECORD: usize = 65_528;

/// What a record has beside the stack, the callchain and data: header, ten numbers, registers, and sizes.
const FIXED: usize = 8 * 16 + 8 * REGISTERS.count_ones() as usize;

/// Puts samples together. Kept for its memory.
#[derive(Default)]
pub(super) struct Encoder {
    chain: Vec<u64>,
    registers: Vec<u64>,
    stack: Vec<u8>,
}

impl Encoder {
    /// The sample of a record, as of the event with this id; each tick of the sampling clock stands for `tick` nanoseconds.
    pub(super) fn encode<'a>(
        &'a mut self,
        record: &SourceRecord<'a>,
        id: u64,
        tick: Option<Nanos>,
    ) -> Parsed<'a> {
        let header = record.header;
        let in_kernel = header.flags().has(SampleFlags::IN_KERNEL);
        let has_registers = header.flags().has(SampleFlags::USER_REGISTERS);
        self.fill_chain(record);
        self.registers.clear();
        let mut abi = RegistersAbi::NONE;
        if has_registers {
            abi = if header.flags().has(SampleFlags::COMPAT) {
                RegistersAbi::BITS_32
            } else {
                RegistersAbi::BITS_64
            };
            let in_order = (0..u64::BITS).filter_map(|register| word_of(header, register));
            self.registers.extend(in_order);
        }
        let room = LARGEST_RECORD - FIXED - 8 * self.chain.len();
        let stack = self.fill_stack(record, room.saturating_sub(record.data.len().next_multiple_of(8)));
        let own = if has_registers { word_of(header, INSTRUCTION_POINTER) } else { None };
        let ip =
            if in_kernel { record.kernel.first().copied() } else { own.or(record.user.first().copied()) };
        let sample = Sample {
            identifier: Some(id),
            ip: Some(Avma(ip.unwrap_or(0))),
            pid: Some(Pid(header.pid)),
            tid: Some(Tid(header.tid)),
            time: Some(Nanos(header.time)),
            cpu: Some(header.cpu),
            period: Some(tick.map_or(record.value, |tick| tick.0)),
            callchain: Some(Callchain::from(Words::from(self.chain.as_slice()))),
            raw: Some(Bytes::from(record.data)),
            user_registers: Registers::new(abi, REGISTERS, Words::from(self.registers.as_slice())),
            user_stack: Some(stack.map_or_else(UserStack::default, |dyn_size| UserStack {
                data: Bytes::from(self.stack.as_slice()),
                dyn_size,
            })),
            ..Sample::default()
        };
        Parsed {
            misc: if in_kernel { Misc::KERNEL } else { Misc::USER },
            record: Record::Sample(sample),
            sample_id: SampleId::default(),
            rest: Bytes::default(),
        }
    }

    fn fill_chain(&mut self, record: &SourceRecord<'_>) {
        self.chain.clear();
        for (context, part) in [(ChainContext::KERNEL, record.kernel), (ChainContext::USER, record.user)] {
            if !part.is_empty() {
                self.chain.push(context.0);
                self.chain.extend_from_slice(part);
            }
        }
    }

    /// How many bytes of the copied stack there are; `None` for no stack at all. What is behind a page that was absent can't
    /// be told from it, and is left out. Of a stack that ends with the copy, the record has room for more, as when the kernel
    /// meets the end.
    fn fill_stack(&mut self, record: &SourceRecord<'_>, room: usize) -> Option<u64> {
        const WORD: usize = 8;
        let header = record.header;
        let sp = word_of(header, STACK_POINTER)?;
        let whole = match header.absent.trailing_zeros() as usize {
            _ if header.absent == 0 => record.stack.len(),
            0 => 0,
            pieces => PAGE_SIZE - (sp as usize % PAGE_SIZE) + (pieces - 1) * PAGE_SIZE,
        };
        let available = whole.min(record.stack.len());
        let len = available.min(room.saturating_sub(WORD)) / WORD * WORD;
        let copied = record.stack.get(..len).filter(|copied| !copied.is_empty())?;
        self.stack.clear();
        self.stack.extend_from_slice(copied);
        let was_cut = header.absent == 0 && header.flags().has(SampleFlags::STACK_CUT);
        if !was_cut && available - len < WORD {
            self.stack.resize(len + WORD, 0);
        }
        Some(len as u64)
    }
}

/// The value of a register by the number that perf gives it.
fn word_of(header: &SampleHeader, register: u32) -> Option<u64> {
    let word = WORDS.iter().position(|&known| known == Some(register))?;
    header.registers.get(word).copied()
}
