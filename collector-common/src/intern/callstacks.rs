//! Call stacks in, [`StackId`] out; one copy of each list of frames in one arena.

use std::hash::{BuildHasher, BuildHasherDefault};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::record::FrameId;

/// Names a call stack of one [`InternedCallstacks`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

impl StackId {
    /// The stack without frames; present in every [`InternedCallstacks`].
    pub const EMPTY: Self = Self(0);
}

/// A set of call stacks, leaf first. Ids are dense and count up from 0, the empty stack.
#[derive(Debug)]
pub struct InternedCallstacks {
    frames: Vec<FrameId>,
    /// End of each stack in `frames`; it starts where the one before ends.
    ends: Vec<usize>,
    index: HashTable<StackId>,
    hasher: BuildHasherDefault<FxHasher>,
}

impl Default for InternedCallstacks {
    fn default() -> Self {
        let mut stacks = Self {
            frames: Vec::new(),
            ends: Vec::new(),
            index: HashTable::new(),
            hasher: BuildHasherDefault::default(),
        };
        stacks.intern(&[]);
        stacks
    }
}

impl InternedCallstacks {
    /// The id of `stack` (leaf first), which is stored if it is new.
    ///
    /// # Panics
    /// When more than `u32::MAX` stacks are stored.
    pub fn intern(&mut self, stack: &[FrameId]) -> StackId {
        let hash = self.hasher.hash_one(stack);
        let (frames, ends) = (&self.frames, &self.ends);
        if let Some(&id) = self.index.find(hash, |&id| slice(frames, ends, id) == stack) {
            return id;
        }
        assert!(self.ends.len() < u32::MAX as usize, "more than 4 billion distinct stacks");
        let id = StackId(self.ends.len() as u32);
        self.frames.extend_from_slice(stack);
        self.ends.push(self.frames.len());
        let (frames, ends, hasher) = (&self.frames, &self.ends, &self.hasher);
        self.index.insert_unique(hash, id, |&id| hasher.hash_one(slice(frames, ends, id)));
        id
    }

    /// The frames of a stack, leaf first; none for an id of another set.
    pub fn get(&self, id: StackId) -> &[FrameId] {
        slice(&self.frames, &self.ends, id)
    }

    /// Number of distinct stacks.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never true: the empty stack is always there.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All stacks in the order of their ids, leaf first.
    pub fn iter(&self) -> impl Iterator<Item = &[FrameId]> {
        (0..self.ends.len() as u32).map(|id| self.get(StackId(id)))
    }
}

fn slice<'a>(frames: &'a [FrameId], ends: &[usize], id: StackId) -> &'a [FrameId] {
    let index = id.0 as usize;
    let Some(&end) = ends.get(index) else { return &[] };
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &frames[start..end]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_map(
            stacks in proptest::collection::vec(proptest::collection::vec(0_u32..4, 0..4), 0..200)
        ) {
            let mut interned = InternedCallstacks::default();
            let mut model: HashMap<Vec<FrameId>, StackId> = HashMap::from([(Vec::new(), StackId::EMPTY)]);
            for stack in &stacks {
                let stack: Vec<FrameId> = stack.iter().copied().map(FrameId).collect();
                let next = StackId(model.len() as u32);
                let expected = *model.entry(stack.clone()).or_insert(next);
                prop_assert_eq!(interned.intern(&stack), expected);
                prop_assert_eq!(interned.get(expected), &stack[..]);
            }
            prop_assert_eq!(interned.len(), model.len());
        }
    }
}
