//! Opens the file behind a mapping of another process.
//!
//! `/proc/ID/map_files/START-END`, with the id of the thread that mapped it or else of the process, is the mapped file
//! itself, deleted or not, whatever the process's root is, unless another was mapped there since: it must be of the same
//! inode, or of the same name where a file system shows other inodes in mappings than in `stat`. It is gone with the process,
//! so a path is tried next, below the process's root and then as it is, and is taken only when what it leads to is the file
//! that was mapped, and not a newer one that got its inode.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use collector_common::ids::Pid;

use crate::modules::store::MappedFile;
use crate::{clock, procfs};

/// The file, if it can still be had.
pub(in crate::modules) fn open(pid: Pid, mapped: &MappedFile<'_>) -> Option<File> {
    find(pid, mapped, open_regular)
}

/// As [`open`], of a file that the process writes and may not have written anything to yet.
pub(in crate::modules) fn open_growing(pid: Pid, mapped: &MappedFile<'_>) -> Option<File> {
    find(pid, mapped, |path| open_regular_of(path, 0))
}

fn find(pid: Pid, mapped: &MappedFile<'_>, open: fn(&Path) -> Option<File>) -> Option<File> {
    let path = Path::new(OsStr::from_bytes(mapped.path));
    let folders = || procfs::folders(pid, mapped.thread);
    let by_range = folders().find_map(|folder| {
        let link = format!("{folder}/map_files/{:x}-{:x}", mapped.start.0, mapped.end.0);
        let same_name = || std::fs::read_link(&link).is_ok_and(|name| name == path);
        open(Path::new(&link)).filter(|file| is_same(file, mapped) || same_name())
    });
    if by_range.is_some() || !path.is_absolute() {
        return by_range;
    }
    let below_roots = folders().map(|folder| {
        let mut below_root = PathBuf::from(folder + "/root");
        below_root.extend(path.components().skip(1));
        below_root
    });
    below_roots.chain([path.to_owned()]).find_map(|path| open(&path).filter(|file| is_same(file, mapped)))
}

/// Opens a regular file that has bytes. Nothing else is opened even for a moment, since paths may be chosen by the profiled
/// program: to open a device may be all that it waits for (`/dev/watchdog`), and files that the kernel makes up as they are read
/// claim to be empty (`O_PATH` in open(2)).
pub(crate) fn open_regular(path: &Path) -> Option<File> {
    open_regular_of(path, 1)
}

/// The same at a path that the user has chosen.
pub(crate) fn open_chosen(path: &Path) -> Option<File> {
    open_regular(path)
}

fn open_regular_of(path: &Path, least: u64) -> Option<File> {
    open_place(&OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).ok()?, least)
}

/// Opens for reading what was opened as a place alone, if it is a regular file with so many bytes.
pub(in crate::modules) fn open_place(place: &File, least: u64) -> Option<File> {
    place.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() >= least)?;
    let place = format!("/proc/self/fd/{}", place.as_raw_fd());
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(place).ok()
}

/// Whether an opened file is the one that was mapped. Device numbers are not compared: overlay file systems
/// show another one in mappings than in `stat`. Not every file system tells when a file was made.
fn is_same(file: &File, mapped: &MappedFile<'_>) -> bool {
    let mapped_at = clock::anchor().unix_at(mapped.since).try_into().unwrap_or(0);
    let mapped_at = UNIX_EPOCH + Duration::from_nanos(mapped_at);
    let is_newer = |made| mapped.since.0 > 0 && made > mapped_at;
    file.metadata().is_ok_and(|metadata| {
        mapped.identity.is_some_and(|identity| identity.inode == metadata.ino())
            && !metadata.created().is_ok_and(is_newer)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use collector_common::ids::{Avma, FileOffset, Nanos, Tid};

    use super::*;
    use crate::procfs::Identity;

    #[test]
    fn only_regular_files_with_bytes_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [whole, link, empty, pipe] =
            ["whole", "link", "empty", "pipe"].map(|name| folder.path().join(name));
        std::fs::write(&whole, "bytes").unwrap();
        std::fs::write(&empty, "").unwrap();
        std::os::unix::fs::symlink(&whole, &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&whole, &link] {
            let mut text = String::new();
            open_regular(path).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "bytes");
        }
        let others = [&empty, &pipe, folder.path(), Path::new("/dev/zero"), Path::new("/proc/self/maps")];
        for path in others {
            assert!(open_regular(path).is_none(), "{}", path.display());
        }
        // To open the other end fails while nobody has this one open: nobody had.
        let writing = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&pipe);
        assert_eq!(writing.unwrap_err().raw_os_error(), Some(libc::ENXIO));
    }

    #[test]
    fn a_newer_file_of_the_same_inode_is_another() {
        let before = clock::now();
        let temporary = tempfile::NamedTempFile::new().unwrap();
        let file = temporary.as_file();
        // The clock of file systems goes in steps of a timer tick.
        let after = Nanos(clock::now().0 + 20_000_000);
        let inode = file.metadata().unwrap().ino();
        let mapped = |inode, since| MappedFile {
            start: Avma(0x1000),
            end: Avma(0x2000),
            file_offset: FileOffset(0),
            identity: Some(Identity { major: 0, minor: 0, inode, generation: 0 }),
            build_id: None,
            path: b"/x",
            thread: Tid(0),
            since,
        };
        assert!(file.metadata().unwrap().created().is_ok(), "this file system tells when files were made");
        assert!(is_same(file, &mapped(inode, after)));
        assert!(!is_same(file, &mapped(inode, Nanos(before.0 - 50_000_000))));
        assert!(is_same(file, &mapped(inode, Nanos(0))), "mapped before the recording");
        assert!(!is_same(file, &mapped(inode + 1, after)));
    }
}
