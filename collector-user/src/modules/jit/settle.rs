//! What lay at an address, and when: a recording and the dumps of one process in; names of its addresses out.
//!
//! Memory that code was thrown out of gets other code. A frame is an address in a module, so that two codes which were sampled at one
//! address must be in two modules: the older stays where it is, the newer goes to a module of the same kind that is laid over it.
//!
//! ```text
//! address    0x1000                0x2000
//! module     A  until 5 s          C           as recorded
//! over it    B  from 5 s on                    samples after 5 s have the frame (over it, 0x1000)
//! ```
//!
//! Dumps are written late and in large pieces, so that this is known when the recording has ended. Most recordings have no such
//! address, and nothing is changed then.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};

use collector_common::ids::{Avma, FileOffset, Nanos};
use collector_common::intern::StackId;
use collector_common::record::{ExportMachine, Frame, FrameId, Module, ModuleId, ModuleKind, ModuleMapping};
use export::symbolize::{JitDump, JitNames, JitPlace};
use rustc_hash::{FxHashMap, FxHashSet};

/// Modules that are laid over one at most: more codes than that at one address are not told apart.
const MOST_LAYERS: u32 = 1000;

/// Bytes of names that are kept of a process.
const MOST_OF_NAMES: usize = 64 << 20;

/// A code: of which dump, and which of its codes.
type Code = (usize, u32);

/// A wanted address, by position.
type At = u32;

/// Names the addresses of a process's `modules` by the dumps that `open` gives for them, which are sorted. Without comparable times,
/// the last code that held an address is meant.
pub(super) fn settle<F: Read + Seek>(
    machine: &mut ExportMachine,
    modules: &FxHashSet<ModuleId>,
    has_times: bool,
    open: impl FnOnce(&[u64]) -> Vec<JitDump<F>>,
) -> FxHashMap<ModuleId, JitNames> {
    let is_own = |frame: &Frame| modules.contains(&frame.module);
    let own = machine.frames().iter().filter(|frame| is_own(frame));
    let mut wanted: Vec<u64> = own.map(|frame| frame.lookup_address().0).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let dumps = open(&wanted);
    let mut settling = Settling {
        known: Known::of(&dumps, &wanted, has_times),
        wanted,
        modules,
        layers: FxHashMap::default(),
    };
    let mut hit = settling.hit_at_any_time();
    settling.add_hits(machine, &mut hit);
    settling.set_layers(&hit);
    let over = settling.over(machine, &hit);
    settling.move_samples(machine, &over);
    settling.names(&over, dumps, &hit)
}

/// Where a code lay, and when; always, where no time is known.
#[derive(Clone, Copy)]
struct Span {
    start: u64,
    end: u64,
    since: Nanos,
    until: Nanos,
}

/// What is told of each wanted address.
struct Known {
    /// By position: codes, oldest first.
    codes: Vec<Vec<Code>>,
    /// By position, where there were several: from when on which of them lay there.
    lay: FxHashMap<At, Vec<(Nanos, Code)>>,
    spans: FxHashMap<Code, Span>,
}

impl Known {
    fn of<F: Read + Seek>(dumps: &[JitDump<F>], wanted: &[u64], has_times: bool) -> Self {
        let mut spans = FxHashMap::default();
        let mut codes = vec![Vec::new(); wanted.len()];
        for (position, codes) in codes.iter_mut().enumerate() {
            for (number, dump) in dumps.iter().enumerate() {
                let comparable = has_times && dump.has_system_clock();
                // Only the last counts where nobody knows when.
                let first = if comparable { 0 } else { dump.codes_at(position).count().saturating_sub(1) };
                for code in dump.codes_at(position).skip(first) {
                    if let Some(span) = dump.code(code) {
                        let since = if comparable { span.since } else { Nanos(0) };
                        let until = if comparable { span.until } else { Nanos(u64::MAX) };
                        spans.insert((number, code), Span { start: span.start, end: span.end, since, until });
                        codes.push((number, code));
                    }
                }
            }
            codes.sort_by_key(|code| spans.get(code).map(|span| span.since));
        }
        let several = codes.iter().zip(0..).filter(|(codes, _)| codes.len() > 1);
        let lay = several.map(|(codes, at)| (at, turns(codes, &spans))).collect();
        Self { codes, lay, spans }
    }

    fn at(&self, at: At) -> &[Code] {
        self.codes.get(at as usize).map_or(&[], Vec::as_slice)
    }

    fn since(&self, code: Code) -> Nanos {
        self.spans.get(&code).map_or(Nanos(0), |span| span.since)
    }

    /// What lay at an address at a time: what was made last before it. Code may run a moment before its record is written, so that
    /// before the first of all it is that one.
    fn at_time(&self, at: At, time: Nanos) -> Option<Code> {
        let turns = self.lay.get(&at).map_or(&[][..], Vec::as_slice);
        let begun = turns.partition_point(|&(since, _)| since <= time);
        let last = begun.checked_sub(1).and_then(|last| turns.get(last)).map(|&(_, code)| code);
        last.or_else(|| self.at(at).first().copied())
    }
}

/// From when on which of the codes of an address, oldest first, lay there: of several the youngest, of none the first.
fn turns(codes: &[Code], spans: &FxHashMap<Code, Span>) -> Vec<(Nanos, Code)> {
    let mut changes: Vec<(Nanos, usize, bool)> = Vec::new();
    for (age, code) in codes.iter().enumerate() {
        if let Some(span) = spans.get(code).filter(|span| span.since < span.until) {
            changes.extend([(span.since, age, true), (span.until, age, false)]);
        }
    }
    changes.sort_unstable();
    let (mut there, mut turns) = (BTreeSet::new(), Vec::new());
    for at_once in changes.chunk_by(|a, b| a.0 == b.0) {
        for &(_, age, comes) in at_once {
            if comes {
                there.insert(age);
            } else {
                there.remove(&age);
            }
        }
        let youngest = there.last().copied().unwrap_or_default();
        turns.extend(codes.get(youngest).map(|&code| (at_once[0].0, code)));
    }
    turns
}

struct Settling<'a> {
    known: Known,
    wanted: Vec<u64>,
    modules: &'a FxHashSet<ModuleId>,
    /// Of codes that are not in the modules as recorded: how many others lie below.
    layers: FxHashMap<Code, u32>,
}

impl Settling<'_> {
    /// The position of a frame's address, if the frame is one of the process's.
    fn position(&self, frame: &Frame) -> Option<At> {
        let is_own = self.modules.contains(&frame.module);
        is_own.then(|| self.wanted.binary_search(&frame.lookup_address().0).ok()).flatten().map(|at| at as At)
    }

    fn is_ambiguous(&self, at: At) -> bool {
        self.known.at(at).len() > 1
    }

    /// What was sampled at addresses that were always the same code: by code, its addresses.
    fn hit_at_any_time(&self) -> BTreeMap<Code, Vec<At>> {
        let mut hit: BTreeMap<Code, Vec<At>> = BTreeMap::new();
        for at in 0..self.wanted.len() as At {
            if let [code] = *self.known.at(at) {
                hit.entry(code).or_default().push(at);
            }
        }
        hit
    }

    /// Adds what was sampled at the others.
    fn add_hits(&self, machine: &ExportMachine, hit: &mut BTreeMap<Code, Vec<At>>) {
        let mut added: FxHashSet<(At, Code)> = FxHashSet::default();
        let mut of_stacks: FxHashMap<StackId, Box<[At]>> = FxHashMap::default();
        let samples = machine.samples().iter().map(|sample| (sample.time, sample.stack));
        let events = machine.event_records().iter().map(|(_, record, _)| (record.time, record.stack));
        for (time, stack) in samples.chain(events) {
            let ambiguous = of_stacks.entry(stack).or_insert_with(|| {
                let frames = machine.stacks().get(stack).iter().map(|&id| machine.frames().get(id));
                frames.filter_map(|frame| self.position(frame)).filter(|&at| self.is_ambiguous(at)).collect()
            });
            for &at in &**ambiguous {
                if let Some(code) = self.known.at_time(at, time).filter(|&code| added.insert((at, code))) {
                    hit.entry(code).or_default().push(at);
                }
            }
        }
    }

    /// Codes that were sampled at one address are on layers of their own, the oldest lowest; each is on one layer as a whole.
    fn set_layers(&mut self, hit: &BTreeMap<Code, Vec<At>>) {
        let mut order: Vec<Code> = hit.keys().copied().collect();
        order.sort_by_key(|&code| self.known.since(code));
        let mut free = vec![0; self.wanted.len()];
        for code in order {
            let addresses = hit.get(&code).into_iter().flatten();
            let layer = addresses.clone().map(|&at| free[at as usize]).max().unwrap_or(0).min(MOST_LAYERS);
            addresses.for_each(|&at| free[at as usize] = layer + 1);
            if layer > 0 {
                self.layers.insert(code, layer);
            }
        }
    }

    /// Adds the modules that are laid over others, with what lies there. By module and layer.
    fn over(
        &self,
        machine: &mut ExportMachine,
        hit: &BTreeMap<Code, Vec<At>>,
    ) -> FxHashMap<(ModuleId, u32), ModuleId> {
        let mut over = FxHashMap::default();
        let mut own: Vec<ModuleId> = self.modules.iter().copied().collect();
        own.sort_unstable();
        let mut moved: Vec<(Code, u32)> = self.layers.iter().map(|(&code, &layer)| (code, layer)).collect();
        moved.sort_unstable_by_key(|&(code, _)| (self.known.since(code), code));
        for below in own {
            let Module { kind, path, build_id } = *machine.module(below);
            let (ModuleKind::Anonymous(process) | ModuleKind::Unmapped(process)) = kind else { continue };
            for &(code, layer) in moved.iter().filter(|(code, _)| hit.contains_key(code)) {
                let module = *over
                    .entry((below, layer))
                    .or_insert_with(|| machine.add_module(Module { kind, path, build_id }));
                if let (Some(span), ModuleKind::Anonymous(_)) = (self.known.spans.get(&code), kind) {
                    machine.add_mapping(ModuleMapping {
                        process,
                        module,
                        start: Avma(span.start),
                        end: Avma(span.end),
                        file_offset: FileOffset(0),
                        bias: 0,
                        since: span.since,
                    });
                }
            }
        }
        over
    }

    /// Has the samples and raw events of moved codes mean the modules where these are.
    fn move_samples(&self, machine: &mut ExportMachine, over: &FxHashMap<(ModuleId, u32), ModuleId>) {
        if self.layers.is_empty() {
            return;
        }
        let is_touched = |at: At| self.known.at(at).iter().any(|code| self.layers.contains_key(code));
        let mut touched: FxHashMap<StackId, bool> = FxHashMap::default();
        let mut moved = |machine: &mut ExportMachine, time: Nanos, stack: StackId| {
            let frames = |machine: &ExportMachine| -> Vec<Frame> {
                machine.stacks().get(stack).iter().map(|&id| *machine.frames().get(id)).collect()
            };
            let is_touched = *touched.entry(stack).or_insert_with(|| {
                frames(machine).iter().any(|frame| self.position(frame).is_some_and(is_touched))
            });
            if !is_touched {
                return stack;
            }
            let moved: Vec<FrameId> = frames(machine)
                .into_iter()
                .map(|frame| {
                    let code = self.position(&frame).and_then(|at| self.known.at_time(at, time));
                    let layer = code.and_then(|code| self.layers.get(&code)).copied().unwrap_or(0);
                    let module = over.get(&(frame.module, layer)).copied().unwrap_or(frame.module);
                    machine.intern_frame(Frame { module, ..frame })
                })
                .collect();
            machine.intern_stack(&moved)
        };
        let mut samples = std::mem::take(machine.samples_mut());
        samples.change_each(|sample| sample.stack = moved(machine, sample.time, sample.stack));
        *machine.samples_mut() = samples;
        let mut events = std::mem::take(machine.event_records_mut());
        events.change_stacks(|time, stack| moved(machine, time, stack));
        *machine.event_records_mut() = events;
    }

    /// Names and lines of all that was sampled, by module.
    fn names<F: Read + Seek>(
        &self,
        over: &FxHashMap<(ModuleId, u32), ModuleId>,
        mut dumps: Vec<JitDump<F>>,
        hit: &BTreeMap<Code, Vec<At>>,
    ) -> FxHashMap<ModuleId, JitNames> {
        let mut names: FxHashMap<ModuleId, JitNames> = FxHashMap::default();
        let mut room = MOST_OF_NAMES;
        for (&code, at) in hit {
            let Some(dump) = dumps.get_mut(code.0) else { continue };
            let addresses: Vec<u64> =
                at.iter().filter_map(|&at| self.wanted.get(at as usize)).copied().collect();
            let (Ok(name), Ok(lines)) = (dump.name(code.1), dump.lines(code.1, &addresses)) else { continue };
            if name.is_empty() || name.len() > room {
                continue;
            }
            room -= name.len();
            let layer = self.layers.get(&code).copied().unwrap_or(0);
            for &below in self.modules {
                let module = over.get(&(below, layer)).copied().unwrap_or(below);
                let names = names.entry(module).or_default();
                let name = names.add_name(name.clone());
                for (&address, line) in addresses.iter().zip(&lines) {
                    let place = match line {
                        Some(line) => JitPlace {
                            name,
                            file: Some(names.add_file(&line.file)),
                            line: line.line,
                            column: line.column,
                        },
                        None => JitPlace { name, file: None, line: 0, column: 0 },
                    };
                    names.set(address, place);
                }
            }
        }
        names
    }
}

#[cfg(test)]
mod tests;
