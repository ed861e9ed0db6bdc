//! Call stacks in, [`StackId`] out; one copy of each list of frames.

use std::ops::Range;

use super::arena::Chunk;
use super::set::Set;
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
pub struct InternedCallstacks(Set<Vec<FrameId>>);

impl Default for InternedCallstacks {
    fn default() -> Self {
        Self(Set::new([].as_slice()))
    }
}

impl InternedCallstacks {
    /// The id of `stack` (leaf first), which is stored if it is new.
    ///
    /// # Panics
    /// When more than `u32::MAX` stacks are stored, or one has more frames than that.
    pub fn intern(&mut self, stack: &[FrameId]) -> StackId {
        StackId(self.0.intern(stack))
    }

    /// The frames of a stack, leaf first; none for an id of another set.
    pub fn get(&self, id: StackId) -> &[FrameId] {
        self.0.get(id.0).unwrap_or(&[])
    }

    /// Number of distinct stacks.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never true: the empty stack is always there.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// All stacks in the order of their ids, leaf first.
    pub fn iter(&self) -> impl Iterator<Item = &[FrameId]> {
        self.0.iter()
    }
}

impl Chunk for Vec<FrameId> {
    type Item = [FrameId];

    fn with_capacity(frames: usize) -> Self {
        Self::with_capacity(frames)
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn push(&mut self, stack: &[FrameId]) {
        self.extend_from_slice(stack);
    }

    #[inline]
    fn get(&self, range: Range<usize>) -> Option<&[FrameId]> {
        <[FrameId]>::get(self, range)
    }

    fn units(stack: &[FrameId]) -> usize {
        stack.len()
    }

    #[inline]
    fn bytes(stack: &[FrameId]) -> &[u8] {
        bytemuck::cast_slice(stack)
    }

    #[inline]
    fn bytes_of(&self, range: Range<usize>) -> Option<&[u8]> {
        <[FrameId]>::get(self, range).map(bytemuck::cast_slice)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Each case is long, so that pieces of the table split.
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn behaves_like_a_map(
            few in proptest::collection::vec(proptest::collection::vec(0_u32..4, 0..4), 0..200),
            many in proptest::collection::vec(proptest::collection::vec(0_u32..20, 3..6), 0..5000),
        ) {
            let mut interned = InternedCallstacks::default();
            let mut model: HashMap<Vec<FrameId>, StackId> = HashMap::from([(Vec::new(), StackId::EMPTY)]);
            let mut list = vec![Vec::new()];
            for stack in few.iter().chain(&many) {
                let stack: Vec<FrameId> = stack.iter().copied().map(FrameId).collect();
                let next = StackId(model.len() as u32);
                let expected = *model.entry(stack.clone()).or_insert(next);
                if expected == next {
                    list.push(stack.clone());
                }
                prop_assert_eq!(interned.intern(&stack), expected);
                prop_assert_eq!(interned.get(expected), &stack[..]);
            }
            prop_assert_eq!(interned.len(), model.len());
            prop_assert!(interned.iter().eq(list.iter().map(Vec::as_slice)));
        }
    }
}
