//! Attributes that are numbers in, fields of a type of events out.
//!
//! An event has its attributes as one text. Those that are numbers are fields beside that, so that readers can compare them and add
//! them up: each is labelled with the attribute's name, and is behind the fields of the type's own. An event without the attribute has
//! the smallest number there, as events of the JDK have, whose `jfr print` shows `N/A` for it. An attribute that is there several times has
//! as many fields with that label, for its numbers in their order.

use collector_common::intern::StringId;
use collector_common::record::{AttributeListId, AttributeValue, ExportMachine};

use super::types::Class;
use super::wire::long;
use crate::table::{KeySet, Table};

/// The most fields of a type, since each takes 9 bytes of an event without it. Numbers of other names are text alone.
const MOST: usize = 16;

const MISSING: i64 = i64::MIN;

/// What readers take for something else where it is a field of an event of samples.
const KNOWN: [&str; 5] = ["value", "duration", "samples", "timeSpan", "weight"];

/// Names of a type's attributes that are numbers, each with how many numbers of that name an event has before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    met: KeySet<AttributeListId>,
    names: Vec<(StringId, u32)>,
}

impl Numbers {
    /// Those of spans.
    pub(super) fn of_spans(machine: &ExportMachine) -> Self {
        let mut numbers = Self::default();
        machine.spans().iter().for_each(|span| numbers.add(machine, span.attributes));
        numbers
    }

    /// Events of the type may have these attributes.
    pub(super) fn add(&mut self, machine: &ExportMachine, list: AttributeListId) {
        if !self.met.insert(list) {
            return;
        }
        let mut before: Table<StringId, u32> = Table::default();
        for &(name, value) in machine.attributes().get(list) {
            if self.names.len() >= MOST {
                return;
            }
            if !matches!(value, AttributeValue::Number(_)) {
                continue;
            }
            let before = before.entry(name).or_default();
            if !self.names.contains(&(name, *before)) {
                self.names.push((name, *before));
            }
            *before += 1;
        }
    }

    /// Adds the fields to the type.
    pub(super) fn add_to(&self, machine: &ExportMachine, class: &mut Class) {
        for &(name, _) in &self.names {
            let label = machine.string(name);
            let plain = identifier(label);
            let is_taken = |name: &String| {
                let mut own = class.fields.iter().map(|field| field.name).chain(KNOWN);
                own.any(|own| own == name) || class.numbers.iter().any(|(taken, _)| taken == name)
            };
            let numbered = (2..).map(|number| format!("{plain}{number}"));
            let name = [plain.clone()].into_iter().chain(numbered).find(|name| !is_taken(name));
            class.numbers.push((name.unwrap_or_default(), label.to_owned()));
        }
    }

    /// The values of the fields.
    pub(super) fn write(&self, machine: &ExportMachine, list: AttributeListId, out: &mut Vec<u8>) {
        let list = machine.attributes().get(list);
        for &(wanted, before) in &self.names {
            let mut numbers = list.iter().filter_map(|&(name, value)| match value {
                AttributeValue::Number(number) if name == wanted => Some(number),
                _ => None,
            });
            let number = numbers.nth(before as usize);
            long(out, number.unwrap_or(MISSING).cast_unsigned());
        }
    }
}

/// A name as Java's fields have them: `bytesRead` for `bytes_read`.
fn identifier(label: &str) -> String {
    let words = label.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words {
        if name.is_empty() {
            name.push_str(word);
        } else {
            name.push_str(&word[..1].to_ascii_uppercase());
            name.push_str(&word[1..]);
        }
    }
    if name.starts_with(|letter: char| letter.is_ascii_alphabetic()) { name } else { format!("number{name}") }
}

#[cfg(test)]
mod tests {
    use super::super::types::{Field, event};
    use super::*;

    #[test]
    fn fields_have_names_of_their_own() {
        let mut machine = ExportMachine::default();
        let mut numbers = Numbers::default();
        let names = ["bytes_read", "value", "cpu", "bytes read", "7", "größe", "a", "", "b"];
        for name in names {
            let name = machine.intern_string(name);
            let list = machine.attributes_mut().intern(&[(name, AttributeValue::Number(5))]);
            numbers.add(&machine, list);
        }
        let label = machine.intern_string("label");
        let list = machine.attributes_mut().intern(&[(label, label)]);
        numbers.add(&machine, list);
        let mut class = event(100, "a", "", &[], &[Field::int("cpu", "CPU")]);
        numbers.add_to(&machine, &mut class);
        let fields: Vec<_> =
            class.numbers.iter().map(|(name, label)| (name.as_str(), label.as_str())).collect();
        let expected = ["bytesRead", "value2", "cpu2", "bytesRead2", "number7", "grE", "a", "number", "b"];
        assert_eq!(fields, expected.into_iter().zip(names).collect::<Vec<_>>());
    }

    #[test]
    fn a_name_that_is_there_again_has_a_further_field() {
        let mut machine = ExportMachine::default();
        let [n, m] = ["n", "m"].map(|name| machine.intern_string(name));
        let label = machine.intern_string("x").into();
        let number = AttributeValue::Number;
        let list = [(n, number(1)), (m, number(2)), (n, label), (n, number(3))];
        let list = machine.attributes_mut().intern(&list);
        let mut numbers = Numbers::default();
        numbers.add(&machine, list);
        let mut class = event(100, "a", "", &[], &[]);
        numbers.add_to(&machine, &mut class);
        let fields: Vec<_> =
            class.numbers.iter().map(|(name, label)| (name.as_str(), label.as_str())).collect();
        assert_eq!(fields, [("n", "n"), ("m", "m"), ("n2", "n")]);
        let mut out = Vec::new();
        numbers.write(&machine, list, &mut out);
        assert_eq!(out, [1, 2, 3]);
    }

    #[test]
    fn a_type_has_so_many_and_no_more() {
        let mut machine = ExportMachine::default();
        let names: Vec<_> = (0..20).map(|number| machine.intern_string(&format!("n{number}"))).collect();
        let list: Vec<_> = names.iter().map(|&name| (name, AttributeValue::Number(1))).collect();
        let list = machine.attributes_mut().intern(&list);
        let mut numbers = Numbers::default();
        numbers.add(&machine, list);
        let mut out = Vec::new();
        numbers.write(&machine, list, &mut out);
        assert_eq!(out, [1; MOST]);
        out.clear();
        numbers.write(&machine, AttributeListId::NONE, &mut out);
        // By hand: 63 bits of 0, 7 in a byte, and the highest.
        assert_eq!(out, [128, 128, 128, 128, 128, 128, 128, 128, 128].repeat(MOST));
    }
}
