//! How events are asked for. Source of the semantics: `perf_event_open(2)`.

use std::ffi::CString;

use collector_common::perf::{ByteOrder, ParseConfig, ReadFormat, SampleType};
use collector_common::wire::MAX_KERNEL_FRAMES;
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_BPF_OUTPUT, PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_HARDWARE, PERF_TYPE_RAW, PERF_TYPE_SOFTWARE,
    PERF_TYPE_TRACEPOINT, perf_event_attr,
};

use crate::kernel::Release;
use crate::source::shared_ring::Wanted;
use crate::source::{EventIndex, EventRequest, Rights, Settings, Targets, Trigger};

/// Most bytes of user stack that are copied: `perf_event_open` refuses more.
const LARGEST_STACK: usize = 65_528;

/// The same for whom memory for rings is short. The kernel sets so much room aside for each sample, whatever it copies; what
/// lies beyond is read from the process's memory later, as far as it is unchanged.
const STACK_WITHOUT_RIGHTS: usize = 16 << 10;

/// The same for events other than the clock, which come in bursts.
const STACK_OF_EVENTS: u32 = 8 << 10;

/// One CPU's ring for whom memory is short: with it, the sideband's fit into the 516 KiB a CPU that any user may lock.
const RING_WITHOUT_RIGHTS: u32 = 256 << 10;

/// User registers that are copied: `PERF_REG_X86_AX` to `_IP`, and `_R8` to `_R15` (`arch/x86/include/uapi/asm/perf_regs.h`).
pub(super) const REGISTERS: u64 = 0x00ff_01ff;

/// From which kernel on filters are what `collector_common::event::Event::kernel_filter` takes them for.
const FILTERS: Release = Release::new(4, 17);

/// What every sample has. Records of all events of a ring begin and end alike for it: an event's number comes first in a
/// sample, and all others end in the same four numbers.
pub(super) const ALWAYS: SampleType =
    SampleType::IDENTIFIER.or(SampleType::TID).or(SampleType::TIME).or(SampleType::CPU);

/// An event as it is opened for each thread or CPU.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) index: EventIndex,
    /// `None` for the sampling clock.
    pub(super) trigger: Option<Trigger>,
    pub(super) attr: perf_event_attr,
    pub(super) layout: ParseConfig,
    /// Of a tracepoint, which occurrences are recorded.
    filter: Option<CString>,
}

impl Kind {
    /// What is opened for each thread or CPU.
    pub(super) fn wanted(&self) -> Wanted {
        Wanted { attr: self.attr, filter: self.filter.clone() }
    }

    /// Whether each time that it happens is a record.
    pub(super) fn records_each(&self) -> bool {
        self.trigger.is_some_and(|trigger| !trigger.is_of_processor())
    }
}

/// What every event has in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    stack_bytes: u32,
    /// Bytes that a CPU's ring may have.
    pub(super) largest_ring: u32,
    kernel: bool,
    /// Events of a process that is going to execute a program start then.
    on_exec: bool,
    /// The kernel counts what it had no room for.
    pub(super) counts_lost: bool,
}

impl Common {
    pub(super) fn of(settings: &Settings, rights: Rights) -> Self {
        let most = if rights.memory { LARGEST_STACK } else { STACK_WITHOUT_RIGHTS };
        let Settings { max_stack, targets: Targets { command, pids, .. }, .. } = settings;
        Self {
            stack_bytes: ((*max_stack).clamp(8, most) as u32).next_multiple_of(8),
            largest_ring: if rights.memory { u32::MAX } else { RING_WITHOUT_RIGHTS },
            kernel: rights.kernel,
            on_exec: command.is_some() && pids.is_empty(),
            counts_lost: true,
        }
    }

    /// The sampling clock.
    pub(super) fn clock(self, period_ns: u64) -> Kind {
        let mut kind =
            self.kind(EventIndex::CLOCK, (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK.into()), true);
        kind.attr.__bindgen_anon_1.sample_period = period_ns;
        // The kernel throttles an event by its overflows per timer tick, and an idle CPU has no ticks: without this its
        // clock would be stopped, and the CPU go unsampled from its wakeup to its next tick.
        kind.attr.set_exclude_idle(1);
        kind
    }

    /// An event that is asked for: each occurrence, or of what the processor counts so many a second.
    pub(super) fn event(self, request: &EventRequest, frequency: u32) -> Kind {
        let mut kind = self.kind(request.index, request.trigger.attributes(), request.stack);
        kind.trigger = Some(request.trigger);
        // Before, the kernel takes some names for others than the event's own fields.
        if Release::of_this_kernel() >= FILTERS {
            kind.filter.clone_from(&request.filter);
        }
        kind.attr.sample_stack_user = kind.attr.sample_stack_user.min(STACK_OF_EVENTS);
        if request.trigger.is_of_processor() {
            kind.attr.set_freq(1);
            kind.attr.__bindgen_anon_1.sample_freq = frequency.into();
        } else {
            kind.attr.__bindgen_anon_1.sample_period = 1;
        }
        kind
    }

    fn kind(self, index: EventIndex, (event_type, config): (u32, u64), stack: bool) -> Kind {
        let layout = self.layout((event_type, config), stack);
        let mut attr = perf_event_attr {
            size: size_of::<perf_event_attr>() as u32,
            type_: event_type,
            config,
            sample_type: layout.sample_type.0,
            read_format: layout.read_format.0,
            clockid: libc::CLOCK_MONOTONIC,
            ..perf_event_attr::default()
        };
        if stack {
            attr.sample_regs_user = REGISTERS;
            attr.sample_stack_user = self.stack_bytes;
        }
        // A tracepoint is in the kernel, whoever is meant by it.
        let excludes_kernel = !self.kernel && event_type != PERF_TYPE_TRACEPOINT;
        attr.set_disabled(1);
        attr.set_sample_id_all(1);
        attr.set_use_clockid(1);
        attr.set_exclude_callchain_user(1);
        attr.set_exclude_kernel(excludes_kernel.into());
        attr.set_exclude_hv((!self.kernel).into());
        attr.set_enable_on_exec(self.on_exec.into());
        // Without a number of bytes, the ring's reader is woken when it is half full.
        attr.set_watermark(1);
        Kind { index, trigger: None, attr, layout, filter: None }
    }

    /// How the records of an event are laid out.
    fn layout(self, (event_type, config): (u32, u64), stack: bool) -> ParseConfig {
        const OF_PROGRAMS: u64 = PERF_COUNT_SW_BPF_OUTPUT as u64;
        let mut sample_type = ALWAYS;
        if stack {
            sample_type = sample_type | SampleType::REGS_USER | SampleType::STACK_USER;
        }
        if stack && self.kernel {
            sample_type = sample_type | SampleType::CALLCHAIN;
        }
        match (event_type, config) {
            // Some tracepoints count by a weight, as `sched:sched_stat_runtime` does by nanoseconds: without its period, such an
            // occurrence would be a record for each of them.
            (PERF_TYPE_TRACEPOINT, _) => sample_type = sample_type | SampleType::RAW | SampleType::PERIOD,
            (PERF_TYPE_SOFTWARE, OF_PROGRAMS) => sample_type = sample_type | SampleType::RAW,
            // The kernel changes their period as it goes.
            (PERF_TYPE_HARDWARE | PERF_TYPE_RAW, _) => sample_type = sample_type | SampleType::PERIOD,
            _ => {}
        }
        ParseConfig {
            sample_type,
            read_format: if self.counts_lost { ReadFormat::LOST } else { ReadFormat(0) },
            sample_regs_user: if stack { REGISTERS } else { 0 },
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
