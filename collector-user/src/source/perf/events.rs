//! The open events, and their rings.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use collector_common::ids::Nanos;
use collector_common::loss::{Ledger, LossCause};
use collector_common::perf::{ParseConfig, RawRecord, Record, RecordKind, Throttling};
use perf_event_open_sys::bindings::perf_event_attr;
use rustc_hash::FxHashMap;
use thiserror::Error;

use super::attributes::Common;
use super::decode::Decoder;
use crate::kernel::idle_times;
use crate::source::scope::Scope;
use crate::source::shared_ring::{Opened, SharedRing};
use crate::source::ticks::Clock;
use crate::source::{Account, EventIndex, Rights, Settings, Source, SourceRecord};
use crate::sys::perf_ring::Waiting;

/// Ring unless another size is asked for: 2^10 pages a CPU, 4 MiB.
const RING_ORDER: u32 = 10;

/// Why plain perf events can't record.
#[derive(Debug, Error)]
pub enum PerfError {
    /// The rights are missing for what others do.
    #[error(
        "recording the whole machine, or a cgroup, needs root, CAP_PERFMON or kernel.perf_event_paranoid=0: run it with \
         sudo, or record your own processes with `-p PID` or `-- COMMAND`"
    )]
    WholeMachine,
    /// The rights are missing for a process.
    #[error("process {0} can't be recorded: it is another user's, or has more rights; run it with sudo")]
    OthersProcess(u32),
    /// Two ways of choosing processes at once.
    #[error(
        "--cgroup can't be joined with -p or a command by plain perf events: leave one out, or use --backend ebpf"
    )]
    CgroupAndProcesses,
    /// The cgroup can't be opened, or is none.
    #[error("{} is no cgroup to record: {source}; name a folder of the cgroup v2 hierarchy, as below /sys/fs/cgroup", path.display())]
    Cgroup {
        /// The path as given.
        path: std::path::PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel has no perf events.
    #[error("this kernel has no perf events (CONFIG_PERF_EVENTS)")]
    NoPerfEvents,
    /// A CPU's events could not be opened.
    #[error("the sampling clock of CPU {cpu} could not be opened: {source}")]
    Open {
        /// The CPU.
        cpu: u32,
        /// The system's reason.
        source: io::Error,
    },
}

/// One CPU.
struct Cpu {
    shared: SharedRing,
    /// Samples of the clock that were handed over.
    ticks: u64,
    /// Losses that records in the ring told of.
    told_lost: u64,
    /// When throttling began, while it lasts.
    throttled_since: Option<Nanos>,
    /// What clocks before these counted and lost, when the CPU was online earlier.
    before: Counted,
    /// What the clock had counted when it was last looked at.
    seen: u64,
}

/// What a CPU's events have counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    clock_ns: u64,
    clock_lost: u64,
    others_lost: u64,
}

impl Counted {
    fn and(self, other: Self) -> Self {
        Self {
            clock_ns: self.clock_ns + other.clock_ns,
            clock_lost: self.clock_lost + other.clock_lost,
            others_lost: self.others_lost + other.others_lost,
        }
    }
}

/// Open events. Dropping it closes them.
pub struct PerfEvents {
    common: Common,
    layout: ParseConfig,
    period: Nanos,
    ring_orders: RangeInclusive<u32>,
    scope: Scope,
    kinds: Vec<perf_event_attr>,
    /// By the number in their records.
    events: FxHashMap<u64, EventIndex>,
    cpus: Vec<Cpu>,
    decoder: Decoder,
    tally: Tally,
    /// How long each CPU had been idle when the sampling started.
    idle_before: BTreeMap<u32, Duration>,
}

impl PerfEvents {
    /// Opens the sampling clock on the given CPUs; nothing is sampled before [`Source::start`].
    ///
    /// # Errors
    /// When the rights are missing, or what is to be recorded is not there.
    pub fn open(settings: &Settings, cpus: &[u32]) -> Result<Self, PerfError> {
        let rights = Rights::of_this_process();
        let scope = Self::scope(settings, rights)?;
        let mut common = Common::of(settings, rights);
        let mut events = Self::with(common, settings, scope);
        for (index, &cpu) in cpus.iter().enumerate() {
            let mut added = events.attach(cpu);
            let is_unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
            if index == 0 && added.as_ref().is_err_and(is_unknown) {
                // The kernel is older than 6.0.
                common.counts_lost = false;
                events = Self::with(common, settings, events.scope);
                added = events.attach(cpu);
            }
            added.map_err(|source| events.explain(cpu, source))?;
        }
        Ok(events)
    }

    /// For whom events are opened.
    ///
    /// # Errors
    /// When what is to be recorded can't be, with these rights.
    pub(crate) fn scope(settings: &Settings, rights: Rights) -> Result<Scope, PerfError> {
        let targets = &settings.targets;
        if targets.cgroup.is_some() && targets.follows_processes() {
            return Err(PerfError::CgroupAndProcesses);
        }
        let scope = Scope::of(targets).map_err(|source| PerfError::Cgroup {
            path: targets.cgroup.clone().unwrap_or_default(),
            source,
        })?;
        match scope {
            Scope::Machine | Scope::Cgroup(_) if !rights.machine => Err(PerfError::WholeMachine),
            scope => Ok(scope),
        }
    }

    fn with(common: Common, settings: &Settings, scope: Scope) -> Self {
        Self {
            common,
            layout: common.layout(),
            period: settings.period(),
            ring_orders: ring_orders(settings, common),
            scope,
            kinds: vec![common.clock(settings.period().0)],
            events: FxHashMap::default(),
            cpus: Vec::new(),
            decoder: Decoder::new(),
            tally: Tally::default(),
            idle_before: BTreeMap::new(),
        }
    }

    fn explain(&self, cpu: u32, source: io::Error) -> PerfError {
        match (&self.scope, source.raw_os_error()) {
            (_, Some(libc::ENOSYS | libc::ENOENT)) => PerfError::NoPerfEvents,
            (Scope::Processes(pids), Some(libc::EACCES | libc::EPERM)) => {
                PerfError::OthersProcess(pids.first().copied().unwrap_or(0))
            }
            (_, Some(libc::EACCES | libc::EPERM)) => PerfError::WholeMachine,
            _ => PerfError::Open { cpu, source },
        }
    }

    /// Opens a CPU's events, with their ring.
    fn attach(&mut self, cpu: u32) -> io::Result<()> {
        let shared = SharedRing::open(self.kinds.as_slice(), &self.scope, cpu, self.ring_orders.clone())?;
        name(&mut self.events, &shared.events)?;
        if let Some(earlier) = self.cpus.iter_mut().find(|earlier| earlier.shared.cpu() == cpu) {
            earlier.before = earlier.before.and(earlier.counted(self.common.counts_lost)?);
            earlier.shared = shared;
            earlier.seen = 0;
        } else {
            let before = Counted::default();
            self.cpus.push(Cpu { shared, ticks: 0, told_lost: 0, throttled_since: None, before, seen: 0 });
        }
        Ok(())
    }

    /// The account of the sampling clocks: ticks that were lost for want of room, and those that never came.
    fn ticks(&self) -> io::Result<(u64, u64)> {
        let idle_after = if let Scope::Machine = self.scope { idle_times()? } else { BTreeMap::new() };
        let (mut lost, mut not_run) = (0, 0);
        for cpu in &self.cpus {
            let counted = cpu.counted(self.common.counts_lost)?.and(cpu.before);
            let clock_lost = counted.clock_lost.max(cpu.told_lost);
            let idle =
                |times: &BTreeMap<u32, Duration>| times.get(&cpu.shared.cpu()).copied().unwrap_or_default();
            let idle = idle(&idle_after).saturating_sub(idle(&self.idle_before));
            let clock = Clock {
                counted_ns: counted.clock_ns,
                idle_ns: idle.as_nanos() as u64,
                busy_runs: cpu.ticks + clock_lost,
                idle_runs: 0,
            };
            lost += clock_lost + counted.others_lost;
            not_run += clock.not_run(self.period.0);
        }
        Ok((lost, not_run))
    }
}

impl Source for PerfEvents {
    fn name(&self) -> &'static str {
        "perf"
    }

    fn start(&mut self) -> io::Result<()> {
        self.idle_before = idle_times()?;
        if self.common.starts_on_exec() {
            return Ok(());
        }
        self.cpus.iter().try_for_each(|cpu| cpu.shared.enable())
    }

    fn stop(&mut self) -> io::Result<()> {
        self.cpus.iter().try_for_each(|cpu| cpu.shared.disable())
    }

    /// They become readable when a ring is half full.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.cpus.iter().map(|cpu| cpu.shared.as_fd()).collect()
    }

    /// In time order over all CPUs.
    fn drain(&mut self, until: Nanos, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
        let Self { cpus, decoder, events, layout, tally, .. } = self;
        let mut cursors: Vec<Cursor<'_>> = cpus.iter_mut().map(Cursor::of).collect();
        let heads =
            cursors.iter().enumerate().filter_map(|(index, cursor)| Some(Reverse((cursor.time()?, index))));
        let mut heads: BinaryHeap<_> = heads.collect();
        while let Some(Reverse((time, index))) = heads.pop() {
            if time > until.0 {
                break;
            }
            let cursor = &mut cursors[index];
            cursor.take(layout, events, decoder, tally, visit);
            cursor.waiting.advance();
            heads.extend(cursor.time().map(|time| Reverse((time, index))));
        }
    }

    fn dropped(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.told_lost).sum()
    }

    fn close(&mut self, ledger: &mut Ledger) -> io::Result<Account> {
        let now = crate::clock::now();
        let still = self.cpus.iter().filter_map(|cpu| cpu.throttled_since);
        let still: u64 = still.map(|since| now.0.saturating_sub(since.0)).sum();
        let (lost, not_run) = self.ticks()?;
        ledger.lose(LossCause::RingFull, lost);
        ledger.lose(LossCause::NotRun, not_run);
        ledger.lose(LossCause::Throttled, (self.tally.throttled_ns + still) / self.period.0.max(1));
        ledger.lose(LossCause::Malformed, self.tally.malformed);
        Ok(Account { bytes_copied: self.tally.bytes_copied, ..Account::default() })
    }

    /// Whether the CPU's clock went on since this was last asked for it, where it runs whatever its CPU does. One whose CPU
    /// goes offline stands still from then on, whether the CPU comes back or not.
    fn covers(&mut self, cpu: u32) -> bool {
        let counts_lost = self.common.counts_lost;
        let runs_always = matches!(self.scope, Scope::Machine);
        self.cpus.iter_mut().find(|known| known.shared.cpu() == cpu).is_some_and(|known| {
            let count = known.counted(counts_lost).map_or(known.seen, |counted| counted.clock_ns);
            std::mem::replace(&mut known.seen, count) < count || !runs_always
        })
    }

    fn add_cpu(&mut self, cpu: u32) -> io::Result<Option<BorrowedFd<'_>>> {
        self.attach(cpu)?;
        let added =
            self.cpus.iter().find(|added| added.shared.cpu() == cpu).ok_or(io::ErrorKind::NotFound)?;
        added.shared.enable()?;
        Ok(Some(added.shared.as_fd()))
    }

    fn follow(&mut self, pid: u32) -> io::Result<()> {
        let Scope::Processes(_) = self.scope else { return Ok(()) };
        for cpu in &mut self.cpus {
            let opened = cpu.shared.follow(pid)?;
            name(&mut self.events, opened)?;
            opened.iter().try_for_each(|opened| opened.event.enable())?;
        }
        Ok(())
    }
}

/// What is counted over all CPUs.
#[derive(Default)]
struct Tally {
    bytes_copied: u64,
    malformed: u64,
    throttled_ns: u64,
}

/// A CPU's waiting records, with what they change of it.
struct Cursor<'a> {
    waiting: Waiting<'a>,
    ticks: &'a mut u64,
    told_lost: &'a mut u64,
    throttled_since: &'a mut Option<Nanos>,
}

impl<'a> Cursor<'a> {
    fn of(cpu: &'a mut Cpu) -> Self {
        let Cpu { shared, ticks, told_lost, throttled_since, .. } = cpu;
        Self { waiting: shared.ring.waiting(), ticks, told_lost, throttled_since }
    }

    /// When the oldest record was written. What is too short to tell is taken at once.
    fn time(&self) -> Option<u64> {
        /// Behind identifier, process and thread.
        const IN_SAMPLE: usize = 16;
        /// The last four numbers are process and thread, time, CPU, identifier.
        const BEFORE_END: usize = 24;
        let RawRecord { kind, body, .. } = self.waiting.peek()?;
        let at = if kind == RecordKind::SAMPLE { IN_SAMPLE } else { body.len().saturating_sub(BEFORE_END) };
        let mut time = [0; 8];
        let is_whole = body.split_at_checked(at).is_some_and(|(_, from)| from.copy_to(&mut time) == 8);
        Some(if is_whole { u64::from_ne_bytes(time) } else { 0 })
    }

    fn take(
        &mut self,
        layout: &ParseConfig,
        events: &FxHashMap<u64, EventIndex>,
        decoder: &mut Decoder,
        tally: &mut Tally,
        visit: &mut dyn FnMut(&SourceRecord<'_>),
    ) {
        let Some(raw) = self.waiting.peek() else { return };
        match raw.parse(layout).map(|parsed| parsed.record) {
            Ok(Record::Sample(sample)) => {
                let event = sample.identifier.and_then(|id| events.get(&id));
                let Some(record) = event.and_then(|&event| decoder.decode(event, raw.misc, &sample)) else {
                    tally.malformed += 1;
                    return;
                };
                *self.ticks += u64::from(record.event == EventIndex::CLOCK);
                tally.bytes_copied += record.stack.len() as u64;
                visit(&record);
            }
            Ok(Record::Lost(lost)) => *self.told_lost += lost.count,
            Ok(Record::Throttle(throttling)) => *self.throttled_since = Some(throttling.time),
            Ok(Record::Unthrottle(Throttling { time, .. })) => {
                let since = self.throttled_since.take();
                tally.throttled_ns += since.map_or(0, |since| time.0.saturating_sub(since.0));
            }
            Ok(_) => {}
            Err(_) => tally.malformed += 1,
        }
    }
}

/// How many pages a CPU's ring may have, as powers of two: at least what two of the largest samples need, at most 1 GiB.
fn ring_orders(settings: &Settings, common: Common) -> RangeInclusive<u32> {
    let order = |bytes: u32| {
        let pages = bytes.clamp(1, 1 << 30).div_ceil(rustix::param::page_size() as u32);
        pages.next_power_of_two().ilog2()
    };
    let smallest = order(2 * common.largest_sample());
    smallest..=settings.ring_bytes.map_or(RING_ORDER, order).max(smallest)
}

/// Notes which event each number names.
fn name(events: &mut FxHashMap<u64, EventIndex>, opened: &[Opened]) -> io::Result<()> {
    for Opened { kind, event } in opened {
        events.insert(event.id()?, EventIndex(*kind as u16));
    }
    Ok(())
}

impl Cpu {
    /// What its events have counted up to now.
    fn counted(&self, counts_lost: bool) -> io::Result<Counted> {
        let mut counted = Counted::default();
        for Opened { kind, event } in &self.shared.events {
            let [count, lost] = if counts_lost { event.read::<2>()? } else { [event.count()?, 0] };
            if *kind == usize::from(EventIndex::CLOCK.0) {
                counted.clock_ns += count;
                counted.clock_lost += lost;
            } else {
                counted.others_lost += lost;
            }
        }
        Ok(counted)
    }
}
