//! Opens what a session records with.

use super::SessionError;
use super::run::SessionSettings;
use crate::clock;
use crate::recorder::Recorder;
#[cfg(feature = "ebpf")]
use crate::source::ebpf::Sampler;
use crate::source::perf::PerfEvents;
use crate::source::scope::Scope;
use crate::source::sideband::Sideband;
use crate::source::{Rights, Source};

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

/// Open sources. Nothing is sampled yet, but the sideband tells of all that has happened since before `/proc` was read.
pub(super) struct Opened {
    pub(super) sideband: Sideband,
    pub(super) source: Box<dyn Source>,
    /// Why it is not the best there could be.
    pub(super) note: Option<String>,
}

/// Opens the backend that the settings name, and takes in what runs already.
#[cfg(feature = "ebpf")]
pub(super) fn open(
    settings: &SessionSettings,
    cpus: &[u32],
    recorder: &mut Recorder,
) -> Result<Opened, SessionError> {
    let reason = match settings.backend {
        Backend::Perf => return open_perf(settings, cpus, recorder),
        Backend::Ebpf => return open_ebpf(settings, cpus, recorder),
        Backend::Auto => match open_ebpf(settings, cpus, recorder) {
            Err(SessionError::Load(reason)) if reason.is_of_this_machine() => reason,
            result => return result,
        },
    };
    *recorder = Recorder::new(settings.sampling.period());
    let opened = open_perf(settings, cpus, recorder)?;
    Ok(Opened { note: Some(format!("plain perf events record, at a higher cost: {reason}")), ..opened })
}

/// Opens what this build has, and takes in what runs already.
#[cfg(not(feature = "ebpf"))]
pub(super) fn open(
    settings: &SessionSettings,
    cpus: &[u32],
    recorder: &mut Recorder,
) -> Result<Opened, SessionError> {
    match settings.backend {
        Backend::Ebpf => Err(SessionError::NoEbpf),
        Backend::Auto | Backend::Perf => open_perf(settings, cpus, recorder),
    }
}

#[cfg(feature = "ebpf")]
fn open_ebpf(
    settings: &SessionSettings,
    cpus: &[u32],
    recorder: &mut Recorder,
) -> Result<Opened, SessionError> {
    crate::source::ebpf::check()?;
    let sideband = Sideband::open(cpus).map_err(SessionError::sideband)?;
    // The kernel checks the programs while `/proc` is read.
    let (sampler, scanned) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| Sampler::load(&settings.sampling, cpus));
        let scanned = recorder.scan(clock::now);
        (sampler.join(), scanned)
    });
    let sampler = sampler.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    scanned.map_err(SessionError::system("/proc can't be read"))?;
    Ok(Opened { sideband, source: Box::new(sampler), note: None })
}

fn open_perf(
    settings: &SessionSettings,
    cpus: &[u32],
    recorder: &mut Recorder,
) -> Result<Opened, SessionError> {
    let rights = Rights::of_this_process();
    let events = PerfEvents::open(&settings.sampling, cpus)?;
    let scope = match PerfEvents::scope(&settings.sampling, rights)? {
        // Mappings of shared files are the machine's business.
        Scope::Cgroup(_) => Scope::Machine,
        scope => scope,
    };
    let sideband = Sideband::open_for(scope, rights, cpus).map_err(SessionError::sideband)?;
    recorder.name_threads(settings.sampling.targets.comm.as_deref());
    recorder.scan(clock::now).map_err(SessionError::system("/proc can't be read"))?;
    Ok(Opened { sideband, source: Box::new(events), note: None })
}
