//! From a sample of a perf event to a record as every source gives it.

use bytemuck::Zeroable as _;
use collector_common::perf::{
    ByteOrder, Bytes, ChainContext, ChainEntry, CpuMode, Misc, RegistersAbi, Sample,
};
use collector_common::wire::{MAX_KERNEL_FRAMES, OuterLines, SampleFlags, SampleHeader, VERSION};

use super::machine_registers::Machine;
use super::{EventIndex, RELEASED, SourceRecord, outer};

/// Puts samples together. Kept for its memory.
pub(crate) struct Decoder {
    /// Numbers of threads are those of the machine.
    is_in_initial_namespace: bool,
    machine: Machine,
    order: ByteOrder,
    header: SampleHeader,
    kernel: Vec<u64>,
    user: Vec<u64>,
    /// Stacks and data that wrap around the ring's end.
    stack: Vec<u8>,
    data: Vec<u8>,
    outer: OuterLines,
}

impl Decoder {
    /// Of samples that are being made on this machine.
    pub(crate) fn new(is_in_initial_namespace: bool) -> Self {
        Self::with(is_in_initial_namespace, Machine::X86_64, ByteOrder::NATIVE)
    }

    /// Of samples that a file has in this order of bytes, of a machine whose architecture is as yet taken to be this one's.
    pub(crate) fn of_recording(order: ByteOrder) -> Self {
        Self::with(true, Machine::X86_64, order)
    }

    fn with(is_in_initial_namespace: bool, machine: Machine, order: ByteOrder) -> Self {
        let header = SampleHeader { version: VERSION, ..SampleHeader::zeroed() };
        let (kernel, user, stack, data) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let outer = OuterLines::zeroed();
        Self { is_in_initial_namespace, machine, order, header, kernel, user, stack, data, outer }
    }

    /// From now on, samples are of a machine of this architecture.
    pub(crate) fn set_machine(&mut self, machine: Machine) {
        self.machine = machine;
    }

    /// `None` for a sample without the parts that all are asked for.
    pub(crate) fn decode<'a>(
        &'a mut self,
        event: EventIndex,
        misc: Misc,
        sample: &Sample<'a>,
    ) -> Option<SourceRecord<'a>> {
        let mut flags = if misc.cpu_mode() == CpuMode::Kernel { SampleFlags::IN_KERNEL } else { 0 };
        let header = &mut self.header;
        (header.pid, header.tid) = (sample.pid?.0, sample.tid?.0);
        // A recording of one process need not tell them.
        (header.time, header.cpu) = (sample.time.map_or(0, |time| time.0), sample.cpu.unwrap_or(0));
        self.kernel.clear();
        self.kernel.extend(part(sample, ChainContext::KERNEL).take(MAX_KERNEL_FRAMES));
        let registers = sample.user_registers.filter(|registers| registers.abi != RegistersAbi::NONE);
        let mut stack: &[u8] = &[];
        (header.stack_bytes, header.stack_end) = (0, 0);
        let mut is_walked = true;
        if let Some(registers) = registers {
            let taken = self.machine.take(&registers, header);
            is_walked = taken.is_some();
            flags |= taken.map_or(0, |(of_registers, _)| of_registers);
            if let (Some(copied), Some((_, start))) = (sample.user_stack, taken) {
                let len = copied.dyn_size.min(copied.data.len() as u64) as usize;
                let is_full = len == copied.data.len();
                // The kernel copies until it has enough, or meets an absent page; it does not look where the stack ends.
                flags |= if is_full {
                    SampleFlags::STACK_CUT | SampleFlags::MAPPING_END
                } else {
                    SampleFlags::BOUND_UNKNOWN
                };
                header.stack_bytes = len as u32;
                header.stack_end = if is_full { start.saturating_add(len as u64) } else { 0 };
                stack = in_one_piece(copied.data.split_at_checked(len)?.0, &mut self.stack);
            }
        }
        self.user.clear();
        if stack.is_empty() {
            self.user.extend(part(sample, ChainContext::USER));
        }
        let is_put_off = sample.callchain.is_some_and(|chain| chain.cookie().is_some());
        if (!is_walked || is_put_off) && stack.is_empty() && self.user.is_empty() {
            flags |= SampleFlags::NOT_WALKED;
            let own = sample.ip.filter(|_| is_put_off && misc.cpu_mode() == CpuMode::User);
            self.user.extend(own.map(|ip| ip.0));
        }
        header.flags = flags;
        if let (None, Some(ip)) = (sample.callchain, sample.ip) {
            match misc.cpu_mode() {
                CpuMode::Kernel => self.kernel.push(ip.0),
                CpuMode::User if stack.is_empty() => self.user.push(ip.0),
                _ => {}
            }
        }
        header.kernel_bytes = (self.kernel.len() * 8) as u16;
        let mut data = sample.raw.map_or(&[][..], |raw| in_one_piece(raw, &mut self.data));
        let mut outer = None;
        if event == EventIndex::CLOCK
            && let Some(lines) = outer::unpack(data, self.order)
        {
            self.outer = lines;
            (data, outer) = (&[], Some(&self.outer));
        }
        // The kernel may sample before it has counted anything.
        let value = sample.period.unwrap_or(1).max(1);
        if self.header.tid == RELEASED && self.is_in_initial_namespace {
            self.header.tid = common_pid(data, self.order).unwrap_or(RELEASED);
        }
        let (header, kernel, user) = (&self.header, self.kernel.as_slice(), self.user.as_slice());
        Some(SourceRecord {
            event,
            header,
            is_named: false,
            kernel,
            stack,
            returns: None,
            outer,
            user,
            value,
            data,
            written: &[],
        })
    }
}

/// `common_pid`, with which the data of a tracepoint tells its thread after that has been released: the second word of
/// `struct trace_entry` (`include/linux/trace_events.h`), as the number is in the machine's own pid namespace.
fn common_pid(data: &[u8], order: ByteOrder) -> Option<u32> {
    let bytes = data.get(4..8)?.try_into().ok()?;
    Some(match order {
        ByteOrder::Little => u32::from_le_bytes(bytes),
        ByteOrder::Big => u32::from_be_bytes(bytes),
    })
}

/// The addresses of a sample's callchain that are of one side.
fn part<'a>(sample: &Sample<'a>, wanted: ChainContext) -> impl Iterator<Item = u64> + use<'a> {
    let mut is_wanted = false;
    sample.callchain.unwrap_or_default().iter().filter_map(move |entry| match entry {
        ChainEntry::Context(context) => {
            is_wanted = context == wanted;
            None
        }
        ChainEntry::Address(address) => is_wanted.then_some(address.0),
        ChainEntry::Cookie(_) => None,
    })
}

fn in_one_piece<'a>(bytes: Bytes<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    if let Some(whole) = bytes.as_slice() {
        return whole;
    }
    scratch.clear();
    for piece in bytes.pieces() {
        scratch.extend_from_slice(piece);
    }
    scratch
}
