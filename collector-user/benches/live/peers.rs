//! The recorders that are measured.

use std::fmt;

use anyhow::Result;

use crate::collector::Recording;
use crate::cpu::cpu_us;
use crate::workload::{Busy, PROGRAMS, Workload};

/// Samples per second and CPU.
pub(crate) const FREQUENCY: u32 = 997;

/// Who records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorder {
    Collector,
    /// `perf record` without call graphs.
    PerfPlain,
    /// `perf record --call-graph dwarf`, which unwinds nothing yet.
    PerfDwarf,
    /// `samply record`, which unwinds as it records and looks no name up. On Linux it records what it starts, not
    /// the machine.
    Samply,
}

/// What a recording cost.
pub(crate) struct Cost {
    pub(crate) cpu_us: f64,
    pub(crate) samples: f64,
}

impl fmt::Display for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Collector => "collector, to pprof",
            Self::PerfPlain => "perf record",
            Self::PerfDwarf => "perf record --call-graph dwarf,8192",
            Self::Samply => "samply record, of these programs alone",
        })
    }
}

impl Recorder {
    /// Records the busy programs for some seconds.
    pub(crate) fn record(self, workload: &Workload, seconds: u32) -> Result<Cost> {
        let output = workload.file("peer.out");
        let output = output.display();
        let perf = |options: &str| {
            let _busy = Busy::start(workload, f64::from(seconds) + 3.0, 0)?;
            let clock = format!("-e cpu-clock -F {FREQUENCY}");
            cpu_us(&format!("perf record -q --buildid-mmap {clock} -a {options} -o {output} sleep {seconds}"))
        };
        let cpu_us = match self {
            Self::Collector => {
                let _busy = Busy::start(workload, f64::from(seconds) + 3.0, 0)?;
                let recording = Recording::start(workload.folder(), FREQUENCY, seconds, &["out.pb.gz"])?;
                let figures = recording.figures()?;
                return Ok(Cost { cpu_us: figures.cpu_us()?, samples: figures.samples()? });
            }
            Self::PerfPlain => perf("")?,
            Self::PerfDwarf => perf("--call-graph dwarf,8192")?,
            Self::Samply => cpu_us(&samply(workload, seconds)?)?,
        };
        // All programs are busy for the whole time, on a CPU each.
        let samples = f64::from(FREQUENCY) * PROGRAMS as f64 * f64::from(seconds);
        Ok(Cost { cpu_us, samples })
    }
}

/// Samply with programs that it starts. They are orphans when their shell ends, so that their CPU time is not counted
/// as samply's; it records until they end.
///
/// Samply 0.13 takes any failure to open the hardware's cycle counter for a lack of permission and gives up where
/// `perf_event_paranoid` is above 1, before it tries `cpu-clock`. It reads that from a file of its own here.
fn samply(workload: &Workload, seconds: u32) -> Result<String> {
    let paranoid = workload.file("paranoid");
    std::fs::write(&paranoid, "1\n")?;
    let output = workload.file("samply.json.gz");
    let program = workload.file("busy");
    let programs = format!("{} {seconds} 0 & ", program.display()).repeat(PROGRAMS);
    Ok(format!(
        "unshare --mount bash -c 'mount --bind {} /proc/sys/kernel/perf_event_paranoid && \
         samply record --save-only --no-open -r {FREQUENCY} -o {} -- sh -c \"{programs}\"'",
        paranoid.display(),
        output.display()
    ))
}
