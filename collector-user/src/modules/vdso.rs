//! The vDSO: an ELF image that the kernel maps into every process, the same bytes for all 64-bit ones, and others for all
//! 32-bit ones. It has no file, so it is read from memory: this process's own, or that of a 32-bit process.

use std::fs::File;
use std::ops::Range;

use collector_common::ids::{Avma, Pid, Tid};
use object::read::FileKind;

use super::store::MappedFile;
use crate::procfs;
use crate::this_machine::read_exact_at;

/// A few pages: the bound is against a kernel that says otherwise.
const MOST_BYTES: usize = 1 << 20;

/// The image of 64-bit processes, or `None` where there is none, as on other systems than Linux.
pub(super) fn image() -> Option<Vec<u8>> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let mut range = None;
    procfs::executable_mappings(Tid(std::process::id()), |entry| {
        if &*entry.path == b"[vdso]" {
            range = Some(entry.start..entry.end);
        }
    })
    .ok()?;
    read("/proc/self/mem", range?)
}

/// Whether a vDSO that ends at `end` is that of a 32-bit process: it is where such a process has its addresses, which others
/// have their program at most.
pub(super) fn is_compat(end: Avma) -> bool {
    end.0 <= 1 << 32
}

/// The image in the memory of a 32-bit process; `None` where that can't be read, or has another image.
pub(super) fn compat_image(pid: Pid, mapped: &MappedFile<'_>) -> Option<Vec<u8>> {
    let image = procfs::folders(pid, mapped.thread)
        .find_map(|folder| read(&format!("{folder}/mem"), mapped.start..mapped.end))?;
    matches!(FileKind::parse(image.as_slice()), Ok(FileKind::Elf32)).then_some(image)
}

fn read(memory: &str, range: Range<Avma>) -> Option<Vec<u8>> {
    let len =
        usize::try_from(range.end.0.checked_sub(range.start.0)?).ok().filter(|&len| len <= MOST_BYTES)?;
    let mut image = vec![0; len];
    read_exact_at(&File::open(memory).ok()?, &mut image, range.start.0).ok()?;
    Some(image)
}
