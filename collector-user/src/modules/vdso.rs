//! The vDSO: an ELF image that the kernel maps into every process, the same bytes for all 64-bit ones. It has no
//! file, so it is read from this process's own memory.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use collector_common::ids::Tid;

use crate::procfs;

/// The image, or `None` where there is none.
pub(super) fn image() -> Option<Vec<u8>> {
    let mut range = None;
    procfs::executable_mappings(Tid(std::process::id()), |entry| {
        if &*entry.path == b"[vdso]" {
            range = Some(entry.start.0..entry.end.0);
        }
    })
    .ok()?;
    let range = range?;
    // A few pages: the bound is against a kernel that says otherwise.
    let len = usize::try_from(range.end.checked_sub(range.start)?).ok().filter(|&len| len <= 1 << 20)?;
    let mut image = vec![0; len];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut image, range.start).ok()?;
    Some(image)
}
