//! Progress on stderr: one line that is written over, on a terminal only; a summary at the end, always.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use collector_user::session::{Progress, Recording};

/// How often the line is renewed.
const PERIOD: Duration = Duration::from_millis(500);

/// Cells of the bar.
const BAR: usize = 24;

/// The line.
pub(crate) struct ProgressLine {
    shown: bool,
    duration: Option<Duration>,
    last: Option<(Instant, u64)>,
    rate: u64,
}

impl ProgressLine {
    /// A line that shows a bar when the duration is known.
    pub(crate) fn new(duration: Option<Duration>) -> Self {
        Self { shown: io::stderr().is_terminal(), duration, last: None, rate: 0 }
    }

    /// Renews the line if it is time.
    pub(crate) fn update(&mut self, progress: &Progress) {
        let now = Instant::now();
        let (since, samples) = self.last.unwrap_or((now, progress.samples));
        let elapsed = now.duration_since(since);
        if !self.shown || (self.last.is_some() && elapsed < PERIOD) {
            return;
        }
        if !elapsed.is_zero() {
            self.rate = ((progress.samples - samples) as f64 / elapsed.as_secs_f64()) as u64;
        }
        self.last = Some((now, progress.samples));
        let mut line = String::from("\r");
        if let Some(duration) = self.duration {
            let done = (progress.elapsed.as_secs_f64() / duration.as_secs_f64()).min(1.0);
            let full = (done * BAR as f64) as usize;
            let _ = write!(line, "[{}{}] ", "#".repeat(full), "-".repeat(BAR - full));
        }
        let _ = write!(
            line,
            "{:.1} s, {} samples, {}/s, {} lost\x1b[K",
            progress.elapsed.as_secs_f64(),
            progress.samples,
            self.rate,
            progress.lost
        );
        // A closed stderr must not end a recording.
        let _ = io::stderr().write_all(line.as_bytes());
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.shown {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

/// What was recorded and lost, in a few lines.
pub(crate) fn summarize(recording: &Recording) -> String {
    let seconds = Duration::from_nanos(recording.stats.duration_ns).as_secs_f64();
    let mut text = format!("{} samples in {seconds:.1} s; ", recording.ledger.delivered());
    text.push_str(&recording.stats.account().join("\n"));
    for warning in &recording.warnings {
        let _ = write!(text, "\nwarning: {warning}");
    }
    text
}
