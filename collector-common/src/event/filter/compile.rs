//! A filter tied to a format: fields resolved, texts encoded as the fields are, senseless comparisons refused.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use super::error::FilterError;
use super::kernel;
use super::near::near;
use super::number::Number;
use super::pattern::{Pattern, Test as PatternTest};
use super::{Asked, Comparison, Element, Literal, Node, Test};
use crate::event::data::EventData;
use crate::event::error::FieldError;
use crate::event::field::{EventField, EventFieldRef};
use crate::event::format::EventFormat;
use crate::event::kind::{Extent, FieldKind};
use crate::event::value::{Guid, Value};

/// A filter for events of one format. Evaluating it allocates nothing.
#[derive(Clone, Debug)]
pub struct Predicate(Check);

impl Predicate {
    /// Whether the event passes. An error if the data end before a field that the answer depends on.
    #[inline]
    pub fn accepts(&self, data: &EventData<'_>) -> Result<bool, FieldError> {
        self.0.holds(data)
    }

    /// What the kernel's filters can say of it: see [`Event::kernel_filter`](crate::event::Event::kernel_filter).
    pub(in crate::event) fn kernel_text(&self, format: &EventFormat) -> Option<String> {
        kernel::text(&self.0, format)
    }
}

/// A node with its fields resolved. As deep as the expression and the structures of the format.
#[derive(Clone, Debug)]
pub(super) enum Check {
    All(Box<[Check]>),
    Any(Box<[Check]>),
    Not(Box<Check>),
    /// Of a field of a structure.
    Within {
        field: EventFieldRef,
        check: Box<Check>,
    },
    Number {
        field: EventFieldRef,
        load: Load,
        comparison: Comparison,
        value: Number,
    },
    Masked {
        field: EventFieldRef,
        load: Load,
        mask: u64,
        comparison: Comparison,
        value: i128,
    },
    Text {
        field: EventFieldRef,
        pattern: Pattern<u8>,
    },
    Utf16 {
        field: EventFieldRef,
        pattern: Pattern<u16>,
    },
    Ipv4 {
        field: EventFieldRef,
        equal: bool,
        value: Ipv4Addr,
    },
    Ipv6 {
        field: EventFieldRef,
        equal: bool,
        value: Ipv6Addr,
    },
    Guid {
        field: EventFieldRef,
        equal: bool,
        value: Guid,
    },
}

/// Which getter a field's number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    Unsigned,
    Signed,
    Bool,
    FileTime,
    Float,
    /// An integer of a list, by its number from 0.
    Element(u32),
}

impl Load {
    fn of(kind: &FieldKind) -> Option<Self> {
        Some(match kind {
            FieldKind::Unsigned(_)
            | FieldKind::Pointer(_)
            | FieldKind::Port
            | FieldKind::Bits { signed: false, .. } => Self::Unsigned,
            FieldKind::Signed(_) | FieldKind::Bits { signed: true, .. } => Self::Signed,
            FieldKind::Bool(_) => Self::Bool,
            FieldKind::FileTime => Self::FileTime,
            FieldKind::Float(_) => Self::Float,
            _ => return None,
        })
    }

    #[inline]
    fn number(self, data: &EventData<'_>, field: EventFieldRef) -> Result<Number, FieldError> {
        Ok(match self {
            Self::Unsigned => Number::Integer(data.try_get_u64(field)?.into()),
            Self::Signed => Number::Integer(data.try_get_i64(field)?.into()),
            Self::Bool => Number::Integer(data.try_get_bool(field)?.into()),
            Self::FileTime => Number::Integer(data.try_get_filetime(field)?.0.into()),
            Self::Float => Number::Float(data.try_get_f64(field)?),
            Self::Element(number) => Number::Integer(data.integer_at(field, number)?),
        })
    }
}

/// Whether one of them holds, or does not. Where one does, it does not matter that others can't be told, whatever their order.
#[inline]
fn is_any(checks: &[Check], data: &EventData<'_>, wanted: bool) -> Result<bool, FieldError> {
    let mut untold = None;
    for check in checks {
        match check.holds(data) {
            Ok(holds) if holds == wanted => return Ok(true),
            Ok(_) => {}
            Err(error) => untold = untold.or(Some(error)),
        }
    }
    untold.map_or(Ok(false), Err)
}

impl Check {
    fn holds(&self, data: &EventData<'_>) -> Result<bool, FieldError> {
        Ok(match self {
            Self::All(checks) => !is_any(checks, data, false)?,
            Self::Any(checks) => is_any(checks, data, true)?,
            Self::Not(check) => !check.holds(data)?,
            Self::Within { field, check } => match data.value(*field)? {
                Value::Struct(inner) => check.holds(&inner)?,
                _ => false,
            },
            Self::Number { field, load, comparison, value } => {
                comparison.holds(load.number(data, *field)?.order(*value))
            }
            Self::Masked { field, load, mask, comparison, value } => {
                let bits = match load.number(data, *field)? {
                    Number::Integer(bits) => bits as u64,
                    Number::Float(_) => 0,
                };
                comparison.holds(Some(i128::from(bits & mask).cmp(value)))
            }
            Self::Text { field, pattern } => pattern.matches(data.try_get_text(*field)?.as_bytes()),
            Self::Utf16 { field, pattern } => pattern.matches(data.try_get_utf16(*field)?),
            Self::Ipv4 { field, equal, value } => (data.try_get_ipv4(*field)? == *value) == *equal,
            Self::Ipv6 { field, equal, value } => (data.try_get_ipv6(*field)? == *value) == *equal,
            Self::Guid { field, equal, value } => (data.try_get_guid(*field)? == *value) == *equal,
        })
    }
}

pub(super) fn compile(source: &str, root: &Node, format: &EventFormat) -> Result<Predicate, FilterError> {
    Compiler { source, format }.check(root).map(Predicate)
}

struct Compiler<'a> {
    source: &'a str,
    format: &'a EventFormat,
}

impl Compiler<'_> {
    fn error<T>(&self, at: usize, message: impl Into<Box<str>>) -> Result<T, FilterError> {
        Err(FilterError::new(self.source, at, message))
    }

    fn check(&self, node: &Node) -> Result<Check, FilterError> {
        let all = |nodes: &[Node]| nodes.iter().map(|node| self.check(node)).collect::<Result<_, _>>();
        Ok(match node {
            Node::All(nodes) => Check::All(all(nodes)?),
            Node::Any(nodes) => Check::Any(all(nodes)?),
            Node::Not(node) => Check::Not(Box::new(self.check(node)?)),
            Node::Test(test) => self.test(test)?,
        })
    }

    fn test(&self, test: &Test) -> Result<Check, FilterError> {
        self.test_in(self.format, &test.field, test)
    }

    /// The test of a field of `format`, or of a structure in it by the names of both with a point between.
    fn test_in(&self, format: &EventFormat, name: &str, test: &Test) -> Result<Check, FilterError> {
        let resolved =
            |name: &str| format.field_ref(name).and_then(|field| Some((field, format.field(field)?)));
        if let Some((field, declared)) = resolved(name) {
            return self.compare(field, declared, test);
        }
        let within = name.match_indices('.').find_map(|(point, _)| {
            let (field, declared) = resolved(name.get(..point)?)?;
            match (declared.kind(), declared.extent()) {
                (FieldKind::Struct(inner), Extent::One) => Some((field, inner, name.get(point + 1..)?)),
                _ => None,
            }
        });
        let Some((field, inner, name)) = within else {
            return self.error(test.field_at, unknown(format, name));
        };
        let check = Box::new(self.test_in(inner, name, test)?);
        Ok(Check::Within { field, check })
    }

    fn compare(
        &self,
        field: EventFieldRef,
        declared: &EventField,
        test: &Test,
    ) -> Result<Check, FilterError> {
        if let Some(element) = test.element {
            let load = self.element(declared, element, test)?;
            return self.number(test, field, load, declared.kind());
        }
        if declared.is_array() {
            let message = format!("`{}` is a list of {}", test.field, declared.kind().name().as_str());
            let hint = match length(declared) {
                Some(1..) => format!("; name an element, as `{}[0]`", test.field),
                _ => String::new(),
            };
            return self.error(test.field_at, message + ", which filters can't compare" + &hint);
        }
        match declared.kind() {
            FieldKind::Char => {
                let (test, text) = self.text(test)?;
                Ok(Check::Text { field, pattern: Pattern { test, units: text.bytes().collect() } })
            }
            FieldKind::Utf16 => {
                let (test, text) = self.text(test)?;
                Ok(Check::Utf16 { field, pattern: Pattern { test, units: text.encode_utf16().collect() } })
            }
            FieldKind::Ipv4 => self.equal(test, |equal, value| Check::Ipv4 { field, equal, value }),
            FieldKind::Ipv6 => self.equal(test, |equal, value| Check::Ipv6 { field, equal, value }),
            FieldKind::Guid => self.equal(test, |equal, value| Check::Guid { field, equal, value }),
            kind => match Load::of(kind) {
                Some(load) => self.number(test, field, load, kind),
                None => self.error(
                    test.field_at,
                    format!("`{}` is a {}, which filters can't compare", test.field, kind.name().as_str()),
                ),
            },
        }
    }

    /// How an element of a list is loaded.
    fn element(&self, declared: &EventField, element: Element, test: &Test) -> Result<Load, FilterError> {
        let Some(length) = length(declared) else {
            let message = format!("`{}` is no list of integers whose length is fixed", test.field);
            return self.error(test.field_at, message + ", of which alone elements are compared");
        };
        match u32::try_from(element.number).ok().filter(|number| *number < length) {
            Some(number) => Ok(Load::Element(number)),
            None if length == 0 => self.error(element.at, format!("`{}` has no elements", test.field)),
            None => {
                let message = format!("`{}` has {length} elements, the last is [{}]", test.field, length - 1);
                self.error(element.at, message)
            }
        }
    }

    fn number(
        &self,
        test: &Test,
        field: EventFieldRef,
        load: Load,
        kind: &FieldKind,
    ) -> Result<Check, FilterError> {
        if let Asked::Compare(Comparison::Equal | Comparison::NotEqual, Literal::Integer(value)) = &test.asked
            && let Some(values) = values(kind).filter(|values| !values.contains(value))
        {
            let (first, last) = values.into_inner();
            let message = format!("`{}` is a number from {first} to {last}, and never {value}", test.field);
            return self.error(test.value_at, message);
        }
        self.may_hold(test, kind)?;
        let value = match &test.asked {
            Asked::Compare(comparison, Literal::Integer(value)) => (*comparison, Number::Integer(*value)),
            Asked::Compare(comparison, Literal::Float(value)) => (*comparison, Number::Float(*value)),
            Asked::Masked(mask, comparison, value) if load != Load::Float => {
                let (mask, comparison, value) = (*mask, *comparison, *value);
                return Ok(Check::Masked { field, load, mask, comparison, value });
            }
            Asked::Masked(..) => {
                return self.error(
                    test.value_at,
                    format!("`{}` has no bits: it is a floating-point number", test.field),
                );
            }
            Asked::Compare(_, Literal::Text(_)) | Asked::Text(..) => {
                return self.error(test.value_at, format!("`{}` is a number, this is text", test.field));
            }
        };
        let (comparison, value) = value;
        Ok(Check::Number { field, load, comparison, value })
    }

    /// Refuses what is equal to no number of a kind, or never different from one: a part of a whole one, or bits that are not compared.
    fn may_hold(&self, test: &Test, kind: &FieldKind) -> Result<(), FilterError> {
        let Some(values) = values(kind) else { return Ok(()) };
        match test.asked {
            Asked::Compare(Comparison::Equal | Comparison::NotEqual, Literal::Float(value))
                if value.fract() != 0.0 || value < *values.start() as f64 || value > *values.end() as f64 =>
            {
                let (first, last) = values.into_inner();
                let message =
                    format!("`{}` is a whole number from {first} to {last}, and never {value}", test.field);
                self.error(test.value_at, message)
            }
            Asked::Masked(mask, Comparison::Equal | Comparison::NotEqual, value) => {
                // Numbers below 0 have all bits that the field has no room for.
                let bits = if *values.start() < 0 { mask } else { mask & *values.end() as u64 };
                if bits != 0 && u64::try_from(value).is_ok_and(|value| value & !bits == 0) {
                    return Ok(());
                }
                let masked = format!("`{} & {mask:#x}`", test.field);
                let message = match u64::try_from(value) {
                    _ if bits == 0 => format!("{masked} is 0 always: the field has no such bits"),
                    Ok(value) => format!("{masked} has bits of {bits:#x} alone, and is never {value:#x}"),
                    Err(_) => format!("{masked} is never below 0"),
                };
                self.error(test.value_at, message)
            }
            _ => Ok(()),
        }
    }

    fn text<'a>(&self, test: &'a Test) -> Result<(PatternTest, &'a str), FilterError> {
        match &test.asked {
            Asked::Compare(comparison, Literal::Text(text)) => Ok((PatternTest::Compare(*comparison), text)),
            Asked::Text(asked, text) => Ok((PatternTest::Text(*asked), text)),
            Asked::Compare(..) | Asked::Masked(..) => {
                self.error(test.value_at, format!("`{}` is text, this is a number; quote text", test.field))
            }
        }
    }

    /// Kinds whose values have a text form and no order.
    fn equal<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        test: &Test,
        check: impl FnOnce(bool, T) -> Check,
    ) -> Result<Check, FilterError> {
        let (equal, text) = match &test.asked {
            Asked::Compare(Comparison::Equal, Literal::Text(text)) => (true, text),
            Asked::Compare(Comparison::NotEqual, Literal::Text(text)) => (false, text),
            _ => {
                let message = format!("`{}` can only be `==` or `!=` to its text form in quotes", test.field);
                return self.error(test.value_at, message);
            }
        };
        match text.parse() {
            Ok(value) => Ok(check(equal, value)),
            Err(error) => self.error(test.value_at, format!("`{text}`: {error}")),
        }
    }
}

/// How many elements a list of integers has, if it is the same number always.
fn length(declared: &EventField) -> Option<u32> {
    match declared.extent() {
        Extent::Array(length) if values(declared.kind()).is_some() => Some(length),
        _ => None,
    }
}

/// The integers that there is room for; `None` of what is none.
fn values(kind: &FieldKind) -> Option<RangeInclusive<i128>> {
    let (bits, signed) = match kind {
        FieldKind::Unsigned(width) => (width.bits(), false),
        FieldKind::Signed(width) => (width.bits(), true),
        FieldKind::Pointer(width) => (width.width().bits(), false),
        FieldKind::Bits { count, signed, .. } => ((*count).into(), *signed),
        FieldKind::Port => (16, false),
        FieldKind::FileTime => (64, false),
        FieldKind::Bool(_) => (1, false),
        _ => return None,
    };
    let all = 1_i128 << bits;
    Some(if signed { -(all / 2)..=all / 2 - 1 } else { 0..=all - 1 })
}

/// Says that there is no such field, and which may have been meant.
fn unknown(format: &EventFormat, name: &str) -> String {
    let names = || format.fields().iter().map(EventField::name);
    let rest = match &*near(name, names()) {
        [] => match names().count() {
            0 => "; the event has no fields".to_owned(),
            _ => format!("; there are: {}", names().take(20).collect::<Vec<_>>().join(", ")),
        },
        near => format!("; did you mean `{}`?", near.join("` or `")),
    };
    format!("there is no field `{name}`{rest}")
}
