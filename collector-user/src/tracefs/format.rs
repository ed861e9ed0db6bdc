//! Format files: `events/CATEGORY/NAME/format`.
//!
//! ```text
//! name: sched_wakeup
//! ID: 316
//! format:
//!     field:unsigned short common_type;   offset:0;   size:2; signed:0;
//!     ...
//!     field:char comm[16];    offset:8;   size:16;    signed:0;
//!     field:__data_loc char[] path;   offset:24;  size:4; signed:0;
//!
//! print fmt: "comm=%s pid=%d", REC->comm, REC->pid
//! ```
//!
//! A field's size decides, and its type says what the bytes mean. The two may differ: an argument of a system call takes a
//! whole register, of which an `int` is the lower half.

use collector_common::event::{
    ByteOrder, EventField, EventFormat, EventId, Extent, FieldKind, FormatError, KernelStorage, Place, Width,
};
use thiserror::Error;

use super::types::{by_size, known, pointer};

/// What is wrong with a format file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatProblem {
    /// There is no line `ID:` with a number.
    #[error("it has no ID")]
    NoId,
    /// A field's line is not of the form above.
    #[error("line {line} is no field: {text}")]
    Field {
        /// The line, from 1 on.
        line: usize,
        /// What is written there.
        text: String,
    },
    /// The line behind the fields is not there.
    #[error("it ends before its line `print fmt:`, cut short")]
    Cut,
    /// The fields don't fit together.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Reads a format file: the event's number and its fields.
///
/// # Errors
/// When it is not of the form above, or cut short before its last line.
pub fn parse_format(text: &str) -> Result<(EventId, EventFormat), FormatProblem> {
    parse_format_of(text, ByteOrder::NATIVE)
}

/// As [`parse_format`], of a machine whose numbers have this order of bytes.
pub(crate) fn parse_format_of(text: &str, order: ByteOrder) -> Result<(EventId, EventFormat), FormatProblem> {
    let mut id = None;
    let mut format = EventFormat::new(order);
    let mut is_whole = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(number) = line.strip_prefix("ID:") {
            id = number.trim().parse().ok().map(EventId);
        } else if let Some(field) = line.strip_prefix("field:") {
            let field = parse_field(field, order)
                .ok_or_else(|| FormatProblem::Field { line: index + 1, text: line.to_owned() })?;
            format.add_field(field)?;
        } else if line.starts_with("print fmt:") {
            is_whole = true;
        }
    }
    let id = id.ok_or(FormatProblem::NoId)?;
    if is_whole { Ok((id, format)) } else { Err(FormatProblem::Cut) }
}

/// `TYPE NAME; offset:N; size:N; signed:N;`, with `[N]` behind the name of an array.
fn parse_field(text: &str, order: ByteOrder) -> Option<EventField> {
    let mut parts = text.strip_suffix(';')?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut signed) = (None, None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = Some(number.parse().ok()?),
            Some(("size", number)) => size = Some(number.parse().ok()?),
            Some(("signed", "0")) => signed = Some(false),
            Some(("signed", "1")) => signed = Some(true),
            _ => {}
        }
    }
    let (offset, size, signed): (u32, u32, bool) = (offset?, size?, signed?);
    let (type_name, name) = declaration.rsplit_once(char::is_whitespace)?;
    let type_name = type_name.trim();
    let (name, count) = match name.split_once('[') {
        Some((name, count)) => (name, Some(count.strip_suffix(']')?)),
        None => (name, None),
    };
    let storage = KernelStorage { size, signed };
    let field = |kind, extent| {
        Some(EventField::new(name, type_name, kind, extent, Place::At(offset)).in_kernel(storage))
    };
    let dynamic = [("__data_loc ", Extent::DataLoc), ("__rel_loc ", Extent::RelLoc)];
    if let Some((element, extent)) =
        dynamic.into_iter().find_map(|(word, extent)| Some((type_name.strip_prefix(word)?, extent)))
    {
        let element = element.strip_suffix("[]").unwrap_or(element).trim();
        return if size == 4 { field(element_kind(element), extent) } else { None };
    }
    match count {
        Some("") if size == 0 => field(element_kind(type_name), Extent::Rest),
        Some(_) => {
            let kind = address(type_name, name, size).unwrap_or_else(|| element_kind(type_name));
            match kind.size() {
                Some(element) if element == size && !kind.is_text() => field(kind, Extent::One),
                Some(element) if element > 0 && size.is_multiple_of(element) => {
                    field(kind, Extent::Array(size / element))
                }
                _ => field(FieldKind::Unsigned(Width::W8), Extent::Array(size)),
            }
        }
        None => match one_kind(type_name, size, signed, order) {
            Some(kind) => field(kind, Extent::One),
            None => field(FieldKind::Unsigned(Width::W8), Extent::Array(size)),
        },
    }
}

/// What one value is that takes `size` bytes.
fn one_kind(type_name: &str, size: u32, signed: bool, order: ByteOrder) -> Option<FieldKind> {
    if type_name.ends_with('*') || type_name.contains("*const") {
        return pointer(size);
    }
    // Its members are not told, whatever it takes.
    if type_name.starts_with("struct ") {
        return None;
    }
    // The lower half of a register comes first on little-endian machines alone.
    let fits = |kind: &FieldKind| match kind.size() {
        Some(own) => own == size || (own < size && size == 8 && order == ByteOrder::Little),
        None => false,
    };
    known(type_name).filter(fits).or_else(|| by_size(size, signed || type_name == "char"))
}

/// What an element of a list is; bytes of a type that says nothing.
fn element_kind(type_name: &str) -> FieldKind {
    match type_name.strip_prefix("const ").unwrap_or(type_name) {
        "char" => FieldKind::Char,
        name => known(name).unwrap_or(FieldKind::Unsigned(Width::W8)),
    }
}

/// Internet addresses: bytes that are called so in the kernel's network events (`include/trace/events/tcp.h` and others).
fn address(type_name: &str, name: &str, size: u32) -> Option<FieldKind> {
    let is_bytes = ["__u8", "u8"].contains(&type_name);
    let is_called = |names: &[&str]| names.contains(&name);
    match size {
        4 if is_bytes && is_called(&["saddr", "daddr", "src", "dst", "gw4"]) => Some(FieldKind::Ipv4),
        16 if is_bytes && is_called(&["saddr_v6", "daddr_v6", "gw6"]) => Some(FieldKind::Ipv6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::*;

    const SWITCH: &str = "name: made_up\nID: 316\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:const char * op;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:int fd;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long args[2];\toffset:40;\tsize:16;\tsigned:0;\n\
        \tfield:__data_loc char[] path;\toffset:56;\tsize:4;\tsigned:0;\n\
        \tfield:__u8 saddr[4];\toffset:60;\tsize:4;\tsigned:0;\n\
        \tfield:__rel_loc u64[] sizes;\toffset:64;\tsize:4;\tsigned:0;\n\
        \tfield:char flag;\toffset:68;\tsize:1;\tsigned:0;\n\
        \tfield:struct odd thing;\toffset:72;\tsize:12;\tsigned:0;\n\
        \tfield:char buf[];\toffset:84;\tsize:0;\tsigned:0;\n\n\
        print fmt: \"field:%s\", REC->comm\n";

    /// A record as the kernel would write it, by the offsets above.
    fn record() -> Vec<u8> {
        let mut record = vec![0; 84];
        let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &316_u16.to_ne_bytes());
        put(4, &(-7_i32).to_ne_bytes());
        put(8, b"kworker/0:1\0rest");
        put(24, &0xffff_8880_0000_1000_u64.to_ne_bytes());
        // A register of which the upper half is not cleared.
        put(32, &0xdead_beef_ffff_ff9c_u64.to_ne_bytes());
        put(40, &[1_u64, u64::MAX].map(u64::to_ne_bytes).concat());
        put(56, &(0x5_0060_u32).to_ne_bytes());
        put(60, &[127, 0, 0, 1]);
        // From the end of the word, 68, to 104.
        put(64, &(0x10_0024_u32).to_ne_bytes());
        put(68, &[0xff]);
        record.extend(*b"left and all");
        record.extend(*b"/tmp\0\0\0\0");
        record.extend([3_u64, 4].map(u64::to_ne_bytes).concat());
        record
    }

    #[test]
    fn enums_are_as_wide_and_signed_as_the_kernel_says() {
        let text = "name: x\nID: 1\nformat:\n\
            \tfield:enum left a;\toffset:0;\tsize:4;\tsigned:1;\n\
            \tfield:enum right b;\toffset:4;\tsize:1;\tsigned:0;\n\
            print fmt: \"\"\n";
        let (_, format) = parse_format(text).unwrap();
        let record = [0xff; 5];
        let data = collector_common::event::EventData::new(&record, &record, &format);
        let field = |name| format.field_ref(name).unwrap();
        assert_eq!(data.try_get_i64(field("a")), Ok(-1));
        assert_eq!(data.try_get_u64(field("b")), Ok(255));
    }

    #[test]
    fn fields_are_what_their_types_say() {
        let (id, format) = parse_format(SWITCH).unwrap();
        assert_eq!(id, EventId(316));
        let record = record();
        let data = collector_common::event::EventData::new(&record, &record, &format);
        let field = |name| format.field_ref(name).unwrap();
        assert_eq!(data.try_get_u16(field("common_type")), Ok(316));
        assert_eq!(data.try_get_i32(field("common_pid")), Ok(-7));
        assert_eq!(data.try_get_str(field("comm")), Ok("kworker/0:1"));
        assert_eq!(data.try_get_u64(field("op")), Ok(0xffff_8880_0000_1000));
        assert_eq!(data.try_get_i32(field("fd")), Ok(-100), "AT_FDCWD");
        assert_eq!(data.try_get_str(field("path")), Ok("/tmp"));
        assert_eq!(data.try_get_ipv4(field("saddr")).unwrap().to_string(), "127.0.0.1");
        assert_eq!(data.try_get_i8(field("flag")), Ok(-1));
        assert_eq!(data.try_get_slice(field("thing")).map(<[u8]>::len), Ok(12));
        let text = data.as_text().to_string();
        assert!(text.contains(" args=[1, 18446744073709551615] "), "{text}");
        assert!(text.contains(" sizes=[3, 4] "), "{text}");
    }

    /// As `user_events` of Linux 6.12 writes them: lengths of arrays are left out, and fields lie without gaps.
    #[test]
    fn events_of_programs_are_read() {
        let text = "name: mine\nID: 1140\nformat:\n\
            \tfield:u8 odd;\toffset:8;\tsize:1;\tsigned:0;\n\
            \tfield:__rel_loc char rel[];\toffset:9;\tsize:4;\tsigned:1;\n\
            \tfield:__data_loc char[] data;\toffset:13;\tsize:4;\tsigned:1;\n\
            \tfield:char name[];\toffset:17;\tsize:4;\tsigned:1;\n\
            \tfield:struct pair both;\toffset:21;\tsize:8;\tsigned:1;\n\
            \tfield:__rel_loc u8 raw[];\toffset:29;\tsize:4;\tsigned:1;\n\
            print fmt: \"\"\n";
        let (_, format) = parse_format(text).unwrap();
        let mut record = [0; 8].to_vec();
        record.push(7);
        record.extend(0x4_0014_u32.to_ne_bytes());
        record.extend(0x5_0025_u32.to_ne_bytes());
        record.extend(*b"abc\0");
        record.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        record.extend(0x2_0009_u32.to_ne_bytes());
        record.extend(*b"rel\0data\0\x01\x02");
        let data = collector_common::event::EventData::new(&record, &record, &format);
        let field = |name| format.field_ref(name).unwrap();
        assert_eq!(data.try_get_u8(field("odd")), Ok(7));
        let texts = ["rel", "data", "name"].map(|name| data.try_get_str(field(name)));
        assert_eq!(texts, [Ok("rel"), Ok("data"), Ok("abc")]);
        assert_eq!(data.try_get_bytes(field("both")), Ok(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
        assert_eq!(data.try_get_bytes(field("raw")), Ok(&[1, 2][..]));
    }

    #[test]
    fn what_is_cut_short_names_its_line() {
        assert_eq!(parse_format("name: x\n").err(), Some(FormatProblem::NoId));
        for cut in ["field:int", "field:int x; offset:0;", "field:int x; offset:-1; size:4; signed:1;"] {
            let text = format!("ID: 1\n\t{cut}\n");
            let problem = FormatProblem::Field { line: 2, text: cut.to_owned() };
            assert_eq!(parse_format(&text).err(), Some(problem));
        }
    }

    #[test]
    fn what_is_cut_short_anywhere_is_refused_or_the_same() {
        let told = |read: &(EventId, EventFormat)| format!("{:?} {:?}", read.0, read.1.fields());
        let whole = parse_format(SWITCH).unwrap();
        let last = SWITCH.find("print fmt:").unwrap() + "print fmt:".len();
        for cut in 0..SWITCH.len() {
            match parse_format(&SWITCH[..cut]) {
                Ok(read) => assert!(cut >= last && told(&read) == told(&whole), "{}", &SWITCH[..cut]),
                Err(error) => assert!(cut < last, "{cut}: {error}"),
            }
        }
    }

    proptest! {
        /// A format file with some bytes changed, and any record over it.
        #[test]
        fn what_is_spoilt_is_refused_or_read(
            places in vec((any::<Index>(), prop_oneof![any::<u8>(), select(&b"0123456789[]:; \t\n*"[..])]), 0..6),
            record in vec(any::<u8>(), 0..120),
        ) {
            let mut text = SWITCH.as_bytes().to_vec();
            for (at, byte) in places {
                let at = at.index(text.len());
                text[at] = byte;
            }
            let text = String::from_utf8_lossy(&text);
            match parse_format(&text) {
                Ok((_, format)) => {
                    let data = collector_common::event::EventData::new(&record, &record, &format);
                    prop_assert_eq!(data.values().count(), format.fields().len());
                    prop_assert!(data.as_text().to_string().len() >= format.fields().len());
                }
                Err(FormatProblem::Field { line, text: quoted }) => {
                    prop_assert_eq!(text.lines().nth(line - 1).map(str::trim), Some(&*quoted));
                }
                Err(_) => {}
            }
        }
    }
}
