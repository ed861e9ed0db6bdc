//! What Windows knows of events and providers (`tdh.h`).

use collector_common::event::{ByteOrder, Guid};
use windows_sys::Win32::System::Diagnostics::Etw::{
    EVENT_DESCRIPTOR, EVENT_HEADER_FLAG_32_BIT_HEADER, EVENT_HEADER_FLAG_64_BIT_HEADER, EVENT_RECORD,
    TdhEnumerateProviders, TdhGetEventInformation,
};

use super::to_windows;
use crate::record::{Descriptor, EtwRecord, PointerSize};
use crate::session::{SessionError, Win32Error};

/// More than any description has.
const MOST_BYTES: u32 = 16 << 20;
/// Tries to get a list that grows in between.
const TRIES: usize = 8;

/// What this machine knows of the fields of an event of a manifest, wherever the event is from: the bytes of a `TRACE_EVENT_INFO`. It takes some
/// microseconds: ask once for each kind of event.
///
/// # Errors
/// Where Windows knows nothing (`ERROR_NOT_FOUND`, 1168), for instance.
pub fn description(record: &EtwRecord<'_>) -> Result<Vec<u8>, Win32Error> {
    event(&raw(record))
}

/// As much of an event as tells which it is: its payload is none.
fn raw(record: &EtwRecord<'_>) -> EVENT_RECORD {
    let mut raw = EVENT_RECORD::default();
    let Descriptor { id, version, channel, level, opcode, task, keyword } = record.descriptor;
    raw.EventHeader.ProviderId = to_windows(record.provider);
    raw.EventHeader.EventDescriptor = EVENT_DESCRIPTOR {
        Id: id,
        Version: version,
        Channel: channel,
        Level: level,
        Opcode: opcode,
        Task: task,
        Keyword: keyword,
    };
    raw.EventHeader.Size = size_of_val(&raw.EventHeader) as u16;
    raw.EventHeader.Flags = match record.pointer_size {
        PointerSize::Bits32 => EVENT_HEADER_FLAG_32_BIT_HEADER as u16,
        PointerSize::Bits64 => EVENT_HEADER_FLAG_64_BIT_HEADER as u16,
    };
    raw
}

/// The bytes of a `TRACE_EVENT_INFO`.
pub(super) fn event(event: &EVENT_RECORD) -> Result<Vec<u8>, Win32Error> {
    filled(|buffer, size| {
        // SAFETY: the event is one that ETW's callback got and that still runs, or has neither payload nor items; the buffer has as many bytes as are given, and both
        // outlive the call. It is aligned to 8 bytes.
        unsafe { TdhGetEventInformation(event, 0, std::ptr::null(), buffer.cast(), size) }
    })
}

/// All providers that this machine knows by name.
pub fn providers() -> Result<Vec<(String, Guid)>, SessionError> {
    let told = filled(|buffer, size| {
        // SAFETY: the buffer has as many bytes as are given, and outlives the call. It is aligned to 8 bytes.
        unsafe { TdhEnumerateProviders(buffer.cast(), size) }
    });
    let told = told.map_err(|cause| SessionError::of("TdhEnumerateProviders", "all providers", cause))?;
    Ok(parse(&told))
}

/// `PROVIDER_ENUMERATION_INFO`: u32 count, u32 nothing, and for each a GUID, u32 where it is from, u32 where its name is.
fn parse(bytes: &[u8]) -> Vec<(String, Guid)> {
    let u32_at = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let count = u32_at(bytes, 0).unwrap_or(0) as usize;
    let entries = bytes.get(8..).unwrap_or_default().as_chunks::<24>().0;
    let entry = |entry: &[u8; 24]| {
        let guid = Guid::from_bytes(*entry.first_chunk()?, ByteOrder::Little);
        let name = bytes.get(u32_at(entry, 20)? as usize..)?.as_chunks::<2>().0.iter();
        let units = name.map(|unit| u16::from_le_bytes(*unit)).take_while(|unit| *unit != 0);
        let name = char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER));
        Some((name.collect(), guid))
    };
    entries.iter().take(count).filter_map(entry).collect()
}

/// What `call` writes into a buffer that is as large as it wants.
fn filled(mut call: impl FnMut(*mut u64, *mut u32) -> u32) -> Result<Vec<u8>, Win32Error> {
    let (mut words, mut size): (Vec<u64>, u32) = (Vec::new(), 0);
    for _ in 0..TRIES {
        match Win32Error::check(call(words.as_mut_ptr(), &raw mut size)) {
            Ok(()) => {
                let written = words.iter().flat_map(|word| word.to_ne_bytes());
                return Ok(written.take(size as usize).collect());
            }
            Err(Win32Error::INSUFFICIENT_BUFFER) if size <= MOST_BYTES => {
                words.resize((size as usize).div_ceil(8), 0);
            }
            Err(error) => return Err(error),
        }
    }
    Err(Win32Error::INSUFFICIENT_BUFFER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Extended, Schema};
    use crate::session::sys::record::record_of;

    #[test]
    fn an_event_of_a_file_is_asked_for_as_one_that_comes() {
        let descriptor =
            Descriptor { id: 1, version: 2, channel: 3, level: 4, opcode: 5, task: 6, keyword: 7 << 40 };
        for pointer_size in [PointerSize::Bits32, PointerSize::Bits64] {
            let record = EtwRecord {
                provider: Guid([8; 16]),
                descriptor,
                schema: Schema::Manifest,
                pointer_size,
                pid: None,
                tid: None,
                cpu: 0,
                ticks: 9,
                activity: Guid([0; 16]),
                extended: Extended::default(),
                payload: b"payload",
            };
            let raw = raw(&record);
            // SAFETY: it has neither payload nor items.
            let same = unsafe { record_of(&raw) };
            assert_eq!((same.provider, same.descriptor), (record.provider, descriptor));
            assert_eq!((same.schema, same.pointer_size), (Schema::Manifest, pointer_size));
            assert!(same.payload.is_empty() && raw.EventHeader.Size == 80);
        }
    }

    #[test]
    fn a_buffer_grows_until_it_is_enough() {
        let mut calls = 0;
        let bytes = filled(|buffer, size| {
            calls += 1;
            if calls < 3 {
                // SAFETY: the size is a variable of the caller.
                unsafe { *size = 5 * calls };
                return 122;
            }
            // SAFETY: the buffer has 16 bytes, as was asked for, and the size is a variable.
            unsafe {
                buffer.cast::<[u8; 4]>().write(*b"done");
                *size = 4;
            }
            0
        });
        assert_eq!(bytes, Ok(b"done".to_vec()));
        assert_eq!(filled(|_, _| 122), Err(Win32Error(122)));
        assert_eq!(filled(|_, _| 1168), Err(Win32Error(1168)));
    }

    #[test]
    fn providers_are_read_and_cuts_are_survived() {
        let clr = crate::plan::KnownProvider::CLR;
        let mut bytes = vec![1, 0, 0, 0, 0, 0, 0, 0];
        let guid =
            [0x23, 0x0d, 0x3c, 0xe1, 0xbc, 0xcc, 0x12, 0x4e, 0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27, 0xe4];
        bytes.extend(guid);
        bytes.extend([0, 0, 0, 0, 32, 0, 0, 0]);
        bytes.extend("CLR".encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        assert_eq!(parse(&bytes), [("CLR".to_owned(), clr.guid)]);
        for cut in 0..bytes.len() {
            assert!(parse(&bytes[..cut]).len() <= 1);
        }
        bytes[..4].fill(0xff);
        assert_eq!(parse(&bytes).len(), 1);
    }
}
