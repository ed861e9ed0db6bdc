//! The tree of calls: what it counts is what the folded stacks count, and what is known of the recording.

use std::collections::BTreeMap;

use collector_common::record::{ModuleId, SampleKindId, ThreadId};
use export::format::folded::Folded;
use export::format::{ExportFormat as _, Profile};
use export::graph::{ExportGraph, Label, NodeId};
use export::hottest::Hottest;

use crate::made::Made;

const KIND: SampleKindId = SampleKindId(0);

/// What a function is called in folded stacks.
fn name(profile: Profile<'_>, graph: &ExportGraph, label: Label) -> String {
    let Label::Function { function, is_inlined } = label else { panic!("{label:?} is no function") };
    let (name, module) = graph.functions()[function as usize];
    let mark = match (is_inlined, module == ModuleId::KERNEL) {
        (true, _) => "_[i]",
        (false, true) => "_[k]",
        (false, false) => "",
    };
    profile.symbols.function(name).replace(';', ":") + mark
}

/// The way from a group to a node.
fn way(profile: Profile<'_>, graph: &ExportGraph, node: NodeId) -> Vec<String> {
    let above = std::iter::successors(Some(node), |node| graph.parent(*node));
    let functions = above.filter(|&node| graph.depth(node) > 1);
    let mut way: Vec<String> = functions.map(|node| name(profile, graph, graph.label(node))).collect();
    way.reverse();
    way
}

#[test]
fn what_is_counted_is_what_folded_stacks_count() {
    let Made { machine, symbols } = Made::new();
    let profile = Profile { machine: &machine, symbols: &symbols };
    let graph = ExportGraph::of(profile, |thread| Some(machine.thread(thread).name.0));
    let counts = graph.counts(KIND);
    let mut counted: BTreeMap<String, i128> = BTreeMap::new();
    let mut group = "";
    for node in graph.nodes() {
        if let Label::Group(id) = graph.label(node) {
            group = machine.string(collector_common::intern::StringId(id));
        }
        if counts.exclusive(node) != 0 {
            let way = way(profile, &graph, node);
            let line = [vec![group.to_owned()], way].concat().join(";");
            *counted.entry(line).or_default() += counts.exclusive(node);
        }
    }
    let mut folded = Vec::new();
    Folded.write(profile, &mut folded).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    let folded: BTreeMap<String, i128> = folded
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(stack, count)| (stack.to_owned(), count.parse().unwrap()))
        .collect();
    assert_eq!(counted, folded);
    assert_eq!(counts.total(NodeId::ROOT), folded.values().sum::<i128>());
}

#[test]
fn each_node_has_what_is_below_it() {
    let Made { machine, symbols } = Made::new();
    let profile = Profile { machine: &machine, symbols: &symbols };
    let graph = ExportGraph::of(profile, |thread: ThreadId| Some(machine.thread(thread).process.0));
    let counts = graph.counts(KIND);
    for node in graph.nodes() {
        let below = graph.nodes().filter(|&other| graph.parent(other) == Some(node));
        let sum: i128 = below.map(|other| counts.total(other)).sum();
        assert_eq!(counts.total(node), counts.exclusive(node) + sum, "{node:?}");
        assert!(
            graph
                .parent(node)
                .is_none_or(|parent| parent < node && graph.depth(parent) + 1 == graph.depth(node))
        );
    }
    // What was made: 71 samples of the first process, one without a stack, and 14 of the second.
    let groups: Vec<_> = graph.nodes().filter(|&node| graph.depth(node) == 1).collect();
    let groups: Vec<_> = groups
        .into_iter()
        .map(|node| (graph.label(node), counts.total(node), counts.exclusive(node)))
        .collect();
    assert_eq!(groups, [(Label::Group(0), 71, 1), (Label::Group(1), 14, 0)]);
    let of_first = ExportGraph::of(profile, |thread| (machine.thread(thread).process.0 == 0).then_some(0));
    assert_eq!(of_first.counts(KIND).total(NodeId::ROOT), 71);
    assert_eq!(of_first.counts(SampleKindId(7)).total(NodeId::ROOT), 0, "there is no such kind");
}

#[test]
fn a_function_that_calls_itself_is_counted_once() {
    let Made { machine, symbols } = Made::new();
    let profile = Profile { machine: &machine, symbols: &symbols };
    let hottest = Hottest::of(profile, KIND);
    let row = |name: &str| {
        let row = hottest.rows.iter().find(|row| row.function == name).unwrap();
        (row.own, row.total)
    };
    assert_eq!([row("main"), row("work(int; char)"), row("recurse")], [(0, 78), (60, 68), (10, 10)]);
    assert_eq!(hottest.total, 85);
    assert!(hottest.rows.iter().all(|row| row.function != "[stack cut]"));
}
