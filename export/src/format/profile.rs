//! What a format is: it is given a [`Profile`] and writes bytes.

use std::io::{self, Write};

use collector_common::record::ExportMachine;

use super::{Held, Holds, Part};
use crate::symbolize::Symbols;

/// What a format is given.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// The recording.
    pub machine: &'a ExportMachine,
    /// Names for its frames.
    pub symbols: &'a Symbols,
}

/// A way to write a profile.
pub trait ExportFormat: Sync {
    /// Its name for `--format`.
    fn name(&self) -> &'static str;
    /// The file ending that selects it, with the dot.
    fn ending(&self) -> &'static str;
    /// What it can hold, in one line.
    fn description(&self) -> &'static str;
    /// Which parts of a recording it holds. What a recording has of others is told to the user, a line for each output
    /// ([`Contents::left_out`](super::Contents::left_out)); raw events are kept only where an output holds them
    /// ([`Self::keeps_events_of`]).
    fn holds(&self) -> Holds;
    /// The same of a recording without samples, where a format has nothing to tell the rest by.
    fn holds_without_samples(&self) -> Holds {
        self.holds()
    }
    /// Whether raw events of this name (`sched:sched_switch`) are kept for it: where it holds them wholly all are, and of one that holds
    /// [some](Holds::with_some) it says which.
    fn keeps_events_of(&self, _name: &str) -> bool {
        self.holds().held(Part::Events) == Held::Wholly
    }
    /// Writes the whole profile. Who has it written asks for [`Self::export`].
    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()>;
    /// Writes the whole profile, and fails where it is not whole: what was put into a temporary file while it was recorded could not be
    /// read back.
    fn export(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        self.write(profile, out)?;
        profile.machine.samples().check()
    }
}
