//! A record of a buffer as ETW tells it to those who read a trace. In: its bytes, and what its buffer knows. Out: an
//! [`EtwRecord`] that borrows them.
//!
//! Headers, little-endian; size and time are told in [`super::frame`]:
//!
//! - `SYSTEM_TRACE_HEADER`: u16 version (the lower byte; 0x8000: a u64 of PEBS follows the header, 0x700: so many u64 of
//!   the CPU's counters do), marker, u16 size, u8 type, u8 group, u32 thread, u32 process, i64 time, two u32 of CPU times.
//!   `PERFINFO_TRACE_HEADER` has neither thread nor process.
//! - `EVENT_HEADER`: u16 size, marker, u16 flags, u16 property, u32 thread, u32 process, i64 time, GUID, the descriptor (u16
//!   id, u8 version, u8 channel, u8 level, u8 opcode, u16 task, u64 keyword), u64 CPU times, the activity's GUID.
//! - `EVENT_TRACE_HEADER`: u16 size, marker, u8 type, u8 level, u16 version, u32 thread, u32 process, i64 time, GUID, u64 CPU
//!   times. `EVENT_INSTANCE_GUID_HEADER` goes on with the instance's number, its parent's, and the parent's GUID.
//!
//! GUIDs are little-endian. Processes and threads that are not known are -1.
//!
//! Source: `evntrace.h`, `evntcons.h`, `ntwmi.h`.

use collector_common::event::Guid;
use collector_common::ids::{Pid, Tid};

use super::bytes::{guid_at, u16_at, u32_at, u64_at};
use super::extended;
use super::frame::Kind;
use super::kernel_groups::class;
use super::message::Message;
use crate::record::{Descriptor, EtwRecord, Extended, PointerSize, Schema};

const FLAG_EXTENDED: u16 = 1;
const FLAG_STRING_ONLY: u16 = 4;
const FLAG_TRACE_MESSAGE: u16 = 8;
const FLAG_CLASSIC: u16 = 0x100;

/// In a version of a kernel's event.
const PEBS: u16 = 0x8000;
const COUNTERS: u16 = 0x700;
const COUNTERS_SHIFT: u32 = 8;

/// What a record does not say itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub(super) cpu: u16,
    pub(super) ticks: i64,
    /// Of the kernel.
    pub(super) pointer_size: PointerSize,
}

/// `bytes` are those of one record of this kind. None where what is in it reaches past it, and of kinds that are not read.
#[inline]
pub(super) fn parse(kind: Kind, bytes: &[u8], around: Around) -> Option<EtwRecord<'_>> {
    match kind {
        Kind::System(width) | Kind::Compact(width) => kernel(bytes, kind, width, true, around),
        Kind::PerfInfo(width) => kernel(bytes, kind, width, false, around),
        Kind::Event(width) => event(bytes, kind, width, around),
        Kind::Full(width) => classic(bytes, kind, width, around),
        Kind::Instance(width) => {
            let record = classic(bytes, kind, width, around)?;
            let instance = extended::instance(bytes.get(0x30..kind.header())?);
            Some(EtwRecord { extended: Extended { instance, ..record.extended }, ..record })
        }
        Kind::Message => message(bytes, around),
        Kind::Unread => None,
    }
}

#[inline]
fn kernel(
    bytes: &[u8],
    kind: Kind,
    width: PointerSize,
    has_thread: bool,
    around: Around,
) -> Option<EtwRecord<'_>> {
    let version = u16_at(bytes, 0)?;
    let mut at = kind.header();
    if version & PEBS != 0 {
        at += 8;
    }
    let counters = usize::from((version & COUNTERS) >> COUNTERS_SHIFT) * 8;
    let (opcode, group) = (*bytes.get(6)?, *bytes.get(7)?);
    let extended = Extended {
        counters: if counters == 0 { None } else { Some(bytes.get(at..at + counters)?) },
        ..Extended::default()
    };
    Some(EtwRecord {
        provider: class(group, opcode),
        descriptor: Descriptor { version: version as u8, opcode, ..Descriptor::default() },
        schema: Schema::Classic,
        pointer_size: width,
        pid: if has_thread { pid_at(bytes) } else { None },
        tid: if has_thread { tid_at(bytes) } else { None },
        cpu: around.cpu,
        ticks: around.ticks,
        activity: Guid([0; 16]),
        extended,
        payload: bytes.get(at + counters..)?,
    })
}

#[inline]
fn event(bytes: &[u8], kind: Kind, width: PointerSize, around: Around) -> Option<EtwRecord<'_>> {
    let flags = u16_at(bytes, 4)?;
    let behind = bytes.get(kind.header()..)?;
    let (extended, length) =
        if flags & FLAG_EXTENDED == 0 { (Extended::default(), 0) } else { extended::parse(behind)? };
    Some(EtwRecord {
        provider: guid_at(bytes, 0x18)?,
        descriptor: Descriptor {
            id: u16_at(bytes, 0x28)?,
            version: *bytes.get(0x2a)?,
            channel: *bytes.get(0x2b)?,
            level: *bytes.get(0x2c)?,
            opcode: *bytes.get(0x2d)?,
            task: u16_at(bytes, 0x2e)?,
            keyword: u64_at(bytes, 0x30)?,
        },
        schema: schema(flags, &extended),
        pointer_size: width,
        pid: pid_at(bytes),
        tid: tid_at(bytes),
        cpu: around.cpu,
        ticks: around.ticks,
        activity: guid_at(bytes, 0x40)?,
        extended,
        payload: behind.get(length..)?,
    })
}

fn schema(flags: u16, extended: &Extended<'_>) -> Schema {
    let has = |flag: u16| flags & flag != 0;
    if extended.self_description.is_some() {
        Schema::SelfDescribing
    } else if has(FLAG_STRING_ONLY) {
        Schema::Text
    } else if has(FLAG_TRACE_MESSAGE) {
        Schema::Message
    } else if has(FLAG_CLASSIC) {
        Schema::Classic
    } else {
        Schema::Manifest
    }
}

#[inline]
fn classic(bytes: &[u8], kind: Kind, width: PointerSize, around: Around) -> Option<EtwRecord<'_>> {
    Some(EtwRecord {
        provider: guid_at(bytes, 0x18)?,
        descriptor: Descriptor {
            opcode: *bytes.get(4)?,
            level: *bytes.get(5)?,
            // A descriptor has one byte for it, and so have those who read a trace.
            version: *bytes.get(6)?,
            ..Descriptor::default()
        },
        schema: Schema::Classic,
        pointer_size: width,
        pid: pid_at(bytes),
        tid: tid_at(bytes),
        cpu: around.cpu,
        ticks: around.ticks,
        activity: Guid([0; 16]),
        extended: Extended::default(),
        payload: bytes.get(kind.header()..)?,
    })
}

fn message(bytes: &[u8], around: Around) -> Option<EtwRecord<'_>> {
    let message = Message::parse(bytes)?;
    Some(EtwRecord {
        provider: message.guid,
        descriptor: Descriptor { id: message.number, ..Descriptor::default() },
        schema: Schema::Message,
        pointer_size: message.pointer_size.unwrap_or(around.pointer_size),
        pid: message.pid,
        tid: message.tid,
        cpu: around.cpu,
        ticks: around.ticks,
        activity: Guid([0; 16]),
        extended: Extended::default(),
        payload: bytes.get(message.header..)?,
    })
}

fn tid_at(bytes: &[u8]) -> Option<Tid> {
    u32_at(bytes, 8).filter(|tid| *tid != u32::MAX).map(Tid)
}

fn pid_at(bytes: &[u8]) -> Option<Pid> {
    u32_at(bytes, 0xc).filter(|pid| *pid != u32::MAX).map(Pid)
}
