//! What is Windows' own of it: settings in, sessions of ETW that write a file, and what is read of that out.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use collector_common::ids::Pid;
use collector_common::loss::Ledger;
use collector_common::record::{ExportMachine, FrameId};
use export::import::ImportError;
use export::symbolize::{Detail, Name, Naming, Symbols};
use windows_etw::plan::{Plan, SampleInterval};
use windows_etw::session::{
    self, OwnUsage, Sessions, Settings, Stopped, Target, own_usage, providers, stop_abandoned,
};

use super::{ExportError, ExportSettings};
use crate::etw::{
    Asked, Asking, Patience, Recorded, Request, RequestError, Shortest, TraceFolder, Written, WrittenError,
    ask_at_end, family, is_gone, name_from_images, open_written, stop_abandoned_kernel_logger, unanswered,
    volumes,
};
use crate::hooks::{SampleHook, show_samples};
use crate::output::is_url;
use crate::stats::{Stats, Usage};

pub use crate::etw::RequestError as EventError;

/// How often Windows is asked whether the sessions are still there.
const ASK: Duration = Duration::from_secs(1);
/// Collections of programs of one name at a time: Windows has eight sessions for the kernel's events at most, for all programs.
const MOST_AT_ONCE: u32 = 8;
/// Characters of a program's name that are in that of its sessions.
const LONGEST_NAME: usize = 100;

/// Ends a recording when it is dropped.
pub(super) type Stop = mpsc::Sender<()>;
/// Tells the recording's thread that it is to end.
pub(super) type StopTold = mpsc::Receiver<()>;

/// Both ends.
#[expect(clippy::unnecessary_wraps, reason = "it may fail on other systems")]
pub(super) fn stop() -> io::Result<(Stop, StopTold)> {
    Ok(mpsc::channel())
}

/// A collection can't be started, or what it wrote can't be read.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Windows does not record. [`session::SessionError::NotAdministrator`] is that the process may not.
    #[error(transparent)]
    Session(#[from] session::SessionError),
    /// There is no place for what Windows writes.
    #[error("no folder for what Windows records can be made in {}: {source}", folder.display())]
    Folder {
        /// Where it was to be.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What Windows wrote can't be opened.
    #[error(transparent)]
    Written(#[from] WrittenError),
    /// What Windows wrote can't be read.
    #[error("what Windows wrote can't be read: {0}")]
    Unread(#[from] ImportError),
}

/// A finished recording.
#[derive(Debug)]
pub struct Recording {
    /// The records.
    pub machine: ExportMachine,
    /// Delivered and lost samples.
    pub ledger: Ledger,
    /// The figures for `--stats`.
    pub stats: Stats,
    /// Things a user should know, a line each.
    pub warnings: Vec<String>,
    /// Names of code that was made at run time.
    made: Symbols,
}

impl Recording {
    /// The figures with what the process has used up to now.
    pub fn stats_now(&self) -> Stats {
        let OwnUsage { user, system, peak_rss } = own_usage();
        Stats { usage: Usage { user, system, peak_rss }, ..self.stats.clone() }
    }

    /// Names all frames, with source lines and inlined functions: by the images, which are where they were when they were recorded, and by
    /// PDBs beside them and in the folders of `_NT_SYMBOL_PATH`.
    pub fn symbolize(&self) -> Symbols {
        self.symbolize_to(Detail::Lines)
    }

    /// Names all frames, with as much as is wanted, and in the form that is.
    pub fn symbolize_to(&self, naming: impl Into<Naming>) -> Symbols {
        let naming = naming.into();
        // Hooks may have added frames since.
        let mut symbols = Symbols::unresolved(&self.machine);
        for frame in (0..self.machine.frames().len() as u32).map(FrameId) {
            if self.made.is_resolved(frame) {
                let Name { function, linkage } = self.made.name(frame);
                symbols.set(frame, function, linkage);
            }
        }
        match naming.detail {
            Detail::Addresses => symbols,
            _ => name_from_images(&self.machine, symbols, naming),
        }
    }
}

impl ExportSettings {
    /// Whether all scenarios are known.
    pub(super) fn check(&self) -> Result<(), ExportError> {
        self.plan().map(drop)
    }

    /// What Windows is asked for.
    fn plan(&self) -> Result<Plan, ExportError> {
        let pids: Vec<Pid> = self.pids.iter().copied().map(Pid).collect();
        let request = Request {
            scenarios: &self.scenarios,
            events: &self.events,
            frequency_hz: self.frequency,
            pids: &pids,
            has_command: false,
        };
        request.plan(|| providers().unwrap_or_default()).map_err(|error| match error {
            RequestError::Scenario { name, .. } => ExportError::Scenario(name),
            error => ExportError::Event(error),
        })
    }

    /// Beside which of the outputs the trace is written; without a file among them, where temporary files are.
    fn folder(&self) -> PathBuf {
        let file = self.outputs.iter().find(|path| !is_url(path));
        match file.and_then(|path| path.parent()) {
            None => env::temp_dir(),
            Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
            Some(folder) => folder.to_owned(),
        }
    }
}

/// Records until the other end of `stopped` is dropped; `ready` is told when all is being recorded. Samples are shown to `hook` when it is
/// over.
pub(super) fn record(
    settings: &ExportSettings,
    event_bytes: u64,
    mut hook: SampleHook,
    stopped: &StopTold,
    ready: mpsc::Sender<()>,
) -> Result<Recording, ExportError> {
    let plan = settings.plan()?;
    let parent = settings.folder();
    let mut folder = TraceFolder::make_in(&parent)
        .map_err(|source| SessionError::Folder { folder: parent.clone(), source })?;
    let roots: Vec<Pid> = settings.pids.iter().copied().map(Pid).collect();
    let family = family(&roots);
    let mut sessions = start(&plan, &folder.path()).map_err(SessionError::from)?;
    let restored = sessions.restored();
    folder.remove_abandoned();
    // Nobody listens where the exporter is dropped meanwhile.
    let _ = ready.send(());
    drop(ready);
    let ended = wait(&sessions, stopped);
    let interval = sessions.interval();
    ask_at_end(&mut sessions, &family);
    let stopped = sessions.stop();
    let goes_on = stopped.losses.iter().any(|(part, _)| stopped.goes_on(*part));
    let left = goes_on.then(|| folder.leave());
    let asking = Asking {
        scenarios: plan.names.clone(),
        shortest: Shortest::default(),
        whose: roots.into_iter().map(Asked::Running).collect(),
        comm: settings.comm.clone(),
        there: family.there().to_vec(),
        volumes: volumes(),
        event_bytes,
        interval_100ns: interval.map(SampleInterval::units),
        frequency_hz: settings.frequency,
        tells_lives: plan.names.iter().any(|name| name == "processes"),
        began_after_ns: 0,
    };
    let mut recording = read(&stopped, &folder.path(), &asking)?;
    recording.warnings.splice(0..0, plan.notes.iter().map(windows_etw::plan::Note::text));
    recording.warnings.extend(restored.map(|restored| restored.to_string()));
    recording.warnings.extend(left);
    recording.warnings.extend(ended);
    show_samples(&mut recording.machine, &mut hook);
    Ok(recording)
}

/// Starts sessions that are called after this program, when all that it has left behind when it was killed are stopped.
fn start(plan: &Plan, path: &Path) -> Result<Sessions, session::SessionError> {
    let program = env::current_exe().ok();
    let names = names(program.as_deref().and_then(Path::file_stem).unwrap_or_default());
    for name in &names {
        stop_abandoned(name);
    }
    stop_abandoned_kernel_logger();
    let mut names = names.into_iter();
    let mut name = names.next().unwrap_or_default();
    loop {
        let settings = Settings { name, target: Target::File(path.to_owned()) };
        match (Sessions::start(plan, &settings, |_| Box::new(|| Box::new(|_| {}))), names.next()) {
            (Err(session::SessionError::Busy { .. }), Some(next)) => name = next,
            (started, _) => return started,
        }
    }
}

/// What sessions of a program are called that collect at once.
fn names(program: &OsStr) -> Vec<String> {
    let program: String = program.to_string_lossy().chars().take(LONGEST_NAME).collect();
    let name = |number| match number {
        1 => format!("Collector.{program}"),
        number => format!("Collector.{program}.{number}"),
    };
    (1..=MOST_AT_ONCE).map(name).collect()
}

/// Waits for the end. Out: why it may have come before it was asked for, if anything.
fn wait(sessions: &Sessions, stopped: &StopTold) -> Option<String> {
    let mut patience = Patience::default();
    while stopped.recv_timeout(ASK) == Err(RecvTimeoutError::Timeout) {
        let told = match patience.with(is_gone(sessions), false) {
            Ok(false) => continue,
            Ok(true) => {
                "the recording was ended by Ctrl-C or another program, which stopped its session".to_owned()
            }
            Err(error) => format!("whether all was recorded to the end is not known: {error}"),
        };
        // It is told when somebody asks for what was recorded.
        let _ = stopped.recv();
        return Some(told);
    }
    None
}

fn read(stopped: &Stopped, path: &Path, asking: &Asking) -> Result<Recording, SessionError> {
    let Written { parts, unread } = open_written(stopped, path, Path::exists)?;
    let Recorded { machine, symbols, stats, mut warnings, has_dotnet } = Recorded::read(parts, asking)?;
    warnings.extend(unread);
    warnings.extend(unanswered(stopped, has_dotnet));
    warnings.extend(stopped.failed.iter().map(|(_, error)| error.to_string()));
    Ok(Recording { machine, ledger: stats.ledger, stats, warnings, made: symbols })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_called_after_the_program() {
        let names = names(OsStr::new("own_work"));
        assert_eq!(names[..3], ["Collector.own_work", "Collector.own_work.2", "Collector.own_work.3"]);
        assert_eq!(names.len(), 8);
    }
}
