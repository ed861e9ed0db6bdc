//! Stacks as ETW has them, which are addresses in two halves, or keys of such: each half is kept once, and each pair of halves.

use std::collections::HashMap;

use collector_common::ids::Svma;
use collector_common::intern::{InternedCallstacks, Seeded, StackId};
use collector_common::record::{Frame, FrameFlags, FrameId, InternedFrames, ModuleId};
use windows_etw::decode::state::{Half, StackId as KeyUse};

/// Distinct addresses that are kept.
const MOST_ADDRESSES: usize = 1 << 28;

/// Frames of a stack that are kept, the innermost: more than ETW ever walks.
const DEEPEST: usize = 1 << 14;

/// One half of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Part {
    #[default]
    Nothing,
    Own(StackId),
    /// What that is, is known when all records have been taken.
    Shared(KeyUse),
}

/// All stacks of a trace. A [`StackId`] that it gives is the number of a pair; [`StackId::EMPTY`] is that without frames.
#[derive(Debug)]
pub(super) struct RawStacks {
    /// The module means nothing.
    addresses: InternedFrames,
    halves: InternedCallstacks,
    pairs: Vec<[Part; 2]>,
    index: HashMap<[Part; 2], StackId, Seeded>,
    /// Kept for its memory.
    frames: Vec<FrameId>,
    left_out: u64,
}

impl Default for RawStacks {
    fn default() -> Self {
        let nothing = [Part::Nothing; 2];
        Self {
            addresses: InternedFrames::default(),
            halves: InternedCallstacks::default(),
            pairs: vec![nothing],
            index: HashMap::from_iter([(nothing, StackId::EMPTY)]),
            frames: Vec::new(),
            left_out: 0,
        }
    }
}

impl RawStacks {
    /// The number of a stack, kernel and user half.
    pub(super) fn intern(&mut self, kernel: Option<&Half>, user: Option<&Half>) -> StackId {
        if kernel.is_none() && user.is_none() {
            return StackId::EMPTY;
        }
        let pair = [self.part(kernel), self.part(user)];
        let next = StackId(self.pairs.len() as u32);
        let id = *self.index.entry(pair).or_insert(next);
        if id == next {
            self.pairs.push(pair);
        }
        id
    }

    /// Writes the addresses of a stack, innermost first; `shared` tells those of a key.
    pub(super) fn addresses<'a>(
        &'a self,
        stack: StackId,
        shared: impl Fn(KeyUse) -> Option<&'a [u64]>,
        into: &mut Vec<u64>,
    ) {
        into.clear();
        for part in self.pairs.get(stack.0 as usize).copied().unwrap_or_default() {
            match part {
                Part::Nothing => {}
                Part::Own(half) => {
                    into.extend(self.halves.get(half).iter().map(|id| self.addresses.get(*id).address.0));
                }
                Part::Shared(key) => into.extend_from_slice(shared(key).unwrap_or_default()),
            }
        }
        into.truncate(DEEPEST);
    }

    /// Halves that there was no room for.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }

    fn part(&mut self, half: Option<&Half>) -> Part {
        let addresses = match half {
            None => return Part::Nothing,
            Some(Half::Shared(key)) => return Part::Shared(*key),
            Some(Half::Frames(addresses)) => addresses,
        };
        if self.addresses.len() + addresses.len() > MOST_ADDRESSES {
            self.left_out += 1;
            return Part::Nothing;
        }
        self.frames.clear();
        for address in addresses.iter().take(DEEPEST) {
            let address = Svma(*address);
            let frame = Frame { module: ModuleId::KERNEL, address, flags: FrameFlags::default() };
            self.frames.push(self.addresses.intern(frame));
        }
        Part::Own(self.halves.intern(&self.frames))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_put_together() {
        let mut stacks = RawStacks::default();
        let (kernel, user) = (Half::Frames([9, 8].into()), Half::Frames([3, 2, 3].into()));
        let both = stacks.intern(Some(&kernel), Some(&user));
        let shared = stacks.intern(Some(&Half::Shared(KeyUse(5))), Some(&user));
        assert_eq!(stacks.intern(None, None), StackId::EMPTY);
        assert_eq!(stacks.intern(Some(&kernel), Some(&user)), both);
        let known = [70, 71];
        let addresses = |stack| {
            let mut into = vec![1];
            stacks.addresses(stack, |key| (key == KeyUse(5)).then_some(&known[..]), &mut into);
            into
        };
        assert_eq!(addresses(both), [9, 8, 3, 2, 3]);
        assert_eq!(addresses(shared), [70, 71, 3, 2, 3]);
        assert_eq!((addresses(StackId::EMPTY).len(), stacks.pairs.len()), (0, 3));
    }
}
