//! What a format holds of a recording: the parts that a recording may have, and for each whether a format has a place for it.
//! [`Contents`](super::Contents) tells which of them a recording has.

/// What a recording may have beside its samples' values, stacks of functions, and names of threads. Where a format that holds other
/// parts alone is told of, they are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Part {
    /// Samples of several kinds. Others have those of the one that is shown
    /// ([`ExportMachine::shown_kind`](collector_common::record::ExportMachine::shown_kind)).
    Kinds,
    /// Samples whose value is 0 or less.
    NotPositive,
    /// When samples were.
    Times,
    /// Times of day before 1970, as a machine has them whose clock nobody set. Where a format has no place for them, its times are those
    /// of a recording whose time of day is not known.
    EarlyTimes,
    /// On which CPUs.
    Cpus,
    /// What samples say of themselves beside that, but for [`Self::Estimates`].
    Attributes,
    /// Which samples stand for others that were not recorded.
    Estimates,
    /// Of which processes samples are.
    Processes,
    /// Processes that nothing else of the recording is of: no sample, no span and no raw event.
    Unsampled,
    /// Of which threads, by their ids.
    ThreadIds,
    /// What threads were called before they were renamed.
    Renames,
    /// Command lines, users and cgroups of processes.
    Owners,
    /// Containers of processes.
    Containers,
    /// Programs that processes executed, with times.
    Programs,
    /// When processes started and ended.
    Lives,
    /// Which process made another.
    Parents,
    /// How processes ended: by themselves with a status, or by a signal.
    ExitStatuses,
    /// Pids of processes in the pid namespaces that they live in, where these are others.
    NamespacePids,
    /// Files that functions are in.
    Files,
    /// Build ids of files.
    BuildIds,
    /// What else files say of themselves: debug links, packages, what is for symbols of Windows.
    FileDetails,
    /// What files were mapped in which processes, and when; in part: as files are linked.
    Mappings,
    /// Numbers of source lines.
    Lines,
    /// Paths of source files.
    Sources,
    /// Inlined functions.
    Inlined,
    /// Which frames are guessed.
    Guesses,
    /// Which functions are to be left out by whoever shows the recording.
    FrameRules,
    /// How much one of a kind stands for.
    Periods,
    /// Distribution, processor and memory of the machine.
    System,
    /// Host and kernel.
    Host,
    /// The command that was recorded.
    Command,
    /// The account of losses, and numbers of an embedding program.
    Account,
    /// Raw events with their fields, where they were kept. Other formats have the samples of those; in part: switches and wakeups of
    /// threads, where those of all CPUs were recorded.
    Events,
    /// Spans of an embedding program.
    Spans,
    /// Tables, histograms, and processes that the recording was asked to tell of.
    Tables,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 35] = [
        Self::Kinds,
        Self::NotPositive,
        Self::Times,
        Self::EarlyTimes,
        Self::Cpus,
        Self::Attributes,
        Self::Estimates,
        Self::Processes,
        Self::Unsampled,
        Self::ThreadIds,
        Self::Renames,
        Self::Owners,
        Self::Containers,
        Self::Programs,
        Self::Lives,
        Self::Parents,
        Self::ExitStatuses,
        Self::NamespacePids,
        Self::Files,
        Self::BuildIds,
        Self::FileDetails,
        Self::Mappings,
        Self::Lines,
        Self::Sources,
        Self::Inlined,
        Self::Guesses,
        Self::FrameRules,
        Self::Periods,
        Self::System,
        Self::Host,
        Self::Command,
        Self::Account,
        Self::Events,
        Self::Spans,
        Self::Tables,
    ];

    /// What it is called where it is left out, for people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Kinds => "other kinds of samples",
            Self::NotPositive => "samples of 0 and less",
            Self::Times => "times",
            Self::EarlyTimes => "times of day before 1970",
            Self::Cpus => "CPUs",
            Self::Attributes => "attributes",
            Self::Estimates => "which values are estimates",
            Self::Processes => "processes",
            Self::Unsampled => "processes without samples",
            Self::ThreadIds => "threads' ids",
            Self::Renames => "threads' former names",
            Self::Owners => "command lines, users, cgroups",
            Self::Containers => "containers",
            Self::Programs => "executed programs",
            Self::Lives => "starts and ends of processes",
            Self::Parents => "parents of processes",
            Self::ExitStatuses => "exit statuses",
            Self::NamespacePids => "pids in their namespaces",
            Self::Files => "files",
            Self::BuildIds => "build ids",
            Self::FileDetails => "debug links, packages of files",
            Self::Mappings => "mappings",
            Self::Lines => "source lines",
            Self::Sources => "source files",
            Self::Inlined => "inlined functions",
            Self::Guesses => "which frames are guessed",
            Self::FrameRules => "which frames to drop",
            Self::Periods => "periods",
            Self::System => "distribution, processor, memory",
            Self::Host => "host, kernel",
            Self::Command => "the command",
            Self::Account => "the account of losses",
            Self::Events => "raw events",
            Self::Spans => "spans",
            Self::Tables => "tables and histograms",
        }
    }

    /// What is left out by a format that holds it in part, for people.
    pub fn text_of_rest(self) -> String {
        match self {
            Self::Mappings => "processes and times of mappings".to_owned(),
            Self::Estimates => format!("some of {}", self.text()),
            Self::Events => "raw events but all CPUs' switches and wakeups of threads".to_owned(),
            Self::Guesses => "frames that were read after their samples".to_owned(),
            _ => format!("some {}", self.text()),
        }
    }

    const fn bit(self) -> u64 {
        1 << self as u32
    }
}

/// How much of a part a format holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Nothing.
    Not,
    /// Not that of all samples, or not all of it.
    Partly,
    /// All of it, as exact as its numbers are.
    Wholly,
}

/// The parts that a format holds.
///
/// ```
/// use export::format::{Held, Holds, Part};
///
/// const HOLDS: Holds = Holds::nothing().with(&[Part::Times, Part::Kinds]).with_some(&[Part::Cpus]);
/// assert_eq!(HOLDS.held(Part::Times), Held::Wholly);
/// assert_eq!(HOLDS.held(Part::Cpus), Held::Partly);
/// assert_eq!(HOLDS.held(Part::Spans), Held::Not);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    wholly: u64,
    partly: u64,
}

impl Holds {
    /// No part: stacks, their threads' names and sums alone.
    pub const fn nothing() -> Self {
        Self { wholly: 0, partly: 0 }
    }

    /// Whatever there is.
    pub const fn everything() -> Self {
        Self::nothing().with(&Part::ALL)
    }

    /// These, too.
    #[must_use]
    pub const fn with(mut self, mut parts: &[Part]) -> Self {
        while let [part, rest @ ..] = parts {
            (self.wholly, self.partly, parts) = (self.wholly | part.bit(), self.partly & !part.bit(), rest);
        }
        self
    }

    /// Something of these, too.
    #[must_use]
    pub const fn with_some(mut self, mut parts: &[Part]) -> Self {
        while let [part, rest @ ..] = parts {
            (self.wholly, self.partly, parts) = (self.wholly & !part.bit(), self.partly | part.bit(), rest);
        }
        self
    }

    /// All but these.
    #[must_use]
    pub const fn without(mut self, mut parts: &[Part]) -> Self {
        while let [part, rest @ ..] = parts {
            (self.wholly, self.partly, parts) = (self.wholly & !part.bit(), self.partly & !part.bit(), rest);
        }
        self
    }

    /// How much of a part it holds.
    pub const fn held(self, part: Part) -> Held {
        if self.wholly & part.bit() != 0 {
            Held::Wholly
        } else if self.partly & part.bit() != 0 {
            Held::Partly
        } else {
            Held::Not
        }
    }

    /// Whether it holds anything of a part.
    pub const fn has(self, part: Part) -> bool {
        !matches!(self.held(part), Held::Not)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_there_once() {
        assert!(Part::ALL.is_sorted_by(|a, b| a < b));
        for part in Part::ALL {
            assert_eq!(Part::ALL.iter().filter(|other| other.bit() == part.bit()).count(), 1);
            let one = Holds::nothing().with(&[part]);
            assert_eq!(Part::ALL.into_iter().filter(|&other| one.has(other)).collect::<Vec<_>>(), [part]);
            assert_eq!(one.with_some(&[part]).held(part), Held::Partly);
            assert_eq!(one.with_some(&[part]).with(&[part]).held(part), Held::Wholly);
            assert_eq!(Holds::everything().without(&[part]).held(part), Held::Not);
        }
    }
}
