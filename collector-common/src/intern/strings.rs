//! Strings in, [`StringId`] out; one copy of each string in one arena.

use std::hash::{BuildHasher, BuildHasherDefault};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// Names a string of one [`InternedStrings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StringId(pub u32);

impl StringId {
    /// The empty string; present in every [`InternedStrings`].
    pub const EMPTY: Self = Self(0);
}

/// A set of strings. Ids are dense and count up from 0, the empty string.
#[derive(Debug)]
pub struct InternedStrings {
    text: String,
    /// End of each string in `text`; it starts where the one before ends.
    ends: Vec<usize>,
    index: HashTable<StringId>,
    hasher: BuildHasherDefault<FxHasher>,
}

impl Default for InternedStrings {
    fn default() -> Self {
        let mut strings = Self {
            text: String::new(),
            ends: Vec::new(),
            index: HashTable::new(),
            hasher: BuildHasherDefault::default(),
        };
        strings.intern("");
        strings
    }
}

impl InternedStrings {
    /// The id of `string`, which is stored if it is new.
    ///
    /// # Panics
    /// When more than `u32::MAX` strings are stored.
    pub fn intern(&mut self, string: &str) -> StringId {
        let hash = self.hasher.hash_one(string);
        let (text, ends) = (&self.text, &self.ends);
        if let Some(&id) = self.index.find(hash, |&id| slice(text, ends, id) == string) {
            return id;
        }
        assert!(self.ends.len() < u32::MAX as usize, "more than 4 billion distinct strings");
        let id = StringId(self.ends.len() as u32);
        self.text.push_str(string);
        self.ends.push(self.text.len());
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.index.insert_unique(hash, id, |&id| hasher.hash_one(slice(text, ends, id)));
        id
    }

    /// The string behind an id of this set; empty for an id of another.
    pub fn get(&self, id: StringId) -> &str {
        slice(&self.text, &self.ends, id)
    }

    /// Number of distinct strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never true: the empty string is always there.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All strings in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u32).map(|id| self.get(StringId(id)))
    }
}

fn slice<'a>(text: &'a str, ends: &[usize], id: StringId) -> &'a str {
    let index = id.0 as usize;
    let Some(&end) = ends.get(index) else { return "" };
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &text[start..end]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_map(words in proptest::collection::vec("[a-c]{0,3}", 0..200)) {
            let mut strings = InternedStrings::default();
            let mut model: HashMap<String, StringId> = HashMap::from([(String::new(), StringId::EMPTY)]);
            for word in &words {
                let next = StringId(model.len() as u32);
                let expected = *model.entry(word.clone()).or_insert(next);
                prop_assert_eq!(strings.intern(word), expected);
                prop_assert_eq!(strings.get(expected), word);
            }
            prop_assert_eq!(strings.len(), model.len());
        }
    }
}
