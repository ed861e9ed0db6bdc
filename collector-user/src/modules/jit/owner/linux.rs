//! Which files are believed to be a process's own account of its code.
//!
//! All users may write to `/tmp`: a file there names a process's code only if the process's user, or root, owns it. It must have been
//! written to since the process was started, as another one may have had its pid before; and it is not followed to another place.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use collector_common::ids::Pid;
pub(in crate::modules::jit) use rustix::fs::CWD as HERE;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::{clock, procfs};

/// By so much a file may seem to be older than it is: file systems take the time of the last timer tick, and of a process it is known
/// in hundredths of a second when it was started.
const SLACK: Duration = Duration::from_secs(1);

/// The user whose files are believed beside those that a [`Believed`] has.
const ROOT: u32 = 0;

/// What a file must be like to be believed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Believed {
    /// Users one of whom owns it, beside root.
    pub(crate) users: Vec<u32>,
    /// When the process was started, where that is known.
    pub(crate) started: Option<SystemTime>,
}

impl Believed {
    /// Whether a file is believed.
    pub(in crate::modules::jit) fn has(&self, file: &File) -> bool {
        let Ok(metadata) = file.metadata() else { return false };
        let is_older = |started: SystemTime| {
            metadata
                .modified()
                .is_ok_and(|modified| modified.checked_add(SLACK).is_some_and(|then| then < started))
        };
        let is_owned = metadata.uid() == ROOT || self.users.contains(&metadata.uid());
        is_owned && !self.started.is_some_and(is_older)
    }
}

/// A folder as a place to open files in, if it is one and no link.
pub(in crate::modules::jit) fn open_folder(at: impl AsFd, name: &str, follow: bool) -> Option<File> {
    let link = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | link;
    openat(at, name, flags, Mode::empty()).ok().map(File::from)
}

/// Opens a regular file in a folder, which may be empty, for reading. What else is there is not opened even for a moment: see
/// [`open_regular`](crate::modules::open).
pub(in crate::modules::jit) fn open_plain(folder: impl AsFd, name: &str) -> Option<File> {
    let place =
        openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let place = File::from(place);
    place.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(CWD, link, flags, Mode::empty()).ok().map(File::from)
}

/// What tells a file or a folder from others, while it is there: device and inode.
pub(in crate::modules::jit) fn identity(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// When a process was started, by the clock of file systems.
pub(in crate::modules::jit) fn started(pid: Pid) -> Option<SystemTime> {
    let since_boot = procfs::started(pid).ok()?;
    let anchor = clock::anchor();
    let ago = anchor.boottime?.0.checked_sub(since_boot.0)?;
    Some(UNIX_EPOCH + Duration::from_nanos(anchor.realtime.checked_sub(ago)?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn plain_files_of_the_user_since_the_start_are_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        fs::write(path("map"), "").unwrap();
        symlink(path("map"), path("link")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        let at = open_folder(CWD, folder.path().to_str().unwrap(), true).unwrap();
        let file = open_plain(&at, "map").unwrap();
        for other in ["link", "folder", "absent"] {
            assert!(open_plain(&at, other).is_none(), "{other}");
        }
        assert!(open_folder(&at, "folder", false).is_some() && open_folder(&at, "link", false).is_none());
        let own = rustix::process::geteuid().as_raw();
        let now = SystemTime::now();
        let believed = |users: &[u32], started| Believed { users: users.into(), started }.has(&file);
        assert!(believed(&[own], None) && believed(&[7, own], Some(now)));
        assert_eq!(believed(&[own + 1], None), own == ROOT);
        assert!(!believed(&[own], Some(now + Duration::from_mins(1))));
    }

    #[test]
    fn files_of_another_user_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        fs::write(&path, "").unwrap();
        // Only root may give files away.
        if std::os::unix::fs::chown(&path, Some(65534), None).is_ok() {
            let file = File::open(&path).unwrap();
            assert!(!Believed { users: vec![1000], started: None }.has(&file));
            assert!(Believed { users: vec![65534], started: None }.has(&file));
        }
    }
}
