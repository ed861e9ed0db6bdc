//! A sample's attributes in, a list of labels out.

use collector_common::record::{AttributeListId, AttributeValue, ExportMachine};

use super::wire::text;
use crate::leb128;

/// What is said of a stack, or of the fields, as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Quality {
    /// Some of its frames were found by a heuristic.
    pub(super) is_guessed: bool,
    /// It ends before its root.
    pub(super) is_cut: bool,
    /// The event's fields do not say all that the event did.
    pub(super) is_partial: bool,
}

const TEXT: u8 = 5;
const NUMBER: u8 = 6;
const LAST: u8 = 0x80;

/// The most bytes of a list; a label that does not fit is left out.
const LARGEST: usize = 1 << 20;

/// Makes a list, or nothing where there is nothing to say.
pub(super) fn list(machine: &ExportMachine, attributes: AttributeListId, quality: Quality) -> Vec<u8> {
    let said = [
        ("frames", "guessed", quality.is_guessed),
        ("stack", "cut", quality.is_cut),
        ("fields", "partial", quality.is_partial),
    ];
    let said = said.into_iter().filter(|(.., is_so)| *is_so).map(|(key, value, _)| (key, Value::Text(value)));
    let recorded = machine.attributes().get(attributes).iter();
    let recorded = recorded.map(|&(key, value)| {
        let value = match value {
            AttributeValue::Label(text) => Value::Text(machine.string(text)),
            AttributeValue::Number(number) => Value::Number(number),
        };
        (machine.string(key), value)
    });
    let mut out = Vec::new();
    let mut last = None;
    for (key, value) in said.chain(recorded) {
        let start = out.len();
        label(&mut out, key, value);
        if out.len() > LARGEST {
            out.truncate(start);
        } else {
            last = Some(start);
        }
    }
    if let Some(kind) = last.and_then(|last| out.get_mut(last)) {
        *kind |= LAST;
    }
    out
}

/// What a label says.
#[derive(Clone, Copy)]
enum Value<'a> {
    Text(&'a str),
    Number(i64),
}

fn label(out: &mut Vec<u8>, key: &str, value: Value<'_>) {
    out.push(if matches!(value, Value::Number(_)) { NUMBER } else { TEXT });
    text(out, key);
    match value {
        Value::Number(number) => leb128::write(out, leb128::zigzag(number)),
        Value::Text(value) => text(out, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, after the specification.
    #[test]
    fn the_last_label_is_marked() {
        let mut machine = ExportMachine::default();
        let [a, text, padded] = ["a", "x", "07"].map(|string| machine.intern_string(string));
        let list_of = |machine: &mut ExportMachine, labels: &[_]| {
            machine.attributes_mut().intern::<AttributeValue>(labels)
        };
        let number = list_of(&mut machine, &[(a, AttributeValue::Number(-3))]);
        let both = list_of(&mut machine, &[(a, text.into()), (text, padded.into())]);
        let cut = Quality { is_cut: true, ..Quality::default() };
        assert_eq!(list(&machine, number, Quality::default()), b"\x86\x01a\x05");
        assert_eq!(list(&machine, both, Quality::default()), b"\x05\x01a\x01x\x85\x01x\x0207");
        assert_eq!(list(&machine, AttributeListId::NONE, cut), b"\x85\x05stack\x03cut");
        assert!(list(&machine, AttributeListId::NONE, Quality::default()).is_empty());
    }
}
