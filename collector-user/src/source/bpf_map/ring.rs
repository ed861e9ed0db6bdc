//! A ring map as a source.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use bytemuck::Zeroable as _;
use collector_common::event::{EventFormat, Extent, FieldKind, Place};
use collector_common::ids::Nanos;
use collector_common::loss::{Ledger, LossCause};
use collector_common::wire::{SampleHeader, VERSION};

use super::error::BpfMapError;
use super::map::BpfMap;
use crate::clock;
use crate::source::{Account, EventIndex, Source, SourceRecord};
use crate::sys::bpf_ring::{BpfRing, Records, Taken};

/// What threads are called that no field tells of.
const UNKNOWN: &[u8] = b"[unknown]";

/// Fields by which a record says whose it is.
const PROCESS: &str = "pid";
const THREAD: &str = "tid";

/// A ring map. Dropping it leaves the rest to other readers.
///
/// What is there when a round begins is taken, and handed over once the sideband has told of every process that may have written
/// it, and before those that have ended meanwhile are forgotten.
pub(super) struct Ring {
    map: BpfMap,
    mapped: BpfRing,
    held: Batch,
    is_stopped: bool,
    caller: Caller,
    malformed: u64,
    /// How often another reader was noticed.
    others: u64,
}

/// Records that were taken at one time.
#[derive(Default)]
struct Batch {
    records: Records,
    /// They were all written before.
    time: Nanos,
}

impl Ring {
    pub(super) fn open(map: BpfMap, format: &EventFormat, event: EventIndex) -> Result<Self, BpfMapError> {
        let mapped = BpfRing::map(&map.fd, map.entries).map_err(|source| BpfMapError::System {
            map: map.name.clone(),
            what: "its ring can't be mapped",
            source,
        })?;
        let caller = Caller {
            event,
            process: Spot::of(format, PROCESS),
            thread: Spot::of(format, THREAD),
            header: SampleHeader { version: VERSION, ..SampleHeader::zeroed() },
        };
        let held = Batch::default();
        Ok(Self { map, mapped, held, is_stopped: false, caller, malformed: 0, others: 0 })
    }

    /// Takes all that is in the ring now, and so makes room.
    fn take(&mut self) {
        let end = self.mapped.end();
        self.held.time = clock::now();
        let Taken { others, malformed } = self.mapped.take(end, &mut self.held.records);
        self.others += u64::from(others);
        self.malformed += u64::from(malformed);
    }
}

/// Makes records of bytes.
struct Caller {
    event: EventIndex,
    process: Option<Spot>,
    thread: Option<Spot>,
    header: SampleHeader,
}

impl Caller {
    /// Hands over a batch, and forgets it.
    fn call(&mut self, batch: &mut Batch, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
        self.header.time = batch.time.0;
        for data in batch.records.iter() {
            let is_named = self.name(data);
            let (event, header) = (self.event, &self.header);
            visit(&SourceRecord { is_named, data, ..SourceRecord::bare(event, header) });
        }
        batch.records.clear();
    }

    /// Notes whose a record is. Says whether that is what the thread is called, too, as where it is nobody's.
    fn name(&mut self, data: &[u8]) -> bool {
        let number = |spot: Option<Spot>| spot.and_then(|spot| spot.number(data)).unwrap_or(0);
        let [pid, tid] = [self.process, self.thread].map(number);
        let header = &mut self.header;
        header.comm = [0; _];
        if pid == 0 {
            header.comm[..UNKNOWN.len()].copy_from_slice(UNKNOWN);
        }
        (header.pid, header.tid) = match (pid, tid) {
            (0, _) => (0, 0),
            (pid, 0) => (pid, pid),
            both => both,
        };
        pid == 0
    }
}

impl Source for Ring {
    fn name(&self) -> &'static str {
        "bpf_map"
    }

    fn stop(&mut self) -> io::Result<()> {
        self.take();
        self.is_stopped = true;
        Ok(())
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.map.fd.as_fd()]
    }

    fn tells_each(&self) -> bool {
        true
    }

    fn begin_round(&mut self) {
        if !self.is_stopped {
            self.take();
        }
    }

    fn drain(&mut self, until: Nanos, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
        if self.held.time <= until {
            self.caller.call(&mut self.held, visit);
        }
    }

    /// The programs alone know.
    fn dropped(&self) -> u64 {
        0
    }

    fn close(&mut self, ledger: &mut Ledger) -> io::Result<Account> {
        ledger.lose(LossCause::Malformed, self.malformed);
        let others = (
            self.others,
            "times another reader was found to take records of a BPF ring map: those are not in the recording",
        );
        Ok(Account { warnings: vec![others], ..Account::default() })
    }
}

/// Where a number of 32 or 64 bits is in every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    at: usize,
    is_wide: bool,
}

impl Spot {
    /// Of the first field of a name, if all records have it at the same place.
    fn of(format: &EventFormat, name: &str) -> Option<Self> {
        let mut end = Some(0_u32);
        for field in format.fields() {
            let at = match field.place() {
                Place::At(at) => Some(at),
                Place::AfterPrevious => end,
            };
            if field.name() == name {
                let is_number = matches!(field.kind(), FieldKind::Unsigned(_) | FieldKind::Signed(_));
                return match (is_number && field.extent() == Extent::One, field.fixed_size()) {
                    (true, Some(size @ (4 | 8))) => Some(Self { at: at? as usize, is_wide: size == 8 }),
                    _ => None,
                };
            }
            end = at.zip(field.fixed_size()).and_then(|(at, size)| at.checked_add(size));
        }
        None
    }

    /// Its value; `None` where the record ends before, or it is no thread's.
    fn number(self, data: &[u8]) -> Option<u32> {
        let data = data.get(self.at..)?;
        if self.is_wide {
            u64::from_ne_bytes(*data.first_chunk()?).try_into().ok()
        } else {
            Some(u32::from_ne_bytes(*data.first_chunk()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::{format, parse_list};
    use super::*;

    #[test]
    fn whose_a_record_is() {
        let of = |list: &str, name| Spot::of(&format(&parse_list(list).unwrap()).unwrap(), name);
        let narrow = |at| Some(Spot { at, is_wide: false });
        assert_eq!(of("_:u64, pid:u32, tid:i32", PROCESS), narrow(8));
        assert_eq!(of("_:u64, pid:u32, tid:i32", THREAD), narrow(12));
        assert_eq!(of("pid:u64", PROCESS), Some(Spot { at: 0, is_wide: true }));
        for none in ["", "pid:u16", "pid:u32[1]", "pid:char[4]", "pids:u32"] {
            assert_eq!(of(none, PROCESS), None, "{none}");
        }
        let spot = Spot { at: 4, is_wide: true };
        let record = |value: u64| [&[0; 4][..], &value.to_ne_bytes()].concat();
        assert_eq!(spot.number(&record(7)), Some(7));
        assert_eq!(spot.number(&record(1 << 32)), None);
        assert_eq!(spot.number(&record(7)[..11]), None);
        assert_eq!(Spot { at: usize::MAX, is_wide: false }.number(&[0; 8]), None);
    }
}
