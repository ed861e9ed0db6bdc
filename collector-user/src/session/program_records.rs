//! What the records of our own programs become, beside those of times off, which several events share.

use collector_common::event::{Context, EventErrors};
use collector_common::ids::Nanos;
use collector_common::record::SampleKindId;

use super::allocations::Allocations;
use super::block_requests::BlockRequests;
use super::calls::Calls;
use super::faults::Faults;
use super::kernel_locks::KernelLocks;
use super::mapped::Mapped;
use super::transfers::Transfers;
use crate::recorder::Recorder;
use crate::source::{Hook, LeftBlock, Program, Settings, SourceRecord};

/// Where it goes: to the closures of the program's event, and as samples into the recording.
pub(super) struct Output<'a> {
    pub(super) recorder: &'a mut Recorder,
    pub(super) hook: &'a mut Hook,
    /// Of the event's samples.
    pub(super) kind: SampleKindId,
    pub(super) errors: &'a mut EventErrors,
}

impl Output<'_> {
    /// Hands data to the event's closures. `false` where its filter does not let it pass.
    pub(super) fn process(&mut self, context: &Context, data: &[u8]) -> bool {
        let context = self.recorder.for_closures(*context);
        self.hook.event.process_in(Some(&context), data, data, self.errors)
    }
}

/// Records of one program.
pub(super) trait ProgramRecords {
    /// Takes one record. Says whether it is in the recording, or can be.
    fn take(&mut self, output: &mut Output<'_>, record: &SourceRecord<'_>) -> bool;

    /// All records of a round have been taken: those from before `written` for certain.
    fn end_round(&mut self, _output: &mut Output<'_>, _written: Nanos) {}

    /// Recorded blocks of memory of what is gone, since the last call.
    fn take_left(&mut self) -> Vec<LeftBlock> {
        Vec::new()
    }

    /// All records have been taken.
    fn finish(&mut self, _output: &mut Output<'_>, _stopping: Nanos) {}
}

/// What makes samples of a program's records; `None` where it has none of its own.
pub(super) fn of_program(
    program: Program,
    settings: &Settings,
    recorder: &mut Recorder,
) -> Option<Box<dyn ProgramRecords>> {
    match program {
        Program::SystemCalls => Some(Box::new(Calls)),
        Program::BlockRequests => Some(Box::new(BlockRequests::new(settings.off_cpu_period))),
        Program::Allocations => Some(Box::new(Allocations::new(settings.allocation_period, recorder))),
        Program::Mapped => Some(Box::new(Mapped::new(settings.mapped_period))),
        Program::FileIo | Program::NetworkIo => Some(Box::new(Transfers::new(settings.off_cpu_period))),
        Program::KernelLocks => Some(Box::new(KernelLocks::new(settings.off_cpu_period))),
        Program::MinorFaults | Program::MajorFaults => Some(Box::new(Faults)),
        Program::LockOwners | Program::Functions => None,
        Program::OffCpu | Program::WallClock | Program::RunQueues | Program::Locks | Program::Processes => {
            None
        }
    }
}
