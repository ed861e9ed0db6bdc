//! Code that comes and goes in the kernel: what lies at an address now.

use std::collections::BTreeMap;

use collector_common::ids::Svma;
use collector_common::intern::StringId;
use collector_common::record::{ExportMachine, KernelCode, Module, ModuleId, ModuleKind};
use rustc_hash::FxHashMap;

/// Code that was added since the recording started.
#[derive(Default)]
pub(super) struct AddedCodes {
    /// What is there now, by first address; pieces do not overlap.
    present: BTreeMap<u64, Present>,
    /// All that was ever there: code that is added again is the same module.
    modules: FxHashMap<(Svma, Svma, StringId), ModuleId>,
}

struct Present {
    end: u64,
    module: ModuleId,
}

impl AddedCodes {
    /// Takes in code that was added. What lay at its addresses is gone, even if nobody said so.
    pub(super) fn add(&mut self, machine: &mut ExportMachine, code: KernelCode) {
        let KernelCode { start, end, name } = code;
        if start >= end {
            return;
        }
        while let Some(overlapping) = self.last_before(end.0).filter(|(_, present)| present.end > start.0) {
            let at = overlapping.0;
            self.present.remove(&at);
        }
        let module = *self.modules.entry((start, end, name)).or_insert_with(|| {
            machine.add_module(Module { kind: ModuleKind::KernelCode, path: name, build_id: None })
        });
        self.present.insert(start.0, Present { end: end.0, module });
    }

    /// Takes in code that was removed. What is not known to have been added was there before the recording.
    pub(super) fn remove(&mut self, machine: &mut ExportMachine, code: KernelCode) {
        if self.present.remove(&code.start.0).is_none() {
            machine.add_removed_code(code);
        }
    }

    /// The module that lies at an address of the kernel.
    pub(super) fn module_at(&self, address: u64) -> ModuleId {
        let found = self.last_before(address.saturating_add(1)).filter(|(_, present)| address < present.end);
        found.map_or(ModuleId::KERNEL, |(_, present)| present.module)
    }

    fn last_before(&self, address: u64) -> Option<(u64, &Present)> {
        self.present.range(..address).next_back().map(|(&start, present)| (start, present))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(machine: &mut ExportMachine, start: u64, end: u64, name: &str) -> KernelCode {
        KernelCode { start: Svma(start), end: Svma(end), name: machine.intern_string(name) }
    }

    #[test]
    fn each_sample_meets_the_code_of_its_time() {
        let (mut machine, mut codes) = (ExportMachine::default(), AddedCodes::default());
        let [old, new, inner] = [(100, 200, "old"), (150, 300, "new"), (190, 191, "inner")]
            .map(|(start, end, name)| code(&mut machine, start, end, name));
        let name_at = |machine: &ExportMachine, codes: &AddedCodes, address| {
            machine.string(machine.module(codes.module_at(address)).path).to_owned()
        };
        // It was there before, and is taken away: whatever comes next at its place is not mixed with it.
        codes.remove(&mut machine, old);
        assert_eq!(name_at(&machine, &codes, 150), "[kernel]");
        assert_eq!(machine.removed_codes().at(Svma(150)), Some(old.name));
        codes.add(&mut machine, new);
        assert_eq!(
            ["[kernel]", "new", "new", "[kernel]"],
            [149, 150, 299, 300].map(|at| name_at(&machine, &codes, at))
        );
        // A removal that was not told.
        codes.add(&mut machine, inner);
        assert_eq!(
            ["[kernel]", "inner", "[kernel]"],
            [189, 190, 191].map(|at| name_at(&machine, &codes, at))
        );
        codes.remove(&mut machine, inner);
        assert_eq!(name_at(&machine, &codes, 190), "[kernel]");
        assert_eq!(machine.removed_codes().at(Svma(190)), Some(old.name));
        // The same again is the same module.
        let modules = machine.modules().len();
        codes.add(&mut machine, new);
        codes.add(&mut machine, code(&mut ExportMachine::default(), 7, 7, "empty"));
        assert_eq!(machine.modules().len(), modules);
    }
}
