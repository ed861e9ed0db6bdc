//! CPU time of a command line.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Runs it to its end: microseconds, user and system together, of what it started and waited for. Bash's `times`
/// tells them: its second line is of the children, user then system.
pub(crate) fn cpu_us(line: &str) -> Result<f64> {
    let output = Command::new("bash")
        .args(["-c", &format!("{line} >/dev/null || exit 1; times")])
        .stdin(Stdio::null())
        .output()
        .context("bash can't be started")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{line}` failed: {}", stderr.trim_end());
    let text = String::from_utf8(output.stdout)?;
    let children = text.lines().nth(1).context("bash's times has no second line")?;
    children.split_whitespace().map(microseconds).sum()
}

/// `1m2.345s` in microseconds.
fn microseconds(text: &str) -> Result<f64> {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').context("not a time of bash's")?;
    Ok((minutes.parse::<f64>()? * 60.0 + seconds.parse::<f64>()?) * 1e6)
}
