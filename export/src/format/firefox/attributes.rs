//! Lists of attributes in, fields of markers and types of markers by their fields out: a label is text, a number an integer.

use std::borrow::Cow;

use collector_common::intern::StringId;
use collector_common::record::{AttributeListId, AttributeValue, ExportMachine};
use fxprof_processed_profile::{
    MarkerFieldFlags, MarkerFieldFormat, Profile, RuntimeSchemaMarkerField, StringHandle,
};

/// The most types of markers that are written and read. Each kind of samples, of which there are up to 4,096, has one for each list of names
/// and forms of attributes that its samples have, and programs have few of these. They are as many as libraries may be, and cost as much.
pub(crate) const MOST_TYPES: usize = 1 << 16;

/// The largest number up to which all are there: the format's have double precision. Others are text.
const LARGEST: u64 = 1 << 53;

/// What a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    Text,
    Number,
}

impl Form {
    const fn of(value: AttributeValue) -> Self {
        match value {
            AttributeValue::Number(number) if number.unsigned_abs() <= LARGEST => Self::Number,
            AttributeValue::Number(_) | AttributeValue::Label(_) => Self::Text,
        }
    }
}

/// Names of a list's attributes, and what their fields have.
pub(super) type Names = Vec<(StringId, Form)>;

pub(super) fn names(machine: &ExportMachine, list: AttributeListId) -> Names {
    machine.attributes().get(list).iter().map(|&(name, value)| (name, Form::of(value))).collect()
}

/// A field's value.
#[derive(Clone, Copy, Debug)]
enum Value {
    Text(StringHandle),
    Number(f64),
}

/// The values of a list, by position.
#[derive(Debug)]
pub(super) struct Values(Vec<Value>);

impl Values {
    pub(super) fn of(machine: &ExportMachine, list: AttributeListId, out: &mut Profile) -> Self {
        let value = |&(_, value): &(StringId, AttributeValue)| match (Form::of(value), value) {
            (Form::Number, AttributeValue::Number(number)) => Value::Number(number as f64),
            _ => Value::Text(out.intern_string(&machine.attribute_text(value))),
        };
        Self(machine.attributes().get(list).iter().map(value).collect())
    }

    pub(super) fn text(&self, at: u32) -> Option<StringHandle> {
        match self.0.get(at as usize)? {
            Value::Text(text) => Some(*text),
            Value::Number(_) => None,
        }
    }

    pub(super) fn number(&self, at: u32) -> Option<f64> {
        match self.0.get(at as usize)? {
            Value::Number(number) => Some(*number),
            Value::Text(_) => None,
        }
    }
}

/// The type of markers of one sort with such attributes.
pub(super) struct Schema {
    pub(super) type_name: String,
    pub(super) fields: Vec<RuntimeSchemaMarkerField>,
    /// A label that shows all of them with their names.
    pub(super) shown: String,
}

impl Schema {
    /// Types of other sorts, or with other fields, have other names.
    pub(super) fn of(sort: &str, names: &Names, machine: &ExportMachine) -> Self {
        let names: Vec<(&str, Form)> =
            names.iter().map(|&(name, form)| (machine.string(name), form)).collect();
        // Their own names could be those that the format has for other things.
        let fields = names.iter().zip(0..).map(|(&(name, form), number)| {
            let (format, flags) = match form {
                Form::Text => (MarkerFieldFormat::String, MarkerFieldFlags::SEARCHABLE),
                Form::Number => (MarkerFieldFormat::Integer, MarkerFieldFlags::empty()),
            };
            RuntimeSchemaMarkerField {
                key: format!("attribute{number}"),
                label: name.to_owned(),
                format,
                flags,
            }
        });
        let fields: Vec<_> = fields.collect();
        let shown = fields.iter().map(|RuntimeSchemaMarkerField { key, label, .. }| {
            // What is in braces stands for something.
            let label = label.replace('{', "(").replace('}', ")");
            format!("{label}: {{marker.data.{key}}}")
        });
        let shown: Vec<_> = shown.collect();
        Self { type_name: type_name(sort, &names), fields, shown: shown.join(", ") }
    }
}

fn type_name(sort: &str, names: &[(&str, Form)]) -> String {
    let told = names.iter().map(|&(name, form)| match form {
        Form::Text => quoted(name),
        Form::Number => (quoted(name).into_owned() + " (number)").into(),
    });
    let told: Vec<_> = told.collect();
    if told.is_empty() { sort.to_owned() } else { format!("{sort}: {}", told.join(", ")) }
}

/// A name; in quotes where it could be taken for another, or for more than one.
pub(super) fn quoted(name: &str) -> Cow<'_, str> {
    if name.contains([',', '"', '(']) || name.contains(": ") {
        format!("{name:?}").into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_text() {
        for (number, form) in [
            (0, Form::Number),
            (1 << 53, Form::Number),
            ((1 << 53) + 1, Form::Text),
            (-(1 << 53), Form::Number),
            (-(1 << 53) - 1, Form::Text),
            (i64::MIN, Form::Text),
        ] {
            assert_eq!(Form::of(AttributeValue::Number(number)), form, "{number}");
        }
    }

    #[test]
    fn types_with_other_fields_have_other_names() {
        use Form::{Number, Text};
        for (names, expected) in [
            (&[][..], "span"),
            (&[("path", Text), ("bytes", Number)], "span: path, bytes (number)"),
            (&[("bytes", Text)], "span: bytes"),
            (&[("bytes (number)", Text)], r#"span: "bytes (number)""#),
            (&[("a, b", Text)], r#"span: "a, b""#),
            (&[("a: b", Text)], r#"span: "a: b""#),
            (&[("\"a\"", Text)], r#"span: "\"a\"""#),
        ] {
            assert_eq!(type_name("span", names), expected);
        }
    }
}
