//! A flame graph as one SVG file, drawn by `inferno` from the folded stacks.

use std::io::{self, BufWriter, Write};

use collector_common::record::SystemInfo;
use inferno::flamegraph::color::MultiPalette;
use inferno::flamegraph::{Options, Palette, from_lines};

use super::folded::Stacks;
use crate::format::{ExportFormat, Profile};

/// The picture of a recording without samples.
const NOTHING: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="600" height="80" viewBox="0 0 600 80">
<text x="300" y="45" text-anchor="middle" font-family="sans-serif" font-size="17">no samples were recorded</text>
</svg>
"#;

/// The flame graph format.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlameGraph;

impl ExportFormat for FlameGraph {
    fn name(&self) -> &'static str {
        "flamegraph"
    }

    fn ending(&self) -> &'static str {
        ".svg"
    }

    fn description(&self) -> &'static str {
        "flame graph to zoom and search in a browser, drawn once for the whole recording"
    }

    fn holds_all_kinds(&self) -> bool {
        false
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let stacks = Stacks::of(profile);
        let divisor = divisor(stacks.counts());
        let shown = |count: i64| Some(count / divisor).filter(|count| *count > 0);
        let lines: Vec<String> = stacks.lines_of(shown).map(|line| unambiguous(&line)).collect();
        if lines.is_empty() {
            return out.write_all(NOTHING.as_bytes());
        }
        let mut options = Options::default();
        // The palette that tells kernel frames from others by their `_[k]`.
        options.colors = Palette::Multi(MultiPalette::Java);
        options.deterministic = true;
        options.title = title(profile.machine.system());
        options.count_name = match divisor {
            1 => stacks.unit().to_owned(),
            _ => format!("times {divisor} {}", stacks.unit()),
        };
        from_lines(&mut options, lines.iter().map(String::as_str), BufWriter::new(&mut *out))?;
        out.flush()
    }
}

/// What counts are divided by, so that `inferno`'s sum of them has room: there is a width for those above 0 alone.
fn divisor(counts: impl Iterator<Item = i64>) -> i64 {
    let sum: i128 = counts.map(|count| i128::from(count.max(0))).sum();
    let times = sum / i128::from(i64::MAX);
    if times == 0 { 1 } else { i64::try_from(times + 1).unwrap_or(i64::MAX) }
}

/// A line whose leaf can't be taken for another count: two numbers at its end would be those of two profiles.
fn unambiguous(line: &str) -> String {
    const NO_BREAK_SPACE: &str = "\u{a0}";
    let (stack, count) = line.rsplit_once(' ').unwrap_or((line, ""));
    format!("{} {count}", stack.replace(' ', NO_BREAK_SPACE))
}

fn title(system: &SystemInfo) -> String {
    match [system.command.as_str(), &system.host].into_iter().find(|text| !text.is_empty()) {
        // A control character would make the file no XML.
        Some(text) => text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
        None => "CPU profile".to_owned(),
    }
}
