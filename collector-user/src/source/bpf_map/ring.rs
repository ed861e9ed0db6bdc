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
use crate::source::{Account, EventIndex, Source, SourceRecord};
use crate::sys::bpf_ring::{BpfRing, Drained};

/// What threads are called that no field tells of.
const UNKNOWN: &[u8] = b"[unknown]";

/// Fields by which a record says whose it is.
const PROCESS: &str = "pid";
const THREAD: &str = "tid";

/// A ring map. Dropping it leaves the rest to other readers.
pub(super) struct Ring {
    map: BpfMap,
    records: BpfRing,
    event: EventIndex,
    process: Option<Spot>,
    thread: Option<Spot>,
    header: SampleHeader,
    /// Where the ring ended when the recording did.
    end: Option<usize>,
    malformed: u64,
    /// How often another reader was noticed.
    others: u64,
}

impl Ring {
    pub(super) fn open(map: BpfMap, format: &EventFormat, event: EventIndex) -> Result<Self, BpfMapError> {
        let records = BpfRing::map(&map.fd, map.entries).map_err(|source| BpfMapError::System {
            map: map.name.clone(),
            what: "its ring can't be mapped",
            source,
        })?;
        Ok(Self {
            map,
            records,
            event,
            process: Spot::of(format, PROCESS),
            thread: Spot::of(format, THREAD),
            header: SampleHeader { version: VERSION, ..SampleHeader::zeroed() },
            end: None,
            malformed: 0,
            others: 0,
        })
    }
}

impl Source for Ring {
    fn name(&self) -> &'static str {
        "bpf_map"
    }

    /// Its programs write all the time.
    fn start(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn stop(&mut self) -> io::Result<()> {
        self.end = Some(self.records.end());
        Ok(())
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.map.fd.as_fd()]
    }

    fn tells_each(&self) -> bool {
        true
    }

    /// What is waiting has happened by `until`, and that is its time.
    fn drain(&mut self, until: Nanos, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
        let Self { records, header, event, process, thread, .. } = self;
        header.time = until.0;
        let end = self.end.unwrap_or_else(|| records.end());
        let Drained { others, malformed } = records.drain(end, |data| {
            let number = |spot: &Option<Spot>| spot.as_ref().and_then(|spot| spot.number(data)).unwrap_or(0);
            let [pid, tid] = [&*process, thread].map(number);
            let is_known = pid != 0;
            header.pid = pid;
            header.tid = if tid == 0 { pid } else { tid };
            header.comm = [0; _];
            if !is_known {
                header.tid = 0;
                header.comm[..UNKNOWN.len()].copy_from_slice(UNKNOWN);
            }
            visit(&SourceRecord {
                event: *event,
                header,
                is_named: !is_known,
                kernel: &[],
                stack: &[],
                user: &[],
                value: 1,
                data,
            });
        });
        self.others += u64::from(others);
        self.malformed += u64::from(malformed);
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
