//! Folded stacks: one line `comm;root;...;leaf count` for each distinct stack of names, sorted.
//!
//! `comm` is the thread's name, or its process's where it has none. Kernel frames end in `_[k]`; functions that were inlined, which stand leafward of what they
//! were inlined into, end in `_[i]`; an address without a name is `module+0xoffset`. The
//! count is the sum of the samples' values of one kind
//! ([`ExportMachine::shown_kind`](collector_common::record::ExportMachine::shown_kind)). Characters that
//! would break a line apart are replaced.

use std::io::{self, BufWriter, Write};

use super::stacks::{Order, Stacks};
use crate::format::{ExportFormat, Holds, Part, Profile};

/// The folded format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Folded;

impl ExportFormat for Folded {
    fn name(&self) -> &'static str {
        "folded"
    }

    fn ending(&self) -> &'static str {
        ".folded"
    }

    fn description(&self) -> &'static str {
        "one line a stack, `comm;root;...;leaf count`, for flame graph scripts and for grep"
    }

    fn holds(&self) -> Holds {
        Holds::nothing().with(&[Part::NotPositive, Part::Renames, Part::Inlined])
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let stacks = Stacks::of(profile, Order::Names);
        let mut out = BufWriter::with_capacity(1 << 16, out);
        let mut line = String::new();
        for stack in stacks.counts() {
            line.clear();
            stacks.line(&mut line, stack.names(&stacks));
            writeln!(out, "{line} {}", stack.count)?;
        }
        out.flush()
    }
}
