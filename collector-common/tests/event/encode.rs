//! A small encoder of event data, written against the formats' descriptions and not with the crate's code.

use collector_common::event::{
    ByteOrder, EventField, EventFieldRef, EventFormat, Extent, FieldKind, FloatWidth, Place, PointerWidth,
    Width,
};

pub(crate) const U8: FieldKind = FieldKind::Unsigned(Width::W8);
pub(crate) const U16: FieldKind = FieldKind::Unsigned(Width::W16);
pub(crate) const U32: FieldKind = FieldKind::Unsigned(Width::W32);
pub(crate) const U64: FieldKind = FieldKind::Unsigned(Width::W64);
pub(crate) const I8: FieldKind = FieldKind::Signed(Width::W8);
pub(crate) const I16: FieldKind = FieldKind::Signed(Width::W16);
pub(crate) const I32: FieldKind = FieldKind::Signed(Width::W32);
pub(crate) const I64: FieldKind = FieldKind::Signed(Width::W64);
pub(crate) const F32: FieldKind = FieldKind::Float(FloatWidth::W32);
pub(crate) const F64: FieldKind = FieldKind::Float(FloatWidth::W64);
pub(crate) const POINTER: FieldKind = FieldKind::Pointer(PointerWidth::W64);

/// Adds a field behind the others.
pub(crate) fn add(format: &mut EventFormat, name: &str, kind: FieldKind, extent: Extent) -> EventFieldRef {
    format.add_field(EventField::new(name, "", kind, extent, Place::AfterPrevious)).unwrap()
}

/// Adds one element at an offset.
pub(crate) fn add_at(format: &mut EventFormat, name: &str, kind: FieldKind, offset: u32) -> EventFieldRef {
    format.add_field(EventField::new(name, "", kind, Extent::One, Place::At(offset))).unwrap()
}

/// Bytes of a payload, one value behind the other.
pub(crate) struct Payload {
    pub(crate) bytes: Vec<u8>,
    big: bool,
}

impl Payload {
    pub(crate) fn new(order: ByteOrder) -> Self {
        Self { bytes: Vec::new(), big: order == ByteOrder::Big }
    }

    pub(crate) fn native() -> Self {
        Self::new(ByteOrder::NATIVE)
    }

    /// The low bytes of a number.
    pub(crate) fn number(&mut self, value: u64, bytes: usize) -> &mut Self {
        let mut low: Vec<u8> = (0..bytes).map(|index| (value >> (8 * index)) as u8).collect();
        if self.big {
            low.reverse();
        }
        self.raw(&low)
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn utf16(&mut self, text: &str) -> &mut Self {
        for unit in text.encode_utf16() {
            self.number(unit.into(), 2);
        }
        self
    }
}
