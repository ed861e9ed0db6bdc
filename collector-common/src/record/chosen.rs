//! Leaving out what was seen of others, where some processes were chosen to be recorded.

use super::program::MOST_GENERATIONS;
use super::{
    ExportMachine, ModuleKind, Process, ProcessId, Program, ProgramId, ThreadId, TimelineId, TimelineOwner,
};

/// The new numbers of processes after [`ExportMachine::leave_out_processes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renumbered(Vec<Option<ProcessId>>);

impl Renumbered {
    /// What a process is called now; `None` for one that was left out.
    pub fn of(&self, process: ProcessId) -> Option<ProcessId> {
        self.0.get(process.0 as usize).copied().flatten()
    }
}

impl ExportMachine {
    /// Leaves out the processes that `is_chosen` refuses, with what they executed and mapped, unless something was recorded of them: threads,
    /// timelines, or a life. Of those that are needed by what stays (a parent whose program a chosen process runs, the owner of a module)
    /// no more than that stays. All that names processes is renumbered.
    pub fn leave_out_processes(&mut self, is_chosen: impl Fn(&Self, ProcessId) -> bool) -> Renumbered {
        let ids = || (0..self.processes.len() as u32).map(ProcessId);
        let mut whole: Vec<bool> = ids().map(|id| is_chosen(self, id)).collect();
        let of_timelines = self.timelines.iter().filter_map(|timeline| match timeline.owner {
            TimelineOwner::Process(process) => Some(process),
            TimelineOwner::Thread(_) | TimelineOwner::Recording => None,
        });
        let of_threads = self.threads().iter().map(|thread| thread.process);
        let recorded = of_threads.chain(of_timelines).chain(self.lives().iter().map(|life| life.process));
        recorded.for_each(|process| mark(&mut whole, process));
        let mut runs = whole.clone();
        for process in ids().filter(|process| whole[process.0 as usize]) {
            self.lenders(process).for_each(|lender| mark(&mut runs, lender));
        }
        let mut kept = runs.clone();
        for module in self.modules() {
            if let ModuleKind::Anonymous(process) | ModuleKind::Unmapped(process) = module.kind {
                mark(&mut kept, process);
            }
        }
        let mut next = 0..;
        let numbers = kept.iter().map(|&kept| kept.then(|| next.next().map(ProcessId)).flatten());
        let renumbered = Renumbered(numbers.collect());
        self.renumber(&renumbered, &whole, &runs);
        renumbered
    }

    /// The parents up to the one that executed the program which a process runs from its beginning.
    fn lenders(&self, process: ProcessId) -> impl Iterator<Item = ProcessId> + '_ {
        let borrows = |process: ProcessId| {
            let known = self.processes.get(process.0 as usize)?;
            let is_borrowed = self.programs_of(process).all(|id| self.program(id).since > known.start);
            known.parent.filter(|_| is_borrowed)
        };
        std::iter::successors(borrows(process), move |&parent| borrows(parent)).take(MOST_GENERATIONS)
    }

    fn renumber(&mut self, renumbered: &Renumbered, whole: &[bool], runs: &[bool]) {
        let is = |marks: &[bool], process: ProcessId| marks.get(process.0 as usize) == Some(&true);
        let mut next = 0..;
        let programs: Vec<Option<ProgramId>> = self
            .programs
            .iter()
            .map(|program| is(runs, program.process).then(|| next.next().map(ProgramId)).flatten())
            .collect();
        let program = |id: ProgramId| programs.get(id.0 as usize).copied().flatten();
        self.programs = std::mem::take(&mut self.programs)
            .into_iter()
            .filter_map(|known| {
                let process = renumbered.of(known.process).filter(|_| is(runs, known.process))?;
                Some(Program { process, previous: known.previous.and_then(program), ..known })
            })
            .collect();
        self.processes = std::mem::take(&mut self.processes)
            .into_iter()
            .zip((0..).map(ProcessId))
            .filter(|&(_, id)| renumbered.of(id).is_some())
            .map(|(known, id)| {
                let own = known.program.and_then(program);
                let parent = known.parent.and_then(|parent| renumbered.of(parent));
                let seen = if is(whole, id) {
                    known
                } else {
                    let Process { pid, name, start, end, .. } = known;
                    Process { end, ..Process::new(pid, name, None, start) }
                };
                Process { program: own, parent, ..seen }
            })
            .collect();
        self.mappings.retain(|mapping| is(whole, mapping.process));
        for mapping in &mut self.mappings {
            mapping.process = renumbered.of(mapping.process).unwrap_or(mapping.process);
        }
        self.renumber_owners(renumbered);
    }

    fn renumber_owners(&mut self, renumbered: &Renumbered) {
        let of = |process: &mut ProcessId| *process = renumbered.of(*process).unwrap_or(*process);
        self.threads.iter_mut().for_each(|thread| of(&mut thread.process));
        self.thread_index = self.threads.iter().copied().zip((0..).map(ThreadId)).collect();
        self.lives.iter_mut().for_each(|life| of(&mut life.process));
        for module in &mut self.modules {
            if let ModuleKind::Anonymous(process) | ModuleKind::Unmapped(process) = &mut module.kind {
                of(process);
            }
        }
        for timeline in &mut self.timelines {
            if let TimelineOwner::Process(process) = &mut timeline.owner {
                of(process);
            }
        }
        self.timeline_index = self.timelines.iter().copied().zip((0..).map(TimelineId)).collect();
    }
}

fn mark(marks: &mut [bool], process: ProcessId) {
    if let Some(mark) = marks.get_mut(process.0 as usize) {
        *mark = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Avma, FileOffset, Nanos, Pid, Tid};
    use crate::record::{Module, ModuleMapping, ProcessLife, Sample};

    /// Pids, names and command lines of what there is, and to whom the mappings and threads belong.
    fn told(machine: &ExportMachine) -> Vec<(u32, String, Option<String>, Vec<u32>)> {
        let told = machine.processes().iter().zip((0..).map(ProcessId)).map(|(process, id)| {
            let mapped = machine.mappings().iter().filter(|mapping| mapping.process == id);
            let mapped = mapped.map(|mapping| mapping.module.0).collect();
            let program = machine.program_at(id, Nanos(1000)).map(|program| machine.program(program));
            let line = program.map(|program| machine.command_line(program));
            (process.pid.0, machine.string(process.name).to_owned(), line, mapped)
        });
        told.collect()
    }

    #[test]
    fn what_was_not_chosen_is_not_told() {
        let mut machine = ExportMachine::default();
        let mut add = |pid: u32, name: &str, parent, line: &str| {
            let process = machine.add_process(Pid(pid), name, parent, Nanos(0));
            if !line.is_empty() {
                let program = machine.add_program(process, Nanos(0), name);
                machine.set_arguments(program, line.as_bytes(), false);
            }
            let module = Module { kind: ModuleKind::File, path: machine.intern_string(name), build_id: None };
            let module = machine.add_module(module);
            let (start, end) = (Avma(0x1000), Avma(0x2000));
            let file_offset = FileOffset(0);
            machine.add_mapping(ModuleMapping {
                process,
                module,
                start,
                end,
                file_offset,
                bias: 0,
                since: Nanos(0),
            });
            process
        };
        let first = add(1, "init", None, "init\0secret\0");
        let shell = add(20, "sh", Some(first), "sh\0-c\0x\0");
        let runtime = add(30, "java", Some(first), "java\0-Dsecret\0");
        let worker = add(40, "worker", Some(shell), "");
        let other = add(50, "other", Some(shell), "other\0secret\0");
        let maker = add(60, "maker", Some(other), "maker\0");
        let code = Module {
            kind: ModuleKind::Anonymous(runtime),
            path: machine.intern_string("[anon]"),
            build_id: None,
        };
        let code = machine.add_module(code);
        let name = machine.intern_string("worker");
        let thread = machine.intern_thread(worker, Tid(41), name);
        machine.add_sample(&Sample { thread, ..Sample::default() });
        let timeline = machine.add_timeline("made", TimelineOwner::Process(maker));
        machine.add_life(ProcessLife { process: maker, made: Nanos(5) });

        let renumbered = machine.leave_out_processes(|_, _| false);
        let line = |text: &str| Some(text.to_owned());
        let expected = [
            // The worker runs the shell's program, and nobody knows what else the shell did.
            (20, "sh".to_owned(), line("sh -c x"), vec![]),
            (30, "java".to_owned(), None, vec![]),
            (40, "worker".to_owned(), line("sh -c x"), vec![4]),
            (60, "maker".to_owned(), line("maker"), vec![6]),
        ];
        assert_eq!(told(&machine), expected);
        let [first, shell, runtime, worker, other, maker] = [first, shell, runtime, worker, other, maker]
            .map(|process| renumbered.of(process).map(|id| id.0));
        assert_eq!(
            [first, shell, runtime, worker, other, maker],
            [None, Some(0), Some(1), Some(2), None, Some(3)]
        );
        let parents = machine.processes().iter().map(|process| process.parent.map(|id| id.0));
        assert_eq!(parents.collect::<Vec<_>>(), [None, None, Some(0), None]);
        assert_eq!(machine.thread(thread).process, ProcessId(2));
        assert_eq!(machine.intern_thread(ProcessId(2), Tid(41), name), thread);
        assert_eq!(machine.module(code).kind, ModuleKind::Anonymous(ProcessId(1)));
        assert_eq!(machine.lives()[0].process, ProcessId(3));
        assert_eq!(machine.timelines()[0].owner, TimelineOwner::Process(ProcessId(3)));
        assert_eq!(machine.add_timeline("made", TimelineOwner::Process(ProcessId(3))), timeline);
    }

    #[test]
    fn all_that_is_chosen_stays() {
        let mut machine = ExportMachine::default();
        for pid in 1..5 {
            let process = machine.add_process(Pid(pid), "p", None, Nanos(0));
            machine.add_program(process, Nanos(0), "p");
        }
        let before = told(&machine);
        let renumbered = machine.leave_out_processes(|_, _| true);
        assert_eq!(told(&machine), before);
        assert_eq!(renumbered.of(ProcessId(3)), Some(ProcessId(3)));
    }
}
