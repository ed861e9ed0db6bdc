//! The folder that Windows writes a recording into, until it is read: made beside its outputs, and removed however the recording ends. What
//! a recording that was killed has left is known by its lock, which the system gives back, and goes when the next one is made there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{Builder, TempDir};

/// What such folders' names begin with.
const PREFIX: &str = ".collector-";
/// The file that is locked as long as the recording goes on.
const LOCK: &str = "recording.lock";
/// Folders are made, and locked by then.
const MADE_BY_THEN: Duration = Duration::from_mins(1);
/// How often one is made that somebody takes for one that was left.
const TRIES: u32 = 8;

/// A folder for a recording's files, which goes with them when it is dropped.
#[derive(Debug)]
pub struct TraceFolder {
    // Closed before its folder is removed.
    _lock: File,
    folder: TempDir,
}

impl TraceFolder {
    /// Makes one in a folder that is there.
    ///
    /// # Errors
    /// When nothing can be made or locked there.
    pub fn make_in(parent: &Path) -> io::Result<Self> {
        let mut taken = io::Error::other("folders are removed as they are made");
        for _ in 0..TRIES {
            let folder = Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            match lock(&folder.path().join(LOCK)) {
                Ok(lock) => return Ok(Self { _lock: lock, folder }),
                Err(error) => taken = error,
            }
        }
        Err(taken)
    }

    /// Where the first part is written to.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("trace.etl")
    }

    /// Removes what recordings that were killed have left beside this one. Out: the folders that are gone. One that Windows still writes
    /// into stays: whoever takes its session over is to do so first.
    pub fn remove_abandoned(&self) -> Vec<PathBuf> {
        let Some(entries) = self.folder.path().parent().and_then(|parent| fs::read_dir(parent).ok()) else {
            return Vec::new();
        };
        let folders = entries.filter_map(Result::ok).filter(|entry| {
            let is_named = entry.file_name().to_string_lossy().starts_with(PREFIX);
            is_named && entry.file_type().is_ok_and(|kind| kind.is_dir())
        });
        folders.map(|entry| entry.path()).filter(|folder| remove_if_abandoned(folder).is_ok()).collect()
    }
}

fn lock(path: &Path) -> io::Result<File> {
    let file = File::create_new(path)?;
    file.try_lock().map_err(io::Error::from)?;
    Ok(file)
}

/// An error where it is somebody's, or can't be removed.
fn remove_if_abandoned(folder: &Path) -> io::Result<()> {
    let lock = folder.join(LOCK);
    match File::open(&lock) {
        Ok(file) => file.try_lock().map_err(io::Error::from)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = fs::metadata(folder)?.modified()?.elapsed().unwrap_or_default();
            // Nothing is in it if it is ours.
            return if age > MADE_BY_THEN { fs::remove_dir(folder) } else { Err(error) };
        }
        Err(error) => return Err(error),
    }
    // The lock goes last: without it nobody would know the folder again, should a file stay.
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path != lock {
            fs::remove_file(path)?;
        }
    }
    fs::remove_file(lock)?;
    fs::remove_dir(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_its_files() {
        let parent = tempfile::tempdir().unwrap();
        let folder = TraceFolder::make_in(parent.path()).unwrap();
        assert_eq!(folder.path().parent().and_then(Path::parent), Some(parent.path()));
        fs::write(folder.path(), "events").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        assert!(TraceFolder::make_in(&parent.path().join("absent")).is_err());
    }

    #[test]
    fn what_a_killed_recording_has_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, files: &[&str]| {
            let folder = parent.path().join(name);
            fs::create_dir(&folder).unwrap();
            for file in files {
                fs::write(folder.join(file), "x").unwrap();
            }
            folder
        };
        let killed = make(".collector-killed", &["trace.etl", "trace.heap.etl", LOCK]);
        let of_others = make(".collector-by-hand", &["notes"]);
        // Its lock is about to be made.
        let new = make(".collector-new", &[]);
        make("collector", &[LOCK]);
        let [recording, other] = [(); 2].map(|()| TraceFolder::make_in(parent.path()).unwrap());
        fs::write(other.path(), "events").unwrap();
        assert_eq!(recording.remove_abandoned(), [killed]);
        assert!(other.path().exists() && of_others.join("notes").exists() && new.exists());
        assert!(parent.path().join("collector").join(LOCK).exists());
        let gone = other.path();
        drop(other);
        assert!(!gone.exists());
        assert!(recording.remove_abandoned().is_empty());
    }
}
