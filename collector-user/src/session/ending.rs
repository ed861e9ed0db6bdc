//! From what a session has recorded to a [`Recording`]: with what its sources counted, and what a user should know.

use std::collections::BTreeMap;
use std::path::PathBuf;

use collector_common::ids::{Nanos, Pid};
use collector_common::record::ExportMachine;
use rustc_hash::FxHashSet;

use super::dispatch::Dispatch;
use super::lives;
use crate::capture::Capture;
use crate::journal::Ending;
use crate::recorder::Recorder;
use crate::recording::Recording;
use crate::source::Account;
use crate::spill;
use crate::stats::Stats;
use crate::sys::usage::own_usage;

/// Nanoseconds by which anchors of clocks may be off, if the thread has to wait for a CPU while it reads them.
const CLOCK_WAS_SET: u64 = 20_000_000;

/// What a session was, when all of its records have been taken in.
pub(super) struct Recorded {
    pub(super) recorder: Recorder,
    pub(super) dispatch: Dispatch,
    pub(super) capture: Option<Capture>,
    pub(super) backend: &'static str,
    pub(super) frequency: u32,
    /// Where the names of the kernel's functions are.
    pub(super) kernel_symbols: Option<PathBuf>,
}

/// Puts the recording together.
pub(super) fn put_together(recorded: Recorded, account: Account, ending: Ending) -> Recording {
    let Recorded { mut recorder, mut dispatch, capture, backend, frequency, kernel_symbols } = recorded;
    dispatch.finish(&mut recorder, ending.stopping);
    let warnings = warnings(&recorder, &dispatch, &ending);
    let machine = recorder.machine_mut();
    let system = machine.system_mut();
    (system.start, system.end) = (ending.began, ending.end);
    (system.clocks.start, system.clocks.end) = (ending.clock_at_start, ending.clock_at_end);
    let clock_warning = set_clock(machine);
    account.histograms.into_iter().for_each(|histogram| machine.add_histogram(histogram));
    account.tables.into_iter().for_each(|table| machine.add_table(table));
    let mut warnings: Vec<String> = warnings.into_iter().chain(clock_warning).collect();
    let (mut machine, mut modules, ledger, tally) = recorder.into_parts();
    warnings.extend(modules.jit().warning(&machine));
    warnings.extend(spill::warnings(&machine));
    lives::enter(&mut machine, account.lives);
    let not_captured = ending.not_captured;
    let capture = capture.map(|capture| capture.finish(&machine, &modules, &ledger));
    if let Some(family) = ending.family {
        // What else runs on the machine, and by which command lines, is nobody's business then.
        let family: FxHashSet<(Pid, Nanos)> = family.into_iter().collect();
        let is_of_family = |machine: &ExportMachine, id| {
            let process = machine.process(id);
            family.contains(&(process.pid, process.start))
        };
        modules.jit_mut().renumber(&machine.leave_out_processes(is_of_family));
    }
    let stats = Stats {
        backend,
        kernel: ending.kernel,
        duration_ns: ending.end.0.saturating_sub(ending.began.0),
        frequency_hz: frequency,
        bytes_copied: account.bytes_copied,
        usage: own_usage(),
        bpf_run_ns: account.bpf_run_ns,
        bpf_run_count: account.bpf_run_count,
        bpf_faults: account.faults,
        start_to_first_sample_ns: ending.first_sample,
        ledger,
        is_cut: false,
        stacks: tally.ends().collect::<BTreeMap<_, _>>(),
        frames: tally.frames(),
    };
    machine.system_mut().lost = Some(ledger.total_lost());
    machine.system_mut().account = stats.account().into_iter().chain(stats.faults()).collect();
    Recording {
        machine,
        ledger,
        stats,
        warnings,
        capture_failure: capture.and_then(Result::err),
        journal_failure: None,
        not_captured,
        modules,
        kernel_symbols,
    }
}

/// What a user should know: what the session was told, and what became of it.
fn warnings(recorder: &Recorder, dispatch: &Dispatch, ending: &Ending) -> Vec<String> {
    let failures = dispatch.errors();
    let failures = (!failures.is_empty()).then(|| failures.to_string());
    let mut warnings: Vec<_> = failures.into_iter().chain(ending.warnings.iter().cloned()).collect();
    for (count, text) in [
        (
            recorder.sideband_lost(),
            "records of new mappings and processes were lost: some stacks may end early",
        ),
        (
            recorder.without_arguments(),
            "executed programs have no command line in the recording: there were too many of them",
        ),
        (
            recorder.modules().unreadable(recorder.machine()) as u64,
            "recorded files could not be opened: stacks and names in them are incomplete",
        ),
    ] {
        if count > 0 {
            warnings.push(format!("{count} {text}"));
        }
    }
    warnings
}

/// What is to be said where somebody set the time of day meanwhile.
fn set_clock(machine: &ExportMachine) -> Option<String> {
    let set = machine.system().clocks.set_forward();
    let (seconds, way) = (set.unsigned_abs() as f64 / 1e9, if set > 0 { "forward" } else { "back" });
    (set.unsigned_abs() > CLOCK_WAS_SET).then(|| {
        format!(
            "the time of day was set {way} by {seconds:.3} s while it was recorded: times of day are as before that in the first \
             half, and as after it in the second"
        )
    })
}
