//! The recorders that are measured.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::workload::Workload;

/// Who records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorder {
    Collector,
    /// `perf record` without call graphs.
    PerfPlain,
    /// `perf record --call-graph dwarf`, which unwinds nothing yet.
    PerfDwarf,
    Samply,
}

/// What a recording cost.
pub(crate) struct Cost {
    pub(crate) cpu_us: f64,
    pub(crate) samples: f64,
    pub(crate) stats: Value,
}

impl fmt::Display for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Collector => "collector, to pprof",
            Self::PerfPlain => "perf record",
            Self::PerfDwarf => "perf record --call-graph dwarf,8192",
            Self::Samply => "samply record",
        })
    }
}

impl Recorder {
    /// Records the whole machine; `None` where the recorder is not installed.
    pub(crate) fn record(self, workload: &Workload, seconds: u32) -> Result<Option<Cost>> {
        let output = workload.file("peer.out");
        let output = output.display();
        // Both processors are busy for the whole time.
        let samples = 997.0 * 2.0 * f64::from(seconds);
        let line = match self {
            Self::Collector => return collector(workload, seconds, 997).map(Some),
            Self::PerfPlain => {
                format!("perf record -q --buildid-mmap -e cpu-clock -F 997 -a -o {output} sleep {seconds}")
            }
            Self::PerfDwarf => format!(
                "perf record -q --buildid-mmap -e cpu-clock -F 997 -a --call-graph dwarf,8192 -o {output} sleep {seconds}"
            ),
            Self::Samply => {
                format!("samply record --save-only --no-open -r 997 -a -d {seconds} -o {output}.json.gz")
            }
        };
        let program = line.split(' ').next().unwrap_or_default();
        if !is_installed(program) {
            return Ok(None);
        }
        Ok(Some(Cost { cpu_us: cpu_us(&line)?, samples, stats: Value::Null }))
    }
}

/// Runs the collector that was built with this bench.
pub(crate) fn collector(workload: &Workload, seconds: u32, frequency: u32) -> Result<Cost> {
    let stats = workload.file("stats.json");
    let output = Command::new(env!("CARGO_BIN_EXE_collector"))
        .args(["run", "-F", &frequency.to_string(), "-d", &format!("{seconds}s"), "-o"])
        .arg(workload.file("out.pb.gz"))
        .arg("--stats")
        .arg(&stats)
        .output()?;
    ensure!(output.status.success(), "collector: {}", String::from_utf8_lossy(&output.stderr));
    let stats: Value = serde_json::from_slice(&std::fs::read(&stats)?)?;
    let number = |a: &str, b: &str| stats[a][b].as_f64().with_context(|| format!("no {a}.{b}"));
    let cpu_us = (number("cpu", "user_ns")? + number("cpu", "system_ns")?) / 1e3;
    Ok(Cost { cpu_us, samples: number("samples", "delivered")?, stats })
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}

/// CPU time of a command, as bash's `times` tells it: its second line is of the children, user then system.
fn cpu_us(line: &str) -> Result<f64> {
    let output = Command::new("bash")
        .args(["-c", &format!("{line} >/dev/null 2>&1 || exit 1; times")])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "`{line}` failed");
    let text = String::from_utf8(output.stdout)?;
    let children = text.lines().nth(1).context("bash's times has no second line")?;
    children.split_whitespace().map(microseconds).sum()
}

/// `1m2.345s` in microseconds.
fn microseconds(text: &str) -> Result<f64> {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').context("not a time of bash's")?;
    Ok((minutes.parse::<f64>()? * 60.0 + seconds.parse::<f64>()?) * 1e6)
}
