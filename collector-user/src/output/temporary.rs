//! A file that is made whole before it appears. It has no name until then where the file system allows that, so that
//! even a killed recording leaves nothing; elsewhere (NFS, old overlay file systems) it is a hidden file in its folder.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile};

/// As any file that a program makes; the umask takes away from it.
const MODE: u32 = 0o666;

/// A file that is not there yet.
pub(super) enum Temporary {
    Unnamed(File),
    Named(NamedTempFile),
}

impl Temporary {
    /// An empty file on the file system of `folder`.
    pub(super) fn new_in(folder: &Path) -> io::Result<Self> {
        match Self::unnamed_in(folder) {
            Err(Errno::OPNOTSUPP) => Self::named_in(folder),
            unnamed => Ok(unnamed?),
        }
    }

    fn unnamed_in(folder: &Path) -> rustix::io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        Ok(Self::Unnamed(open(folder, flags, Mode::from_raw_mode(MODE))?.into()))
    }

    fn named_in(folder: &Path) -> io::Result<Self> {
        Ok(Self::Named(names().permissions(Permissions::from_mode(MODE)).tempfile_in(folder)?))
    }

    /// To write to.
    pub(super) fn file(&mut self) -> &mut File {
        match self {
            Self::Unnamed(file) => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }

    /// Puts it into place, in the folder that it was made for. What is there is replaced at once; its owner and mode
    /// stay.
    pub(super) fn persist(mut self, path: &Path) -> io::Result<()> {
        if let Ok(replaced) = path.metadata() {
            let file = self.file();
            // Who may not give a file away owns the new one, and lets read it whom the umask lets.
            if fchown(&*file, Some(replaced.uid()), Some(replaced.gid())).is_ok() {
                file.set_permissions(Permissions::from_mode(replaced.mode() & 0o777))?;
            }
        }
        match self {
            // A link replaces nothing, a rename does: so it gets a name first, for an instant.
            Self::Unnamed(file) => {
                let folder = path.parent().unwrap_or(Path::new("/"));
                names().make_in(folder, |name| link(&file, name))?.persist(path)?;
            }
            Self::Named(file) => drop(file.persist(path)?),
        }
        Ok(())
    }

    /// Puts it at the first of two places where nothing is, and gives that.
    pub(super) fn persist_at_first_free(self, [first, second]: [&Path; 2]) -> io::Result<PathBuf> {
        let place = match self {
            Self::Unnamed(file) => match link(&file, first) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    link(&file, second).map(|()| second)
                }
                linked => linked.map(|()| first),
            },
            Self::Named(file) => match file.persist_noclobber(first) {
                Err(taken) if taken.error.kind() == io::ErrorKind::AlreadyExists => {
                    taken.file.persist_noclobber(second).map(|_| second).map_err(io::Error::from)
                }
                persisted => persisted.map(|_| first).map_err(io::Error::from),
            },
        };
        place.map(Path::to_path_buf)
    }
}

/// Gives an open file a name that is free.
fn link(file: &File, name: &Path) -> io::Result<()> {
    let open_file = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, open_file.as_str(), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

fn names() -> Builder<'static, 'static> {
    let mut names = Builder::new();
    names.prefix(".collector-");
    names
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::io::Write as _;

    use super::*;

    const MAKERS: [fn(&Path) -> io::Result<Temporary>; 2] =
        [|folder| Ok(Temporary::unnamed_in(folder)?), Temporary::named_in];

    fn entries(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn it_replaces_a_file_when_it_is_whole() {
        for make in MAKERS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            let mut temporary = make(folder.path()).unwrap();
            temporary.file().write_all(b"new").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"old");
            temporary.persist(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640, "as the one before");
            assert_eq!(entries(folder.path()), ["x"]);
        }
    }

    #[test]
    fn it_takes_the_first_free_place() {
        for make in MAKERS {
            let folder = tempfile::tempdir().unwrap();
            let places = ["x", "y"].map(|name| folder.path().join(name));
            let persist = || {
                make(folder.path()).unwrap().persist_at_first_free(places.each_ref().map(PathBuf::as_path))
            };
            assert_eq!(persist().unwrap(), places[0]);
            assert_eq!(persist().unwrap(), places[1]);
            assert_eq!(persist().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(entries(folder.path()).len(), 2);
        }
    }

    #[test]
    fn one_that_is_not_put_into_place_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let named = Temporary::named_in(folder.path()).unwrap();
        assert_eq!(entries(folder.path()).len(), 1);
        drop(named);
        let _unnamed = Temporary::unnamed_in(folder.path()).unwrap();
        assert_eq!(entries(folder.path()), [""; 0], "not even while it is open");
    }
}
