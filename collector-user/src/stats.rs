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

/// What the BPF programs could not read or learn, in samples that were delivered all the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Pages of user stacks that were not in memory.
    pub absent_pages: u64,
    /// Times that the end of a stack was not told, because the mappings of its process were being changed.
    pub busy_mappings: u64,
    /// Samples of user threads without their registers.
    pub no_registers: u64,
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
    /// Whether there were more, which nobody knows of: the end of what was recorded is missing.
    pub is_cut: bool,
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
    /// What the BPF programs could not read or learn.
    pub bpf_faults: Faults,
    /// From the start of `main` to the first sample delivered; `None` without samples.
    pub start_to_first_sample_ns: Option<u64>,
}

/// The end of a stack that came as addresses: nobody tells how its walk ended.
pub const GIVEN: &str = "walked_when_recorded";

/// The end of a stack of which there was a copy, but no registers that a walk here could begin with; or whose addresses were
/// to come later, and never did.
pub const NOT_WALKED: &str = "not_walked";

impl Stats {
    /// What was lost and how user stacks ended, a line each, for people.
    pub fn account(&self) -> Vec<String> {
        let nobody_knows = self.is_cut && self.ledger.total_lost() == 0;
        let lost =
            if nobody_knows { "how many were lost is not known".to_owned() } else { self.ledger.to_string() };
        let mut lines = vec![lost];
        lines.extend(self.account_of_stacks());
        lines
    }

    /// What the BPF programs could not read or learn, for people; `None` where they met nothing unusual. What it did to
    /// stacks is in [`Self::account`].
    pub fn faults(&self) -> Option<String> {
        let Faults { absent_pages, busy_mappings, no_registers } = self.bpf_faults;
        let faults = [
            (absent_pages, "pages of stacks were not in memory"),
            (busy_mappings, "ends of stacks were not told"),
            (no_registers, "samples had no user registers"),
        ];
        let faults = faults.into_iter().filter(|(count, _)| *count > 0);
        let faults: Vec<String> = faults.map(|(count, what)| format!("{count} {what}")).collect();
        (!faults.is_empty()).then(|| format!("in the kernel: {}", faults.join(", ")))
    }

    /// `None` where no user stack was recorded.
    fn account_of_stacks(&self) -> Option<String> {
        const WHOLE: [(&str, &str); 3] = [
            ("complete", ""),
            ("completed_later", "with outer frames read after the sample"),
            ("completed_by_guesses", "by guesses where code has no unwind information"),
        ];
        let given = self.stacks.get(GIVEN).copied().unwrap_or(0);
        let total = self.stacks.values().sum::<u64>() - given;
        let share = |count: u64| 100.0 * count as f64 / total as f64;
        let whole = WHOLE.map(|(end, _)| self.stacks.get(end).copied().unwrap_or(0));
        let mut line = format!("{:.2} % of user stacks are complete", share(whole.iter().sum()));
        let with_doubt = WHOLE.iter().zip(whole).skip(1).filter(|(_, count)| *count > 0);
        let with_doubt: Vec<String> =
            with_doubt.map(|((_, how), count)| format!("{:.2} % {how}", share(count))).collect();
        if !with_doubt.is_empty() {
            let _ = write!(line, " ({})", with_doubt.join(", "));
        }
        let is_whole = |end: &str| end == GIVEN || WHOLE.iter().any(|(name, _)| *name == end);
        let cut = self.stacks.iter().filter(|(end, count)| !is_whole(end) && **count > 0);
        let cut: Vec<String> = cut.map(|(end, count)| format!("{end} {count}")).collect();
        if !cut.is_empty() {
            let _ = write!(line, "; cut: {}", cut.join(", "));
        }
        if total == 0 {
            line.clear();
        }
        if given > 0 {
            let and = if line.is_empty() { "" } else { "; " };
            let _ = write!(line, "{and}{given} user stacks are as they were walked when they were recorded");
        }
        (!line.is_empty()).then_some(line)
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
