//! The folder that Windows writes a recording into, until it is read: made beside its outputs, and removed however the recording ends. What
//! a recording that was killed has left is known by its lock, which the system gives back, and goes when the next one is made there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{Builder, TempDir};
use thiserror::Error;
use windows_etw::part::Part;

use crate::output::OutputFile;

/// What such folders' names begin with.
const PREFIX: &str = ".collector-";
/// The file that is locked as long as the recording goes on.
const LOCK: &str = "recording.lock";
/// Folders are made, and locked by then.
const MADE_BY_THEN: Duration = Duration::from_mins(1);
/// How often one is made that somebody takes for one that was left.
const TRIES: u32 = 8;

/// A recording that is there, and not where it was to be.
#[derive(Debug, Error)]
#[error("{} can't be written: {source}; what was recorded is kept as {}, which `collector convert` reads", place.display(), kept.display())]
pub struct UnplacedError {
    /// Where the file was to be.
    pub place: PathBuf,
    /// Where it is.
    pub kept: PathBuf,
    /// Why.
    pub source: io::Error,
}

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

    /// Puts the files of these parts where they are to be: that of [`Part::Main`] at `into`, in place of what is there, and those of others beside it,
    /// where nothing may be. Those that are not there are left out, and of those that Windows writes on (`goes_on`) there is a copy of what is in them. Out:
    /// their places.
    ///
    /// # Errors
    /// When one can't be moved or copied: it stays, and what else is in the folder, which goes with nobody then.
    pub fn put(
        &mut self,
        parts: impl IntoIterator<Item = Part>,
        goes_on: impl Fn(Part) -> bool,
        into: &Path,
    ) -> Result<Vec<PathBuf>, UnplacedError> {
        let mut places = Vec::new();
        for part in parts {
            let (written, place) = (part.file(&self.path()), part.file(into));
            if !written.exists() {
                continue;
            }
            let is_taken = part != Part::Main && place.symlink_metadata().is_ok();
            let put = if is_taken {
                Err(io::ErrorKind::AlreadyExists.into())
            } else if goes_on(part) {
                copied(&written, &place)
            } else {
                moved(&written, &place, rename)
            };
            if let Err(source) = put {
                self.keep();
                return Err(UnplacedError { place, kept: written, source });
            }
            places.push(place);
        }
        Ok(places)
    }

    /// Has the folder stay, as that of a recording that was killed: Windows writes on there, until the next one takes its session over. Out: a
    /// line for people that names it, for it grows.
    #[must_use]
    pub fn leave(&mut self) -> String {
        self.folder.disable_cleanup(true);
        let folder = self.folder.path().display();
        format!(
            "Windows goes on writing into {folder}: it grows until its session is stopped, and goes with the next recording in its place"
        )
    }

    /// Has the folder stay if anything was written, for what was recorded did not become what it was to be. Out: the file of the first part, in it.
    pub fn keep_written(&mut self) -> Option<PathBuf> {
        let written = Some(self.path()).filter(|written| written.exists());
        if written.is_some() {
            self.keep();
        }
        written
    }

    /// Has the folder stay, without the lock by which it would be known as one that was left.
    fn keep(&mut self) {
        self.folder.disable_cleanup(true);
        // Where the lock stays, the next recording here takes the folder for one that was left; it can't be helped.
        let _ = fs::remove_file(self.folder.path().join(LOCK));
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

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Renames a file, or copies it where the other place is on another drive.
fn moved(from: &Path, to: &Path, rename: impl Fn(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
    match rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copied(from, to)?;
            // It goes with its folder, if not now.
            let _ = fs::remove_file(from);
            Ok(())
        }
        renamed => renamed,
    }
}

fn copied(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = File::open(from)?;
    OutputFile::open(to)?.fill(|out| io::copy(&mut file, out).map(drop)).map(drop)
}

fn lock(path: &Path) -> io::Result<File> {
    let file = File::create_new(path)?;
    file.try_lock().map_err(io::Error::from)?;
    Ok(file)
}

/// Whether a file lies in the folder of a recording that was killed.
#[cfg_attr(not(any(windows, test)), expect(dead_code, reason = "Windows alone has sessions that write one"))]
pub(super) fn is_of_abandoned(file: &Path) -> bool {
    let Some(folder) = file.parent() else { return false };
    let is_named = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    is_named && File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
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
        let is_left = |folder: &Path| is_of_abandoned(&folder.join("trace.kernel.etl"));
        assert!(is_left(&killed) && is_left(&killed), "to look at it changes nothing");
        assert!(!is_left(&of_others) && !is_left(&new) && !is_left(&parent.path().join("collector")));
        assert!(!is_of_abandoned(&recording.path()) && !is_of_abandoned(Path::new("x.etl")));
        fs::write(other.path(), "events").unwrap();
        assert_eq!(recording.remove_abandoned(), [killed]);
        assert!(other.path().exists() && of_others.join("notes").exists() && new.exists());
        assert!(parent.path().join("collector").join(LOCK).exists());
        let gone = other.path();
        drop(other);
        assert!(!gone.exists());
        assert!(recording.remove_abandoned().is_empty());
    }

    #[test]
    fn files_are_put_into_place_under_the_names_of_their_parts() {
        let parent = tempfile::tempdir().unwrap();
        let mut folder = TraceFolder::make_in(parent.path()).unwrap();
        let into = parent.path().join("x.etl");
        fs::write(&into, "old").unwrap();
        for part in [Part::Main, Part::Heap] {
            fs::write(part.file(&folder.path()), part.suffix()).unwrap();
        }
        let places = folder.put([Part::Main, Part::Kernel, Part::Heap], |_| false, &into).unwrap();
        assert_eq!(places, ["x.etl", "x.heap.etl"].map(|name| parent.path().join(name)));
        drop(folder);
        let read = |path: &PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(places.iter().map(read).collect::<Vec<_>>(), ["", "heap"]);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_windows_writes_on_is_copied_and_goes_with_the_next_recording() {
        let parent = tempfile::tempdir().unwrap();
        let mut folder = TraceFolder::make_in(parent.path()).unwrap();
        let (written, into) = (folder.path(), parent.path().join("x.etl"));
        for part in [Part::Main, Part::Heap] {
            fs::write(part.file(&written), part.suffix()).unwrap();
        }
        let told = folder.leave();
        assert!(told.contains(&*written.parent().unwrap().to_string_lossy()), "{told}");
        folder.put([Part::Main, Part::Heap], |part| part == Part::Heap, &into).unwrap();
        drop(folder);
        let heap = Part::Heap.file(&written);
        assert!(!written.exists() && fs::read_to_string(&heap).unwrap() == "heap");
        assert_eq!(fs::read_to_string(Part::Heap.file(&into)).unwrap(), "heap");
        assert!(is_of_abandoned(&heap));
        let gone = TraceFolder::make_in(parent.path()).unwrap().remove_abandoned();
        assert_eq!(gone, [written.parent().unwrap()]);
        assert!(into.exists());
    }

    #[test]
    fn what_cant_be_put_into_place_is_kept() {
        let parent = tempfile::tempdir().unwrap();
        let (place, heap) = (parent.path().join("x.etl"), parent.path().join("x.heap.etl"));
        // A folder with something in it is at the place, or a part's place is taken.
        for taken in [place.join("in it"), heap] {
            fs::create_dir_all(taken.parent().unwrap()).unwrap();
            fs::write(&taken, "of others").unwrap();
            let mut folder = TraceFolder::make_in(parent.path()).unwrap();
            fs::write(folder.path(), "events").unwrap();
            fs::write(Part::Heap.file(&folder.path()), "blocks").unwrap();
            let error = folder.put([Part::Main, Part::Heap], |_| false, &place).unwrap_err();
            drop(folder);
            assert!(matches!(fs::read_to_string(&error.kept).unwrap().as_str(), "events" | "blocks"));
            assert!(error.to_string().contains(&*error.kept.to_string_lossy()), "{error}");
            assert_eq!(fs::read_to_string(&taken).unwrap(), "of others");
            // The next recording there leaves it alone.
            assert!(TraceFolder::make_in(parent.path()).unwrap().remove_abandoned().is_empty());
            assert!(error.kept.exists());
            let _ = fs::remove_dir_all(&place);
        }
    }

    #[test]
    fn what_did_not_become_its_outputs_is_kept_if_there_is_anything() {
        let parent = tempfile::tempdir().unwrap();
        let mut empty = TraceFolder::make_in(parent.path()).unwrap();
        assert_eq!(empty.keep_written(), None);
        drop(empty);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        let mut folder = TraceFolder::make_in(parent.path()).unwrap();
        fs::write(folder.path(), "events").unwrap();
        let kept = folder.keep_written().unwrap();
        drop(folder);
        assert_eq!(fs::read_to_string(&kept).unwrap(), "events");
        // The next recording there leaves it alone.
        assert!(TraceFolder::make_in(parent.path()).unwrap().remove_abandoned().is_empty());
        assert!(kept.exists());
    }

    #[test]
    fn onto_another_drive_a_file_is_copied() {
        let parent = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| parent.path().join(name));
        fs::write(&from, "events").unwrap();
        fs::write(&to, "old").unwrap();
        let refused = |kind: io::ErrorKind| move |_: &Path, _: &Path| Err(kind.into());
        assert!(moved(&from, &to, refused(io::ErrorKind::PermissionDenied)).is_err());
        assert_eq!(fs::read_to_string(&to).unwrap(), "old");
        moved(&from, &to, refused(io::ErrorKind::CrossesDevices)).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "events");
        assert!(!from.exists());
    }
}
