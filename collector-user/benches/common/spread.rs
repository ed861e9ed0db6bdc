//! A figure that was measured several times.

use std::fmt;

/// Shown as its median and its range.
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    pub(crate) fn of(mut measured: Vec<f64>) -> Self {
        measured.sort_by(f64::total_cmp);
        Self(measured)
    }

    fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len() % 2 == 1 { self.0[middle] } else { self.0[middle - 1].midpoint(self.0[middle]) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [Some(lowest), Some(highest)] = [self.0.first(), self.0.last()] else {
            return f.write_str("none");
        };
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ({lowest:.digits$} to {highest:.digits$})", self.median())
    }
}
