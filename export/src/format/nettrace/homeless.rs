//! Files on stacks of processes in which nobody tells where they were mapped in, mappings of them out.
//!
//! Profiles of pprof and Firefox Profiler have addresses in files, and not where these were in a process. An event's stack here has the
//! process's addresses alone, and names are told by mappings: each such file gets addresses of its own in each process that has it on a stack,
//! behind all that is mapped there.

use std::collections::BTreeSet;
use std::ops::Range;

use collector_common::ids::{Avma, FileOffset, Nanos};
use collector_common::intern::StackId;
use collector_common::record::{
    ExportMachine, FrameFlags, ModuleId, ModuleKind, ModuleMapping, ProcessId, WITHOUT_ADDRESS,
};

use crate::table::KeySet;

/// What is mapped at once.
const PAGE: u64 = 1 << 12;

/// Where the first file of a process without mappings is. Lower is where numbers that are no addresses would be looked for.
const FIRST: u64 = 1 << 32;

/// Where user space ends at the latest: 57 bits, of which one is the kernel's.
const LAST: u64 = 1 << 56;

/// A mapping of each module on a stack of a process that has none of it, since the beginning; by process.
pub(super) fn mappings(machine: &ExportMachine) -> Vec<ModuleMapping> {
    let told = machine.mappings().iter().filter(|mapping| !WITHOUT_ADDRESS.contains(&mapping.start.0));
    let mapped: KeySet<(ProcessId, ModuleId)> =
        told.map(|mapping| (mapping.process, mapping.module)).collect();
    let with_mappings: KeySet<ProcessId> = machine.mappings().iter().map(|mapping| mapping.process).collect();
    let is_placed = |&(process, module): &(ProcessId, ModuleId)| match machine.module(module).kind {
        ModuleKind::File | ModuleKind::Vdso => true,
        ModuleKind::Anonymous(of) => of == process,
        // Addresses that nothing is known of are at theirs, unless nothing else is known of the process, either.
        ModuleKind::Unmapped(of) => of == process && !with_mappings.contains(&process),
        _ => false,
    };
    let pairs = used(machine).into_iter().filter(|pair| !mapped.contains(pair));
    let pairs: Vec<(ProcessId, ModuleId)> = pairs.filter(is_placed).collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    let extents = extents(machine);
    let mut ends = ends(machine);
    let place = |(process, module): (ProcessId, ModuleId)| {
        let pages = extents.get(module.0 as usize)?.clone()?;
        let end = ends.get_mut(process.0 as usize)?;
        let own = *end..end.saturating_add(pages.end - pages.start);
        let moves = matches!(machine.module(module).kind, ModuleKind::File | ModuleKind::Vdso);
        let place = if moves && pages.end <= LAST && own.end <= LAST { own } else { pages.clone() };
        *end = (*end).max(if place.end <= LAST { place.end + PAGE } else { 0 });
        Some(ModuleMapping {
            process,
            module,
            start: Avma(place.start),
            end: Avma(place.end),
            file_offset: FileOffset(0),
            bias: place.start.wrapping_sub(pages.start),
            since: Nanos(0),
        })
    };
    pairs.into_iter().filter_map(place).collect()
}

/// Modules with an address on a stack of a process.
fn used(machine: &ExportMachine) -> BTreeSet<(ProcessId, ModuleId)> {
    let mut stacks: KeySet<(ProcessId, StackId)> = KeySet::default();
    let samples = machine.samples().iter().map(|sample| (sample.thread, sample.stack));
    let records = machine.event_records().iter().map(|(_, record, _)| (record.thread, record.stack));
    let mut last = None;
    for (thread, stack) in samples.chain(records) {
        if last.replace((thread, stack)) != Some((thread, stack)) {
            stacks.insert((machine.thread(thread).process, stack));
        }
    }
    let of_stack = |(process, stack): (ProcessId, StackId)| {
        let frames = machine.stacks().get(stack).iter().map(|&frame| machine.frames().get(frame));
        let code = frames.filter(|frame| frame.has_address() && !frame.flags.has(FrameFlags::CUT));
        code.map(move |frame| (process, frame.module))
    };
    stacks.into_iter().flat_map(of_stack).collect()
}

/// By module: the pages that its frames' addresses are in.
fn extents(machine: &ExportMachine) -> Vec<Option<Range<u64>>> {
    let mut extents: Vec<Option<Range<u64>>> = vec![None; machine.modules().len()];
    for frame in machine.frames().iter() {
        if !frame.has_address() || frame.flags.has(FrameFlags::CUT) {
            continue;
        }
        let Some(extent) = extents.get_mut(frame.module.0 as usize) else { continue };
        // Where a call returns to is looked for before it, and profiles do not tell of which addresses that is.
        let start = frame.address.0.saturating_sub(1) / PAGE * PAGE;
        let end = frame.address.0.saturating_add(PAGE) / PAGE * PAGE;
        let known = extent.get_or_insert(start..end);
        *known = known.start.min(start)..known.end.max(end);
    }
    extents
}

/// By process: where user space is free from.
fn ends(machine: &ExportMachine) -> Vec<u64> {
    let mut ends = vec![FIRST; machine.processes().len()];
    for mapping in machine.mappings().iter().filter(|mapping| mapping.end.0 < LAST) {
        if let Some(end) = ends.get_mut(mapping.process.0 as usize) {
            *end = (*end).max(mapping.end.0.div_ceil(PAGE) * PAGE + PAGE);
        }
    }
    ends
}
