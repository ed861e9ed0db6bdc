//! The header of a WPP message, `MESSAGE_TRACE_HEADER`: u16 size, u16 marker, u16 number of the message, u16 flags; then
//! what the flags name, in this order: 1 a u32 sequence number; 2 the message's GUID, or 4 a u32 component instead; 8 or
//! 0x10 the time; 0x20 thread and process, u32 each. 0x40 and 0x80 tell the width of pointers.
//!
//! Source: `evntrace.h` (`TRACE_MESSAGE_*`), `ntwmi.h`; the order is that of `TraceMessage` in Microsoft's documentation.

use collector_common::event::Guid;
use collector_common::ids::{Pid, Tid};

use super::bytes::{guid_at, i64_at, u16_at, u32_at};
use crate::record::PointerSize;

const SEQUENCE: u16 = 1;
const GUID: u16 = 2;
const COMPONENT: u16 = 4;
const TIMESTAMP: u16 = 8;
const PERFORMANCE_TIMESTAMP: u16 = 0x10;
const SYSTEM_INFO: u16 = 0x20;
const POINTER_32: u16 = 0x40;
const POINTER_64: u16 = 0x80;

/// What a message says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// Bytes before the payload.
    pub(super) header: usize,
    pub(super) number: u16,
    /// Zero where a component sent it.
    pub(super) guid: Guid,
    pub(super) ticks: Option<i64>,
    pub(super) pid: Option<Pid>,
    pub(super) tid: Option<Tid>,
    /// Where it tells.
    pub(super) pointer_size: Option<PointerSize>,
}

impl Message {
    /// None where the bytes are too few.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let flags = u16_at(bytes, 6)?;
        let has = |flag: u16| flags & flag != 0;
        let mut at = 8;
        let mut message = Self {
            header: 0,
            number: u16_at(bytes, 4)?,
            guid: Guid([0; 16]),
            ticks: None,
            pid: None,
            tid: None,
            pointer_size: None,
        };
        if has(SEQUENCE) {
            at += 4;
        }
        if has(COMPONENT) {
            at += 4;
        } else if has(GUID) {
            message.guid = guid_at(bytes, at)?;
            at += 16;
        }
        if has(TIMESTAMP | PERFORMANCE_TIMESTAMP) {
            message.ticks = Some(i64_at(bytes, at)?);
            at += 8;
        }
        if has(SYSTEM_INFO) {
            message.tid = Some(Tid(u32_at(bytes, at)?));
            message.pid = Some(Pid(u32_at(bytes, at + 4)?));
            at += 8;
        }
        if has(POINTER_32) {
            message.pointer_size = Some(PointerSize::Bits32);
        } else if has(POINTER_64) {
            message.pointer_size = Some(PointerSize::Bits64);
        }
        message.header = at;
        Some(message)
    }
}
