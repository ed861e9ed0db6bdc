//! What was counted beside samples, and the processes that the recording was asked to tell of: a line each, of types of their own.
//!
//! They are of the recording as a whole, so that they stand behind its first line, before what is in the order of time.

use std::fmt::Write as _;
use std::io::{self, Write};

use collector_common::ids::Nanos;
use collector_common::record::{Histogram, ProcessLife, Program, Table};

use super::text::string;
use super::write::Writer;

impl Writer<'_> {
    /// Writes the processes in the order in which they were made, then tables and histograms.
    pub(super) fn counted(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let machine = self.machine;
        for life in machine.lives() {
            self.process(life);
            self.end_line(out)?;
        }
        for table in machine.tables() {
            self.table(table);
            self.end_line(out)?;
        }
        for histogram in machine.histograms() {
            self.histogram(histogram);
            self.end_line(out)?;
        }
        Ok(())
    }

    /// A process from beginning to end. One without a duration went on when the recording ended.
    fn process(&mut self, life: &ProcessLife) {
        let machine = self.machine;
        let process = machine.process(life.process);
        self.begin_line("process");
        self.time("time", life.made);
        self.number("time_ns", life.made.0);
        if let Some(end) = process.end {
            self.number("duration_ns", end.0.saturating_sub(life.made.0));
        }
        self.pid(process);
        self.text("process", machine.string(process.name));
        if let Some(id) = process.parent {
            let parent = machine.process(id);
            // What it ran then: it may have executed something else since.
            let program = machine.program_at(id, life.made).map(|program| machine.program(program).name);
            self.number("parent_pid", parent.pid.0);
            self.text("parent", machine.string(program.unwrap_or(parent.name)));
        }
        if let Some(exit) = process.exit {
            self.ended_by(exit);
        }
        let mut programs: Vec<_> = machine.programs_of(life.process).collect();
        programs.reverse();
        self.array("executed", programs, |this, id| this.program(machine.program(id)));
    }

    fn program(&mut self, program: &Program) {
        let machine = self.machine;
        self.line.push_str("{\"program\":");
        string(&mut self.line, machine.string(program.name));
        // What was executed before the recording was so at no time that is known.
        if program.since > Nanos(0) {
            self.time("time", program.since);
            self.number("time_ns", program.since.0);
        }
        self.array("arguments", machine.arguments(program), |this, argument| {
            string(&mut this.line, argument);
        });
        if program.are_cut {
            self.line.push_str(",\"arguments_cut\":true");
        }
        self.line.push('}');
    }

    fn table(&mut self, table: &Table) {
        self.begin_line("table");
        self.text("table", &table.name);
        self.array("columns", &table.columns, |this, column| {
            this.line.push_str("{\"name\":");
            string(&mut this.line, &column.name);
            this.text("unit", column.unit.name());
            this.line.push('}');
        });
        self.array("rows", &table.rows, |this, (label, numbers)| {
            this.line.push_str("{\"label\":");
            string(&mut this.line, label);
            this.array("numbers", numbers, |this, number| {
                let _ = write!(this.line, "{number}");
            });
            this.line.push('}');
        });
    }

    /// Buckets from the first one to the last with anything in it, each from a size up to the next one's, which is not in it.
    fn histogram(&mut self, histogram: &Histogram) {
        let Histogram { name, label, unit, first_end, buckets, sum } = histogram;
        self.begin_line("histogram");
        self.text("histogram", name);
        self.text("label", label);
        self.text("unit", unit.name());
        self.number("count", buckets.iter().copied().map(u128::from).sum::<u128>());
        self.number("sum", sum);
        let filled = buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        let mut start = 0_u64;
        let bounded = buckets.iter().take(filled).enumerate().map(|(at, &count)| {
            // Whatever is larger than all is in the last one.
            let is_last = at + 1 == buckets.len();
            let doubled = if at == 0 { Some(*first_end) } else { start.checked_mul(2) };
            let bucket = (start, doubled.filter(|_| !is_last), count);
            start = doubled.unwrap_or(u64::MAX);
            bucket
        });
        self.array("buckets", bounded, |this, (start, end, count)| {
            let _ = match end {
                Some(end) => write!(this.line, "{{\"from\":{start},\"to\":{end}"),
                None => write!(this.line, "{{\"from\":{start},\"to\":null"),
            };
            this.number("count", count);
            this.line.push('}');
        });
    }
}
