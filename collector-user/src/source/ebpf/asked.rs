//! Which programs a session needs, by what it asks for.

use std::sync::Arc;

use collector_common::wire::Times;

use super::allocations::Allocations;
use super::blocks::Blocks;
use super::calls::Calls;
use super::faults::Faults;
use super::functions::Functions;
use super::kernel_locks::KernelLocks;
use super::lives::Lives;
use super::load::Level;
use super::mapped::Mapped;
use super::part::Part;
use super::switches::Switches;
use super::tracepoints::{CopiedTracepoint, Tracepoints};
use super::transfers::Transfers;
use crate::probe::KernelFunctions;
use crate::source::{EventIndex, EventRequest, Program, Settings, Shortest, Trigger};

/// What the programs are asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Whether the sampling clock ticks.
    pub(super) clock: bool,
    /// [`Times`] bits of what is kept account of for each thread.
    pub(super) times: u32,
    /// The number of the records of that.
    pub(super) event: EventIndex,
    /// All that is asked for, with the numbers of its records.
    programs: Vec<(Program, EventIndex)>,
    /// The kernel's functions, with the numbers of their events.
    functions: Vec<(EventIndex, Arc<KernelFunctions>)>,
    /// Tracepoints whose records are copied.
    tracepoints: Vec<CopiedTracepoint>,
    /// Whether it is to be said whose hits of probes are recorded.
    pub(super) chooses_hits: bool,
}

impl Asked {
    /// By the settings, and the requests that are for programs. Those of times off share their records.
    pub(super) fn of(settings: &Settings, requests: &[EventRequest]) -> Self {
        let programs = requests.iter().filter_map(|request| match request.trigger {
            Trigger::Program(program) => Some((program, request.index)),
            _ => None,
        });
        let programs: Vec<_> = programs.collect();
        let times = programs.iter().map(|(program, _)| match program {
            Program::OffCpu => Times::BLOCKED,
            Program::WallClock => Times::BLOCKED | Times::PREEMPTED | Times::RAN,
            Program::RunQueues => Times::QUEUED,
            Program::Locks => Times::LOCKS,
            _ => 0,
        });
        let of_times_off = programs.iter().find(|(program, _)| program.is_of_times_off());
        Self {
            clock: settings.clock || programs.iter().any(|(program, _)| *program == Program::WallClock),
            times: times.fold(0, |all, bits| all | bits),
            event: of_times_off.map_or(EventIndex::CLOCK, |(_, index)| *index),
            programs,
            functions: requests
                .iter()
                .filter_map(|request| Some((request.index, request.functions.clone()?)))
                .collect(),
            tracepoints: requests.iter().filter_map(CopiedTracepoint::of).collect(),
            chooses_hits: requests.iter().any(|request| request.is_in_programs),
        }
    }

    /// The shortest time off the CPU that a program other than that of locks tells of, in nanoseconds.
    pub(super) fn shortest_off_cpu(&self, shortest: &Shortest) -> u64 {
        let others = self.programs.iter().filter(|(program, _)| *program != Program::Locks);
        others.filter_map(|(program, _)| shortest.of(*program)).min().map_or(u64::MAX, |shortest| shortest.0)
    }

    /// Whether programs write records into rings.
    pub(super) fn has_records(&self) -> bool {
        self.clock || !self.programs.is_empty() || !self.functions.is_empty() || !self.tracepoints.is_empty()
    }

    /// Whether records of tracepoints are copied.
    pub(super) fn copies_tracepoints(&self) -> bool {
        !self.tracepoints.is_empty()
    }

    /// The number of a program's records, where it is asked for.
    pub(super) fn index(&self, program: Program) -> Option<EventIndex> {
        self.programs.iter().find(|(asked, _)| *asked == program).map(|(_, index)| *index)
    }

    /// What of it is recorded by programs that have no instance for kernels without `bpf_find_vma`.
    pub(super) fn with_find_vma(&self) -> Option<&'static str> {
        self.programs.iter().find_map(|(program, _)| match program {
            Program::BlockRequests => Some("requests to block devices"),
            Program::FileIo => Some("reads and writes of files"),
            Program::NetworkIo => Some("calls on sockets"),
            _ => None,
        })
    }

    /// What records that, beside the sampling program. Records of requests, of memory, of locks and of times off have a flag in
    /// common, so that the times off come last.
    pub(super) fn parts(&self, settings: &Settings, level: Level) -> Vec<Box<dyn Part>> {
        let mut parts: Vec<Box<dyn Part>> = Vec::new();
        if self.index(Program::Processes).is_some() {
            parts.push(Box::new(Lives::new()));
        }
        if let Some(event) = self.index(Program::SystemCalls) {
            parts.push(Box::new(Calls::new(event, level.call_end, settings)));
        }
        if let Some(event) = self.index(Program::BlockRequests) {
            parts.push(Box::new(Blocks::new(event)));
        }
        if let Some(event) = self.index(Program::Allocations) {
            parts.push(Box::new(Allocations::new(event, level)));
        }
        if let Some(event) = self.index(Program::Mapped) {
            parts.push(Box::new(Mapped::new(event, level.memory_grows)));
        }
        let [minor, major] = [Program::MinorFaults, Program::MajorFaults].map(|program| self.index(program));
        if minor.or(major).is_some() {
            parts.push(Box::new(Faults::new(minor, major, level)));
        }
        let [files, sockets] = [Program::FileIo, Program::NetworkIo].map(|program| self.index(program));
        if files.or(sockets).is_some() {
            parts.push(Box::new(Transfers::new(files, sockets)));
        }
        if let Some(event) = self.index(Program::KernelLocks).filter(|_| level.tells_contention()) {
            parts.push(Box::new(KernelLocks::new(event)));
        }
        if !self.functions.is_empty() {
            parts.push(Box::new(Functions::new(self.functions.clone(), &settings.targets)));
        }
        if !self.tracepoints.is_empty() {
            parts.push(Box::new(Tracepoints::new(self.tracepoints.clone(), &settings.targets)));
        }
        if self.times != 0 {
            parts.push(Box::new(Switches::new(settings, self.clone(), level)));
        }
        parts
    }
}
