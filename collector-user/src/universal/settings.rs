//! What is recorded, of whom, and where it is written.

use std::path::PathBuf;

use export::symbolize::{Detail, NameForm, Naming};

use crate::scenario::{self, Scenario};
use crate::session::{Backend, SessionSettings};
use crate::source::{Named, Settings};

use super::ExportError;

/// What to record, by the names of scenarios and events, and where it goes. Without any it is what runs on the CPUs.
#[derive(Clone, Debug, Default)]
pub struct ExportSettings {
    scenarios: Vec<String>,
    events: Vec<String>,
    sampling: Settings,
    backend: Backend,
    sample_bytes: Option<u64>,
    pub(super) naming: Naming,
    pub(super) outputs: Vec<PathBuf>,
    pub(super) splits_by_comm: bool,
}

impl ExportSettings {
    /// Records a scenario, too, by its name or its alias: see [`scenario::SCENARIOS`].
    #[must_use]
    pub fn with_scenario(mut self, name: &str) -> Self {
        self.scenarios.push(name.to_owned());
        self
    }

    /// Records an event, too, by its name as `-e` takes it: `sched:sched_switch/prev_pid == 1/`, see [`Named`]. Outputs that hold raw
    /// events have those with their fields.
    #[must_use]
    pub fn with_event(mut self, name: &str) -> Self {
        self.events.push(name.to_owned());
        self
    }

    /// Of a process alone, with its threads and the children that it makes; several add up. Of the own process that is the thread
    /// that records, too: see [`super`].
    #[must_use]
    pub fn with_pid(mut self, pid: u32) -> Self {
        self.sampling.targets.pids.insert(pid);
        self
    }

    /// Of a folder of the cgroup v2 hierarchy alone, with all below it.
    #[must_use]
    pub fn with_cgroup(mut self, path: impl Into<PathBuf>) -> Self {
        self.sampling.targets.cgroup = Some(path.into());
        self
    }

    /// Of threads of this name alone, as the kernel keeps it: what is beyond 15 bytes does not count. An empty one is refused when the
    /// collection starts.
    #[must_use]
    pub fn with_comm(mut self, name: &str) -> Self {
        self.sampling.targets.comm = Some(name.to_owned());
        self
    }

    /// Samples of the clock in a second on each CPU.
    #[must_use]
    pub fn with_frequency(mut self, hz: u32) -> Self {
        self.sampling.frequency = hz;
        self
    }

    /// Bytes of each CPU's ring.
    #[must_use]
    pub fn with_ring_bytes(mut self, bytes: u32) -> Self {
        self.sampling.ring_bytes = Some(bytes);
        self
    }

    /// The most bytes of memory for samples, beyond which they go into a temporary file: see [`crate::spill`]. It is 256 MiB without.
    #[must_use]
    pub fn with_sample_bytes(mut self, bytes: u64) -> Self {
        self.sample_bytes = Some(bytes);
        self
    }

    /// What records.
    #[must_use]
    pub fn with_backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// How much is looked up for each frame: without it source lines and inlined functions, too, which takes a while for large programs.
    #[must_use]
    pub fn with_detail(mut self, detail: Detail) -> Self {
        self.naming.detail = detail;
        self
    }

    /// How names of functions read: without it in full. Where a format has a place for a function's name as its file has it, that is
    /// the same in both.
    #[must_use]
    pub fn with_name_form(mut self, form: NameForm) -> Self {
        self.naming.form = form;
        self
    }

    /// Writes a file, in the format that its ending says: see [`export::format::formats`]. A URL (`http://localhost:4318`, `grpc://…`)
    /// is a receiver of OTLP profiles, which has to listen when the collection starts; that takes the feature `otlp`, or `otlp-grpc`.
    /// How it is sent is said by variables of the environment: see `otlp::Settings`.
    #[must_use]
    pub fn with_output(mut self, path: impl Into<PathBuf>) -> Self {
        self.outputs.push(path.into());
        self
    }

    /// Writes a file for each name of processes instead of one for all: `work.folded` becomes `work.nginx.folded` and so on. Processes
    /// of one name are together in one file. There is one for whoever has samples, or raw events or spans where the format holds these, so
    /// that all of an output's files together have what one of all would. Receivers are sent the same, each process as a resource of its own.
    #[must_use]
    pub fn split_by_comm(mut self) -> Self {
        self.splits_by_comm = true;
        self
    }

    /// Whether all scenarios are known, and the name of threads is one.
    pub(super) fn check(&self) -> Result<(), ExportError> {
        if self.sampling.targets.comm.as_deref() == Some("") {
            return Err(ExportError::EmptyComm);
        }
        self.scenarios.iter().try_for_each(|name| scenario_of(name).map(drop))
    }

    /// The session that they ask for, with so many bytes of memory for raw events. Events are found, and probes made, as this is called.
    pub(super) fn session(&self, event_bytes: u64) -> Result<SessionSettings, ExportError> {
        let Named { hooks: events, clock } = Named::parse(&self.events, self.backend != Backend::Perf)?;
        let is_clock_alone = self.scenarios.is_empty() && self.events.is_empty();
        let mut settings = SessionSettings {
            sampling: Settings { clock: clock || is_clock_alone, ..self.sampling.clone() },
            events,
            event_bytes,
            backend: self.backend,
            sample_bytes: self.sample_bytes,
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
