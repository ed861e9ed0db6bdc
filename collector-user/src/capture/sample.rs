//! From a source's record to a sample of `perf`.

use collector_common::ids::{Avma, Nanos, Pid, Tid};
use collector_common::perf::{
    Bytes, Callchain, ChainContext, Misc, Parsed, Record, Registers, RegistersAbi, Sample, SampleId,
    UserStack, Words,
};
use collector_common::wire::{PAGE_SIZE, SampleFlags, TrappedReturns};

use crate::records::machine_registers::{INSTRUCTION_POINTER, STACK_POINTER, WORDS};
use crate::records::outer;
use crate::source::SourceRecord;

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

/// The words of `struct pt_regs` with those registers, in the order of perf's numbers.
const IN_ORDER: [usize; REGISTERS.count_ones() as usize] = {
    let mut words = [0; REGISTERS.count_ones() as usize];
    let (mut register, mut at) = (0, 0);
    while register < u64::BITS {
        if REGISTERS >> register & 1 != 0 {
            words[at] = word_of(register);
            at += 1;
        }
        register += 1;
    }
    words
};

/// Addresses of a callchain that are written at most: more than `kernel.perf_event_max_stack` is in general.
const MOST_ADDRESSES: usize = 1024;

/// Bytes of a word of a stack.
const WORD: usize = 8;

/// The same of a 32-bit program.
const COMPAT_WORD: usize = 4;

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
    outer: Vec<u8>,
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
            self.registers.extend(IN_ORDER.map(|word| header.registers[word]));
        }
        let room = LARGEST_RECORD - FIXED - 8 * self.chain.len();
        // A source of one's own, or a BPF map, may have records that are larger than any of perf's.
        let data = record.data.get(..room.saturating_sub(2 * 8)).unwrap_or(record.data);
        self.outer.clear();
        if let Some(lines) = record.outer.filter(|_| tick.is_some() && data.is_empty()) {
            outer::pack(lines, &mut self.outer);
        }
        let raw = data.len().max(self.outer.len());
        let stack = self.fill_stack(record, room.saturating_sub(raw.next_multiple_of(8)));
        let data = if self.outer.is_empty() { data } else { &self.outer };
        let own = has_registers.then(|| header.registers[word_of(INSTRUCTION_POINTER)]);
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
            raw: Some(Bytes::from(data)),
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
                self.chain.extend(part.iter().take(MOST_ADDRESSES / 2));
            }
        }
    }

    /// How many bytes of the copied stack there are; `None` for no stack at all. What is behind a page that was absent can't
    /// be told from it, and is left out. Of a stack that ends with the copy, the record has room for more, as when the kernel
    /// meets the end.
    fn fill_stack(&mut self, record: &SourceRecord<'_>, room: usize) -> Option<u64> {
        let header = record.header;
        let sp = header.registers[word_of(STACK_POINTER)];
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
        if let Some(returns) = record.returns {
            if header.flags().has(SampleFlags::COMPAT) {
                put_back::<COMPAT_WORD>(returns, sp, &mut self.stack);
            } else {
                put_back::<WORD>(returns, sp, &mut self.stack);
            }
        }
        let was_cut = header.absent == 0 && header.flags().has(SampleFlags::STACK_CUT);
        if !was_cut && available - len < WORD {
            self.stack.resize(len + WORD, 0);
        }
        Some(len as u64)
    }
}

/// Puts return addresses of so many bytes in their places on the stack that begins at `sp`, where the kernel has its own.
fn put_back<const BYTES: usize>(returns: &TrappedReturns, sp: u64, stack: &mut [u8]) {
    for call in returns.calls.iter().take(returns.count as usize) {
        let at = usize::try_from(call.stack.wrapping_sub(sp)).unwrap_or(usize::MAX);
        if let Some(place) = stack.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<BYTES>()) {
            let mut word = [0; WORD];
            word[..BYTES].copy_from_slice(place);
            let original = returns.original(call.stack, u64::from_le_bytes(word)).to_le_bytes();
            place.copy_from_slice(&original[..BYTES]);
        }
    }
}

/// Where the register is that has this number with perf.
const fn word_of(register: u32) -> usize {
    let mut word = 0;
    loop {
        if let Some(known) = WORDS[word]
            && known == register
        {
            return word;
        }
        word += 1;
    }
}

const _: () = assert!(FIXED + 8 * (MOST_ADDRESSES + 2) < LARGEST_RECORD);

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable as _;
    use collector_common::perf::{ByteOrder, ParseConfig};
    use collector_common::wire::{SampleHeader, TrappedReturn};

    use super::super::attributes::{clock, event};
    use super::*;
    use crate::source::{EventIndex, Trigger};

    #[test]
    fn what_a_source_hands_over_fits_into_a_record() {
        let header = SampleHeader {
            flags: SampleFlags::IN_KERNEL | SampleFlags::USER_REGISTERS | SampleFlags::STACK_CUT,
            ..SampleHeader::zeroed()
        };
        let (addresses, stack) = (vec![1; 20_000], vec![2; 64 << 10]);
        let bare = SourceRecord::bare(EventIndex::CLOCK, &header);
        let record = SourceRecord { kernel: &addresses, stack: &stack, user: &addresses, ..bare };
        let mut encoder = Encoder::default();
        let parsed = encoder.encode(&record, 1, None);
        let mut bytes = Vec::new();
        parsed.write(&ParseConfig::from(&clock(1), ByteOrder::NATIVE), &mut bytes).unwrap();
        assert!(bytes.len() <= LARGEST_RECORD && bytes.len() > 60_000, "{}", bytes.len());
    }

    #[test]
    fn return_addresses_are_those_of_the_program() {
        const SP: u64 = 0x1008;
        let mut returns = TrappedReturns { trampoline: 0x7000, count: 4, ..TrappedReturns::zeroed() };
        let calls = [(SP, 0x4001), (SP + 16, 0x4002), (SP + 24, 0x4003), (SP - 8, 0x4004)];
        for (call, (stack, address)) in returns.calls.iter_mut().zip(calls) {
            *call = TrappedReturn { stack, address };
        }
        let words = |words: [u64; 3]| words.map(u64::to_le_bytes).concat();
        let mut stack = words([0x7000, 0x7000, 0x5000]);
        put_back::<WORD>(&returns, SP, &mut stack);
        assert_eq!(stack, words([0x4001, 0x7000, 0x5000]));
        let mut stack = words([0x5000, 5, 0x7000]);
        stack.truncate(23);
        put_back::<WORD>(&returns, SP, &mut stack);
        assert_eq!(stack, words([0x5000, 5, 0x7000])[..23], "half of a word");
        let halves = |halves: [u32; 6]| halves.map(u32::to_le_bytes).concat();
        let mut stack = halves([0x7000, 0x7000, 5, 6, 0x7000, 7]);
        put_back::<COMPAT_WORD>(&returns, SP, &mut stack);
        assert_eq!(stack, halves([0x4001, 0x7000, 5, 6, 0x4002, 7]));
    }

    #[test]
    fn data_that_are_too_many_are_cut() {
        let data: Vec<u8> = (0..200_000_u32).map(|at| at as u8).collect();
        for (kernel, stack) in [(0, 0), (20_000, 64 << 10)] {
            let (kernel, stack) = (vec![1; kernel], vec![2; stack]);
            for len in (65_000..65_540).chain([data.len()]) {
                let header = SampleHeader { flags: SampleFlags::USER_REGISTERS, ..SampleHeader::zeroed() };
                let bare = SourceRecord::bare(EventIndex(1), &header);
                let record = SourceRecord { kernel: &kernel, stack: &stack, data: &data[..len], ..bare };
                let mut encoder = Encoder::default();
                let parsed = encoder.encode(&record, 1, None);
                let Record::Sample(Sample { raw: Some(raw), .. }) = parsed.record else { panic!() };
                assert!(data.starts_with(raw.as_slice().unwrap()) && raw.len() > 50_000);
                let mut bytes = Vec::new();
                let config = ParseConfig::from(&event(Trigger::BpfMap), ByteOrder::NATIVE);
                parsed.write(&config, &mut bytes).unwrap();
                assert!(bytes.len() <= LARGEST_RECORD, "{len}: {}", bytes.len());
            }
        }
    }
}
