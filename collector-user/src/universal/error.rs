//! Why a recording could not be made or written.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::Exported;
use super::system::{EventError, SessionError};

/// Why a recording could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// No scenario has the name.
    #[error("no scenario is called `{0}`: `collector list scenarios` lists them")]
    Scenario(String),
    /// The name of threads or processes is empty.
    #[error(
        "the name given to `with_comm` is empty: name threads as `ps -o comm` does, on Windows processes as `tasklist` does"
    )]
    EmptyComm,
    /// An event is not there, or can't be recorded.
    #[error(transparent)]
    Event(#[from] EventError),
    /// No format has the file's ending.
    #[error("the ending of {} is no format: `format::formats()` lists them, and `with_format` adds others", .0.display())]
    Format(PathBuf),
    /// Two outputs lead to the same file, or receiver.
    #[error("{} is named twice as an output", .0.display())]
    Twice(PathBuf),
    /// The collection can't be started, or its end can't be recorded.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The thread that records can't be made, or be told to stop.
    #[error("the recording's thread: {0}")]
    Thread(io::Error),
    /// Something on the thread that records panicked, as a hook on samples may: what was recorded is lost.
    #[error("the recording's thread panicked: {0}")]
    Panicked(String),
    /// It was started before, and not stopped.
    #[error("the collection has been started already")]
    Started,
    /// It was not started.
    #[error("there is no collection to stop: it was not started")]
    NotStarted,
    /// An output can't be written.
    #[error("{} can't be written: {source}", path.display())]
    Output {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An output's receiver can't be reached, or did not take all.
    #[error("{url} can't be sent to: {source}")]
    Receiver {
        /// Its URL, as the settings have it.
        url: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A hook on the profile failed.
    #[error("an export hook failed: {0:#}")]
    Hook(anyhow::Error),
    /// It was recorded, and not all was done with it that was to be.
    #[error(transparent)]
    Incomplete(Box<Incomplete>),
}

/// A collection of which some outputs could not be written, or some export hooks failed. All others were written and called.
#[derive(Debug, thiserror::Error)]
pub struct Incomplete {
    /// What failed, in the order in which it was tried: one at least.
    pub failures: Vec<ExportError>,
    /// An error can be shared between threads; a recording can only be handed on.
    exported: Mutex<Exported>,
}

impl Incomplete {
    pub(super) fn new(failures: Vec<ExportError>, exported: Exported) -> Self {
        Self { failures, exported: Mutex::new(exported) }
    }

    /// What was recorded, with the files that were written.
    pub fn into_exported(self) -> Exported {
        self.exported.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, failure) in self.failures.iter().enumerate() {
            write!(f, "{}{failure}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}
