//! The data of one event, read through its format.
//!
//! Any bytes may come in: a getter answers with the value or with a [`FieldError`], and never panics.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::context::Context;
use super::decode::{Integer, Range, integer, load};
use super::error::{FieldError, FieldProblem};
use super::field::{Access, EventField, EventFieldRef};
use super::format::EventFormat;
use super::kind::{Extent, FieldKind, FloatWidth, KindName, Place, Width};
use super::locate::{Located, before_nul};
use super::sid::Sid;
use super::value::{Elements, FileTime, Guid, Text, Utf16Text, Value};
use crate::byte_order::ByteOrder;

/// One event: its bytes and what they mean.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_field_names, reason = "the bytes of the event, as opposed to all of the record")]
pub struct EventData<'a> {
    full_data: &'a [u8],
    event_data: &'a [u8],
    format: &'a EventFormat,
    context: Option<&'a Context>,
}

/// Integers: the load where the place is known, otherwise by way of the format.
macro_rules! integer_getters {
    ($find:ident: $($(#[$docs:meta])* $name:ident $type:ident $kind:ident [$($access:ident $narrow:ident),+];)+) => {
        $($(#[$docs])*
        #[inline]
        pub fn $name(&self, field: EventFieldRef) -> Result<$type, FieldError> {
            $(if field.is(self.format.id(), Access::$access)
                && let Some(bytes) = self.fixed(field.offset())
            {
                return Ok($narrow::from_ne_bytes(bytes).into());
            })+
            // The value is of a kind that is within the type.
            self.$find(field, KindName::$kind, $type::BITS).map(|value| value as $type)
        })+
    };
}

impl<'a> EventData<'a> {
    /// Data of an event. Places, and offsets of `__data_loc`, count from the start of `event_data`: those of a
    /// tracepoint begin with its `common_*` fields. `full_data` is the whole record that they are part of.
    #[inline]
    pub fn new(full_data: &'a [u8], event_data: &'a [u8], format: &'a EventFormat) -> Self {
        Self { full_data, event_data, format, context: None }
    }

    /// The same data, with to whom, when and where it happened.
    #[inline]
    #[must_use]
    pub fn at(self, context: &'a Context) -> Self {
        Self { context: Some(context), ..self }
    }

    /// To whom, when and where it happened; `None` where the source does not tell.
    #[inline]
    pub fn context(&self) -> Option<&'a Context> {
        self.context
    }

    /// The whole record, with what the source wrote around the event.
    #[inline]
    pub fn full_data(&self) -> &'a [u8] {
        self.full_data
    }

    /// The bytes that the format describes.
    #[inline]
    pub fn event_data(&self) -> &'a [u8] {
        self.event_data
    }

    /// What they mean.
    #[inline]
    pub fn format(&self) -> &'a EventFormat {
        self.format
    }

    integer_getters! { unsigned:
        /// An unsigned integer of 8 bits, or a `char`.
        try_get_u8 u8 U8 [U8 u8];
        /// An unsigned integer of at most 16 bits.
        try_get_u16 u16 U16 [U16 u16, U8 u8];
        /// An unsigned integer, or an address, of at most 32 bits.
        try_get_u32 u32 U32 [U32 u32, U16 u16, U8 u8];
        /// An unsigned integer or an address.
        try_get_u64 u64 U64 [U64 u64, U32 u32, U16 u16, U8 u8];
    }

    integer_getters! { signed:
        /// A signed integer of 8 bits.
        try_get_i8 i8 I8 [I8 i8];
        /// A signed integer of at most 16 bits, or an unsigned one of fewer.
        try_get_i16 i16 I16 [I16 i16, I8 i8, U8 u8];
        /// A signed integer of at most 32 bits, or an unsigned one of fewer.
        try_get_i32 i32 I32 [I32 i32, I16 i16, I8 i8, U16 u16, U8 u8];
        /// A signed integer, or an unsigned one of fewer than 64 bits.
        try_get_i64 i64 I64 [I64 i64, I32 i32, I16 i16, I8 i8, U32 u32, U16 u16, U8 u8];
    }

    /// A 32-bit floating-point number.
    #[inline]
    pub fn try_get_f32(&self, field: EventFieldRef) -> Result<f32, FieldError> {
        if field.is(self.format.id(), Access::F32)
            && let Some(bytes) = self.fixed(field.offset())
        {
            return Ok(f32::from_ne_bytes(bytes));
        }
        let is_asked = |kind: &FieldKind| matches!(kind, FieldKind::Float(FloatWidth::W32));
        self.float(field, KindName::F32, is_asked).map(|value| value as f32)
    }

    /// A floating-point number.
    #[inline]
    pub fn try_get_f64(&self, field: EventFieldRef) -> Result<f64, FieldError> {
        if field.is(self.format.id(), Access::F64)
            && let Some(bytes) = self.fixed(field.offset())
        {
            return Ok(f64::from_ne_bytes(bytes));
        }
        self.float(field, KindName::F64, |kind| matches!(kind, FieldKind::Float(_)))
    }

    /// A truth value, or a single unsigned bit.
    pub fn try_get_bool(&self, field: EventFieldRef) -> Result<bool, FieldError> {
        let is_asked = |kind: &FieldKind| {
            matches!(kind, FieldKind::Bool(_) | FieldKind::Bits { count: 1, signed: false, .. })
        };
        let value = self.one(field, KindName::Bool, is_asked, integer)?;
        Ok(value != Integer::Unsigned(0))
    }

    /// Text of 8-bit units that is UTF-8. See [`EventData::try_get_text`] for its end.
    pub fn try_get_str(&self, field: EventFieldRef) -> Result<&'a str, FieldError> {
        self.try_get_text(field)?.to_str().map_err(|_| self.error(field, FieldProblem::NotUtf8))
    }

    /// Text of 8-bit units. It ends at the first NUL, unless its length is written before it: then it is all of that.
    pub fn try_get_text(&self, field: EventFieldRef) -> Result<Text<'a>, FieldError> {
        let (declared, payload) =
            self.of_kind(field, KindName::Text, |field| matches!(field.kind(), FieldKind::Char))?;
        Ok(Text(text_of(declared, payload, 1)))
    }

    /// UTF-16 text, with the same end.
    pub fn try_get_utf16(&self, field: EventFieldRef) -> Result<Utf16Text<'a>, FieldError> {
        let is_asked = |field: &EventField| matches!(field.kind(), FieldKind::Utf16);
        let (declared, payload) = self.of_kind(field, KindName::Utf16, is_asked)?;
        Ok(Utf16Text { bytes: text_of(declared, payload, 2), order: self.format.order() })
    }

    /// Elements of 8 bits, any number of them.
    pub fn try_get_bytes(&self, field: EventFieldRef) -> Result<&'a [u8], FieldError> {
        let is_asked = |field: &EventField| {
            matches!(
                field.kind(),
                FieldKind::Char | FieldKind::Unsigned(Width::W8) | FieldKind::Signed(Width::W8)
            )
        };
        Ok(self.of_kind(field, KindName::Bytes, is_asked)?.1)
    }

    /// The bytes of a field of any kind, as they lie in the event.
    pub fn try_get_slice(&self, field: EventFieldRef) -> Result<&'a [u8], FieldError> {
        Ok(self.of_kind(field, KindName::Bytes, |_| true)?.1)
    }

    /// A GUID.
    pub fn try_get_guid(&self, field: EventFieldRef) -> Result<Guid, FieldError> {
        let is_asked = |kind: &FieldKind| matches!(kind, FieldKind::Guid);
        self.one(field, KindName::Guid, is_asked, |_, order, bytes| {
            bytes.first_chunk().map(|bytes| Guid::from_bytes(*bytes, order))
        })
    }

    /// An IPv4 address.
    pub fn try_get_ipv4(&self, field: EventFieldRef) -> Result<Ipv4Addr, FieldError> {
        let is_asked = |kind: &FieldKind| matches!(kind, FieldKind::Ipv4);
        self.one(field, KindName::Ipv4, is_asked, |_, _, bytes| {
            bytes.first_chunk::<4>().map(|bytes| (*bytes).into())
        })
    }

    /// An IPv6 address.
    pub fn try_get_ipv6(&self, field: EventFieldRef) -> Result<Ipv6Addr, FieldError> {
        let is_asked = |kind: &FieldKind| matches!(kind, FieldKind::Ipv6);
        self.one(field, KindName::Ipv6, is_asked, |_, _, bytes| {
            bytes.first_chunk::<16>().map(|bytes| (*bytes).into())
        })
    }

    /// A Windows time.
    pub fn try_get_filetime(&self, field: EventFieldRef) -> Result<FileTime, FieldError> {
        let is_asked = |kind: &FieldKind| matches!(kind, FieldKind::FileTime);
        self.one(field, KindName::FileTime, is_asked, |_, order, bytes| {
            load(bytes, Width::W64, order).map(FileTime)
        })
    }

    /// A security identifier.
    pub fn try_get_sid(&self, field: EventFieldRef) -> Result<Sid<'a>, FieldError> {
        let is_asked =
            |field: &EventField| field.extent() == Extent::One && matches!(field.kind(), FieldKind::Sid(_));
        let (declared, payload) = self.of_kind(field, KindName::Sid, is_asked)?;
        match declared.kind() {
            FieldKind::Sid(before) => Sid::element(*before, payload).map(|(sid, _)| sid),
            _ => None,
        }
        .ok_or_else(|| self.error(field, FieldProblem::TooShort))
    }

    /// The value of a field of any kind.
    pub fn value(&self, field: EventFieldRef) -> Result<Value<'a>, FieldError> {
        let (declared, payload) = self.of_kind(field, KindName::Bytes, |_| true)?;
        self.value_in(declared, payload).ok_or_else(|| self.error(field, FieldProblem::TooShort))
    }

    /// All fields in order, each with its value.
    pub fn values(&self) -> Values<'a> {
        Values { data: *self, index: 0, previous: Ok(0) }
    }

    #[inline]
    fn fixed<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        self.event_data.get(offset as usize..)?.first_chunk().copied()
    }

    #[cold]
    #[inline(never)]
    fn unsigned(&self, field: EventFieldRef, asked: KindName, bits: u32) -> Result<u64, FieldError> {
        match self.integer(field, asked, Range { bits, signed: false })? {
            Integer::Unsigned(value) => Ok(value),
            Integer::Signed(value) => Ok(value as u64),
        }
    }

    #[cold]
    #[inline(never)]
    fn signed(&self, field: EventFieldRef, asked: KindName, bits: u32) -> Result<i64, FieldError> {
        match self.integer(field, asked, Range { bits, signed: true })? {
            Integer::Unsigned(value) => Ok(value as i64),
            Integer::Signed(value) => Ok(value),
        }
    }

    /// Each 32-bit number is one of 64 bits as well.
    #[cold]
    #[inline(never)]
    fn float(
        &self,
        field: EventFieldRef,
        asked: KindName,
        is_asked: impl FnOnce(&FieldKind) -> bool,
    ) -> Result<f64, FieldError> {
        self.one(field, asked, is_asked, |kind, order, bytes| match kind {
            FieldKind::Float(FloatWidth::W32) => {
                load(bytes, Width::W32, order).map(|bits| f32::from_bits(bits as u32).into())
            }
            _ => load(bytes, Width::W64, order).map(f64::from_bits),
        })
    }

    fn integer(&self, field: EventFieldRef, asked: KindName, range: Range) -> Result<Integer, FieldError> {
        let is_asked = |kind: &FieldKind| Range::of(kind).is_some_and(|own| own.is_within(range));
        self.one(field, asked, is_asked, integer)
    }

    /// An integer of a list, by its number from 0.
    pub(super) fn integer_at(&self, field: EventFieldRef, number: u32) -> Result<i128, FieldError> {
        let (declared, payload) = self.of_kind(field, KindName::Bytes, EventField::is_array)?;
        let kind = declared.kind();
        let at = kind.size().and_then(|size| (number as usize).checked_mul(size as usize));
        let element = at.and_then(|at| integer(kind, self.format.order(), payload.get(at..)?));
        match element {
            Some(Integer::Unsigned(value)) => Ok(value.into()),
            Some(Integer::Signed(value)) => Ok(value.into()),
            None => Err(self.error(field, FieldProblem::TooShort)),
        }
    }

    /// A field of one element that `is_asked` accepts, decoded.
    fn one<T>(
        &self,
        field: EventFieldRef,
        asked: KindName,
        is_asked: impl FnOnce(&FieldKind) -> bool,
        decode: impl FnOnce(&FieldKind, ByteOrder, &[u8]) -> Option<T>,
    ) -> Result<T, FieldError> {
        let is_asked = |field: &EventField| field.extent() == Extent::One && is_asked(field.kind());
        let (declared, payload) = self.of_kind(field, asked, is_asked)?;
        decode(declared.kind(), self.format.order(), payload)
            .ok_or_else(|| self.error(field, FieldProblem::TooShort))
    }

    /// A field that `is_asked` accepts, and its bytes.
    fn of_kind(
        &self,
        field: EventFieldRef,
        asked: KindName,
        is_asked: impl FnOnce(&EventField) -> bool,
    ) -> Result<(&'a EventField, &'a [u8]), FieldError> {
        let declared =
            self.format.field(field).ok_or_else(|| self.error(field, FieldProblem::OtherFormat))?;
        if !is_asked(declared) {
            let (is, is_array) = (declared.kind().name(), declared.is_array());
            return Err(self.error(field, FieldProblem::WrongKind { is, is_array, asked }));
        }
        let located = self.format.locate(field.index(), self.event_data);
        let payload = located
            .and_then(|Located { payload, .. }| self.event_data.get(payload).ok_or(FieldProblem::TooShort));
        Ok((declared, payload.map_err(|problem| self.error(field, problem))?))
    }

    fn value_in(&self, declared: &'a EventField, payload: &'a [u8]) -> Option<Value<'a>> {
        let order = self.format.order();
        match (declared.kind(), declared.extent()) {
            (kind, Extent::One) => Value::element(kind, order, payload, self.full_data),
            (FieldKind::Char, _) => Some(Value::Text(Text(text_of(declared, payload, 1)))),
            (FieldKind::Utf16, _) => {
                Some(Value::Utf16(Utf16Text { bytes: text_of(declared, payload, 2), order }))
            }
            (kind, _) => {
                Some(Value::Array(Elements { kind, order, rest: payload, full_data: self.full_data }))
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn error(&self, field: EventFieldRef, problem: FieldProblem) -> FieldError {
        FieldError { format: self.format.id(), index: field.index(), problem }
    }
}

/// The part of a text field's bytes, of units of `unit` bytes, that is its text.
fn text_of<'a>(declared: &EventField, payload: &'a [u8], unit: usize) -> &'a [u8] {
    let length = match declared.extent() {
        Extent::One | Extent::LengthPrefixed(_) | Extent::CountPrefixed(_) => {
            payload.len() - payload.len() % unit
        }
        _ => before_nul(payload, unit),
    };
    payload.get(..length).unwrap_or(payload)
}

/// All fields of an event in order, see [`EventData::values`].
#[derive(Clone, Debug)]
pub struct Values<'a> {
    data: EventData<'a>,
    index: u16,
    /// Where the field before this one ends, or why that is not known.
    previous: Result<usize, FieldProblem>,
}

impl<'a> Iterator for Values<'a> {
    type Item = (&'a EventField, Result<Value<'a>, FieldError>);

    fn next(&mut self) -> Option<Self::Item> {
        let EventData { event_data, format, .. } = self.data;
        let field = format.fields().get(usize::from(self.index))?;
        let start = match field.place() {
            Place::At(offset) => Ok(offset as usize),
            Place::AfterPrevious => self.previous,
        };
        let located = start.and_then(|start| format.locate_at(field, start, event_data));
        // Dynamic data that are not there leave the place of the next field known.
        self.previous = match (start, field.fixed_size()) {
            (Ok(start), Some(size)) => start.checked_add(size as usize).ok_or(FieldProblem::TooShort),
            _ => located.as_ref().map(|located| located.next).map_err(|problem| *problem),
        };
        let value = located.and_then(|located| {
            let payload = event_data.get(located.payload).ok_or(FieldProblem::TooShort)?;
            self.data.value_in(field, payload).ok_or(FieldProblem::TooShort)
        });
        let error = |problem| FieldError { format: format.id(), index: self.index, problem };
        let value = value.map_err(error);
        self.index += 1;
        Some((field, value))
    }
}
