//! The running programs: an event and a ring per CPU.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::error::Error;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use aya::Ebpf;
use aya::maps::{CgroupArray, HashMap, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::{PerfEvent as PerfEventProgram, UProbe};
use aya::sys::Stats;
use aya_log::EbpfLogger;
use collector_common::ids::{Nanos, Tid};
use collector_common::loss::{Ledger, LossCause};
use collector_common::perf::{Record, Throttling};
use collector_common::wire::{Counter, MAX_STACK_PAGES, NAMED_PROCESS, OuterPlaces};
use perf_event_open_sys::bindings::{PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_SOFTWARE, perf_event_attr};

use super::account::KernelAccount;
use super::asked::Asked;
use super::error::LoadError;
use super::load::{self, Loaded};
use super::part::{Ended, Part};
use super::rings::{Tally, add_ring, oldest, ring_bytes, take};
use crate::kernel::{idle_times, possible_cpus};
use crate::source::cgroup::open_cgroup;
use crate::source::sideband::LAYOUT;
use crate::source::ticks::Clock;
use crate::source::{
    Account, EventIndex, EventRequest, Gone, NewFile, Settings, Source, SourceRecord, Targets,
};
use crate::stats::Faults;
use crate::sys::memory::give_back;
use crate::sys::perf_event::{PerfEvent, Whom};
use crate::sys::perf_ring::PerfRing;

/// One CPU's clock, with the ring that only throttling is reported in.
struct Ticking {
    event: PerfEvent,
    notices: PerfRing,
}

/// One CPU.
struct Cpu {
    number: u32,
    /// What the programs counted on it, as of the last account.
    counters: [u64; Counter::COUNT as usize],
    /// Where the clock is asked for.
    clock: Option<Ticking>,
    ring: RingBuf<MapData>,
    /// When throttling began, while it lasts.
    throttled_since: Option<Nanos>,
    /// Nanoseconds that clocks before this one counted, when the CPU was online earlier.
    counted_before: u64,
    /// What the clock had counted when it was last looked at.
    seen: u64,
}

impl Cpu {
    /// What its present clock has counted.
    fn counted(&self) -> io::Result<u64> {
        self.clock.as_ref().map_or(Ok(0), |clock| clock.event.count())
    }

    fn enable(&self) -> io::Result<()> {
        self.clock.as_ref().map_or(Ok(()), |clock| clock.event.enable())
    }
}

/// Loaded programs with their events. Dropping it ends the sampling and unloads the programs.
pub struct Sampler {
    ebpf: Ebpf,
    program: &'static str,
    cpus: Vec<Cpu>,
    period: Nanos,
    ring_bytes: u32,
    tally: Tally,
    throttled_ns: u64,
    /// Records of throttling that there was no room for.
    notices_lost: u64,
    /// Whether only chosen processes are sampled.
    follows: bool,
    /// Whether the sampling clock is asked for.
    ticks: bool,
    /// What is recorded beside that.
    parts: Vec<Box<dyn Part>>,
    /// Diagnostics of the programs, where they are asked for.
    logger: Option<EbpfLogger<&'static dyn log::Log>>,
    /// How long each CPU had been idle when the sampling started.
    idle_before: BTreeMap<u32, Duration>,
    /// While open, the kernel counts runs and time of programs.
    _stats: Option<OwnedFd>,
}

impl Sampler {
    /// Loads the programs that the settings and those of the requests ask for that are of programs, for the given CPUs;
    /// nothing is sampled before [`Self::start`].
    ///
    /// # Errors
    /// When they do not run here.
    pub fn load(settings: &Settings, requests: &[EventRequest], cpus: &[u32]) -> Result<Self, LoadError> {
        let asked = Asked::of(settings, requests);
        let ring_bytes = if asked.has_records() {
            ring_bytes(settings, cpus.len(), asked.copies_tracepoints())
        } else {
            rustix::param::page_size() as u32
        };
        let rings = possible_cpus().unwrap_or_default().iter().chain(cpus).max().map_or(1, |last| last + 1);
        let Loaded { mut ebpf, program, parts } =
            load::load(settings, &asked, rings, u64::from(ring_bytes / 4))?;
        // Aya has read all of the kernel's types; the rings need as much.
        give_back();
        let stats = aya::sys::enable_stats(Stats::RunTime).ok();
        let logger =
            if log::log_enabled!(log::Level::Debug) { EbpfLogger::init(&mut ebpf).ok() } else { None };
        set_targets(&mut ebpf, &settings.targets)?;
        let mut sampler = Self {
            ebpf,
            program,
            cpus: Vec::with_capacity(cpus.len()),
            period: settings.period(),
            ring_bytes,
            tally: Tally::default(),
            throttled_ns: 0,
            notices_lost: 0,
            follows: settings.targets.follows_processes(),
            ticks: asked.clock,
            parts,
            logger,
            idle_before: BTreeMap::new(),
            _stats: stats,
        };
        cpus.iter().try_for_each(|&cpu| sampler.attach(cpu))?;
        Ok(sampler)
    }

    /// Whether programs copy the records of a tracepoint; else plain perf events are to tell of it.
    pub fn copies(&self, event: EventIndex) -> bool {
        self.parts.iter().any(|part| part.copies(event))
    }

    /// The program that says whose hits of probes are recorded, where it was asked for.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub(crate) fn chooser_of_hits(&self) -> io::Result<OwnedFd> {
        let program = self.ebpf.program(load::HITS).and_then(|program| <&UProbe>::try_from(program).ok());
        let program = program.ok_or(io::ErrorKind::NotFound)?;
        program.fd().map_err(io::Error::other)?.as_fd().try_clone_to_owned()
    }

    /// Makes a CPU's ring, and opens its clock.
    fn attach(&mut self, cpu: u32) -> Result<(), LoadError> {
        let clock = if self.ticks { Some(self.open_clock(cpu)?) } else { None };
        if let Some(earlier) = self.cpus.iter_mut().find(|earlier| earlier.number == cpu) {
            let counted = earlier.counted();
            earlier.counted_before += counted.map_err(|error| unopened(cpu, error))?;
            earlier.clock = clock;
            earlier.seen = 0;
        } else {
            self.cpus.push(Cpu {
                number: cpu,
                counters: [0; Counter::COUNT as usize],
                clock,
                ring: add_ring(&mut self.ebpf, cpu, self.ring_bytes)?,
                throttled_since: None,
                counted_before: 0,
                seen: 0,
            });
        }
        self.parts.iter_mut().try_for_each(|part| part.add_cpu(&self.ebpf, cpu))
    }

    /// Opens a CPU's clock and attaches the program to it.
    fn open_clock(&self, cpu: u32) -> Result<Ticking, LoadError> {
        let step = |error| unopened(cpu, error);
        let event = PerfEvent::open(&attributes(self.period), Whom::Anyone, cpu).map_err(step)?;
        let notices = PerfRing::map(&event, 0).map_err(step)?;
        let program: &PerfEventProgram = self
            .ebpf
            .program(self.program)
            .and_then(|program| program.try_into().ok())
            .ok_or_else(|| LoadError::missing(format!("program {}", self.program)))?;
        let unattached = |error: Box<dyn Error + Send + Sync>| {
            LoadError::step(
                format!("program {} could not be attached to the clock of CPU {cpu}", self.program),
                error,
            )
        };
        let fd = program.fd().map_err(|error| unattached(error.into()))?;
        event.set_bpf(fd.as_fd()).map_err(|error| unattached(error.into()))?;
        Ok(Ticking { event, notices })
    }

    /// Takes in what the clocks' own rings tell of throttling.
    fn drain_notices(&mut self) {
        for cpu in &mut self.cpus {
            let (throttled_ns, since) = (&mut self.throttled_ns, &mut cpu.throttled_since);
            let notices_lost = &mut self.notices_lost;
            let Some(clock) = &mut cpu.clock else { continue };
            clock.notices.drain(|record| match record.parse(&LAYOUT).map(|parsed| parsed.record) {
                Ok(Record::Throttle(throttling)) => *since = Some(throttling.time),
                Ok(Record::Unthrottle(Throttling { time, .. })) => {
                    *throttled_ns += since.take().map_or(0, |since| time.0.saturating_sub(since.0));
                }
                Ok(Record::Lost(lost)) => *notices_lost += lost.count,
                _ => {}
            });
            *notices_lost += clock.notices.take_malformed();
        }
    }

    /// The account so far. Taken after [`Source::stop`], it is final.
    ///
    /// # Errors
    /// When the kernel does not give the counters.
    pub fn account(&mut self) -> io::Result<KernelAccount> {
        let now = crate::clock::now();
        let still = self.cpus.iter().filter_map(|cpu| cpu.throttled_since);
        let still: u64 = still.map(|since| now.0.saturating_sub(since.0)).sum();
        let throttled_ns = self.throttled_ns + still;
        let mut account =
            KernelAccount { throttled_ns, period_ns: self.period.0, ..KernelAccount::default() };
        let info = self.ebpf.program(self.program).and_then(|program| {
            let program: &PerfEventProgram = program.try_into().ok()?;
            program.info().ok()
        });
        if let Some(info) = info {
            account.run_count = info.run_count();
            account.run_ns = info.run_time().as_nanos() as u64;
        }
        let counters = self.ebpf.map("COUNTERS").ok_or(io::ErrorKind::NotFound)?;
        let counters: PerCpuArray<_, u64> = PerCpuArray::try_from(counters).map_err(io::Error::other)?;
        for counter in Counter::ALL {
            let values = counters.get(&(counter as u32), 0).map_err(io::Error::other)?;
            account.counters[counter as usize] = values.iter().sum();
            for cpu in &mut self.cpus {
                cpu.counters[counter as usize] = values.get(cpu.number as usize).copied().unwrap_or(0);
            }
        }
        let idle_after = idle_times()?;
        for cpu in &self.cpus {
            let idle = |times: &BTreeMap<u32, Duration>| times.get(&cpu.number).copied().unwrap_or_default();
            let idle = idle(&idle_after).saturating_sub(idle(&self.idle_before));
            let runs =
                |counters: &[Counter]| counters.iter().map(|&counter| cpu.counters[counter as usize]).sum();
            let clock = Clock {
                counted_ns: cpu.counted_before + cpu.counted()?,
                idle_ns: idle.as_nanos() as u64,
                busy_runs: runs(&Counter::BUSY_RUNS),
                idle_runs: runs(&[Counter::FilteredIdle]),
            };
            account.not_run += clock.not_run(self.period.0);
        }
        Ok(account)
    }
}

impl Source for Sampler {
    fn name(&self) -> &'static str {
        "ebpf"
    }

    fn start(&mut self) -> io::Result<()> {
        self.idle_before = idle_times()?;
        self.parts.iter_mut().try_for_each(|part| part.programs().start(&mut self.ebpf))?;
        self.parts.iter_mut().try_for_each(|part| part.started())?;
        self.cpus.iter().try_for_each(Cpu::enable)
    }

    fn stop(&mut self) -> io::Result<()> {
        self.parts.iter_mut().try_for_each(|part| part.programs().stop(&mut self.ebpf))?;
        self.parts.iter_mut().try_for_each(|part| part.stopped(&mut self.ebpf))?;
        self.cpus.iter().filter_map(|cpu| cpu.clock.as_ref()).try_for_each(|clock| clock.event.disable())
    }

    /// They become readable when a ring is a quarter full.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let own = self.parts.iter().filter_map(|part| part.descriptor());
        self.cpus.iter().map(|cpu| cpu.ring.as_fd()).chain(own).collect()
    }

    /// In its ring. In time order per CPU, and over all CPUs where that is wanted.
    fn drain(&mut self, until: Nanos, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
        if let Some(logger) = &mut self.logger {
            logger.flush();
        }
        self.parts.iter_mut().for_each(|part| part.drain_own());
        let keeps_order = self.keeps_order();
        let Self { cpus, parts, tally, .. } = self;
        if keeps_order {
            let heads = cpus.iter_mut().enumerate();
            let heads = heads.filter_map(|(index, cpu)| Some(Reverse((oldest(&mut cpu.ring)?, index))));
            let mut heads: BinaryHeap<_> = heads.collect();
            while let Some(Reverse((_, index))) = heads.pop() {
                let ring = &mut cpus[index].ring;
                if !take(ring, parts, tally, until, visit) {
                    break;
                }
                heads.extend(oldest(ring).map(|time| Reverse((time, index))));
            }
        } else {
            for cpu in cpus {
                while take(&mut cpu.ring, parts, tally, until, visit) {}
            }
        }
        self.drain_notices();
        if self.cpus.iter_mut().all(|cpu| oldest(&mut cpu.ring).is_none()) {
            self.parts.iter_mut().for_each(|part| part.drain_last(visit));
        }
    }

    fn keeps_order(&self) -> bool {
        self.parts.iter().any(|part| part.keeps_order())
    }

    fn oldest(&mut self) -> Option<Nanos> {
        self.cpus.iter_mut().filter_map(|cpu| oldest(&mut cpu.ring)).min().map(Nanos)
    }

    fn dropped(&self) -> u64 {
        let counters = self.ebpf.map("COUNTERS").and_then(|map| PerCpuArray::<_, u64>::try_from(map).ok());
        let dropped = |counter: Counter| -> u64 {
            let values = counters.as_ref().and_then(|counters| counters.get(&(counter as u32), 0).ok());
            values.map_or(0, |values| values.iter().sum())
        };
        let of_parts = self.parts.iter().flat_map(|part| part.lost()).copied();
        [Counter::RingFull, Counter::NoRing].into_iter().chain(of_parts).map(dropped).sum()
    }

    fn close(&mut self, ledger: &mut Ledger) -> io::Result<Account> {
        let counted = self.account()?;
        let Tally { delivered, malformed } = self.tally;
        ledger.lose(LossCause::Malformed, malformed);
        counted.enter(delivered + malformed, ledger);
        let mut account = Account {
            bytes_copied: counted.counter(Counter::BytesCopied),
            bpf_run_ns: counted.run_ns,
            bpf_run_count: counted.run_count,
            faults: Faults {
                absent_pages: counted.counter(Counter::StackFault),
                busy_mappings: counted.counter(Counter::FindVmaBusy),
                no_registers: counted.counter(Counter::NoRegisters),
            },
            warnings: vec![
                (self.notices_lost, "records of throttling were lost: more samples may be lost than is said"),
                (counted.counter(Counter::FollowFailed), "child processes could not be followed: too many"),
            ],
            ..Account::default()
        };
        for part in &mut self.parts {
            let [ns, runs] = part.cost(&mut self.ebpf);
            account.bpf_run_ns += ns;
            account.bpf_run_count += runs;
            part.close(&Ended { ebpf: &self.ebpf, counted }, ledger, &mut account)?;
        }
        Ok(account)
    }

    /// Whether the CPU's clock went on since this was last asked for it. One whose CPU goes offline stands still from then
    /// on, whether the CPU comes back or not.
    fn covers(&mut self, cpu: u32) -> bool {
        let Some(known) = self.cpus.iter_mut().find(|known| known.number == cpu) else { return false };
        let mut covers = true;
        if known.clock.is_some() {
            let count = known.counted().unwrap_or(known.seen);
            covers = std::mem::replace(&mut known.seen, count) < count;
        }
        // All are asked, as each tells what has been since it was asked last.
        self.parts.iter_mut().for_each(|part| covers &= part.covers(cpu));
        covers
    }

    /// A clock that was open for the CPU ended when it went offline.
    fn add_cpu(&mut self, cpu: u32, _: &[u32]) -> io::Result<Option<BorrowedFd<'_>>> {
        self.attach(cpu).map_err(io::Error::other)?;
        let added = self.cpus.iter().find(|added| added.number == cpu);
        let added = added.ok_or(io::ErrorKind::NotFound)?;
        added.enable()?;
        Ok(Some(added.ring.as_fd()))
    }

    fn follow(&mut self, pid: u32, _: Nanos) -> io::Result<()> {
        /// `BPF_NOEXIST` of `linux/bpf.h`: a child that the kernel follows already is known better there.
        const NEW: u64 = 1;
        let map = self.ebpf.map_mut("PROCESSES").filter(|_| self.follows);
        if let Some(mut processes) = map.and_then(|map| HashMap::<_, u32, u64>::try_from(map).ok()) {
            match processes.insert(pid, NAMED_PROCESS, NEW) {
                Err(MapError::SyscallError(error))
                    if error.io_error.kind() == io::ErrorKind::AlreadyExists => {}
                inserted => inserted.map_err(io::Error::other)?,
            }
        }
        Ok(())
    }

    fn files_mapped(&mut self, files: &[NewFile]) {
        self.parts.iter_mut().for_each(|part| part.files_mapped(&mut self.ebpf, files));
    }

    fn end_round(&mut self, gone: &Gone) {
        self.parts.iter_mut().for_each(|part| part.end_round(gone));
    }

    fn forget_stack(&mut self, thread: Tid) {
        let map = self.ebpf.map_mut("STACK_RANGES");
        // The mapping's `mm_struct`, start and end.
        if let Some(mut ranges) = map.and_then(|map| HashMap::<_, u32, [u64; 3]>::try_from(map).ok()) {
            // It may have been forgotten for others' sake.
            let _ = ranges.remove(&thread.0);
        }
    }

    fn copy_outer(&mut self, thread: Tid, places: &OuterPlaces) {
        type Words = [u64; size_of::<OuterPlaces>() / 8];
        let map = self.ebpf.map_mut("OUTER_PLACES");
        if let Some(mut known) = map.and_then(|map| HashMap::<_, u32, Words>::try_from(map).ok()) {
            let words: Words = bytemuck::cast(*places);
            // Without them they are read later.
            let _ = known.insert(thread.0, words, 0);
        }
    }
}

fn unopened(cpu: u32, error: io::Error) -> LoadError {
    LoadError::step(format!("the sampling clock of CPU {cpu} could not be opened"), error)
}

fn set_targets(ebpf: &mut Ebpf, targets: &Targets) -> Result<(), LoadError> {
    let step =
        |error: MapError| LoadError::step("the processes or the cgroup to record could not be set", error);
    if let Some(map) = ebpf.map_mut("PROCESSES").filter(|_| targets.follows_processes()) {
        let mut processes: HashMap<_, u32, u64> = HashMap::try_from(map).map_err(step)?;
        for pid in &targets.pids {
            processes.insert(pid, NAMED_PROCESS, 0).map_err(step)?;
        }
    }
    if let Some((path, map)) = targets.cgroup.as_ref().zip(ebpf.map_mut("CGROUPS")) {
        let cgroup = |source| LoadError::Cgroup { path: path.clone(), source };
        let folder = open_cgroup(path).map_err(cgroup)?;
        let mut cgroups = CgroupArray::try_from(map).map_err(step)?;
        cgroups.set(0, folder, 0).map_err(|error| cgroup(io::Error::other(error)))?;
    }
    Ok(())
}

/// A clock that ticks on its CPU whatever runs there.
fn attributes(period: Nanos) -> perf_event_attr {
    let mut attr = perf_event_attr {
        size: size_of::<perf_event_attr>() as u32,
        type_: PERF_TYPE_SOFTWARE,
        config: u64::from(PERF_COUNT_SW_CPU_CLOCK),
        sample_type: LAYOUT.sample_type.0,
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attr.__bindgen_anon_1.sample_period = period.0;
    attr.set_disabled(1);
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    // The kernel throttles an event by its overflows per timer tick, and an idle CPU has no ticks: without this its
    // clock would be stopped, and the CPU go unsampled from its wakeup to its next tick.
    attr.set_exclude_idle(1);
    attr
}

/// Pages of user stack that are copied at most.
pub(super) fn max_stack_pages(settings: &Settings) -> u32 {
    settings.max_stack.div_ceil(collector_common::wire::PAGE_SIZE).clamp(1, MAX_STACK_PAGES) as u32
}
