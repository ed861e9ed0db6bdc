//! Numbers out of bytes, by kind and byte order.

use super::kind::{FieldKind, Width};
use crate::byte_order::ByteOrder;

/// An integer of either signedness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Integer {
    Unsigned(u64),
    Signed(i64),
}

impl Integer {
    pub(super) fn as_i128(self) -> i128 {
        match self {
            Self::Unsigned(value) => value.into(),
            Self::Signed(value) => value.into(),
        }
    }
}

/// The unsigned number that `bytes` start with; none if there are fewer.
pub(super) fn load(bytes: &[u8], width: Width, order: ByteOrder) -> Option<u64> {
    macro_rules! read {
        ($type:ty) => {{
            let bytes = *bytes.first_chunk()?;
            let value = match order {
                ByteOrder::Little => <$type>::from_le_bytes(bytes),
                ByteOrder::Big => <$type>::from_be_bytes(bytes),
            };
            u64::from(value)
        }};
    }
    Some(match width {
        Width::W8 => read!(u8),
        Width::W16 => read!(u16),
        Width::W32 => read!(u32),
        Width::W64 => read!(u64),
    })
}

/// One element of an integer kind; none if `bytes` are fewer or the kind is no integer. A truth value is 0 or 1.
pub(super) fn integer(kind: &FieldKind, order: ByteOrder, bytes: &[u8]) -> Option<Integer> {
    Some(match kind {
        FieldKind::Unsigned(width) => Integer::Unsigned(load(bytes, *width, order)?),
        FieldKind::Pointer(width) => Integer::Unsigned(load(bytes, width.width(), order)?),
        FieldKind::Bool(width) => Integer::Unsigned(u64::from(load(bytes, *width, order)? != 0)),
        FieldKind::Char => Integer::Unsigned(load(bytes, Width::W8, order)?),
        FieldKind::Port => Integer::Unsigned(load(bytes, Width::W16, ByteOrder::Big)?),
        FieldKind::FileTime => Integer::Unsigned(load(bytes, Width::W64, order)?),
        FieldKind::Signed(width) => Integer::Signed(sign_extended(load(bytes, *width, order)?, width.bits())),
        FieldKind::Bits { unit, first, count, signed } => {
            let (first, count) = (u32::from(*first), u32::from(*count));
            let bits = load(bytes, *unit, order)?.checked_shr(first)? & u64::MAX.checked_shr(64 - count)?;
            if *signed { Integer::Signed(sign_extended(bits, count)) } else { Integer::Unsigned(bits) }
        }
        _ => return None,
    })
}

/// A number of `bits` bits (1 to 64) in two's complement.
fn sign_extended(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits;
    (value << unused) as i64 >> unused
}

/// What values a kind of integer may have: its bits, and whether one is a sign.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) bits: u32,
    pub(super) signed: bool,
}

impl Range {
    /// That of a kind that integer getters accept.
    pub(super) fn of(kind: &FieldKind) -> Option<Self> {
        Some(match kind {
            FieldKind::Unsigned(width) => Self { bits: width.bits(), signed: false },
            FieldKind::Pointer(width) => Self { bits: width.width().bits(), signed: false },
            FieldKind::Char => Self { bits: 8, signed: false },
            FieldKind::Port => Self { bits: 16, signed: false },
            FieldKind::Signed(width) => Self { bits: width.bits(), signed: true },
            FieldKind::Bits { count, signed, .. } => Self { bits: u32::from(*count), signed: *signed },
            _ => return None,
        })
    }

    /// Whether each value of it is one of `other`.
    pub(super) fn is_within(self, other: Self) -> bool {
        match (self.signed, other.signed) {
            (false, true) => self.bits < other.bits,
            (true, false) => false,
            _ => self.bits <= other.bits,
        }
    }
}
