//! A [`Profile`] in, a picture out.

use std::io::{self, BufWriter, Write};

use collector_common::record::SystemInfo;
use inferno::flamegraph::color::MultiPalette;
use inferno::flamegraph::{Direction, Options, Palette, from_lines};

use super::drawn::{self, Lines};
use crate::format::printable::printable;
use crate::format::stacks::{Order, Stacks};
use crate::format::{ExportFormat, Holds, Part, Profile};

/// The picture of a recording without samples.
const NOTHING: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="600" height="80" viewBox="0 0 600 80">
<text x="300" y="45" text-anchor="middle" font-family="sans-serif" font-size="17">no samples were recorded</text>
</svg>
"#;

/// What a picture holds.
const HOLDS: Holds = Holds::nothing().with(&[Part::Renames, Part::Inlined, Part::Command]);

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

    fn holds(&self) -> Holds {
        HOLDS
    }

    fn holds_without_samples(&self) -> Holds {
        Holds::nothing()
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        draw(profile, Direction::Straight, out)
    }
}

/// The same picture with the root on top.
#[derive(Clone, Copy, Debug, Default)]
pub struct Icicle;

impl ExportFormat for Icicle {
    fn name(&self) -> &'static str {
        "icicle"
    }

    fn ending(&self) -> &'static str {
        ".icicle.svg"
    }

    fn description(&self) -> &'static str {
        "flame graph that hangs from its root, which is on top"
    }

    fn holds(&self) -> Holds {
        HOLDS
    }

    fn holds_without_samples(&self) -> Holds {
        Holds::nothing()
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        draw(profile, Direction::Inverted, out)
    }
}

fn draw(profile: Profile<'_>, direction: Direction, out: &mut dyn Write) -> io::Result<()> {
    let stacks = Stacks::of(profile, Order::Lines);
    let divisor = divisor(stacks.counts().iter().map(|stack| stack.count));
    let mut options = Options::default();
    let Lines { list: lines, cut_at } = drawn::lines(&stacks, divisor, options.min_width);
    if lines.is_empty() {
        return out.write_all(NOTHING.as_bytes());
    }
    // The palette that tells kernel frames from others by their `_[k]`.
    options.colors = Palette::Multi(MultiPalette::Java);
    options.deterministic = true;
    options.direction = direction;
    options.title = title(profile.machine.system());
    options.subtitle = cut_at.map(|depth| format!("what is more than {depth} names deep is not drawn"));
    options.count_name = match divisor {
        1 => stacks.unit().to_owned(),
        _ => format!("times {divisor} {}", stacks.unit()),
    };
    from_lines(&mut options, lines.iter().map(String::as_str), BufWriter::new(&mut *out))?;
    out.flush()
}

/// What counts are divided by, so that `inferno`'s sum of them has room: there is a width for those above 0 alone.
fn divisor(counts: impl Iterator<Item = i64>) -> i64 {
    let sum: i128 = counts.map(|count| i128::from(count.max(0))).sum();
    let times = sum / i128::from(i64::MAX);
    if times == 0 { 1 } else { i64::try_from(times + 1).unwrap_or(i64::MAX) }
}

fn title(system: &SystemInfo) -> String {
    match [system.command.as_str(), &system.host].into_iter().find(|text| !text.is_empty()) {
        Some(text) => printable(text),
        None => "CPU profile".to_owned(),
    }
}
