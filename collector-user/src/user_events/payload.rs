//! Values of fields, and the bytes that they are to the kernel.

use super::declaration::Layout;
use super::error::{ValueProblem, WriteError};

/// Bytes that the values of an occurrence may take: a record of a perf event has 8192 at most (`PERF_MAX_TRACE_SIZE`), with 8 that all
/// tracepoints begin with. Tracefs' own buffer has no room for more than a page, and drops what is longer.
pub const LONGEST_PAYLOAD: usize = 8192 - 8;

/// Most occurrences are smaller; others take an allocation.
const USUAL: usize = 512;

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldValue<'a> {
    /// An integer from 0 on, for any field of integers that has room for it.
    Unsigned(u64),
    /// An integer, for any field of integers that has room for it.
    Signed(i64),
    /// Text without a NUL, mostly UTF-8.
    Text(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
}

macro_rules! from_integers {
    ($($variant:ident as $wide:ident: $($type:ident)+;)+) => {
        $($(impl From<$type> for FieldValue<'_> {
            fn from(value: $type) -> Self {
                Self::$variant($wide::from(value))
            }
        })+)+
    };
}

from_integers! {
    Unsigned as u64: u8 u16 u32 u64;
    Signed as i64: i8 i16 i32 i64;
}

impl<'a> From<&'a str> for FieldValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for FieldValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

/// The fields of an event.
#[derive(Debug)]
pub(super) struct Fields {
    event: String,
    layouts: Vec<(String, Layout)>,
    /// Bytes in place.
    in_place: usize,
}

impl Fields {
    pub(super) fn new(event: &str, layouts: Vec<(String, Layout)>) -> Self {
        let in_place = layouts.iter().map(|(_, layout)| layout.size()).sum();
        Self { event: event.to_owned(), layouts, in_place }
    }

    pub(super) fn event(&self) -> &str {
        &self.event
    }

    /// Hands the bytes of the values to `write`.
    pub(super) fn write<T>(
        &self,
        values: &[FieldValue<'_>],
        write: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, WriteError> {
        let event = || self.event.clone();
        if values.len() != self.layouts.len() {
            return Err(WriteError::Count {
                event: event(),
                fields: self.layouts.len(),
                given: values.len(),
            });
        }
        let pairs = || self.layouts.iter().map(|(_, layout)| *layout).zip(values.iter().copied());
        let elsewhere = pairs().map(|(layout, value)| length_elsewhere(layout, value));
        let len = elsewhere.fold(self.in_place, usize::saturating_add);
        if len > LONGEST_PAYLOAD {
            return Err(WriteError::TooLong { event: event(), len });
        }
        let (mut usual, mut large) = ([0; USUAL], Vec::new());
        let payload = if let Some(payload) = usual.get_mut(..len) {
            payload
        } else {
            large.resize(len, 0);
            &mut large[..]
        };
        let (mut rest, mut behind) = payload.split_at_mut(self.in_place);
        let mut used = 0;
        for ((name, layout), value) in self.layouts.iter().zip(values) {
            let (own, next) = std::mem::take(&mut rest).split_at_mut(layout.size());
            let own_len = length_elsewhere(*layout, *value);
            let (dynamic, others) = std::mem::take(&mut behind).split_at_mut(own_len);
            // From the end of the field's word.
            let offset = next.len() + used;
            put(*layout, *value, own, dynamic, offset).map_err(|problem| WriteError::Value {
                event: event(),
                field: name.clone(),
                problem,
            })?;
            (rest, behind, used) = (next, others, used + own_len);
        }
        Ok(write(payload))
    }
}

/// Bytes behind all fields that are in place. A text has its NUL there.
fn length_elsewhere(layout: Layout, value: FieldValue<'_>) -> usize {
    match (layout, value) {
        (Layout::Elsewhere { is_text: true }, FieldValue::Text(text)) => text.len().saturating_add(1),
        (Layout::Elsewhere { is_text: false }, FieldValue::Bytes(bytes)) => bytes.len(),
        _ => 0,
    }
}

/// Writes a value into its field's place, which is zero, and what is elsewhere there.
fn put(
    layout: Layout,
    value: FieldValue<'_>,
    own: &mut [u8],
    dynamic: &mut [u8],
    offset: usize,
) -> Result<(), ValueProblem> {
    match (layout, value) {
        (Layout::Unsigned(_) | Layout::Signed(_), FieldValue::Unsigned(_) | FieldValue::Signed(_)) => {
            put_integer(matches!(layout, Layout::Signed(_)), value, own)
        }
        (Layout::Array { is_text: true, .. }, FieldValue::Text(bytes))
        | (Layout::Array { is_text: false, .. }, FieldValue::Bytes(bytes)) => {
            without_nul(layout, bytes)?;
            let room = own.len() as u32;
            let place = own.get_mut(..bytes.len()).ok_or(ValueProblem::Room { len: bytes.len(), room })?;
            place.copy_from_slice(bytes);
            Ok(())
        }
        (Layout::Elsewhere { is_text: true }, FieldValue::Text(bytes))
        | (Layout::Elsewhere { is_text: false }, FieldValue::Bytes(bytes)) => {
            without_nul(layout, bytes)?;
            // Both are less than a record.
            own.copy_from_slice(&((dynamic.len() as u32) << 16 | offset as u32).to_ne_bytes());
            dynamic[..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
        (Layout::Unsigned(_) | Layout::Signed(_), _) => Err(ValueProblem::Kind("an integer")),
        (Layout::Array { is_text, .. } | Layout::Elsewhere { is_text }, _) => {
            Err(ValueProblem::Kind(if is_text { "text" } else { "bytes" }))
        }
    }
}

fn without_nul(layout: Layout, bytes: &[u8]) -> Result<(), ValueProblem> {
    let is_text = matches!(layout, Layout::Array { is_text: true, .. } | Layout::Elsewhere { is_text: true });
    if is_text && bytes.contains(&0) { Err(ValueProblem::Nul) } else { Ok(()) }
}

fn put_integer(is_signed: bool, value: FieldValue<'_>, own: &mut [u8]) -> Result<(), ValueProblem> {
    let value = match value {
        FieldValue::Unsigned(value) => i128::from(value),
        FieldValue::Signed(value) => i128::from(value),
        FieldValue::Text(_) | FieldValue::Bytes(_) => return Err(ValueProblem::Kind("an integer")),
    };
    let bits = 8 * own.len() as u32;
    let range = if is_signed { -(1_i128 << (bits - 1))..1 << (bits - 1) } else { 0..1_i128 << bits };
    if !range.contains(&value) {
        return Err(ValueProblem::Range);
    }
    match own {
        [byte] => *byte = value as u8,
        [_, _] => own.copy_from_slice(&(value as u16).to_ne_bytes()),
        [_, _, _, _] => own.copy_from_slice(&(value as u32).to_ne_bytes()),
        _ => own.copy_from_slice(&(value as u64).to_ne_bytes()),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
