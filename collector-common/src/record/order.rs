//! What happened, in the order of time.

use super::{ExportMachine, ModuleMapping, ProcessId, ProgramId, Sample};
use crate::ids::Nanos;

/// Something that happened at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened<'a> {
    /// A process was made, or was there when the recording began (time 0).
    ProcessStarted(ProcessId),
    /// A process executed a program, or ran it when the recording began (time 0).
    Executed(ProgramId),
    /// A module was mapped, or was there when the recording began (time 0): its position in
    /// [`ExportMachine::mappings`], and the mapping.
    Mapped(u32, &'a ModuleMapping),
    /// A sample was taken.
    Sampled(Sample),
    /// A process's last thread ended.
    ProcessEnded(ProcessId),
}

/// What is where, in the order of those that happened at once: a sample's process and mapping are there before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    Started(u32),
    Executed(u32),
    Mapped(u32),
    Sampled(u32),
    Ended(u32),
}

impl ExportMachine {
    /// Everything with its time, oldest first: programs, mappings and ends of a process not before it was made, whatever their own times
    /// are. Needs 16 bytes for each sample until it is dropped.
    pub fn in_time_order(&self) -> impl ExactSizeIterator<Item = (Nanos, Happened<'_>)> {
        let processes = || self.processes().iter().zip(0..);
        let started = processes().map(|(process, at)| (process.start, Entry::Started(at)));
        let start =
            |process: ProcessId| self.processes().get(process.0 as usize).map(|process| process.start);
        let not_before = |process, time: Nanos| start(process).map_or(time, |start| time.max(start));
        let ended = processes()
            .filter_map(|(process, at)| Some((not_before(ProcessId(at), process.end?), Entry::Ended(at))));
        let executed = self.programs().iter().zip(0..);
        let executed =
            executed.map(|(program, at)| (not_before(program.process, program.since), Entry::Executed(at)));
        let mapped = self
            .mappings()
            .iter()
            .zip(0..)
            .map(|(mapping, at)| (not_before(mapping.process, mapping.since), Entry::Mapped(at)));
        let sampled = self.samples().times().iter().zip(0..).map(|(&time, at)| (time, Entry::Sampled(at)));
        let mut order: Vec<(Nanos, Entry)> =
            started.chain(executed).chain(mapped).chain(sampled).chain(ended).collect();
        order.sort_unstable();
        order.into_iter().map(|(time, entry)| (time, self.happened(entry)))
    }

    fn happened(&self, entry: Entry) -> Happened<'_> {
        match entry {
            Entry::Started(at) => Happened::ProcessStarted(ProcessId(at)),
            Entry::Executed(at) => Happened::Executed(ProgramId(at)),
            Entry::Mapped(at) => Happened::Mapped(at, &self.mappings()[at as usize]),
            Entry::Sampled(at) => Happened::Sampled(self.samples().at(at as usize)),
            Entry::Ended(at) => Happened::ProcessEnded(ProcessId(at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Avma, FileOffset, Pid, Tid};
    use crate::intern::{StackId, StringId};
    use crate::record::{AttributeListId, ModuleId, SampleKindId};

    #[test]
    fn things_of_one_moment_come_as_they_need_each_other() {
        let mut machine = ExportMachine::default();
        let process = machine.add_process(Pid(7), "p", None, Nanos(50));
        let thread = machine.intern_thread(process, Tid(7), StringId::EMPTY);
        let mapping = ModuleMapping {
            process,
            module: ModuleId::KERNEL,
            start: Avma(0),
            end: Avma(1),
            file_offset: FileOffset(0),
            bias: 0,
            since: Nanos(50),
        };
        let sample = |time| Sample {
            time: Nanos(time),
            thread,
            stack: StackId::EMPTY,
            cpu: 0,
            kind: SampleKindId(0),
            value: 1,
            attributes: AttributeListId::NONE,
        };
        for time in [90, 50, 70] {
            machine.add_sample(&sample(time));
        }
        machine.end_process(process, Nanos(90));
        machine.add_mapping(mapping);
        let program = machine.add_program(process, Nanos(50), "p");
        let early = ModuleMapping { since: Nanos(3), ..mapping };
        machine.add_mapping(early);
        let short = machine.add_process(Pid(8), "q", None, Nanos(95));
        machine.end_process(short, Nanos(94));
        let told: Vec<_> = machine.in_time_order().collect();
        let expected = [
            (50, Happened::ProcessStarted(process)),
            (50, Happened::Executed(program)),
            (50, Happened::Mapped(0, &mapping)),
            (50, Happened::Mapped(1, &early)),
            (50, Happened::Sampled(sample(50))),
            (70, Happened::Sampled(sample(70))),
            (90, Happened::Sampled(sample(90))),
            (90, Happened::ProcessEnded(process)),
            (95, Happened::ProcessStarted(short)),
            (95, Happened::ProcessEnded(short)),
        ];
        assert_eq!(told, expected.map(|(time, happened)| (Nanos(time), happened)));
    }
}
