//! Which programs a session needs, by what it asks for.

use collector_common::wire::Times;

use super::allocations::Allocations;
use super::blocks::Blocks;
use super::calls::Calls;
use super::kernel_locks::KernelLocks;
use super::lives::Lives;
use super::load::Level;
use super::mapped::Mapped;
use super::part::Part;
use super::switches::Switches;
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
    /// Whether processes are told of.
    pub(super) lives: bool,
    /// The number of records of blocks of memory, where those are asked for.
    pub(super) allocations: Option<EventIndex>,
    /// The number of records of memory that the kernel gives, where those are asked for.
    pub(super) mapped: Option<EventIndex>,
    /// The number of records of slow system calls, where those are counted.
    pub(super) calls: Option<EventIndex>,
    /// The number of the records of requests to block devices, where those are asked for.
    pub(super) block: Option<EventIndex>,
    /// The number of the records of who releases locks of user code, where that is asked for.
    pub(super) owners: Option<EventIndex>,
    /// The number of the records of waits for locks of the kernel, where those are asked for.
    pub(super) kernel_locks: Option<EventIndex>,
}

impl Asked {
    /// By the settings, and the requests that are for programs. Several of those share their records.
    pub(super) fn of(settings: &Settings, requests: &[EventRequest]) -> Self {
        let mut asked = Self {
            clock: settings.clock,
            times: 0,
            event: EventIndex::CLOCK,
            lives: false,
            allocations: None,
            mapped: None,
            calls: None,
            block: None,
            owners: None,
            kernel_locks: None,
        };
        for request in requests {
            let Trigger::Program(program) = request.trigger else { continue };
            if program == Program::BlockRequests {
                asked.block = Some(request.index);
            }
            match program {
                Program::LockOwners => asked.owners = Some(request.index),
                Program::KernelLocks => asked.kernel_locks = Some(request.index),
                _ => {}
            }
            asked.times |= match program {
                Program::OffCpu => Times::BLOCKED,
                Program::WallClock => Times::BLOCKED | Times::PREEMPTED | Times::RAN,
                Program::RunQueues => Times::QUEUED,
                Program::Locks => Times::LOCKS,
                _ => 0,
            };
            asked.clock |= program == Program::WallClock;
            asked.lives |= program == Program::Processes;
            if program == Program::Allocations {
                asked.allocations = Some(request.index);
            }
            if program == Program::Mapped {
                asked.mapped = Some(request.index);
            }
            if program == Program::SystemCalls {
                asked.calls = Some(request.index);
            }
            if asked.event == EventIndex::CLOCK && program.is_of_times_off() {
                asked.event = request.index;
            }
        }
        asked
    }

    /// What records that, beside the sampling program. Records of requests, of memory and of times off have a flag in common, so that
    /// the times off come last.
    pub(super) fn parts(&self, settings: &Settings, level: Level) -> Vec<Box<dyn Part>> {
        let lives = self.lives.then(|| Box::new(Lives::new()) as Box<dyn Part>);
        let calls = self.calls.map(|event| Box::new(Calls::new(event, level.call_end)) as Box<dyn Part>);
        let blocks = self.block.map(|event| Box::new(Blocks::new(event)) as Box<dyn Part>);
        let allocations = self.allocations.map(|event| Allocations::new(event, level));
        let allocations = allocations.map(|allocations| Box::new(allocations) as Box<dyn Part>);
        let mapped =
            self.mapped.map(|event| Box::new(Mapped::new(event, level.memory_grows)) as Box<dyn Part>);
        let kernel_locks = self.kernel_locks.filter(|_| level.tells_contention);
        let kernel_locks = kernel_locks.map(|event| Box::new(KernelLocks::new(event)) as Box<dyn Part>);
        let switches = || Box::new(Switches::new(settings, *self, level)) as Box<dyn Part>;
        let switches = (self.times != 0).then(switches);
        [lives, calls, blocks, allocations, mapped, kernel_locks, switches].into_iter().flatten().collect()
    }
}
