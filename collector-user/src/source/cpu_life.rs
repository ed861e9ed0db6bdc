//! Whether the events of a CPU go on. Those that are a CPU's, and no thread's, end when it goes offline, and are not there when
//! it comes back: what they counted stands still. Nothing else tells it of events that happen rarely.

use std::io;

use perf_event_open_sys::bindings::{PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_SOFTWARE, perf_event_attr};

use super::scope::Scope;
use crate::sys::perf_event::{PerfEvent, Whom};

/// A clock of the CPU that samples nothing; none where the events are threads' own, which outlive it.
#[derive(Debug)]
pub(crate) struct CpuLife {
    clock: Option<PerfEvent>,
    seen: u64,
}

impl CpuLife {
    /// Starts the clock for events that are opened now.
    pub(crate) fn open(scope: &Scope, cpu: u32) -> io::Result<Self> {
        let attr = perf_event_attr {
            size: size_of::<perf_event_attr>() as u32,
            type_: PERF_TYPE_SOFTWARE,
            config: PERF_COUNT_SW_CPU_CLOCK.into(),
            ..perf_event_attr::default()
        };
        let clock = match scope {
            Scope::Processes(_) => None,
            Scope::Machine | Scope::Cgroup(_) => Some(PerfEvent::open(&attr, Whom::Anyone, cpu)?),
        };
        Ok(Self { clock, seen: 0 })
    }

    /// Whether the events have gone on since this was last asked.
    pub(crate) fn goes_on(&mut self) -> bool {
        let Some(clock) = &self.clock else { return true };
        let count = clock.count().unwrap_or(self.seen);
        std::mem::replace(&mut self.seen, count) < count
    }
}
