//! The programs at the kernel's counters of page faults, and what was counted by the names of processes.
//!
//! In: a counter for each CPU and kind of fault, at each count of which the program runs. The counters know nothing of what the
//! programs count: what the kernel did not run them for follows from the two.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd as _;

use aya::Ebpf;
use aya::maps::PerCpuHashMap;
use aya::programs::PerfEvent as PerfEventProgram;
use collector_common::loss::{Ledger, LossCause};
use collector_common::record::{Column, Table, Unit};
use collector_common::wire::{COMM_LEN, Counter, Fault, FaultCounts, SampleFlags, SampleHeader};
use perf_event_open_sys::bindings::{PERF_TYPE_SOFTWARE, perf_event_attr};

use super::attached::Attached;
use super::error::LoadError;
use super::load::{self, Level};
use super::part::{Ended, Part};
use crate::source::cpu_life::CpuLife;
use crate::source::scope::Scope;
use crate::source::{Account, EventIndex, Program};
use crate::sys::perf_event::{PerfEvent, Whom};

/// Names of processes that are counted for themselves.
const NAMES: u32 = 1 << 10;

/// What is counted of a name, as the map has it.
type Words = [u64; size_of::<FaultCounts>() / 8];

/// One of the two programs.
struct Kind {
    /// The number of its records.
    event: EventIndex,
    /// Its name in the object.
    program: &'static str,
    /// What it is attached to: `PERF_COUNT_SW_*`.
    counter: u32,
}

/// A CPU's counters.
struct Cpu {
    counters: Vec<PerfEvent>,
    life: CpuLife,
}

/// The programs.
pub(super) struct Faults {
    /// There are none at tracepoints.
    at_tracepoints: Attached,
    minor: Option<Kind>,
    major: Option<Kind>,
    cpus: BTreeMap<u32, Cpu>,
    is_started: bool,
    /// What counters counted that ended with their CPU.
    counted_before: u64,
    /// Records taken out of the rings.
    taken: u64,
}

impl Faults {
    /// `minor` and `major` are the numbers of their records, where they are asked for.
    pub(super) fn new(minor: Option<EventIndex>, major: Option<EventIndex>, level: Level) -> Self {
        let [of_minor, of_major] = level.faults;
        let kind = |event: Option<EventIndex>, what: Program, program| {
            Some(Kind { event: event?, program, counter: what.counter()? })
        };
        Self {
            at_tracepoints: Attached::new(&[]),
            minor: kind(minor, Program::MinorFaults, of_minor),
            major: kind(major, Program::MajorFaults, of_major),
            cpus: BTreeMap::new(),
            is_started: false,
            counted_before: 0,
            taken: 0,
        }
    }

    fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.minor.iter().chain(&self.major)
    }

    fn open(&self, ebpf: &Ebpf, cpu: u32) -> Result<Cpu, LoadError> {
        let step =
            |error| LoadError::step(format!("the page faults of CPU {cpu} could not be counted"), error);
        let counters = self.kinds().map(|kind| {
            let counter = PerfEvent::open(&attributes(kind.counter), Whom::Anyone, cpu).map_err(step)?;
            let program = ebpf.program(kind.program).and_then(|program| program.try_into().ok());
            let program: &PerfEventProgram =
                program.ok_or_else(|| LoadError::missing(format!("program {}", kind.program)))?;
            let fd = program.fd().map_err(|error| {
                LoadError::step(format!("program {} could not be used", kind.program), error)
            })?;
            counter.set_bpf(fd.as_fd()).map_err(step)?;
            if self.is_started {
                counter.enable().map_err(step)?;
            }
            Ok(counter)
        });
        let counters = counters.collect::<Result<_, LoadError>>()?;
        Ok(Cpu { counters, life: CpuLife::open(&Scope::Machine, cpu).map_err(step)? })
    }

    /// Faults of the kinds that are asked for by the name of the process, those first that have most.
    fn table(&self, ebpf: &Ebpf) -> io::Result<Table> {
        let map = ebpf.map("FAULTS").ok_or(io::ErrorKind::NotFound)?;
        let map: PerCpuHashMap<_, [u8; COMM_LEN], Words> =
            PerCpuHashMap::try_from(map).map_err(io::Error::other)?;
        let mut rows = Vec::new();
        for entry in &map {
            let (name, cpus) = entry.map_err(io::Error::other)?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let counts = || cpus.iter().map(|words| bytemuck::cast::<Words, FaultCounts>(*words));
            let minor = self.minor.as_ref().map(|_| counts().map(|counts| counts.minor).sum());
            let major = self.major.as_ref().map(|_| counts().map(|counts| counts.major).sum());
            let row: Vec<u64> = minor.into_iter().chain(major).collect();
            rows.push((String::from_utf8_lossy(name).into_owned(), row));
        }
        let all = |row: &[u64]| row.iter().sum::<u64>();
        rows.sort_by(|(one, a), (other, b)| all(b).cmp(&all(a)).then_with(|| one.cmp(other)));
        let column = |name: &str| Column { name: name.to_owned(), unit: Unit::Count };
        let minor = self.minor.as_ref().map(|_| column("minor"));
        let major = self.major.as_ref().map(|_| column("major"));
        Ok(Table { name: "page faults".to_owned(), columns: minor.into_iter().chain(major).collect(), rows })
    }
}

impl Part for Faults {
    fn programs(&mut self) -> &mut Attached {
        &mut self.at_tracepoints
    }

    fn map_sizes(&self) -> Vec<(&'static str, u32)> {
        vec![("FAULTS", NAMES)]
    }

    fn loaded(&mut self, ebpf: &mut Ebpf) -> Result<(), LoadError> {
        self.kinds().try_for_each(|kind| {
            let program = load::program::<PerfEventProgram>(ebpf, kind.program)?;
            program.load().map_err(|error| load::refused(kind.program, error))
        })
    }

    fn add_cpu(&mut self, ebpf: &Ebpf, cpu: u32) -> Result<(), LoadError> {
        let opened = self.open(ebpf, cpu)?;
        if let Some(earlier) = self.cpus.insert(cpu, opened) {
            self.counted_before += counted(&earlier).map_err(|error| {
                LoadError::step(format!("the page faults of CPU {cpu} could not be read"), error)
            })?;
        }
        Ok(())
    }

    fn covers(&mut self, cpu: u32) -> bool {
        self.cpus.get_mut(&cpu).is_some_and(|cpu| cpu.life.goes_on())
    }

    fn started(&mut self) -> io::Result<()> {
        self.is_started = true;
        self.cpus.values().flat_map(|cpu| &cpu.counters).try_for_each(PerfEvent::enable)
    }

    fn stopped(&mut self, _: &mut Ebpf) -> io::Result<()> {
        self.cpus.values().flat_map(|cpu| &cpu.counters).try_for_each(PerfEvent::disable)
    }

    fn event_of(&mut self, header: &SampleHeader) -> Option<EventIndex> {
        if !header.flags().has(SampleFlags::FAULT) {
            return None;
        }
        self.taken += 1;
        let kind = if Fault::of(&header.data).is_major == 0 { &self.minor } else { &self.major };
        kind.as_ref().map(|kind| kind.event)
    }

    fn lost(&self) -> &'static [Counter] {
        &[Counter::FaultsLost]
    }

    fn cost(&mut self, ebpf: &mut Ebpf) -> [u64; 2] {
        let mut cost = [0; 2];
        for kind in self.kinds() {
            let program = load::program::<PerfEventProgram>(ebpf, kind.program).ok();
            if let Some(info) = program.and_then(|program| program.info().ok()) {
                cost[0] += info.run_time().as_nanos() as u64;
                cost[1] += info.run_count();
            }
        }
        cost
    }

    /// Enters into the ledger what was lost.
    ///
    /// ```text
    /// counted by the kernel ──┬─ the program was not run: lost, as many as would have become records
    ///                         └─ met ──┬─ not of the chosen threads, or another one stands for it: no record
    ///                                  ├─ no room in the ring: lost
    ///                                  └─ recorded: delivered
    /// ```
    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, account: &mut Account) -> io::Result<()> {
        let counter = |counter| ended.counted.counter(counter);
        let mut all = self.counted_before;
        for cpu in self.cpus.values() {
            all += counted(cpu)?;
        }
        let (met, recorded) = (counter(Counter::FaultsMet), counter(Counter::FaultsRecorded));
        let full = counter(Counter::FaultsLost);
        let missed = all.saturating_sub(met);
        // Of those met, so many became records, or would have.
        let would_be = u128::from(missed) * u128::from(recorded + full);
        ledger.lose(LossCause::NotRun, would_be.div_ceil(met.max(1).into()) as u64);
        ledger.lose(LossCause::RingFull, full);
        ledger.lose(LossCause::Unaccounted, recorded.saturating_sub(self.taken));
        account.tables.push(self.table(ended.ebpf)?);
        account.warnings.extend([
            (missed, "page faults of the machine were met by no program, as another one ran on their CPU"),
            (counter(Counter::FaultNamesFull), "page faults were not counted: too many names of processes"),
        ]);
        Ok(())
    }
}

/// What a CPU's counters have counted.
fn counted(cpu: &Cpu) -> io::Result<u64> {
    cpu.counters.iter().map(PerfEvent::count).sum()
}

/// A counter at each count of which a program runs.
fn attributes(counter: u32) -> perf_event_attr {
    let mut attr = perf_event_attr {
        size: size_of::<perf_event_attr>() as u32,
        type_: PERF_TYPE_SOFTWARE,
        config: counter.into(),
        ..perf_event_attr::default()
    };
    attr.__bindgen_anon_1.sample_period = 1;
    attr.set_disabled(1);
    attr
}
