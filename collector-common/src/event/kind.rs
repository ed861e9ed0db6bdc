//! What a field of an event holds and how its bytes lie: the vocabulary of event formats.
//!
//! The kinds are those that tracefs format files, ETW manifests, `TraceLogging` and `EventPipe` declare.

use std::sync::Arc;

use super::field::EventFieldRef;
use super::format::EventFormat;

/// Bytes of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 1 byte.
    W8,
    /// 2 bytes.
    W16,
    /// 4 bytes.
    W32,
    /// 8 bytes.
    W64,
}

impl Width {
    /// 1, 2, 4 or 8.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::W8 => 1,
            Self::W16 => 2,
            Self::W32 => 4,
            Self::W64 => 8,
        }
    }

    /// 8, 16, 32 or 64.
    pub const fn bits(self) -> u32 {
        self.bytes() * 8
    }
}

/// Bytes of a floating-point number, IEEE 754.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatWidth {
    /// Binary32.
    W32,
    /// Binary64.
    W64,
}

/// Bytes of an address in the process that wrote the event, which may not be as wide as ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerWidth {
    /// 4 bytes.
    W32,
    /// 8 bytes.
    W64,
}

impl PointerWidth {
    /// The integer of that size.
    pub const fn width(self) -> Width {
        match self {
            Self::W32 => Width::W32,
            Self::W64 => Width::W64,
        }
    }
}

/// What one element of a field is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FieldKind {
    /// An unsigned integer.
    Unsigned(Width),
    /// An integer in two's complement.
    Signed(Width),
    /// A floating-point number.
    Float(FloatWidth),
    /// An address.
    Pointer(PointerWidth),
    /// False is 0, all else is true.
    Bool(Width),
    /// Text of 8-bit units, mostly UTF-8. A `char` that is a small number is `Signed(Width::W8)`.
    Char,
    /// Text of 16-bit units, UTF-16.
    Utf16,
    /// Some bits of an integer. Bit 0 is the least significant of the unit as loaded, in either byte order.
    Bits {
        /// The integer that holds them.
        unit: Width,
        /// The lowest bit.
        first: u8,
        /// How many, at least 1.
        count: u8,
        /// Whether the highest is a sign.
        signed: bool,
    },
    /// 4 bytes in network order.
    Ipv4,
    /// 16 bytes in network order.
    Ipv6,
    /// 16 bytes: a 32-bit and two 16-bit numbers in the format's order, then eight bytes.
    Guid,
    /// 64 bits: units of 100 ns since 1601-01-01 UTC.
    FileTime,
    /// 16 bits in network order, in any format: a port of TCP or UDP.
    Port,
    /// Whom Windows takes a user for: a byte 1, a byte that counts numbers, 6 bytes of an authority in network order, and
    /// so many 32-bit numbers. With the width of a pointer, two of these are before it (`TOKEN_USER`), or instead of
    /// all there are 4 bytes of 0 (`WBEM` SIDs of classic ETW events).
    Sid(Option<PointerWidth>),
    /// Fields of their own; places count from the structure's start.
    Struct(Arc<EventFormat>),
}

impl FieldKind {
    /// Bytes of one element; none for a structure, or a SID, whose size differs from event to event.
    pub fn size(&self) -> Option<u32> {
        Some(match self {
            Self::Unsigned(width) | Self::Signed(width) | Self::Bool(width) => width.bytes(),
            Self::Bits { unit, .. } => unit.bytes(),
            Self::Float(FloatWidth::W32) | Self::Ipv4 => 4,
            Self::Float(FloatWidth::W64) | Self::FileTime => 8,
            Self::Pointer(width) => width.width().bytes(),
            Self::Char => 1,
            Self::Utf16 | Self::Port => 2,
            Self::Ipv6 | Self::Guid => 16,
            Self::Sid(_) => return None,
            Self::Struct(format) => return format.size(),
        })
    }

    /// Whether elements side by side are one text.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Char | Self::Utf16)
    }

    /// What messages call it.
    pub fn name(&self) -> KindName {
        match self {
            Self::Unsigned(Width::W8) => KindName::U8,
            Self::Unsigned(Width::W16) => KindName::U16,
            Self::Unsigned(Width::W32) => KindName::U32,
            Self::Unsigned(Width::W64) => KindName::U64,
            Self::Signed(Width::W8) => KindName::I8,
            Self::Signed(Width::W16) => KindName::I16,
            Self::Signed(Width::W32) => KindName::I32,
            Self::Signed(Width::W64) => KindName::I64,
            Self::Float(FloatWidth::W32) => KindName::F32,
            Self::Float(FloatWidth::W64) => KindName::F64,
            Self::Pointer(_) => KindName::Pointer,
            Self::Bool(_) => KindName::Bool,
            Self::Char => KindName::Text,
            Self::Utf16 => KindName::Utf16,
            Self::Bits { .. } => KindName::Bits,
            Self::Ipv4 => KindName::Ipv4,
            Self::Ipv6 => KindName::Ipv6,
            Self::Guid => KindName::Guid,
            Self::FileTime => KindName::FileTime,
            Self::Port => KindName::Port,
            Self::Sid(_) => KindName::Sid,
            Self::Struct(_) => KindName::Struct,
        }
    }
}

/// A kind without its details, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is called what it is")]
#[non_exhaustive]
pub enum KindName {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    Pointer,
    Bool,
    Text,
    Utf16,
    Bits,
    Ipv4,
    Ipv6,
    Guid,
    FileTime,
    Port,
    Sid,
    Struct,
    /// Elements of 8 bits, whatever they mean.
    Bytes,
}

impl KindName {
    /// As in a message.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Pointer => "pointer",
            Self::Bool => "bool",
            Self::Text => "text",
            Self::Utf16 => "UTF-16 text",
            Self::Bits => "bits",
            Self::Ipv4 => "IPv4 address",
            Self::Ipv6 => "IPv6 address",
            Self::Guid => "GUID",
            Self::FileTime => "FILETIME",
            Self::Port => "port",
            Self::Sid => "SID",
            Self::Struct => "structure",
            Self::Bytes => "bytes",
        }
    }
}

/// How many elements a field has, and where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extent {
    /// One, in place.
    One,
    /// So many, in place. Text among them ends at its first NUL.
    Array(u32),
    /// Text in place up to a NUL, or to the event's end: ETW providers leave out the NUL of a last field.
    ZeroTerminated,
    /// An unsigned number of this width, and behind it so many bytes.
    LengthPrefixed(Width),
    /// An unsigned number of this width, and behind it so many elements.
    CountPrefixed(Width),
    /// As many elements in place as an earlier field of the same format says.
    CountOf(EventFieldRef),
    /// A word `length << 16 | offset` in place; the bytes are `offset` behind the start of the event data
    /// (`__data_loc` of the Linux kernel).
    DataLoc,
    /// The same word; the bytes are `offset` behind the word's end (`__rel_loc`).
    RelLoc,
    /// All that is left of the event data.
    Rest,
}

/// Where a field starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// So many bytes behind the start of the event data, or of the structure.
    At(u32),
    /// Where the field before it ends in place (behind the word of dynamic data, not behind the data).
    AfterPrevious,
}
