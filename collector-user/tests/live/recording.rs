//! A run of the `collector` binary. In: its arguments. Out: the folded stacks, the figures and what it said.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// High enough that a second of CPU time gives some thousand samples.
pub(crate) const FREQUENCY: &str = "4999";

/// A line of a folded file.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) comm: String,
    /// Root first, names as written.
    pub(crate) frames: Vec<String>,
    pub(crate) count: u64,
}

impl Stack {
    pub(crate) fn parse(line: &str) -> Self {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let mut frames = stack.split(';').map(str::to_owned);
        let comm = frames.next().unwrap();
        Self { comm, frames: frames.collect(), count: count.parse().unwrap() }
    }

    /// Whether it ends before its root.
    pub(crate) fn is_cut(&self) -> bool {
        self.frames.iter().any(|frame| frame == "[stack cut]")
    }

    /// Frames of the program and its libraries.
    pub(crate) fn user_frames(&self) -> impl Iterator<Item = &str> {
        let frames = self.frames.iter().map(String::as_str);
        frames.filter(|frame| !frame.ends_with("_[k]") && *frame != "[stack cut]")
    }

    /// Whether the thread had anything of user code on its stack.
    pub(crate) fn has_user_part(&self) -> bool {
        self.is_cut() || self.user_frames().next().is_some()
    }
}

/// What a recording left.
pub(crate) struct Recorded {
    pub(crate) stacks: Vec<Stack>,
    pub(crate) stats: Value,
    pub(crate) stderr: String,
}

impl Recorded {
    /// Samples of threads of this name.
    pub(crate) fn samples_of(&self, comm: &str) -> u64 {
        self.stacks.iter().filter(|stack| stack.comm == comm).map(|stack| stack.count).sum()
    }

    /// Periods of the clock that threads of these names ran for. A machine whose CPUs are taken away samples fewer, and counts
    /// the others as lost, whoever they were of.
    pub(crate) fn periods_of(&self, comms: &[&str]) -> u64 {
        let samples: u64 = comms.iter().map(|comm| self.samples_of(comm)).sum();
        samples * self.figure("/samples/produced") / self.figure("/samples/delivered").max(1)
    }

    /// A figure by its place in `--stats`, as `/samples/delivered`.
    pub(crate) fn figure(&self, place: &str) -> u64 {
        figure(&self.stats, place)
    }
}

/// A figure by its place.
pub(crate) fn figure(stats: &Value, place: &str) -> u64 {
    stats.pointer(place).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {place} in {stats:#}"))
}

/// Delivered and lost samples are all that were produced, and the histogram of stacks has no more than those.
pub(crate) fn assert_balanced(stats: &Value) {
    let lost: u64 = stats["lost"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let delivered = figure(stats, "/samples/delivered");
    assert_eq!(figure(stats, "/samples/produced"), delivered + lost, "{stats:#}");
    let stacks: u64 =
        stats["stacks"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert!(stacks <= delivered, "{stats:#}");
}

/// The binary under test.
pub(crate) fn collector() -> Command {
    Command::new(env!("CARGO_BIN_EXE_collector"))
}

/// `collector run` with arguments, ended.
pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    collector().arg("run").args(args).stdin(Stdio::null()).output().unwrap()
}

/// Records what `args` (options, then `--` and a command) say, at [`FREQUENCY`], to a folded file in `folder`.
pub(crate) fn record<S: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = S>) -> Recorded {
    record_in(folder, args, |_| {})
}

/// As [`record`], in other surroundings than the test's.
pub(crate) fn record_in<S: AsRef<OsStr>>(
    folder: &Path,
    args: impl IntoIterator<Item = S>,
    surroundings: impl FnOnce(&mut Command),
) -> Recorded {
    let (folded, stats) = files(folder);
    let mut recorder = collector();
    recorder.args(["run", "-F", FREQUENCY, "-o"]).arg(&folded).arg("--stats").arg(&stats).args(args);
    surroundings(&mut recorder);
    let output = recorder.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {stderr}", output.status);
    read(folder, stderr)
}

/// Where [`record`] writes.
pub(crate) fn files(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("recorded.folded"), folder.join("stats.json"))
}

/// Reads what a recording left in `folder`.
pub(crate) fn read(folder: &Path, stderr: String) -> Recorded {
    let (folded, stats) = files(folder);
    assert!(!stderr.contains("panicked"), "{stderr}");
    let stacks: Vec<Stack> = fs::read_to_string(folded).unwrap().lines().map(Stack::parse).collect();
    let stats: Value = serde_json::from_slice(&fs::read(stats).unwrap()).unwrap();
    assert_balanced(&stats);
    let samples: u64 = stacks.iter().map(|stack| stack.count).sum();
    assert_eq!(samples, figure(&stats, "/samples/delivered"), "the file holds what was delivered");
    Recorded { stacks, stats, stderr }
}
