//! A [`Profile`] in, its distinct stacks of names and their counts out, sorted: for formats of which each line is one.
//!
//! What is held beside the names is a number for each stack of each thread's name, and each distinct stack once.

use std::{iter, mem};

use collector_common::intern::StackId;
use collector_common::record::{FrameId, SampleKind, Unit};

use super::paths::Paths;
use super::printable::printed;
use crate::format::Profile;
use crate::lists::Lists;
use crate::symbolize::NameId;
use crate::table::Table;

/// What has no name, or a blank one where that can't be shown.
const UNNAMED: &str = "[unnamed]";

/// How stacks are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// By their names, from the thread's on.
    Names,
    /// As their lines are, byte for byte: what follows a name counts, too. Blanks in names, which would make a count of a name's
    /// end, are such that no line is broken at, and there are none around them.
    Lines,
}

/// Distinct stacks of names and their counts, sorted. One whose sum has no room in 63 bits is there several times.
#[derive(Debug)]
pub(super) struct Stacks {
    /// Sorted, so that stacks of positions sort as stacks of names.
    names: Vec<String>,
    /// Of positions in `names`.
    paths: Paths,
    counts: Vec<Counted>,
    unit: &'static str,
}

/// A distinct stack of a thread's name and what was counted in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Counted {
    /// The position of the thread's name.
    comm: u32,
    path: u32,
    pub(super) count: i64,
}

impl Counted {
    /// Positions of its names, the thread's first.
    pub(super) fn names(self, stacks: &Stacks) -> impl Iterator<Item = u32> + '_ {
        iter::once(self.comm).chain(stacks.paths.get(self.path).iter().copied())
    }
}

impl Stacks {
    pub(super) fn of(profile: Profile<'_>, order: Order) -> Self {
        let machine = profile.machine;
        let frames = FrameNames::of(profile);
        let threads = machine.threads().iter().map(|thread| match machine.string(thread.name) {
            "" => match machine.string(machine.process(thread.process).name) {
                "" => UNNAMED.to_owned(),
                process => clean(process),
            },
            comm => clean(comm),
        });
        let functions = frames.names.len();
        let names = Names::sorted(frames.names.into_iter().chain(threads), order);

        let kind = machine.shown_kind();
        let mut by_id: Table<(u32, StackId), i64> = Table::default();
        // Sums that had no room for one sample more.
        let mut full = Vec::new();
        for sample in machine.samples().iter().filter(|sample| Some(sample.kind) == kind) {
            let is_leaf = machine.stacks().get(sample.stack).is_empty();
            let comm = names.position(functions + sample.thread.0 as usize, is_leaf);
            let key = (comm, sample.stack);
            let count = by_id.entry(key).or_default();
            match count.checked_add(sample.value) {
                Some(sum) => *count = sum,
                None => full.push((key, mem::replace(count, sample.value))),
            }
        }
        let paths = Paths::of(machine, by_id.keys().map(|&(_, stack)| stack), |frames_of, path| {
            let functions = frames_of.iter().rev().flat_map(|frame| frames.functions.get(frame.0 as usize));
            let mut functions = functions.peekable();
            while let Some(&name) = functions.next() {
                path.push(names.position(name as usize, functions.peek().is_none()));
            }
        });
        let counts = by_id.into_iter().chain(full);
        let counts =
            counts.map(|((comm, stack), count)| Counted { comm, path: paths.of_stack(stack), count });
        let mut counts: Vec<Counted> = counts.collect();
        counts.sort_unstable();
        counts.dedup_by(|next, kept| {
            let is_same = (next.comm, next.path) == (kept.comm, kept.path);
            let sum = kept.count.checked_add(next.count).filter(|_| is_same);
            kept.count = sum.unwrap_or(kept.count);
            sum.is_some()
        });
        let unit = match kind.and_then(|kind| machine.kinds().get(usize::from(kind.0))) {
            Some(SampleKind { unit: unit @ (Unit::Nanoseconds | Unit::Bytes), .. }) => unit.name(),
            _ => "samples",
        };
        Self { names: names.list, paths, counts, unit }
    }

    /// What the counts count.
    pub(super) fn unit(&self) -> &'static str {
        self.unit
    }

    /// All stacks, in their order.
    pub(super) fn counts(&self) -> &[Counted] {
        &self.counts
    }

    /// The name at a position.
    pub(super) fn name(&self, position: u32) -> &str {
        self.names.get(position as usize).map_or("", String::as_str)
    }

    /// Adds names with what separates them.
    pub(super) fn line(&self, line: &mut String, names: impl Iterator<Item = u32>) {
        for (index, name) in names.enumerate() {
            if index > 0 {
                line.push(';');
            }
            line.push_str(self.name(name));
        }
    }
}

/// What the functions of frames are called.
struct FrameNames {
    names: Vec<String>,
    /// By frame: positions in `names`, outermost first.
    functions: Lists<u32>,
}

impl FrameNames {
    fn of(profile: Profile<'_>) -> Self {
        let mut names = Vec::new();
        let mut index: Table<(NameId, &str), u32> = Table::default();
        let mut functions = Lists::default();
        for (frame, id) in profile.machine.frames().iter().zip(0..) {
            functions.push(profile.symbols.functions(FrameId(id)).rev().map(|function| {
                let mark = match (function.is_inlined, frame.is_kernel()) {
                    (true, _) => "_[i]",
                    (false, true) => "_[k]",
                    (false, false) => "",
                };
                *index.entry((function.name, mark)).or_insert_with(|| {
                    names.push(clean(profile.symbols.function(function.name)) + mark);
                    names.len() as u32 - 1
                })
            }));
        }
        Self { names, functions }
    }
}

/// Distinct names, sorted, and where in them each of the given ones is.
struct Names {
    list: Vec<String>,
    /// By given name: where it stands before another one, and where at the end.
    positions: Vec<[u32; 2]>,
}

impl Names {
    fn sorted(given: impl Iterator<Item = String>, order: Order) -> Self {
        // What follows a name, which is part of what lines are sorted by. No name has it.
        let ends: &[&str] = match order {
            Order::Names => &[""],
            Order::Lines => &[";", " "],
        };
        let given = given.map(|name| match order {
            Order::Names => name,
            Order::Lines => unbroken(&name),
        });
        let mut keys: Vec<(String, u32, usize)> = Vec::new();
        for (name, at) in given.zip(0..) {
            keys.extend(ends.iter().enumerate().map(|(end, text)| (format!("{name}{text}"), at, end)));
        }
        keys.sort_unstable();
        let count = keys.len() / ends.len();
        let (mut list, mut positions): (Vec<String>, _) = (Vec::new(), vec![[0; 2]; count]);
        let mut last = None;
        for (key, at, end) in keys {
            if last.as_ref() != Some(&key) {
                let name = &key[..key.len() - ends[end].len()];
                list.push(name.to_owned());
            }
            let position = list.len() as u32 - 1;
            let [inner, leaf] = &mut positions[at as usize];
            match (order, end) {
                (Order::Names, _) => (*inner, *leaf) = (position, position),
                (Order::Lines, 0) => *inner = position,
                (Order::Lines, _) => *leaf = position,
            }
            last = Some(key);
        }
        Self { list, positions }
    }

    fn position(&self, given: usize, is_leaf: bool) -> u32 {
        self.positions.get(given).map_or(0, |at| at[usize::from(is_leaf)])
    }
}

/// A name in a line that is taken apart at its last blank, and without those around it.
fn unbroken(name: &str) -> String {
    const NO_BREAK_SPACE: &str = "\u{a0}";
    match name.trim() {
        "" => UNNAMED.to_owned(),
        name => name.replace(' ', NO_BREAK_SPACE),
    }
}

/// A name without what separates names and lines, and without what XML can't hold.
fn clean(name: &str) -> String {
    name.chars().map(|char| if char == ';' { ':' } else { printed(char) }).collect()
}
