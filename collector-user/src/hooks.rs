//! Hooks of the embedding program on samples, before they are kept.

use std::borrow::Cow;
use std::fmt;

use collector_common::intern::{StackId, StringId};
use collector_common::record::{
    AttributeListId, AttributeValue, ExportMachine, Frame, FrameId, Module, ModuleId, Process, ProcessId,
    Sample, SampleKind, SampleKindId, Thread, ThreadId,
};

/// What becomes of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is recorded, as the hook left it.
    Keep,
    /// It is left out. It counts as delivered.
    Drop,
}

/// Called with each sample before it is kept: it may change it, give it attributes or another stack, or leave it out.
///
/// The value is in the unit of the sample's kind, and is not always how long one thing took: of times off and the like, which
/// are chosen with a probability where they are short, it is weighted, the time of one divided by its probability. Such samples have the
/// attribute [`ESTIMATED`](collector_common::record::ESTIMATED). When their thread has ended, they are scaled to its exact sum, which comes after. What
/// one occurrence took is a field of its event (`blocked_ns`), which a filter of the event is asked about: see
/// `SessionSettings::events` of `session`.
pub type SampleHook = Box<dyn FnMut(&mut SampleView<'_>, &mut Sample) -> Verdict>;

/// What a hook sees beside the sample: what its ids stand for, and how to have ids for what is to stand in it instead. Samples that
/// are kept are out of reach: the recording goes on to refer to them by where they are.
pub struct SampleView<'a>(&'a mut ExportMachine);

impl SampleView<'_> {
    /// A string.
    pub fn string(&self, id: StringId) -> &str {
        self.0.string(id)
    }

    /// The id of a string.
    pub fn intern_string(&mut self, string: &str) -> StringId {
        self.0.intern_string(string)
    }

    /// A thread, with its process and name.
    pub fn thread(&self, id: ThreadId) -> &Thread {
        self.0.thread(id)
    }

    /// A process.
    pub fn process(&self, id: ProcessId) -> &Process {
        self.0.process(id)
    }

    /// A kind of sample, with its name and the unit of its values. `None` for one that is not of this recording.
    pub fn kind(&self, id: SampleKindId) -> Option<&SampleKind> {
        self.0.kinds().get(usize::from(id.0))
    }

    /// A list of attributes, by name and value.
    pub fn attributes(&self, id: AttributeListId) -> &[(StringId, AttributeValue)] {
        self.0.attributes().get(id)
    }

    /// What a sample's attribute says, as text.
    pub fn attribute(&self, sample: &Sample, name: &str) -> Option<Cow<'_, str>> {
        self.0.attribute(sample.attributes, name)
    }

    /// The id of a list of attributes.
    pub fn intern_attributes<V: Into<AttributeValue> + Copy>(
        &mut self,
        list: &[(StringId, V)],
    ) -> AttributeListId {
        self.0.attributes_mut().intern(list)
    }

    /// A call stack, leaf first.
    pub fn stack(&self, id: StackId) -> &[FrameId] {
        self.0.stacks().get(id)
    }

    /// The id of a call stack, leaf first.
    pub fn intern_stack(&mut self, stack: &[FrameId]) -> StackId {
        self.0.intern_stack(stack)
    }

    /// A frame. It has no names yet: they are looked up when all is recorded.
    pub fn frame(&self, id: FrameId) -> &Frame {
        self.0.frames().get(id)
    }

    /// The module that a frame is in.
    pub fn module(&self, id: ModuleId) -> &Module {
        self.0.module(id)
    }
}

/// Hooks in the order in which they were added; one that drops a sample is the last to see it.
#[derive(Default)]
pub(crate) struct SampleHooks(Vec<SampleHook>);

impl SampleHooks {
    pub(crate) fn add(&mut self, hooks: Vec<SampleHook>) {
        self.0.extend(hooks);
    }

    pub(crate) fn keep(&mut self, machine: &mut ExportMachine, sample: &mut Sample) -> bool {
        let mut view = SampleView(machine);
        self.0.iter_mut().all(|hook| hook(&mut view, sample) == Verdict::Keep)
    }
}

/// Shows the samples of a recording that is over to a hook, which may change or drop them.
#[cfg(windows)]
pub(crate) fn show_samples(machine: &mut ExportMachine, hook: &mut SampleHook) {
    machine.change_samples(|machine, sample| hook(&mut SampleView(machine), sample) == Verdict::Keep);
}

impl fmt::Debug for SampleHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hooks", self.0.len())
    }
}
