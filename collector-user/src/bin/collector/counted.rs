//! What a recording counted beside its samples, on stderr: tables, and histograms with a bar for each size.

use std::fmt::Write as _;

use collector_common::record::{ExportMachine, Histogram, Table, Unit};
use export::hottest::printable;

use crate::say;

/// Cells of the longest bar.
const BAR: u64 = 40;

/// Histograms are drawn for all together; of those by name so many have a line.
const NAMES: usize = 10;

/// Prints all tables and histograms.
pub(crate) fn print_counted(machine: &ExportMachine) {
    machine.tables().iter().for_each(|found| say(table(found).trim_end()));
    for found in machine.histograms().chunk_by(|one, next| one.name == next.name) {
        let Some((all, by_name)) = found.split_first() else { continue };
        say(histogram(all).trim_end());
        by_name.iter().take(NAMES).for_each(|one| say(&line(one)));
    }
}

fn table(table: &Table) -> String {
    let mut text = format!("{}:\n", table.name);
    for (label, numbers) in &table.rows {
        let _ = write!(text, "  {:<36}", printable(label));
        for (column, number) in table.columns.iter().zip(numbers) {
            let _ = write!(text, "  {} {}", amount(*number, column.unit), column.name);
        }
        text.push('\n');
    }
    text
}

fn histogram(histogram: &Histogram) -> String {
    let mut text = format!("{} of {}:\n", histogram.name, printable(&histogram.label));
    let largest = histogram.buckets.iter().max().copied().unwrap_or(0).max(1);
    for (start, end, count) in histogram.filled() {
        let bar = "#".repeat((count.saturating_mul(BAR) / largest) as usize);
        let [start, end] = [start, end].map(|size| amount(size, histogram.unit));
        let _ = writeln!(text, "  {:>9} to {:<9} {count:>9} {bar}", start.trim(), end.trim());
    }
    text
}

fn line(histogram: &Histogram) -> String {
    let count = histogram.count();
    let mean = amount(histogram.sum / count.max(1), histogram.unit);
    let most = histogram.filled().last().map_or(0, |(_, end, _)| end);
    let most = amount(most, histogram.unit);
    let times = if count == 1 { "time, " } else { "times," };
    format!("  {:<16} {count:>9} {times} {mean} on average, less than {most}", printable(&histogram.label))
}

/// With a unit that a person would use.
fn amount(number: u64, unit: Unit) -> String {
    let scaled = |divisor: f64, name: &str| format!("{:>7.1} {name}", number as f64 / divisor);
    match unit {
        Unit::Nanoseconds if number >= 1_000_000_000 => scaled(1e9, "s"),
        Unit::Nanoseconds if number >= 1_000_000 => scaled(1e6, "ms"),
        Unit::Nanoseconds => scaled(1e3, "µs"),
        Unit::Bytes => format!("{number:>9} B"),
        Unit::Count => format!("{number:>9}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_has_a_bar_for_each_size() {
        let buckets = vec![4, 0, 2];
        let (name, label) = ("waits".to_owned(), "all".to_owned());
        let found = Histogram { name, label, unit: Unit::Nanoseconds, first_end: 1000, buckets, sum: 6000 };
        let text = histogram(&found);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].contains("0.0 µs to 1.0 µs") && lines[1].ends_with(&"#".repeat(40)), "{text}");
        assert!(lines[2].trim().ends_with('0') && lines[3].ends_with(&"#".repeat(20)), "{text}");
        assert_eq!(
            line(&found).trim(),
            "all                      6 times,     1.0 µs on average, less than     4.0 µs"
        );
        let once = Histogram { buckets: vec![1], sum: 500, ..found };
        assert_eq!(
            line(&once).trim(),
            "all                      1 time,      0.5 µs on average, less than     1.0 µs"
        );
    }
}
