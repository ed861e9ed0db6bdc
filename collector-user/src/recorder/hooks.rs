//! Hooks of the embedding program on samples, before they are kept.

use std::fmt;

use collector_common::record::{ExportMachine, Sample};

/// What becomes of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is recorded, as the hook left it.
    Keep,
    /// It is left out. It counts as delivered.
    Drop,
}

/// Called with each sample before it is kept: it may change it, give it attributes or another stack of the machine, or leave it out.
/// Times off the CPU that stand for several are multiplied when their thread ends, which comes after.
pub type SampleHook = Box<dyn FnMut(&mut ExportMachine, &mut Sample) -> Verdict>;

/// Hooks in the order in which they were added; one that drops a sample is the last to see it.
#[derive(Default)]
pub(super) struct SampleHooks(Vec<SampleHook>);

impl SampleHooks {
    pub(super) fn add(&mut self, hooks: Vec<SampleHook>) {
        self.0.extend(hooks);
    }

    pub(super) fn keep(&mut self, machine: &mut ExportMachine, sample: &mut Sample) -> bool {
        self.0.iter_mut().all(|hook| hook(machine, sample) == Verdict::Keep)
    }
}

impl fmt::Debug for SampleHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hooks", self.0.len())
    }
}
