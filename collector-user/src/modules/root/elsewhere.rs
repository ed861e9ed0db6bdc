//! Elsewhere than on Linux there is one root.

use std::fs::File;
use std::path::Path;

use collector_common::ids::{Pid, Tid};

use crate::modules::open::{open_chosen, open_regular};

/// Ours.
#[derive(Clone, Debug, Default)]
pub(in crate::modules) struct Root(());

impl Root {
    /// Opens a regular file that has bytes.
    #[expect(clippy::unused_self, reason = "there are several on Linux")]
    pub(in crate::modules) fn open(&self, path: &Path) -> Option<File> {
        open_regular(path)
    }

    /// The same by a path that the user has chosen.
    #[expect(clippy::unused_self, reason = "there are several on Linux")]
    pub(in crate::modules) fn open_chosen(&self, path: &Path) -> Option<File> {
        open_chosen(path)
    }

    /// Whether who writes there may be somebody who has no say elsewhere.
    #[expect(clippy::unused_self, reason = "there are several on Linux")]
    pub(in crate::modules) fn is_other(&self) -> bool {
        false
    }

    /// This one.
    pub(in crate::modules) fn and_ours(&self) -> impl Iterator<Item = Self> {
        std::iter::once(self.clone())
    }
}

/// Roots of processes.
#[derive(Debug, Default)]
pub(in crate::modules) struct Roots(());

impl Roots {
    /// The root of a process.
    #[expect(clippy::unused_self, reason = "they are held on Linux")]
    pub(in crate::modules) fn of(&mut self, _pid: Pid, _thread: Tid) -> Root {
        Root::default()
    }
}
