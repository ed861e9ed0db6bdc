//! Types of fields as ETW numbers them, and what they are in a format. `TraceLogging` (`TlgIn` of `TraceLoggingProvider.h`) numbers
//! types as manifests do (`TDH_IN_TYPE` of `tdh.h`), but not how they are shown.

use std::sync::{Arc, LazyLock};

use collector_common::event::{
    ByteOrder, EventField, EventFieldRef, EventFormat, Extent, FieldKind, FloatWidth, FormatError, Place,
    PointerWidth, Width,
};

/// A type of one element.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) kind: FieldKind,
    pub(super) extent: Extent,
    /// In the words of manifests.
    pub(super) name: &'static str,
}

/// How many elements a field has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Repeat {
    One,
    /// So many.
    Fixed(u16),
    /// As many as the u16 before them says.
    Prefixed,
    /// As many as another field says.
    Of(EventFieldRef),
}

/// Types of `TraceLogging` and manifests by their numbers.
pub(super) mod input {
    pub(in super::super) const UNICODE_STRING: u16 = 1;
    pub(in super::super) const ANSI_STRING: u16 = 2;
    pub(in super::super) const BINARY: u16 = 14;
    pub(in super::super) const STRUCT: u8 = 24;
}

/// How a value is shown, as far as that says what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    AsIs,
    Text,
    Truth,
    Port,
    Ipv4,
    Ipv6,
    Time,
}

impl Shown {
    /// By `TDH_OUT_TYPE`.
    pub(super) const fn by_manifest(output: u16) -> Self {
        match output {
            1 => Self::Text,
            13 => Self::Truth,
            22 => Self::Port,
            23 => Self::Ipv4,
            24 => Self::Ipv6,
            _ => Self::AsIs,
        }
    }

    /// By `TlgOut`.
    pub(super) const fn by_trace_logging(output: u8) -> Self {
        match output {
            2 => Self::Text,
            3 => Self::Truth,
            7 => Self::Port,
            8 => Self::Ipv4,
            9 => Self::Ipv6,
            16 => Self::Time,
            _ => Self::AsIs,
        }
    }
}

/// The element of a type, none if it is not known. Text of no declared length ends at a NUL; see [`sized`] for the rest.
pub(super) fn element(input: u16, shown: Shown, width: PointerWidth) -> Option<Element> {
    let one = |kind, name| Some(Element { kind, extent: Extent::One, name });
    let prefixed = |kind, name| Some(Element { kind, extent: Extent::LengthPrefixed(Width::W16), name });
    let rest = |kind, name| Some(Element { kind, extent: Extent::Rest, name });
    let ended = |kind, name| Some(Element { kind, extent: Extent::ZeroTerminated, name });
    match (input, shown) {
        (input::UNICODE_STRING, _) => ended(FieldKind::Utf16, "win:UnicodeString"),
        (input::ANSI_STRING, _) => ended(FieldKind::Char, "win:AnsiString"),
        (3 | 4, Shown::Text) | (307, _) => one(FieldKind::Char, "win:AnsiChar"),
        (3, _) => one(FieldKind::Signed(Width::W8), "win:Int8"),
        (4, Shown::Truth) => one(FieldKind::Bool(Width::W8), "win:Boolean"),
        (4, _) => one(FieldKind::Unsigned(Width::W8), "win:UInt8"),
        (5, _) => one(FieldKind::Signed(Width::W16), "win:Int16"),
        (6, Shown::Text) | (306, _) => one(FieldKind::Utf16, "win:UnicodeChar"),
        (6, Shown::Port) => one(FieldKind::Port, "win:Port"),
        (6, _) => one(FieldKind::Unsigned(Width::W16), "win:UInt16"),
        (7, _) => one(FieldKind::Signed(Width::W32), "win:Int32"),
        (8, Shown::Ipv4) => one(FieldKind::Ipv4, "win:IPv4"),
        (8, _) => one(FieldKind::Unsigned(Width::W32), "win:UInt32"),
        (9 | 10, Shown::Time) | (17, _) => one(FieldKind::FileTime, "win:FILETIME"),
        (9, _) => one(FieldKind::Signed(Width::W64), "win:Int64"),
        (10, _) => one(FieldKind::Unsigned(Width::W64), "win:UInt64"),
        (11, _) => one(FieldKind::Float(FloatWidth::W32), "win:Float"),
        (12, _) => one(FieldKind::Float(FloatWidth::W64), "win:Double"),
        (13, _) => one(FieldKind::Bool(Width::W32), "win:Boolean"),
        (input::BINARY, Shown::Ipv6) => one(FieldKind::Ipv6, "win:IPv6"),
        (15, _) => one(FieldKind::Guid, "win:GUID"),
        (16 | 308, _) => one(FieldKind::Pointer(width), "win:Pointer"),
        (18, _) => one(FieldKind::Struct(SYSTEM_TIME.clone()?), "win:SYSTEMTIME"),
        (19, _) => one(FieldKind::Sid(None), "win:SID"),
        (20, _) => one(FieldKind::Unsigned(Width::W32), "win:HexInt32"),
        (21, _) => one(FieldKind::Unsigned(Width::W64), "win:HexInt64"),
        (22 | 300, _) => prefixed(FieldKind::Utf16, "win:CountedUnicodeString"),
        (23 | 301, _) => prefixed(FieldKind::Char, "win:CountedAnsiString"),
        (25, _) => prefixed(FieldKind::Unsigned(Width::W8), "win:CountedBinary"),
        (304, _) => rest(FieldKind::Utf16, "win:NonNullTerminatedString"),
        (305, _) => rest(FieldKind::Char, "win:NonNullTerminatedAnsiString"),
        (309, _) => Some(Element {
            kind: FieldKind::Unsigned(Width::W8),
            extent: Extent::LengthPrefixed(Width::W32),
            name: "win:HexDump",
        }),
        (310, _) => one(FieldKind::Sid(Some(width)), "win:WbemSid"),
        _ => None,
    }
}

/// What a length makes of a type: text of so many units, or bytes.
pub(super) fn sized(input: u16, shown: Shown, extent: Extent) -> Option<Element> {
    Some(match (input, shown) {
        (input::UNICODE_STRING, _) => Element { kind: FieldKind::Utf16, extent, name: "win:UnicodeString" },
        (input::ANSI_STRING, _) => Element { kind: FieldKind::Char, extent, name: "win:AnsiString" },
        (input::BINARY, shown) if shown != Shown::Ipv6 => {
            Element { kind: FieldKind::Unsigned(Width::W8), extent, name: "win:Binary" }
        }
        _ => return None,
    })
}

/// `SYSTEMTIME` of `minwinbase.h`: a date and a time of day by their numbers. All fields of that type have it in common.
static SYSTEM_TIME: LazyLock<Option<Arc<EventFormat>>> = LazyLock::new(|| system_time().ok().map(Arc::new));

fn system_time() -> Result<EventFormat, FormatError> {
    let mut format = EventFormat::new(ByteOrder::Little);
    for name in ["year", "month", "day_of_week", "day", "hour", "minute", "second", "milliseconds"] {
        let kind = FieldKind::Unsigned(Width::W16);
        format.add_field(EventField::new(name, "WORD", kind, Extent::One, Place::AfterPrevious))?;
    }
    Ok(format)
}

/// Adds a field behind the others.
pub(super) fn add(
    format: &mut EventFormat,
    name: &str,
    element: Element,
    repeat: Repeat,
) -> Result<EventFieldRef, FormatError> {
    let Element { kind, extent, name: type_name } = element;
    let field =
        |name: &str, kind, extent| EventField::new(name, type_name, kind, extent, Place::AfterPrevious);
    let repeated = match repeat {
        Repeat::One => return format.add_field(field(name, kind, extent)),
        Repeat::Fixed(count) => Extent::Array(count.into()),
        Repeat::Prefixed => Extent::CountPrefixed(Width::W16),
        Repeat::Of(counter) => Extent::CountOf(counter),
    };
    // Text side by side would be one text, and what has a size of its own can't be repeated by itself.
    if extent == Extent::One && !kind.is_text() {
        return format.add_field(field(name, kind, repeated));
    }
    let mut single = EventFormat::new(ByteOrder::Little);
    single.add_field(field("value", kind, extent))?;
    format.add_field(field(name, FieldKind::Struct(Arc::new(single)), repeated))
}
