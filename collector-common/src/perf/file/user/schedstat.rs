//! `/proc/schedstat`, as `perf sched stats record` keeps it (Linux 7.0).
//!
//! What the counters are: `Documentation/scheduler/sched-stats.rst`, and `tools/lib/perf/include/perf/schedstat-v*.h`.

use super::{Numbers, UserBody};
use crate::perf::Misc;
use crate::perf::fields::Fields;
use crate::perf::write::Writer;

/// `PERF_RECORD_SCHEDSTAT_CPU`: a line on a CPU, in versions 15 to 17.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedstatCpu {
    /// When, in jiffies.
    pub timestamp: u64,
    /// The CPU.
    pub cpu: u32,
    /// The version of `/proc/schedstat`.
    pub version: u16,
    /// How often a task yielded.
    pub yields: u32,
    /// Not in use by the kernel.
    pub legacy: u32,
    /// How often the scheduler ran.
    pub schedules: u32,
    /// How often it left the CPU idle.
    pub idles: u32,
    /// How often a task was woken up.
    pub wakeups: u32,
    /// How often one of this CPU.
    pub local_wakeups: u32,
    /// How long tasks ran, in nanoseconds.
    pub run_time: u64,
    /// How long tasks waited for the CPU, in nanoseconds.
    pub run_delay: u64,
    /// How many time slices they had.
    pub time_slices: u64,
}

impl<'a> UserBody<'a> for SchedstatCpu {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let (timestamp, cpu, version) = (fields.u64()?, fields.u32()?, fields.u16()?);
        let _padding = fields.u16()?;
        // A version that is not known may have other counters.
        if !(15..=17).contains(&version) {
            return None;
        }
        Some(Self {
            timestamp,
            cpu,
            version,
            yields: fields.u32()?,
            legacy: fields.u32()?,
            schedules: fields.u32()?,
            idles: fields.u32()?,
            wakeups: fields.u32()?,
            local_wakeups: fields.u32()?,
            run_time: fields.u64()?,
            run_delay: fields.u64()?,
            time_slices: fields.u64()?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u64(self.timestamp);
        writer.u32(self.cpu);
        writer.u16(self.version);
        writer.u16(0);
        for number in [self.yields, self.legacy, self.schedules, self.idles, self.wakeups, self.local_wakeups]
        {
            writer.u32(number);
        }
        for number in [self.run_time, self.run_delay, self.time_slices] {
            writer.u64(number);
        }
    }
}

/// `PERF_RECORD_SCHEDSTAT_DOMAIN`: a line on a domain, of a CPU, in versions 15 to 17.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedstatDomain<'a> {
    /// When, in jiffies.
    pub timestamp: u64,
    /// The CPU.
    pub cpu: u32,
    /// The version of `/proc/schedstat`.
    pub version: u16,
    /// The domain's number.
    pub domain: u16,
    /// The counters, 32 bits each, in the order of the line: 36, and 45 from version 17 on.
    pub counters: Numbers<'a>,
}

impl<'a> UserBody<'a> for SchedstatDomain<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let (timestamp, cpu, version, domain) = (fields.u64()?, fields.u32()?, fields.u16()?, fields.u16()?);
        let count = match version {
            15 | 16 => 36,
            17 => 45,
            _ => return None,
        };
        let counters = Numbers::read(fields, 4, count)?;
        Some(Self { timestamp, cpu, version, domain, counters })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u64(self.timestamp);
        writer.u32(self.cpu);
        writer.u16(self.version);
        writer.u16(self.domain);
        self.counters.write(writer);
    }
}
