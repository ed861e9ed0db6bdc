//! [`ExportGraph`]: the calls of a recording as a tree, for formats that want one.
//!
//! Below the root are groups, as the caller wants them: one for each process, for each name of processes, or a single one. Below a group
//! are the functions that its threads called, callers above callees, each with what was counted while it ran itself (exclusive) and
//! while it was on the stack there (total), by kind of sample ([`Counts`]). Sums of however many samples have room in 128 bits. A
//! function stands in the tree as often as there are ways to it.

use collector_common::intern::StackId;
use collector_common::record::{ModuleId, SampleKindId, ThreadId};

use crate::format::Profile;
use crate::functions::Functions;
use crate::lists::Lists;
use crate::prefix_tree::PrefixTree;
use crate::symbolize::NameId;
use crate::table::Table;

/// Names a node of one [`ExportGraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The node above all.
    pub const ROOT: Self = Self(0);
}

/// What a node of the tree stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// All that was recorded.
    Root,
    /// A group of threads, by the caller's number.
    Group(u32),
    /// A function.
    Function {
        /// Its position in [`ExportGraph::functions`].
        function: u32,
        /// Whether it was compiled into the one above it.
        is_inlined: bool,
    },
}

/// A tree of calls. Nodes are numbered so that all below a node follow it directly.
#[derive(Debug)]
pub struct ExportGraph {
    tree: PrefixTree,
    parents: Vec<u32>,
    functions: Vec<(NameId, ModuleId)>,
    /// By kind and node what was counted in the node itself, where anything was: few nodes have many of the kinds.
    exclusive: Vec<(SampleKindId, NodeId, i128)>,
}

/// What was counted of one kind in an [`ExportGraph`].
#[derive(Debug)]
pub struct Counts<'a> {
    graph: &'a ExportGraph,
    /// By node.
    exclusive: Vec<i128>,
    total: Vec<i128>,
}

impl ExportGraph {
    /// The calls of all threads that are given a group.
    pub fn of(profile: Profile<'_>, group: impl Fn(ThreadId) -> Option<u32>) -> Self {
        let machine = profile.machine;
        let functions = Functions::of(profile, |_| true);
        let labels = Labels::of(profile, &functions);
        let mut paths = Lists::default();
        paths.push([0]);
        let mut known: Table<(u32, StackId), u32> = Table::default();
        let mut counted: Table<(u32, SampleKindId), i128> = Table::default();
        for sample in machine.samples().iter() {
            let Some(group) = group(sample.thread) else { continue };
            let path = *known.entry((group, sample.stack)).or_insert_with(|| {
                let frames = machine.stacks().get(sample.stack).iter().rev();
                let calls = frames.flat_map(|frame| labels.0.get(frame.0 as usize)).copied();
                paths.push([0, group].into_iter().chain(calls)) as u32
            });
            *counted.entry((path, sample.kind)).or_default() += i128::from(sample.value);
        }
        let tree = PrefixTree::new(&paths);
        let of_node = |((path, kind), value)| (kind, NodeId(tree.ends[path as usize]), value);
        let mut exclusive: Vec<_> = counted.into_iter().map(of_node).collect();
        exclusive.sort_unstable();
        Self { parents: parents(&tree.depths), tree, functions: functions.list().to_vec(), exclusive }
    }

    /// All nodes, the root first, each before those below it.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        (0..self.parents.len() as u32).map(NodeId)
    }

    /// The functions that nodes name, by name and module.
    pub fn functions(&self) -> &[(NameId, ModuleId)] {
        &self.functions
    }

    /// What a node stands for.
    ///
    /// # Panics
    /// For a node of another graph, as do all that ask for one.
    pub fn label(&self, node: NodeId) -> Label {
        let label = self.tree.frames[node.0 as usize];
        match self.depth(node) {
            0 => Label::Root,
            1 => Label::Group(label),
            _ => Label::Function { function: label >> 1, is_inlined: label & 1 == 1 },
        }
    }

    /// How many nodes are above one.
    pub fn depth(&self, node: NodeId) -> u32 {
        self.tree.depths[node.0 as usize]
    }

    /// The node above one; of the root none.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        (node != NodeId::ROOT).then(|| NodeId(self.parents[node.0 as usize]))
    }

    /// What was counted of a kind of sample; nothing for one that there is none of.
    pub fn counts(&self, kind: SampleKindId) -> Counts<'_> {
        let first = self.exclusive.partition_point(|&(other, ..)| other < kind);
        let of_kind = self.exclusive[first..].iter().take_while(|&&(other, ..)| other == kind);
        let mut exclusive = vec![0_i128; self.parents.len()];
        for &(_, node, value) in of_kind {
            exclusive[node.0 as usize] += value;
        }
        let mut total = exclusive.clone();
        for node in (1..total.len()).rev() {
            let parent = self.parents[node] as usize;
            total[parent] += total[node];
        }
        Counts { graph: self, exclusive, total }
    }
}

impl Counts<'_> {
    /// What was counted in a node itself.
    ///
    /// # Panics
    /// For a node of another graph, as do all that ask for one.
    pub fn exclusive(&self, node: NodeId) -> i128 {
        self.exclusive[node.0 as usize]
    }

    /// What was counted in a node and in all below it.
    pub fn total(&self, node: NodeId) -> i128 {
        self.total[node.0 as usize]
    }

    /// By function: what was counted while it ran itself, and while it was on the stack, once however often it was there.
    pub fn by_function(&self) -> Vec<(i128, i128)> {
        let graph = self.graph;
        let mut sums = vec![(0_i128, 0_i128); graph.functions.len()];
        // How often each function is on the way to the node in hand, and the functions of that way.
        let mut open = vec![0_u32; graph.functions.len()];
        let mut way: Vec<usize> = Vec::new();
        for node in graph.nodes() {
            let Label::Function { function, .. } = graph.label(node) else { continue };
            let function = function as usize;
            // The first function is below a group, which is below the root.
            for left in way.drain((graph.depth(node) as usize - 2).min(way.len())..) {
                open[left] -= 1;
            }
            let (own, total) = &mut sums[function];
            *own += self.exclusive(node);
            if open[function] == 0 {
                *total += self.total(node);
            }
            open[function] += 1;
            way.push(function);
        }
        sums
    }
}

/// By frame: what its functions are in the tree, outermost first.
struct Labels(Lists<u32>);

impl Labels {
    fn of(profile: Profile<'_>, functions: &Functions) -> Self {
        let mut labels = Lists::default();
        for (id, _) in (0..).map(collector_common::record::FrameId).zip(profile.machine.frames().iter()) {
            let named = profile.symbols.functions(id).rev().map(|function| u32::from(function.is_inlined));
            let numbers = functions.of_frame(id).rev();
            labels.push(numbers.zip(named).map(|(function, inlined)| function << 1 | inlined));
        }
        Self(labels)
    }
}

/// By node the one above it, of nodes in depth-first order; the root is its own.
fn parents(depths: &[u32]) -> Vec<u32> {
    let mut way: Vec<u32> = Vec::new();
    (0..)
        .zip(depths)
        .map(|(node, &depth)| {
            way.truncate(depth as usize);
            let parent = way.last().copied().unwrap_or(0);
            way.push(node);
            parent
        })
        .collect()
}
