//! `PerfView`'s stacks, as Python's XML reader has them.

use super::facts::{Fact, Reader, Row, Told};
use super::recording::PERIOD;
use crate::perfview::rows;

pub(super) const READER: Reader = Reader {
    format: "perfview",
    column: "PerfView XML",
    holds: |row| {
        let row = Row { cpu: None, attributes: Vec::new(), ..row };
        (row.kind == "cpu").then_some(row)
    },
    has_single_samples: true,
    facts: &[Fact::Path, Fact::PathBesideSource, Fact::PathOfInlined, Fact::Period],
    read: |bytes| {
        let mut told = Told::default();
        let nanoseconds = |ms: f64| (ms * 1e6).round() as u64;
        for (time, path, metric) in rows(bytes)? {
            // As `Process64 app (300)`, and `Thread (301) worker`.
            let [process, thread, frames @ ..] = &path[..] else { panic!("{path:?}") };
            let (process, pid) = process.strip_suffix(')').unwrap().rsplit_once(" (").unwrap();
            let (tid, thread) = thread.strip_prefix("Thread (").unwrap().split_once(") ").unwrap();
            let mut stack = Vec::new();
            for frame in frames {
                let (path, name) = frame.split_once('!').unwrap();
                told.path(name, path);
                stack.push(name.to_owned());
            }
            // A metric of the clock is its time.
            assert_eq!(nanoseconds(metric) % PERIOD, 0);
            told.rows.push(Row {
                kind: "cpu".to_owned(),
                time: Some(nanoseconds(time)),
                pid: pid.parse().ok(),
                process: Some(process.strip_prefix("Process64 ").unwrap().to_owned()),
                tid: tid.parse().ok(),
                thread: Some(thread.to_owned()),
                stack,
                value: (nanoseconds(metric) / PERIOD) as i64,
                ..Row::default()
            });
        }
        told.add(Fact::Period, format!("cpu {PERIOD}"));
        Some(told)
    },
};
