//! Opens the file behind a mapping of another process.
//!
//! `/proc/PID/map_files/START-END` is the mapped file itself, deleted or not, whatever the process's root is. It
//! is gone with the process, so a path is tried next, below the process's root and then as it is, and is taken
//! only when what it leads to is the file that was mapped.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use collector_common::ids::Pid;
use collector_common::perf::Identity;

use super::store::MappedFile;

/// The file, if it can still be had.
pub(super) fn open(pid: Pid, mapped: &MappedFile<'_>) -> Option<File> {
    let by_range = format!("/proc/{pid}/map_files/{:x}-{:x}", mapped.start.0, mapped.end.0);
    if let Some(file) = open_regular(Path::new(&by_range)) {
        return Some(file);
    }
    let path = Path::new(OsStr::from_bytes(mapped.path));
    if !path.is_absolute() {
        return None;
    }
    let mut below_root = PathBuf::from(format!("/proc/{pid}/root"));
    below_root.extend(path.components().skip(1));
    [below_root.as_path(), path]
        .into_iter()
        .find_map(|path| open_regular(path).filter(|file| is_same(file, &mapped.identity)))
}

/// Opens without blocking on a pipe and without following what is no regular file.
fn open_regular(path: &Path) -> Option<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(file)
}

/// Whether an opened file is the one that was mapped. Device numbers are not compared: overlay file systems
/// show another one in mappings than in `stat`.
fn is_same(file: &File, identity: &Identity) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.ino() == identity.inode)
}
