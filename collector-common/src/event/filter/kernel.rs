//! A filter in the words of the Linux kernel's own filters, so that the kernel leaves out what surely does not pass.
//!
//! In: a compiled filter and the format of a tracepoint. Out: text for `PERF_EVENT_IOC_SET_FILTER` that lets through all that
//! the filter lets through, and more where the kernel can't say it: the filter is asked again for what comes. Source of the
//! language: Documentation/trace/events.rst and `kernel/trace/trace_events_filter.c` of Linux, from 4.17 on.
//!
//! What the kernel does differently, and is therefore not said, or said as far as it is the same:
//!
//! - Numbers are cut to the field's width: only those that the field can have are given.
//! - A field is of the size and sign that the format file says, which need not be the reader's.
//! - Text ends at its NUL for `==` and `x*`, at the end of the array for `*x*`, and at one byte before its end for `*x`,
//!   wherever the NUL is.
//! - A pattern that begins with a digit or `!` is no pattern.

use super::compile::{Check, Load};
use super::number::Number;
use super::pattern::{Pattern, Test};
use super::{Comparison, TextTest};
use crate::event::field::{EventField, EventFieldRef};
use crate::event::format::EventFormat;
use crate::event::kind::{Extent, FieldKind};

/// The kernel takes no more than a page with its NUL.
const LONGEST: usize = 4095;

/// The kernel takes less than 256 bytes (`MAX_FILTER_STR_VAL`).
const LONGEST_TEXT: usize = 255;

/// What can be said of a filter; `None` for nothing.
pub(super) fn text(check: &Check, format: &EventFormat) -> Option<String> {
    let text = Writer { format }.check(check, false)?;
    (text.len() <= LONGEST).then_some(text)
}

struct Writer<'a> {
    format: &'a EventFormat,
}

impl Writer<'_> {
    /// What is true whenever `check` holds; if `negated`, whenever it does not.
    fn check(&self, check: &Check, negated: bool) -> Option<String> {
        match check {
            Check::Not(check) => self.check(check, !negated),
            // Of what must all be true, any part may be left out.
            Check::All(checks) if !negated => self.all(checks, negated),
            Check::Any(checks) if negated => self.all(checks, negated),
            Check::All(checks) | Check::Any(checks) => {
                let parts: Option<Vec<String>> =
                    checks.iter().map(|check| self.check(check, negated)).collect();
                joined(&parts?, " || ")
            }
            Check::Number { field, load, comparison, value } => {
                let comparison = if negated { comparison.negated() } else { *comparison };
                self.number(*field, *load, comparison, *value)
            }
            Check::Masked { field, load, mask, comparison, value } if *load != Load::Bool => {
                let comparison = if negated { comparison.negated() } else { *comparison };
                self.masked(*field, *mask, comparison, *value)
            }
            Check::Text { field, pattern } => self.text(*field, pattern, negated),
            Check::Masked { .. }
            | Check::Within { .. }
            | Check::Utf16 { .. }
            | Check::Ipv4 { .. }
            | Check::Ipv6 { .. }
            | Check::Guid { .. } => None,
        }
    }

    fn all(&self, checks: &[Check], negated: bool) -> Option<String> {
        let parts: Vec<String> = checks.iter().filter_map(|check| self.check(check, negated)).collect();
        joined(&parts, " && ")
    }

    /// A field that the kernel finds by its name.
    fn field(&self, field: EventFieldRef) -> Option<&EventField> {
        let field = self.format.field(field)?;
        let name = field.name();
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_only = self.format.fields().iter().filter(|other| other.name() == name).count() == 1;
        (is_word && !name.is_empty() && is_only).then_some(field)
    }

    fn number(
        &self,
        field: EventFieldRef,
        load: Load,
        comparison: Comparison,
        value: Number,
    ) -> Option<String> {
        let field = self.field(field)?;
        let Number::Integer(value) = value else { return None };
        let (comparison, value) = match (load, comparison, value) {
            // Any byte but 0 is true.
            (Load::Bool, Comparison::Equal | Comparison::NotEqual, 0) => (comparison, 0),
            (Load::Bool, Comparison::Equal | Comparison::NotEqual, 1) => (comparison.negated(), 0),
            (Load::Bool, ..) => return None,
            _ => (comparison, value),
        };
        let stored = Stored::of(field)?;
        stored.holds(value).then(|| format!("{} {} {value}", field.name(), comparison.sign()))
    }

    /// Only whether one of the bits is set, or none.
    fn masked(&self, field: EventFieldRef, mask: u64, comparison: Comparison, value: i128) -> Option<String> {
        let field = self.field(field)?;
        let stored = Stored::of(field)?;
        let is_within = mask.checked_shr(stored.bits).unwrap_or(0) == 0;
        // The kernel reads the mask as a number of the field's sign, in 64 bits.
        let is_read = !stored.signed || i64::try_from(mask).is_ok();
        if !is_within || !is_read {
            return None;
        }
        match (comparison, value) {
            (Comparison::NotEqual, 0) => Some(format!("{} & {mask}", field.name())),
            (Comparison::Equal, 0) => Some(format!("!({} & {mask})", field.name())),
            _ => None,
        }
    }

    fn text(&self, field: EventFieldRef, pattern: &Pattern<u8>, negated: bool) -> Option<String> {
        let field = self.field(field)?;
        field.kernel_storage()?;
        // How long the text is at most, where the array is in place. Other text may lack its NUL, and the kernel then
        // compares as many bytes as there are.
        let length = match (field.kind(), field.extent()) {
            (FieldKind::Char, Extent::Array(length)) => Some(length as usize),
            (FieldKind::Char, Extent::DataLoc) => None,
            _ => return None,
        };
        let (name, is_in_place) = (field.name(), length.is_some());
        let asked = Asked::of(pattern)?;
        let text = plain(asked.text())?;
        if text.len() >= length.unwrap_or(LONGEST_TEXT) {
            return None;
        }
        let is_pattern = !text.starts_with(|first: char| first.is_ascii_digit());
        match (asked, negated) {
            (Asked::Is(_), false) | (Asked::IsNot(_), true) => Some(format!("{name} == \"{text}\"")),
            (Asked::Is(_), true) | (Asked::IsNot(_), false) if is_in_place => {
                Some(format!("{name} != \"{text}\""))
            }
            (Asked::StartsWith(_) | Asked::StartsLike(_), false) if is_pattern => {
                Some(format!("{name} ~ \"{text}*\""))
            }
            (Asked::StartsWith(_), true) if is_pattern && is_in_place => {
                Some(format!("!({name} ~ \"{text}*\")"))
            }
            (Asked::Contains(_), false) => Some(format!("{name} ~ \"*{text}*\"")),
            _ => None,
        }
    }
}

/// Parts as one part of something else.
fn joined(parts: &[String], sign: &str) -> Option<String> {
    match parts {
        [] => None,
        [one] => Some(one.clone()),
        parts => Some(format!("({})", parts.join(sign))),
    }
}

/// What a text test comes to.
enum Asked<'a> {
    Is(&'a [u8]),
    IsNot(&'a [u8]),
    StartsWith(&'a [u8]),
    /// And something more is asked.
    StartsLike(&'a [u8]),
    Contains(&'a [u8]),
}

impl<'a> Asked<'a> {
    fn of(pattern: &'a Pattern<u8>) -> Option<Self> {
        let units = &*pattern.units;
        Some(match pattern.test {
            Test::Compare(Comparison::Equal) => Self::Is(units),
            Test::Compare(Comparison::NotEqual) => Self::IsNot(units),
            Test::Text(TextTest::StartsWith) => Self::StartsWith(units),
            Test::Text(TextTest::Contains) => Self::Contains(units),
            Test::Text(TextTest::Glob) => Self::of_glob(units),
            Test::Compare(_) | Test::Text(TextTest::EndsWith) => return None,
        })
    }

    fn of_glob(pattern: &'a [u8]) -> Self {
        let before_sign = |units: &'a [u8]| {
            let end = units.iter().position(|unit| b"*?\\".contains(unit));
            units.split_at_checked(end.unwrap_or(units.len())).unwrap_or((units, &[]))
        };
        match before_sign(pattern) {
            (text, []) => Self::Is(text),
            (text, b"*") => Self::StartsWith(text),
            ([], [b'*', rest @ ..]) => match before_sign(rest) {
                (text, b"*") => Self::Contains(text),
                _ => Self::StartsLike(&[]),
            },
            (text, _) => Self::StartsLike(text),
        }
    }

    fn text(&self) -> &'a [u8] {
        match self {
            Self::Is(text)
            | Self::IsNot(text)
            | Self::StartsWith(text)
            | Self::StartsLike(text)
            | Self::Contains(text) => text,
        }
    }
}

/// Text that means nothing but itself, wherever the kernel reads it.
fn plain(text: &[u8]) -> Option<&str> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:,+@%# ".contains(byte);
    let is_all = !text.is_empty() && text.iter().all(is_plain);
    if is_all { str::from_utf8(text).ok() } else { None }
}

/// An integer as the kernel's filters see it.
#[derive(Clone, Copy)]
struct Stored {
    bits: u32,
    signed: bool,
}

impl Stored {
    /// Of a field that the kernel and the reader take for the same number.
    fn of(field: &EventField) -> Option<Self> {
        let storage = field.kernel_storage()?;
        if field.extent() != Extent::One {
            return None;
        }
        let (width, signed) = match field.kind() {
            FieldKind::Unsigned(width) | FieldKind::Bool(width) => (*width, false),
            FieldKind::Signed(width) => (*width, true),
            // The kernel compares what such a pointer points to.
            FieldKind::Pointer(_) if field.type_name().contains("char") => return None,
            FieldKind::Pointer(width) => (width.width(), false),
            _ => return None,
        };
        let is_same = storage.size == width.bytes() && storage.signed == signed;
        is_same.then_some(Self { bits: width.bits(), signed })
    }

    /// Whether a field may have this value.
    fn holds(self, value: i128) -> bool {
        let values = if self.signed {
            -(1_i128 << (self.bits - 1))..1_i128 << (self.bits - 1)
        } else {
            0..1_i128 << self.bits
        };
        values.contains(&value)
    }
}
