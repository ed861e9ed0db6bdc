//! The programs at the scheduler's tracepoints: attached while it is recorded; what they counted, and who is off its CPU when
//! the recording ends.

use std::fs;
use std::io;

use aya::Ebpf;
use aya::maps::{HashMap, PerCpuHashMap};
use bytemuck::Zeroable as _;
use collector_common::loss::{Ledger, LossCause};
use collector_common::record::{Histogram, Unit};
use collector_common::wire::{
    COMM_LEN, Counter, OffCpu, QUEUE_BUCKETS, RunQueue, SampleFlags, SampleHeader, ThreadTimes, Times,
    VERSION,
};

use super::asked::Asked;
use super::attached::Attached;
use super::load::Level;
use super::part::{Ended, Part};
use crate::source::{Account, EventIndex, Program, Settings, SourceRecord};

/// A thread's times as the map has them.
type ThreadWords = [u64; size_of::<ThreadTimes>() / 8];

/// The programs.
pub(super) struct Switches {
    asked: Asked,
    off_cpu_period: u64,
    /// Of times off, and of waits for locks.
    shortest: [u64; 2],
    programs: Attached,
    /// Records of threads that went off or ended, and of those that came back, taken out of the rings.
    taken: [u64; 2],
    /// Records of who released locks.
    owners: u64,
    /// What the programs would tell, if the threads that are off when the recording ends came back, and all ended.
    in_the_end: Vec<SampleHeader>,
}

impl Switches {
    pub(super) fn new(settings: &Settings, asked: Asked, level: Level) -> Self {
        let off_cpu_period = settings.off_cpu_period.0;
        let shortest = [asked.shortest_off_cpu(&settings.shortest), settings.shortest.locks.0];
        Self {
            asked,
            off_cpu_period,
            shortest,
            programs: Attached::new(&[
                (level.switch, "sched_switch"),
                (level.waking, "sched_waking"),
                ("waking_new", "sched_wakeup_new"),
            ]),
            taken: [0; 2],
            owners: 0,
            in_the_end: Vec::new(),
        }
    }

    /// Whether the program would tell of it, if the thread came back now.
    fn is_told(&self, off: &OffCpu, now: u64) -> bool {
        let took = now.saturating_sub(off.since);
        let is_open = off.since != 0 && off.is_recorded(self.asked.times);
        let [off_cpu, lock_wait] = self.shortest;
        let shortest = off.shortest(self.asked.times, off_cpu, lock_wait);
        is_open && took >= shortest && (off.chance != 0 || took >= self.off_cpu_period)
    }

    /// Waits for a CPU: of all threads, then by name, those first that waited longest together.
    pub(super) fn histograms(&self, ebpf: &Ebpf) -> io::Result<Vec<Histogram>> {
        if self.asked.times & Times::QUEUED == 0 {
            return Ok(Vec::new());
        }
        let queues = ebpf.map("RUN_QUEUES").ok_or(io::ErrorKind::NotFound)?;
        let queues: PerCpuHashMap<_, [u8; COMM_LEN], RunQueue> =
            PerCpuHashMap::try_from(queues).map_err(io::Error::other)?;
        let mut all = histogram("all threads".to_owned());
        let mut by_name = Vec::new();
        for queue in &queues {
            let (name, cpus) = queue.map_err(io::Error::other)?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let mut one = histogram(String::from_utf8_lossy(name).into_owned());
            for queue in cpus.iter() {
                add(&mut one, queue);
                add(&mut all, queue);
            }
            by_name.push(one);
        }
        by_name.sort_by(|one, other| other.sum.cmp(&one.sum).then_with(|| one.label.cmp(&other.label)));
        Ok(std::iter::once(all).chain(by_name).collect())
    }
}

impl Part for Switches {
    fn programs(&mut self) -> &mut Attached {
        &mut self.programs
    }

    fn map_sizes(&self) -> Vec<(&'static str, u32)> {
        vec![("THREADS", room_for_threads())]
    }

    /// Notes who is off its CPU, when nobody comes back any more.
    fn stopped(&mut self, ebpf: &mut Ebpf) -> io::Result<()> {
        let now = crate::clock::now().0;
        let threads = ebpf.map("THREADS").ok_or(io::ErrorKind::NotFound)?;
        let threads: HashMap<_, u32, ThreadWords> = HashMap::try_from(threads).map_err(io::Error::other)?;
        for thread in &threads {
            let (tid, words) = thread.map_err(io::Error::other)?;
            let times: ThreadTimes = bytemuck::cast(words);
            let OffCpu { short_blocked, short_waited, .. } = times.off;
            if times.is_lost == 0 && self.is_told(&times.off, now) {
                self.in_the_end.push(told(SampleFlags::STILL_OFF, tid, times.off, now));
            }
            if short_blocked | short_waited != 0 {
                self.in_the_end.push(told(SampleFlags::LAST, tid, times.off, now));
            }
        }
        Ok(())
    }

    fn event_of(&mut self, header: &SampleHeader) -> Option<EventIndex> {
        const OURS: u32 = SampleFlags::OFF_CPU | SampleFlags::BACK | SampleFlags::LAST;
        if header.flags().has(SampleFlags::LOCK_OWNER) {
            self.owners += 1;
            return self.asked.index(Program::LockOwners);
        }
        if header.flags & OURS == 0 {
            return None;
        }
        self.taken[usize::from(header.flags().has(SampleFlags::BACK))] += 1;
        Some(self.asked.event)
    }

    fn drain_last(&mut self, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
        for header in self.in_the_end.drain(..) {
            if let Some(record) = SourceRecord::of_ring(bytemuck::bytes_of(&header)) {
                visit(&SourceRecord { event: self.asked.event, ..record });
            }
        }
    }

    /// Enters into the ledger what was lost.
    ///
    /// ```text
    /// went off ──┬─ no room in the ring: lost
    ///            └─ recorded ──┬─ came back ──┬─ no room in the ring: lost
    ///                          │              ├─ too short: not recorded
    ///                          │              └─ recorded: delivered
    ///                          ├─ came back, and the kernel did not tell of it: lost, but for the time until it was woken
    ///                          └─ still off in the end: delivered
    /// a lock is released ──┬─ no room in the ring, for this or for the end of the wait: lost
    ///                      └─ recorded: delivered when the waiter came back
    /// ```
    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, account: &mut Account) -> io::Result<()> {
        let counter = |counter| ended.counted.counter(counter);
        ledger.lose(LossCause::RingFull, counter(Counter::WentOffLost) + counter(Counter::CameBackLost));
        ledger.lose(LossCause::NoRoom, counter(Counter::ThreadsFull));
        ledger.lose(LossCause::NotRun, counter(Counter::BackMissed));
        for (counted, taken) in [Counter::WentOff, Counter::CameBack].into_iter().zip(self.taken) {
            ledger.lose(LossCause::Unaccounted, counter(counted).saturating_sub(taken));
        }
        ledger.lose(LossCause::RingFull, counter(Counter::OwnerLost));
        let owners = counter(Counter::OwnerRecorded);
        ledger.lose(LossCause::Unaccounted, owners.saturating_sub(self.owners));
        account.histograms.extend(self.histograms(ended.ebpf)?);
        account.warnings.push((
            counter(Counter::NamesFull),
            "waits for a CPU were not counted: too many names of threads",
        ));
        Ok(())
    }

    fn lost(&self) -> &'static [Counter] {
        &[Counter::WentOffLost, Counter::CameBackLost, Counter::ThreadsFull, Counter::OwnerLost]
    }
}

/// Threads that can be kept account of: some times those that there are. The map takes 150 bytes for each, used or not.
fn room_for_threads() -> u32 {
    /// `4.05 3.98 4.00 3/412 9917`: 412 threads. See `proc_loadavg(5)`.
    fn threads() -> Option<u32> {
        let text = fs::read_to_string("/proc/loadavg").ok()?;
        text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
    }
    threads().unwrap_or(0).saturating_mul(4).clamp(1 << 14, 1 << 18)
}

/// A record of now, without stacks.
fn told(why: u32, tid: u32, off: OffCpu, now: u64) -> SampleHeader {
    let name = fs::read(format!("/proc/{}/task/{tid}/comm", off.pid)).unwrap_or_default();
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    let mut comm = [0; COMM_LEN];
    let len = name.len().min(COMM_LEN - 1);
    comm[..len].copy_from_slice(&name[..len]);
    let flags = SampleFlags::BACK | why;
    let data = bytemuck::cast(off);
    SampleHeader {
        version: VERSION,
        flags,
        time: now,
        pid: off.pid,
        tid,
        comm,
        data,
        ..SampleHeader::zeroed()
    }
}

fn histogram(label: String) -> Histogram {
    Histogram {
        name: "waits for a CPU".to_owned(),
        label,
        unit: Unit::Nanoseconds,
        first_end: 1000,
        buckets: vec![0; QUEUE_BUCKETS],
        sum: 0,
    }
}

fn add(histogram: &mut Histogram, queue: &RunQueue) {
    for (bucket, count) in histogram.buckets.iter_mut().zip(queue) {
        *bucket += count;
    }
    histogram.sum += queue[QUEUE_BUCKETS];
}
