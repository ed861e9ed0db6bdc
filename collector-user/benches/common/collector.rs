//! Recordings by the collector that was built with the bench, and the figures that they leave.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// A recording of the whole machine that is under way.
pub(crate) struct Recording {
    pub(crate) child: Child,
    stats: PathBuf,
}

impl Recording {
    /// Starts one that ends by itself after `seconds`. The outputs are files in `folder`.
    pub(crate) fn start(folder: &Path, frequency: u32, seconds: u32, outputs: &[&str]) -> Result<Self> {
        let stats = folder.join("stats.json");
        let mut collector = Command::new(env!("CARGO_BIN_EXE_collector"));
        collector.args(["run", "-F", &frequency.to_string(), "-d", &format!("{seconds}s"), "--stats"]);
        collector.arg(&stats);
        for output in outputs {
            collector.arg("-o").arg(folder.join(output));
        }
        let child = collector.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        Ok(Self { child, stats })
    }

    /// Waits for its end.
    pub(crate) fn figures(self) -> Result<Figures> {
        let output = self.child.wait_with_output()?;
        ensure!(output.status.success(), "collector: {}", String::from_utf8_lossy(&output.stderr));
        Ok(Figures(serde_json::from_slice(&std::fs::read(&self.stats)?)?))
    }
}

/// What `--stats` tells.
pub(crate) struct Figures(Value);

impl Figures {
    /// A count by its place, as `/samples/delivered`.
    pub(crate) fn count(&self, place: &str) -> Result<u64> {
        let count = self.0.pointer(place).and_then(Value::as_u64);
        count.with_context(|| format!("the collector's figures have no {place}"))
    }

    /// The counts of a group, as `stacks`, without those that are 0; the largest first.
    pub(crate) fn counts(&self, group: &str) -> Result<Vec<(&str, u64)>> {
        let all =
            self.0[group].as_object().with_context(|| format!("the collector's figures have no {group}"))?;
        let counts = all.iter().filter_map(|(name, count)| Some((name.as_str(), count.as_u64()?)));
        let mut counts: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Ok(counts)
    }

    pub(crate) fn samples(&self) -> Result<f64> {
        self.number("/samples/delivered")
    }

    fn number(&self, place: &str) -> Result<f64> {
        Ok(self.count(place)? as f64)
    }

    /// CPU time of the collector, user and system.
    pub(crate) fn cpu_us(&self) -> Result<f64> {
        Ok((self.number("/cpu/user_ns")? + self.number("/cpu/system_ns")?) / 1e3)
    }

    /// Time in the BPF programs.
    pub(crate) fn kernel_us(&self) -> Result<f64> {
        Ok(self.number("/bpf/run_ns")? / 1e3)
    }

    /// That of runs without a sample counted in.
    pub(crate) fn kernel_us_per_sample(&self) -> Result<f64> {
        Ok(self.kernel_us()? / self.samples()?)
    }

    /// Stack that was copied.
    pub(crate) fn bytes_per_sample(&self) -> Result<f64> {
        Ok(self.number("/bytes_copied")? / self.samples()?)
    }

    /// What was produced, delivered and lost, how user stacks ended, memory and start: rows of a table.
    pub(crate) fn print_rows(&self) -> Result<()> {
        let lost = self.counts("lost")?;
        println!(
            "| samples produced = delivered + lost | {} = {} + {} ({}) |",
            self.count("/samples/produced")?,
            self.count("/samples/delivered")?,
            total(&lost),
            list(lost.iter().map(|(cause, count)| format!("`{cause}` {count}")))
        );
        let (whole, cut): (Vec<_>, Vec<_>) =
            self.counts("stacks")?.into_iter().partition(|(end, _)| end.starts_with("complete"));
        let all = total(&whole) + total(&cut);
        let share = |count: u64| 100.0 * count as f64 / all as f64;
        let ends = |ends: &[(&str, u64)]| {
            list(ends.iter().map(|(end, count)| format!("`{end}` {count} ({:.2} %)", share(*count))))
        };
        println!("| user stacks that reach their root | {:.2} %: {} |", share(total(&whole)), ends(&whole));
        println!("| the others | {:.2} %: {} |", share(total(&cut)), ends(&cut));
        println!("| peak memory of the collector, MB | {:.1} |", self.number("/peak_rss_bytes")? / 1e6);
        println!("| start to first sample, ms | {:.1} |", self.number("/start_to_first_sample_ns")? / 1e6);
        Ok(())
    }
}

fn total(counts: &[(&str, u64)]) -> u64 {
    counts.iter().map(|(_, count)| count).sum()
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
