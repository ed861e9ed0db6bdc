//! What a file says of its events. All have their records' ids at the same place, and their samples have the same parts but for
//! data of their own.

use collector_common::perf::{Attr, AttrFlags, SampleType};
use collector_common::wire::{MAX_STACK_PAGES, PAGE_SIZE};
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT,
};

use super::sample::REGISTERS;
use crate::source::Trigger;

/// The parts of every sample.
const PARTS: SampleType = SampleType::IDENTIFIER
    .or(SampleType::IP)
    .or(SampleType::TID)
    .or(SampleType::TIME)
    .or(SampleType::CPU)
    .or(SampleType::PERIOD)
    .or(SampleType::CALLCHAIN)
    .or(SampleType::REGS_USER)
    .or(SampleType::STACK_USER);

/// Largest copy of a stack that may be asked for: `perf_event_open` refuses more.
const LARGEST_STACK: u32 = 65_528;

const _: () = assert!(MAX_STACK_PAGES * PAGE_SIZE >= LARGEST_STACK as usize);

/// The sampling clock, with room for the [lines of outer frames](crate::records::outer).
pub(super) fn clock(period: u64) -> Attr {
    let attr = with_stack(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK.into());
    Attr { sample_period: period, sample_type: attr.sample_type | SampleType::RAW, ..attr }
}

/// An event with a closure or samples.
pub(super) fn event(trigger: Trigger) -> Attr {
    let (kind, config) = trigger.attributes();
    let mut attr = Attr { sample_period: 1, ..with_stack(kind, config) };
    if kind == PERF_TYPE_TRACEPOINT || matches!(trigger, Trigger::OwnSource | Trigger::BpfMap) {
        attr.sample_type = attr.sample_type | SampleType::RAW;
    }
    attr
}

/// What the records that are no samples are of.
pub(super) fn dummy() -> Attr {
    let mut attr = with_stack(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.into());
    let told = [
        AttrFlags::MMAP,
        AttrFlags::MMAP2,
        AttrFlags::COMM,
        AttrFlags::COMM_EXEC,
        AttrFlags::TASK,
        AttrFlags::KSYMBOL,
    ];
    attr.flags = told.into_iter().fold(attr.flags, AttrFlags::or);
    attr
}

fn with_stack(kind: u32, config: u64) -> Attr {
    let flags = [AttrFlags::SAMPLE_ID_ALL, AttrFlags::USE_CLOCKID, AttrFlags::EXCLUDE_CALLCHAIN_USER];
    Attr {
        kind,
        config,
        sample_type: PARTS,
        sample_regs_user: REGISTERS,
        sample_stack_user: LARGEST_STACK,
        clockid: libc::CLOCK_MONOTONIC,
        flags: flags.into_iter().fold(AttrFlags::default(), AttrFlags::or),
        ..Attr::default()
    }
}
