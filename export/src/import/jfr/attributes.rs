//! Attributes as our own files have them in, keys and values out: `key=value` with `, ` between, a `\` before what is one of `\`, `,`
//! and `=` itself. Those that are numbers have a field each, too, which is labelled with the key.

use super::events::{Struct, Type};

/// Takes them apart. What is no pair is left out.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let (mut key, mut part) = (None, String::new());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => part.extend(letters.next()),
            '=' if key.is_none() => key = Some(std::mem::take(&mut part)),
            ',' => {
                let value = std::mem::take(&mut part);
                pairs.extend(key.take().map(|key| (key, value)));
                // The space behind it.
                letters.next();
            }
            _ => part.push(letter),
        }
    }
    pairs.extend(key.map(|key| (key, part)));
    pairs
}

/// The most fields that are looked at: ours have fewer.
const MOST: usize = 64;

/// What a field has where an event has no such attribute.
const MISSING: i64 = i64::MIN;

/// Fields of a type that are attributes: their positions and keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers(Vec<(usize, String)>);

impl Numbers {
    /// They are behind that of all attributes.
    pub(super) fn of(kind: &Type) -> Self {
        let fields = kind.fields().iter().enumerate().skip_while(|(_, field)| field.name() != "attributes");
        let numbers = fields.skip(1).take(MOST).map(|(position, field)| {
            let label = field.annotation("jdk.jfr.Label").unwrap_or_default();
            (position, label.to_owned())
        });
        Self(numbers.collect())
    }

    /// Which of them an event has: a bit for each.
    pub(super) fn there(&self, event: &Struct<'_>) -> u64 {
        let number = |position| event.at(position).integer().is_some_and(|number| number != MISSING);
        self.0.iter().zip(0..).fold(0, |all, (&(position, _), bit)| all | u64::from(number(position)) << bit)
    }

    /// The number that an attribute is, where it is one. Of a key that is there several times each has a field of its own: `taken` has a bit
    /// for those of the attributes before.
    pub(super) fn number(
        &self,
        event: &Struct<'_>,
        (key, value): (&str, &str),
        taken: &mut u64,
    ) -> Option<i64> {
        let free = self.0.iter().zip(0..).filter(|((_, label), bit)| label == key && *taken >> bit & 1 == 0);
        let mut numbers = free.filter_map(|((position, _), bit)| Some((event.at(*position).integer()?, bit)));
        let (number, bit) = numbers.find(|(number, _)| *number != MISSING && number.to_string() == value)?;
        *taken |= 1 << bit;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_marked_is_part_of_the_text() {
        let told = |text| -> Vec<String> {
            pairs(text).into_iter().map(|(key, value)| format!("{key}|{value}")).collect()
        };
        assert!(told("").is_empty());
        assert_eq!(told("a=b"), ["a|b"]);
        assert_eq!(told(r"a\=\,=b\\c, d="), [r"a=,|b\c", "d|"]);
        assert_eq!(told("nothing, a=b=c"), ["a|b=c"]);
        assert_eq!(told("a=\\"), ["a|"]);
    }
}
