//! The end of a recording: what is left in the rings, the account, and what a user should know.

use std::collections::{BTreeMap, BTreeSet};

use collector_common::ids::{Nanos, Pid};
use collector_common::record::ExportMachine;
use rustc_hash::FxHashSet;

use super::{Session, Upto};
use crate::capture::Capture;
use crate::clock;
use crate::kernel::KALLSYMS;
use crate::recording::Recording;
use crate::session::error::SessionError;
use crate::session::lives;
use crate::source::Account;
use crate::spill;
use crate::stats::Stats;
use crate::sys::usage::own_usage;

/// Nanoseconds by which anchors of clocks may be off, if the thread has to wait for a CPU while it reads them.
const CLOCK_WAS_SET: u64 = 20_000_000;

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
        self.round(Upto::Now);
        let mut account = Account::default();
        for source in &mut self.sources {
            let failed = SessionError::system("the counters of what was lost can't be read");
            account.add(source.close(self.recorder.ledger_mut()).map_err(failed)?);
        }
        self.dispatch.finish(&mut self.recorder, stopping);
        let machine = self.recorder.machine_mut();
        machine.system_mut().end = end;
        machine.system_mut().clocks.end = Some(clock::anchor());
        for histogram in std::mem::take(&mut account.histograms) {
            machine.add_histogram(histogram);
        }
        for table in std::mem::take(&mut account.tables) {
            machine.add_table(table);
        }
        let mut warnings = self.warnings(&account);
        let mut stats = self.stats(&account, end);
        let family = self.family();
        let (mut machine, mut modules, ledger, tally) = self.recorder.into_parts();
        warnings.extend(modules.jit().warning(&machine));
        warnings.extend(spill::warnings(&machine));
        lives::enter(&mut machine, account.lives);
        let not_captured = self.capture.as_ref().map_or(0, Capture::left_out);
        let capture = self.capture.map(|capture| capture.finish(&machine, &modules, &ledger));
        if let Some(family) = family {
            // What else runs on the machine, and by which command lines, is nobody's business then.
            let is_of_family = |machine: &ExportMachine, id| {
                let process = machine.process(id);
                family.contains(&(process.pid, process.start))
            };
            modules.jit_mut().renumber(&machine.leave_out_processes(is_of_family));
        }
        stats.ledger = ledger;
        stats.stacks = tally.ends().collect::<BTreeMap<_, _>>();
        stats.frames = tally.frames();
        machine.system_mut().lost = Some(ledger.total_lost());
        machine.system_mut().account = stats.account().into_iter().chain(stats.faults()).collect();
        let kernel_symbols = Some(KALLSYMS.into());
        let capture_failure = capture.transpose().err();
        Ok(Recording {
            machine,
            ledger,
            stats,
            warnings,
            capture_failure,
            not_captured,
            modules,
            kernel_symbols,
        })
    }

    /// Where what is recorded was chosen: the processes that were named, with all that they made.
    fn family(&self) -> Option<FxHashSet<(Pid, Nanos)>> {
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

    fn stats(&self, account: &Account, end: Nanos) -> Stats {
        Stats {
            backend: self.sources.first().map_or("", |source| source.name()),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            duration_ns: end.0 - self.began.0,
            frequency_hz: self.settings.sampling.frequency,
            bytes_copied: account.bytes_copied,
            usage: own_usage(),
            bpf_run_ns: account.bpf_run_ns,
            bpf_run_count: account.bpf_run_count,
            bpf_faults: account.faults,
            start_to_first_sample_ns: self.first_sample.map(|time| time.as_nanos() as u64),
            ..Stats::default()
        }
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

    fn warnings(&self, account: &Account) -> Vec<String> {
        let failures = self.dispatch.errors();
        let failures = (!failures.is_empty()).then(|| failures.to_string());
        let mut warnings: Vec<_> = self.notes.iter().cloned().chain(failures).collect();
        let mut warn = |count: u64, text: &str| {
            if count > 0 {
                warnings.push(format!("{count} {text}"));
            }
        };
        warn(
            self.recorder.sideband_lost(),
            "records of new mappings and processes were lost: some stacks may end early",
        );
        warn(
            self.recorder.without_arguments(),
            "executed programs have no command line in the recording: there were too many of them",
        );
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
        warn(
            self.recorder.modules().unreadable(self.recorder.machine()) as u64,
            "recorded files could not be opened: stacks and names in them are incomplete",
        );
        let set = self.recorder.machine().system().clocks.set_forward();
        if set.unsigned_abs() > CLOCK_WAS_SET {
            let (seconds, way) = (set.unsigned_abs() as f64 / 1e9, if set > 0 { "forward" } else { "back" });
            warnings.push(format!(
                "the time of day was set {way} by {seconds:.3} s while it was recorded: times of day are as before that in the first \
                 half, and as after it in the second"
            ));
        }
        warnings
    }
}
