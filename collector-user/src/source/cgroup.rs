//! The folder of a cgroup, as events and programs are given it.

use std::fs::File;
use std::io;
use std::path::Path;

/// Of `linux/magic.h`.
const CGROUP2_SUPER_MAGIC: i64 = 0x6367_7270;

/// Opens a folder of the cgroup v2 hierarchy.
///
/// # Errors
/// When it can't be opened, or is of another file system: the kernel takes descriptors of folders of its own alone, and of
/// others says no more than `EBADF`.
pub(crate) fn open_cgroup(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    match rustix::fs::fstatfs(&folder) {
        Ok(system) if system.f_type != CGROUP2_SUPER_MAGIC => {
            Err(io::Error::other("it is on another file system"))
        }
        _ if !folder.metadata()?.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        _ => Ok(folder),
    }
}
