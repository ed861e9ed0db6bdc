//! Elsewhere than on Linux no process of a recording has written anything.

use std::fs::File;
use std::time::SystemTime;

use collector_common::ids::Pid;

/// What a file must be like to be believed: none is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Believed {
    /// Users one of whom owns it.
    pub(crate) users: Vec<u32>,
    /// When the process was started, where that is known.
    pub(crate) started: Option<SystemTime>,
}

impl Believed {
    /// Whether a file is believed.
    #[expect(clippy::unused_self, reason = "on Linux it depends")]
    pub(in crate::modules::jit) fn has(&self, _file: &File) -> bool {
        false
    }
}

/// Where paths begin.
pub(in crate::modules::jit) const HERE: () = ();

/// A folder as a place to open files in.
pub(in crate::modules::jit) fn open_folder<A>(_at: A, _name: &str, _follow: bool) -> Option<File> {
    None
}

/// Opens a regular file in a folder.
pub(in crate::modules::jit) fn open_plain<A>(_folder: A, _name: &str) -> Option<File> {
    None
}

/// What tells a file or a folder from others.
pub(in crate::modules::jit) fn identity(_file: &File) -> Option<(u64, u64)> {
    None
}

/// When a process was started.
pub(in crate::modules::jit) fn started(_pid: Pid) -> Option<SystemTime> {
    None
}
