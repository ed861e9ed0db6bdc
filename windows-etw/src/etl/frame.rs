//! Where a record ends and when it came, which is all that putting records in order needs. In: the bytes of a buffer from
//! a record on. Out: its kind, size and time.
//!
//! A record begins with a marker: in the upper byte `0xc0` for the kinds below, `0x90` for messages of WPP; in the byte
//! below, the kind. The next one begins at a multiple of 8.
//!
//! | kinds, 32 and 64 bits | header | bytes | size, a u16, at | time, an i64, at |
//! |---|---|---|---|---|
//! | 1, 2 | `SYSTEM_TRACE_HEADER` | 0x20 | 4 | 0x10 |
//! | 3, 4 | the same without times of the CPU | 0x18 | 4 | 0x10 |
//! | 16, 17 | `PERFINFO_TRACE_HEADER` | 0x10 | 4 | 8 |
//! | 18, 19 | `EVENT_HEADER` | 0x50 | 0 | 0x10 |
//! | 10, 20 | `EVENT_TRACE_HEADER` | 0x30 | 0 | 0x10 |
//! | 11, 21 | `EVENT_INSTANCE_GUID_HEADER` | 0x48 | 0 | 0x10 |
//! | | `MESSAGE_TRACE_HEADER` | 8 and more | 0 | see [`super::message`] |
//!
//! Source: `ntwmi.h` as in System Informer's `phnt`, and Geoff Chappell's pages on these structures.

use super::bytes::{i64_at, u16_at, u32_at};
use super::message::Message;
use crate::record::PointerSize;

/// Upper byte of a marker.
const TRACE: u8 = 0xc0;
const MESSAGE: u8 = 0x90;
/// `TRACE_HEADER_ULONG32_TIME`.
const TIMED: u8 = 0xb0;
/// Without this bit it is a `WNODE_HEADER`, that begins with a u32 of its size.
const IS_TRACE: u8 = 0x80;

/// What stands behind the last record of a buffer.
pub(super) const PADDING: u32 = u32::MAX;

/// Bytes of a record's beginning that tell its kind, size and time, whatever it is.
pub(super) const BEGINNING: usize = 64;

/// Which header a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    System(PointerSize),
    Compact(PointerSize),
    PerfInfo(PointerSize),
    Event(PointerSize),
    Full(PointerSize),
    Instance(PointerSize),
    Message,
    /// One that is stepped over.
    Unread,
}

impl Kind {
    /// By its number.
    fn of(number: u8) -> Self {
        use PointerSize::{Bits32, Bits64};
        match number {
            1 => Self::System(Bits32),
            2 => Self::System(Bits64),
            3 => Self::Compact(Bits32),
            4 => Self::Compact(Bits64),
            10 => Self::Full(Bits32),
            11 => Self::Instance(Bits32),
            16 => Self::PerfInfo(Bits32),
            17 => Self::PerfInfo(Bits64),
            18 => Self::Event(Bits32),
            19 => Self::Event(Bits64),
            20 => Self::Full(Bits64),
            21 => Self::Instance(Bits64),
            // Of timed records, errors, WNODE headers and messages by that way there are no published layouts.
            _ => Self::Unread,
        }
    }

    /// Bytes of its header.
    pub(super) fn header(self) -> usize {
        match self {
            Self::System(_) => 0x20,
            Self::Compact(_) => 0x18,
            Self::PerfInfo(_) => 0x10,
            Self::Event(_) => 0x50,
            Self::Full(_) => 0x30,
            Self::Instance(_) => 0x48,
            Self::Message | Self::Unread => 8,
        }
    }
}

/// A record's kind, size and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// With its header; at least that of its kind.
    pub(super) size: usize,
    /// None of those that have no time.
    pub(super) ticks: Option<i64>,
}

impl Frame {
    /// Of the record that `bytes` begin with, or of its first [`BEGINNING`] bytes. None where no record can begin so.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let marker = u32_at(bytes, 0)?;
        let [size, _, number, upper] = marker.to_le_bytes();
        let size_at_0 = usize::from(u16::from_le_bytes([size, (marker >> 8) as u8]));
        let (kind, size, ticks) = match upper {
            TRACE => {
                let kind = Kind::of(number);
                match kind {
                    Kind::System(_) | Kind::Compact(_) => {
                        (kind, usize::from(u16_at(bytes, 4)?), Some(i64_at(bytes, 0x10)?))
                    }
                    Kind::PerfInfo(_) => (kind, usize::from(u16_at(bytes, 4)?), Some(i64_at(bytes, 8)?)),
                    Kind::Event(_) | Kind::Full(_) | Kind::Instance(_) => {
                        (kind, size_at_0, Some(i64_at(bytes, 0x10)?))
                    }
                    Kind::Message | Kind::Unread => (kind, size_at_0, None),
                }
            }
            MESSAGE => (Kind::Message, size_at_0, Message::parse(bytes)?.ticks),
            TIMED => (Kind::Unread, size_at_0, Some(i64_at(bytes, 8)?)),
            _ if upper & IS_TRACE == 0 => (Kind::Unread, usize::try_from(marker).ok()?, None),
            _ => (Kind::Unread, size_at_0, None),
        };
        (size >= kind.header()).then_some(Self { kind, size, ticks })
    }
}
