//! What a process has mapped since it was forked: a frame's mapping in, the process's own entry in the records out.
//!
//! A child shares its parent's mappings in the tracked state, so that a fork costs nothing. The records have each mapping by process: a
//! child gets those that its stacks lead through, when the first does, and so one that executes a program at once, as most do, gets none.

use std::collections::HashSet;

use collector_common::ids::Avma;
use collector_common::intern::Seeded;
use collector_common::record::{ExportMachine, ModuleMapping, ProcessId};
use collector_common::track::MappedModule;

/// The inherited mappings that the records have.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    /// By process, where they start. Addresses are chosen by the recorded programs.
    entered: HashSet<(ProcessId, Avma), Seeded>,
    /// The last one: frames of a stack are often in one file.
    last: Option<(ProcessId, Avma)>,
}

impl Inherited {
    /// A frame of `process` is in `mapping`: enters it from the fork on, if it was made before that.
    pub(super) fn enter(&mut self, machine: &mut ExportMachine, process: ProcessId, mapping: &MappedModule) {
        let forked = machine.process(process).start;
        let MappedModule { start, end, file_offset, bias, module, since } = *mapping;
        if since >= forked || self.last.replace((process, start)) == Some((process, start)) {
            return;
        }
        if self.entered.insert((process, start)) {
            machine.add_mapping(ModuleMapping {
                process,
                module,
                start,
                end,
                file_offset,
                bias,
                since: forked,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{FileOffset, Nanos, Pid, Tid};
    use collector_common::record::ModuleId;
    use collector_common::track::Tracker;

    use super::*;

    /// Everything that happened to the processes, and the frames' addresses.
    #[derive(Default)]
    struct Recorded {
        machine: ExportMachine,
        tracker: Tracker,
        inherited: Inherited,
    }

    impl Recorded {
        fn map(&mut self, process: ProcessId, (start, end): (u64, u64), module: u32, since: u64) {
            let mapping = MappedModule {
                start: Avma(start),
                end: Avma(end),
                file_offset: FileOffset(0x3000),
                bias: start,
                module: ModuleId(module),
                since: Nanos(since),
            };
            assert!(self.tracker.map(process, mapping));
        }

        fn fork(&mut self, parent: u32, pid: u32, time: u64) -> ProcessId {
            let (process, parent) = self.tracker.fork(Pid(parent), Pid(pid), Nanos(time));
            assert_eq!(self.machine.add_process(Pid(pid), "p", parent, Nanos(time)), process);
            process
        }

        fn frame(&mut self, process: ProcessId, address: u64, time: u64) {
            let mapping = *self.tracker.mapping_at(process, Avma(address), Nanos(time)).unwrap();
            self.inherited.enter(&mut self.machine, process, &mapping);
        }

        /// Start, end, place in the file, module and time of what the records have of a process.
        fn entered(&self, process: ProcessId) -> Vec<(u64, u64, u64, u32, u64)> {
            let own = self.machine.mappings().iter().filter(|mapping| mapping.process == process);
            own.map(|it| (it.start.0, it.end.0, it.file_offset.0, it.module.0, it.since.0)).collect()
        }
    }

    #[test]
    fn a_child_has_what_its_stacks_lead_through_since_it_was_forked() {
        let mut recorded = Recorded::default();
        let parent = recorded.tracker.existing(Pid(1), [Tid(1)]);
        recorded.machine.add_process(Pid(1), "p", None, Nanos(0));
        recorded.map(parent, (0x1000, 0x5000), 1, 0);
        recorded.map(parent, (0x8000, 0x9000), 2, 10);
        let child = recorded.fork(1, 2, 20);
        let idle = recorded.fork(1, 3, 21);
        recorded.map(child, (0xa000, 0xb000), 3, 25);
        for (address, time) in [(0x1800, 30), (0xa800, 30), (0x4800, 31)] {
            recorded.frame(child, address, time);
            recorded.frame(parent, 0x1800, time);
        }
        assert_eq!(recorded.entered(child), [(0x1000, 0x5000, 0x3000, 1, 20)], "once, and not its own");
        // What is left of one that it lays another over is a part of the same.
        recorded.map(child, (0x2000, 0x3000), 4, 40);
        for address in [0x1800, 0x2800, 0x3800] {
            recorded.frame(child, address, 41);
        }
        assert_eq!(recorded.entered(child)[1..], [(0x3000, 0x5000, 0x5000, 1, 20)]);
        let grandchild = recorded.fork(2, 4, 50);
        recorded.frame(grandchild, 0x2800, 51);
        assert_eq!(recorded.entered(grandchild), [(0x2000, 0x3000, 0x3000, 4, 50)]);
        assert_eq!([recorded.entered(parent), recorded.entered(idle)], [[], []]);
    }

    #[test]
    fn a_program_inherits_nothing() {
        let mut recorded = Recorded::default();
        let parent = recorded.tracker.existing(Pid(1), [Tid(1)]);
        recorded.machine.add_process(Pid(1), "p", None, Nanos(0));
        recorded.map(parent, (0x1000, 0x5000), 1, 0);
        let child = recorded.fork(1, 2, 20);
        recorded.tracker.exec(child, Nanos(30));
        recorded.map(child, (0x1000, 0x5000), 2, 35);
        recorded.frame(child, 0x1800, 40);
        assert_eq!(recorded.entered(child), []);
        recorded.frame(child, 0x1800, 25);
        assert_eq!(recorded.entered(child), [(0x1000, 0x5000, 0x3000, 1, 20)], "a sample from before that");
    }
}
