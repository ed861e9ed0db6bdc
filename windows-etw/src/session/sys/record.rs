//! An `EVENT_RECORD` as the rest of the crate knows events. The live callback and tests come through here.

use std::slice;

use collector_common::ids::{Pid, Tid};
use windows_sys::Win32::System::Diagnostics::Etw::{
    EVENT_HEADER_FLAG_32_BIT_HEADER, EVENT_HEADER_FLAG_64_BIT_HEADER, EVENT_HEADER_FLAG_CLASSIC_HEADER,
    EVENT_HEADER_FLAG_PROCESSOR_INDEX, EVENT_HEADER_FLAG_STRING_ONLY, EVENT_HEADER_FLAG_TRACE_MESSAGE,
    EVENT_RECORD,
};

use super::from_windows;
use crate::etl::extended;
use crate::record::{Descriptor, EtwRecord, Extended, PointerSize, Schema};

/// Whether this machine's programs are, which events do not say that have nothing to do with one.
const IS_32_BIT: bool = cfg!(target_pointer_width = "32");
/// Processes and threads that are not known.
const NOBODY: u32 = u32::MAX;

/// The event, borrowed.
///
/// # Safety
/// `UserData` is null or points to `UserDataLength` bytes, `ExtendedData` to `ExtendedDataCount` items, and `DataPtr` of each to
/// `DataSize` bytes, which all stay as they are for as long as `'a`. ETW upholds it while its callback runs.
pub(super) unsafe fn record_of<'a>(event: &'a EVENT_RECORD) -> EtwRecord<'a> {
    let header = &event.EventHeader;
    let mut extended = Extended::default();
    if !event.ExtendedData.is_null() {
        let count = usize::from(event.ExtendedDataCount);
        // SAFETY: the caller answers for so many items.
        let items = unsafe { slice::from_raw_parts(event.ExtendedData, count) };
        for item in items {
            let data = std::ptr::with_exposed_provenance(item.DataPtr as usize);
            // SAFETY: the caller answers for the bytes of each item.
            let data: &'a [u8] = unsafe { bytes(data, usize::from(item.DataSize)) };
            extended::keep(&mut extended, item.ExtType, data);
        }
    }
    // SAFETY: the caller answers for the payload.
    let payload = unsafe { bytes(event.UserData.cast_const().cast(), usize::from(event.UserDataLength)) };
    let has = |flag: u32| u32::from(header.Flags) & flag != 0;
    // SAFETY: both fields of the union are plain numbers of the same two bytes.
    let (index, number) = unsafe {
        let context = event.BufferContext.Anonymous;
        (context.ProcessorIndex, context.Anonymous.ProcessorNumber)
    };
    let descriptor = header.EventDescriptor;
    EtwRecord {
        provider: from_windows(header.ProviderId),
        descriptor: Descriptor {
            id: descriptor.Id,
            version: descriptor.Version,
            channel: descriptor.Channel,
            level: descriptor.Level,
            opcode: descriptor.Opcode,
            task: descriptor.Task,
            keyword: descriptor.Keyword,
        },
        schema: schema(header.Flags, &extended),
        pointer_size: if has(EVENT_HEADER_FLAG_32_BIT_HEADER)
            || (IS_32_BIT && !has(EVENT_HEADER_FLAG_64_BIT_HEADER))
        {
            PointerSize::Bits32
        } else {
            PointerSize::Bits64
        },
        pid: (header.ProcessId != NOBODY).then_some(Pid(header.ProcessId)),
        tid: (header.ThreadId != NOBODY).then_some(Tid(header.ThreadId)),
        cpu: if has(EVENT_HEADER_FLAG_PROCESSOR_INDEX) { index } else { number.into() },
        ticks: header.TimeStamp,
        activity: from_windows(header.ActivityId),
        extended,
        payload,
    }
}

fn schema(flags: u16, extended: &Extended<'_>) -> Schema {
    let has = |flag: u32| u32::from(flags) & flag != 0;
    if extended.self_description.is_some() {
        Schema::SelfDescribing
    } else if has(EVENT_HEADER_FLAG_STRING_ONLY) {
        Schema::Text
    } else if has(EVENT_HEADER_FLAG_TRACE_MESSAGE) {
        Schema::Message
    } else if has(EVENT_HEADER_FLAG_CLASSIC_HEADER) {
        Schema::Classic
    } else {
        Schema::Manifest
    }
}

/// # Safety
/// `start` is null or points to `length` bytes that stay as they are for as long as `'a`.
unsafe fn bytes<'a>(start: *const u8, length: usize) -> &'a [u8] {
    if start.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller answers for it; u16 lengths are below what a slice may have.
    unsafe { slice::from_raw_parts(start, length) }
}

#[cfg(test)]
mod tests;
