//! What is set besides a session's properties.

#![cfg_attr(
    test,
    allow(clippy::missing_const_for_thread_local, reason = "it is; for Windows that is not seen")
)]

#[cfg(test)]
use std::cell::{Cell, RefCell};

use collector_common::event::Guid;
use windows_sys::Win32::System::Diagnostics::Etw::{
    CLASSIC_EVENT_ID, TRACE_PROFILE_INTERVAL, TRACE_QUERY_INFO_CLASS, TraceQueryInformation,
    TraceSampledProfileIntervalInfo, TraceSetInformation, TraceStackTracingInfo,
    TraceSystemTraceEnableFlagsInfo,
};
use windows_sys::Win32::System::Threading::{ALL_PROCESSOR_GROUPS, GetActiveProcessorCount};

use super::control::Handle;
use super::to_windows;
use crate::plan::{Flags, SampleInterval};
use crate::session::Win32Error;

/// CPUs that the machine has.
pub(in crate::session) fn cpus() -> u32 {
    // SAFETY: it takes a number and gives one.
    unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) }.max(1)
}

/// Which of the kernel's events have stacks from now on, by class and opcode.
pub(in crate::session) fn set_stacks(
    handle: Handle,
    events: impl IntoIterator<Item = (Guid, u8)>,
) -> Result<(), Win32Error> {
    let events: Vec<CLASSIC_EVENT_ID> = events
        .into_iter()
        .map(|(class, opcode)| CLASSIC_EVENT_ID {
            EventGuid: to_windows(class),
            Type: opcode,
            Reserved: [0; 7],
        })
        .collect();
    set(handle, TraceStackTracingInfo, &events)
}

/// Which kinds of events the kernel tells from now on: the first 64 bits of its mask, of which the upper half is for other things.
pub(in crate::session) fn set_flags(handle: Handle, flags: Flags) -> Result<(), Win32Error> {
    let set = set(handle, TraceSystemTraceEnableFlagsInfo, &[u64::from(flags.0)]);
    #[cfg(test)]
    let set = made_up(flags, set);
    set
}

#[cfg(test)]
thread_local! {
    static FLAGS: RefCell<Vec<(Flags, usize)>> = const { RefCell::new(Vec::new()) };
    static ANSWER: Cell<Option<u32>> = const { Cell::new(None) };
}

/// What sessions of this thread answer that are told flags, in place of Windows' own answer.
#[cfg(test)]
pub(in crate::session) fn let_flags_be_answered(code: Option<u32>) {
    ANSWER.set(code);
}

/// Flags that sessions of this thread were told since it was asked the last time, with how many providers had been told something by then.
#[cfg(test)]
pub(in crate::session) fn told_flags() -> Vec<(Flags, usize)> {
    FLAGS.take()
}

#[cfg(test)]
fn made_up(flags: Flags, set: Result<(), Win32Error>) -> Result<(), Win32Error> {
    FLAGS.with_borrow_mut(|told| told.push((flags, super::enable::count_told())));
    ANSWER.get().map_or(set, Win32Error::check)
}

/// How often CPUs are sampled, for the whole machine.
pub(in crate::session) fn set_interval(units: u32) -> Result<(), Win32Error> {
    set(Handle(0), TraceSampledProfileIntervalInfo, &[TRACE_PROFILE_INTERVAL { Source: 0, Interval: units }])
}

/// How often they are, in units of 100 ns.
pub(in crate::session) fn interval() -> Result<u32, Win32Error> {
    let mut told = TRACE_PROFILE_INTERVAL::default();
    let (size, mut length) = (size_of_val(&told) as u32, 0);
    // SAFETY: what is told is written to a variable of the size that is given, which outlives the call.
    let code = unsafe {
        TraceQueryInformation(
            Handle(0).windows(),
            TraceSampledProfileIntervalInfo,
            (&raw mut told).cast(),
            size,
            &raw mut length,
        )
    };
    Win32Error::check(code)?;
    Ok(told.Interval.clamp(1, SampleInterval::LONGEST.units()))
}

/// `T` is what Windows takes for `class`: plain numbers, without padding.
fn set<T: Copy>(handle: Handle, class: TRACE_QUERY_INFO_CLASS, items: &[T]) -> Result<(), Win32Error> {
    let size = u32::try_from(size_of_val(items)).map_err(|_| Win32Error::INVALID_PARAMETER)?;
    // SAFETY: the items are as many bytes as are given, all of them written, and outlive the call; a wrong handle is an error.
    let code = unsafe { TraceSetInformation(handle.windows(), class, items.as_ptr().cast(), size) };
    Win32Error::check(code)
}

#[cfg(test)]
mod tests {
    use windows_sys::Win32::System::Diagnostics::Etw;

    use super::*;
    use crate::plan::{Level, MOST_IDS, MOST_PIDS};

    #[test]
    fn flags_and_limits_of_plans_are_those_of_windows_headers() {
        let flags = [
            (Flags::PROCESS, Etw::EVENT_TRACE_FLAG_PROCESS),
            (Flags::THREAD, Etw::EVENT_TRACE_FLAG_THREAD),
            (Flags::IMAGE_LOAD, Etw::EVENT_TRACE_FLAG_IMAGE_LOAD),
            (Flags::PROCESS_COUNTERS, Etw::EVENT_TRACE_FLAG_PROCESS_COUNTERS),
            (Flags::CSWITCH, Etw::EVENT_TRACE_FLAG_CSWITCH),
            (Flags::SYSTEMCALL, Etw::EVENT_TRACE_FLAG_SYSTEMCALL),
            (Flags::DISK_IO, Etw::EVENT_TRACE_FLAG_DISK_IO),
            (Flags::DISK_FILE_IO, Etw::EVENT_TRACE_FLAG_DISK_FILE_IO),
            (Flags::DISK_IO_INIT, Etw::EVENT_TRACE_FLAG_DISK_IO_INIT),
            (Flags::DISPATCHER, Etw::EVENT_TRACE_FLAG_DISPATCHER),
            (Flags::MEMORY_PAGE_FAULTS, Etw::EVENT_TRACE_FLAG_MEMORY_PAGE_FAULTS),
            (Flags::MEMORY_HARD_FAULTS, Etw::EVENT_TRACE_FLAG_MEMORY_HARD_FAULTS),
            (Flags::VIRTUAL_ALLOC, Etw::EVENT_TRACE_FLAG_VIRTUAL_ALLOC),
            (Flags::NETWORK_TCPIP, Etw::EVENT_TRACE_FLAG_NETWORK_TCPIP),
            (Flags::PROFILE, Etw::EVENT_TRACE_FLAG_PROFILE),
            (Flags::FILE_IO, Etw::EVENT_TRACE_FLAG_FILE_IO),
            (Flags::FILE_IO_INIT, Etw::EVENT_TRACE_FLAG_FILE_IO_INIT),
        ];
        for (flag, number) in flags {
            assert_eq!(flag.0, number, "{flag}");
        }
        assert_eq!(MOST_IDS as u32, Etw::MAX_EVENT_FILTER_EVENT_ID_COUNT);
        assert_eq!(MOST_PIDS as u32, Etw::MAX_EVENT_FILTER_PID_COUNT);
        assert_eq!(Level::ALL.map(|(level, _)| level.number()), [1, 2, 3, 4, 5]);
    }
}
