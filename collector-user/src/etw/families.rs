//! Processes that are asked for by their numbers in, which processes of a machine that means out: they and all that they made. Of these, or of all, a name
//! chooses those that are called so.
//!
//! ETW's kernel events come from all processes, and a number may be used again: so it is chosen when all lives are known.

use std::collections::HashMap;

use collector_common::event::near;
use collector_common::ids::Pid;
use collector_common::record::{ExportMachine, ProcessId};

use super::name;

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
    /// All processes where nothing is asked for; of those that are, the ones that are called `comm`, if anything.
    pub(super) fn of(machine: &ExportMachine, asked: &[Asked], comm: Option<&str>) -> Self {
        let mut families = Self { members: Vec::new(), absent: Vec::new() };
        if !asked.is_empty() {
            families.add(machine, asked);
        }
        if let Some(comm) = comm {
            let is_called = machine.processes().iter().map(|it| is_called(machine.string(it.name), comm));
            families.members = is_called
                .zip((0..).map(ProcessId))
                .map(|(is_called, process)| is_called && families.has(process))
                .collect();
        }
        families
    }

    fn add(&mut self, machine: &ExportMachine, asked: &[Asked]) {
        let processes = machine.processes();
        let mut children: HashMap<ProcessId, Vec<ProcessId>> = HashMap::new();
        for (process, id) in processes.iter().zip((0..).map(ProcessId)) {
            if let Some(parent) = process.parent {
                children.entry(parent).or_default().push(id);
            }
        }
        self.members = vec![false; processes.len()];
        let mut new = Vec::new();
        for &asked in asked {
            match find(machine, asked) {
                Ok(id) => new.push(id),
                Err(pid) => self.absent.push(pid),
            }
        }
        while let Some(id) = new.pop() {
            let Some(member) = self.members.get_mut(id.0 as usize) else { continue };
            if !std::mem::replace(member, true) {
                new.extend(children.get(&id).into_iter().flatten());
            }
        }
    }

    /// Whether a process is asked for, or was made by one that is, and is called as asked for.
    pub(super) fn has(&self, process: ProcessId) -> bool {
        self.members.is_empty() || self.members.get(process.0 as usize) == Some(&true)
    }

    /// Those that were asked for, and are not there.
    pub(super) fn absent(&self) -> &[Pid] {
        &self.absent
    }
}

/// Whether an image's name is the one that is asked for: names of files are the same to Windows in upper and lower case.
pub(super) fn is_called(image: &str, comm: &str) -> bool {
    let small = |text| name(text).chars().flat_map(char::to_lowercase);
    small(image).eq(small(comm))
}

/// That none of the processes that are asked for has a name, with names that may be meant; none where one has it.
pub(super) fn nobody_called(machine: &ExportMachine, asked: &[Asked], comm: &str) -> Option<String> {
    let families = Families::of(machine, asked, None);
    let names = || {
        let processes = machine.processes().iter().zip((0..).map(ProcessId));
        let own = processes.filter(|(_, process)| families.has(*process));
        own.map(|(process, _)| machine.string(process.name))
    };
    if names().any(|image| is_called(image, comm)) {
        return None;
    }
    let whose = if asked.is_empty() { "" } else { " that was asked for" };
    let near = near(comm, names());
    let hint = if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(" or ")) };
    Some(format!(
        "no process{whose} was called `{comm}`{hint}; `tasklist` lists names, which have their ending, as notepad.exe"
    ))
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
            let families = Families::of(&machine, asked, None);
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
    fn a_name_is_of_processes_and_not_of_what_they_make() {
        let mut machine = ExportMachine::default();
        machine.system_mut().start = Nanos(10);
        let make = machine.add_process(Pid(4), "Make.exe", None, Nanos(0));
        let cc = machine.add_process(Pid(8), "cc.exe", Some(make), Nanos(20));
        let again = machine.add_process(Pid(9), "make.exe", Some(cc), Nanos(30));
        let other = machine.add_process(Pid(10), "make.exe", None, Nanos(0));
        let longer = machine.add_process(Pid(11), "make.exe.exe", None, Nanos(0));
        let has = |asked: &[Asked], comm| {
            let families = Families::of(&machine, asked, Some(comm));
            [make, cc, again, other, longer].map(|process| families.has(process))
        };
        assert_eq!(has(&[], "make.EXE"), [true, false, true, true, false]);
        assert_eq!(has(&[], "make"), [false; 5]);
        // Of those that are asked for, and of what they make.
        assert_eq!(has(&[Asked::Running(Pid(4))], "make.exe"), [true, false, true, false, false]);
        assert_eq!(has(&[Asked::Started(Pid(8))], "cc.exe"), [false, true, false, false, false]);
        assert_eq!(has(&[Asked::Running(Pid(77))], "make.exe"), [false; 5]);
        let told = |comm| nobody_called(&machine, &[], comm);
        assert_eq!([told("MAKE.exe"), told("cc.exe")], [None, None]);
        let like = told("make").unwrap();
        let names =
            "no process was called `make`: did you mean Make.exe or make.exe or make.exe.exe?; `tasklist`";
        assert!(like.starts_with(names), "{like}");
        assert!(told("zzzzzzzz").unwrap().starts_with("no process was called `zzzzzzzz`; `tasklist`"));
        // Others' names are neither theirs nor meant.
        let told = |pid, comm| nobody_called(&machine, &[Asked::Running(Pid(pid))], comm);
        assert_eq!([told(4, "cc.exe"), told(10, "make.exe")], [None, None]);
        let outside = told(10, "cc.exe").unwrap();
        assert!(outside.starts_with("no process that was asked for was called `cc.exe`; "), "{outside}");
    }

    #[test]
    fn processes_that_made_each_other_come_to_an_end() {
        let mut machine = ExportMachine::default();
        let one = machine.add_process(Pid(1), "one", None, Nanos(0));
        let other = machine.add_process(Pid(2), "other", Some(one), Nanos(0));
        machine.process_mut(one).unwrap().parent = Some(other);
        let families = Families::of(&machine, &[Asked::Running(Pid(1))], None);
        assert!(families.has(one) && families.has(other));
    }
}
