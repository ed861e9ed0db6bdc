//! Decoded values of any kind, borrowed from the event data.

use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::{FromStr, Utf8Error};

use super::data::EventData;
use super::decode::{Integer, integer, load};
use super::kind::{FieldKind, FloatWidth, Width};
use super::sid::Sid;
use crate::byte_order::ByteOrder;

/// The value of a field.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value<'a> {
    /// An unsigned integer or unsigned bits.
    Unsigned(u64),
    /// A signed integer or signed bits.
    Signed(i64),
    /// A 32-bit floating-point number.
    Float32(f32),
    /// A 64-bit floating-point number.
    Float64(f64),
    /// An address.
    Pointer(u64),
    /// A truth value.
    Bool(bool),
    /// Text of 8-bit units.
    Text(Text<'a>),
    /// UTF-16 text.
    Utf16(Utf16Text<'a>),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A GUID.
    Guid(Guid),
    /// A time.
    FileTime(FileTime),
    /// Whom Windows takes a user for.
    Sid(Sid<'a>),
    /// A structure.
    Struct(EventData<'a>),
    /// A list of any of these but text.
    Array(Elements<'a>),
}

impl<'a> Value<'a> {
    /// One element that `bytes` start with; none if they are too few.
    pub(super) fn element(
        kind: &'a FieldKind,
        order: ByteOrder,
        bytes: &'a [u8],
        full_data: &'a [u8],
    ) -> Option<Self> {
        Some(match kind {
            FieldKind::Unsigned(_) | FieldKind::Signed(_) | FieldKind::Bits { .. } | FieldKind::Port => {
                match integer(kind, order, bytes)? {
                    Integer::Unsigned(value) => Self::Unsigned(value),
                    Integer::Signed(value) => Self::Signed(value),
                }
            }
            FieldKind::Float(FloatWidth::W32) => {
                Self::Float32(f32::from_bits(load(bytes, Width::W32, order)? as u32))
            }
            FieldKind::Float(FloatWidth::W64) => {
                Self::Float64(f64::from_bits(load(bytes, Width::W64, order)?))
            }
            FieldKind::Pointer(width) => Self::Pointer(load(bytes, width.width(), order)?),
            FieldKind::Bool(width) => Self::Bool(load(bytes, *width, order)? != 0),
            FieldKind::Char => Self::Text(Text(bytes.get(..1)?)),
            FieldKind::Utf16 => Self::Utf16(Utf16Text { bytes: bytes.get(..2)?, order }),
            FieldKind::Ipv4 => Self::Ipv4(Ipv4Addr::from(*bytes.first_chunk::<4>()?)),
            FieldKind::Ipv6 => Self::Ipv6(Ipv6Addr::from(*bytes.first_chunk::<16>()?)),
            FieldKind::Guid => Self::Guid(Guid::from_bytes(*bytes.first_chunk()?, order)),
            FieldKind::FileTime => Self::FileTime(FileTime(load(bytes, Width::W64, order)?)),
            FieldKind::Sid(before) => Self::Sid(Sid::element(*before, bytes)?.0),
            FieldKind::Struct(format) => {
                let own = bytes.get(..format.size_in(bytes).ok()?)?;
                Self::Struct(EventData::new(full_data, own, format))
            }
        })
    }
}

/// Text of 8-bit units. What a program wrote, so mostly but not surely UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a>(pub(super) &'a [u8]);

impl<'a> Text<'a> {
    /// Text of these units.
    pub const fn new(units: &'a [u8]) -> Self {
        Self(units)
    }

    /// The units.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The text, if it is UTF-8.
    pub fn to_str(self) -> Result<&'a str, Utf8Error> {
        str::from_utf8(self.0)
    }

    /// The characters; what is not UTF-8 as U+FFFD.
    pub fn chars(self) -> impl Iterator<Item = char> + 'a {
        self.0.utf8_chunks().flat_map(|chunk| {
            let lost = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
            chunk.valid().chars().chain(lost)
        })
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|char| out.write_char(char))
    }
}

/// UTF-16 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utf16Text<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) order: ByteOrder,
}

impl<'a> Utf16Text<'a> {
    /// Text of these bytes, two a unit.
    pub const fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, order }
    }

    /// The units as they lie in the event, in the format's byte order.
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The units.
    pub fn units(self) -> impl Iterator<Item = u16> + Clone + 'a {
        let order = self.order;
        self.bytes.as_chunks().0.iter().map(move |unit| match order {
            ByteOrder::Little => u16::from_le_bytes(*unit),
            ByteOrder::Big => u16::from_be_bytes(*unit),
        })
    }

    /// The characters; half surrogate pairs as U+FFFD.
    pub fn chars(self) -> impl Iterator<Item = char> + 'a {
        char::decode_utf16(self.units()).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

impl fmt::Display for Utf16Text<'_> {
    /// In pieces: one character at a time takes several times as long. What begins with ASCII, as names do, has a byte for each unit.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut piece, mut len) = ([0; 128], 0);
        let mut write = |piece: &[u8]| out.write_str(str::from_utf8(piece).map_err(|_| fmt::Error)?);
        let mut rest = *self;
        while !rest.bytes.is_empty() {
            let (row, behind) = rest.bytes.split_at(rest.bytes.len().min(2 * piece.len()));
            let mut all = 0;
            for (byte, unit) in piece.iter_mut().zip(Self { bytes: row, ..rest }.units()) {
                *byte = unit as u8;
                all |= unit;
            }
            if all > 0x7f {
                break;
            }
            write(&piece[..row.len() / 2])?;
            rest.bytes = behind;
        }
        for char in rest.chars() {
            if len + char.len_utf8() > piece.len() {
                write(&piece[..len])?;
                len = 0;
            }
            len += char.encode_utf8(&mut piece[len..]).len();
        }
        write(&piece[..len])
    }
}

/// The elements of a list. It ends early where the data do.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    pub(super) kind: &'a FieldKind,
    pub(super) order: ByteOrder,
    pub(super) rest: &'a [u8],
    pub(super) full_data: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let size = match self.kind {
            FieldKind::Struct(format) => format.size_in(self.rest).ok()?,
            FieldKind::Sid(before) => Sid::element(*before, self.rest)?.1,
            kind => kind.size()? as usize,
        };
        let (own, rest) = self.rest.split_at_checked(size).filter(|_| size > 0)?;
        self.rest = rest;
        Value::element(self.kind, self.order, own, self.full_data)
    }
}

/// A GUID as its 16 bytes in the order of its printed form (RFC 9562).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// From memory, where the first three numbers have the machine's byte order.
    pub fn from_bytes(mut bytes: [u8; 16], order: ByteOrder) -> Self {
        if order == ByteOrder::Little {
            bytes[..4].reverse();
            bytes[4..6].reverse();
            bytes[6..8].reverse();
        }
        Self(bytes)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                out.write_char('-')?;
            }
            write!(out, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Text is not a GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a GUID is 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12, perhaps in braces")]
pub struct NotAGuid;

impl FromStr for Guid {
    type Err = NotAGuid;

    fn from_str(text: &str) -> Result<Self, NotAGuid> {
        let text =
            text.strip_prefix('{').map_or(Some(text), |text| text.strip_suffix('}')).ok_or(NotAGuid)?;
        let mut groups = text.split('-');
        let mut whole = 0_u128;
        for length in [8, 4, 4, 4, 12] {
            let group = groups.next().filter(|group| group.len() == length).ok_or(NotAGuid)?;
            for digit in group.chars() {
                whole = whole << 4 | u128::from(digit.to_digit(16).ok_or(NotAGuid)?);
            }
        }
        if groups.next().is_some() { Err(NotAGuid) } else { Ok(Self(whole.to_be_bytes())) }
    }
}

/// A Windows time: units of 100 ns since 1601-01-01 UTC. Printed as in ISO 8601.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileTime(pub u64);

impl FileTime {
    const PER_SECOND: u64 = 10_000_000;
    const PER_DAY: u64 = 86_400 * Self::PER_SECOND;

    /// Nanoseconds since 1970-01-01 UTC.
    pub fn unix_nanos(self) -> i128 {
        const BEFORE_UNIX: i128 = 11_644_473_600 * 1_000_000_000;
        i128::from(self.0) * 100 - BEFORE_UNIX
    }
}

impl fmt::Display for FileTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Days of the Gregorian calendar, whose 400 years of 146,097 days begin with 1601.
        let mut days = self.0 / Self::PER_DAY;
        let mut year = 1601 + days / 146_097 * 400;
        days %= 146_097;
        let is_leap =
            |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let centuries = (days / 36_524).min(3);
        days -= centuries * 36_524;
        let fours = days / 1461;
        days -= fours * 1461;
        let years = (days / 365).min(3);
        days -= years * 365;
        year += centuries * 100 + fours * 4 + years;
        let mut month = 1;
        for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
            if days < length {
                break;
            }
            days -= length;
            month += 1;
        }
        let units = self.0 % Self::PER_DAY;
        let (seconds, fraction) = (units / Self::PER_SECOND, units % Self::PER_SECOND);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let day = days + 1;
        write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_whole_wherever_its_characters_lie() {
        for before in (0..8).chain(120..136) {
            let text = "x".repeat(before) + &"aü€😀".repeat(50);
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            let shown = Utf16Text::new(&bytes, ByteOrder::Big).to_string();
            assert!(shown == text, "{before}");
        }
    }
}
