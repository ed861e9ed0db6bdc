//! Which programs a session needs, by what it asks for.

use collector_common::wire::Times;

use crate::source::{EventIndex, EventRequest, Program, Settings, Trigger};

/// What the programs are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Whether the sampling clock ticks.
    pub(super) clock: bool,
    /// [`Times`] bits of what is kept account of for each thread.
    pub(super) times: u32,
    /// The number of the records of that.
    pub(super) event: EventIndex,
    /// The number of the records of requests to block devices, where those are asked for.
    pub(super) block: Option<EventIndex>,
}

impl Asked {
    /// By the settings, and the requests that are for programs. Several of those share their records.
    pub(super) fn of(settings: &Settings, requests: &[EventRequest]) -> Self {
        let mut asked = Self { clock: settings.clock, times: 0, event: EventIndex::CLOCK, block: None };
        for request in requests {
            let Trigger::Program(program) = request.trigger else { continue };
            if program == Program::BlockRequests {
                asked.block = Some(request.index);
            }
            asked.times |= match program {
                Program::OffCpu => Times::BLOCKED,
                Program::WallClock => Times::BLOCKED | Times::PREEMPTED | Times::RAN,
                Program::RunQueues => Times::QUEUED,
                Program::Locks => Times::LOCKS,
                Program::BlockRequests => 0,
            };
            asked.clock |= program == Program::WallClock;
            let has_records = !matches!(program, Program::RunQueues | Program::BlockRequests);
            if asked.event == EventIndex::CLOCK && has_records {
                asked.event = request.index;
            }
        }
        asked
    }
}
