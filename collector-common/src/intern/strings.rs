//! Strings in, [`StringId`] out; one copy of each string.

use std::ops::Range;

use super::arena::Chunk;
use super::set::Set;

/// Names a string of one [`InternedStrings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StringId(pub u32);

impl StringId {
    /// The empty string; present in every [`InternedStrings`].
    pub const EMPTY: Self = Self(0);
}

/// A set of strings. Ids are dense and count up from 0, the empty string.
#[derive(Debug)]
pub struct InternedStrings(Set<String>);

impl Default for InternedStrings {
    fn default() -> Self {
        Self(Set::new(""))
    }
}

impl InternedStrings {
    /// The id of `string`, which is stored if it is new.
    ///
    /// # Panics
    /// When more than `u32::MAX` strings are stored, or one has more bytes than that.
    pub fn intern(&mut self, string: &str) -> StringId {
        StringId(self.0.intern(string))
    }

    /// The string behind an id of this set; empty for an id of another.
    pub fn get(&self, id: StringId) -> &str {
        self.0.get(id.0).unwrap_or("")
    }

    /// Number of distinct strings.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never true: the empty string is always there.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// All strings in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter()
    }
}

impl Chunk for String {
    type Item = str;

    fn with_capacity(bytes: usize) -> Self {
        Self::with_capacity(bytes)
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn push(&mut self, string: &str) {
        self.push_str(string);
    }

    #[inline]
    fn get(&self, range: Range<usize>) -> Option<&str> {
        str::get(self, range)
    }

    fn units(string: &str) -> usize {
        string.len()
    }

    #[inline]
    fn bytes(string: &str) -> &[u8] {
        string.as_bytes()
    }

    #[inline]
    fn bytes_of(&self, range: Range<usize>) -> Option<&[u8]> {
        self.as_bytes().get(range)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Interns in turn, and compares with a map and a list.
    fn behaves_like_a_map<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<(), TestCaseError> {
        let mut strings = InternedStrings::default();
        let mut model: HashMap<String, StringId> = HashMap::from([(String::new(), StringId::EMPTY)]);
        let mut list = vec![""];
        for word in words {
            let next = StringId(model.len() as u32);
            let expected = *model.entry(word.to_owned()).or_insert(next);
            if expected == next {
                list.push(word);
            }
            prop_assert_eq!(strings.intern(word), expected);
            prop_assert_eq!(strings.get(expected), word);
        }
        prop_assert_eq!(strings.len(), model.len());
        prop_assert!(strings.iter().eq(list));
        prop_assert_eq!(strings.get(StringId(model.len() as u32)), "");
        Ok(())
    }

    proptest! {
        #[test]
        fn few_words_that_repeat(words in proptest::collection::vec("[a-c]{0,3}", 0..200)) {
            behaves_like_a_map(words.iter().map(String::as_str))?;
        }
    }

    proptest! {
        // Each case is long, so that pieces of the table split.
        #![proptest_config(ProptestConfig::with_cases(4))]

        #[test]
        fn many_words_and_some_longer_than_a_chunk(
            words in proptest::collection::vec(0_u32..9000, 8000),
            long in proptest::collection::vec(0_usize..200_000, 0..4),
        ) {
            let long = long.iter().map(|length| "ü".repeat(*length));
            let words: Vec<String> = words.iter().map(|word| format!("{word:x}")).chain(long).collect();
            behaves_like_a_map(words.iter().rev().chain(&words).map(String::as_str))?;
        }
    }
}
