//! Types of fields: how each is read, and what the same bytes are in an event's format. A field has one type, so that
//! what is decoded and what the format says can't differ.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::event::{
    ByteOrder, Extent, FieldKind, FileTime, FloatWidth, Guid, PointerWidth, Sid, Text, Utf16Text, Width,
};
use crate::ids::{Avma, Pid, Tid};

use super::cursor::{Cursor, Layout};
use super::encoded::PointerSize;
use super::error::Problem;

/// A number as wide as a pointer: an address of data, a handle, a key or a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(pub u64);

/// Whether something is so, in 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bool32(pub bool);

/// A port of TCP or UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// A process by its number, which is as wide as a pointer in version 0, and has 32 bits since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessNumber(pub Pid);

/// Text that fills `N` units, or ends at a NUL among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed<'a, const N: usize>(pub Utf16Text<'a>);

/// Text at the end of a payload, which may be left out, and so may its NUL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last<'a>(pub Utf16Text<'a>);

/// Addresses that fill the rest of a payload. Bytes that are no whole address are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses<'a> {
    /// As they lie there, little-endian.
    pub bytes: &'a [u8],
    /// Width of each.
    pub width: PointerSize,
}

impl<'a> Addresses<'a> {
    /// The addresses in their order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.bytes.chunks_exact(self.width.bytes()).map(|bytes| {
            let mut wide = [0; 8];
            for (to, from) in wide.iter_mut().zip(bytes) {
                *to = *from;
            }
            u64::from_le_bytes(wide)
        })
    }
}

/// A type of field.
pub trait Wire<'a>: Sized {
    /// What it is in a format.
    fn kind(layout: Layout) -> (FieldKind, Extent);

    /// Reads one.
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Problem>;

    /// As text, as a getter of a format would give it.
    fn shown(&self) -> String;
}

/// A type that is one kind in place.
macro_rules! wire {
    ($($(<$lifetime:lifetime>)? $type:ty, $kind:expr, $extent:expr, $cursor:ident => $read:expr, $value:ident => $shown:expr;)+) => {
        $(impl<'a> Wire<'a> for $type {
            fn kind(layout: Layout) -> (FieldKind, Extent) {
                let kind: fn(PointerWidth) -> FieldKind = $kind;
                (kind(width_of(layout)), $extent)
            }

            #[inline]
            fn read($cursor: &mut Cursor<'a>) -> Result<Self, Problem> {
                $read
            }

            fn shown(&self) -> String {
                let $value = self;
                $shown
            }
        })+
    };
}

/// Width of pointers, as formats know it.
pub const fn width_of(layout: Layout) -> PointerWidth {
    match layout.pointer {
        PointerSize::Bits32 => PointerWidth::W32,
        PointerSize::Bits64 => PointerWidth::W64,
    }
}

wire! {
    u8, |_| FieldKind::Unsigned(Width::W8), Extent::One, c => Ok(u8::from_le_bytes(c.array()?)), v => v.to_string();
    u16, |_| FieldKind::Unsigned(Width::W16), Extent::One, c => Ok(u16::from_le_bytes(c.array()?)), v => v.to_string();
    u32, |_| FieldKind::Unsigned(Width::W32), Extent::One, c => Ok(u32::from_le_bytes(c.array()?)), v => v.to_string();
    u64, |_| FieldKind::Unsigned(Width::W64), Extent::One, c => Ok(u64::from_le_bytes(c.array()?)), v => v.to_string();
    i8, |_| FieldKind::Signed(Width::W8), Extent::One, c => Ok(i8::from_le_bytes(c.array()?)), v => v.to_string();
    i16, |_| FieldKind::Signed(Width::W16), Extent::One, c => Ok(i16::from_le_bytes(c.array()?)), v => v.to_string();
    i32, |_| FieldKind::Signed(Width::W32), Extent::One, c => Ok(i32::from_le_bytes(c.array()?)), v => v.to_string();
    i64, |_| FieldKind::Signed(Width::W64), Extent::One, c => Ok(i64::from_le_bytes(c.array()?)), v => v.to_string();
    f64, |_| FieldKind::Float(FloatWidth::W64), Extent::One, c => Ok(f64::from_le_bytes(c.array()?)), v => v.to_string();
    Bool32, |_| FieldKind::Bool(Width::W32), Extent::One,
        c => Ok(Self(u32::from_le_bytes(c.array()?) != 0)), v => v.0.to_string();
    Pid, |_| FieldKind::Unsigned(Width::W32), Extent::One, c => Ok(Self(u32::from_le_bytes(c.array()?))), v => v.0.to_string();
    Tid, |_| FieldKind::Unsigned(Width::W32), Extent::One, c => Ok(Self(u32::from_le_bytes(c.array()?))), v => v.0.to_string();
    Pointer, FieldKind::Pointer, Extent::One, c => c.pointer().map(Self), v => format!("{:#x}", v.0);
    Avma, FieldKind::Pointer, Extent::One, c => c.pointer().map(Self), v => format!("{:#x}", v.0);
    Port, |_| FieldKind::Port, Extent::One, c => Ok(Self(u16::from_be_bytes(c.array()?))), v => v.0.to_string();
    Ipv4Addr, |_| FieldKind::Ipv4, Extent::One, c => Ok(Self::from(c.array::<4>()?)), v => v.to_string();
    Ipv6Addr, |_| FieldKind::Ipv6, Extent::One, c => Ok(Self::from(c.array::<16>()?)), v => v.to_string();
    Guid, |_| FieldKind::Guid, Extent::One, c => Ok(Self::from_bytes(c.array()?, ByteOrder::Little)), v => v.to_string();
    FileTime, |_| FieldKind::FileTime, Extent::One, c => Ok(Self(u64::from_le_bytes(c.array()?))), v => v.to_string();
    Text<'a>, |_| FieldKind::Char, Extent::ZeroTerminated, c => c.text(), v => quoted(&v.to_string());
    Utf16Text<'a>, |_| FieldKind::Utf16, Extent::ZeroTerminated, c => c.utf16(), v => quoted(&v.to_string());
    Last<'a>, |_| FieldKind::Utf16, Extent::ZeroTerminated, c => Ok(Self(c.last_utf16())), v => quoted(&v.0.to_string());
    Sid<'a>, |_| FieldKind::Sid(None), Extent::One, c => c.sid(), v => v.to_string();
    Option<Sid<'a>>, |width| FieldKind::Sid(Some(width)), Extent::One,
        c => c.user(), v => v.map_or_else(String::new, |sid| sid.to_string());
    &'a [u8], |_| FieldKind::Unsigned(Width::W8), Extent::Rest, c => Ok(c.rest()), v => format!("{v:?}");
    Addresses<'a>, FieldKind::Pointer, Extent::Rest, c => {
        let width = c.layout().pointer;
        let bytes = c.rest();
        let whole = bytes.len() - bytes.len() % width.bytes();
        Ok(Self { bytes: bytes.get(..whole).unwrap_or(bytes), width })
    }, v => {
        let shown: Vec<String> = v.iter().map(|address| format!("{address:#x}")).collect();
        format!("[{}]", shown.join(", "))
    };
}

impl<'a> Wire<'a> for ProcessNumber {
    fn kind(layout: Layout) -> (FieldKind, Extent) {
        let width = if layout.version == 0 { width_of(layout).width() } else { Width::W32 };
        (FieldKind::Unsigned(width), Extent::One)
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Problem> {
        if cursor.layout().version > 0 {
            return Pid::read(cursor).map(Self);
        }
        u32::try_from(cursor.pointer()?).map(|pid| Self(Pid(pid))).map_err(|_| Problem::TooLarge)
    }

    fn shown(&self) -> String {
        self.0.0.to_string()
    }
}

impl<'a, const N: usize> Wire<'a> for Fixed<'a, N> {
    fn kind(_: Layout) -> (FieldKind, Extent) {
        // Lists have at most some hundred units.
        (FieldKind::Utf16, Extent::Array(N as u32))
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Problem> {
        cursor.fixed_utf16(N).map(Self)
    }

    fn shown(&self) -> String {
        quoted(&self.0.to_string())
    }
}

impl<'a, const N: usize> Wire<'a> for [u8; N] {
    fn kind(_: Layout) -> (FieldKind, Extent) {
        (FieldKind::Unsigned(Width::W8), Extent::Array(N as u32))
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Problem> {
        cursor.array()
    }

    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

impl<'a, const N: usize> Wire<'a> for &'a [u8; N] {
    fn kind(layout: Layout) -> (FieldKind, Extent) {
        <[u8; N]>::kind(layout)
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Problem> {
        cursor.bytes(N)?.first_chunk().ok_or(Problem::TooShort)
    }

    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|char| if char == '\'' { "'".into() } else { char.escape_debug().to_string() })
        .collect();
    format!("\"{escaped}\"")
}
