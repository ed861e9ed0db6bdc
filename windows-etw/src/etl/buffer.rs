//! The header of a buffer, `WMI_BUFFER_HEADER`, 72 bytes since Windows 7. In: its bytes. Out: where its records are.
//!
//! | offset | | |
//! |---|---|---|
//! | 0 | u32 | bytes in the file, with the header |
//! | 0x10 | i64 | when it was written, in ticks (in a file that was merged: a `FILETIME`) |
//! | 0x18 | i64 | its number in the session |
//! | 0x28 | u16 | CPU: with the flag 0x20 a number of 11 bits, else a byte and an alignment |
//! | 0x2c | u32 | state |
//! | 0x30 | u32 | bytes that are used, with the header; of the unpacked buffer, if it is packed |
//! | 0x34 | u16 | flags: 1 the last of a flush, 2 events were lost, 4 buffers were lost, 0x20 above, 0x40 packed |
//! | 0x36 | u16 | kind: 0 events, 1 rundown, 2 context switches, 3 clock, 4 the file's header, 5 batch, 6 empty |
//!
//! Source: `ntwmi.h` as in System Informer's `phnt`; Geoff Chappell, `WMI_BUFFER_HEADER`. How used bytes and bytes in the
//! file differ in packed buffers is read off files.

use super::bytes::{u16_at, u32_at};

/// Bytes of a header.
pub(super) const HEADER: usize = 0x48;

/// Bytes of the largest buffer: `MAX_ETW_BUFFER_SIZE`, 16 MiB.
pub(super) const LARGEST: u32 = 16 << 20;

/// Bytes that the shortest buffer may unpack to, and how many more for each of its own. A record has at most 64 KiB, and
/// what makes it differ from the one before, its time at least, takes 16 bytes and more; so real ones are below that, while
/// 100 bytes can't be made 16 MiB of, time and again.
const UNPACKS_TO: usize = 64 << 10;
const UNPACKS_TO_EACH: usize = 4 << 10;

/// Bytes that all packed buffers of a file may unpack to together, and how many more for each byte of it: those of `net.4.5.2.x64.etl` have five
/// times as many as they are long.
const UNPACK_TO: u64 = 256 << 20;
const UNPACK_TO_EACH: u64 = 64;

const FLAG_EVENTS_LOST: u16 = 2;
const FLAG_BUFFER_LOST: u16 = 4;
const FLAG_PROCESSOR_INDEX: u16 = 0x20;
const FLAG_COMPRESSED: u16 = 0x40;
const ALL_FLAGS: u16 = 0x7f;

/// `ETW_BUFFER_STATE`: 3 is flushed, 5 is packed; `ETW_BUFFER_TYPE_*`.
const LAST_STATE: u32 = 7;
const LAST_KIND: u16 = 8;

/// `ETW_PROCESSOR_INDEX_MASK`.
const PROCESSOR_MASK: u16 = 0x7ff;

/// What a buffer says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferHeader {
    /// Bytes in the file, this header included; at most [`LARGEST`].
    pub(super) size: u32,
    /// Bytes of records once unpacked, without this header, as it says: they may be more than there are. None where it says
    /// less than this header.
    pub(super) used: Option<u32>,
    pub(super) cpu: u16,
    pub(super) is_packed: bool,
    /// Events or buffers were lost before it.
    pub(super) has_lost: bool,
}

impl BufferHeader {
    /// None where no buffer can begin with these bytes.
    pub(super) fn parse(bytes: &[u8; HEADER]) -> Option<Self> {
        let (size, used) = (u32_at(bytes, 0)?, u32_at(bytes, 0x30)?);
        let (cpu, flags) = (u16_at(bytes, 0x28)?, u16_at(bytes, 0x34)?);
        let header = HEADER as u32;
        (header..=LARGEST).contains(&size).then_some(Self {
            size,
            used: used.checked_sub(header),
            cpu: if flags & FLAG_PROCESSOR_INDEX == 0 { cpu & 0xff } else { cpu & PROCESSOR_MASK },
            is_packed: flags & FLAG_COMPRESSED != 0,
            has_lost: flags & (FLAG_EVENTS_LOST | FLAG_BUFFER_LOST) != 0,
        })
    }

    /// As [`Self::parse`], where it is not known that a buffer begins there: what is known of the other fields must hold too.
    pub(super) fn find(bytes: &[u8; HEADER]) -> Option<Self> {
        let state = u32_at(bytes, 0x2c)?;
        let (flags, kind) = (u16_at(bytes, 0x34)?, u16_at(bytes, 0x36)?);
        let is_known = state <= LAST_STATE && flags <= ALL_FLAGS && kind <= LAST_KIND;
        Self::parse(bytes).filter(|header| {
            let is_within = header.is_packed || header.used <= Some(header.size - HEADER as u32);
            is_known && is_within && header.used.is_some()
        })
    }

    /// Whether it says that it is packed, be the rest as it may.
    pub(super) fn says_packed(bytes: &[u8; HEADER]) -> bool {
        u16_at(bytes, 0x34).is_some_and(|flags| flags & FLAG_COMPRESSED != 0)
    }

    /// Bytes in the file behind the header, that have the records.
    pub(super) fn stored(&self) -> u32 {
        let behind = self.size - HEADER as u32;
        if self.is_packed { behind } else { behind.min(self.used.unwrap_or(0)) }
    }
}

/// The most that packed bytes are unpacked to.
pub(super) fn most_unpacked(stored: usize) -> usize {
    UNPACKS_TO + stored.saturating_mul(UNPACKS_TO_EACH)
}

/// The most that all packed buffers of a file of this length are unpacked to, together.
pub(super) fn most_unpacked_of_file(length: u64) -> u64 {
    UNPACK_TO.saturating_add(length.saturating_mul(UNPACK_TO_EACH))
}
