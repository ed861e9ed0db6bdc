//! What was counted and has no stacks: tables, histograms and single numbers, for people to read.

use std::fmt;

use super::Unit;

/// What a column of a [`Table`] has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// What its numbers count.
    pub unit: Unit,
}

/// Rows of a label and numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What it tells, in a few words.
    pub name: String,
    /// What stands in each row behind its label.
    pub columns: Vec<Column>,
    /// Labels, with as many numbers as there are columns, in the order in which they are to be shown.
    pub rows: Vec<(String, Vec<u64>)>,
}

/// How many of something there were by size, which doubles from one bucket to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// What it tells, in a few words.
    pub name: String,
    /// Of whom.
    pub label: String,
    /// What the sizes, and `sum`, are in.
    pub unit: Unit,
    /// Upper end of the first bucket; the next ones end at twice, four times and so on of it. What is larger than all is in
    /// the last one.
    pub first_end: u64,
    /// How many there were in each.
    pub buckets: Vec<u64>,
    /// The sum of all sizes.
    pub sum: u64,
}

impl Histogram {
    /// How many there were in all.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The buckets from the first to the last one with anything in it: start, end and count.
    pub fn filled(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let filled = self.buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        let ends = std::iter::successors(Some(self.first_end), |end| end.checked_mul(2));
        let starts = std::iter::once(0).chain(ends.clone());
        starts.zip(ends).zip(&self.buckets).take(filled).map(|((start, end), count)| (start, end, *count))
    }
}

/// A number with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// What it tells.
    pub name: String,
    /// The number.
    pub value: f64,
    /// What 1 of it is, as `bytes` or `requests per second`; empty for a mere number.
    pub unit: String,
}

impl fmt::Display for Metric {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.name, self.value)?;
        if self.unit.is_empty() { Ok(()) } else { write!(out, " {}", self.unit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_double() {
        let histogram = Histogram {
            name: String::new(),
            label: String::new(),
            unit: Unit::Nanoseconds,
            first_end: 1000,
            buckets: vec![3, 0, 2, 0],
            sum: 9000,
        };
        let filled: Vec<_> = histogram.filled().collect();
        assert_eq!(filled, [(0, 1000, 3), (1000, 2000, 0), (2000, 4000, 2)]);
        assert_eq!(histogram.count(), 5);
    }
}
