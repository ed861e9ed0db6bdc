//! Folded stacks: one line `comm;root;...;leaf count` for each distinct stack of names, sorted.
//!
//! `comm` is the thread's name, or its process's where it has none. Kernel frames end in `_[k]`; functions that were inlined, which stand leafward of what they
//! were inlined into, end in `_[i]`; an address without a name is `module+0xoffset`. The
//! count is the sum of the samples' values of one kind
//! ([`ExportMachine::shown_kind`](collector_common::record::ExportMachine::shown_kind)). Characters that
//! would break a line apart are replaced.

use std::io::{self, Write};

use collector_common::intern::StackId;
use collector_common::record::{FrameId, SampleKind, Unit};
use rustc_hash::FxHashMap;

use crate::format::{ExportFormat, Profile};
use crate::lists::Lists;
use crate::symbolize::NameId;

/// The folded format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Folded;

impl ExportFormat for Folded {
    fn name(&self) -> &'static str {
        "folded"
    }

    fn ending(&self) -> &'static str {
        ".folded"
    }

    fn description(&self) -> &'static str {
        "one line a stack, `comm;root;...;leaf count`, for flame graph scripts and for grep"
    }

    fn holds_all_kinds(&self) -> bool {
        false
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        for line in Stacks::of(profile).lines() {
            writeln!(out, "{line}")?;
        }
        out.flush()
    }
}

/// Distinct stacks of names and their counts, sorted.
#[derive(Debug)]
pub(super) struct Stacks {
    /// Sorted, so that stacks of positions sort as stacks of names.
    names: Vec<String>,
    /// From the thread's name on: positions in `names`, and the count.
    counts: Vec<(Vec<u32>, i64)>,
    unit: &'static str,
}

impl Stacks {
    pub(super) fn of(profile: Profile<'_>) -> Self {
        let machine = profile.machine;
        let frames = FrameNames::of(profile);
        let threads = machine.threads().iter().map(|thread| match machine.string(thread.name) {
            "" => match machine.string(machine.process(thread.process).name) {
                "" => "[unnamed]".to_owned(),
                process => clean(process),
            },
            comm => clean(comm),
        });
        let (names, mut positions) = sorted(frames.names.into_iter().chain(threads));
        let threads = positions.split_off(positions.len() - machine.threads().len());

        let kind = machine.shown_kind();
        let mut by_id: FxHashMap<(u32, StackId), i64> = FxHashMap::default();
        for sample in machine.samples().iter().filter(|sample| Some(sample.kind) == kind) {
            let comm = threads.get(sample.thread.0 as usize).copied().unwrap_or_default();
            let count = by_id.entry((comm, sample.stack)).or_default();
            *count = count.saturating_add(sample.value);
        }
        let mut by_name: FxHashMap<Vec<u32>, i64> = FxHashMap::default();
        for ((comm, stack), count) in by_id {
            let path = machine.stacks().get(stack).iter().rev();
            let path = path.flat_map(|frame| frames.functions.get(frame.0 as usize));
            let path = path.filter_map(|&name| positions.get(name as usize).copied());
            let sum = by_name.entry([comm].into_iter().chain(path).collect()).or_default();
            *sum = sum.saturating_add(count);
        }
        let mut counts: Vec<(Vec<u32>, i64)> = by_name.into_iter().collect();
        counts.sort_unstable();
        let unit = match kind.and_then(|kind| machine.kinds().get(usize::from(kind.0))) {
            Some(SampleKind { unit: unit @ (Unit::Nanoseconds | Unit::Bytes), .. }) => unit.name(),
            _ => "samples",
        };
        Self { names, counts, unit }
    }

    /// What the counts count.
    pub(super) fn unit(&self) -> &'static str {
        self.unit
    }

    /// What each line counts.
    pub(super) fn counts(&self) -> impl Iterator<Item = i64> {
        self.counts.iter().map(|(_, count)| *count)
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.lines_of(Some)
    }

    /// The lines whose counts are shown, which may be others then.
    pub(super) fn lines_of(&self, shown: impl Fn(i64) -> Option<i64>) -> impl Iterator<Item = String> {
        let counts = self.counts.iter();
        let counts = counts.filter_map(move |(stack, count)| Some((stack, shown(*count)?)));
        counts.map(|(stack, count)| {
            let mut line = String::new();
            for (index, &name) in stack.iter().enumerate() {
                if index > 0 {
                    line.push(';');
                }
                line.push_str(&self.names[name as usize]);
            }
            line.push(' ');
            line.push_str(&count.to_string());
            line
        })
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
        let mut index: FxHashMap<(NameId, &str), u32> = FxHashMap::default();
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
fn sorted(given: impl Iterator<Item = String>) -> (Vec<String>, Vec<u32>) {
    let mut given: Vec<(String, u32)> = given.zip(0..).collect();
    given.sort_unstable();
    let mut names: Vec<String> = Vec::new();
    let mut positions = vec![0; given.len()];
    for (name, index) in given {
        if names.last() != Some(&name) {
            names.push(name);
        }
        positions[index as usize] = names.len() as u32 - 1;
    }
    (names, positions)
}

/// A name without what separates names and lines, and without what XML can't hold.
fn clean(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            ';' => ':',
            c if c.is_control() => ' ',
            '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}
