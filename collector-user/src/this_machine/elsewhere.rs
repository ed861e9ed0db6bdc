//! On other systems than Linux nothing of a recording is this machine's.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf, Prefix};

use collector_common::ids::BuildId;
use export::symbolize::KernelModule;

use crate::stats::Usage;

/// No kernel of Linux runs here.
pub(crate) fn is_kernel(_release: Option<&str>, _architecture: Option<&str>) -> bool {
    false
}

/// Nor has one a build id.
pub(crate) fn kernel_build_id() -> Option<BuildId> {
    None
}

/// A machine of the same name is another one.
pub(crate) fn has_name(_name: Option<&str>) -> bool {
    false
}

/// Users have no numbers here.
pub(crate) fn user() -> Option<u32> {
    None
}

/// The same of who owns a file.
pub(crate) fn owner(_metadata: &Metadata) -> Option<u32> {
    None
}

/// No kernel of Linux has names here.
pub(crate) fn kernel_symbols() -> Option<PathBuf> {
    None
}

/// Nor an image.
pub(crate) fn kernel_image() -> Option<(File, u64)> {
    None
}

/// Nor modules.
pub(crate) fn kernel_module(_name: &str) -> Option<KernelModule<File>> {
    None
}

/// What this process has used.
#[cfg(windows)]
pub(crate) fn own_usage() -> Usage {
    let windows_etw::session::OwnUsage { user, system, peak_rss } = windows_etw::session::own_usage();
    Usage { user, system, peak_rss }
}

/// Nothing tells it.
#[cfg(not(windows))]
pub(crate) fn own_usage() -> Usage {
    Usage::default()
}

/// Bytes of a file from a place in it, as many as it gives at once.
///
/// # Errors
/// When it can't be read.
#[cfg(windows)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}

/// The same where it is as on Linux.
#[cfg(not(windows))]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

/// The same of as many bytes as `buffer` has.
///
/// # Errors
/// When it can't be read, or ends before.
pub(crate) fn read_exact_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        let read = read_at(file, buffer, at)?;
        let rest = std::mem::take(&mut buffer).get_mut(read..).filter(|_| read > 0);
        buffer = rest.ok_or(io::ErrorKind::UnexpectedEof)?;
        at = at.saturating_add(read as u64);
    }
    Ok(())
}

/// Whether a path leads to a disk of this machine. One to another machine would tell that one who asks for the file: who made a recording
/// may have chosen it for that.
pub(crate) fn is_local(path: &Path) -> bool {
    let is_disk = match path.components().next() {
        Some(Component::Prefix(prefix)) => matches!(prefix.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_)),
        _ => true,
    };
    // The system's own name space has all other machines in it.
    is_disk && !path.as_os_str().as_encoded_bytes().starts_with(br"\??")
}

/// Bytes that a file occupies on its disk: that is not asked for.
pub(crate) fn occupied(_file: &File) -> Option<u64> {
    None
}

#[cfg(windows)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_machines_are_not_asked_for() {
        for path in [r"C:\x.dll", r"c:/x.dll", r"\\?\C:\x.dll", "/usr/bin/x", "x.dll"] {
            assert!(is_local(Path::new(path)), "{path}");
        }
        let others = [
            r"\\server\share\x.dll",
            "//server/share/x.dll",
            r"\\?\UNC\server\share\x.dll",
            r"\\.\UNC\server\share\x.dll",
            r"\\?\GLOBALROOT\Device\Mup\server\share\x.dll",
            r"\??\UNC\server\share\x.dll",
        ];
        for path in others {
            assert!(!is_local(Path::new(path)), "{path}");
        }
    }
}
