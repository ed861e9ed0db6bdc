//! Stacks in, the distinct paths of what stands for their frames out, sorted: each shares as much with the one before it as with
//! any, so that the nodes of a tree come one after the other, without a table of them.

use collector_common::intern::StackId;
use collector_common::record::{ExportMachine, FrameId};

use crate::lists::Lists;

/// Distinct paths, root first, sorted, and which of them stacks have.
#[derive(Debug)]
pub(super) struct Paths {
    paths: Lists<u32>,
    /// By stack; 0 for those that are not used.
    of_stacks: Vec<u32>,
}

impl Paths {
    /// The paths of some stacks, each of which is made of the stack's frames, leaf first.
    pub(super) fn of(
        machine: &ExportMachine,
        stacks: impl Iterator<Item = StackId>,
        path: impl Fn(&[FrameId], &mut Vec<u32>),
    ) -> Self {
        let mut is_used = vec![false; machine.stacks().len()];
        for stack in stacks {
            if let Some(is_used) = is_used.get_mut(stack.0 as usize) {
                *is_used = true;
            }
        }
        let ids = (0..).map(StackId).zip(is_used);
        let used: Vec<StackId> = ids.filter(|(_, is_used)| *is_used).map(|(id, _)| id).collect();
        let mut unsorted = Lists::default();
        let mut own = Vec::new();
        for &stack in &used {
            own.clear();
            path(machine.stacks().get(stack), &mut own);
            unsorted.push(own.iter().copied());
        }
        let at = |position: u32| unsorted.get(position as usize);
        let mut order: Vec<u32> = (0..).take(used.len()).collect();
        order.sort_unstable_by(|&a, &b| at(a).cmp(at(b)));
        let mut of_stacks = vec![0; machine.stacks().len()];
        let mut paths = Lists::default();
        for same in order.chunk_by(|&a, &b| at(a) == at(b)) {
            let position = paths.push(at(same[0]).iter().copied()) as u32;
            for &stack in same {
                of_stacks[used[stack as usize].0 as usize] = position;
            }
        }
        Self { paths, of_stacks }
    }

    /// A path; an empty one where there is none.
    pub(super) fn get(&self, path: u32) -> &[u32] {
        self.paths.get(path as usize)
    }

    /// Where the path is of a stack that was among those that were given.
    pub(super) fn of_stack(&self, stack: StackId) -> u32 {
        self.of_stacks.get(stack.0 as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_with_one_path_have_one() {
        let mut machine = ExportMachine::default();
        let stack = |machine: &mut ExportMachine, frames: &[u32]| {
            machine.intern_stack(&frames.iter().copied().map(FrameId).collect::<Vec<_>>())
        };
        let [long, unused, short, other] =
            [&[3, 2, 9][..], &[5], &[9], &[8, 7, 4]].map(|frames| stack(&mut machine, frames));
        // Two frames are one each, beside each other.
        let paths = Paths::of(&machine, [long, short, other].into_iter(), |frames, path| {
            path.extend(frames.iter().rev().map(|frame| frame.0 / 2));
        });
        assert_eq!(paths.get(paths.of_stack(long)), [4, 1, 1]);
        assert_eq!(paths.get(paths.of_stack(other)), [2, 3, 4]);
        assert_eq!([other, short, long].map(|stack| paths.of_stack(stack)), [0, 1, 2]);
        assert_eq!((paths.of_stack(unused), paths.get(3)), (0, &[][..]));
    }
}
