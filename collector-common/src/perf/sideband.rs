//! Parses the records of an event opened with [`SAMPLE_ID_TYPE`] and `sample_id_all`, without `build_id`: every record but the
//! samples ends in a [`SampleId`].

use thiserror::Error;

use super::reader::Reader;
use crate::ids::{Avma, FileOffset, Nanos, Pid, Tid};

/// `PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU`: the `sample_type` the records must be opened with.
pub const SAMPLE_ID_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7;

/// Bytes of a [`SampleId`] under [`SAMPLE_ID_TYPE`].
const SAMPLE_ID_SIZE: usize = 24;

/// When and where a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleId {
    /// The process that was running.
    pub pid: Pid,
    /// The thread that was running.
    pub tid: Tid,
    /// When, in the event's clock.
    pub time: Nanos,
    /// The CPU.
    pub cpu: u32,
}

/// What file a mapping shows, as the kernel numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device major number.
    pub major: u32,
    /// Device minor number.
    pub minor: u32,
    /// Inode number; 0 for memory without a file.
    pub inode: u64,
    /// Inode generation.
    pub generation: u64,
}

/// `PERF_RECORD_MMAP2`: a mapping was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap2<'a> {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// First address.
    pub start: Avma,
    /// Bytes.
    pub len: u64,
    /// Where in the file it starts.
    pub file_offset: FileOffset,
    /// The file.
    pub identity: Identity,
    /// `PROT_*` bits.
    pub protection: u32,
    /// Path as the process saw it, or a name such as `[vdso]` or `//anon`.
    pub path: &'a [u8],
}

impl Mmap2<'_> {
    /// Whether the memory can be executed (`PROT_EXEC`).
    pub fn is_executable(&self) -> bool {
        self.protection & 4 != 0
    }
}

/// A record of the sideband.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// A mapping was made.
    Mmap2(Mmap2<'a>),
    /// A thread was named.
    Comm {
        /// The process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// Whether the name came with the execution of a program.
        exec: bool,
        /// The name.
        name: &'a [u8],
    },
    /// A process or thread was made.
    Fork {
        /// The new thread's process.
        pid: Pid,
        /// The process that made it.
        parent: Pid,
        /// The new thread.
        tid: Tid,
    },
    /// A thread ended.
    Exit {
        /// Its process.
        pid: Pid,
        /// The thread.
        tid: Tid,
    },
    /// Code was added to the kernel, or removed.
    KernelSymbol {
        /// First address.
        start: Avma,
        /// Bytes.
        len: u32,
        /// `PERF_RECORD_KSYMBOL_TYPE_*`; 1 is a BPF program.
        kind: u16,
        /// Whether it was removed.
        removed: bool,
        /// Its name.
        name: &'a [u8],
    },
    /// Records were lost because the ring was full.
    Lost(u64),
    /// Sampling was throttled from here on.
    Throttle,
    /// Sampling goes on.
    Unthrottle,
    /// A record of another type, which has no meaning for the sideband.
    Other(u32),
}

/// Why a record could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The record is shorter than its type needs.
    #[error("perf record of type {kind} is cut off at {len} bytes")]
    Short {
        /// The record's type.
        kind: u32,
        /// Bytes there were.
        len: usize,
    },
}

/// Parses one record: `kind` and `misc` from its header, `body` the bytes after the header.
///
/// # Errors
/// When the body is shorter than the type needs.
pub fn parse(kind: u32, misc: u16, body: &[u8]) -> Result<(Record<'_>, SampleId), ParseError> {
    let written = if kind == KERNEL_SYMBOL { written_of_kernel_symbol(body) } else { body };
    let parsed = written
        .split_at_checked(written.len().wrapping_sub(SAMPLE_ID_SIZE))
        .and_then(|(body, id)| Some((parse_body(kind, misc, Reader(body))?, parse_sample_id(Reader(id))?)));
    parsed.ok_or(ParseError::Short { kind, len: body.len() })
}

/// `PERF_RECORD_KSYMBOL`
const KERNEL_SYMBOL: u32 = 17;

/// What the kernel wrote of a record of its symbols: of several recorders that are told of one, each but the first gets a
/// record that is longer by a sample id than that of the one before, and the bytes at its end are from an earlier record
/// (`perf_event_ksymbol_output` of `kernel/events/core.c` adds to one header's size for all of them).
fn written_of_kernel_symbol(body: &[u8]) -> &[u8] {
    /// Address, length, type and flags.
    const NAME_AT: usize = 16;
    let name = body.get(NAME_AT..).unwrap_or_default();
    let Some(len) = name.iter().position(|&byte| byte == 0) else { return body };
    let id_at = NAME_AT + (len + 1).next_multiple_of(8);
    body.get(..id_at + SAMPLE_ID_SIZE).unwrap_or(body)
}

fn parse_sample_id(mut reader: Reader<'_>) -> Option<SampleId> {
    Some(SampleId {
        pid: Pid(reader.u32()?),
        tid: Tid(reader.u32()?),
        time: Nanos(reader.u64()?),
        cpu: reader.u32()?,
    })
}

fn parse_body(kind: u32, misc: u16, mut reader: Reader<'_>) -> Option<Record<'_>> {
    /// `PERF_RECORD_MISC_COMM_EXEC`
    const COMM_EXEC: u16 = 1 << 13;
    Some(match kind {
        2 => {
            reader.u64()?; // id
            Record::Lost(reader.u64()?)
        }
        3 => Record::Comm {
            pid: Pid(reader.u32()?),
            tid: Tid(reader.u32()?),
            exec: misc & COMM_EXEC != 0,
            name: reader.text(),
        },
        4 => {
            let (pid, _parent, tid) = (Pid(reader.u32()?), reader.u32()?, Tid(reader.u32()?));
            Record::Exit { pid, tid }
        }
        5 => Record::Throttle,
        6 => Record::Unthrottle,
        7 => {
            let (pid, parent, tid) = (Pid(reader.u32()?), Pid(reader.u32()?), Tid(reader.u32()?));
            Record::Fork { pid, parent, tid }
        }
        10 => Record::Mmap2(parse_mmap2(reader)?),
        KERNEL_SYMBOL => Record::KernelSymbol {
            start: Avma(reader.u64()?),
            len: reader.u32()?,
            kind: reader.u16()?,
            removed: reader.u16()? & 1 != 0,
            name: reader.text(),
        },
        other => Record::Other(other),
    })
}

/// `PERF_RECORD_MISC_MMAP_BUILD_ID` is not looked at. It says that the identity is a build id, for events that asked
/// for one; but the kernel leaves it set for the events after such a one, which get device and inode.
fn parse_mmap2(mut reader: Reader<'_>) -> Option<Mmap2<'_>> {
    let (pid, tid) = (Pid(reader.u32()?), Tid(reader.u32()?));
    let (start, len, file_offset) = (Avma(reader.u64()?), reader.u64()?, FileOffset(reader.u64()?));
    let identity = Identity {
        major: reader.u32()?,
        minor: reader.u32()?,
        inode: reader.u64()?,
        generation: reader.u64()?,
    };
    let protection = reader.u32()?;
    reader.u32()?; // flags
    Some(Mmap2 { pid, tid, start, len, file_offset, identity, protection, path: reader.text() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn noise_is_never_fatal(kind in 0_u32..30, misc: u16, body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(kind, misc, &body);
        }
    }

    #[test]
    fn the_sample_id_is_not_part_of_a_name() {
        let mut body = Vec::new();
        body.extend(7_u32.to_ne_bytes());
        body.extend(8_u32.to_ne_bytes());
        body.extend(*b"12345678");
        for word in [7_u32, 8] {
            body.extend(word.to_ne_bytes());
        }
        body.extend(99_u64.to_ne_bytes());
        body.extend(3_u32.to_ne_bytes());
        body.extend(0_u32.to_ne_bytes());
        let (record, id) = parse(3, 1 << 13, &body).unwrap();
        assert_eq!(record, Record::Comm { pid: Pid(7), tid: Tid(8), exec: true, name: b"12345678" });
        assert_eq!(id, SampleId { pid: Pid(7), tid: Tid(8), time: Nanos(99), cpu: 3 });
    }

    #[test]
    fn a_kernel_symbol_may_have_anything_behind_it() {
        let mut body = Vec::new();
        body.extend(0xffff_ffff_c000_1000_u64.to_ne_bytes());
        body.extend(64_u32.to_ne_bytes());
        body.extend([1_u16, 1].map(u16::to_ne_bytes).concat());
        body.extend(*b"a_symbol\0\0\0\0\0\0\0\0");
        body.extend([7_u32, 8].map(u32::to_ne_bytes).concat());
        body.extend(99_u64.to_ne_bytes());
        body.extend([3_u32, 0].map(u32::to_ne_bytes).concat());
        let parsed = parse(17, 0, &body).unwrap();
        assert_eq!(parsed.1, SampleId { pid: Pid(7), tid: Tid(8), time: Nanos(99), cpu: 3 });
        let symbol = Record::KernelSymbol {
            start: Avma(0xffff_ffff_c000_1000),
            len: 64,
            kind: 1,
            removed: true,
            name: b"a_symbol",
        };
        assert_eq!(parsed.0, symbol);
        for recorders in 1..4 {
            let longer =
                [body.as_slice(), &[0x5a; 3 * SAMPLE_ID_SIZE][..recorders * SAMPLE_ID_SIZE]].concat();
            assert_eq!(parse(17, 0, &longer), Ok(parsed), "beside {recorders} others");
        }
    }
}
