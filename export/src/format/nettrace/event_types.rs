//! Kinds of raw events as types of the file: under their own provider, with their fields and what else is known of them.

use collector_common::intern::StackId;
use collector_common::record::{EventFacts, EventKind, ExportMachine};

use super::event_fields::describe;
use super::known_types::{KnownType, is_same};
use super::types::{FIRST_KIND, NAME, NO_SAMPLES, POINTER_SIZE, SAMPLES, sized};
use super::wire::{cut, text};
use crate::leb128;

/// Bytes of types after which there is another block.
const PIECE: usize = 1 << 20;

/// The most bytes of names, so that a type has room in 64 KiB with its fields.
const LONGEST_NAME: usize = 4 << 10;

/// The most bytes of the descriptions of fields.
const LARGEST: usize = 48 << 10;

/// A kind of raw event as it is written.
pub(super) struct EventType {
    /// The number of the type in this file.
    pub(super) number: u32,
    /// That of the type of those events that have a stack, and no sample was taken of.
    pub(super) alone: u32,
    /// Whether its events' fields are described and written, and not their bytes as they are.
    pub(super) is_described: bool,
    /// Whether the file tells more of an event than of its sample: it has fields, or bytes of which nothing is known.
    pub(super) is_told: bool,
}

/// All types, by kind, and the contents of blocks that tell of them.
pub(super) fn all(machine: &ExportMachine) -> (Vec<EventType>, Vec<Vec<u8>>) {
    let (mut types, mut blocks) = (Vec::new(), Vec::new());
    // There is no header.
    let mut block = vec![0, 0];
    let first = FIRST_KIND + machine.kinds().len() as u32;
    let mut more = first + machine.event_kinds().len() as u32;
    for ((kind, number), taken) in machine.event_kinds().iter().zip(first..).zip(taken(machine)) {
        let mut fields = Vec::new();
        let fits = describe(&mut fields, &kind.format) && fields.len() <= LARGEST;
        let is_described = fits && fields != [0, 0] && !is_known(machine, kind);
        if !is_described {
            fields = vec![0, 0];
        }
        let is_told = taken.has_bytes || !kind.format.fields().is_empty();
        let is_alone = taken.alone > 0 && taken.sampled == 0;
        row(&mut block, machine, kind, number, &fields, is_alone);
        let mut alone = number;
        if taken.alone > 0 && taken.sampled > 0 {
            (alone, more) = (more, more + 1);
            row(&mut block, machine, kind, alone, &fields, true);
        }
        types.push(EventType { number, alone, is_described, is_told });
        if block.len() >= PIECE {
            blocks.push(std::mem::replace(&mut block, vec![0, 0]));
        }
    }
    if block.len() > 2 {
        blocks.push(block);
    }
    (types, blocks)
}

/// Whether who reads knows the fields of a kind by its number. `PerfView` does, and takes no others of .NET's runtime, whose text is UTF-16.
fn is_known(machine: &ExportMachine, kind: &EventKind) -> bool {
    let Ok(id) = u32::try_from(kind.id) else { return false };
    let known = KnownType::of(machine.string(kind.provider), id, kind.facts.version, POINTER_SIZE);
    known.is_some_and(|known| {
        known.name() == machine.string(kind.short_name)
            && known.format().is_some_and(|format| is_same(&format, &kind.format))
    })
}

/// Of how many events of a kind that have a stack samples were taken, and of how many not; and whether any event has bytes.
#[derive(Clone, Copy, Default)]
struct Taken {
    sampled: u64,
    alone: u64,
    has_bytes: bool,
}

/// By kind.
fn taken(machine: &ExportMachine) -> Vec<Taken> {
    let mut taken = vec![Taken::default(); machine.event_kinds().len()];
    let records = machine.event_records();
    if records.is_empty() {
        return taken;
    }
    for (_, record, bytes) in records.iter() {
        if let Some(of) = taken.get_mut(usize::from(record.kind.0)) {
            of.alone += u64::from(record.stack != StackId::EMPTY);
            of.has_bytes |= !bytes.is_empty();
        }
    }
    let samples = machine.samples();
    let sampled = (0..samples.len()).filter_map(|at| records.get(samples.record(at)?));
    for (record, _) in sampled.filter(|(record, _)| record.stack != StackId::EMPTY) {
        if let Some(of) = taken.get_mut(usize::from(record.kind.0)) {
            (of.sampled, of.alone) = (of.sampled + 1, of.alone.saturating_sub(1));
        }
    }
    taken
}

fn row(
    out: &mut Vec<u8>,
    machine: &ExportMachine,
    kind: &EventKind,
    number: u32,
    fields: &[u8],
    is_alone: bool,
) {
    let [name, provider, short_name] =
        [kind.name, kind.provider, kind.short_name].map(|id| cut(machine.string(id), LONGEST_NAME));
    let mut row = Vec::new();
    leb128::write(&mut row, number.into());
    text(&mut row, provider);
    leb128::write(&mut row, u32::try_from(kind.id).unwrap_or_default().into());
    text(&mut row, short_name);
    row.extend_from_slice(fields);
    let mut optional = facts(&kind.facts);
    if name.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/')) != Some(short_name) {
        optional.push(6);
        text(&mut optional, NAME);
        text(&mut optional, name);
    }
    if is_alone {
        optional.push(6);
        text(&mut optional, SAMPLES);
        text(&mut optional, NO_SAMPLES);
    }
    sized(&mut row, &optional);
    sized(out, &row);
}

fn facts(of: &EventFacts) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, value) in [(1, of.opcode), (8, of.level), (9, of.version)] {
        if value != 0 {
            out.extend_from_slice(&[kind, value]);
        }
    }
    if of.keywords != 0 {
        out.push(3);
        out.extend_from_slice(&of.keywords.to_le_bytes());
    }
    out
}
