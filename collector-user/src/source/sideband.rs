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
use collector_common::perf::sideband::{ParseError, Record, SAMPLE_ID_TYPE, SampleId, parse};
use perf_event_open_sys::bindings::{PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, perf_event_attr};

use crate::sys::perf_event::PerfEvent;
use crate::sys::perf_ring::PerfRing;

/// 2^7 pages per CPU: 512 KiB hold about 4,000 mappings between two rounds.
const RING_ORDER: u32 = 7;

/// 2^3 pages for the names of programs: about 700.
const NAMES_RING_ORDER: u32 = 3;

/// Bytes after which the reader is woken for what does not wake it at once: some thirty mappings. What a program and its
/// libraries make when it starts, the wakeup for its name lets be read.
const WAKEUP_BYTES: u32 = 4096;

/// A record, with the bytes it borrows from kept apart.
struct Queued {
    time: Nanos,
    kind: u32,
    misc: u16,
    bytes: std::ops::Range<usize>,
}

/// An event and its ring.
struct Source {
    event: PerfEvent,
    ring: PerfRing,
}

/// A CPU's events: of names, and of all else.
struct Cpu {
    number: u32,
    sources: [Source; 2],
}

/// Dummy events and their rings.
pub struct Sideband {
    cpus: Vec<Cpu>,
    /// Bodies of the records that wait, and their order.
    bytes: Vec<u8>,
    queue: Vec<Queued>,
    malformed: u64,
}

impl Sideband {
    /// Opens and enables the events on the given CPUs.
    pub fn open(cpus: &[u32]) -> io::Result<Self> {
        let mut sideband = Self { cpus: Vec::new(), bytes: Vec::new(), queue: Vec::new(), malformed: 0 };
        for &cpu in cpus {
            sideband.add_cpu(cpu)?;
        }
        Ok(sideband)
    }

    /// Opens and enables the events of a CPU, also of one whose events ended when it went offline: what their rings still
    /// hold must have been drained. Gives the events' descriptors.
    pub fn add_cpu(&mut self, cpu: u32) -> io::Result<[BorrowedFd<'_>; 2]> {
        let names = Source::open(PerfEvent::open_on_cpu(&names(), cpu)?, NAMES_RING_ORDER)?;
        let sources = [names, Source::open(open_newest(cpu)?, RING_ORDER)?];
        self.cpus.retain(|earlier| earlier.number != cpu);
        Ok(self.cpus.push_mut(Cpu { number: cpu, sources }).descriptors())
    }

    /// The descriptors that become readable when the reader is to be woken.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.cpus.iter().flat_map(Cpu::descriptors)
    }

    /// Hands all records from before `until` to `visit`, in time order over all CPUs. Later ones wait: of what happened
    /// before them, a part may lie in a ring that had been looked at.
    pub fn drain(&mut self, until: Nanos, mut visit: impl FnMut(&Record<'_>, &SampleId)) {
        for Source { ring, .. } in self.cpus.iter_mut().flat_map(|cpu| &mut cpu.sources) {
            let (bytes, queue, malformed) = (&mut self.bytes, &mut self.queue, &mut self.malformed);
            ring.drain(|kind, misc, body| match parse(kind, misc, body) {
                Ok((_, id)) => {
                    let start = bytes.len();
                    bytes.extend_from_slice(body);
                    queue.push(Queued { time: id.time, kind, misc, bytes: start..bytes.len() });
                }
                Err(ParseError::Short { .. }) => *malformed += 1,
            });
        }
        self.queue.sort_by_key(|queued| queued.time);
        let ripe = self.queue.partition_point(|queued| queued.time <= until);
        for queued in self.queue.drain(..ripe) {
            if let Ok((record, id)) = parse(queued.kind, queued.misc, &self.bytes[queued.bytes]) {
                visit(&record, &id);
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

impl Source {
    fn open(event: PerfEvent, ring_order: u32) -> io::Result<Self> {
        let ring = PerfRing::map(&event, ring_order)?;
        event.enable()?;
        Ok(Self { event, ring })
    }
}

impl Cpu {
    fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        self.sources.each_ref().map(|source| source.event.as_fd())
    }
}

/// Opens the event of all but names, without kernel symbols where the kernel does not know them.
fn open_newest(cpu: u32) -> io::Result<PerfEvent> {
    let mut attr = lives_and_mappings();
    attr.set_ksymbol(1);
    match PerfEvent::open_on_cpu(&attr, cpu) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            PerfEvent::open_on_cpu(&lives_and_mappings(), cpu)
        }
        result => result,
    }
}

fn names() -> perf_event_attr {
    let mut attr = dummy(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr
}

fn lives_and_mappings() -> perf_event_attr {
    let mut attr = dummy(WAKEUP_BYTES);
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
        sample_type: SAMPLE_ID_TYPE,
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
