//! An xz file of one stream, unpacked within memory in proportion to what it unpacks to: a block asks for the dictionary of the
//! preset that it was made with (8 MiB by default), however little it has in it.
//!
//! ```text
//!  header (12)   blocks   index   footer (12)
//!                         |<------- backward size
//! ```
//!
//! Source: "The .xz File Format" 1.2.1.

use std::ops::Range;

use flate2::Crc;
use xz4rust::XzDecoder;

use crate::{Compression, SectionProblem};

const FORMAT: Compression = Compression::Xz;
const HEADER: usize = 12;
const FOOTER_MAGIC: [u8; 2] = *b"YZ";
/// What a block's header has at least.
const SMALLEST_BLOCK: u64 = 8;
/// Of the filter that every block has as its last one.
const LZMA2: u64 = 0x21;
/// A dictionary of 3 GiB is the largest that a decoder takes.
const MAX_DICTIONARY: usize = 3 << 30;
/// Bytes that are unpacked at a time.
const PIECE: usize = 64 << 10;

/// Unpacks a file, unless it says that it has more than `most` bytes.
pub(super) fn unpack(packed: &[u8], most: u64) -> Result<Vec<u8>, SectionProblem> {
    let cut_off = SectionProblem::PackedCutOff { format: FORMAT };
    let blocks = Blocks::list(packed).ok_or(cut_off.clone())?;
    let size = blocks.size;
    if size > most {
        return Err(SectionProblem::Implausible { packed: packed.len() as u64, unpacked: size });
    }
    let mut file = packed.to_vec();
    for (place, size) in blocks.blocks {
        lower_dictionary(file.get_mut(place).unwrap_or_default(), size);
    }
    let mut rest = file.as_slice();
    let mut decoder = XzDecoder::in_heap_with_alloc_dict_size(0, dictionary(lowest(size)));
    let mut unpacked = Vec::with_capacity(size as usize);
    let mut piece = vec![0; PIECE];
    loop {
        let step = decoder.decode(rest, &mut piece).map_err(|error| FORMAT.damaged(&error))?;
        rest = rest.get(step.input_consumed()..).unwrap_or_default();
        unpacked.extend_from_slice(piece.get(..step.output_produced()).unwrap_or_default());
        if unpacked.len() as u64 > size {
            return Err(SectionProblem::Longer { stated: size });
        }
        if step.is_end_of_stream() {
            return Ok(unpacked);
        }
        if !step.made_progress() {
            return Err(cut_off);
        }
    }
}

/// What the index says.
#[derive(Debug, Default)]
struct Blocks {
    /// Where each is, one behind the other, and to how many bytes it unpacks.
    blocks: Vec<(Range<usize>, u64)>,
    size: u64,
}

impl Blocks {
    /// `None` where there is no index at the end.
    fn list(file: &[u8]) -> Option<Self> {
        let (rest, &footer) = file.split_last_chunk::<HEADER>()?;
        let [_, _, _, _, a, b, c, d, _, _, magic @ ..] = footer;
        let index_size = u64::from(u32::from_le_bytes([a, b, c, d])) * 4 + 4;
        let index_at = rest.len().checked_sub(usize::try_from(index_size).ok()?)?;
        let mut index = rest.get(index_at..)?.strip_prefix(&[0])?;
        if magic != FOOTER_MAGIC {
            return None;
        }
        let mut listed = Blocks::default();
        let mut start = HEADER;
        for _ in 0..number(&mut index)? {
            let (packed, size) = (number(&mut index)?, number(&mut index)?);
            let end = start.checked_add(usize::try_from(packed).ok()?.checked_next_multiple_of(4)?)?;
            // So there are no more blocks than the file has room for.
            if packed < SMALLEST_BLOCK || end > index_at {
                return None;
            }
            listed.blocks.push((start..end, size));
            start = end;
            listed.size = listed.size.checked_add(size)?;
        }
        Some(listed)
    }
}

/// Takes a number of variable length, of which each byte has seven bits.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Has the block ask for no more of a dictionary than the `size` bytes that it unpacks to. One that makes no sense is left as it
/// is for the decoder to refuse.
fn lower_dictionary(block: &mut [u8], size: u64) {
    let size_of_header = block.first().map_or(0, |&words| usize::from(words) * 4 + 4);
    let Some(header) = block.get_mut(..size_of_header) else { return };
    let Some(at) = dictionary_at(header) else { return };
    let Some((fields, checksum)) = header.split_last_chunk_mut::<4>() else { return };
    let mut crc = Crc::new();
    crc.update(fields);
    let is_whole = crc.sum().to_le_bytes() == *checksum;
    if let Some(asked) = fields.get_mut(at)
        && is_whole
    {
        *asked = (*asked).min(lowest(size));
        crc.reset();
        crc.update(fields);
        *checksum = crc.sum().to_le_bytes();
    }
}

/// Where the header of a block has the size of the dictionary.
fn dictionary_at(header: &[u8]) -> Option<usize> {
    let (&[_, flags], mut rest) = header.split_first_chunk()?;
    for present in [0x40, 0x80] {
        if flags & present != 0 {
            number(&mut rest)?;
        }
    }
    for _ in 0..=flags & 3 {
        let (filter, size) = (number(&mut rest)?, usize::try_from(number(&mut rest)?).ok()?);
        if filter == LZMA2 && size == 1 {
            return Some(header.len() - rest.len());
        }
        rest = rest.get(size..)?;
    }
    None
}

/// The smallest dictionary, as a header has it, that holds this many bytes.
fn lowest(size: u64) -> u8 {
    (0..40).find(|&lower| dictionary(lower) as u64 >= size).unwrap_or(40)
}

/// Its size in bytes.
fn dictionary(stated: u8) -> usize {
    if stated < 40 { (2 | usize::from(stated & 1)) << (stated / 2 + 11) } else { MAX_DICTIONARY }
}
