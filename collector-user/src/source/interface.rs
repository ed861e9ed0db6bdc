//! What a session asks of a source.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::loss::Ledger;
use collector_common::record::{Exit, Histogram, Table};
use collector_common::wire::OuterPlaces;

use super::SourceRecord;
use crate::stats::Faults;

/// Where records come from: programs in the kernel, plain perf events, a file, or whatever an embedder has.
///
/// A source is opened before the session starts and gives nothing until [`Self::start`]. Its descriptors wake the session;
/// beside that it is drained every 100 ms. What it hands over it counts, and what it lost it says in the end.
pub trait Source {
    /// The backend's name in `--stats`.
    fn name(&self) -> &'static str;

    /// Starts recording. Nothing has to be done for a source that is drained, and asked only then.
    ///
    /// # Errors
    /// When the system refuses.
    fn start(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Stops recording. What was recorded before can still be drained.
    ///
    /// # Errors
    /// When the system refuses.
    fn stop(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Descriptors that become readable when it is time to drain. Without any the session's own timer has to be enough.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Whether they do so with each record, and not only when there is much to take: then the session waits a moment for more.
    fn tells_each(&self) -> bool {
        false
    }

    /// A round begins: what was recorded up to now will be drained in it. For a source that does not know the times of its
    /// records, so that none of them is of a process that nothing is known of yet.
    fn begin_round(&mut self) {}

    /// Hands each record from before `until` to `visit`. A record borrows from the source, and is gone when `visit` returns.
    fn drain(&mut self, until: Nanos, visit: &mut dyn FnMut(&SourceRecord<'_>));

    /// Whether records are drained in the order of their times: a session hands on those of all such sources in one order. It drains
    /// them up to a little before now, as a program may still be writing a record that has an earlier time than others which are there.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Of a source that keeps order: when the oldest of the records was made that wait to be drained. `None` where none waits.
    fn oldest(&mut self) -> Option<Nanos> {
        None
    }

    /// Records that were lost so far, as far as that can be said while it goes on.
    fn dropped(&self) -> u64;

    /// Enters into the ledger what was lost, and gives the figures. Called after [`Self::stop`] and the last
    /// [`Self::drain`].
    ///
    /// # Errors
    /// When the system does not tell.
    fn close(&mut self, ledger: &mut Ledger) -> io::Result<Account>;

    /// Whether the source records on a CPU. Asked about once a second of each one that is online.
    fn covers(&mut self, _cpu: u32) -> bool {
        true
    }

    /// Records on a CPU that came online, with `descendants` beside the processes that the settings name: what those have
    /// made and runs. Gives the descriptor that wakes the session for it, if there is a new one.
    ///
    /// # Errors
    /// When the system refuses; it is tried again a second later.
    fn add_cpu(&mut self, _cpu: u32, _descendants: &[u32]) -> io::Result<Option<BorrowedFd<'_>>> {
        Ok(None)
    }

    /// Follows a process beside those that the settings name, as it descends from one of them. `started` is when it was made,
    /// 0 where that was before the session.
    ///
    /// # Errors
    /// When the system refuses: the process is not recorded then.
    fn follow(&mut self, _pid: u32, _started: Nanos) -> io::Result<()> {
        Ok(())
    }

    /// Files with code were mapped that were not seen before, or will be by the command: told in sessions with
    /// [`Program::Allocations`]. The first ones are told when the source has started, and before a command is executed.
    ///
    /// [`Program::Allocations`]: super::Program::Allocations
    fn files_mapped(&mut self, _files: &[NewFile]) {}

    /// A round is over: what the source keeps of what is gone can be given up.
    fn end_round(&mut self, _gone: &Gone) {}

    /// What is known of where a thread's stack ends turned out to be wrong.
    fn forget_stack(&mut self, _thread: Tid) {}

    /// Further samples of a thread are to have the outer frames of its stack, which lie there.
    fn copy_outer(&mut self, _thread: Tid, _places: &OuterPlaces) {}
}

/// What is gone since the last round, all of whose records were handed over.
#[derive(Clone, Debug, Default)]
pub struct Gone {
    /// Processes that have ended, with when.
    pub processes: Vec<(Pid, Nanos)>,
    /// Blocks of memory that those have left, that were of a program which its process executes no more, or that are not to be in the recording.
    pub blocks: Vec<LeftBlock>,
}

/// A recorded block of memory that was not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftBlock {
    /// Of which process.
    pub pid: Pid,
    /// Where it began.
    pub address: u64,
    /// When it was allocated.
    pub since: Nanos,
}

/// A file with code that a source was not told of before.
#[derive(Debug)]
pub struct NewFile {
    /// The file.
    pub file: File,
    /// Whether a recorded process has mapped it while it was recorded, so that its code may have run by now.
    pub is_late: bool,
}

/// A source's figures, beside what it enters into the ledger.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Bytes of user stack that the kernel copied.
    pub bytes_copied: u64,
    /// Time in BPF programs, in nanoseconds.
    pub bpf_run_ns: u64,
    /// Runs of BPF programs.
    pub bpf_run_count: u64,
    /// What could not be read or learned, in records that were delivered all the same.
    pub faults: Faults,
    /// Things a user should know, with how often they happened.
    pub warnings: Vec<(u64, &'static str)>,
    /// What was counted in the kernel.
    pub histograms: Vec<Histogram>,
    /// Tables of what was counted in the kernel.
    pub tables: Vec<Table>,
    /// Processes, where they were asked for.
    pub lives: Vec<ToldLife>,
}

/// A process as a source tells of it, from beginning to end. Times are `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldLife {
    /// Its pid.
    pub pid: Pid,
    /// Its name, the last one told of.
    pub name: String,
    /// The pid of the process that made it; of one that was there before the recording, of that whose child it is.
    pub parent: Pid,
    /// That one's name then.
    pub parent_name: String,
    /// The last program that it executed.
    pub executed: Option<ToldProgram>,
    /// When it was made.
    pub start: Nanos,
    /// When its last thread ended, and how; `None` while it runs.
    pub end: Option<(Nanos, Exit)>,
}

/// A program that was executed, as a source tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldProgram {
    /// When.
    pub time: Nanos,
    /// Its arguments, the program's name first, each with a NUL behind it; empty where they could not be read.
    pub arguments: Box<[u8]>,
    /// Whether there are more arguments than there was room for.
    pub are_cut: bool,
}

impl Account {
    /// Adds the figures of another source.
    pub(crate) fn add(&mut self, other: Self) {
        self.bytes_copied += other.bytes_copied;
        self.bpf_run_ns += other.bpf_run_ns;
        self.bpf_run_count += other.bpf_run_count;
        self.faults.absent_pages += other.faults.absent_pages;
        self.faults.busy_mappings += other.faults.busy_mappings;
        self.faults.no_registers += other.faults.no_registers;
        self.warnings.extend(other.warnings);
        self.histograms.extend(other.histograms);
        self.tables.extend(other.tables);
        self.lives.extend(other.lives);
    }
}
