//! The open events.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use collector_common::ids::Nanos;
use collector_common::loss::{Ledger, LossCause};
use rustc_hash::FxHashMap;

use super::account::Counts;
use super::attributes::{Common, Kind};
use super::error::PerfError;
use super::reading::{Cursor, Named, Reader};
use super::throttled::Throttled;
use super::twice::Taken;
use crate::doctor;
use crate::kernel::idle_times;
use crate::source::cpu_life::CpuLife;
use crate::source::scope::{Scope, forbids_all};
use crate::source::shared_ring::{Opened, SharedRing};
use crate::source::{Account, EventRequest, Rights, Settings, Source, SourceRecord, Trigger};

/// All rings together, unless another size is asked for: on 16 CPUs 8 MiB each, which is the most, and never less than
/// 1 MiB each.
const ALL_RINGS: usize = 128 << 20;

/// One CPU.
pub(super) struct Cpu {
    pub(super) shared: SharedRing,
    pub(super) counts: Counts,
    pub(super) taken: Taken,
    pub(super) throttled: Throttled,
    life: CpuLife,
}

/// What is known of an open event.
#[derive(Clone, Copy)]
struct Known {
    /// Position in the kinds.
    kind: usize,
    may_be_second: bool,
}

/// Open events. Dropping it closes them.
pub struct PerfEvents {
    common: Common,
    period: Nanos,
    ring_orders: RangeInclusive<u32>,
    scope: Scope,
    kinds: Vec<Kind>,
    /// By the number in the records.
    known: FxHashMap<u64, Known>,
    cpus: Vec<Cpu>,
    /// A program that says whose occurrences are recorded.
    chooser: Option<OwnedFd>,
    /// When all events were open.
    opened: Nanos,
    reader: Reader,
    /// How long each CPU had been idle when the sampling started.
    idle_before: BTreeMap<u32, Duration>,
}

impl PerfEvents {
    /// Opens events on the given CPUs, and with `clock` the sampling clock; nothing is recorded before [`Source::start`].
    ///
    /// # Errors
    /// When the rights are missing, or what is to be recorded is not there.
    pub fn open(
        settings: &Settings,
        clock: bool,
        requests: &[EventRequest],
        cpus: &[u32],
    ) -> Result<Self, PerfError> {
        let rights = Rights::of_this_process();
        let is_tracepoint = |request: &EventRequest| matches!(request.trigger, Trigger::Tracepoint(_));
        if !rights.tracepoints && requests.iter().any(is_tracepoint) {
            return Err(PerfError::Tracepoints);
        }
        let is_refused = |request: &&EventRequest| !rights.kernel && request.trigger.is_of_kernel();
        if let Some(request) = requests.iter().find(is_refused) {
            return Err(PerfError::OfKernel {
                event: request.index,
                name: request.trigger.name().to_owned(),
            });
        }
        PerfError::check_frequency(requests, settings.frequency, doctor::most_samples_a_second())?;
        let scope = Self::scope(settings, rights)?;
        let mut common = Common::of(settings, rights);
        let kinds = |common: Common| -> Vec<Kind> {
            let clock = clock.then(|| common.clock(settings.period().0));
            let requested = requests.iter().map(|request| common.event(request, settings.frequency));
            clock.into_iter().chain(requested).collect()
        };
        let mut events = Self::with(common, settings, scope, kinds(common), cpus.len());
        for (index, &cpu) in cpus.iter().enumerate() {
            let mut added = events.attach(cpu);
            let is_unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
            if index == 0 && added.as_ref().is_err_and(is_unknown) {
                // The kernel is older than 6.0.
                common.counts_lost = false;
                events = Self::with(common, settings, events.scope, kinds(common), cpus.len());
                added = events.attach(cpu);
            }
            added.map_err(|source| events.explain(cpu, source))?;
        }
        events.opened = crate::clock::now();
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
            Scope::Machine | Scope::Cgroup(_) if !rights.machine => Err(match forbids_all() {
                Some(level) => PerfError::Forbidden { level },
                None => PerfError::WholeMachine,
            }),
            scope => Ok(scope),
        }
    }

    fn with(common: Common, settings: &Settings, scope: Scope, kinds: Vec<Kind>, cpus: usize) -> Self {
        Self {
            common,
            period: settings.period(),
            ring_orders: ring_orders(settings, common, cpus),
            scope,
            kinds,
            known: FxHashMap::default(),
            cpus: Vec::new(),
            chooser: None,
            opened: Nanos(0),
            reader: Reader::new(),
            idle_before: BTreeMap::new(),
        }
    }

    fn explain(&self, cpu: u32, source: io::Error) -> PerfError {
        const REFUSED: [i32; 3] = [libc::ENOENT, libc::EOPNOTSUPP, libc::EINVAL];
        if let Some((kind, trigger, source)) = self.refused_alone(cpu) {
            let is_absent = source.raw_os_error().is_some_and(|error| REFUSED.contains(&error));
            if trigger.is_of_processor() && is_absent {
                return PerfError::NoUnit { event: kind.index, name: trigger.name().to_owned() };
            }
            // Else it may be a matter of whose processes are meant.
            if Rights::of_this_process().machine {
                let (event, name) = (kind.index, trigger.name().to_owned());
                return PerfError::Event { event, name, source };
            }
        }
        match (&self.scope, source.raw_os_error()) {
            (_, Some(libc::ENOSYS)) => PerfError::NoPerfEvents,
            (Scope::Processes(pids), Some(libc::EACCES | libc::EPERM)) => {
                PerfError::refused(pids.first().copied().unwrap_or(0), forbids_all())
            }
            (_, Some(libc::EACCES | libc::EPERM)) => PerfError::WholeMachine,
            _ => PerfError::Open { cpu, source },
        }
    }

    /// The first event beside the clock that can't be opened, not even by itself.
    fn refused_alone(&self, cpu: u32) -> Option<(&Kind, Trigger, io::Error)> {
        self.kinds.iter().find_map(|kind| {
            let order = *self.ring_orders.start();
            let opened = SharedRing::open([kind.wanted()], &self.scope, cpu, order..=order);
            Some((kind, kind.trigger?, opened.err()?))
        })
    }

    /// What becomes readable of a CPU: where its events are of one kind, that event.
    pub(crate) fn output(&self, cpu: u32) -> Option<BorrowedFd<'_>> {
        self.cpus.iter().find(|known| known.shared.cpu() == cpu).map(|known| known.shared.as_fd())
    }

    /// Opens a CPU's events, with their ring.
    fn attach(&mut self, cpu: u32) -> io::Result<()> {
        let wanted: Vec<_> = self.kinds.iter().map(Kind::wanted).collect();
        let shared = SharedRing::open(wanted, &self.scope, cpu, self.ring_orders.clone())?;
        name(&mut self.known, &shared.events)?;
        let life = CpuLife::open(&self.scope, cpu)?;
        self.count_malformed();
        if let Some(earlier) = self.cpus.iter_mut().find(|earlier| earlier.shared.cpu() == cpu) {
            earlier.counts.keep(&earlier.shared, self.common.counts_lost)?;
            earlier.shared = shared;
            earlier.life = life;
        } else {
            let counts = Counts::of(self.kinds.len());
            let (taken, throttled) = (Taken::default(), Throttled::default());
            self.cpus.push(Cpu { shared, counts, taken, throttled, life });
        }
        self.choose()
    }

    /// Takes in what was no record in the rings.
    fn count_malformed(&mut self) {
        for Cpu { shared, counts, .. } in &mut self.cpus {
            counts.is_malformed(shared.ring.take_malformed());
        }
    }

    /// Has a program say whose occurrences of probes are recorded.
    #[cfg(feature = "ebpf")]
    pub(crate) fn choose_by(&mut self, program: OwnedFd) -> io::Result<()> {
        self.chooser = Some(program);
        self.choose()
    }

    /// The program goes with an event, and holds for the events of all CPUs at that probe.
    fn choose(&self) -> io::Result<()> {
        let Some(program) = &self.chooser else { return Ok(()) };
        for opened in self.cpus.iter().flat_map(|cpu| &cpu.shared.events) {
            match opened.event.set_bpf(program.as_fd()) {
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
                done => done?,
            }
        }
        Ok(())
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
        for cpu in &mut self.cpus {
            name(&mut self.known, cpu.shared.catch_up()?)?;
            cpu.shared.enable()?;
        }
        Ok(())
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
        let Self { cpus, reader, kinds, known, .. } = self;
        let mut cursors: Vec<Cursor<'_>> = cpus.iter_mut().map(Cursor::of).collect();
        let heads =
            cursors.iter().enumerate().filter_map(|(index, cursor)| Some(Reverse((cursor.time()?, index))));
        let mut heads: BinaryHeap<_> = heads.collect();
        while let Some(Reverse((time, index))) = heads.pop() {
            if time > until.0 {
                break;
            }
            let cursor = &mut cursors[index];
            let event_of = |id| {
                let Known { kind: position, may_be_second } = *known.get(&id)?;
                Some(Named { position, kind: kinds.get(position)?, may_be_second })
            };
            reader.take(cursor, event_of, visit);
            cursor.advance();
            if let Some(time) = cursor.time() {
                heads.push(Reverse((time, index)));
            }
        }
        drop(cursors);
        self.count_malformed();
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn oldest(&mut self) -> Option<Nanos> {
        self.cpus.iter_mut().filter_map(|cpu| Cursor::of(cpu).time()).min().map(Nanos)
    }

    fn dropped(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.counts.told_lost()).sum()
    }

    fn close(&mut self, ledger: &mut Ledger) -> io::Result<Account> {
        let idle_after = if let Scope::Machine = self.scope { idle_times()? } else { BTreeMap::new() };
        self.count_malformed();
        let now = crate::clock::now();
        let (mut throttled_ns, mut throttled) = (0, 0);
        for cpu in &self.cpus {
            let idle =
                |times: &BTreeMap<u32, Duration>| times.get(&cpu.shared.cpu()).copied().unwrap_or_default();
            let idle = idle(&idle_after).saturating_sub(idle(&self.idle_before));
            cpu.counts.enter(
                &cpu.shared,
                &self.kinds,
                self.common.counts_lost,
                (self.period, idle),
                ledger,
            )?;
            throttled_ns += cpu.throttled.until(now);
            throttled += cpu.counts.throttled(&self.kinds);
        }
        ledger.lose(LossCause::Throttled, throttled_ns / self.period.0.max(1));
        let left_out = (
            self.reader.left_out(),
            "samples were of processes outside of this pid namespace, and left out: to have them, run it in the machine's",
        );
        let throttled = (
            throttled,
            "events of the processor, each on one CPU, were made to stand still by the kernel, as they took too much time: samples of them are \
             missing; give a lower -F",
        );
        let bytes_copied = self.reader.bytes_copied();
        Ok(Account { bytes_copied, warnings: vec![left_out, throttled], ..Account::default() })
    }

    fn covers(&mut self, cpu: u32) -> bool {
        let known = self.cpus.iter_mut().find(|known| known.shared.cpu() == cpu);
        known.is_some_and(|known| known.life.goes_on())
    }

    fn add_cpu(&mut self, cpu: u32, descendants: &[u32]) -> io::Result<Option<BorrowedFd<'_>>> {
        self.scope.add(descendants);
        self.attach(cpu)?;
        let added =
            self.cpus.iter().find(|added| added.shared.cpu() == cpu).ok_or(io::ErrorKind::NotFound)?;
        added.shared.enable()?;
        Ok(Some(added.shared.as_fd()))
    }

    /// A process that was made since has inherited the events of the one that made it.
    fn follow(&mut self, pid: u32, started: Nanos) -> io::Result<()> {
        let Scope::Processes(_) = self.scope else { return Ok(()) };
        if started > self.opened {
            return Ok(());
        }
        for cpu in &mut self.cpus {
            let opened = cpu.shared.follow(pid)?;
            name(&mut self.known, opened)?;
            opened.iter().try_for_each(|opened| opened.event.enable())?;
        }
        Ok(())
    }
}

/// How many pages a CPU's ring may have, as powers of two: at least what two of the largest samples need, at most 1 GiB.
fn ring_orders(settings: &Settings, common: Common, cpus: usize) -> RangeInclusive<u32> {
    let order = |bytes: u32| {
        let pages = bytes.clamp(1, 1 << 30).div_ceil(rustix::param::page_size() as u32);
        pages.next_power_of_two().ilog2()
    };
    let smallest = order(2 * common.largest_sample());
    let chosen = (ALL_RINGS / cpus.max(1)).clamp(1 << 20, 8 << 20) as u32;
    smallest..=order(settings.ring_bytes.unwrap_or(chosen).min(common.largest_ring)).max(smallest)
}

/// Notes which event each number names.
fn name(known: &mut FxHashMap<u64, Known>, opened: &[Opened]) -> io::Result<()> {
    for &Opened { kind, ref event, may_be_second } in opened {
        known.insert(event.id()?, Known { kind, may_be_second });
    }
    Ok(())
}
