//! Joins what a source tells of processes, from beginning to end, with the processes that the sideband and `/proc` told of: the same
//! ones, of which it knows how they ended, and arguments that nobody could read in time.

use collector_common::ids::{Nanos, Pid};
use collector_common::record::{ExportMachine, ProcessId, ProcessLife};
use rustc_hash::FxHashMap;

use crate::source::ToldLife;

/// The longest time from when a process is made to the record of it: its parent may have to wait for a CPU in between.
const LATE: Nanos = Nanos(2_000_000_000);

/// Enters processes that a source told of, in the order in which they were made.
pub(super) fn enter(machine: &mut ExportMachine, lives: Vec<ToldLife>) {
    let mut by_pid: FxHashMap<Pid, Vec<ProcessId>> = FxHashMap::default();
    for (process, at) in machine.processes().iter().zip(0..) {
        by_pid.entry(process.pid).or_default().push(ProcessId(at));
    }
    for life in lives {
        let known = find(machine, by_pid.get(&life.pid), life.start);
        let process = known.unwrap_or_else(|| {
            let process = machine.add_process(life.pid, &life.name, None, life.start);
            by_pid.entry(life.pid).or_default().push(process);
            process
        });
        let parent = machine.process(process).parent.unwrap_or_else(|| {
            let known = by_pid.get(&life.parent).and_then(|list| before(machine, list, life.start));
            known.unwrap_or_else(|| {
                let parent = machine.add_process(life.parent, &life.parent_name, None, Nanos(0));
                by_pid.entry(life.parent).or_default().insert(0, parent);
                parent
            })
        });
        join(machine, process, parent, life);
    }
}

/// Enters what is known of a life into its process.
fn join(machine: &mut ExportMachine, process: ProcessId, parent: ProcessId, life: ToldLife) {
    machine.rename_process(process, &life.name);
    if let Some(process) = machine.process_mut(process) {
        process.parent = Some(parent);
        process.exit = life.end.map(|(_, exit)| exit);
        process.end = process.end.or(life.end.map(|(end, _)| end));
    }
    if let Some(executed) = life.executed {
        let last = machine.programs_of(process).next();
        let program = last.unwrap_or_else(|| machine.add_program(process, executed.time, &life.name));
        let is_unknown = machine.arguments(machine.program(program)).next().is_none();
        if is_unknown {
            machine.set_arguments(program, &executed.arguments, executed.are_cut);
        }
    }
    machine.add_life(ProcessLife { process, made: life.start });
}

/// The process that was made at a time, by when it was told of.
fn find(machine: &ExportMachine, of_pid: Option<&Vec<ProcessId>>, made: Nanos) -> Option<ProcessId> {
    let is_record_of = |process: &&ProcessId| {
        let start = machine.process(**process).start;
        (made.0..made.0.saturating_add(LATE.0)).contains(&start.0)
    };
    let of_pid = of_pid?;
    let was_there = |process: &&ProcessId| machine.process(**process).start == Nanos(0);
    of_pid.iter().find(is_record_of).or_else(|| of_pid.iter().find(was_there)).copied()
}

/// The last of some processes that was there at a time.
fn before(machine: &ExportMachine, of_pid: &[ProcessId], time: Nanos) -> Option<ProcessId> {
    of_pid.iter().rev().find(|process| machine.process(**process).start <= time).copied()
}

#[cfg(test)]
mod tests {
    use collector_common::record::Exit;

    use super::*;
    use crate::source::ToldProgram;

    fn life(pid: u32, parent: u32, start: u64, end: Option<(u64, Exit)>) -> ToldLife {
        ToldLife {
            pid: Pid(pid),
            name: format!("p{pid}"),
            parent: Pid(parent),
            parent_name: "parent".to_owned(),
            executed: None,
            start: Nanos(start),
            end: end.map(|(end, exit)| (Nanos(end), exit)),
        }
    }

    #[test]
    fn a_life_is_of_the_process_that_was_told_of_after_it_was_made() {
        let mut machine = ExportMachine::default();
        let shell = machine.add_process(Pid(1), "sh", None, Nanos(0));
        let [first, second] =
            [1000, 5000].map(|at| machine.add_process(Pid(7), "sh", Some(shell), Nanos(at)));
        machine.end_process(first, Nanos(2000));
        let program = machine.add_program(second, Nanos(5100), "true");
        let told = ToldProgram { time: Nanos(5101), arguments: (*b"true\0").into(), are_cut: false };
        enter(
            &mut machine,
            vec![
                life(7, 1, 990, Some((1990, Exit::Code(3)))),
                ToldLife { executed: Some(told.clone()), ..life(7, 1, 4990, Some((6000, Exit::Signal(9)))) },
                // Neither it nor its parent was told of otherwise.
                ToldLife { executed: Some(told), ..life(8, 9, 7000, None) },
            ],
        );
        let lives: Vec<_> = machine.lives().iter().map(|life| (life.process, life.made.0)).collect();
        assert_eq!(lives, [(first, 990), (second, 4990), (ProcessId(3), 7000)]);
        let ends = machine.processes().iter().map(|process| (process.end.map(|end| end.0), process.exit));
        let expected = [(None, None), (Some(2000), Some(Exit::Code(3))), (Some(6000), Some(Exit::Signal(9)))];
        assert!(ends.take(3).eq(expected));
        assert!(machine.arguments(machine.program(program)).eq(["true"]));
        let added = machine.process(ProcessId(3));
        assert_eq!((added.pid, machine.string(added.name), added.end), (Pid(8), "p8", None));
        assert_eq!(machine.string(machine.process(added.parent.unwrap()).name), "parent");
    }

    #[test]
    fn a_life_from_before_the_recording_is_of_what_was_there() {
        let mut machine = ExportMachine::default();
        let there = machine.add_process(Pid(7), "sh", None, Nanos(0));
        let later = machine.add_process(Pid(7), "sh", None, Nanos(9_000_000_000));
        enter(&mut machine, vec![life(7, 7, 500, None)]);
        assert_eq!((machine.lives()[0].process, machine.process(later).exit), (there, None));
    }
}
