//! What is Linux' own of it: settings in, a [`Session`] that records, and what that gives out.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;

use crate::hooks::SampleHook;
use crate::scenario::{self, Scenario};
use crate::session::{Backend, Session, SessionSettings};
use crate::source::{Named, Settings};

use super::{ExportError, ExportSettings};

pub use crate::session::{Recording, SessionError};
pub use crate::source::NamedError as EventError;

/// Ends a recording when it is dropped.
pub(super) type Stop = UnixStream;
/// Tells the recording's thread that it is to end.
pub(super) type StopTold = UnixStream;

/// Both ends.
pub(super) fn stop() -> io::Result<(Stop, StopTold)> {
    UnixStream::pair()
}

/// Settings that other systems have not.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    cgroup: Option<PathBuf>,
    ring_bytes: Option<u32>,
    sample_bytes: Option<u64>,
    backend: Backend,
}

/// Of Linux alone.
impl ExportSettings {
    /// Of a folder of the cgroup v2 hierarchy alone, with all below it.
    #[must_use]
    pub fn with_cgroup(mut self, path: impl Into<PathBuf>) -> Self {
        self.own.cgroup = Some(path.into());
        self
    }

    /// Bytes of each CPU's ring.
    #[must_use]
    pub fn with_ring_bytes(mut self, bytes: u32) -> Self {
        self.own.ring_bytes = Some(bytes);
        self
    }

    /// The most bytes of memory for samples, beyond which they go into a temporary file: see [`crate::spill`]. It is 256 MiB without.
    #[must_use]
    pub fn with_sample_bytes(mut self, bytes: u64) -> Self {
        self.own.sample_bytes = Some(bytes);
        self
    }

    /// What records.
    #[must_use]
    pub fn with_backend(mut self, backend: Backend) -> Self {
        self.own.backend = backend;
        self
    }

    /// Whether all scenarios are known.
    pub(super) fn check(&self) -> Result<(), ExportError> {
        self.scenarios.iter().try_for_each(|name| scenario_of(name).map(drop))
    }

    /// The session that they ask for, with so many bytes of memory for raw events. Events are found, and probes made, as this is called.
    fn session(&self, event_bytes: u64) -> Result<SessionSettings, ExportError> {
        let Own { cgroup, ring_bytes, sample_bytes, backend } = self.own.clone();
        let Named { hooks: events, clock } = Named::parse(&self.events, backend != Backend::Perf)?;
        let is_clock_alone = self.scenarios.is_empty() && self.events.is_empty();
        let mut sampling = Settings {
            clock: clock || is_clock_alone,
            frequency: self.frequency,
            ring_bytes,
            ..Settings::default()
        };
        (sampling.targets.pids, sampling.targets.cgroup, sampling.targets.comm) =
            (self.pids.clone(), cgroup, self.comm.clone());
        let mut settings = SessionSettings {
            sampling,
            events,
            backend,
            event_bytes,
            sample_bytes,
            ..SessionSettings::default()
        };
        for name in &self.scenarios {
            scenario_of(name)?.register(&mut settings);
        }
        Ok(settings)
    }
}

fn scenario_of(name: &str) -> Result<&'static Scenario, ExportError> {
    scenario::by_name(name).ok_or_else(|| ExportError::Scenario(name.to_owned()))
}

/// Records until the other end of `stopped` is closed; `ready` is told when all is being recorded.
pub(super) fn record(
    settings: &ExportSettings,
    event_bytes: u64,
    hook: SampleHook,
    stopped: &StopTold,
    ready: mpsc::Sender<()>,
) -> Result<Recording, ExportError> {
    let sample_hooks = vec![hook];
    let mut session =
        Session::start(SessionSettings { sample_hooks, ..settings.session(event_bytes)? }, None)?;
    // Nobody listens where the exporter is dropped meanwhile.
    let _ = ready.send(());
    drop(ready);
    session.run(stopped.as_fd(), |_progress| {})?;
    Ok(session.finish()?)
}
