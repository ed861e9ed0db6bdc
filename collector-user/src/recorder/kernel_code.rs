//! Code that comes and goes in the kernel: what lay at an address at a time. The samples of a round are taken in when all
//! that was added and removed in it is known, and a program may be there for a millisecond only.

use std::collections::BTreeMap;

use collector_common::ids::{Nanos, Svma};
use collector_common::intern::StringId;
use collector_common::record::{ExportMachine, KernelCode, Module, ModuleId, ModuleKind};
use rustc_hash::FxHashMap;

/// Code that was added since the recording started.
#[derive(Default)]
pub(super) struct AddedCodes {
    /// What is there now, by first address; pieces do not overlap.
    present: BTreeMap<u64, Present>,
    /// What a sample from before its removal may still mean, in the order of the removals.
    removed: Vec<Removed>,
    /// All that was ever there: code that is added again is the same module.
    modules: FxHashMap<(Svma, Svma, StringId), ModuleId>,
}

struct Present {
    end: u64,
    module: ModuleId,
    since: Nanos,
}

struct Removed {
    start: u64,
    code: Present,
    until: Nanos,
}

impl AddedCodes {
    /// Takes in code that was added at a time. What lay at its addresses is gone, even if nobody said so.
    pub(super) fn add(&mut self, machine: &mut ExportMachine, code: KernelCode, time: Nanos) {
        let KernelCode { start, end, name } = code;
        if start >= end {
            return;
        }
        while let Some(overlapping) = self.last_before(end.0).filter(|(_, present)| present.end > start.0) {
            let at = overlapping.0;
            self.take_away(at, time);
        }
        let module = *self.modules.entry((start, end, name)).or_insert_with(|| {
            machine.add_module(Module { kind: ModuleKind::KernelCode, path: name, build_id: None })
        });
        self.present.insert(start.0, Present { end: end.0, module, since: time });
    }

    /// Takes in code that was removed at a time. What is not known to have been added was there before the recording.
    pub(super) fn remove(&mut self, machine: &mut ExportMachine, code: KernelCode, time: Nanos) {
        if !self.take_away(code.start.0, time) {
            machine.add_removed_code(code);
        }
    }

    /// Whether there was anything that starts at an address.
    fn take_away(&mut self, start: u64, time: Nanos) -> bool {
        let code = self.present.remove(&start);
        let found = code.is_some();
        self.removed.extend(code.map(|code| Removed { start, code, until: time }));
        found
    }

    /// No query for a time before `watermark` will come.
    pub(super) fn prune(&mut self, watermark: Nanos) {
        self.removed.retain(|removed| removed.until > watermark);
    }

    /// The module that lay at an address of the kernel at a time.
    pub(super) fn module_at(&self, address: u64, time: Nanos) -> ModuleId {
        let held = |start: u64, code: &Present| start <= address && address < code.end && code.since <= time;
        let present = self.last_before(address.saturating_add(1)).filter(|(start, code)| held(*start, code));
        if let Some((_, code)) = present {
            return code.module;
        }
        let mut removed = self.removed.iter().rev();
        let found = removed.find(|removed| held(removed.start, &removed.code) && time < removed.until);
        found.map_or(ModuleId::KERNEL, |removed| removed.code.module)
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
        let name_at = |machine: &ExportMachine, codes: &AddedCodes, address, time| {
            machine.string(machine.module(codes.module_at(address, Nanos(time))).path).to_owned()
        };
        // It was there before, and is taken away: whatever comes next at its place is not mixed with it.
        codes.remove(&mut machine, old, Nanos(1));
        assert_eq!(name_at(&machine, &codes, 150, 1), "[kernel]");
        assert_eq!(machine.removed_codes().at(Svma(150)), Some(old.name));
        codes.add(&mut machine, new, Nanos(2));
        assert_eq!(
            ["[kernel]", "new", "new", "[kernel]"],
            [149, 150, 299, 300].map(|at| name_at(&machine, &codes, at, 2))
        );
        // A removal that was not told.
        codes.add(&mut machine, inner, Nanos(3));
        assert_eq!(
            ["[kernel]", "inner", "[kernel]"],
            [189, 190, 191].map(|at| name_at(&machine, &codes, at, 3))
        );
        codes.remove(&mut machine, inner, Nanos(4));
        assert_eq!(name_at(&machine, &codes, 190, 4), "[kernel]");
        assert_eq!(machine.removed_codes().at(Svma(190)), Some(old.name));
        // The same again is the same module.
        let modules = machine.modules().len();
        codes.add(&mut machine, new, Nanos(5));
        codes.add(&mut machine, code(&mut ExportMachine::default(), 7, 7, "empty"), Nanos(5));
        assert_eq!(machine.modules().len(), modules);
        // Samples come after all that was told of their round.
        let over_time = |codes: &AddedCodes| [1, 2, 3, 4, 5].map(|time| name_at(&machine, codes, 190, time));
        assert_eq!(
            ["[kernel]", "new", "inner", "[kernel]", "new"],
            over_time(&codes).each_ref().map(|n| &**n)
        );
        codes.prune(Nanos(3));
        assert_eq!(
            ["[kernel]", "[kernel]", "inner", "[kernel]", "new"],
            over_time(&codes).each_ref().map(|n| &**n)
        );
    }
}
