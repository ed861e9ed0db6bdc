//! What sessions of this machine wrote in, the parts of a recording out.

use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use collector_common::ids::Pid;
use thiserror::Error;
use windows_etw::etl::{EtlError, EtlFile};
use windows_etw::part::Part;
use windows_etw::plan::Family;
use windows_etw::session::{
    Losses, SessionError, Sessions, Stopped, alive, drives, kernel_logger_file, stop_kernel_logger,
};

use super::folder::is_of_abandoned;
use super::recording::{Lost, RecordedPart};

/// From 1601, when Windows' times begin, to 1970, in units of 100 ns.
const UNTIL_1970: u64 = 116_444_736_000_000_000;
/// By how much a process may seem to be older than it is: Windows' clock goes on by ticks.
const TICKS: Duration = Duration::from_secs(1);

/// What Windows was to write can't be read.
#[derive(Debug, Error)]
pub enum WrittenError {
    /// There is nothing.
    #[error(
        "Windows wrote no trace, though it said that it would: is the disk full, or was the session stopped by another program?"
    )]
    Absent,
    /// The file can't be opened.
    #[error("what Windows wrote, {}, can't be read: {source}", path.display())]
    Unopened {
        /// Its place.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no trace.
    #[error("what Windows wrote, {}, can't be read: {source}; {}", path.display(), source.remedy())]
    Unread {
        /// Its place.
        path: PathBuf,
        /// Why.
        source: EtlError,
    },
}

/// What sessions wrote.
#[derive(Debug)]
pub struct Written {
    /// That with the clock first.
    pub parts: Vec<RecordedPart<File>>,
    /// Which parts can't be read, and why: a line each, for people.
    pub unread: Vec<String>,
}

/// Opens the files of sessions that were stopped. `path` is that of [`Part::Main`]; `is_there` tells which of the places have a file of this recording.
///
/// # Errors
/// When that of [`Part::Main`] is not there, or is none that Windows writes: without others the recording is what it has.
pub fn open_written(
    stopped: &Stopped,
    path: &Path,
    is_there: impl Fn(&Path) -> bool,
) -> Result<Written, WrittenError> {
    let mut losses = stopped.losses.clone();
    losses.sort_by_key(|(part, _)| *part != Part::Main);
    let open = |part: Part, told: Losses| {
        let path = part.file(path);
        if !is_there(&path) {
            return Err(WrittenError::Absent);
        }
        let file =
            File::open(&path).map_err(|source| WrittenError::Unopened { path: path.clone(), source })?;
        let file = EtlFile::open(file).map_err(|source| WrittenError::Unread { path, source })?;
        Ok(RecordedPart { file, lost: Lost { events: told.events, buffers: told.file_buffers } })
    };
    let mut written = Written { parts: Vec::new(), unread: Vec::new() };
    for (part, told) in losses {
        match open(part, told) {
            Ok(opened) => written.parts.push(opened),
            Err(error) if part == Part::Main => return Err(error),
            Err(error) => {
                let what = match part {
                    Part::Heap => "blocks of heaps are",
                    Part::Main | Part::Kernel => "what the kernel tells is",
                };
                written.unread.push(format!("{what} missing: {error}"));
            }
        }
    }
    Ok(written)
}

/// What the kernel calls drives, and the folder of Windows, with what people call them: for [`Asking::volumes`].
///
/// [`Asking::volumes`]: super::Asking::volumes
pub fn volumes() -> Vec<(String, String)> {
    let windows = env::var("SystemRoot").ok();
    let windows =
        windows.map(|folder| (r"\SystemRoot\".to_owned(), format!(r"{}\", folder.trim_end_matches('\\'))));
    drives().into_iter().chain(windows).collect()
}

/// Stops the one session of the kernel's that all programs share, if a recording of ours that was killed has left it: it writes into that one's
/// folder. To be called before sessions are started, which may need it.
pub fn stop_abandoned_kernel_logger() {
    if kernel_logger_file().is_some_and(|file| is_of_abandoned(&file)) {
        // Where it goes on, that there is none is told to who needs it.
        let _: Result<(), SessionError> = stop_kernel_logger();
    }
}

/// Whose a recording of `roots` is that begins now: to be asked before sessions are started, for who has ended by then has left processes whose
/// they are nobody tells.
pub fn family(roots: &[Pid]) -> Family {
    let began = file_time(SystemTime::now() - TICKS);
    // Where nobody tells who is there, those count that are made from now on.
    Family::new(&alive().unwrap_or_default(), roots, began)
}

/// Has .NET be asked at the end of those processes only that may be of a recording: of all where that is of
/// all, or nobody tells which there are.
pub fn ask_at_end(sessions: &mut Sessions, family: &Family) {
    if family.is_of_all() {
        return;
    }
    if let Ok(processes) = alive() {
        sessions.ask_at_end(&family.of(&processes));
    }
}

/// As Windows has times, in units of 100 ns.
fn file_time(at: SystemTime) -> u64 {
    let since_1970 = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() / 100;
    UNTIL_1970.saturating_add(u64::try_from(since_1970).unwrap_or(u64::MAX))
}

/// What providers did not do, a line each: that nobody was asked at the end only where .NET was there, which tells its methods then.
pub fn unanswered(stopped: &Stopped, has_dotnet: bool) -> Vec<String> {
    let told = stopped.unanswered.iter().filter(|it| has_dotnet || !it.is_unasked());
    told.map(ToString::to_string).collect()
}

/// Whether somebody else has stopped a session.
///
/// # Errors
/// When Windows does not tell.
pub fn is_gone(sessions: &Sessions) -> Result<bool, SessionError> {
    match sessions.losses() {
        Err(error) if error.is_of_no_session() => Ok(true),
        asked => asked.map(|_| false),
    }
}

#[cfg(test)]
mod tests {
    use windows_etw::session::{Asked, Unanswered, Win32Error};

    use super::*;

    #[test]
    fn drives_and_windows_have_names_of_the_kernel() {
        let volumes = volumes();
        let (_, windows) = volumes.iter().find(|(nt, _)| nt == r"\SystemRoot\").unwrap();
        assert!(Path::new(windows).is_dir() && windows.ends_with('\\'), "{windows}");
        assert!(volumes.len() > 1);
    }

    /// Microsoft's page "Converting a `time_t` value to a `FILETIME`".
    #[test]
    fn times_are_those_of_windows() {
        assert_eq!(file_time(UNIX_EPOCH), 116_444_736_000_000_000);
        assert_eq!(file_time(UNIX_EPOCH + Duration::from_micros(1)), 116_444_736_000_000_010);
        let processes = alive().unwrap();
        let own = processes.iter().find(|it| it.pid.0 == std::process::id()).unwrap();
        assert!(
            own.made <= file_time(SystemTime::now() + TICKS)
                && own.made > file_time(SystemTime::now() - TICKS * 86_400)
        );
    }

    #[test]
    fn that_nobody_was_asked_is_told_where_there_was_somebody() {
        let of = |cause| Unanswered {
            provider: "Rundown".to_owned(),
            asked: Asked::End,
            cause: Win32Error(cause),
        };
        // ERROR_WMI_INSTANCE_NOT_FOUND and ERROR_TIMEOUT.
        let stopped = Stopped { unanswered: vec![of(4201), of(1460)], ..Stopped::default() };
        let [with, without] = [true, false].map(|has_dotnet| unanswered(&stopped, has_dotnet));
        assert!(with.len() == 2 && with[0].contains("was not asked"), "{with:?}");
        assert!(without.len() == 1 && without[0].contains("was not done in 10 s"), "{without:?}");
    }

    #[test]
    fn what_is_not_there_and_what_is_no_trace_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.etl");
        let stopped = Stopped { losses: vec![(Part::Main, Losses::default())], ..Stopped::default() };
        assert!(matches!(open_written(&stopped, &path, Path::exists), Err(WrittenError::Absent)));
        std::fs::write(&path, "no trace").unwrap();
        let told = open_written(&stopped, &path, Path::exists).unwrap_err();
        assert!(matches!(told, WrittenError::Unread { .. }) && told.to_string().contains("x.etl"), "{told}");
    }
}
