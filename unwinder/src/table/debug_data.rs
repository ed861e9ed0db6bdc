//! `.gnu_debugdata`, which GDB's manual calls `MiniDebugInfo`: an ELF file within an ELF file, packed by xz.
//!
//! Fedora and its kin put the symbols of functions there, and no unwind sections (RPM's
//! `find-debuginfo` runs `objcopy -S`, which drops `.debug_frame`). Android's runtime puts `.symtab` and
//! `.debug_frame` into the one of the code that it compiles, whose files have no other.

use xz4rust::XzDecoder;

/// What says that it unpacks to more, or to more than [`MAX_RATIO`] times its size, is damaged. Real ones have a tenth of
/// their file's size and unpack to five times theirs.
const MAX_UNPACKED: u64 = 64 << 20;
const MAX_RATIO: u64 = 256;

/// The dictionary of `xz -9`, the largest preset.
const MAX_DICTIONARY: usize = 64 << 20;

/// Bytes that are unpacked at a time.
const PIECE: usize = 64 << 10;

/// The ELF file within; `None` for what is damaged, cut off or implausibly large.
pub(super) fn unpack(mut packed: &[u8]) -> Option<Vec<u8>> {
    let limit = (packed.len() as u64).saturating_mul(MAX_RATIO).min(MAX_UNPACKED);
    let mut decoder = XzDecoder::in_heap_with_alloc_dict_size(0, MAX_DICTIONARY);
    let mut file = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let step = decoder.decode(packed, &mut piece).ok()?;
        packed = packed.get(step.input_consumed()..)?;
        file.extend_from_slice(piece.get(..step.output_produced())?);
        if file.len() as u64 > limit || !(step.made_progress() || step.is_end_of_stream()) {
            return None;
        }
        if step.is_end_of_stream() {
            return Some(file);
        }
    }
}
