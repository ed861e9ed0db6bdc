//! Why a recording could not be made.

use std::ffi::OsString;
use std::io;

use thiserror::Error;

#[cfg(feature = "ebpf")]
use crate::source::ebpf::LoadError;

/// Why a recording could not be made.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The eBPF programs do not run here.
    #[cfg(feature = "ebpf")]
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The build has no source of samples.
    #[error(
        "this build was made without the feature `ebpf`, which is what records: build with default features"
    )]
    NoSource,
    /// A process to record is not there.
    #[error("process {0} does not exist: `ps -e` lists those that do")]
    NoProcess(u32),
    /// The kernel does not give the sideband.
    #[error("the kernel refuses to tell about processes and mappings: {source}{hint}")]
    Sideband {
        /// The system's reason.
        source: io::Error,
        /// What to do about it.
        hint: &'static str,
    },
    /// The command to record cannot be executed.
    #[error("{}: {source}", program.to_string_lossy())]
    Command {
        /// The program.
        program: OsString,
        /// The system's reason.
        source: io::Error,
    },
    /// A step that works on any healthy system failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl SessionError {
    /// For `map_err`: a step that failed.
    pub(super) fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    /// The sideband's failure, with what helps against it.
    pub(super) fn sideband(source: io::Error) -> Self {
        let hint = match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => "; run it with sudo",
            Some(libc::EMFILE) => "; raise the limit of open files (`ulimit -n`)",
            _ => "",
        };
        Self::Sideband { source, hint }
    }
}
