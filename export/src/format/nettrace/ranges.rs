//! The mappings of one module in one process in, the one that holds an address at a time out.
//!
//! Of a file that is loaded again and again many mappings hold the same addresses, of what a JIT compiled many hold different
//! ones, and of what somebody made up each may hold those of all others. So the addresses are the leaves of a tree, and a mapping is at
//! those nodes that it holds all leaves of, and none of it above: few for each mapping. What holds an address is at the nodes from its leaf
//! up, in each of which the time is looked for.

use std::cmp::Reverse;

use collector_common::ids::Nanos;
use collector_common::record::ModuleMapping;

/// Positions of a module's mappings.
#[derive(Debug)]
pub(super) struct Ranges {
    /// By time.
    all: Vec<u32>,
    /// Addresses at which a mapping begins or ends, sorted. A leaf is from one to the next.
    bounds: Vec<u64>,
    /// The nodes of a tree, the first one's children the second and the third, and so on; those of the second half are the leaves. By
    /// node: mappings in the order of time.
    nodes: Vec<Vec<u32>>,
}

impl Ranges {
    /// Of mappings at positions, which are in the order of time; whether their addresses are looked for as the file is linked.
    pub(super) fn of(mappings: &[ModuleMapping], all: &[u32], is_linked: bool) -> Self {
        let addresses = |at: u32| {
            let mapping = &mappings[at as usize];
            let start = mapping.start.0.wrapping_sub(if is_linked { mapping.bias } else { 0 });
            [start, start.saturating_add(mapping.end.0.saturating_sub(mapping.start.0))]
        };
        let mut bounds: Vec<u64> = all.iter().flat_map(|&at| addresses(at)).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let leaves = bounds.len();
        let mut nodes = vec![Vec::new(); 2 * leaves];
        for &at in all {
            let [mut start, mut end] =
                addresses(at).map(|bound| leaves + bounds.partition_point(|&it| it < bound));
            while start < end {
                if start % 2 == 1 {
                    nodes[start].push(at);
                    start += 1;
                }
                if end % 2 == 1 {
                    end -= 1;
                    nodes[end].push(at);
                }
                (start, end) = (start / 2, end / 2);
            }
        }
        Self { all: all.to_vec(), bounds, nodes }
    }

    /// Of the mappings that hold an address that which was the last one by then, or else the next one: it may be told of after
    /// the first sample in it.
    pub(super) fn holding(&self, mappings: &[ModuleMapping], address: u64, time: Nanos) -> Option<u32> {
        let leaf = self.bounds.partition_point(|&bound| bound <= address).checked_sub(1)?;
        let up = std::iter::successors(Some(self.bounds.len() + leaf), |node| {
            Some(node / 2).filter(|node| *node > 0)
        });
        let holding = up.filter_map(|node| current(mappings, self.nodes.get(node)?, time));
        holding.min_by_key(|&at| {
            let since = mappings[at as usize].since;
            // Of what began the last is first, of what comes later the next.
            if since <= time {
                (None, Reverse((since, at)))
            } else {
                (Some((since, at)), Reverse((since, at)))
            }
        })
    }

    /// Of all mappings that which was the last one by then, or else the next one.
    pub(super) fn current(&self, mappings: &[ModuleMapping], time: Nanos) -> Option<u32> {
        current(mappings, &self.all, time)
    }
}

/// Of mappings in the order of time.
fn current(mappings: &[ModuleMapping], list: &[u32], time: Nanos) -> Option<u32> {
    let begun = list.partition_point(|&at| mappings[at as usize].since <= time);
    list.get(begun.saturating_sub(1)).copied()
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
        let of_within = Ranges::of(&within, &order, true);
        let of_apart = Ranges::of(&apart, &order, true);
        let of_again = Ranges::of(&again, &order, true);
        for at in 0..COUNT {
            assert_eq!(of_apart.holding(&apart, at * 16 + 5, Nanos(COUNT)), Some(at as u32));
            assert_eq!(of_again.holding(&again, 5, Nanos(at)), Some(at as u32));
            assert_eq!(of_again.holding(&again, 16, Nanos(at)), None);
            assert_eq!(of_within.holding(&within, 2 * COUNT - 1, Nanos(at)), Some(at as u32));
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
            let begun = mappings.partition_point(|mapping| mapping.since.0 <= time);
            let by_time = (0..begun).rev().chain(begun..mappings.len());
            let expected = by_time.clone().find(|&at| holds(&mappings[at])).map(|at| at as u32);
            let ranges = Ranges::of(&mappings, &order, is_linked);
            prop_assert_eq!(ranges.holding(&mappings, address, Nanos(time)), expected);
            let first = by_time.clone().next().map(|at| at as u32);
            prop_assert_eq!(ranges.current(&mappings, Nanos(time)), first);
        }
    }
}
