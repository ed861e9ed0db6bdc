//! Lives of processes in, processes of a machine out, and which one a number was at a time.

use std::collections::HashMap;

use collector_common::ids::{Nanos, Pid};
use collector_common::record::{Exit, ExportMachine, ProcessId};
use windows_etw::decode::state::ProcessLife;
use windows_etw::plan::AliveProcess;

use super::command_line::arguments;
use super::name;
use super::times::Times;

/// The process of idle CPUs.
const IDLE: Pid = Pid(0);

/// The longest command line that Windows has, in bytes.
const LONGEST_COMMAND: usize = 3 << 15;

/// A process at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) process: ProcessId,
    /// So it is from then on,
    pub(super) from: Nanos,
    /// until then.
    pub(super) until: Nanos,
}

/// The processes of a machine by their numbers.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// In the order of their beginnings.
    of_pid: HashMap<Pid, Vec<(Nanos, ProcessId)>>,
    unknown: Option<ProcessId>,
}

impl Processes {
    /// Adds all lives. Of those that were there before the trace, `there` tells who is older than whom, as far as it is known.
    pub(super) fn add(
        machine: &mut ExportMachine,
        lives: &[ProcessLife],
        times: &Times,
        there: &[AliveProcess],
    ) -> Self {
        let mut processes = Self::default();
        let start = |life: &ProcessLife| life.start.map_or(Nanos(0), |start| times.at(start));
        for life in lives {
            let process = machine.add_process(life.pid, &called(life.pid, &life.image), None, start(life));
            let own = processes.of_pid.entry(life.pid).or_default();
            let since = own.last().map_or(start(life), |(last, _)| start(life).max(*last));
            own.push((since, process));
            if let Some(end) = life.end {
                machine.end_process(process, times.at(end));
            }
            let line = &life.command_line;
            if !line.is_empty() {
                let kept = &line[..line.floor_char_boundary(LONGEST_COMMAND)];
                let program = machine.add_program(process, start(life), name(&life.image));
                machine.set_arguments(program, &arguments(kept), kept.len() < line.len());
            }
        }
        let made: HashMap<Pid, u64> = there.iter().map(|it| (it.pid, it.made)).collect();
        let is_older = |parent: Pid, child: Pid| match (made.get(&parent), made.get(&child)) {
            (Some(parent), Some(child)) => parent <= child,
            _ => true,
        };
        for (life, process) in lives.iter().zip((0..).map(ProcessId)) {
            let parent = processes.maker(life.parent, start(life)).filter(|parent| *parent != process);
            let are_of_before =
                |parent: &ProcessId| life.start.is_none() && machine.process(*parent).start == Nanos(0);
            let parent = parent.filter(|parent| {
                life.parent != IDLE && (!are_of_before(parent) || is_older(life.parent, life.pid))
            });
            if let Some(own) = machine.process_mut(process) {
                own.parent = parent;
                own.exit = life.exit_status.map(|status| Exit::Code(status.cast_unsigned()));
            }
        }
        processes
    }

    /// The process that had a number at a time. One of which nothing else is told is added.
    pub(super) fn at(&mut self, machine: &mut ExportMachine, pid: Pid, at: Nanos) -> Found {
        if let Some(found) = self.known(pid, at) {
            return found;
        }
        let process = machine.add_process(pid, &called(pid, ""), None, Nanos(0));
        self.of_pid.entry(pid).or_default().push((Nanos(0), process));
        Found { process, from: Nanos(0), until: Nanos(u64::MAX) }
    }

    /// The process of what is nobody's, as far as is told.
    pub(super) fn unknown(&mut self, machine: &mut ExportMachine) -> Found {
        let add = || machine.add_process(IDLE, "[unknown]", None, Nanos(0));
        let process = *self.unknown.get_or_insert_with(add);
        Found { process, from: Nanos(0), until: Nanos(u64::MAX) }
    }

    /// The process that had a number when it made another one: none that began later, for the number is also that of one that is long gone.
    fn maker(&self, pid: Pid, at: Nanos) -> Option<ProcessId> {
        let own = self.of_pid.get(&pid)?;
        let behind = own.partition_point(|(start, _)| *start <= at);
        own[..behind].last().map(|(_, process)| *process)
    }

    /// One that has ended may still be told of, and one that begins may be told of before.
    fn known(&self, pid: Pid, at: Nanos) -> Option<Found> {
        let own = self.of_pid.get(&pid)?;
        let behind = own.partition_point(|(start, _)| *start <= at);
        let (start, process) = own.get(behind.saturating_sub(1))?;
        let until = own.get(behind.max(1)).map_or(Nanos(u64::MAX), |(next, _)| *next);
        let from = if behind == 0 { Nanos(0) } else { *start };
        Some(Found { process: *process, from, until })
    }
}

fn called(pid: Pid, image: &str) -> String {
    match image {
        "" if pid == IDLE => "Idle".to_owned(),
        // As `PerfView` calls one of which no name is told.
        "" => format!("Process({pid})"),
        image => name(image).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use collector_common::event::FileTime;
    use windows_etw::etl::{Clock, ClockKind};

    use super::*;

    fn life(pid: u32, parent: u32, image: &str, start: Option<i64>, end: Option<i64>) -> ProcessLife {
        ProcessLife {
            pid: Pid(pid),
            parent: Pid(parent),
            image: image.into(),
            command_line: format!("\"c:\\a b\\{image}\" x").into(),
            user: None,
            session: None,
            start,
            end,
            exit_status: end.map(|_| 3),
        }
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        // Ticks are nanoseconds.
        let kind = ClockKind::PerformanceCounter;
        let clock = Clock { kind, frequency: 1_000_000_000, start_ticks: 0, start: FileTime(0) };
        let times = Times::new(clock, None);
        let lives = [
            life(8, 4, "first.exe", None, Some(50)),
            life(9, 8, "child.exe", Some(20), None),
            life(8, 9, "second.exe", Some(60), None),
            life(10, 8, "late.exe", Some(70), None),
        ];
        let mut machine = ExportMachine::default();
        let mut processes = Processes::add(&mut machine, &lives, &times, &[]);
        let mut at = |pid, at| processes.at(&mut machine, Pid(pid), Nanos(at));
        let first = Found { process: ProcessId(0), from: Nanos(0), until: Nanos(60) };
        assert_eq!([0, 55].map(|time| at(8, time)), [first, first]);
        assert_eq!(at(8, 60).process, ProcessId(2));
        assert_eq!(at(9, 3), Found { process: ProcessId(1), from: Nanos(0), until: Nanos(u64::MAX) });
        assert_eq!((at(77, 3).process, at(77, 90).process), (ProcessId(4), ProcessId(4)));
        let parents: Vec<_> = machine.processes().iter().map(|it| it.parent.map(|id| id.0)).collect();
        assert_eq!(parents, [None, Some(0), Some(1), Some(2), None]);
        let names: Vec<_> = machine.processes().iter().map(|it| machine.string(it.name)).collect();
        assert_eq!(names, ["first.exe", "child.exe", "second.exe", "late.exe", "Process(77)"]);
        assert_eq!(machine.process(ProcessId(0)).exit, Some(Exit::Code(3)));
        let program = machine.program(machine.programs_of(ProcessId(0)).next().unwrap());
        assert_eq!(machine.arguments(program).collect::<Vec<_>>(), [r"c:\a b\first.exe", "x"]);
    }

    #[test]
    fn nobody_is_made_by_one_that_is_younger() {
        let kind = ClockKind::PerformanceCounter;
        let clock = Clock { kind, frequency: 1_000_000_000, start_ticks: 0, start: FileTime(0) };
        let times = Times::new(clock, None);
        // Who made 100 and 110 is gone. One of their makers' numbers is used again meanwhile, the other one's was before.
        let lives = [
            life(100, 5000, "explorer.exe", None, None),
            life(110, 60, "service.exe", None, None),
            life(60, 4, "again.exe", None, None),
            life(120, 100, "browser.exe", None, None),
            life(5000, 4, "cmd.exe", Some(60), None),
            life(130, 5000, "child.exe", Some(60), None),
        ];
        let parents = |there: &[(u32, u64)]| {
            let there =
                there.iter().map(|(pid, made)| AliveProcess { pid: Pid(*pid), parent: Pid(0), made: *made });
            let mut machine = ExportMachine::default();
            Processes::add(&mut machine, &lives, &times, &there.collect::<Vec<_>>());
            let pid = |parent: Option<ProcessId>| parent.map(|id| machine.process(id).pid.0);
            machine.processes().iter().map(|it| pid(it.parent)).collect::<Vec<_>>()
        };
        assert_eq!(parents(&[]), [None, Some(60), None, Some(100), None, Some(5000)]);
        let there = [(60, 900), (110, 800), (100, 700), (120, 700)];
        assert_eq!(parents(&there), [None, None, None, Some(100), None, Some(5000)]);
        // Of whom it is not known which one is older, the number is believed.
        assert_eq!(parents(&there[1..])[1], Some(60));
        assert_eq!(parents(&there[..1])[1], Some(60));
    }
}
