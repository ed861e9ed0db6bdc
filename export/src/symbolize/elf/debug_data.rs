//! `.gnu_debugdata`, which GDB's manual calls `MiniDebugInfo`: an ELF file packed by xz, in which Fedora and its kin keep
//! the symbols of a stripped file's functions.

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::num::NonZeroUsize;

use xz4rust::{XzDecoder, XzReader};

use super::SymbolError;
use super::layout::Section;

/// What says that it unpacks to more is damaged; that of a web browser has some ten.
const MAX_UNPACKED: u64 = 128 << 20;

/// The dictionary of `xz -9`, the largest preset.
const MAX_DICTIONARY: usize = 64 << 20;

const BUFFER: NonZeroUsize = NonZeroUsize::new(16 << 10).unwrap();

/// The ELF file that is packed in `section` of `file`.
pub(super) fn unpack<R: Read + Seek>(file: &mut R, section: &Section) -> Result<Vec<u8>, SymbolError> {
    let (what, limit) = ("packed symbol file", MAX_UNPACKED);
    if section.size > limit {
        return Err(SymbolError::TooLarge { what, size: section.size, limit });
    }
    file.seek(SeekFrom::Start(section.offset))?;
    let mut packed = Vec::new();
    file.take(section.size).read_to_end(&mut packed)?;
    let decoder = XzDecoder::in_heap_with_alloc_dict_size(0, MAX_DICTIONARY);
    let reader = XzReader::new_with_buffer_size_and_decoder(Cursor::new(packed), BUFFER, decoder);
    let mut unpacked = Vec::new();
    reader.take(limit + 1).read_to_end(&mut unpacked).map_err(SymbolError::Packed)?;
    let size = unpacked.len() as u64;
    if size > limit { Err(SymbolError::TooLarge { what, size, limit }) } else { Ok(unpacked) }
}
