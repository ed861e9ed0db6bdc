//! The sideband: what processes did to their memory, names and lives, from one dummy perf event per CPU.
//!
//! Minimum kernel: 4.1 (`use_clockid`); kernel symbols 5.1. Older kernels refuse the unknown bit, and the event is
//! opened without it. Build ids in mappings (5.12) are not asked for: see `docs/adr/0002-no-build-ids-in-mappings.md`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use collector_common::ids::Nanos;
use collector_common::perf::{ParseError, Record, SAMPLE_ID_TYPE, SampleId, parse};
use perf_event_open_sys::bindings::{PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, perf_event_attr};

use crate::sys::perf_event::PerfEvent;
use crate::sys::perf_ring::PerfRing;

/// 2^7 pages per CPU: 512 KiB hold about 4,000 mappings between two rounds.
const RING_ORDER: u32 = 7;

/// A record, with the bytes it borrows from kept apart.
struct Queued {
    time: Nanos,
    kind: u32,
    misc: u16,
    bytes: std::ops::Range<usize>,
}

/// A CPU's event and its ring.
struct Cpu {
    number: u32,
    event: PerfEvent,
    ring: PerfRing,
}

/// Dummy events and their rings.
pub struct Sideband {
    cpus: Vec<Cpu>,
    /// Bodies of the records of one round, and their order.
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

    /// Opens and enables the event of a CPU, also of one whose event ended when it went offline: what its ring still
    /// holds must have been drained. Gives the event's descriptor.
    pub fn add_cpu(&mut self, cpu: u32) -> io::Result<BorrowedFd<'_>> {
        let event = open_newest(cpu)?;
        let ring = PerfRing::map(&event, RING_ORDER)?;
        event.enable()?;
        self.cpus.retain(|earlier| earlier.number != cpu);
        Ok(self.cpus.push_mut(Cpu { number: cpu, event, ring }).event.as_fd())
    }

    /// The descriptors that become readable when a record was written.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.cpus.iter().map(|cpu| cpu.event.as_fd())
    }

    /// Hands all waiting records to `visit`, in time order over all CPUs.
    pub fn drain(&mut self, mut visit: impl FnMut(&Record<'_>, &SampleId)) {
        self.bytes.clear();
        self.queue.clear();
        for Cpu { ring, .. } in &mut self.cpus {
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
        for queued in &self.queue {
            if let Ok((record, id)) = parse(queued.kind, queued.misc, &self.bytes[queued.bytes.clone()]) {
                visit(&record, &id);
            }
        }
    }

    /// Records that could not be read so far.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }
}

/// Opens the event, without kernel symbols where the kernel does not know them.
fn open_newest(cpu: u32) -> io::Result<PerfEvent> {
    let mut attr = attributes();
    attr.set_ksymbol(1);
    match PerfEvent::open_on_cpu(&attr, cpu) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            PerfEvent::open_on_cpu(&attributes(), cpu)
        }
        result => result,
    }
}

fn attributes() -> perf_event_attr {
    let mut attr = perf_event_attr {
        size: size_of::<perf_event_attr>() as u32,
        type_: PERF_TYPE_SOFTWARE,
        config: u64::from(PERF_COUNT_SW_DUMMY),
        sample_type: SAMPLE_ID_TYPE,
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attr.set_disabled(1);
    attr.set_mmap(1);
    attr.set_mmap2(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_task(1);
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    // Every record wakes the reader: a process of a few milliseconds must be met while it lives.
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = 1;
    attr
}
