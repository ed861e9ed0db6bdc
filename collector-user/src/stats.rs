//! The figures of a recording, as `--stats FILE.json` gives them. The keys are fixed: scripts depend on them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use collector_common::loss::{Ledger, LossCause};
use serde_json::{Value, json};

/// CPU time and memory of a process so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Time in user code.
    pub user: Duration,
    /// Time in the kernel.
    pub system: Duration,
    /// Peak resident memory in bytes.
    pub peak_rss: u64,
}

/// Figures of one recording.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// What recorded: `ebpf`.
    pub backend: &'static str,
    /// Kernel release.
    pub kernel: String,
    /// From start to end of the sampling.
    pub duration_ns: u64,
    /// Samples per second and CPU.
    pub frequency_hz: u32,
    /// Delivered and lost samples.
    pub ledger: Ledger,
    /// User stacks by how they ended.
    pub stacks: BTreeMap<&'static str, u64>,
    /// Frames of all stacks.
    pub frames: u64,
    /// Bytes of stack that the kernel side copied.
    pub bytes_copied: u64,
    /// What the collector itself has used.
    pub usage: Usage,
    /// Time in the BPF programs.
    pub bpf_run_ns: u64,
    /// Runs of the BPF programs.
    pub bpf_run_count: u64,
    /// From the start of `main` to the first sample delivered; `None` without samples.
    pub start_to_first_sample_ns: Option<u64>,
}

impl Stats {
    /// What was lost and how user stacks ended, a line each, for people.
    pub fn account(&self) -> Vec<String> {
        let mut lines = vec![self.account_of_samples()];
        lines.extend(self.account_of_stacks());
        lines
    }

    fn account_of_samples(&self) -> String {
        let causes = self.ledger.causes().filter(|(_, count)| *count > 0);
        let causes: Vec<String> = causes.map(|(cause, count)| format!("{cause} {count}")).collect();
        if causes.is_empty() {
            "none lost".to_owned()
        } else {
            format!("{} lost ({})", self.ledger.total_lost(), causes.join(", "))
        }
    }

    /// `None` where no user stack was recorded.
    fn account_of_stacks(&self) -> Option<String> {
        const WHOLE: [&str; 2] = ["complete", "completed_later"];
        let total: u64 = self.stacks.values().sum();
        let share = |count: u64| 100.0 * count as f64 / total as f64;
        let [exact, late] = WHOLE.map(|end| self.stacks.get(end).copied().unwrap_or(0));
        let mut line = format!("{:.2} % of user stacks are complete", share(exact + late));
        if late > 0 {
            let _ = write!(line, " ({:.2} % with outer frames read after the sample)", share(late));
        }
        let cut = self.stacks.iter().filter(|(end, count)| !WHOLE.contains(*end) && **count > 0);
        let cut: Vec<String> = cut.map(|(end, count)| format!("{end} {count}")).collect();
        if !cut.is_empty() {
            let _ = write!(line, "; cut: {}", cut.join(", "));
        }
        (total > 0).then_some(line)
    }

    /// As JSON. `produced = delivered + sum(lost)`, always.
    pub fn to_json(&self) -> Value {
        let mut stacks = self.stacks.clone();
        for always in ["complete", "truncated"] {
            stacks.entry(always).or_default();
        }
        let lost: BTreeMap<&str, u64> =
            self.ledger.causes().map(|(cause, count): (LossCause, u64)| (cause.name(), count)).collect();
        json!({
            "backend": self.backend,
            "kernel": self.kernel,
            "duration_ns": self.duration_ns,
            "frequency_hz": self.frequency_hz,
            "samples": {"produced": self.ledger.produced(), "delivered": self.ledger.delivered()},
            "lost": lost,
            "stacks": stacks,
            "frames": self.frames,
            "bytes_copied": self.bytes_copied,
            "cpu": {"user_ns": self.usage.user.as_nanos() as u64, "system_ns": self.usage.system.as_nanos() as u64},
            "bpf": {"run_ns": self.bpf_run_ns, "run_count": self.bpf_run_count},
            "peak_rss_bytes": self.usage.peak_rss,
            "start_to_first_sample_ns": self.start_to_first_sample_ns,
        })
    }
}
