//! Progress on stderr: one line that is written over, on a terminal only; a summary at the end, always.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use collector_user::session::{Progress, Recording};

use crate::finished::summary;
use crate::say;

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
    /// Whether it was told that memory grows.
    told: bool,
}

impl ProgressLine {
    /// A line that shows a bar when the duration is known.
    pub(crate) fn new(duration: Option<Duration>) -> Self {
        Self { shown: io::stderr().is_terminal(), duration, last: None, rate: 0, told: false }
    }

    /// Renews the line if it is time.
    pub(crate) fn update(&mut self, progress: &Progress) {
        if let Some(kind) = progress.unwritten
            && !self.told
        {
            self.clear();
            say(&format!(
                "warning: the temporary file for samples can't be written: {kind}; they stay in memory, which grows"
            ));
            self.told = true;
        }
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
        let width = terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| width.0.into());
        let line = self.line(progress, width.unwrap_or(usize::MAX));
        // A closed stderr must not end a recording.
        let _ = io::stderr().write_all(format!("\r{line}\x1b[K").as_bytes());
    }

    /// What fits in `width` columns, but for the last one: a line that reaches it goes on in the next line, which nothing
    /// takes away. The bar is left out where there is no room for both.
    fn line(&self, progress: &Progress, width: usize) -> String {
        let mut line = format!(
            "{:.1} s, {} samples, {}/s, {} lost",
            progress.elapsed.as_secs_f64(),
            progress.samples,
            self.rate,
            progress.lost
        );
        if let Some(duration) = self.duration.filter(|_| line.len() + BAR + 3 < width) {
            let done = (progress.elapsed.as_secs_f64() / duration.as_secs_f64()).min(1.0);
            let full = (done * BAR as f64) as usize;
            line = format!("[{}{}] {line}", "#".repeat(full), "-".repeat(BAR - full));
        }
        line.truncate(width.saturating_sub(1));
        line
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
    summary(&recording.stats, &recording.warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_the_terminal() {
        let line = ProgressLine {
            shown: true,
            duration: Some(Duration::from_secs(20)),
            last: None,
            rate: 997,
            told: false,
        };
        let progress = Progress { elapsed: Duration::from_secs(5), samples: 4985, lost: 0, unwritten: None };
        let text = "5.0 s, 4985 samples, 997/s, 0 lost";
        assert_eq!(line.line(&progress, 80), format!("[######------------------] {text}"));
        assert_eq!(line.line(&progress, 60), text);
        assert_eq!(line.line(&progress, 20), text[..19]);
        assert_eq!(line.line(&progress, 0), "");
    }
}
