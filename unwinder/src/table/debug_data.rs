//! `.gnu_debugdata`, which GDB's manual calls `MiniDebugInfo`: an ELF file within an ELF file, packed by xz.
//!
//! Fedora and its kin put the symbols of functions there, and no unwind sections (RPM's
//! `find-debuginfo` runs `objcopy -S`, which drops `.debug_frame`). Android's runtime puts `.symtab` and
//! `.debug_frame` into the one of the code that it compiles, whose files have no other.

use super::xz;
use crate::SectionProblem;

pub(super) const NAME: &str = ".gnu_debugdata";

/// What says that it unpacks to more, or to more than [`MAX_RATIO`] times its size, is damaged. Real ones have a tenth of
/// their file's size and unpack to five times theirs.
const MAX_UNPACKED: u64 = 64 << 20;
const MAX_RATIO: u64 = 256;

/// The ELF file within.
pub(super) fn unpack(packed: &[u8]) -> Result<Vec<u8>, SectionProblem> {
    xz::unpack(packed, (packed.len() as u64).saturating_mul(MAX_RATIO).min(MAX_UNPACKED))
}
