//! What programs for Windows must print, and end with, when Wine runs them.
//!
//! In: the programs. Out: a line `N passed, N failed`, and for each that failed what it printed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::recordings;
use super::wine::Wine;
use crate::test::Totals;
use crate::workspace::Workspace;

/// A command line, and what is to come of it.
struct Check {
    args: &'static [&'static str],
    status: i32,
    /// Parts of stdout.
    prints: &'static [&'static str],
    /// Parts of stderr.
    says: &'static [&'static str],
}

const fn prints(args: &'static [&'static str], prints: &'static [&'static str]) -> Check {
    Check { args, status: 0, prints, says: &[] }
}

const fn says(args: &'static [&'static str], says: &'static [&'static str]) -> Check {
    Check { args, status: 0, prints: &[], says }
}

const fn fails(args: &'static [&'static str], status: i32, says: &'static [&'static str]) -> Check {
    Check { args, status, prints: &[], says }
}

/// A profile that `report` reads.
const FOLDED: &str = "main;spin 30\nmain;rest 10\n";

/// The binary. What it does not do on Windows, it must say.
const COLLECTOR: [Check; 35] = [
    prints(&["--help"], &["Records what a machine is doing", "collector.exe <COMMAND>"]),
    prints(&["--version"], &["collector "]),
    prints(&["run", "--help"], &["--backend", "etw", "--scenario"]),
    prints(&["list", "formats"], &["pprof", "nettrace", "html", ".folded", "parquet"]),
    prints(&["report", "input.folded"], &["30  75.0%", "spin", "rest", "of 40 samples"]),
    fails(&["report", "absent.pb.gz"], 1, &["absent.pb.gz"]),
    prints(&["list", "scenarios"], &["cpu_profiling", "off_cpu", "dotnet_exceptions"]),
    prints(&["list", "events"], &["etw:PROVIDER:KEYWORDS:LEVEL"]),
    prints(&["list", "formats"], &[".etl", ".perf.data"]),
    fails(&["run", "--cgroup", "x"], 2, &["--cgroup is of Linux alone"]),
    fails(&["run", "--comm", ""], 2, &["--comm is empty: name a program as `tasklist` does"]),
    fails(&["run", "--comm", "x.exe", "-s", "processes", "-o", "x.html"], 1, &["TraceSetInformation"]),
    fails(&["run", "--backend", "ebpf"], 2, &["--backend ebpf is of Linux alone"]),
    fails(&["run", "--backend", "perf"], 2, &["--backend perf is of Linux alone"]),
    fails(&["run", "-s", "of_cpu"], 2, &["no scenario is called `of_cpu`: did you mean off_cpu"]),
    fails(&["run", "-s", "off_cpu:min=1"], 2, &["off_cpu:min=1: `min=1` has no unit"]),
    fails(
        &["run", "-s", "memory:every=1KiB"],
        2,
        &["memory_tracking has no options; there are off_cpu:min=10ms, wall_clock:min=10ms"],
    ),
    fails(&["run", "-s", "off_cpu:min=1ms", "-o", "x.html"], 1, &["TraceSetInformation"]),
    fails(&["run", "-e", "sched:sched_switch"], 2, &["-e `sched:sched_switch` is no event of ETW"]),
    fails(&["run", "-o", "x.etl", "-o", "y.etl"], 2, &["y.etl is a second .etl"]),
    fails(&["run", "-o", "x.etl", "-o", "x.nothing"], 2, &["the ending of x.nothing", ".pb.gz"]),
    fails(&["run", "-s", "processes", "-o", "absent/x.etl"], 1, &["absent/x.etl can't be written"]),
    // Wine starts a session, and refuses to tell it what the kernel is to tell.
    fails(&["run", "--backend", "etw", "-s", "processes", "-o", "x.etl"], 1, &["TraceSetInformation"]),
    fails(
        &["run", "-s", "memory", "-s", "processes", "-d", "1s", "-o", "x.html"],
        1,
        &["by -p only", "TraceSetInformation"],
    ),
    fails(
        &["run", "-p", "4294967292", "-s", "processes", "-o", "x.html"],
        1,
        &["process 4294967292 does not exist"],
    ),
    Check {
        args: &["doctor"],
        status: 1,
        prints: &[
            "NO   sessions of ETW: one that samples CPUs can't be started",
            "failed for Collector.doctor",
            "some _NT_SYMBOL_PATH: not set",
            "recording does not work here yet",
        ],
        says: &[],
    },
    fails(&["run", "--backend", "nothing"], 2, &["invalid value 'nothing'"]),
    fails(&["run", "-F", "0"], 2, &["invalid value '0'"]),
    fails(&["convert", "absent.etl", "-o", "x.html"], 1, &["collector: absent.etl can't be read: "]),
    fails(&["convert", "input.folded", "-o", "x.perf.data"], 1, &["input.folded can't be copied: it is "]),
    fails(&["run", "-s", "processes", "-o", "x.perf.data"], 2, &["the ending of x.perf.data is no format"]),
    says(&["convert", "input.folded", "-o", "x.svg", "-o", "x.pb.gz"], &["wrote ", "x.svg", "x.pb.gz"]),
    fails(&["convert", "input.folded", "-o", "input.folded"], 2, &["would be replaced"]),
    fails(&["convert"], 2, &["<INPUT>"]),
    fails(&["nonsense"], 2, &["unrecognized subcommand"]),
];

/// The example that records by a plan. Wine refuses to open a trace, as Windows does to who is no administrator.
const RECORD: [Check; 7] = [
    fails(&["processes", "1"], 1, &["OpenTraceW was refused", "\"Run as administrator\""]),
    fails(&["cpu_profiling+off_cpu", "1"], 1, &["OpenTraceW was refused"]),
    fails(&["memory_tracking", "1", "1234"], 1, &["OpenTraceW was refused"]),
    fails(&["etw:Microsoft-Windows-Kernel-Process:0x10:4", "1"], 1, &["OpenTraceW was refused"]),
    fails(&["both", "processes", "1", "both.etl"], 1, &["OpenTraceW was refused"]),
    fails(&["sched:sched_switch", "1"], 1, &["is no event of ETW"]),
    fails(&["processes", "soon"], 1, &["invalid digit"]),
];

/// The example that embeds the library, which is the same on Linux. Wine starts a session, and refuses to tell it what the kernel is to tell.
const EMBEDDING: [Check; 3] = [
    fails(&["own.pb.gz"], 1, &["TraceSetInformation", "failed for"]),
    fails(&["absent/own.pb.gz"], 1, &["own.pb.gz can't be written"]),
    fails(&[], 1, &["name a file"]),
];

/// What came of a check.
pub(super) enum Outcome {
    Passed,
    /// What it was for is not there, which was said.
    Skipped,
    /// For people.
    Failed(String),
}

impl Outcome {
    pub(super) fn of(failure: Option<String>) -> Self {
        failure.map_or(Self::Passed, Self::Failed)
    }
}

/// Runs them all.
pub(super) fn run(workspace: &Workspace, wine: &Wine, built: &Path, totals: &mut Totals) -> Result<()> {
    let input = wine.folder().join("input.folded");
    fs::write(&input, FOLDED).with_context(|| format!("{} can't be written", input.display()))?;
    let record = built.join("examples/etw_record.exe");
    let mut outcomes = Vec::new();
    for check in &COLLECTOR {
        outcomes.push(Outcome::of(failure(wine, &built.join("collector.exe"), check)?));
    }
    for check in &RECORD {
        outcomes.push(Outcome::of(failure(wine, &record, check)?));
    }
    for check in &EMBEDDING {
        outcomes.push(Outcome::of(failure(wine, &built.join("examples/own_work.exe"), check)?));
    }
    outcomes.push(Outcome::of(plan_failure(workspace, wine, &record)?));
    outcomes.push(trace(workspace, wine, &built.join("collector.exe"))?);
    outcomes.extend(recordings::compare(workspace, wine, &built.join("collector.exe"))?);
    outcomes.push(Outcome::of(left_behind(wine)?));
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for outcome in &outcomes {
        match outcome {
            Outcome::Passed => passed += 1,
            Outcome::Skipped => skipped += 1,
            Outcome::Failed(why) => {
                failed += 1;
                eprintln!("{why}");
            }
        }
    }
    let line = format!("{passed} passed, {failed} failed, {skipped} skipped");
    println!("{line}");
    totals.read(&line);
    if failed > 0 {
        bail!("programs for Windows did not do what they must, see above");
    }
    Ok(())
}

/// What is wrong with what came of it.
fn failure(wine: &Wine, program: &Path, check: &Check) -> Result<Option<String>> {
    let Ran { status, stdout, stderr } = ran(wine, program, check.args)?;
    let lacks = |text: &str, parts: &[&str]| parts.iter().any(|part| !text.contains(part));
    if status == Some(check.status) && !lacks(&stdout, check.prints) && !lacks(&stderr, check.says) {
        return Ok(None);
    }
    let line = format!("{} {}", program.display(), check.args.join(" "));
    Ok(Some(format!("{line}\n  status {status:?}\n  stdout {stdout}\n  stderr {stderr}")))
}

/// A plan is the same text on every system.
fn plan_failure(workspace: &Workspace, wine: &Wine, program: &Path) -> Result<Option<String>> {
    let file = workspace.join("windows-etw/tests/plans/wall_clock.txt");
    let expected = fs::read_to_string(&file).with_context(|| format!("{} can't be read", file.display()))?;
    let told = ran(wine, program, &["plan", "wall_clock"])?.stdout.replace('\r', "");
    Ok((told != expected).then(|| format!("the plan of wall_clock is told as\n{told}")))
}

/// What recordings that failed have left where they ran: nothing of theirs is to be there.
fn left_behind(wine: &Wine) -> Result<Option<String>> {
    let mut left = Vec::new();
    for entry in fs::read_dir(wine.folder())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(".collector-") || ["x.etl", "x.html", "own.pb.gz"].contains(&name.as_str()) {
            left.push(name);
        }
    }
    Ok((!left.is_empty()).then(|| format!("recordings that failed have left {}", left.join(", "))))
}

/// A trace of Windows, where it is there: its events are as many as on Linux, and twice as many where the same lies beside it as another part.
fn trace(workspace: &Workspace, wine: &Wine, program: &Path) -> Result<Outcome> {
    const EVENTS: usize = 10_344;
    let trace = workspace.join("../shared/data/etl/Process.etl");
    if !trace.exists() {
        eprintln!("NOT BESIDE THE CHECKOUT a trace under Wine: {}", trace.display());
        return Ok(Outcome::Skipped);
    }
    fs::copy(&trace, wine.folder().join("input.etl"))?;
    for (events, part) in [(EVENTS, None), (2 * EVENTS, Some("input.heap.etl"))] {
        if let Some(part) = part {
            fs::copy(&trace, wine.folder().join(part))?;
        }
        let told = ran(wine, program, &["convert", "input.etl", "-o", "etl.jsonl", "-o", "etl.html"])?;
        let lines = fs::read_to_string(wine.folder().join("etl.jsonl")).unwrap_or_default();
        let found = lines.lines().filter(|line| line.starts_with(r#"{"type":"event","#)).count();
        let is_right = told.status == Some(0)
            && found == events
            && part.is_none_or(|part| told.stderr.contains(&format!("read with {part}")))
            && told.stderr.contains(&format!("{events} events, 0 samples, 0 lost"));
        if !is_right {
            let why = format!("a trace became {found} events, and it was said\n{}", told.stderr);
            return Ok(Outcome::Failed(why));
        }
    }
    fs::remove_file(wine.folder().join("input.heap.etl"))?;
    Ok(Outcome::Passed)
}

struct Ran {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

fn ran(wine: &Wine, program: &Path, args: &[&str]) -> Result<Ran> {
    let output = wine.command(program).args(args).output().context("Wine can't be started")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ran { status: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
}
