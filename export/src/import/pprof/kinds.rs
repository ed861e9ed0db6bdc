//! Columns of values in, kinds of samples out.
//!
//! What a sampling clock gives, which is two columns of which one is the other times the period, is one kind again. Any other column
//! is a kind of sums: how many samples it is of is not told.

use collector_common::record::{ExportMachine, SampleKindId, Unit};

/// What a column is called, and what it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) unit: String,
}

impl Column {
    /// The unit, with how many of it 1 of the column is.
    fn counted(&self) -> Option<(Unit, i64)> {
        let counted = match &*self.unit.to_ascii_lowercase() {
            "" | "count" => (Unit::Count, 1),
            "nanoseconds" | "nanosecond" | "ns" => (Unit::Nanoseconds, 1),
            "microseconds" | "microsecond" | "us" | "µs" => (Unit::Nanoseconds, 1_000),
            "milliseconds" | "millisecond" | "ms" => (Unit::Nanoseconds, 1_000_000),
            "seconds" | "second" | "s" => (Unit::Nanoseconds, 1_000_000_000),
            "bytes" | "byte" | "b" => (Unit::Bytes, 1),
            "kilobytes" | "kilobyte" | "kb" | "kib" => (Unit::Bytes, 1 << 10),
            "megabytes" | "megabyte" | "mb" | "mib" => (Unit::Bytes, 1 << 20),
            "gigabytes" | "gigabyte" | "gb" | "gib" => (Unit::Bytes, 1 << 30),
            _ => return None,
        };
        Some(counted)
    }
}

/// The kinds of a profile.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// Its column, and what 1 of it is.
    list: Vec<(SampleKindId, usize, i64)>,
    pub(super) left_out: Vec<String>,
}

/// What is told of the columns.
pub(super) struct Told<'a> {
    pub(super) columns: &'a [Column],
    /// The column that is to be looked at first.
    pub(super) default: usize,
    /// What the period is in, and the period.
    pub(super) period_type: Option<Column>,
    pub(super) period: i64,
    /// By column: whether each value is the period times the one in the column before.
    pub(super) are_multiples: &'a [bool],
}

impl Kinds {
    pub(super) fn of(told: &Told<'_>, machine: &mut ExportMachine) -> Self {
        let mut this = Self::default();
        let columns = told.columns;
        let (mut at, mut clocks) = (0, 0);
        while at < columns.len() {
            let next = this.list.len();
            let end = if told.is_clock(at) {
                let period = told.period.unsigned_abs();
                let kind = machine.add_kind(&columns[at + 1].name, Unit::Count, period);
                clocks += 1;
                this.list.push((kind, at, 1));
                at + 2
            } else {
                this.add_sums(&columns[at], at, machine);
                at + 1
            };
            if (at..end).contains(&told.default)
                && let Some(&(main, ..)) = this.list.get(next)
            {
                machine.set_main_kind(main);
            }
            at = end;
        }
        if clocks == 0 && told.period > 1 {
            let unit = told.period_type.as_ref();
            let unit = unit.map(|unit| format!(" {} {}", unit.name, unit.unit)).unwrap_or_default();
            this.left_out.push(format!("the period of{unit}, {}, is left out", told.period));
        }
        this
    }

    fn add_sums(&mut self, column: &Column, at: usize, machine: &mut ExportMachine) {
        let (unit, factor) = column.counted().unwrap_or_else(|| {
            self.left_out.push(format!("{} is a number, not one of {}", column.name, column.unit));
            (Unit::Count, 1)
        });
        self.list.push((machine.add_kind_of_sums(&column.name, unit), at, factor));
    }

    /// The kinds that a row has values of; of the first one at any rate.
    pub(super) fn values<'a>(&'a self, row: &'a [i64]) -> impl Iterator<Item = (SampleKindId, i64)> + 'a {
        let value = |at: usize| row.get(at).copied().unwrap_or_default();
        let is_empty = self.list.iter().all(|&(_, at, _)| value(at) == 0);
        let counted = self.list.iter().enumerate();
        let counted = counted.filter(move |&(index, &(_, at, _))| value(at) != 0 || (is_empty && index == 0));
        counted.map(move |(_, &(kind, at, factor))| (kind, value(at).saturating_mul(factor)))
    }
}

impl Told<'_> {
    /// Whether this column and the next one are those of a clock, as they are called where there is one and where there are several.
    fn is_clock(&self, at: usize) -> bool {
        let (Some(number), Some(time)) = (self.columns.get(at), self.columns.get(at + 1)) else {
            return false;
        };
        let is_called = number.name == format!("{}_samples", time.name)
            || (number.name == "samples" && self.columns.len() == 2);
        let is_told = self.period_type.as_ref().is_some_and(|of| of.unit == "nanoseconds");
        is_called
            && is_told
            && self.period > 1
            && number.unit == "count"
            && time.unit == "nanoseconds"
            && self.are_multiples.get(at + 1) == Some(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, unit: &str) -> Column {
        Column { name: name.to_owned(), unit: unit.to_owned() }
    }

    /// Name, unit, period, and whether its samples are sums.
    type Known = (String, Unit, u64, bool);

    fn kinds(columns: &[Column], are_multiples: &[bool]) -> (Vec<Known>, Vec<(u16, i64)>) {
        let mut machine = ExportMachine::default();
        let told = Told {
            columns,
            default: 0,
            period_type: Some(column("cpu", "nanoseconds")),
            period: 1000,
            are_multiples,
        };
        let kinds = Kinds::of(&told, &mut machine);
        let list = machine.kinds().iter();
        let list =
            list.map(|kind| (machine.string(kind.name).to_owned(), kind.unit, kind.period, kind.is_sum));
        let values = kinds.values(&[2, 2000, 7]).map(|(kind, value)| (kind.0, value));
        (list.collect(), values.collect())
    }

    #[test]
    fn a_clock_is_one_kind_and_the_rest_are_sums() {
        let columns =
            [column("cpu_samples", "count"), column("cpu", "nanoseconds"), column("waited", "milliseconds")];
        let cpu = ("cpu".to_owned(), Unit::Count, 1000, false);
        let waited = ("waited".to_owned(), Unit::Nanoseconds, 1, true);
        let (list, values) = kinds(&columns, &[false, true, false]);
        assert_eq!((list, values), (vec![cpu, waited.clone()], vec![(0, 2), (1, 7_000_000)]));
        // A value that is no multiple can't be made anew.
        let sums = |name: &str, unit| (name.to_owned(), unit, 1, true);
        let expected = vec![sums("cpu_samples", Unit::Count), sums("cpu", Unit::Nanoseconds), waited];
        assert_eq!(kinds(&columns, &[false; 3]).0, expected);
    }
}
