//! The program at tracepoints that copies their records: attached to each of the session's while it is recorded.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use aya::Ebpf;
use aya::maps::{Array, MapData};
use aya::programs::{ProgramFd, TracePoint};
use collector_common::loss::{Ledger, LossCause};
use collector_common::wire::{Counter, SampleFlags, SampleHeader, Tracepoint, TracepointCookie};
use perf_event_open_sys::bindings::{PERF_TYPE_TRACEPOINT, perf_event_attr};

use super::attached::Attached;
use super::error::LoadError;
use super::links::Links;
use super::load;
use super::part::{Ended, Part};
use crate::source::{Account, EventIndex, EventRequest, Targets, Trigger};
use crate::sys::bpf_program::{link_to_event, program_info};
use crate::sys::perf_event::{PerfEvent, Whom};

/// The program's name.
const PROGRAM: &str = "tracepoint_is_passed";

/// The map that says whether it records.
const GATE: &str = "TRACEPOINTS_OPEN";

/// Of occurrences that the program was left out for.
const MAY_BE_MISSING: &str = "occurrences of tracepoints in all processes met another program on their CPU and were not recorded: some of \
     them may be of those that were chosen";

/// A tracepoint whose records are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopiedTracepoint {
    /// By which perf events know it, wider than what its records have.
    id: u64,
    cookie: TracepointCookie,
}

impl CopiedTracepoint {
    /// What is asked for, where it is such a tracepoint.
    pub(super) fn of(request: &EventRequest) -> Option<Self> {
        let Trigger::Tracepoint(id) = request.trigger else { return None };
        let cookie = TracepointCookie {
            event: request.index.0,
            id: u16::try_from(id).ok()?,
            bytes: request.copied?.bytes,
            stack: request.stack,
        };
        Some(Self { id, cookie })
    }

    fn open(self, cpu: u32) -> io::Result<PerfEvent> {
        let mut attr = perf_event_attr {
            size: size_of::<perf_event_attr>() as u32,
            type_: PERF_TYPE_TRACEPOINT,
            config: self.id,
            ..perf_event_attr::default()
        };
        // Programs run at the tracepoint whether the event counts or not, and on every CPU.
        attr.set_disabled(1);
        PerfEvent::open(&attr, Whom::Anyone, cpu)
    }
}

/// The program.
pub(super) struct Tracepoints {
    asked: Vec<CopiedTracepoint>,
    /// Those that take programs.
    open: Vec<CopiedTracepoint>,
    /// There are none at tracepoints that it attaches itself to.
    others: Attached,
    program: Option<OwnedFd>,
    /// Whether occurrences are recorded.
    gate: Option<Array<MapData, u32>>,
    links: Links,
    /// How often the program was left out before occurrences were recorded, and while they were.
    left_out: [u64; 2],
    /// Records taken out of the rings.
    taken: u64,
    /// Whether what only some threads do is recorded.
    are_chosen: bool,
}

impl Tracepoints {
    pub(super) fn new(asked: Vec<CopiedTracepoint>, targets: &Targets) -> Self {
        let others = Attached::new(&[]);
        let are_chosen = *targets != Targets::default();
        Self {
            asked,
            open: Vec::new(),
            others,
            program: None,
            gate: None,
            links: Links::default(),
            left_out: [0; 2],
            taken: 0,
            are_chosen,
        }
    }

    /// All tracepoints together begin and end to be recorded, however long it takes to attach the program to each.
    fn record(&mut self, is_on: bool) -> io::Result<()> {
        let gate = self.gate.as_mut().ok_or(io::ErrorKind::NotFound)?;
        gate.set(0, u32::from(is_on), 0).map_err(io::Error::other)?;
        let [.., left_out] = self.told_of_program();
        let [before, during] = &mut self.left_out;
        if is_on {
            *before = left_out;
        } else {
            *during = left_out.saturating_sub(*before);
        }
        Ok(())
    }

    /// Time in the program in nanoseconds, its runs, and how often it was left out.
    fn told_of_program(&self) -> [u64; 3] {
        let info = self.program.as_ref().and_then(|program| program_info(program.as_fd()).ok());
        info.map_or([0; 3], |info| [info.run_time_ns, info.run_cnt, info.recursion_misses])
    }
}

impl Part for Tracepoints {
    fn programs(&mut self) -> &mut Attached {
        &mut self.others
    }

    /// Attaches the program, which records nothing yet: whether a tracepoint takes it shows in no other way. Events that tracefs was told
    /// of (probes, those of user space) look like tracepoints, and take no programs for those: such a one, and one that is there
    /// twice, is left to plain perf events.
    fn loaded(&mut self, ebpf: &mut Ebpf) -> Result<(), LoadError> {
        let program = loaded_program(ebpf, PROGRAM)?;
        for &tracepoint in &self.asked {
            let is_there = self.open.iter().any(|open| open.id == tracepoint.id);
            // A CPU that is always there; where it is not, plain perf events say what is wrong.
            let Some(event) = tracepoint.open(0).ok().filter(|_| !is_there) else { continue };
            // The link keeps the event.
            if let Ok(link) = link_to_event(program.as_fd(), event.as_fd(), tracepoint.cookie.pack()) {
                self.links.0.push(link);
                self.open.push(tracepoint);
            }
        }
        self.program = Some(program);
        let map = ebpf.take_map(GATE).ok_or_else(|| LoadError::missing(format!("map {GATE}")))?;
        let gate = Array::try_from(map)
            .map_err(|error| LoadError::step(format!("map {GATE} could not be opened"), error))?;
        self.gate = Some(gate);
        Ok(())
    }

    fn copies(&self, event: EventIndex) -> bool {
        self.open.iter().any(|open| open.cookie.event == event.0)
    }

    fn started(&mut self) -> io::Result<()> {
        self.record(true)
    }

    fn stopped(&mut self, _ebpf: &mut Ebpf) -> io::Result<()> {
        self.record(false)
    }

    fn event_of(&mut self, header: &SampleHeader) -> Option<EventIndex> {
        if !header.flags().has(SampleFlags::TRACEPOINT) {
            return None;
        }
        self.taken += 1;
        let Tracepoint { event, .. } = bytemuck::cast(header.data);
        Some(EventIndex(event))
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn lost(&self) -> &'static [Counter] {
        &[Counter::TracepointsLost]
    }

    fn cost(&mut self, _ebpf: &mut Ebpf) -> [u64; 2] {
        let [ns, runs, _] = self.told_of_program();
        [ns, runs]
    }

    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, account: &mut Account) -> io::Result<()> {
        ledger.lose(LossCause::RingFull, ended.counted.counter(Counter::TracepointsLost));
        let recorded = ended.counted.counter(Counter::TracepointsRecorded);
        ledger.lose(LossCause::Unaccounted, recorded.saturating_sub(self.taken));
        let [.., left_out] = self.left_out;
        // The kernel counts them for all threads together.
        if self.are_chosen {
            account.warnings.push((left_out, MAY_BE_MISSING));
        } else {
            ledger.lose(LossCause::NotRun, left_out);
        }
        Ok(())
    }
}

fn loaded_program(ebpf: &mut Ebpf, name: &str) -> Result<OwnedFd, LoadError> {
    let program = load::program::<TracePoint>(ebpf, name)?;
    program.load().map_err(|error| load::refused(name, error))?;
    let fd = program.fd().and_then(|fd: &ProgramFd| Ok(fd.as_fd().try_clone_to_owned()?));
    fd.map_err(|error| LoadError::step(format!("program {name} could not be used"), error))
}
