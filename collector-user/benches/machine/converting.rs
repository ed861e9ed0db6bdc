//! A recording of perf's with copied stacks, folded: by `collector convert`, and by `perf script` and an `awk` that puts equal
//! stacks together.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::builds::Builds;
use crate::spread::Spread;

/// How often each is run.
const RUNS: usize = 3;

/// Seconds after which `perf script` is ended: with inlined functions it may take hours.
const MOST_SECONDS: u64 = 300;

/// Stacks of `perf script -F comm,ip,sym`: a line with the thread's name, a line for each frame from the innermost on, an empty one.
const FOLD: &str = r#"
/^$/ { if (name != "") count[name stack]++; name = ""; stack = ""; next }
/^[^ \t]/ { name = $0; sub(/[ \t]+$/, "", name); next }
{ sub(/^[ \t]+[0-9a-f]+[ \t]+/, ""); stack = ";" $0 stack }
END { if (name != "") count[name stack]++; for (line in count) print line, count[line] }
"#;

/// Records builds for some seconds, and folds that.
pub(crate) fn measure(folder: &Path, seconds: u32, frequency: u32) -> Result<()> {
    let data = folder.join("perf.data");
    let mut builds = Builds::start(folder)?;
    let recorded = Command::new("perf")
        .args(["record", "-q", "--buildid-mmap", "-a", "-e", "cpu-clock", "--call-graph", "dwarf", "-F"])
        .args([&frequency.to_string(), "-o"])
        .arg(&data)
        .args(["sleep", &seconds.to_string()])
        .stdin(Stdio::null())
        .output()
        .context("perf can't be started")?;
    ensure!(recorded.status.success(), "perf record: {}", String::from_utf8_lossy(&recorded.stderr));
    builds.still_run()?;
    drop(builds);

    let ours = (0..RUNS).map(|_| convert(&data, folder)).collect::<Result<Vec<_>>>()?;
    let samples = samples(&folder.join("ours.folded"))?;
    let plain = (0..RUNS).map(|_| script(&data, folder, "--no-inline")).collect::<Result<Vec<_>>>()?;
    let inlined = script(&data, folder, "--inline")?;
    let size = std::fs::metadata(&data)?.len() as f64 / 1e6;
    println!("\n| {samples} samples with copied stacks, {size:.0} MB, to folded stacks | s |\n|---|---|");
    println!("| collector convert, with inlined functions | {} |", Spread::of(ours));
    let plain =
        plain.into_iter().map(|took| took.context("perf script takes too long")).collect::<Result<_>>()?;
    println!("| perf script --no-inline, and awk | {} |", Spread::of(plain));
    match inlined {
        Some(took) => println!("| perf script --inline, and awk | {took:.2} |"),
        None => println!("| perf script --inline, and awk | not done after {MOST_SECONDS} |"),
    }
    Ok(())
}

/// Seconds of ours.
fn convert(data: &Path, folder: &Path) -> Result<f64> {
    let started = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_collector"))
        .arg("convert")
        .arg(data)
        .arg("-o")
        .arg(folder.join("ours.folded"))
        .stdin(Stdio::null())
        .output()
        .context("collector can't be started")?;
    ensure!(output.status.success(), "collector convert: {}", String::from_utf8_lossy(&output.stderr));
    Ok(started.elapsed().as_secs_f64())
}

/// Seconds of perf's, with an option for inlined functions; `None` where it was ended.
fn script(data: &Path, folder: &Path, inlined: &str) -> Result<Option<f64>> {
    /// What `timeout` exits with.
    const ENDED: i32 = 124;
    let line = format!(
        "set -o pipefail; timeout {MOST_SECONDS} perf script {inlined} -F comm,ip,sym -i \"$1\" 2>\"$3\" | awk \"$0\" >\"$2\""
    );
    let started = Instant::now();
    let status = Command::new("bash")
        .args(["-c", &line, FOLD])
        .args([data, &folder.join("perf.folded"), &folder.join("perf.errors")])
        .stdin(Stdio::null())
        .status()
        .context("bash can't be started")?;
    if status.code() == Some(ENDED) {
        return Ok(None);
    }
    ensure!(status.success(), "perf script failed");
    Ok(Some(started.elapsed().as_secs_f64()))
}

/// The counts of folded stacks together.
fn samples(folded: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(folded)?;
    let counts = text.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    Ok(counts.sum())
}
