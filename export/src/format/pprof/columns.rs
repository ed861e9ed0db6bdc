//! The sample types of a profile: which values each kind of sample adds to.
//!
//! A sampling clock gives two columns, as other profilers write them: `samples`/`count`, and the kind's name (as
//! `cpu`)/`nanoseconds`, which is the count times the period. Other kinds with a unit of their own give their
//! number and their sum; occurrences give their number. With more than one kind the columns of numbers are called
//! after their kind (`off-cpu_samples`). A kind whose samples are sums gives these alone.

use collector_common::record::{ExportMachine, Sample, SampleKind, Unit};

/// A column of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) unit: &'static str,
}

/// The columns of a machine's kinds.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) list: Vec<Column>,
    /// By kind.
    kinds: Vec<Kind>,
    /// What is shown where the reader names nothing else: the last column of the first kind.
    pub(super) default: usize,
    /// The column of the period, and the period.
    pub(super) period: (usize, i64),
}

#[derive(Clone, Copy, Debug)]
struct Kind {
    first: usize,
    values: Values,
}

impl Kind {
    /// The column of the sum.
    const fn last(self) -> usize {
        match self.values {
            Values::Value => self.first,
            Values::Clock(_) | Values::Sum => self.first + 1,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Values {
    /// One column: the value.
    Value,
    /// Two: the value, and the value times the period.
    Clock(u64),
    /// Two: 1, and the value.
    Sum,
}

impl Columns {
    pub(super) fn of(machine: &ExportMachine) -> Self {
        let mut this = Self { list: Vec::new(), kinds: Vec::new(), default: 0, period: (0, 1) };
        let several = machine.kinds().len() > 1;
        for kind in machine.kinds() {
            this.add(machine.string(kind.name), kind, several);
        }
        let main = machine.main_kind().and_then(|main| this.kinds.get(usize::from(main.0)));
        if let Some(main) = main {
            this.default = main.last();
        }
        if this.list.is_empty() {
            this.push("samples".to_owned(), Unit::Count);
        }
        this
    }

    fn add(&mut self, name: &str, kind: &SampleKind, several: bool) {
        let first = self.list.len();
        let samples = if several { format!("{name}_samples") } else { "samples".to_owned() };
        let values = match kind.unit {
            unit if kind.is_sum => {
                self.push(name.to_owned(), unit);
                Values::Value
            }
            Unit::Count if kind.period > 1 => {
                self.push(samples, Unit::Count);
                self.push(name.to_owned(), Unit::Nanoseconds);
                Values::Clock(kind.period)
            }
            Unit::Count => {
                self.push(name.to_owned(), Unit::Count);
                Values::Value
            }
            unit => {
                self.push(samples, Unit::Count);
                self.push(name.to_owned(), unit);
                Values::Sum
            }
        };
        let last = self.list.len() - 1;
        if first == 0 {
            self.default = last;
            self.period = (last, 1);
        }
        if let Values::Clock(period) = values
            && self.period.1 == 1
        {
            self.period = (last, period.try_into().unwrap_or(i64::MAX));
        }
        self.kinds.push(Kind { first, values });
    }

    fn push(&mut self, name: String, unit: Unit) {
        self.list.push(Column { name, unit: unit.name() });
    }

    /// Adds a sample's values to a row as long as there are columns, and tells whether the sums have room in 63 bits.
    #[must_use]
    pub(super) fn add_to(&self, row: &mut [i64], sample: &Sample) -> bool {
        let Some(&Kind { first, values }) = self.kinds.get(usize::from(sample.kind.0)) else { return true };
        let value = i128::from(sample.value);
        let [of_first, of_second] = match values {
            Values::Value => [value, 0],
            Values::Clock(period) => [value, value * i128::from(period)],
            Values::Sum => [1, value],
        };
        let mut add = |column: usize, value: i128| {
            let Some(cell) = row.get_mut(column) else { return true };
            let sum = i128::from(*cell) + value;
            *cell = sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            sum == i128::from(*cell)
        };
        // What has one column has the next kind's behind it, to which nothing is added.
        add(first, of_first) & (matches!(values, Values::Value) || add(first + 1, of_second))
    }
}
