//! The functions that two recorders saw most in the same minute, by the samples that they themselves were in.
//!
//! Two recordings of n1 and n2 samples see a function of the true share p in shares whose difference has the variance
//! p (1 - p) (1/n1 + 1/n2). They agree within [`SIGMAS`] of its standard deviations, p estimated from both together.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use export::symbolize::demangle;

/// Functions that are compared.
const FUNCTIONS: usize = 10;

/// Characters of a name that are shown.
const NAME: usize = 60;

/// What is left to chance: one comparison of ten fails in 37 runs.
const SIGMAS: f64 = 3.0;

/// Samples by function.
pub(crate) struct Hottest {
    counts: HashMap<String, u64>,
    samples: u64,
}

impl Hottest {
    fn of(rows: impl Iterator<Item = Option<(String, u64)>>) -> Option<Self> {
        let mut counts = HashMap::new();
        for row in rows {
            let (function, count) = row?;
            *counts.entry(function).or_default() += count;
        }
        let samples = counts.values().sum();
        Some(Self { counts, samples })
    }

    /// The collector's, from a folded file.
    pub(crate) fn of_folded(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file)?;
        let row = |line: &str| {
            let (stack, count) = line.rsplit_once(' ')?;
            let leaf = stack.rsplit(';').next()?;
            Some((leaf.trim_end_matches("_[k]").to_owned(), count.parse().ok()?))
        };
        Self::of(text.lines().map(row)).context("the folded file has a line that is none")
    }

    /// Perf's, without the idle task, which the collector does not sample. Symbols are perf's own; how they read is
    /// ours, for perf leaves parameters out.
    pub(crate) fn of_perf(file: &Path) -> Result<Self> {
        let mut perf = Command::new("perf");
        perf.args(["report", "--stdio", "-q", "--no-demangle", "-F", "sample,comm,symbol", "-t", "|", "-i"]);
        let output = perf.arg(file).stdin(Stdio::null()).output().context("perf can't be started")?;
        ensure!(output.status.success(), "perf report: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        let row = |line: &str| {
            let mut columns = line.splitn(3, '|').map(str::trim);
            let (count, comm, symbol) = (columns.next()?, columns.next()?, columns.next()?);
            let linkage = symbol.trim_start_matches("[k] ").trim_start_matches("[.] ");
            let count = if comm == "swapper" { 0 } else { count.parse().ok()? };
            Some((demangle(linkage).into_owned(), count))
        };
        Self::of(text.lines().filter(|line| !line.trim().is_empty()).map(row))
            .context("perf report has a line that is none")
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    fn top(&self) -> Vec<&str> {
        let mut all: Vec<_> =
            self.counts.iter().map(|(function, count)| (*count, function.as_str())).collect();
        all.sort_unstable();
        all.into_iter().rev().map(|(_, function)| function).take(FUNCTIONS).collect()
    }

    fn share(&self, function: &str) -> f64 {
        self.counts.get(function).copied().unwrap_or(0) as f64 / self.samples as f64
    }

    /// How many standard deviations the share of a function is above that of `other`.
    fn apart(&self, other: &Self, function: &str) -> f64 {
        let (n1, n2) = (self.samples as f64, other.samples as f64);
        let (one, two) = (self.share(function), other.share(function));
        let p = (one * n1 + two * n2) / (n1 + n2);
        (one - two) / (p * (1.0 - p) * (1.0 / n1 + 1.0 / n2)).sqrt()
    }
}

/// A table of both, and whether they agree on perf's hottest.
pub(crate) fn compare(perf: &Hottest, ours: &Hottest) {
    println!(
        "\n| perf | | the same by the collector, standard errors apart | collector | |\n|---|---|---|---|---|"
    );
    let percent = |of: &Hottest, function: &str| format!("{:.2} %", 100.0 * of.share(function));
    let mut agree = 0;
    for (theirs, own) in perf.top().into_iter().zip(ours.top()) {
        let apart = ours.apart(perf, theirs);
        agree += usize::from(apart.abs() <= SIGMAS);
        println!(
            "| `{theirs:.NAME$}` | {} | {}, {apart:+.1} | `{own:.NAME$}` | {} |",
            percent(perf, theirs),
            percent(ours, theirs),
            percent(ours, own)
        );
    }
    println!(
        "\nOf perf's {FUNCTIONS} hottest functions {agree} are within {SIGMAS} standard errors of ours."
    );
}
