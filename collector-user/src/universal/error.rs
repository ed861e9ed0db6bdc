//! Why a recording could not be made or written.

use std::io;
use std::path::PathBuf;

use crate::session::SessionError;

/// Why a recording could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// No scenario has the name.
    #[error("no scenario is called `{0}`: `scenario::SCENARIOS` lists them")]
    Scenario(String),
    /// No format has the file's ending.
    #[error("the ending of {} is no format: `format::formats()` lists them, and `with_format` adds others", .0.display())]
    Format(PathBuf),
    /// The collection can't be started, or its end can't be recorded.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The thread that records can't be made, or be told to stop.
    #[error("the recording's thread: {0}")]
    Thread(io::Error),
    /// It was started before, and not stopped.
    #[error("the collection has been started already")]
    Started,
    /// It was not started.
    #[error("there is no collection to stop: it was not started")]
    NotStarted,
    /// An output can't be written. The others that come after it were not, either.
    #[error("{} can't be written: {source}", path.display())]
    Output {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A hook on the profile failed.
    #[error("an export hook failed: {0:#}")]
    Hook(anyhow::Error),
}
