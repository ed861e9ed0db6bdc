//! From a sample of a perf event to a record as every source gives it.

use bytemuck::Zeroable as _;
use collector_common::perf::{Bytes, ChainContext, ChainEntry, CpuMode, Misc, RegistersAbi, Sample};
use collector_common::wire::{MAX_KERNEL_FRAMES, SampleFlags, SampleHeader, VERSION};

use crate::source::{EventIndex, SourceRecord};

/// Where a word of `struct pt_regs` (`arch/x86/include/asm/ptrace.h`) is among perf's registers
/// (`arch/x86/include/uapi/asm/perf_regs.h`); `None` for those that are not asked for.
pub(crate) const WORDS: [Option<u32>; 21] = {
    let [ax, bx, cx, dx, si, di, bp, sp, ip] =
        [Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6), Some(7), Some(8)];
    let [r8, r9, r10, r11, r12, r13, r14, r15] =
        [Some(16), Some(17), Some(18), Some(19), Some(20), Some(21), Some(22), Some(23)];
    [r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, None, ip, None, None, sp, None]
};

/// The word of `struct pt_regs` with the number of the system call, which perf does not tell: no call has this one.
const SYSTEM_CALL: usize = 15;

/// Puts samples together. Kept for its memory.
pub(crate) struct Decoder {
    header: SampleHeader,
    kernel: Vec<u64>,
    user: Vec<u64>,
    /// Stacks and data that wrap around the ring's end.
    stack: Vec<u8>,
    data: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        let header = SampleHeader { version: VERSION, ..SampleHeader::zeroed() };
        Self { header, kernel: Vec::new(), user: Vec::new(), stack: Vec::new(), data: Vec::new() }
    }
}

impl Decoder {
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
        if let Some(registers) = registers {
            flags |= SampleFlags::USER_REGISTERS;
            if registers.abi == RegistersAbi::BITS_32 {
                flags |= SampleFlags::COMPAT;
            }
            for (word, register) in header.registers.iter_mut().zip(WORDS) {
                *word = register.and_then(|register| registers.get(register)).unwrap_or(0);
            }
            header.registers[SYSTEM_CALL] = u64::MAX;
            if let Some(copied) = sample.user_stack {
                let len = copied.dyn_size.min(copied.data.len() as u64) as usize;
                let is_full = len == copied.data.len();
                // The kernel copies until it has enough, or meets an absent page; it does not look where the stack ends.
                flags |= if is_full {
                    SampleFlags::STACK_CUT | SampleFlags::MAPPING_END
                } else {
                    SampleFlags::BOUND_UNKNOWN
                };
                header.stack_bytes = len as u32;
                let start = registers.get(STACK_POINTER).unwrap_or(0);
                header.stack_end = if is_full { start.saturating_add(len as u64) } else { 0 };
                stack = in_one_piece(copied.data.split_at_checked(len)?.0, &mut self.stack);
            }
        }
        header.flags = flags;
        self.user.clear();
        if stack.is_empty() {
            self.user.extend(part(sample, ChainContext::USER));
        }
        if let (None, Some(ip)) = (sample.callchain, sample.ip) {
            match misc.cpu_mode() {
                CpuMode::Kernel => self.kernel.push(ip.0),
                CpuMode::User if stack.is_empty() => self.user.push(ip.0),
                _ => {}
            }
        }
        header.kernel_bytes = (self.kernel.len() * 8) as u16;
        let data = sample.raw.map_or(&[][..], |raw| in_one_piece(raw, &mut self.data));
        // The kernel may sample before it has counted anything.
        let value = sample.period.unwrap_or(1).max(1);
        let (header, kernel, user) = (&self.header, self.kernel.as_slice(), self.user.as_slice());
        Some(SourceRecord { event, header, is_named: false, kernel, stack, user, value, data })
    }
}

/// `PERF_REG_X86_SP`
pub(crate) const STACK_POINTER: u32 = 7;

/// `PERF_REG_X86_IP`
pub(crate) const INSTRUCTION_POINTER: u32 = 8;

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
