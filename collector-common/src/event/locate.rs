//! Where the bytes of a field are in the data of one event.
//!
//! In: a format and event data of any content. Out: the range of the field's elements and where the next field starts,
//! both within the data. Work is bounded by the format's fields and the data's bytes, see `format.rs`.

use std::ops::Range;

use super::decode::{integer, load};
use super::error::FieldProblem;
use super::field::EventField;
use super::format::EventFormat;
use super::kind::{Extent, FieldKind, Place, Width};
use super::sid::Sid;

type Found<T> = Result<T, FieldProblem>;

/// A field's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// Those of its elements.
    pub(super) payload: Range<usize>,
    /// Behind what it takes in place.
    pub(super) next: usize,
}

impl EventFormat {
    /// Finds a field by its place in [`EventFormat::fields`].
    pub(super) fn locate(&self, index: u16, data: &[u8]) -> Found<Located> {
        let field = self.fields().get(usize::from(index)).ok_or(FieldProblem::OtherFormat)?;
        let start = self.start(index).ok_or(FieldProblem::OtherFormat)?;
        let mut at = start.base as usize;
        for variable in self.variable(start) {
            let (Some(before), Some(start)) =
                (self.fields().get(usize::from(*variable)), self.start(*variable))
            else {
                return Err(FieldProblem::OtherFormat);
            };
            at = self.locate_at(before, add(at, start.skip as usize)?, data)?.next;
        }
        self.locate_at(field, add(at, start.skip as usize)?, data)
    }

    /// Finds the bytes of a field that starts at `at`.
    pub(super) fn locate_at(&self, field: &EventField, at: usize, data: &[u8]) -> Found<Located> {
        let number = |width: Width| {
            let next = add(at, width.bytes() as usize)?;
            let bytes = data.get(at..next).ok_or(FieldProblem::TooShort)?;
            let number = load(bytes, width, self.order()).ok_or(FieldProblem::TooShort)?;
            Ok((number, next))
        };
        let in_place = |payload: Range<usize>| {
            if payload.start > payload.end || payload.end > data.len() {
                return Err(FieldProblem::TooShort);
            }
            let next = payload.end;
            Ok(Located { payload, next })
        };
        let elements = |at: usize, count: u64| in_place(at..end_of(field.kind(), at, count, data)?);
        match field.extent() {
            Extent::One => elements(at, 1),
            Extent::Array(count) => elements(at, u64::from(count)),
            Extent::CountOf(counter) => elements(at, self.count(counter.index(), data)?),
            Extent::CountPrefixed(width) => {
                let (count, at) = number(width)?;
                elements(at, count)
            }
            Extent::LengthPrefixed(width) => {
                let (length, at) = number(width)?;
                in_place(at..add(at, usize::try_from(length).map_err(|_| FieldProblem::TooShort)?)?)
            }
            Extent::Rest => in_place(at..data.len()),
            Extent::ZeroTerminated => {
                let rest = data.get(at..).ok_or(FieldProblem::TooShort)?;
                let unit = if matches!(field.kind(), FieldKind::Utf16) { 2 } else { 1 };
                let length = before_nul(rest, unit);
                let end = add(at, length)?;
                Ok(Located { payload: at..end, next: add(end, unit)?.min(data.len()) })
            }
            extent @ (Extent::DataLoc | Extent::RelLoc) => {
                let (word, next) = number(Width::W32)?;
                let (offset, length) = ((word & 0xffff) as usize, (word >> 16) as usize);
                let start = if extent == Extent::RelLoc { add(next, offset)? } else { offset };
                let payload = start..add(start, length)?;
                if payload.end > data.len() {
                    return Err(FieldProblem::TooShort);
                }
                Ok(Located { payload, next })
            }
        }
    }

    /// The value of a field that counts another's elements; negative ones are none.
    fn count(&self, index: u16, data: &[u8]) -> Found<u64> {
        let located = self.locate(index, data)?;
        let field = self.fields().get(usize::from(index)).ok_or(FieldProblem::OtherFormat)?;
        let bytes = data.get(located.payload).ok_or(FieldProblem::TooShort)?;
        let count = integer(field.kind(), self.order(), bytes).ok_or(FieldProblem::TooShort)?;
        Ok(u64::try_from(count.as_i128()).unwrap_or(0))
    }

    /// Bytes of a structure of this format at the start of `data`.
    pub(super) fn size_in(&self, data: &[u8]) -> Found<usize> {
        if let Some(size) = self.size() {
            return Ok(size as usize);
        }
        let (mut at, mut end) = (0, 0);
        for field in self.fields() {
            if let Place::At(offset) = field.place() {
                at = offset as usize;
            }
            at = self.locate_at(field, at, data)?.next;
            end = end.max(at);
        }
        Ok(end)
    }
}

/// Where `count` elements that start at `at` end.
fn end_of(kind: &FieldKind, at: usize, count: u64, data: &[u8]) -> Found<usize> {
    if let Some(size) = kind.size() {
        let bytes = count.checked_mul(u64::from(size)).and_then(|bytes| usize::try_from(bytes).ok());
        return add(at, bytes.ok_or(FieldProblem::TooShort)?);
    }
    let mut end = at;
    for element in 0..count {
        let rest = data.get(end..).ok_or(FieldProblem::TooShort)?;
        let size = match kind {
            FieldKind::Struct(format) => format.size_in(rest)?,
            FieldKind::Sid(before) => Sid::element(*before, rest).ok_or(FieldProblem::TooShort)?.1,
            _ => return Err(FieldProblem::TooShort),
        };
        // The count is from outside: without progress it alone would end this.
        if size == 0 && element > 0 {
            return Err(FieldProblem::EmptyElement);
        }
        end = add(end, size)?;
    }
    Ok(end)
}

/// Bytes before the first NUL of `unit` bytes, or all whole units.
pub(super) fn before_nul(bytes: &[u8], unit: usize) -> usize {
    if unit == 1 {
        return bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    }
    let units = bytes.chunks_exact(unit);
    let whole = units.len();
    let before = units.clone().position(|unit| unit.iter().all(|byte| *byte == 0)).unwrap_or(whole);
    before * unit
}

fn add(at: usize, bytes: usize) -> Found<usize> {
    at.checked_add(bytes).ok_or(FieldProblem::TooShort)
}
