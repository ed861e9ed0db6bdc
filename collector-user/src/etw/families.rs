//! Processes that are asked for by their numbers in, which processes of a machine that means out: they and all that they made.
//!
//! ETW's kernel events come from all processes, and a number may be used again: so it is chosen when all lives are known.

use std::collections::HashMap;

use collector_common::ids::Pid;
use collector_common::record::{ExportMachine, ProcessId};

/// A process that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The one that had this number when the recording began.
    Running(Pid),
    /// The last one of this number: it was made for the recording, and held, so that none after it has its number.
    Started(Pid),
}

/// Which processes are asked for.
#[derive(Debug)]
pub(super) struct Families {
    /// By process; empty where all are.
    members: Vec<bool>,
    absent: Vec<Pid>,
}

impl Families {
    /// All processes where nothing is asked for.
    pub(super) fn of(machine: &ExportMachine, asked: &[Asked]) -> Self {
        let processes = machine.processes();
        let mut families = Self { members: Vec::new(), absent: Vec::new() };
        if asked.is_empty() {
            return families;
        }
        let mut children: HashMap<ProcessId, Vec<ProcessId>> = HashMap::new();
        for (process, id) in processes.iter().zip((0..).map(ProcessId)) {
            if let Some(parent) = process.parent {
                children.entry(parent).or_default().push(id);
            }
        }
        families.members = vec![false; processes.len()];
        let mut new = Vec::new();
        for &asked in asked {
            match find(machine, asked) {
                Ok(id) => new.push(id),
                Err(pid) => families.absent.push(pid),
            }
        }
        while let Some(id) = new.pop() {
            let Some(member) = families.members.get_mut(id.0 as usize) else { continue };
            if !std::mem::replace(member, true) {
                new.extend(children.get(&id).into_iter().flatten());
            }
        }
        families
    }

    /// Whether a process is asked for, or was made by one that is.
    pub(super) fn has(&self, process: ProcessId) -> bool {
        self.members.is_empty() || self.members.get(process.0 as usize) == Some(&true)
    }

    /// Those that were asked for, and are not there.
    pub(super) fn absent(&self) -> &[Pid] {
        &self.absent
    }
}

fn find(machine: &ExportMachine, asked: Asked) -> Result<ProcessId, Pid> {
    let (Asked::Running(pid) | Asked::Started(pid)) = asked;
    let lives = machine.processes().iter().zip((0..).map(ProcessId)).filter(|(it, _)| it.pid == pid);
    let found = match asked {
        Asked::Running(_) => {
            lives.min_by_key(|(it, _)| it.start).filter(|(it, _)| it.start <= machine.system().start)
        }
        Asked::Started(_) => lives.max_by_key(|(it, _)| it.start),
    };
    found.map(|(_, id)| id).ok_or(pid)
}

#[cfg(test)]
mod tests {
    use collector_common::ids::Nanos;

    use super::*;

    #[test]
    fn a_number_that_is_used_again_is_another_family() {
        let mut machine = ExportMachine::default();
        machine.system_mut().start = Nanos(10);
        let shell = machine.add_process(Pid(4), "shell", None, Nanos(0));
        let make = machine.add_process(Pid(8), "make", Some(shell), Nanos(20));
        let cc = machine.add_process(Pid(9), "cc", Some(make), Nanos(30));
        let again = machine.add_process(Pid(4), "shell's number again", None, Nanos(40));
        let of_again = machine.add_process(Pid(10), "its child", Some(again), Nanos(50));
        let has = |asked: &[Asked]| {
            let families = Families::of(&machine, asked);
            let all = [shell, make, cc, again, of_again];
            (all.map(|process| families.has(process)), families.absent().to_vec())
        };
        assert_eq!(has(&[]), ([true; 5], vec![]));
        assert_eq!(has(&[Asked::Running(Pid(4))]), ([true, true, true, false, false], vec![]));
        assert_eq!(has(&[Asked::Started(Pid(4))]), ([false, false, false, true, true], vec![]));
        assert_eq!(has(&[Asked::Started(Pid(9))]).0, [false, false, true, false, false]);
        // It began later, so it is not the one that was meant.
        assert_eq!(has(&[Asked::Running(Pid(8))]), ([false; 5], vec![Pid(8)]));
        let both = [Asked::Started(Pid(8)), Asked::Started(Pid(10)), Asked::Running(Pid(77))];
        assert_eq!(has(&both), ([false, true, true, false, true], vec![Pid(77)]));
    }

    #[test]
    fn processes_that_made_each_other_come_to_an_end() {
        let mut machine = ExportMachine::default();
        let one = machine.add_process(Pid(1), "one", None, Nanos(0));
        let other = machine.add_process(Pid(2), "other", Some(one), Nanos(0));
        machine.process_mut(one).unwrap().parent = Some(other);
        let families = Families::of(&machine, &[Asked::Running(Pid(1))]);
        assert!(families.has(one) && families.has(other));
    }
}
