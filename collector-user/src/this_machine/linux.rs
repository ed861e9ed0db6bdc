//! On Linux, all that there is.

#![expect(clippy::unnecessary_wraps, reason = "elsewhere there is none of it")]

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use collector_common::ids::BuildId;
use export::symbolize::KernelModule;

use crate::capture::kernel::build_id;
use crate::kernel::KALLSYMS;
use crate::modules::{kernel_modules, vmlinux};
pub(crate) use crate::sys::usage::own_usage;

/// Whether a kernel of this release, for this architecture, is the one that runs. What is not told may be so.
pub(crate) fn is_kernel(release: Option<&str>, architecture: Option<&str>) -> bool {
    let own = rustix::system::uname();
    release.is_none_or(|release| release.as_bytes() == own.release().to_bytes())
        && architecture.is_none_or(|architecture| architecture.as_bytes() == own.machine().to_bytes())
}

/// The build id of the kernel that runs.
pub(crate) fn kernel_build_id() -> Option<BuildId> {
    build_id()
}

/// Whether it is called so. What is not told may be so.
pub(crate) fn has_name(name: Option<&str>) -> bool {
    name.is_none_or(|name| name.as_bytes() == rustix::system::uname().nodename().to_bytes())
}

/// Whose rights this process has.
pub(crate) fn user() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

/// Who owns a file.
pub(crate) fn owner(metadata: &Metadata) -> Option<u32> {
    Some(metadata.uid())
}

/// Where the names of the running kernel's functions are.
pub(crate) fn kernel_symbols() -> Option<PathBuf> {
    Some(KALLSYMS.into())
}

/// The image of the running kernel, and how far it lies above where it was linked.
pub(crate) fn kernel_image() -> Option<(File, u64)> {
    vmlinux::find()
}

/// The file of one of its modules.
pub(crate) fn kernel_module(name: &str) -> Option<KernelModule<File>> {
    kernel_modules::find(name)
}

/// Bytes of a file from a place in it, as many as it gives at once.
///
/// # Errors
/// When it can't be read.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    file.read_at(buffer, at)
}

/// The same of as many bytes as `buffer` has.
///
/// # Errors
/// When it can't be read, or ends before.
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(buffer, at)
}

/// Whether a path leads to a disk of this machine: what is mounted is the administrator's choice.
pub(crate) const fn is_local(_path: &Path) -> bool {
    true
}

/// Bytes that a file occupies on its disk. Not every file system tells.
pub(crate) fn occupied(file: &File) -> Option<u64> {
    /// Of `st_blocks`, on every file system.
    const BLOCK: u64 = 512;
    let blocks = file.metadata().ok()?.blocks();
    (blocks > 0).then(|| blocks.saturating_mul(BLOCK))
}
