//! Recordings under Wine: what `collector.exe` makes of a `perf.data` of Linux or a trace or a minidump of Windows is what the binary of this system makes of it.
//!
//! In: both binaries, a recording with its program, traces, dumps, and recordings of others where those are there. Out: what is not the same.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};

use super::checks::Outcome;
use super::wine::Wine;
use crate::workspace::Workspace;
use crate::{command, toolchain};

/// A recording of `calls` beside it, whose calls are in `calls.c`; the stacks are copied (`perf record --call-graph dwarf`).
const CALLS: &str = "xtask/fixtures/perf_data/calls.data";
/// The build id that it tells, which the program has.
const BUILD_ID: (&str, &str) = ("12", "87ec751ac8f75a69cdd7f5b5564470959e762b");
/// Its stacks, each as its source has it.
const STACKS: &str = "calls;_start;run;outer;middle;middle;middle;inner 5\n";

/// Recordings of other machines, whose stacks the kernel walked.
const OTHERS: [&str; 3] = ["sleep.data", "sleep.compressed.data", "sleep.compressed2.pipe.data"];

/// A trace that Windows wrote, without samples, and formats that hold its events, or its processes.
const REAL_TRACE: &str = "../shared/data/etl/Process.etl";
const REAL_TRACE_ENDINGS: [&str; 8] =
    ["jsonl", "nettrace", "html", "pb.gz", "jfr", "parquet", "perfview.xml.zip", "pftrace"];

/// What each is called when it is converted: by its name none is known.
const INPUT: &str = "input.data";

/// Where copies of programs are, from where both binaries run (`PERF_BUILDID_DIR`).
const COPIES: &str = "copies";

/// What it is converted to.
const ENDINGS: [&str; 5] = ["folded", "pb.gz", "jsonl", "html", "perf.data"];

/// Traces of Windows that are made, with processes, images, samples, stacks, methods and events of all kinds: as they are, and packed.
const TRACES: [&str; 2] = ["plain", "packed"];
const TRACES_IN: &str = "collector-user/tests/fuzzing/seeds/etl_records";

/// Minidumps that are made, whose images are in them or nowhere.
const DUMPS: [&str; 3] = ["x64", "x64_memory", "arm64"];
const DUMPS_IN: &str = "collector-user/tests/fuzzing/seeds/minidump";

/// What these are converted to: every format but `perf.data`, to which its own recordings alone are.
const TRACE_ENDINGS: [&str; 14] = [
    "folded",
    "pb.gz",
    "jsonl",
    "html",
    "svg",
    "icicle.svg",
    "speedscope.json",
    "firefox.json.gz",
    "nettrace",
    "perfview.xml.zip",
    "pftrace",
    "otlp",
    "jfr",
    "parquet",
];

/// Both binaries.
struct Binaries<'a> {
    wine: &'a Wine,
    windows: &'a Path,
    linux: PathBuf,
}

/// What came of each comparison.
pub(super) fn compare(workspace: &Workspace, wine: &Wine, windows: &Path) -> Result<Vec<Outcome>> {
    let binaries = Binaries { wine, windows, linux: linux(workspace)? };
    let [program, calls] =
        [Path::new(CALLS).with_extension(""), CALLS.into()].map(|file| workspace.join(file));
    let copy = wine.folder().join(COPIES).join(".build-id").join(BUILD_ID.0).join(BUILD_ID.1);
    fs::create_dir_all(&copy).with_context(|| format!("{} can't be made", copy.display()))?;
    fs::copy(&program, copy.join("elf")).with_context(|| format!("{} can't be copied", program.display()))?;

    let mut outcomes = vec![
        binaries.compare(&calls, &[], &ENDINGS, Some(STACKS))?,
        binaries.compare(&calls, &["--no-symbols"], &ENDINGS, None)?,
    ];
    let traces = TRACES.iter().map(|name| workspace.join(TRACES_IN).join(name));
    let dumps = DUMPS.iter().map(|name| workspace.join(DUMPS_IN).join(name));
    for recording in traces.chain(dumps) {
        outcomes.push(binaries.compare(&recording, &[], &TRACE_ENDINGS, None)?);
    }
    for name in OTHERS {
        let other = workspace.join("../shared/data/perf").join(name);
        // By date alone, files of this machine may be taken for those that were recorded: their facts are in other formats.
        outcomes.push(binaries.compare_if_there(&other, &["--no-symbols"], &["folded"])?);
    }
    outcomes.push(binaries.compare_if_there(&workspace.join(REAL_TRACE), &[], &REAL_TRACE_ENDINGS)?);
    Ok(outcomes)
}

/// The binary of this system.
fn linux(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = toolchain::own_cargo(workspace);
    // With a test, of all packages: so most of its libraries have the features that they have for `cargo test`, and are not compiled again.
    cargo.args(["build", "--workspace", "--bin", "collector", "--test", "etw"]);
    command::run(&mut cargo)?;
    Ok(workspace.target().join("debug/collector"))
}

impl Binaries<'_> {
    /// The same of a recording of others, which may not be there.
    fn compare_if_there(&self, recording: &Path, options: &[&str], endings: &[&str]) -> Result<Outcome> {
        if recording.exists() {
            return self.compare(recording, options, endings, None);
        }
        eprintln!("NOT BESIDE THE CHECKOUT a recording under Wine: {}", recording.display());
        Ok(Outcome::Skipped)
    }

    /// Whether the binaries make the same of a recording, and what it must be.
    fn compare(
        &self,
        recording: &Path,
        options: &[&str],
        endings: &[&str],
        folded: Option<&str>,
    ) -> Result<Outcome> {
        // Where a recording does not tell when it was made, its file does, whose date has other steps on Windows.
        const DATE: Duration = Duration::from_secs(1_700_000_000);
        let input = self.wine.folder().join(INPUT);
        fs::copy(recording, &input).with_context(|| format!("{} can't be copied", recording.display()))?;
        File::options().write(true).open(&input)?.set_modified(SystemTime::UNIX_EPOCH + DATE)?;

        let mut linux = Command::new(&self.linux);
        let linux = self.outputs(linux.current_dir(self.wine.folder()), "linux", options, endings)?;
        let windows = self.outputs(&mut self.wine.command(self.windows), "windows", options, endings)?;
        let mut outputs = endings.iter().zip(linux.iter().zip(&windows));
        let other = outputs.find(|(_, (linux, windows))| linux != windows).map(|(ending, _)| *ending);
        let text = String::from_utf8_lossy(windows.first().map_or(&[], Vec::as_slice));
        let is_right = other.is_none() && !text.is_empty() && folded.is_none_or(|folded| text == folded);
        let name = recording.display();
        Ok(Outcome::of((!is_right).then(|| {
            format!("{name} {options:?} becomes another {other:?} under Wine, and the stacks\n{text}")
        })))
    }

    /// What one of them makes, in the order of the endings.
    fn outputs(
        &self,
        collector: &mut Command,
        stem: &str,
        options: &[&str],
        endings: &[&str],
    ) -> Result<Vec<Vec<u8>>> {
        let files: Vec<String> = endings.iter().map(|ending| format!("{stem}.{ending}")).collect();
        for file in &files {
            let _ = fs::remove_file(self.wine.folder().join(file));
        }
        collector.args(["convert", INPUT]).args(options);
        collector.args(files.iter().flat_map(|file| ["-o", file])).env("PERF_BUILDID_DIR", COPIES);
        let output = collector.env_remove("DEBUGINFOD_URLS").output().context("it can't be started")?;
        if !output.status.success() {
            bail!("`{}`: {}", command::line(collector), String::from_utf8_lossy(&output.stderr));
        }
        let read = |file: &String| fs::read(self.wine.folder().join(file));
        files.iter().map(read).collect::<Result<_, _>>().context("an output is missing")
    }
}
