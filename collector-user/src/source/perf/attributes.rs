//! How events are asked for. Source of the semantics: `perf_event_open(2)`.

use collector_common::perf::{ByteOrder, ParseConfig, ReadFormat, SampleType};
use collector_common::wire::MAX_KERNEL_FRAMES;
use perf_event_open_sys::bindings::{PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_SOFTWARE, perf_event_attr};

use crate::source::{Rights, Settings, Targets};

/// Bytes of user stack that are copied unless less is asked for. The kernel sets so much room aside for each sample,
/// whatever it copies; what lies beyond is read from the process's memory later, as far as it is unchanged.
const STACK_BYTES: usize = 16 << 10;

/// User registers that are copied: `PERF_REG_X86_AX` to `_IP`, and `_R8` to `_R15` (`arch/x86/include/uapi/asm/perf_regs.h`).
pub(super) const REGISTERS: u64 = 0x00ff_01ff;

/// What every event has in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    stack_bytes: u32,
    kernel: bool,
    /// Events of a process that is going to execute a program start then.
    on_exec: bool,
    /// The kernel counts what it had no room for.
    pub(super) counts_lost: bool,
}

impl Common {
    pub(super) fn of(settings: &Settings, rights: Rights) -> Self {
        let Settings { max_stack, targets: Targets { command, pids, .. }, .. } = settings;
        Self {
            stack_bytes: ((*max_stack).clamp(8, STACK_BYTES) as u32).next_multiple_of(8),
            kernel: rights.kernel,
            on_exec: command.is_some() && pids.is_empty(),
            counts_lost: true,
        }
    }

    /// The sampling clock.
    pub(super) fn clock(self, period_ns: u64) -> perf_event_attr {
        let mut attr = self.event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK.into());
        attr.__bindgen_anon_1.sample_period = period_ns;
        // The kernel throttles an event by its overflows per timer tick, and an idle CPU has no ticks: without this its
        // clock would be stopped, and the CPU go unsampled from its wakeup to its next tick.
        attr.set_exclude_idle(1);
        attr
    }

    /// Any event, with stacks.
    fn event(self, kind: u32, config: u64) -> perf_event_attr {
        let mut attr = perf_event_attr {
            size: size_of::<perf_event_attr>() as u32,
            type_: kind,
            config,
            sample_type: self.sample_type().0,
            read_format: self.read_format().0,
            sample_regs_user: REGISTERS,
            sample_stack_user: self.stack_bytes,
            clockid: libc::CLOCK_MONOTONIC,
            ..perf_event_attr::default()
        };
        attr.set_disabled(1);
        attr.set_sample_id_all(1);
        attr.set_use_clockid(1);
        attr.set_exclude_callchain_user(1);
        attr.set_exclude_kernel((!self.kernel).into());
        attr.set_exclude_hv((!self.kernel).into());
        attr.set_enable_on_exec(self.on_exec.into());
        // Without a number of bytes, the ring's reader is woken when it is half full.
        attr.set_watermark(1);
        attr
    }

    fn sample_type(self) -> SampleType {
        let always = SampleType::IDENTIFIER
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::REGS_USER
            | SampleType::STACK_USER;
        if self.kernel { always | SampleType::CALLCHAIN } else { always }
    }

    fn read_format(self) -> ReadFormat {
        if self.counts_lost { ReadFormat::LOST } else { ReadFormat(0) }
    }

    /// How the records of all these events are laid out.
    pub(super) fn layout(self) -> ParseConfig {
        ParseConfig {
            sample_type: self.sample_type(),
            read_format: self.read_format(),
            sample_regs_user: REGISTERS,
            sample_id_all: true,
            byte_order: ByteOrder::NATIVE,
            ..ParseConfig::default()
        }
    }

    /// Bytes of a sample with the deepest kernel stack, without data of its own.
    pub(super) fn largest_sample(self) -> u32 {
        const REST: u32 = 512;
        self.stack_bytes + 8 * MAX_KERNEL_FRAMES as u32 + REST
    }

    /// Whether events start by themselves.
    pub(super) fn starts_on_exec(self) -> bool {
        self.on_exec
    }
}
