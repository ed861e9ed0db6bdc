//! Samples of times that threads were blocked in, the table of who woke whom out, as Linux has it.

use collector_common::intern::StringId;
use collector_common::record::{AttributeValue, ExportMachine, Sample};

use super::measured::WAKER;
use super::shortest::Shortest;
use crate::wakers::Wakers;

/// Kinds whose samples have wakers.
const KINDS: [&str; 2] = ["off_cpu", "wall_clock"];

/// Adds the table, where there is one that woke another. Where there are both kinds, both are of the same times, but for those that one leaves out.
pub(super) fn add_table(machine: &mut ExportMachine, shortest: Shortest) {
    let mut kinds = KINDS;
    if shortest.wall_clock < shortest.off_cpu {
        kinds.reverse();
    }
    let of = |name: &str| {
        let is_called =
            |kind: usize| machine.kinds().get(kind).is_some_and(|it| machine.string(it.name) == name);
        machine.samples().kinds().find(|id| is_called(usize::from(id.0)))
    };
    let Some(kind) = kinds.into_iter().find_map(of) else { return };
    let mut wakers = Wakers::default();
    for sample in machine.samples().iter().filter(|sample| sample.kind == kind) {
        if let Some(waker) = waker(machine, &sample) {
            wakers.count(waker, machine.thread(sample.thread).name, (1.0, sample.value as f64));
        }
    }
    if let Some(table) = wakers.table(machine) {
        machine.add_table(table);
    }
}

fn waker(machine: &ExportMachine, sample: &Sample) -> Option<StringId> {
    machine.attributes().get(sample.attributes).iter().find_map(|(key, value)| match value {
        AttributeValue::Label(waker) if machine.string(*key) == WAKER => Some(*waker),
        _ => None,
    })
}
