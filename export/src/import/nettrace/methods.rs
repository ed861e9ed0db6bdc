//! Methods that stand on stacks in, a mapping for each of them out: code that a runtime tells of lies in no mapping that the trace
//! tells of, and formats keep names by mappings.

use std::collections::BTreeSet;

use collector_common::ids::{Avma, FileOffset};
use collector_common::record::{ExportMachine, ModuleId, ModuleMapping, ProcessId};

use super::code::MethodPlace;

/// Where methods are that stand on stacks.
#[derive(Debug, Default)]
pub(super) struct Methods {
    /// Process, first and last address, and module.
    seen: BTreeSet<(ProcessId, u64, u64, ModuleId)>,
}

impl Methods {
    pub(super) fn add(&mut self, process: ProcessId, place: MethodPlace, module: ModuleId) {
        self.seen.insert((process, place.first, place.last, module));
    }

    /// Maps each of them. It is in no place of a file: as such the address itself counts, so that all of a module have one bias, 0.
    pub(super) fn map(&self, machine: &mut ExportMachine) {
        for &(process, first, last, module) in &self.seen {
            let since = machine.process(process).start;
            machine.add_mapping(ModuleMapping {
                process,
                module,
                start: Avma(first),
                end: Avma(last.saturating_add(1)),
                file_offset: FileOffset(first),
                bias: 0,
                since,
            });
        }
    }
}
