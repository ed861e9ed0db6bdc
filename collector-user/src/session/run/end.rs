//! The end of a recording: what is left in the rings, the account, and what a user should know.

use std::collections::BTreeSet;

use collector_common::ids::{Nanos, Pid};
use collector_common::loss::Ledger;

use super::{Session, Upto};
use crate::capture::Capture;
use crate::clock;
use crate::journal::Ending;
use crate::kernel::KALLSYMS;
use crate::recording::Recording;
use crate::session::ending::{Recorded, put_together};
use crate::session::error::SessionError;
use crate::source::{Account, Targets};

impl Session {
    /// Stops sampling, takes what is left in the rings, and closes the account.
    ///
    /// # Errors
    /// When the events can't be stopped or the counters not be read; what was recorded is lost then.
    pub fn finish(mut self) -> Result<Recording, SessionError> {
        // To stop programs at many functions may take a second.
        let stopping = clock::now();
        let mut sources = self.sources.iter_mut();
        sources
            .try_for_each(|source| source.stop())
            .map_err(SessionError::system("the events can't be stopped"))?;
        let end = clock::now();
        let missed = self.dispatch.missed();
        self.round(Upto::Now);
        let (mut account, mut losses) = (Account::default(), Ledger::default());
        for source in &mut self.sources {
            let failed = SessionError::system("the counters of what was lost can't be read");
            account.add(source.close(&mut losses).map_err(failed)?);
        }
        // The kernel counts them for all processes together.
        let is_chosen = self.settings.sampling.targets != Targets::default();
        let missed = missed.into_iter().map(|(missed, is_whole)| (missed, is_whole && !is_chosen));
        let missed = missed.map(|(missed, are_counted)| {
            if are_counted {
                losses.lose(missed.cause(), missed.count);
            }
            missed.told(are_counted)
        });
        let mut missed: Vec<String> = missed.collect();
        self.recorder.name_users();
        losses.causes().for_each(|(cause, count)| self.recorder.ledger_mut().lose(cause, count));
        let mut ending = Ending { losses, account, ..self.ending(stopping, end) };
        let backend = self.sources.first().map_or("", |source| source.name());
        // They go before the events of `dispatch` do.
        self.sources.clear();
        ending.warnings = self.warnings(&ending.account);
        ending.warnings.append(&mut missed);
        ending.warnings.append(&mut self.dispatch.remove_probes());
        let journal = self.journal.take();
        let journal_failure = journal.and_then(|journal| journal.finish(&ending, &mut self.recorder).err());
        let recorded = Recorded {
            recorder: self.recorder,
            dispatch: self.dispatch,
            capture: self.capture,
            backend,
            frequency: self.settings.sampling.frequency,
            kernel_symbols: Some(KALLSYMS.into()),
        };
        let account = std::mem::take(&mut ending.account);
        Ok(Recording { journal_failure, ..put_together(recorded, account, ending) })
    }

    /// What is known beside the sources.
    fn ending(&self, stopping: Nanos, end: Nanos) -> Ending {
        Ending {
            backend: self.sources.first().map_or("", |source| source.name()).to_owned(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            began: self.began,
            stopping,
            end,
            clock_at_start: self.recorder.machine().system().clocks.start,
            clock_at_end: Some(clock::anchor()),
            not_captured: self.capture.as_ref().map_or(0, Capture::left_out),
            family: self.family(),
            first_sample: self.first_sample.map(|time| time.as_nanos() as u64),
            ..Ending::default()
        }
    }

    /// Where what is recorded was chosen: the processes that were named, with all that they made.
    fn family(&self) -> Option<Vec<(Pid, Nanos)>> {
        let targets = &self.settings.sampling.targets;
        let is_chosen = targets.follows_processes() || targets.cgroup.is_some() || targets.comm.is_some();
        let named: BTreeSet<u32> = targets.pids.iter().copied().chain(targets.command).collect();
        is_chosen.then(|| {
            let processes = self.recorder.machine().processes().iter();
            let own = processes.filter(|process| named.contains(&process.pid.0));
            let own = own.map(|process| (process.pid, process.start));
            own.chain(self.recorder.descendants(&named)).collect()
        })
    }

    /// Processes that were made while perf events of chosen processes were at functions of programs. The kernel has parent and child
    /// exchange their events as one takes the other's place on a CPU (`perf_event_context_sched_out`), and a probe goes by the process
    /// that its event was opened for (`uprobe_perf_filter`): so some calls are told by none.
    fn forked_under_probes(&self) -> u64 {
        let targets = &self.settings.sampling.targets;
        if !targets.follows_processes() || self.chooses_hits || !self.dispatch.probes_programs() {
            return 0;
        }
        let named = targets.pids.iter().copied().chain(targets.command).collect();
        let made = self.recorder.descendants(&named);
        made.iter().filter(|(_, start)| *start >= self.began).count() as u64
    }

    /// What the sources told, and what was not recorded.
    fn warnings(&self, account: &Account) -> Vec<String> {
        let mut warnings = self.notes.clone();
        let mut warn = |count: u64, text: &str| {
            if count > 0 {
                warnings.push(format!("{count} {text}"));
            }
        };
        warn(self.not_followed, "child processes could not be followed");
        warn(
            self.forked_under_probes(),
            "processes were made by those that were chosen: the kernel may not have told plain perf events of all calls of probed functions \
             there, nor in those that made them; a recording through eBPF has all",
        );
        warn(self.cpus_added, "CPU(s) came online: what ran there in their first second is missing");
        warn(
            self.cpus_untold,
            "CPU(s) came online: of processes that ran there in their first second alone, names and stacks may be missing",
        );
        account.warnings.iter().for_each(|&(count, text)| warn(count, text));
        warn(
            self.capture.as_ref().map_or(0, Capture::left_out),
            "records of scenarios are not in the perf.data, which has no place for them: times off, locks, calls, memory",
        );
        warn(self.sideband.malformed(), "records of the sideband could not be read");
        let failed = self.cpus_failed.iter();
        warnings
            .extend(failed.map(|(cpu, error)| format!("CPU {cpu} came online and is not recorded: {error}")));
        warnings
    }
}
