//! A plan as people read it.

use std::fmt;

use super::compose::{Plan, Privilege};
use super::heap::HeapPlan;
use super::user::{EventIds, ProviderPlan, Stacks, When};

impl fmt::Display for Privilege {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Administrator => "an administrator's elevated process",
            Self::SystemProfile => "SeSystemProfilePrivilege",
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let privileges: Vec<String> = self.privileges().iter().map(ToString::to_string).collect();
        writeln!(out, "for {}", self.names.join(", "))?;
        writeln!(out, "needs {}", privileges.join(" and "))?;
        writeln!(out, "clock: performance counter, raw")?;
        writeln!(out, "buffers: {}", self.buffers)?;
        if !self.system.flags.is_empty() {
            writeln!(out, "system logger")?;
            writeln!(out, "  flags {}", self.system.flags)?;
            if let Some(interval) = self.system.interval {
                writeln!(out, "  samples every {interval}")?;
            }
            for event in &self.system.stacks {
                writeln!(out, "  stacks of {} {} {}", event.class, event.opcode, event.name)?;
            }
        }
        self.providers.iter().try_for_each(|provider| write!(out, "{provider}"))?;
        if let Some(heap) = &self.heap {
            writeln!(out, "heap session {}", HeapPlan::PROVIDER)?;
            writeln!(out, "  of processes {}", list(heap.pids.iter().map(|pid| pid.0)))?;
            let stacks: Vec<String> = HeapPlan::STACKS.iter().map(|id| format!("{id:#x}")).collect();
            writeln!(out, "  stacks of {}", stacks.join(" "))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(out, "note: {}", note.text()))
    }
}

impl fmt::Display for ProviderPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = match self.when {
            When::Always => "provider",
            When::AtEnd => "before the end, provider",
        };
        writeln!(out, "{when} {} {}", self.guid, self.name)?;
        let (number, level) = (self.level.number(), self.level.name());
        write!(out, "  up to level {number} ({level}), ")?;
        match self.any {
            0 => write!(out, "any keyword")?,
            any => write!(out, "one keyword of {any:#x}")?,
        }
        match self.all {
            0 => writeln!(out)?,
            all => writeln!(out, " and all of {all:#x}")?,
        }
        if let EventIds::Only(ids) = &self.ids {
            writeln!(out, "  events {}", list(ids))?;
        }
        match &self.stacks {
            Stacks::None => writeln!(out, "  no stacks")?,
            Stacks::Only(ids) => writeln!(out, "  stacks of events {}", list(ids))?,
            Stacks::All => writeln!(out, "  stacks of all events")?,
        }
        if !self.pids.is_empty() {
            writeln!(out, "  of processes {}", list(self.pids.iter().map(|pid| pid.0)))?;
        }
        if self.capture_state {
            writeln!(out, "  tells its state at the start")?;
        }
        Ok(())
    }
}

fn list(items: impl IntoIterator<Item = impl fmt::Display>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(" ")
}
