//! What the path of an output leads to. In: a path. Out: where the bytes have to go, with links followed (`path_resolution(7)`).

use std::collections::BTreeSet;
#[cfg(target_os = "linux")]
use std::fs;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::io::Errno;

/// As many links as the kernel follows.
#[cfg(target_os = "linux")]
const MAX_LINKS: usize = 40;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, or where one can be made.
    File(PathBuf),
    /// Something that is there and is no file, as a device or a pipe.
    Special(PathBuf),
    /// Something that is open.
    #[cfg(target_os = "linux")]
    Descriptor(Descriptor),
}

/// A descriptor of a process.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The process.
    pub process: u32,
    /// Its number there.
    pub number: RawFd,
}

impl Place {
    /// Where to write so that `path` leads to it. A link is followed: what it leads to is replaced or made, not the link.
    ///
    /// # Errors
    /// For a folder ([`io::ErrorKind::IsADirectory`]), and where the way there does not exist or is not allowed.
    #[cfg(target_os = "linux")]
    pub fn of(path: &Path) -> io::Result<Self> {
        // The kernel does not follow somebody else's link in a folder like /tmp, which `canonicalize` would.
        let is_special = match path.metadata() {
            Ok(data) if data.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(data) => !data.is_file(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let place = folder_of(&path).canonicalize()?.join(path.file_name().unwrap_or_default());
            match (fs::read_link(&place), Descriptor::of_link(&place)) {
                (Ok(_), Some(descriptor)) => return Ok(Self::Descriptor(descriptor)),
                (Ok(target), None) => path = place.with_file_name(target),
                (Err(_), _) if is_special => return Ok(Self::Special(place)),
                (Err(_), _) => return Ok(Self::File(place)),
            }
        }
        Err(Errno::LOOP.into())
    }

    /// Where to write so that `path` leads to it. A link is replaced.
    ///
    /// # Errors
    /// For a folder ([`io::ErrorKind::IsADirectory`]), and where the way there does not exist or is not allowed.
    #[cfg(not(target_os = "linux"))]
    pub fn of(path: &Path) -> io::Result<Self> {
        match path.metadata() {
            Ok(data) if data.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(data) if !data.is_file() => Ok(Self::Special(path.to_owned())),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(_) | Err(_) => {
                let place = std::path::absolute(path)?;
                folder_of(&place).metadata()?;
                Ok(Self::File(place))
            }
        }
    }
}

#[cfg(target_os = "linux")]
impl Descriptor {
    /// `/proc/4711/fd/5`, or that of a thread, `/proc/4711/task/4712/fd/5`.
    fn of_link(link: &Path) -> Option<Self> {
        let parts: Option<Vec<&str>> = link.iter().map(|part| part.to_str()).collect();
        match *parts?.as_slice() {
            ["/", "proc", process, "fd", number] | ["/", "proc", process, "task", _, "fd", number] => {
                Some(Self { process: process.parse().ok()?, number: number.parse().ok()? })
            }
            _ => None,
        }
    }
}

/// The folder that a path is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The places of several outputs: none may be written to twice.
#[derive(Clone, Debug, Default)]
pub struct Places(BTreeSet<PathBuf>);

impl Places {
    /// Says whether nobody has taken a place before.
    pub fn take(&mut self, place: &Path) -> bool {
        self.0.insert(place.to_owned())
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let at = |name: &str| folder.join(name);
        fs::write(at("file"), "").unwrap();
        for (link, target) in [("link", "file"), ("second", "link"), ("dangling", "none"), ("loop", "loop")] {
            symlink(target, at(link)).unwrap();
        }
        for (path, place) in [("file", "file"), ("second", "file"), ("dangling", "none"), ("new", "new")] {
            assert_eq!(Place::of(&at(path)).unwrap(), Place::File(at(place)));
        }
        assert!(Place::of(&at("loop")).is_err());
        assert_eq!(Place::of(&folder).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(Place::of(Path::new("/dev/null")).unwrap(), Place::Special("/dev/null".into()));
        let open = Descriptor { process: std::process::id(), number: 1 };
        assert_eq!(Place::of(Path::new("/dev/fd/1")).unwrap(), Place::Descriptor(open));
    }
}
