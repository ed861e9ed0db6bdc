//! The prefix tree of stacks: paths of frames (root first) in, nodes in depth-first order out, so that the nodes
//! below a node follow it directly.

use crate::lists::Lists;

/// Paths of frames, root first, in one arena.
pub(crate) type Paths = Lists<u32>;

/// A prefix tree. Every node's parent is the nearest node before it with a smaller depth.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PrefixTree {
    /// By node: its number of ancestors.
    pub(crate) depths: Vec<u32>,
    /// By node: its frame.
    pub(crate) frames: Vec<u32>,
    /// By path: the node it ends in.
    pub(crate) ends: Vec<u32>,
}

impl PrefixTree {
    /// The tree of `paths`, none of which may be empty.
    ///
    /// Sorting brings equal beginnings together, so one walk over neighbours finds every node without a map.
    pub(crate) fn new(paths: &Paths) -> Self {
        let count = paths.len() as u32;
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_unstable_by(|&a, &b| paths.get(a as usize).cmp(paths.get(b as usize)));
        let mut tree = Self { ends: vec![0; count as usize], ..Self::default() };
        let mut last: &[u32] = &[];
        // The nodes of `last`, from the root.
        let mut open: Vec<u32> = Vec::new();
        for index in order {
            let path = paths.get(index as usize);
            let shared = path.iter().zip(last).take_while(|(a, b)| a == b).count();
            open.truncate(shared);
            for &frame in &path[shared..] {
                tree.depths.push(open.len() as u32);
                open.push(tree.frames.len() as u32);
                tree.frames.push(frame);
            }
            tree.ends[index as usize] = open.last().copied().unwrap_or_default();
            last = path;
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_beginnings_are_one_node() {
        let mut paths = Paths::default();
        for path in [&[0, 5, 2][..], &[0], &[0, 3], &[0, 5], &[0, 5, 2], &[0, 5, 2, 2]] {
            paths.push(path.iter().copied());
        }
        let expected = PrefixTree {
            depths: vec![0, 1, 1, 2, 3],
            frames: vec![0, 3, 5, 2, 2],
            ends: vec![3, 0, 1, 2, 3, 4],
        };
        assert_eq!(PrefixTree::new(&paths), expected);
    }
}
