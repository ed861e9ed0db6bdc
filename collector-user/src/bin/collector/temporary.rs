//! A file that is made whole before it appears. It has no name until then where the file system allows that, so that
//! even a killed recording leaves nothing; elsewhere (NFS, old overlay file systems) it is a hidden file in its folder.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile};

/// As any file that a program makes; the umask takes away from it.
const MODE: u32 = 0o666;

/// A file that is not there yet.
pub(crate) enum Temporary {
    Unnamed(File),
    Named(NamedTempFile),
}

impl Temporary {
    /// An empty file on the file system of `folder`.
    pub(crate) fn new_in(folder: &Path) -> io::Result<Self> {
        match Self::unnamed_in(folder) {
            Err(Errno::OPNOTSUPP) => Self::named_in(folder),
            unnamed => Ok(unnamed?),
        }
    }

    fn unnamed_in(folder: &Path) -> rustix::io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(Self::Unnamed(open(folder, flags, Mode::from_raw_mode(MODE))?.into()))
    }

    fn named_in(folder: &Path) -> io::Result<Self> {
        Ok(Self::Named(names().permissions(Permissions::from_mode(MODE)).tempfile_in(folder)?))
    }

    /// To write to.
    pub(crate) fn file(&mut self) -> &mut File {
        match self {
            Self::Unnamed(file) => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }

    /// Puts it into place, in the folder that it was made for. What is there is replaced at once.
    pub(crate) fn persist(self, path: &Path) -> io::Result<()> {
        match self {
            // A link replaces nothing, a rename does: so it gets a name first, for an instant.
            Self::Unnamed(file) => {
                let open_file = format!("/proc/self/fd/{}", file.as_raw_fd());
                let link =
                    |name: &Path| Ok(linkat(CWD, open_file.as_str(), CWD, name, AtFlags::SYMLINK_FOLLOW)?);
                let folder = path.parent().unwrap_or(Path::new("/"));
                names().make_in(folder, link)?.persist(path)?;
            }
            Self::Named(file) => drop(file.persist(path)?),
        }
        Ok(())
    }
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

    fn entries(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn it_replaces_a_file_when_it_is_whole() {
        let unnamed = |folder: &Path| Temporary::unnamed_in(folder).map_err(io::Error::from);
        for make in [unnamed, Temporary::named_in] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            fs::write(&path, "old").unwrap();
            let as_others = fs::metadata(&path).unwrap().permissions();
            let mut temporary = make(folder.path()).unwrap();
            temporary.file().write_all(b"new").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"old");
            temporary.persist(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert_eq!(fs::metadata(&path).unwrap().permissions(), as_others);
            assert_eq!(entries(folder.path()), ["x"]);
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
