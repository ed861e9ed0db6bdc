//! Programs that processes executed. A process has several, one after the other; one that executed none runs that of the
//! process which forked it.

use std::fmt::Write as _;

use super::{ExportMachine, ProcessId};
use crate::ids::Nanos;
use crate::intern::StringId;

/// Generations that are looked through for the program of a process that executed none.
pub(super) const MOST_GENERATIONS: usize = 64;

/// Names a program that a process executed in one [`ExportMachine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramId(pub u32);

/// A program as one process executed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The process.
    pub process: ProcessId,
    /// When it was executed; 0 where that was before the recording.
    pub since: Nanos,
    /// What the process was called then (`comm`), up to 15 bytes.
    pub name: StringId,
    /// Its arguments: see [`ExportMachine::arguments`].
    pub(super) arguments: StringId,
    /// Whether there were more arguments than are kept.
    pub are_cut: bool,
    /// What the process executed before.
    pub(super) previous: Option<ProgramId>,
}

/// Recording.
impl ExportMachine {
    /// Adds a program that a process executed, later than all others of it.
    pub fn add_program(&mut self, process: ProcessId, since: Nanos, name: &str) -> ProgramId {
        let name = self.strings.intern(name);
        let id = ProgramId(self.programs.len() as u32);
        let previous = self.processes.get_mut(process.0 as usize).and_then(|known| known.program.replace(id));
        let arguments = StringId::EMPTY;
        self.programs.push(Program { process, since, name, arguments, are_cut: false, previous });
        id
    }

    /// Tells a program's arguments as the kernel has them, each with a NUL behind it, and whether there were more. None of them
    /// says that they are not known, as those of a kernel thread are not. Gives whether they had to be stored: equal ones are once.
    pub fn set_arguments(&mut self, program: ProgramId, arguments: &[u8], are_cut: bool) -> bool {
        let mut text = String::from_utf8_lossy(arguments).into_owned();
        if !text.is_empty() && !text.ends_with('\0') {
            text.push('\0');
        }
        let known = self.strings.len();
        let text = self.strings.intern(&text);
        if let Some(program) = self.programs.get_mut(program.0 as usize) {
            (program.arguments, program.are_cut) = (text, are_cut);
        }
        self.strings.len() > known
    }
}

/// Reading.
impl ExportMachine {
    /// All programs that were executed, in the order in which that was told; the position is the [`ProgramId`].
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// A program.
    ///
    /// # Panics
    /// For an id of another machine.
    pub fn program(&self, id: ProgramId) -> &Program {
        &self.programs[id.0 as usize]
    }

    /// The programs that a process executed itself, the last one first.
    pub fn programs_of(&self, process: ProcessId) -> impl Iterator<Item = ProgramId> + '_ {
        let last = self.processes.get(process.0 as usize).and_then(|process| process.program);
        std::iter::successors(last, |id| self.programs.get(id.0 as usize)?.previous)
    }

    /// The program that a process ran at a time, of its own or of the process that forked it.
    pub fn program_at(&self, process: ProcessId, time: Nanos) -> Option<ProgramId> {
        let (mut process, mut time) = (process, time);
        for _ in 0..MOST_GENERATIONS {
            let mut own = self.programs_of(process);
            if let Some(program) = own.find(|id| self.program(*id).since <= time) {
                return Some(program);
            }
            let known = self.processes.get(process.0 as usize)?;
            (process, time) = (known.parent?, known.start);
        }
        None
    }

    /// The arguments of a program, its name first; none where they are not known. The last one may not be all there where
    /// [`Program::are_cut`] says so.
    pub fn arguments(&self, program: &Program) -> impl Iterator<Item = &str> {
        self.strings.get(program.arguments).split_terminator('\0')
    }

    /// The arguments of a program in a line, as a shell would take most of them; empty where they are not known.
    pub fn command_line(&self, program: &Program) -> String {
        let mut line = String::new();
        for argument in self.arguments(program) {
            if !line.is_empty() {
                line.push(' ');
            }
            let is_plain = !argument.is_empty() && !argument.contains([' ', '\t', '\n', '"', '\'']);
            let _ = if is_plain {
                write!(line, "{}", argument.escape_debug())
            } else {
                write!(line, "{argument:?}")
            };
        }
        if program.are_cut {
            line.push_str(" ...");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Pid;

    #[test]
    fn a_process_runs_what_it_executed_last_or_what_it_was_forked_from() {
        let mut machine = ExportMachine::default();
        let shell = machine.add_process(Pid(1), "sh", None, Nanos(0));
        let first = machine.add_program(shell, Nanos(0), "sh");
        let child = machine.add_process(Pid(2), "sh", Some(shell), Nanos(50));
        let later = machine.add_program(shell, Nanos(60), "make");
        let own = machine.add_program(child, Nanos(70), "true");
        let orphan = machine.add_process(Pid(3), "x", None, Nanos(10));
        let at = |process, time| machine.program_at(process, Nanos(time));
        assert_eq!([at(shell, 0), at(shell, 59), at(shell, 60)], [first, first, later].map(Some));
        assert_eq!([at(child, 50), at(child, 69), at(child, 70)], [first, first, own].map(Some));
        assert_eq!(at(orphan, 99), None);
        assert!(machine.programs_of(shell).eq([later, first]));
    }

    #[test]
    fn arguments_are_told_one_by_one_and_in_a_line() {
        let mut machine = ExportMachine::default();
        let process = machine.add_process(Pid(1), "sh", None, Nanos(0));
        let program = machine.add_program(process, Nanos(0), "sh");
        let mut told = |arguments: &[u8], are_cut| {
            machine.set_arguments(program, arguments, are_cut);
            let program = machine.program(program);
            let list = machine.arguments(program).map(str::to_owned).collect::<Vec<_>>();
            (list, machine.command_line(program))
        };
        let line =
            |list: &[&str], line: &str| (list.iter().map(|&it| it.to_owned()).collect(), line.to_owned());
        assert_eq!(told(b"", false), line(&[], ""));
        assert_eq!(told(b"\0", false), line(&[""], "\"\""));
        assert_eq!(told(b"sh\0-c\0exit 3\0", false), line(&["sh", "-c", "exit 3"], "sh -c \"exit 3\""));
        assert_eq!(told(b"sh\0\0a", true), line(&["sh", "", "a"], "sh \"\" a ..."));
        assert_eq!(told(b"\x1b[2J\xff\0", false), line(&["\u{1b}[2J\u{fffd}"], "\\u{1b}[2J\u{fffd}"));
    }
}
