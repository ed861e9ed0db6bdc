//! A file that is made whole before it appears: a hidden name in its folder until then. What is killed leaves it behind.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// A file that is not there yet.
pub(super) struct Temporary(NamedTempFile);

impl Temporary {
    /// An empty file in `folder`.
    pub(super) fn new_in(folder: &Path) -> io::Result<Self> {
        Builder::new().prefix(".collector-").tempfile_in(folder).map(Self)
    }

    /// To write to.
    pub(super) fn file(&mut self) -> &mut File {
        self.0.as_file_mut()
    }

    /// Puts it into place, in the folder that it was made for. What is there is replaced at once.
    pub(super) fn persist(self, path: &Path) -> io::Result<()> {
        self.0.persist(path)?;
        Ok(())
    }

    /// Puts it at the first of two places where nothing is, and gives that.
    pub(super) fn persist_at_first_free(self, [first, second]: [&Path; 2]) -> io::Result<PathBuf> {
        let place = match self.0.persist_noclobber(first) {
            Err(taken) if taken.error.kind() == io::ErrorKind::AlreadyExists => {
                taken.file.persist_noclobber(second)?;
                second
            }
            persisted => {
                persisted?;
                first
            }
        };
        Ok(place.to_path_buf())
    }
}
