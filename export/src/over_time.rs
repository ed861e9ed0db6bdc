//! Mappings of a process in, or whatever else lies at addresses since a time; the one that holds an address at a time out.
//!
//! Of a file that is loaded again and again many mappings hold the same addresses, of what a JIT compiled many hold different
//! ones, and of what somebody made up each may hold those of all others. So the addresses are the leaves of a tree, and a mapping is at
//! those nodes that it holds all leaves of, and none of it above: few for each mapping. What holds an address is at the nodes from its leaf
//! up, in each of which the time is looked for.

use std::cmp::Reverse;

use collector_common::ids::Nanos;
use collector_common::record::ModuleMapping;

/// What begins at a time, by whatever clock.
pub(crate) trait Begins {
    /// When.
    fn since(&self) -> u64;
}

impl Begins for ModuleMapping {
    fn since(&self) -> u64 {
        self.since.0
    }
}

/// Positions of what lies at addresses, one after the other and one within the other.
#[derive(Debug)]
pub(crate) struct OverTime {
    /// By time.
    all: Vec<u32>,
    /// Addresses at which one begins or ends, sorted. A leaf is from one to the next.
    bounds: Vec<u64>,
    /// The nodes of a tree, the first one's children the second and the third, and so on; those of the second half are the leaves. By
    /// node: where what is there begins among the entries, and a last one where all end.
    nodes: Vec<usize>,
    /// What is at the nodes, of each in the order of time.
    entries: Vec<u32>,
}

/// What holds an address at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) at: u32,
    /// The times, the last one excluded, at which that is what holds the address.
    pub(crate) times: [u64; 2],
}

impl OverTime {
    /// Of what is at positions, which are in the order of time, and of the addresses of each: the first one, and the one behind the last.
    pub(crate) fn of(all: Vec<u32>, addresses: impl Fn(u32) -> [u64; 2]) -> Self {
        let mut bounds: Vec<u64> = all.iter().flat_map(|&at| addresses(at)).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let leaves = bounds.len();
        let nodes_of = |at: u32| {
            let [start, end] = addresses(at).map(|bound| leaves + bounds.partition_point(|&it| it < bound));
            nodes(start, end)
        };
        // First how many there are at each node, then where they end, and where they begin as they are put there from the last one on.
        let mut nodes = vec![0; 2 * leaves + 1];
        for node in all.iter().flat_map(|&at| nodes_of(at)) {
            nodes[node] += 1;
        }
        let mut count = 0;
        for node in &mut nodes {
            count += *node;
            *node = count;
        }
        let mut entries = vec![0; count];
        for &at in all.iter().rev() {
            for node in nodes_of(at) {
                nodes[node] -= 1;
                entries[nodes[node]] = at;
            }
        }
        Self { all, bounds, nodes, entries }
    }

    fn node(&self, node: usize) -> Option<&[u32]> {
        self.entries.get(*self.nodes.get(node)?..*self.nodes.get(node + 1)?)
    }

    /// Of those that hold an address that which was the last one by then, or else the next one: it may be told of after
    /// the first sample in it.
    pub(crate) fn holding<T: Begins>(&self, list: &[T], address: u64, time: u64) -> Option<Holding> {
        let leaf = self.bounds.partition_point(|&bound| bound <= address).checked_sub(1)?;
        let up = std::iter::successors(Some(self.bounds.len() + leaf), |node| {
            Some(node / 2).filter(|node| *node > 0)
        });
        let since = |at: u32| list[at as usize].since();
        let (mut last, mut next) = (None, None);
        for node in up.filter_map(|node| self.node(node)) {
            let begun = node.partition_point(|&at| since(at) <= time);
            // Of what began the last, of what comes later the next.
            last = last.max(begun.checked_sub(1).map(|begun| (since(node[begun]), node[begun])));
            let later = node.get(begun).map(|&at| Reverse((since(at), at)));
            next = next.max(later);
        }
        let until = next.map_or(u64::MAX, |Reverse((since, _))| since);
        match (last, next) {
            (Some((since, at)), _) => Some(Holding { at, times: [since, until] }),
            (None, Some(Reverse((_, at)))) => Some(Holding { at, times: [0, until] }),
            (None, None) => None,
        }
    }

    /// Of all that which was the last one by then, or else the next one.
    pub(crate) fn current<T: Begins>(&self, list: &[T], time: Nanos) -> Option<u32> {
        let begun = self.all.partition_point(|&at| list[at as usize].since() <= time.0);
        self.all.get(begun.saturating_sub(1)).copied()
    }
}

/// The nodes that have all leaves from one to another, the last one excluded, and have none above them that does.
fn nodes(mut start: usize, mut end: usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        while start < end {
            if start % 2 == 1 {
                start += 1;
                return Some(start - 1);
            }
            if end % 2 == 1 {
                end -= 1;
                return Some(end);
            }
            (start, end) = (start / 2, end / 2);
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use collector_common::ids::{Avma, FileOffset};
    use collector_common::record::{ModuleId, ProcessId};
    use proptest::prelude::*;

    use super::*;

    fn mapping(start: u64, end: u64, bias: u64, since: u64) -> ModuleMapping {
        let (process, module) = (ProcessId(0), ModuleId(1));
        let (start, end) = (Avma(start + bias), Avma(end + bias));
        ModuleMapping { process, module, start, end, file_offset: FileOffset(0), bias, since: Nanos(since) }
    }

    /// The addresses that a mapping's file is linked for.
    const fn linked(mapping: &ModuleMapping) -> [u64; 2] {
        [mapping.start.0 - mapping.bias, mapping.end.0 - mapping.bias]
    }

    /// A comparison of each mapping with each address would be ten thousand millions.
    #[test]
    fn many_mappings_and_addresses_end() {
        const COUNT: u64 = 100_000;
        let apart: Vec<ModuleMapping> = (0..COUNT).map(|at| mapping(at * 16, at * 16 + 16, 0, at)).collect();
        let again: Vec<ModuleMapping> = (0..COUNT).map(|at| mapping(0, 16, at * 4096, at)).collect();
        // Each holds all after it, and all hold the last address.
        let within: Vec<ModuleMapping> = (0..COUNT).map(|at| mapping(at, 2 * COUNT, 0, at)).collect();
        let order: Vec<u32> = (0..COUNT as u32).collect();
        let begun = Instant::now();
        let of = |list: &[ModuleMapping]| OverTime::of(order.clone(), |at| linked(&list[at as usize]));
        let [of_within, of_apart, of_again] = [&within, &apart, &again].map(|list| of(list));
        let holding = |of: &OverTime, list: &[ModuleMapping], address, time| {
            of.holding(list, address, time).map(|holding| holding.at)
        };
        for at in 0..COUNT {
            assert_eq!(holding(&of_apart, &apart, at * 16 + 5, COUNT), Some(at as u32));
            assert_eq!(holding(&of_again, &again, 5, at), Some(at as u32));
            assert_eq!(holding(&of_again, &again, 16, at), None);
            assert_eq!(holding(&of_within, &within, 2 * COUNT - 1, at), Some(at as u32));
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    proptest! {
        /// The slow way: the last one that began and holds the address, else the first of the others.
        #[test]
        fn what_holds_an_address_is_found(
            list in proptest::collection::vec((0_u64..20, 0_u64..8, 0_u64..3, 0_u64..6), 0..12),
            address in 0_u64..30,
            time in 0_u64..7,
            is_linked in any::<bool>(),
        ) {
            let mut mappings: Vec<ModuleMapping> =
                list.iter().map(|&(start, size, bias, since)| mapping(start, start + size, bias, since)).collect();
            mappings.sort_by_key(|mapping| mapping.since);
            let order: Vec<u32> = (0..mappings.len() as u32).collect();
            let holds = |mapping: &ModuleMapping| {
                let address = address + if is_linked { mapping.bias } else { 0 };
                mapping.start.0 <= address && address < mapping.end.0
            };
            let by_time = |time| {
                let begun = mappings.partition_point(|mapping| mapping.since.0 <= time);
                (0..begun).rev().chain(begun..mappings.len())
            };
            let expected = |time| by_time(time).find(|&at| holds(&mappings[at])).map(|at| at as u32);
            let of = OverTime::of(order, |at| {
                let mapping = &mappings[at as usize];
                if is_linked { linked(mapping) } else { [mapping.start.0, mapping.end.0] }
            });
            let holding = of.holding(&mappings, address, time);
            prop_assert_eq!(holding.map(|holding| holding.at), expected(time));
            if let Some(Holding { at, times: [from, until] }) = holding {
                prop_assert!((from..until).contains(&time));
                for time in from..until.min(8) {
                    prop_assert_eq!(expected(time), Some(at));
                }
            }
            let first = by_time(time).next().map(|at| at as u32);
            prop_assert_eq!(of.current(&mappings, Nanos(time)), first);
        }
    }
}
