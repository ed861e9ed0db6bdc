//! Counts over all test runners.
//!
//! In: lines that runners print: `test result:` of cargo's, `N passed, N failed` alone on a line, and our
//! tests' `SKIPPED <test>: <reason>`, `NOT ON THIS KERNEL <test>: <reason>` and `NOT BESIDE THE CHECKOUT <test>: <file>`. Out: the sums.

use std::fmt;

/// What passed, failed and was skipped so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    passed: u64,
    failed: u64,
    /// Reported by a runner as not run.
    ignored: u64,
    /// Reported by the test itself, which its runner counts as passed.
    skips: Vec<String>,
    /// The same, for want of what no set-up can bring about: a feature of the kernel, or a file of others.
    absent: Vec<String>,
}

/// How a test's line begins that skipped itself.
const SKIPPED: &str = "SKIPPED";
/// That of one whose feature the kernel lacks.
const NOT_ON_THIS_KERNEL: &str = "NOT ON THIS KERNEL";
/// That of one whose file, which is others' and in no repository of ours, is not in the folder beside it.
const NOT_BESIDE_THE_CHECKOUT: &str = "NOT BESIDE THE CHECKOUT";

impl Totals {
    /// Whether `line` can change the sums.
    pub(super) fn is_about(line: &str) -> bool {
        let line = line.trim();
        Self::is_skip(line).is_some() || counts(line).is_some()
    }

    /// What a test begins its line with that did not test what it is for, and the rest: the reason, behind the test's name where
    /// the test tells it.
    pub(super) fn is_skip(line: &str) -> Option<(&'static str, &str)> {
        [SKIPPED, NOT_ON_THIS_KERNEL, NOT_BESIDE_THE_CHECKOUT].into_iter().find_map(|kind| {
            let rest = line.strip_prefix(kind)?;
            Some((kind, rest.strip_prefix(": ").or_else(|| rest.strip_prefix(' '))?))
        })
    }

    /// Adds what `line` says; a line about something else changes nothing, nor does another line of a test that was skipped.
    pub(crate) fn read(&mut self, line: &str) {
        let line = line.trim();
        if let Some((kind, rest)) = Self::is_skip(line) {
            let skips = if kind == SKIPPED { &mut self.skips } else { &mut self.absent };
            let test = rest.split(": ").next();
            let is_same =
                |told: &String| Self::is_skip(told).and_then(|(_, rest)| rest.split(": ").next()) == test;
            if !skips.iter().any(is_same) {
                skips.push(line.to_owned());
            }
        } else if let Some([passed, failed, ignored]) = counts(line) {
            self.passed += passed;
            self.failed += failed;
            self.ignored += ignored;
        }
    }

    /// Adds those of another system than this machine's, whose skips no set-up can help.
    pub(super) fn add_of_elsewhere(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.absent.extend(other.skips.into_iter().chain(other.absent));
    }

    /// Whether any test was run.
    pub(super) fn any(&self) -> bool {
        self.passed + self.failed + self.ignored > 0
    }

    /// The lines of tests that skipped themselves.
    pub(super) fn skips(&self) -> &[String] {
        &self.skips
    }

    /// The lines of tests that lack what no set-up brings about.
    pub(super) fn absent(&self) -> &[String] {
        &self.absent
    }

    /// What a test says in a `line` of its feature that the kernel lacks; its name may stand before that.
    pub(crate) fn absent_in(line: &str) -> Option<&str> {
        line.find(NOT_ON_THIS_KERNEL).and_then(|at| line.get(at..)).map(str::trim_end)
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = (self.skips.len() + self.absent.len()) as u64;
        let passed = self.passed.saturating_sub(skipped);
        write!(out, "{passed} passed, {} failed, {} skipped", self.failed, self.ignored + skipped)
    }
}

/// Passed, failed and ignored, from a line that sums up.
fn counts(line: &str) -> Option<[u64; 3]> {
    if let Some(result) = line.strip_prefix("test result: ") {
        let (_, result) = result.split_once(". ")?;
        return Some([number(result, "passed")?, number(result, "failed")?, number(result, "ignored")?]);
    }
    let mut parts = line.split(", ");
    let [passed, failed] = [only(parts.next()?, "passed")?, only(parts.next()?, "failed")?];
    let skipped = parts.next().map_or(Some(0), |part| only(part, "skipped"))?;
    parts.next().is_none().then_some([passed, failed, skipped])
}

/// The number before `word` in `1 passed; 2 failed; ...`.
fn number(text: &str, word: &str) -> Option<u64> {
    text.split("; ").find_map(|part| only(part.trim(), word))
}

/// `3` in `3 passed`.
fn only(part: &str, word: &str) -> Option<u64> {
    part.strip_suffix(word)?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(lines: &[&str]) -> Totals {
        let mut totals = Totals::default();
        for line in lines {
            totals.read(line);
        }
        totals
    }

    #[test]
    fn cargo_and_plain_lines_add_up() {
        let totals = sum(&[
            "test result: ok. 28 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "7 passed, 1 failed",
            "1 passed, 0 failed, 2 skipped",
        ]);
        assert_eq!(totals.to_string(), "38 passed, 4 failed, 3 skipped");
        assert!(totals.any());
    }

    #[test]
    fn a_test_that_skips_itself_did_not_pass() {
        let totals = sum(&[
            "SKIPPED live::ledger: not root",
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ]);
        assert_eq!(totals.to_string(), "4 passed, 0 failed, 1 skipped");
        assert_eq!(totals.skips(), ["SKIPPED live::ledger: not root"]);
    }

    #[test]
    fn nor_did_one_of_what_the_kernel_lacks() {
        let totals = sum(&[
            "NOT ON THIS KERNEL live::kprobes: no kprobe_events",
            "SKIPPED live::ledger: not root",
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ]);
        assert_eq!(totals.to_string(), "3 passed, 0 failed, 2 skipped");
        assert_eq!(totals.skips(), ["SKIPPED live::ledger: not root"]);
        assert_eq!(totals.absent(), ["NOT ON THIS KERNEL live::kprobes: no kprobe_events"]);
        assert!(Totals::is_about("NOT ON THIS KERNEL live::kprobes: no kprobe_events"));
    }

    #[test]
    fn nor_did_one_whose_files_are_not_there_and_it_is_one_test() {
        let totals = sum(&[
            "NOT BESIDE THE CHECKOUT etl::counts: Process.etl",
            "NOT BESIDE THE CHECKOUT etl::counts: gcevents.etl",
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ]);
        assert_eq!(totals.to_string(), "4 passed, 0 failed, 1 skipped");
        assert_eq!(totals.skips(), [""; 0]);
    }

    #[test]
    fn what_is_skipped_elsewhere_is_no_failure() {
        let passed =
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        let mut totals = sum(&[passed]);
        totals.add_of_elsewhere(sum(&["SKIPPED pe::image: clang-22 is not there", passed]));
        assert_eq!(totals.to_string(), "9 passed, 0 failed, 1 skipped");
        assert_eq!((totals.skips().len(), totals.absent().len()), (0, 1));
    }

    #[test]
    fn other_lines_change_nothing() {
        for line in
            ["test a ... ok", "3 passed", "all passed, none failed", "1 passed, 2 failed, 3 skipped, 4", ""]
        {
            assert!(!Totals::is_about(line), "{line}");
            assert_eq!(sum(&[line]), Totals::default(), "{line}");
        }
        assert!(!sum(&[]).any());
    }
}
