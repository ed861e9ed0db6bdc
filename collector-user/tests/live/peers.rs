//! The hottest functions, beside `perf` and `go tool pprof` on the same workload in the same run.
//!
//! The test for shares: two recordings of n1 and n2 samples see a function that has the true share p in shares whose
//! difference has the variance p (1 - p) (1/n1 + 1/n2). They agree when the difference is within 4 of its standard
//! deviations, p estimated from both together: 5 comparisons of two right recordings fail once in 3,000 runs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::prerequisites::live_with;
use crate::programs::{compile, folder};
use crate::recording::{Recorded, collector, files, read};

/// The functions of `weights.c`, hottest first, and their shares by the source.
const HOT: [(&str, f64); 5] = [
    ("hot_first", 8.0 / 19.0),
    ("hot_second", 5.0 / 19.0),
    ("hot_third", 3.0 / 19.0),
    ("hot_fourth", 2.0 / 19.0),
    ("hot_fifth", 1.0 / 19.0),
];

/// Samples by function.
type Counts = BTreeMap<String, u64>;

/// Samples of each of [`HOT`].
fn hot(counts: &Counts) -> [u64; HOT.len()] {
    HOT.map(|(name, _)| counts.get(name).copied().unwrap_or_else(|| panic!("no {name} in {counts:?}")))
}

/// [`HOT`] by samples, most first.
fn ranking(counts: &Counts) -> Vec<&'static str> {
    let mut names: Vec<(u64, &str)> =
        hot(counts).into_iter().zip(HOT).map(|(count, (name, _))| (count, name)).collect();
    names.sort_unstable();
    names.into_iter().rev().map(|(_, name)| name).collect()
}

fn leaves(recorded: &Recorded) -> Counts {
    let mut counts = Counts::new();
    for stack in recorded.stacks.iter().filter(|stack| stack.comm == "weights") {
        *counts.entry(stack.frames.last().cloned().unwrap_or_default()).or_default() += stack.count;
    }
    counts
}

/// The two agree by the module's test.
fn assert_same_shares(ours: &Counts, theirs: &Counts) {
    let (n1, n2) = (ours.values().sum::<u64>() as f64, theirs.values().sum::<u64>() as f64);
    for ((one, two), (name, _)) in hot(ours).into_iter().zip(hot(theirs)).zip(HOT) {
        let (one, two) = (one as f64, two as f64);
        let p = (one + two) / (n1 + n2);
        let sigma = (p * (1.0 - p) * (1.0 / n1 + 1.0 / n2)).sqrt();
        let difference = (one / n1 - two / n2).abs();
        assert!(
            difference <= 4.0 * sigma,
            "{name}: {one} of {n1}, {two} of {n2}: {:.1} sigma",
            difference / sigma
        );
    }
}

/// The recording agrees with the source: the order exactly, a share within 4 sigma.
fn assert_source_shares(counts: &Counts) {
    assert_eq!(ranking(counts), HOT.map(|(name, _)| name));
    let n = hot(counts).iter().sum::<u64>() as f64;
    for (count, (name, share)) in hot(counts).into_iter().zip(HOT) {
        let sigma = (share * (1.0 - share) / n).sqrt();
        let difference = (count as f64 / n - share).abs();
        // The picks are random, too: 1.3 million of them on two CPUs add less than a hundredth to sigma.
        assert!(difference <= 4.0 * sigma, "{name}: {count} of {n}: {:.1} sigma", difference / sigma);
    }
}

/// What a program prints.
fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn perf_report(data: &Path) -> Counts {
    let arguments =
        ["--no-children", "-g", "none", "--comms", "weights", "--sort", "symbol", "-n", "--stdio", "-t", "|"];
    let mut report = Command::new("perf");
    let report = output(report.arg("report").arg("-i").arg(data).args(arguments));
    let rows = report.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut columns = line.split('|');
        let samples = columns.nth(1)?.trim().parse().ok()?;
        let symbol = columns.next()?.trim();
        Some((symbol.trim_start_matches("[.] ").trim_start_matches("[k] ").to_owned(), samples))
    });
    let mut counts = Counts::new();
    rows.for_each(|(symbol, samples): (String, u64)| *counts.entry(symbol).or_default() += samples);
    counts
}

#[test]
fn perf_sees_the_same_functions() {
    let Some(_live) = live_with("perf_sees_the_same_functions", &["perf"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "weights", "weights.c", &[]);
    let data = folder.path().join("perf.data");
    let (folded, stats) = files(folder.path());
    // With build ids of its own: a kernel that writes them for one reader marks the records of the others, too,
    // as if they had some, and perf 6.1 ends there. And within the recording, so that no BPF program comes or goes: that
    // kernel makes the record of it longer with each reader, and perf 6.1 takes its time from what happens to lie there.
    let arguments = ["-q", "--buildid-mmap", "-e", "cpu-clock", "-F", "997", "-a", "-g", "-o"];
    let mut recorder = collector();
    recorder.arg("run").arg("-o").arg(&folded).arg("--stats").arg(&stats);
    recorder.args(["--", "perf", "record", "-N"]).args(arguments).arg(&data).arg("--").arg(&program);
    let ended = recorder.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{stderr}");

    let ours = leaves(&read(folder.path(), stderr));
    let theirs = perf_report(&data);
    assert_source_shares(&ours);
    assert_eq!(ranking(&ours), ranking(&theirs));
    assert_same_shares(&ours, &theirs);
}

fn pprof(mode: &str, profile: &Path) -> String {
    let mut go = Command::new("go");
    // A home of its own: the tool keeps settings in it.
    go.env("HOME", profile.parent().unwrap()).args(["tool", "pprof", "-sample_index=samples", mode]);
    output(go.arg(profile))
}

/// Functions and their samples in `-top`: `flat flat% sum% cum cum% name`.
fn top(text: &str) -> Counts {
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    let rows = rows.map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        (columns[5..].join(" "), columns[0].parse().unwrap())
    });
    rows.collect()
}

/// Stacks and their samples in `-traces`: blocks between lines of dashes, labels, then the count and the leaf, then
/// callers.
fn traces(text: &str) -> BTreeMap<Vec<String>, u64> {
    let mut stacks = BTreeMap::new();
    for block in text.split("-----------+-").skip(1) {
        let is_label = |line: &&str| line.split_whitespace().next().is_some_and(|word| word.ends_with(':'));
        let mut lines =
            block.lines().skip(1).skip_while(is_label).map(str::trim).filter(|line| !line.is_empty());
        let Some((count, leaf)) = lines.next().and_then(|line| line.split_once(' ')) else { continue };
        let stack: Vec<String> = std::iter::once(leaf.trim()).chain(lines).map(str::to_owned).collect();
        *stacks.entry(stack).or_default() += count.parse::<u64>().unwrap();
    }
    stacks
}

#[test]
fn pprof_reads_what_was_recorded() {
    // Go is no tool of ours; where it is missing this says so, and fails on CI.
    let test = "pprof_reads_what_was_recorded";
    let Some(_live) = live_with(test, &["go"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "weights", "weights.c", &[]);
    let profile = folder.path().join("recorded.pb.gz");
    let arguments = [OsStr::new("-o"), profile.as_os_str(), OsStr::new("--"), program.as_os_str()];
    let recorded = crate::recording::record(folder.path(), arguments);

    let ours = leaves(&recorded);
    assert_source_shares(&ours);
    // The same samples in another format: the counts are equal, not only close.
    let text = pprof("-top", &profile);
    assert!(text.contains("File: weights\n"), "{text}");
    let top = top(&text);
    assert_eq!(hot(&top), hot(&ours));
    assert_eq!(ranking(&top), ranking(&ours));
    let traces = traces(&pprof("-traces", &profile));
    assert_eq!(traces.values().sum::<u64>(), recorded.figure("/samples/delivered"));
    for (name, _) in HOT {
        let own = |stack: &&crate::recording::Stack| {
            stack.comm == "weights" && stack.frames.ends_with(&["main".into(), "work".into(), name.into()])
        };
        let folded: u64 = recorded.stacks.iter().filter(own).map(|stack| stack.count).sum();
        let chain = [name, "work", "main"].map(str::to_owned);
        let traced: u64 =
            traces.iter().filter(|(stack, _)| stack.starts_with(&chain)).map(|(_, count)| count).sum();
        assert!(folded > 0 && traced == folded, "{name}: {folded} folded, {traced} in traces");
    }
}
