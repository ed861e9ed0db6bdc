//! Opens what a session records with.

#[cfg(feature = "ebpf")]
use std::collections::BTreeSet;

use collector_common::ids::Pid;

use super::SessionError;
use crate::clock;
#[cfg(feature = "ebpf")]
use crate::kernel::Release;
use crate::recorder::Recorder;
use crate::scenario;
#[cfg(feature = "ebpf")]
use crate::source::ebpf::Sampler;
use crate::source::perf::{PerfError, PerfEvents};
use crate::source::scope::{Scope, forbids_all};
use crate::source::sideband::{Mappings, Sideband};
#[cfg(feature = "ebpf")]
use crate::source::{Copied, Targets};
use crate::source::{EventRequest, Program, Rights, Settings, Source};

/// What records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Programs in the kernel where they run, else plain perf events.
    #[default]
    Auto,
    /// Programs in the kernel.
    Ebpf,
    /// Plain perf events.
    Perf,
}

/// What is to be opened.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) backend: Backend,
    pub(super) settings: &'a Settings,
    pub(super) requests: &'a [EventRequest],
    /// All CPUs: what happens to a process's memory may happen on any.
    pub(super) online: &'a [u32],
    /// Those whose samples are wanted.
    pub(super) cpus: &'a [u32],
    /// Whether there are records without a thread's name beside those of the backend.
    #[cfg(feature = "ebpf")]
    pub(super) has_maps: bool,
    /// Everything that is told is written into a file, for whoever unwinds later.
    pub(super) captures: bool,
    /// Everything that is asked for and found is kept, for whoever is to do the same later.
    pub(super) has_journal: bool,
}

impl Wanted<'_> {
    fn recorder(&self) -> Recorder {
        let mut recorder = Recorder::new();
        if self.captures {
            recorder.keep_found();
        }
        if self.has_journal {
            recorder.keep_notes();
        }
        if let Some(command) = self.settings.targets.command {
            recorder.set_waiting(Pid(command));
        }
        if self.requests.iter().any(|request| request.program() == Some(Program::Allocations)) {
            recorder.modules_mut().keep_opened();
        }
        recorder
    }

    /// What the sideband is to tell: who unwinds later may want the files' other parts.
    fn mappings(&self) -> Mappings {
        if self.captures { Mappings::All } else { Mappings::Code }
    }
}

/// Open sources. Nothing is sampled yet, but the sideband tells of all that has happened since before `/proc` was read.
pub(super) struct Opened {
    /// It knows what runs already.
    pub(super) recorder: Recorder,
    pub(super) sideband: Sideband,
    pub(super) sources: Vec<Box<dyn Source>>,
    /// Why it is not the best there could be.
    pub(super) note: Option<String>,
    /// Whether a program says whose hits of probes are recorded, where processes are chosen.
    pub(super) chooses_hits: bool,
}

/// Opens the backend that the settings name, and takes in what runs already.
#[cfg(feature = "ebpf")]
pub(super) fn open(wanted: &Wanted<'_>) -> Result<Opened, SessionError> {
    let requests = for_programs(wanted);
    let wanted = &Wanted { requests: &requests, ..*wanted };
    let program = requests.iter().find_map(EventRequest::needed_program);
    let does_better = wanted.settings.clock || requests.iter().any(|request| request.program().is_some());
    let does_anything = |request: &EventRequest| request.copied.is_some() || request.is_in_programs;
    if !does_better && !requests.iter().any(does_anything) {
        // No program does anything for other events.
        return open_perf(wanted);
    }
    let reason = match wanted.backend {
        Backend::Perf => {
            let Some(program) = program else { return open_perf(wanted) };
            let why = "plain perf events have none: leave out `--backend perf`";
            return Err(SessionError::NoPrograms { scenario: scenario::name_of(program), why });
        }
        Backend::Ebpf => return open_ebpf(wanted),
        Backend::Auto => match open_ebpf(wanted) {
            Err(SessionError::Load(reason)) if program.is_none() && reason.is_of_this_machine() => reason,
            result => return result,
        },
    };
    let opened = open_perf(wanted)?;
    if !does_better {
        return Ok(opened);
    }
    let fallback = format!("plain perf events record, at a higher cost: {reason}");
    let note = [Some(fallback), opened.note].into_iter().flatten().collect::<Vec<_>>().join("; ");
    Ok(Opened { note: Some(note), ..opened })
}

/// Opens what this build has, and takes in what runs already.
#[cfg(not(feature = "ebpf"))]
pub(super) fn open(wanted: &Wanted<'_>) -> Result<Opened, SessionError> {
    let program = wanted.requests.iter().find_map(EventRequest::needed_program);
    match (wanted.backend, program) {
        (_, Some(program)) => {
            let why = "this build can't load any: build it with the feature `ebpf`";
            Err(SessionError::NoPrograms { scenario: scenario::name_of(program), why })
        }
        (Backend::Ebpf, None) => Err(SessionError::NoEbpf),
        (Backend::Auto | Backend::Perf, None) => open_perf(wanted),
    }
}

/// The requests, of which programs are to copy those of tracepoints that they can here, and to choose hits of probes where processes are chosen.
#[cfg(feature = "ebpf")]
fn for_programs(wanted: &Wanted<'_>) -> Vec<EventRequest> {
    let targets = &wanted.settings.targets;
    let copies = targets.cpus.is_empty() && Release::of_this_kernel() >= Release::WITH_TRACEPOINT_MISSES;
    let is_copied = |copied: &Copied| copies && !(copied.is_of_others && targets.follows_processes());
    let requests = wanted.requests.iter().cloned();
    let chooses = targets.follows_processes();
    let of_this = |request: EventRequest| EventRequest {
        copied: request.copied.filter(is_copied),
        is_in_programs: request.is_in_programs && chooses,
        ..request
    };
    requests.map(of_this).collect()
}

#[cfg(feature = "ebpf")]
fn open_ebpf(wanted: &Wanted<'_>) -> Result<Opened, SessionError> {
    let Wanted { settings, requests, cpus, .. } = *wanted;
    let mut recorder = wanted.recorder();
    crate::source::ebpf::check()?;
    let needed = requests.iter().find_map(EventRequest::needed_program);
    if let Some(program) = needed.filter(|_| !settings.targets.cpus.is_empty()) {
        return Err(SessionError::ProgramsOfSomeCpus { scenario: scenario::name_of(program) });
    }
    let sideband = Sideband::open_for(Scope::Machine, Rights::ALL, wanted.mappings(), wanted.online)
        .map_err(SessionError::sideband)?;
    // The kernel checks the programs while `/proc` is read.
    let (sampler, scanned) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| Sampler::load(settings, requests, cpus));
        let scanned = recorder.scan(clock::now);
        (sampler.join(), scanned)
    });
    let sampler = sampler.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    scanned.map_err(SessionError::system("/proc can't be read"))?;
    let others =
        requests.iter().filter(|request| request.program().is_none() && !sampler.copies(request.index));
    let (probes, others): (Vec<_>, Vec<_>) = others.cloned().partition(|request| request.is_in_programs);
    let chooser = (!probes.is_empty()).then(|| sampler.chooser_of_hits()).transpose();
    let chooser = chooser.map_err(SessionError::system("a program can't be used"))?;
    let mut sources: Vec<Box<dyn Source>> = vec![Box::new(sampler)];
    if !others.is_empty() {
        let threads = PerfEvents::scope(settings, Rights::of_this_process())?.events_by_cpu();
        PerfError::check_open_files(threads, cpus.len(), others.len())?;
        sources.push(Box::new(PerfEvents::open(settings, false, &others, cpus)?));
    }
    if let Some(chooser) = chooser {
        // In all processes: the program chooses.
        let targets = Targets { pids: BTreeSet::new(), command: None, ..settings.targets.clone() };
        let settings = Settings { targets, ..settings.clone() };
        PerfError::check_open_files(1, cpus.len(), probes.len())?;
        let mut events = PerfEvents::open(&settings, false, &probes, cpus)?;
        events.choose_by(chooser).map_err(SessionError::system("processes can't be chosen at probes"))?;
        sources.push(Box::new(events));
    }
    if !others.is_empty() || !probes.is_empty() || wanted.has_maps {
        recorder.name_threads(settings.targets.comm.as_deref());
    }
    let note = kernel_locks_note(requests, Release::of_this_kernel());
    Ok(Opened { recorder, sideband, sources, note, chooses_hits: true })
}

/// What of locks this kernel does not tell.
#[cfg(feature = "ebpf")]
fn kernel_locks_note(requests: &[EventRequest], release: Release) -> Option<String> {
    let is_asked = requests.iter().any(|request| request.program() == Some(Program::KernelLocks));
    let is_old = release < Release::WITH_CONTENTION;
    (is_asked && is_old).then(|| {
        format!("waits for locks of user code alone are recorded: those of the kernel need Linux {}, and this is {release}", Release::WITH_CONTENTION)
    })
}

/// What is told where the kernel's part may not be recorded.
const WITHOUT_KERNEL: &str = "what happens in the kernel is left out, and its part of stacks: that needs root or CAP_PERFMON, or \
     kernel.perf_event_paranoid below 2";

fn open_perf(wanted: &Wanted<'_>) -> Result<Opened, SessionError> {
    let Wanted { settings, cpus, .. } = *wanted;
    let requests: Vec<_> = wanted.requests.iter().cloned().map(EventRequest::plain).collect();
    let mut recorder = wanted.recorder();
    let rights = Rights::of_this_process();
    let scope = match PerfEvents::scope(settings, rights)? {
        // Mappings of shared files are the machine's business.
        Scope::Cgroup(_) => Scope::Machine,
        scope => scope,
    };
    let events = Sideband::EVENTS + usize::from(settings.clock) + requests.len();
    PerfError::check_open_files(scope.events_by_cpu(), cpus.len(), events)?;
    // The sideband first: a process that it does not tell of was made before the other events were opened, and has none.
    let mut sideband =
        Sideband::open_for(scope, rights, wanted.mappings(), wanted.online).map_err(|error| {
            let named = settings.targets.pids.first().copied().or(settings.targets.command);
            match (error.raw_os_error(), named) {
                (Some(libc::EACCES | libc::EPERM), Some(pid)) => {
                    PerfError::refused(pid, forbids_all()).into()
                }
                _ => SessionError::sideband(error),
            }
        })?;
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    if settings.clock || !requests.is_empty() {
        sources.push(Box::new(PerfEvents::open(settings, settings.clock, &requests, cpus)?));
    }
    sideband.catch_up().map_err(SessionError::sideband)?;
    recorder.name_threads(settings.targets.comm.as_deref());
    recorder.scan(clock::now).map_err(SessionError::system("/proc can't be read"))?;
    let note = (!rights.kernel).then(|| WITHOUT_KERNEL.to_owned());
    Ok(Opened { recorder, sideband, sources, note, chooses_hits: false })
}

#[cfg(all(test, feature = "ebpf"))]
mod tests {
    use super::kernel_locks_note;
    use crate::kernel::Release;
    use crate::source::{EventIndex, EventRequest, Program, Trigger};

    #[test]
    fn old_kernels_do_not_tell_of_their_locks() {
        let request = |program| EventRequest::new(EventIndex::of_hook(0), Trigger::Program(program));
        let note = |program, release| kernel_locks_note(&[request(program)], release);
        let told = note(Program::KernelLocks, Release::new(5, 15)).unwrap();
        assert!(told.contains("need Linux 5.19, and this is 5.15"), "{told}");
        assert_eq!(note(Program::KernelLocks, Release::new(5, 19)), None);
        assert_eq!(note(Program::Locks, Release::new(5, 15)), None);
    }
}
