//! Who answers the recorder where no record tells: the machine, with its answers kept if somebody wants them, or a journal.

use std::io;

use collector_common::ids::{Pid, Tid};

use super::outside::{Outside, Question, Subject};
use super::state::Recorder;
use crate::packed::{Packed, Unpacker};
use crate::procfs::{self, ProcessSummary};

impl Recorder {
    /// From now on, answers are kept for [`Self::take_notes`], and which files were found for
    /// [`Modules::take_noted`](crate::modules::Modules::take_noted).
    pub(crate) fn keep_notes(&mut self) {
        self.outside = Outside::Noted(Vec::new());
        self.late.get_mut().outside = self.outside.sibling();
        if let Some(names) = &mut self.thread_names {
            names.outside = self.outside.sibling();
        }
        self.modules.keep_noted();
    }

    /// Questions and answers since the last call, for [`Self::tell`].
    pub(crate) fn take_notes(&mut self) -> Vec<u8> {
        let mut notes = self.outside.take_notes();
        notes.append(&mut self.late.get_mut().outside.take_notes());
        if let Some(names) = &mut self.thread_names {
            notes.append(&mut names.outside.take_notes());
        }
        notes
    }

    /// Of a journal: what answers of an earlier step were not asked for will not be. Where a file is not there any more stacks end
    /// elsewhere, and less is asked.
    pub(crate) fn forget_told(&mut self) {
        self.outside.forget();
        self.late.get_mut().outside.forget();
        if let Some(names) = &mut self.thread_names {
            names.outside.forget();
        }
    }

    /// Of a journal: tells answers for later. `None` where those are no answers.
    pub(crate) fn tell(&mut self, notes: &[u8]) -> Option<()> {
        let mut notes = Unpacker::new(notes);
        while !notes.rest().is_empty() {
            let question = Question::unpack(&mut notes)?;
            let answer = notes.counted()?;
            let outside = match question.subject {
                Subject::Page | Subject::StackPage | Subject::Stretches => &mut self.late.get_mut().outside,
                Subject::ThreadName => match &mut self.thread_names {
                    Some(names) => &mut names.outside,
                    None => continue,
                },
                _ => &mut self.outside,
            };
            outside.tell(question, answer);
        }
        Some(())
    }

    /// Whether names of threads are found out by what the sideband tells.
    pub(crate) fn names_threads(&self) -> bool {
        self.thread_names.is_some()
    }

    /// Asks for what becomes of a record beside what it says.
    pub(crate) fn ask<T: Packed>(
        &mut self,
        question: Question,
        look: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        self.outside.ask(question, look)
    }

    pub(super) fn pids(&mut self) -> io::Result<Vec<Pid>> {
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        let pids = self.outside.ask(Question::new(Subject::Pids, 0_u64), || {
            procfs::pids().map_err(|error| failure = error).ok()
        });
        pids.ok_or(failure)
    }

    /// `None` of a process that has ended.
    pub(super) fn summary(&mut self, pid: Pid) -> Option<ProcessSummary> {
        self.outside.ask(Question::new(Subject::Summary, pid.0), || procfs::summary(pid).ok())
    }

    pub(super) fn threads_of(&mut self, pid: Pid, summary: &ProcessSummary) -> Vec<Tid> {
        let question = Question::new(Subject::Threads, pid.0);
        self.outside.ask(question, || Some(procfs::threads(pid, summary))).unwrap_or_default()
    }

    /// The threads that a process has now; none of one that has ended.
    pub(super) fn threads_now(&mut self, pid: Pid) -> Vec<Tid> {
        self.summary(pid).map(|summary| self.threads_of(pid, &summary)).unwrap_or_default()
    }
}
