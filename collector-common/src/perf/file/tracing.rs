//! The formats of tracepoints that a recording carries, so that its raw data can be read on a machine that has others.
//!
//! Source: `tools/perf/util/trace-event-read.c` of Linux, which reads
//!
//! ```text
//! 17 08 44 "tracing"  version NUL  big-endian:u8  long size:u8  page size:u32
//! "header_page" NUL   size:u64 text      "header_event" NUL  size:u64 text
//! count:u32  of ftrace's own: (size:u64 text)*
//! count:u32  of systems:      (name NUL  count:u32 (size:u64 text)*)*
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use super::section::write_count;
use crate::perf::fields::Fields;
use crate::perf::write::Writer;
use crate::perf::{ByteOrder, Bytes, WriteError};

const MAGIC: [u8; 10] = *b"\x17\x08\x44tracing";

/// A tracepoint's format as the recording carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracepointFormat {
    /// The system or category, as `sched`; one for all of its tracepoints.
    pub system: Arc<str>,
    /// What tracefs had in its file `format`.
    pub text: String,
}

/// The formats in [`super::Feature::TRACING_DATA`], or in what follows a
/// [`crate::perf::RecordKind::HEADER_TRACING_DATA`]. `None` where the bytes are cut off or something else.
pub fn tracepoint_formats(bytes: &[u8]) -> Option<Vec<TracepointFormat>> {
    // The order comes before the first number.
    let mut fields = Fields::new(Bytes::from(bytes), ByteOrder::Little);
    if fields.array()? != MAGIC {
        return None;
    }
    text(&mut fields)?;
    fields.order = if fields.u8()? == 0 { ByteOrder::Little } else { ByteOrder::Big };
    let (_long_size, _page_size) = (fields.u8()?, fields.u32()?);
    for _ in ["header_page", "header_event"] {
        text(&mut fields)?;
        file(&mut fields)?;
    }
    for _ in 0..fields.u32()? {
        file(&mut fields)?;
    }
    let mut formats = Vec::new();
    for _ in 0..fields.u32()? {
        let system = Arc::<str>::from(text(&mut fields)?);
        for _ in 0..fields.u32()? {
            formats.push(TracepointFormat { system: Arc::clone(&system), text: file(&mut fields)? });
        }
    }
    Some(formats)
}

/// Up to a NUL.
fn text(fields: &mut Fields<'_>) -> Option<String> {
    let rest = fields.rest.first;
    let len = rest.iter().position(|&byte| byte == 0)?;
    let text = String::from_utf8_lossy(rest.get(..len)?).into_owned();
    fields.bytes(len + 1)?;
    Some(text)
}

/// What a file had in it, behind its size.
fn file(fields: &mut Fields<'_>) -> Option<String> {
    let size = fields.u64()?;
    let bytes = fields.bytes_of(size)?;
    Some(String::from_utf8_lossy(bytes.as_slice()?).into_owned())
}

/// What a recording carries of tracefs: the opposite of [`tracepoint_formats`]. `page` and `event` are the files
/// `events/header_page` and `events/header_event`.
///
/// # Errors
/// When there are more formats than can be counted.
pub fn write_tracepoint_formats(
    page: &str,
    event: &str,
    formats: &[TracepointFormat],
    order: ByteOrder,
) -> Result<Vec<u8>, WriteError> {
    const VERSION: &[u8] = b"0.5\0";
    const LONG: u8 = 8;
    const PAGE: u32 = 4096;
    let mut systems: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for format in formats {
        systems.entry(&format.system).or_default().push(&format.text);
    }
    let mut bytes = [&MAGIC, VERSION].concat();
    let mut writer = Writer::new(&mut bytes, order);
    writer.u8((order == ByteOrder::Big).into());
    writer.u8(LONG);
    writer.u32(PAGE);
    for (name, text) in [("header_page", page), ("header_event", event)] {
        write_text(&mut writer, name);
        write_file(&mut writer, text);
    }
    let none_of_ftrace = 0;
    writer.u32(none_of_ftrace);
    write_count(&mut writer, systems.len())?;
    for (system, texts) in systems {
        write_text(&mut writer, system);
        write_count(&mut writer, texts.len())?;
        for text in texts {
            write_file(&mut writer, text);
        }
    }
    let [no_symbols, no_formats_of_printk] = [0, 0];
    writer.u32(no_symbols);
    writer.u32(no_formats_of_printk);
    Ok(bytes)
}

fn write_text(writer: &mut Writer<'_>, text: &str) {
    writer.bytes(Bytes::from(text.as_bytes()));
    writer.u8(0);
}

fn write_file(writer: &mut Writer<'_>, text: &str) {
    writer.u64(text.len() as u64);
    writer.bytes(Bytes::from(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_off_is_not() {
        let format = |system: &str, text: &str| TracepointFormat { system: system.into(), text: text.into() };
        let formats = [format("a", "name: x\nID: 1\n"), format("a", "name: y\n"), format("b", "")];
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let bytes = write_tracepoint_formats("page", "event", &formats, order).unwrap();
            let read = tracepoint_formats(&bytes).unwrap();
            assert_eq!(read, formats);
            // A file can name a system of megabytes, and have a million formats of eight bytes in it.
            assert!(Arc::ptr_eq(&read[0].system, &read[1].system));
            let last_format = bytes.len() - 8;
            for len in 0..last_format {
                assert_eq!(tracepoint_formats(&bytes[..len]), None, "{len}");
            }
        }
        assert_eq!(tracepoint_formats(b"something else"), None);
    }
}
