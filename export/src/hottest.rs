//! The hottest functions of a profile, as rows and as a table of text.
//!
//! `own` is what was counted while a function itself ran (it was the leaf of the stack), `total` what was counted
//! while it was anywhere on the stack: once a sample, however often it is there. A function that was inlined counts as any
//! other, so that `own` is what was counted in its code, wherever that lies; `perf report --inline` and pprof count so, too.

use std::fmt;

use collector_common::record::{SampleKindId, Unit};

use crate::file_name::file_name;
use crate::format::Profile;
use crate::graph::{ExportGraph, NodeId};
use crate::symbolize::STACK_CUT;

/// A function and what was counted in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name; `module+0xaddress` where it has none.
    pub function: String,
    /// The file it is in, `[kernel]`, or another name in brackets.
    pub module: String,
    /// Counted while it ran itself.
    pub own: i128,
    /// Counted while it was on the stack.
    pub total: i128,
}

/// Functions, the one with the most of its own first.
#[derive(Clone, Debug)]
pub struct Hottest {
    /// What was counted, as `cpu`.
    pub name: String,
    /// What else the profile has samples of.
    pub others: Vec<String>,
    /// In what unit: `count`, `nanoseconds` or `bytes`.
    pub unit: String,
    /// Counted in all samples.
    pub total: i128,
    /// All functions.
    pub rows: Vec<Row>,
}

impl Hottest {
    /// The functions of a recording, by the samples of one kind.
    pub fn of(profile: Profile<'_>, kind: SampleKindId) -> Self {
        let machine = profile.machine;
        let graph = ExportGraph::of(profile, |_| Some(0));
        let counts = graph.counts(kind);
        let functions = graph.functions().iter().zip(counts.by_function());
        let named = functions.map(|(&(name, module), counted)| {
            let path = machine.string(machine.module(module).path);
            ((profile.symbols.function(name), path), counted)
        });
        // The mark is above all that is known of a stack, so that nothing is missing below it.
        let rows = rows(named.filter(|((name, _), _)| *name != STACK_CUT));
        let total = counts.total(NodeId::ROOT);
        let kind_of = |kind: SampleKindId| machine.kinds().get(usize::from(kind.0));
        let name_of = |kind| kind_of(kind).map(|kind| machine.string(kind.name).to_owned());
        let others = machine.samples().kinds().filter(|other| *other != kind).filter_map(name_of).collect();
        let name = name_of(kind).unwrap_or_else(|| "samples".to_owned());
        let unit = kind_of(kind).map_or(Unit::Count, |kind| kind.unit).name().to_owned();
        Self { name, others, unit, total, rows }
    }

    /// The functions of a recording, by the kind that is to be looked at first; of a sampling clock by the time that its samples
    /// stand for, unless that of one has no room in 127 bits.
    pub fn of_main(profile: Profile<'_>) -> Self {
        let kind = profile.machine.shown_kind().unwrap_or_default();
        let mut hottest = Self::of(profile, kind);
        let kind = profile.machine.kinds().get(usize::from(kind.0));
        if let Some(clock) = kind.filter(|kind| kind.unit == Unit::Count && kind.period > 1) {
            let counts = hottest.rows.iter_mut().flat_map(|row| [&mut row.own, &mut row.total]);
            let mut counts: Vec<_> = counts.chain([&mut hottest.total]).collect();
            let times = counts.iter().map(|count| count.checked_mul(clock.period.into()));
            if let Some(times) = times.collect::<Option<Vec<_>>>() {
                counts.iter_mut().zip(times).for_each(|(count, time)| **count = time);
                Unit::Nanoseconds.name().clone_into(&mut hottest.unit);
            }
        }
        hottest
    }

    /// The first `count` functions as text.
    pub fn table(&self, count: usize) -> Table<'_> {
        Table { hottest: self, count }
    }
}

/// Functions by name and module, with what was counted in them of their own and in all, the one with the most of its own first.
fn rows<'a>(counted: impl Iterator<Item = ((&'a str, &'a str), (i128, i128))>) -> Vec<Row> {
    let mut rows: Vec<Row> = counted
        .filter(|(_, counts)| *counts != (0, 0))
        .map(|((function, module), (own, total))| Row {
            function: function.to_owned(),
            module: module.to_owned(),
            own,
            total,
        })
        .collect();
    rows.sort_by(|a, b| (b.own, b.total).cmp(&(a.own, a.total)).then_with(|| a.function.cmp(&b.function)));
    rows
}

/// The first functions of a [`Hottest`], to be displayed: with a precision, as in `{:.80}`, in lines of at most that
/// many characters, in which the middle of a long name is left out, but for 20 characters of it. The head says what was counted,
/// and what else there is: by name as far as there is room.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    hottest: &'a Hottest,
    count: usize,
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hottest { name, others, unit, total, rows } = self.hottest;
        let (all, noun) = (amount(*total, unit), if unit == "count" { " samples" } else { "" });
        let head = format!("function, of {all}{noun} (");
        let room = f.precision().map(|width| width.saturating_sub(FIGURES + head.chars().count() + 1));
        let kinds = kinds(name, others, room);
        writeln!(f, "{:>11} {:>6}  {:>11} {:>6}  {head}{kinds})", "self", "", "total", "")?;
        for row in rows.iter().take(self.count) {
            let module = file_name(&row.module);
            let module = if module.is_empty() || row.function.starts_with(module) {
                String::new()
            } else {
                format!("  ({module})")
            };
            let (function, module) = (printable(&row.function), printable(&module));
            let room = f.precision().map(|width| width.saturating_sub(FIGURES + module.chars().count()));
            writeln!(
                f,
                "{:>11} {:>5.1}%  {:>11} {:>5.1}%  {}{module}",
                amount(row.own, unit),
                percent(row.own, *total),
                amount(row.total, unit),
                percent(row.total, *total),
                room.map_or(function.clone(), |room| shortened(&function, room)),
            )?;
        }
        Ok(())
    }
}

/// What samples a table is of, and what others there are: as many by name as have room.
fn kinds(shown: &str, others: &[String], room: Option<usize>) -> String {
    /// As many are named.
    const MOST: usize = 3;
    let shown = printable(shown);
    let naming = |count: usize| {
        let names: Vec<_> = others.iter().take(count).map(|name| printable(name)).collect();
        match (names.join(", "), others.len() - count) {
            (_, 0) if count == 0 => shown.clone(),
            (_, more) if count == 0 => format!("{shown}; {more} not shown"),
            (names, 0) => format!("{shown}; not shown: {names}"),
            (names, more) => format!("{shown}; not shown: {names} and {more} more"),
        }
    };
    let most = others.len().min(MOST);
    let Some(room) = room else { return naming(most) };
    let fitting = (0..=most).rev().map(naming).find(|text| text.chars().count() <= room);
    fitting.unwrap_or_else(|| {
        let mark = if others.is_empty() { "" } else { "; …" };
        shortened(&shown, room.saturating_sub(mark.chars().count())) + mark
    })
}

/// Characters of a line before the function's name.
const FIGURES: usize = 40;

/// A name in `room` characters, but not fewer than tell anything. Beginning and end tell most.
fn shortened(name: &str, room: usize) -> String {
    const LEAST: usize = 20;
    let room = room.max(LEAST);
    let length = name.chars().count();
    if length <= room {
        return name.to_owned();
    }
    let end = (room - 1) / 3;
    let start = name.chars().take(room - 1 - end);
    start.chain(['…']).chain(name.chars().skip(length - end)).collect()
}

/// A text in one line, without what could drive a terminal.
pub fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn percent(part: i128, whole: i128) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

fn amount(value: i128, unit: &str) -> String {
    let (scale, steps) = match unit {
        "nanoseconds" => (1000.0, &["ns", "us", "ms", "s"][..]),
        "bytes" => (1024.0, &["B", "KiB", "MiB", "GiB"][..]),
        _ => return value.to_string(),
    };
    let mut value = value as f64;
    let mut unit = 0;
    while value.abs() >= scale && unit + 1 < steps.len() {
        value /= scale;
        unit += 1;
    }
    let digits = if unit == 0 { 0 } else { 2 };
    format!("{value:.digits$} {}", steps[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_cpu(total: i128, rows: Vec<Row>) -> Hottest {
        Hottest { name: "cpu".to_owned(), others: Vec::new(), unit: "count".to_owned(), total, rows }
    }

    #[test]
    fn the_head_names_the_kind_and_others() {
        let head = |others: &[&str]| {
            let others = others.iter().map(ToString::to_string).collect();
            let text = Hottest { others, ..of_cpu(7, Vec::new()) }.table(1).to_string();
            text.split_once("function, ").unwrap().1.strip_suffix('\n').unwrap().to_owned()
        };
        assert_eq!(head(&[]), "of 7 samples (cpu)");
        assert_eq!(head(&["alloc_space"]), "of 7 samples (cpu; not shown: alloc_space)");
        assert_eq!(head(&["a", "b", "c", "d", "e"]), "of 7 samples (cpu; not shown: a, b, c and 2 more)");
        assert!(!head(&["a\nb"]).contains('\n'));
    }

    #[test]
    fn the_head_names_what_has_room() {
        let narrow = |name: &str, others: &[&str], width: usize| {
            let others = others.iter().map(ToString::to_string).collect();
            let hottest = Hottest { name: name.to_owned(), others, ..of_cpu(7, Vec::new()) };
            let text = format!("{:.width$}", hottest.table(1));
            let head = text.strip_suffix('\n').unwrap();
            assert!(head.chars().count() <= width, "{head}");
            head.split_once("samples (").unwrap().1.strip_suffix(')').unwrap().to_owned()
        };
        let others = ["alloc_space", "off_cpu", "lock", "gc"];
        // 65 characters are there without kinds.
        assert_eq!(narrow("cpu", &others, 118), "cpu; not shown: alloc_space, off_cpu, lock and 1 more");
        assert_eq!(narrow("cpu", &others, 117), "cpu; not shown: alloc_space, off_cpu and 2 more");
        assert_eq!(narrow("cpu", &others, 111), "cpu; not shown: alloc_space and 3 more");
        assert_eq!(narrow("cpu", &others, 102), "cpu; 4 not shown");
        assert_eq!(narrow("cpu", &others, 80), "cpu; …");
        let long = format!("first{}last", "x".repeat(50));
        assert_eq!(narrow("cpu", &[&long], 100), "cpu; 1 not shown");
        let [alone, with_others] = [&[][..], &others].map(|others| narrow(&long, others, 100));
        assert!(alone.starts_with("first") && alone.contains('…') && alone.ends_with("last"), "{alone}");
        assert!(with_others.starts_with("first") && with_others.ends_with("last; …"), "{with_others}");
    }

    #[test]
    fn long_names_keep_their_ends_within_the_width() {
        let long = format!("outer::{}::leaf", "x".repeat(200));
        let rows = [(long.clone(), "/lib/m.so"), ("short".to_owned(), "")];
        let rows =
            rows.map(|(function, module)| Row { function, module: module.to_owned(), own: 1, total: 2 });
        let hottest = Hottest { others: vec![long.clone()], ..of_cpu(2, rows.into()) };
        let table = hottest.table(2);
        assert!(table.to_string().contains(&long), "nothing is left out of a file");
        let narrow = format!("{table:.100}");
        let lines: Vec<&str> = narrow.lines().collect();
        assert!(lines[0].chars().count() <= 100, "{narrow}");
        assert_eq!(lines[1].chars().count(), 100);
        assert!(lines[1].contains("  outer::x") && lines[1].ends_with("x::leaf  (m.so)"), "{narrow}");
        assert!(lines[2].ends_with("  short"), "{narrow}");
        assert_eq!(lines[2].find("short"), Some(FIGURES), "the names begin where the constant says");
    }
}
