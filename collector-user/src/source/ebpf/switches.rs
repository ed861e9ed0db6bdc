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

use super::account::KernelAccount;
use super::asked::Asked;
use super::attached::Attached;
use super::load::tracepoints;
use crate::source::{EventIndex, Settings, SourceRecord};

/// A thread's times as the map has them.
type ThreadWords = [u64; size_of::<ThreadTimes>() / 8];

/// Loaded programs.
pub(super) struct Switches {
    asked: Asked,
    off_cpu_period: u64,
    shortest: u64,
    pub(super) programs: Attached,
    /// Records of threads that went off or ended, and of those that came back, taken out of the rings.
    taken: [u64; 2],
    /// What the programs would tell, if the threads that are off when the recording ends came back, and all ended.
    in_the_end: Vec<SampleHeader>,
}

impl Switches {
    pub(super) fn new(settings: &Settings, asked: Asked, switch: &'static str) -> Self {
        let off_cpu_period = settings.off_cpu_period.0;
        let shortest = settings.shortest_off_cpu.0;
        Self {
            asked,
            off_cpu_period,
            shortest,
            programs: Attached::new(&tracepoints(switch)),
            taken: [0; 2],
            in_the_end: Vec::new(),
        }
    }

    /// Notes who is off its CPU, when nobody comes back any more.
    pub(super) fn note_who_is_off(&mut self, ebpf: &Ebpf) -> io::Result<()> {
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

    /// Whether the program would tell of it, if the thread came back now.
    fn is_told(&self, off: &OffCpu, now: u64) -> bool {
        let took = now.saturating_sub(off.since);
        let is_open = off.since != 0 && off.is_recorded(self.asked.times);
        is_open && took >= self.shortest && (off.chance != 0 || took >= self.off_cpu_period)
    }

    /// The number of a record that was found in a ring.
    pub(super) fn event_of(&mut self, header: &SampleHeader) -> EventIndex {
        const OURS: u32 = SampleFlags::OFF_CPU | SampleFlags::BACK | SampleFlags::LAST;
        if header.flags & OURS == 0 {
            return EventIndex::CLOCK;
        }
        self.taken[usize::from(header.flags().has(SampleFlags::BACK))] += 1;
        self.asked.event
    }

    /// After the rings have been emptied for the last time: what is told in the end.
    pub(super) fn drain(&mut self, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
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
    ///                          └─ still off in the end: delivered
    /// ```
    pub(super) fn enter(&self, account: &KernelAccount, ledger: &mut Ledger) {
        let counter = |counter| account.counter(counter);
        ledger.lose(LossCause::RingFull, counter(Counter::WentOffLost) + counter(Counter::CameBackLost));
        ledger.lose(LossCause::NoRoom, counter(Counter::ThreadsFull));
        for (counted, taken) in [Counter::WentOff, Counter::CameBack].into_iter().zip(self.taken) {
            ledger.lose(LossCause::Unaccounted, counter(counted).saturating_sub(taken));
        }
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
