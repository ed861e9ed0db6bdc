//! The sideband: what processes did to their memory, names and lives, from two dummy perf events per CPU. One wakes the
//! reader for every program that is executed, which may live for some milliseconds alone. The other is for all the rest and
//! waits until there are some records: each wakeup costs the program that caused it an interrupt. Where every record did,
//! those were half of the time of a program that mapped memory again and again in a virtual machine.
//!
//! Minimum kernel: 4.1 (`use_clockid`); kernel symbols 5.1. Older kernels refuse the unknown bit, and the event is
//! opened without it. Build ids in mappings (5.12) are not asked for: see `docs/adr/0002-no-build-ids-in-mappings.md`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use collector_common::ids::Nanos;
use collector_common::perf::{
    BranchSampleType, ByteOrder, Bytes, Misc, ParseConfig, Parsed, RawRecord, ReadFormat, RecordKind,
    SampleType,
};
use perf_event_open_sys::bindings::{PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, perf_event_attr};

use super::cpu_life::CpuLife;
use super::scope::{Rights, Scope};
use super::shared_ring::SharedRing;

/// 2^7 pages per CPU: 512 KiB hold about 4,000 mappings between two rounds.
const RING_ORDER: u32 = 7;

/// 2^3 pages for the names of programs: about 700.
const NAMES_RING_ORDER: u32 = 3;

/// 2^2 pages, where more may not be locked.
const SMALLEST_RING_ORDER: u32 = 2;

/// Bytes after which the reader is woken for what does not wake it at once: some thirty mappings. What a program and its
/// libraries make when it starts, the wakeup for its name lets be read.
const WAKEUP_BYTES: u32 = 4096;

/// How the records are laid out.
pub(crate) const LAYOUT: ParseConfig = ParseConfig {
    sample_type: SampleType::TID.or(SampleType::TIME).or(SampleType::CPU),
    sample_id_all: true,
    read_format: ReadFormat(0),
    branch_sample_type: BranchSampleType(0),
    sample_regs_user: 0,
    sample_regs_intr: 0,
    build_id: false,
    byte_order: ByteOrder::NATIVE,
};

/// A record, with the bytes it borrows from kept apart.
struct Queued {
    time: Nanos,
    kind: RecordKind,
    misc: Misc,
    bytes: std::ops::Range<usize>,
}

/// Which mappings are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mappings {
    /// Those of code.
    Code,
    /// All.
    All,
}

/// A CPU's events: of names, and of all else.
struct Cpu {
    number: u32,
    life: CpuLife,
    rings: [SharedRing; Sideband::EVENTS],
}

/// Dummy events and their rings.
pub struct Sideband {
    scope: Scope,
    mappings: Mappings,
    /// What happens in the kernel may not be asked for.
    excludes_kernel: bool,
    cpus: Vec<Cpu>,
    /// Bodies of the records that wait, and their order.
    bytes: Vec<u8>,
    queue: Vec<Queued>,
    malformed: u64,
}

impl Sideband {
    /// Events of a CPU, for each of what they are opened for.
    pub(crate) const EVENTS: usize = 2;

    /// Opens and enables the events of all processes on the given CPUs.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open(cpus: &[u32]) -> io::Result<Self> {
        Self::open_for(Scope::Machine, Rights::ALL, Mappings::Code, cpus)
    }

    /// Opens and enables the events of some processes.
    pub(crate) fn open_for(
        scope: Scope,
        rights: Rights,
        mappings: Mappings,
        cpus: &[u32],
    ) -> io::Result<Self> {
        let mut sideband = Self {
            scope,
            mappings,
            excludes_kernel: !rights.kernel,
            cpus: Vec::new(),
            bytes: Vec::new(),
            queue: Vec::new(),
            malformed: 0,
        };
        for &cpu in cpus {
            sideband.add_cpu(cpu, &[])?;
        }
        Ok(sideband)
    }

    /// Opens and enables the events of a CPU, also of one whose events ended when it went offline: what their rings still
    /// hold must have been drained. `descendants` are processes beside those that were named. Gives the events' descriptors.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add_cpu(&mut self, cpu: u32, descendants: &[u32]) -> io::Result<[BorrowedFd<'_>; 2]> {
        self.scope.add(descendants);
        let life = CpuLife::open(&self.scope, cpu)?;
        let names = self.open_ring(names(), cpu, NAMES_RING_ORDER)?;
        let rings = [names, self.open_newest(cpu)?];
        rings.iter().try_for_each(SharedRing::enable)?;
        self.cpus.retain(|earlier| earlier.number != cpu);
        Ok(self.cpus.push_mut(Cpu { number: cpu, life, rings }).descriptors())
    }

    /// Whether the events of a CPU are there and go on. Asked about once a second of each one that is online.
    pub fn covers(&mut self, cpu: u32) -> bool {
        self.cpus.iter_mut().find(|known| known.number == cpu).is_some_and(|known| known.life.goes_on())
    }

    /// Opens and enables the events of one more process; nothing where all are seen anyway. One whose start the sideband told
    /// of was made by a process that it sees, and has inherited its events.
    pub(crate) fn follow(&mut self, pid: u32, started: Nanos) -> io::Result<()> {
        let Scope::Processes(_) = self.scope else { return Ok(()) };
        if started > Nanos(0) {
            return Ok(());
        }
        for ring in self.cpus.iter_mut().flat_map(|cpu| &mut cpu.rings) {
            ring.follow(pid)?.iter().try_for_each(|opened| opened.event.enable())?;
        }
        Ok(())
    }

    /// Opens and enables the events of threads that were made while those of their processes were opened.
    pub(crate) fn catch_up(&mut self) -> io::Result<()> {
        for ring in self.cpus.iter_mut().flat_map(|cpu| &mut cpu.rings) {
            ring.catch_up()?.iter().try_for_each(|opened| opened.event.enable())?;
        }
        Ok(())
    }

    fn open_ring(&self, mut attr: perf_event_attr, cpu: u32, order: u32) -> io::Result<SharedRing> {
        attr.set_exclude_kernel(self.excludes_kernel.into());
        attr.set_exclude_hv(self.excludes_kernel.into());
        SharedRing::open([attr.into()], &self.scope, cpu, SMALLEST_RING_ORDER..=order)
    }

    /// Opens the event of all but names, without kernel symbols where the kernel does not know or not tell them.
    fn open_newest(&self, cpu: u32) -> io::Result<SharedRing> {
        let mut attr = lives_and_mappings(self.mappings);
        attr.set_ksymbol((!self.excludes_kernel).into());
        match self.open_ring(attr, cpu, RING_ORDER) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                self.open_ring(lives_and_mappings(self.mappings), cpu, RING_ORDER)
            }
            result => result,
        }
    }

    /// The descriptors that become readable when the reader is to be woken.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.cpus.iter().flat_map(Cpu::descriptors)
    }

    /// Hands all records from before `until` to `visit`, in time order over all CPUs. Later ones wait: of what happened
    /// before them, a part may lie in a ring that had been looked at.
    pub fn drain(&mut self, until: Nanos, mut visit: impl FnMut(&Parsed<'_>, Nanos)) {
        for SharedRing { ring, .. } in self.cpus.iter_mut().flat_map(|cpu| &mut cpu.rings) {
            let (bytes, queue, malformed) = (&mut self.bytes, &mut self.queue, &mut self.malformed);
            ring.drain(|record| match record.parse(&LAYOUT).map(|parsed| parsed.sample_id.time) {
                Ok(Some(time)) => {
                    let start = bytes.len();
                    record.body.pieces().into_iter().for_each(|piece| bytes.extend_from_slice(piece));
                    let (kind, misc) = (record.kind, record.misc);
                    queue.push(Queued { time, kind, misc, bytes: start..bytes.len() });
                }
                _ => *malformed += 1,
            });
            *malformed += ring.take_malformed();
        }
        self.queue.sort_by_key(|queued| queued.time);
        let ripe = self.queue.partition_point(|queued| queued.time <= until);
        for Queued { time, kind, misc, bytes } in self.queue.drain(..ripe) {
            let raw = RawRecord { kind, misc, body: Bytes::from(&self.bytes[bytes]) };
            if let Ok(parsed) = raw.parse(&LAYOUT) {
                visit(&parsed, time);
            }
        }
        let done = std::mem::take(&mut self.bytes);
        for queued in &mut self.queue {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&done[queued.bytes.clone()]);
            queued.bytes = start..self.bytes.len();
        }
        if self.queue.is_empty() {
            // Its memory is used again.
            self.bytes = done;
            self.bytes.clear();
        }
    }

    /// Records that could not be read so far.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl Cpu {
    fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        self.rings.each_ref().map(SharedRing::as_fd)
    }
}

fn names() -> perf_event_attr {
    let mut attr = dummy(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr
}

fn lives_and_mappings(mappings: Mappings) -> perf_event_attr {
    let mut attr = dummy(WAKEUP_BYTES);
    attr.set_mmap_data((mappings == Mappings::All).into());
    attr.set_mmap(1);
    attr.set_mmap2(1);
    attr.set_task(1);
    attr
}

/// An event of nothing, whose ring wakes the reader once it has so many bytes more.
fn dummy(wakeup_bytes: u32) -> perf_event_attr {
    let mut attr = perf_event_attr {
        size: size_of::<perf_event_attr>() as u32,
        type_: PERF_TYPE_SOFTWARE,
        config: u64::from(PERF_COUNT_SW_DUMMY),
        sample_type: LAYOUT.sample_type.0,
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attr.set_disabled(1);
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = wakeup_bytes;
    attr
}
