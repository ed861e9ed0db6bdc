//! The format of an event: its fields, checked and placed when they are added.
//!
//! Formats come from outside (tracefs, ETW manifests, events that describe themselves), so every promise that readers
//! rely on is made here: structures nest to a bound, lists have elements that take bytes, and the fields of a format
//! with its structures are so few that walking over all of them is nothing.

use super::error::FormatError;
use super::field::{Access, EventField, EventFieldRef, FormatId};
use super::kind::{Extent, FieldKind, Place};
use crate::byte_order::ByteOrder;

/// Fields of a format and of the structures in it. ETW allows 128, tracefs formats have some dozens.
pub const MOST_FIELDS: u32 = 4096;

/// Structures within structures.
pub const MOST_DEPTH: u32 = 16;

/// Fields counted by a field that is itself at no fixed place: each doubles the work of finding what is behind it.
pub const MOST_FLOATING_COUNTS: u32 = 8;

/// Where fields of events lie and what they are.
///
/// References resolved in one format mean nothing in another, therefore a format is no `Clone`; share it by `Arc`.
#[derive(Debug)]
pub struct EventFormat {
    id: FormatId,
    order: ByteOrder,
    fields: Vec<EventField>,
    starts: Vec<Start>,
    /// Fields whose size differs from event to event, in the order of their addition.
    variable: Vec<u16>,
    /// Where the last field ends, if all events have the same.
    size: Option<u32>,
    /// Fields with those of structures.
    total_fields: u32,
    depth: u32,
    /// Those of structures, too.
    floating_counts: u32,
    has_dynamic: bool,
}

/// Where a field starts: behind the fields of differing size `variable[first..last]`, of which the first lies at or
/// behind `base`; then `skip` bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) base: u32,
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) skip: u32,
}

impl Start {
    const fn at(base: u32) -> Self {
        Self { base, first: 0, last: 0, skip: 0 }
    }

    /// The offset, if all events have the same.
    pub(super) fn fixed(self) -> Option<u32> {
        if self.first == self.last { self.base.checked_add(self.skip) } else { None }
    }
}

impl Default for EventFormat {
    fn default() -> Self {
        Self::new(ByteOrder::NATIVE)
    }
}

impl EventFormat {
    /// A format without fields; its numbers have this byte order.
    pub fn new(order: ByteOrder) -> Self {
        Self {
            id: FormatId::next(),
            order,
            fields: Vec::new(),
            starts: Vec::new(),
            variable: Vec::new(),
            size: Some(0),
            total_fields: 0,
            depth: 1,
            floating_counts: 0,
            has_dynamic: false,
        }
    }

    /// Another format of the same fields, for a recording to keep: references that were resolved in this one mean nothing there.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        let id = FormatId::next();
        Self {
            id,
            order: self.order,
            fields: self.fields.iter().map(|field| field.moved_to(id)).collect(),
            starts: self.starts.clone(),
            variable: self.variable.clone(),
            size: self.size,
            total_fields: self.total_fields,
            depth: self.depth,
            floating_counts: self.floating_counts,
            has_dynamic: self.has_dynamic,
        }
    }

    /// Adds a field behind the others and resolves it. Names may repeat; the first of a name is found by it.
    pub fn add_field(&mut self, field: EventField) -> Result<EventFieldRef, FormatError> {
        self.check(&field)?;
        let too_large = || FormatError::TooLarge { field: field.name().into() };
        let start = self.start_of_next(&field).ok_or_else(too_large)?;
        let size = match (start.fixed(), field.fixed_size()) {
            (Some(start), Some(size)) => Some(start.checked_add(size).ok_or_else(too_large)?),
            _ => None,
        };
        self.size = self.size.zip(size).map(|(whole, end)| whole.max(end));
        let index = self.fields.len() as u16;
        if field.fixed_size().is_none() {
            self.variable.push(index);
        }
        self.total_fields += 1;
        if let FieldKind::Struct(format) = field.kind() {
            self.total_fields += format.total_fields;
            self.depth = self.depth.max(1 + format.depth);
            self.floating_counts += format.floating_counts;
        }
        self.has_dynamic |= matches!(field.extent(), Extent::DataLoc | Extent::RelLoc);
        self.floating_counts += u32::from(self.is_counted_by_floating(&field));
        self.starts.push(start);
        self.fields.push(field);
        Ok(self.reference(index))
    }

    fn check(&self, field: &EventField) -> Result<(), FormatError> {
        let name = || field.name().into();
        if field.extent() == Extent::ZeroTerminated && !field.kind().is_text() {
            return Err(FormatError::NotText { field: name(), kind: field.kind().name().as_str() });
        }
        if let Extent::CountOf(counter) = field.extent()
            && !self
                .field(counter)
                .is_some_and(|counter| counter.extent() == Extent::One && is_count(counter.kind()))
        {
            return Err(FormatError::Counter { field: name() });
        }
        let most = |what, most| Err(FormatError::TooMany { field: name(), what, most });
        let (mut inner_fields, mut inner_counts) = (0, 0);
        match field.kind() {
            FieldKind::Bits { unit, first, count, .. } => {
                let (first, count, unit) = (*first, *count, unit.bits());
                if count == 0 || u32::from(first) + u32::from(count) > unit {
                    return Err(FormatError::Bits { field: name(), first, count, unit });
                }
            }
            FieldKind::Struct(format) => {
                if format.has_dynamic {
                    return Err(FormatError::DynamicInStruct { field: name() });
                }
                if field.is_array() && format.size == Some(0) {
                    return Err(FormatError::EmptyElement { field: name() });
                }
                if format.depth >= MOST_DEPTH {
                    return most("structures within structures", MOST_DEPTH);
                }
                (inner_fields, inner_counts) = (format.total_fields, format.floating_counts);
            }
            _ => {}
        }
        if self.total_fields + inner_fields >= MOST_FIELDS {
            return most("fields", MOST_FIELDS);
        }
        let counts = inner_counts + u32::from(self.is_counted_by_floating(field));
        if self.floating_counts + counts > MOST_FLOATING_COUNTS {
            return most("counts at no fixed place", MOST_FLOATING_COUNTS);
        }
        // A list of fixed size that is too large would pass for one whose size differs.
        if matches!(field.extent(), Extent::One | Extent::Array(_))
            && field.fixed_size().is_none()
            && field.kind().size().is_some()
        {
            return Err(FormatError::TooLarge { field: name() });
        }
        Ok(())
    }

    fn is_counted_by_floating(&self, field: &EventField) -> bool {
        match field.extent() {
            Extent::CountOf(counter) => {
                self.start(counter.index()).is_some_and(|start| start.fixed().is_none())
            }
            _ => false,
        }
    }

    fn start_of_next(&self, field: &EventField) -> Option<Start> {
        let (start, previous) = match (field.place(), self.starts.last(), self.fields.last()) {
            (Place::At(offset), ..) => return Some(Start::at(offset)),
            (Place::AfterPrevious, Some(start), Some(previous)) => (*start, previous),
            (Place::AfterPrevious, ..) => return Some(Start::at(0)),
        };
        if let Some(size) = previous.fixed_size() {
            return Some(Start { skip: start.skip.checked_add(size)?, ..start });
        }
        // The field before is the last of `variable`.
        let last = self.variable.len() as u16;
        let first = if start.first == start.last { last.checked_sub(1)? } else { start.first };
        Some(Start { base: start.base, first, last, skip: 0 })
    }

    /// The byte order of its numbers.
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// The fields, in the order of their addition.
    pub fn fields(&self) -> &[EventField] {
        &self.fields
    }

    /// Bytes from the start of the event data to the end of the last field, if all events have the same (dynamic data
    /// are not counted).
    pub fn size(&self) -> Option<u32> {
        self.size
    }

    /// How many fields it has, with those of the structures in it: what it takes of memory goes by that.
    pub fn total_fields(&self) -> u32 {
        self.total_fields
    }

    /// Whether there are fields whose data lie behind all others.
    pub fn has_dynamic_data(&self) -> bool {
        self.has_dynamic
    }

    /// The first field of this name, resolved.
    pub fn field_ref(&self, name: &str) -> Option<EventFieldRef> {
        let index = self.fields.iter().position(|field| field.name() == name)?;
        Some(self.reference(index as u16))
    }

    /// All fields, resolved.
    pub fn field_refs(&self) -> impl Iterator<Item = EventFieldRef> + '_ {
        (0..self.fields.len()).map(|index| self.reference(index as u16))
    }

    /// What `field` stands for; none if it was resolved in another format.
    pub fn field(&self, field: EventFieldRef) -> Option<&EventField> {
        if field.is_of(self.id) { self.fields.get(usize::from(field.index())) } else { None }
    }

    fn reference(&self, index: u16) -> EventFieldRef {
        let fixed = self.start(index).and_then(Start::fixed);
        let access = match (self.fields.get(usize::from(index)), fixed) {
            (Some(field), Some(_)) => field.access(self.order),
            _ => Access::Walk,
        };
        EventFieldRef::new(self.id, access, fixed.unwrap_or(0), index)
    }

    /// Its identity, which no other format has.
    #[inline]
    pub(super) fn id(&self) -> FormatId {
        self.id
    }

    pub(super) fn start(&self, index: u16) -> Option<Start> {
        self.starts.get(usize::from(index)).copied()
    }

    pub(super) fn variable(&self, start: Start) -> &[u16] {
        self.variable.get(usize::from(start.first)..usize::from(start.last)).unwrap_or(&[])
    }

    /// The name of a field of this format or of a structure in it.
    pub(super) fn name_of(&self, format: FormatId, index: u16) -> Option<&str> {
        if format == self.id {
            return self.fields.get(usize::from(index)).map(EventField::name);
        }
        self.fields.iter().find_map(|field| match field.kind() {
            FieldKind::Struct(inner) => inner.name_of(format, index),
            _ => None,
        })
    }
}

fn is_count(kind: &FieldKind) -> bool {
    matches!(kind, FieldKind::Unsigned(_) | FieldKind::Signed(_) | FieldKind::Bits { .. })
}
