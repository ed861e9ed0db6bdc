//! What is recorded, of whom, and where it is written.

use std::collections::BTreeSet;
use std::path::PathBuf;

use export::symbolize::{Detail, NameForm, Naming};

#[cfg(target_os = "linux")]
use super::linux::Own;

/// Samples of the clock in a second on each CPU: a prime, so that nothing periodic hides between them.
const FREQUENCY: u32 = 997;

/// What to record, by the names of scenarios and events, and where it goes. Without any it is what runs on the CPUs.
#[derive(Clone, Debug)]
pub struct ExportSettings {
    pub(super) scenarios: Vec<String>,
    pub(super) events: Vec<String>,
    pub(super) pids: BTreeSet<u32>,
    pub(super) comm: Option<String>,
    pub(super) frequency: u32,
    /// What there is on Linux alone.
    #[cfg(target_os = "linux")]
    pub(super) own: Own,
    pub(super) naming: Naming,
    pub(super) outputs: Vec<PathBuf>,
    pub(super) splits_by_comm: bool,
}

impl Default for ExportSettings {
    fn default() -> Self {
        Self {
            scenarios: Vec::new(),
            events: Vec::new(),
            pids: BTreeSet::new(),
            comm: None,
            frequency: FREQUENCY,
            #[cfg(target_os = "linux")]
            own: Own::default(),
            naming: Naming::default(),
            outputs: Vec::new(),
            splits_by_comm: false,
        }
    }
}

impl ExportSettings {
    /// Records a scenario, too, by its name or its alias: on Linux see `scenario::SCENARIOS`, on Windows `windows_etw::plan::SCENARIOS`.
    #[must_use]
    pub fn with_scenario(mut self, name: &str) -> Self {
        self.scenarios.push(name.to_owned());
        self
    }

    /// Records an event, too, by its name as `-e` takes it: on Linux `sched:sched_switch/prev_pid == 1/`, see `source::Named`, on Windows
    /// `etw:Microsoft-Windows-Kernel-File:0x10`, see [`windows_etw::plan::EventSpec`]. Outputs that hold raw events have those with their fields.
    #[must_use]
    pub fn with_event(mut self, name: &str) -> Self {
        self.events.push(name.to_owned());
        self
    }

    /// Of a process alone, with its threads and the children that it makes; several add up. Of the own process that is the thread
    /// that records, too: see [`super`].
    #[must_use]
    pub fn with_pid(mut self, pid: u32) -> Self {
        self.pids.insert(pid);
        self
    }

    /// On Linux of threads of this name alone, as the kernel keeps it: what is beyond 15 bytes does not count. On Windows of processes whose image is
    /// called so alone, in upper or lower case, as `notepad.exe`. An empty one is refused when the collection starts.
    #[must_use]
    pub fn with_comm(mut self, name: &str) -> Self {
        self.comm = Some(name.to_owned());
        self
    }

    /// Samples of the clock in a second on each CPU.
    #[must_use]
    pub fn with_frequency(mut self, hz: u32) -> Self {
        self.frequency = hz;
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
}
