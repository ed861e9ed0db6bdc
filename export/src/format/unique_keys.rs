//! A list of attributes in, the same with each key once out, for the formats whose readers take a key that is there twice for an error, or
//! for one value.
//!
//! One that was there before has its number behind it: `k`, `k_2`, `k_3`.

use std::collections::HashSet;

use collector_common::intern::StringId;
use collector_common::record::{AttributeValue, ExportMachine};

use crate::table::Table;

/// The key of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key<'a> {
    /// What it was called.
    pub(super) name: StringId,
    /// How often that was numbered: 0 where it is called so still. With the name it is one text, whichever list it is in, where nothing is
    /// taken beforehand.
    pub(super) number: u32,
    pub(super) text: &'a str,
}

/// Gives all of a list with keys that are neither there twice nor taken beforehand.
pub(super) fn each(
    machine: &ExportMachine,
    list: &[(StringId, AttributeValue)],
    taken: &[&str],
    mut give: impl FnMut(Key<'_>, AttributeValue),
) {
    if !may_repeat(list) && !list.iter().any(|&(name, _)| taken.contains(&machine.string(name))) {
        for &(name, value) in list {
            give(Key { name, number: 0, text: machine.string(name) }, value);
        }
        return;
    }
    let mut taken: HashSet<String> = taken.iter().map(|&key| key.to_owned()).collect();
    let mut numbers: Table<StringId, u32> = Table::default();
    for &(name, value) in list {
        let plain = machine.string(name);
        let number = numbers.entry(name).or_default();
        let mut text = plain.to_owned();
        while !taken.insert(text.clone()) {
            *number += 1;
            text = format!("{plain}_{}", *number + 1);
        }
        give(Key { name, number: *number, text: &text }, value);
    }
}

/// Whether a name is there twice, or there are more than it is worth looking for that.
fn may_repeat(list: &[(StringId, AttributeValue)]) -> bool {
    const FEW: usize = 16;
    let is_repeated = |at: usize| list[..at].iter().any(|(name, _)| *name == list[at].0);
    list.len() > FEW || (1..list.len()).any(is_repeated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str], taken: &[&str]) -> Vec<String> {
        let mut machine = ExportMachine::default();
        let list: Vec<_> = names
            .iter()
            .zip(0..)
            .map(|(name, at)| (machine.intern_string(name), AttributeValue::Number(at)))
            .collect();
        let mut keys = Vec::new();
        each(&machine, &list, taken, |key, value| {
            assert_eq!(value, AttributeValue::Number(keys.len() as i64), "the order stays");
            assert_eq!(key.number == 0, key.text == machine.string(key.name));
            keys.push(key.text.to_owned());
        });
        keys
    }

    #[test]
    fn a_key_that_was_there_has_its_number() {
        assert!(keys(&[], &["a"]).is_empty());
        assert_eq!(keys(&["a", "b"], &["c"]), ["a", "b"]);
        assert_eq!(keys(&["a", "b", "a", "a"], &[]), ["a", "b", "a_2", "a_3"]);
        assert_eq!(keys(&["a_2", "a", "a"], &[]), ["a_2", "a", "a_3"]);
        assert_eq!(keys(&["a", "a", "a_2"], &[]), ["a", "a_2", "a_2_2"]);
        assert_eq!(keys(&["a", "b"], &["b"]), ["a", "b_2"]);
        let many = [&["a"; 2][..], &["b"; 20]].concat();
        assert_eq!(keys(&many, &["b"]).last().unwrap(), "b_21");
        assert_eq!(keys(&["x"; 1_000], &[]).last().unwrap(), "x_1000");
    }
}
