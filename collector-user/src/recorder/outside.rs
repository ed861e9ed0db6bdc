//! What the recorder asks of the machine while records come, beside what the records tell: `/proc`, memory of processes, clocks, names of
//! devices. The answers can be kept, and given again to one that is told the same records: it asks the same.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use collector_common::wire::PAGE_SIZE;
use rustc_hash::FxHashMap;

use crate::packed::{Packed, Unpacker, pack_counted, packed};
use crate::procfs::{Identity, MapsEntry, ProcessSummary, Surroundings};

/// What is asked for. The numbers are those of journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Subject {
    /// All processes.
    Pids = 0,
    /// A process, by its pid.
    Summary = 1,
    /// The threads of a process.
    Threads = 2,
    /// The mappings of a thread.
    Mappings = 3,
    /// The arguments of a process.
    Arguments = 4,
    /// The cgroup and the user of a process.
    Surroundings = 5,
    /// The names of all users.
    Users = 6,
    /// The clock.
    Now = 7,
    /// The name of a thread.
    ThreadName = 8,
    /// A page of a process's memory, by pid and tid, and its address.
    Page = 9,
    /// The memory of a thread that can be read.
    Stretches = 10,
    /// The name of a block device, by its number.
    Device = 11,
    /// The name of a lock of the kernel, by its address.
    KernelLock = 12,
    /// A page of a stack, by pid and tid, and its address, to which a number for the words that lead there is added: if these are as they were.
    StackPage = 13,
}

impl Subject {
    const ALL: [Self; 14] = [
        Self::Pids,
        Self::Summary,
        Self::Threads,
        Self::Mappings,
        Self::Arguments,
        Self::Surroundings,
        Self::Users,
        Self::Now,
        Self::ThreadName,
        Self::Page,
        Self::Stretches,
        Self::Device,
        Self::KernelLock,
        Self::StackPage,
    ];
}

impl Packed for Subject {
    fn pack(&self, out: &mut Vec<u8>) {
        (*self as u8).pack(out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        Self::ALL.get(usize::from(u8::unpack(from)?)).copied()
    }
}

/// A subject, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) subject: Subject,
    pub(crate) of: u64,
    /// 0 where one number is enough.
    pub(crate) at: u64,
}

impl Question {
    pub(crate) fn new(subject: Subject, of: impl Into<u64>) -> Self {
        Self { subject, of: of.into(), at: 0 }
    }
}

packed! {
    Question { subject, of, at }
    Identity { major, minor, inode, generation }
    ProcessSummary { name, parent, threads, is_zombie }
    Surroundings { user, namespace_pid, cgroup }
}

impl Packed for MapsEntry<'static> {
    fn pack(&self, out: &mut Vec<u8>) {
        let Self { start, end, readable, executable, file_offset, identity, path } = self;
        ((*start, *end), (*readable, *executable)).pack(out);
        (*file_offset, *identity).pack(out);
        pack_counted(path, out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        let ((start, end), (readable, executable)) = Packed::unpack(from)?;
        let (file_offset, identity) = Packed::unpack(from)?;
        let path = from.counted()?.to_owned().into();
        Some(Self { start, end, readable, executable, file_offset, identity, path })
    }
}

impl Packed for Range<u64> {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.start, self.end).pack(out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        let (start, end) = Packed::unpack(from)?;
        Some(start..end)
    }
}

impl Packed for Arc<[u8; PAGE_SIZE]> {
    fn pack(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self[..]);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        Some(Self::new(from.bytes(PAGE_SIZE)?.try_into().ok()?))
    }
}

/// Who answers.
#[derive(Debug, Default)]
pub(crate) enum Outside {
    /// The machine that runs.
    #[default]
    Machine,
    /// The same, and it is kept: questions with their answers.
    Noted(Vec<u8>),
    /// What was kept, in the order in which the same was asked.
    Told(FxHashMap<Question, VecDeque<Box<[u8]>>>),
}

impl Outside {
    /// What was kept answers, of which nothing is known yet.
    pub(crate) fn told() -> Self {
        Self::Told(FxHashMap::default())
    }

    /// Another one that is answered by the same, for questions of its own.
    pub(crate) fn sibling(&self) -> Self {
        match self {
            Self::Machine => Self::Machine,
            Self::Noted(_) => Self::Noted(Vec::new()),
            Self::Told(_) => Self::told(),
        }
    }

    /// Whether nothing is kept, and nothing was.
    pub(crate) fn is_machine(&self) -> bool {
        matches!(self, Self::Machine)
    }

    /// The answer to a question, for which the machine is looked at. `None` is one, too.
    pub(crate) fn ask<T: Packed>(
        &mut self,
        question: Question,
        look: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        match self {
            Self::Machine => look(),
            Self::Noted(notes) => {
                let answer = look();
                let mut packed = Vec::new();
                answer.pack(&mut packed);
                question.pack(notes);
                pack_counted(&packed, notes);
                answer
            }
            Self::Told(answers) => {
                let answers = answers.get_mut(&question)?;
                Unpacker::new(&answers.pop_front()?).whole().flatten()
            }
        }
    }

    /// What was kept since the last call.
    pub(crate) fn take_notes(&mut self) -> Vec<u8> {
        match self {
            Self::Noted(notes) => std::mem::take(notes),
            Self::Machine | Self::Told(_) => Vec::new(),
        }
    }

    /// Of what was kept, what was not asked for by now is not asked for any more.
    pub(crate) fn forget(&mut self) {
        if let Self::Told(answers) = self {
            answers.clear();
        }
    }

    /// An answer for later.
    pub(crate) fn tell(&mut self, question: Question, answer: &[u8]) {
        if let Self::Told(answers) = self {
            answers.entry(question).or_default().push_back(answer.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_in_the_order_in_which_the_same_was_asked() {
        let mut live = Outside::Noted(Vec::new());
        let [one, two] = [1_u64, 2].map(|pid| Question::new(Subject::Device, pid));
        let asked = [(one, Some("a")), (two, None), (one, Some("b"))];
        for (question, answer) in asked {
            let told = live.ask(question, || answer.map(str::to_owned));
            assert_eq!(told.as_deref(), answer);
        }
        let notes = live.take_notes();
        assert!(live.take_notes().is_empty());
        let (mut again, mut rest) = (live.sibling(), Unpacker::new(&notes));
        assert!(again.take_notes().is_empty());
        again = Outside::told();
        while !rest.rest().is_empty() {
            let question = Question::unpack(&mut rest).unwrap();
            again.tell(question, rest.counted().unwrap());
        }
        // Another order among different questions.
        for (question, answer) in [asked[1], asked[0], asked[2]] {
            let told: Option<String> = again.ask(question, || unreachable!());
            assert_eq!(told.as_deref(), answer);
        }
        assert_eq!(again.ask::<String>(one, || unreachable!()), None, "asked once more");
        again.tell(two, b"no text");
        assert_eq!(again.ask::<String>(two, || unreachable!()), None);
    }
}
