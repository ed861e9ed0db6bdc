//! Sections that are packed by zlib or zstd. A section's size as it is stated bounds what is held for it: besides that many
//! bytes, twice what their window may need, and what a decoder has for itself (3 MiB at most, for zstd).
//!
//! Source: RFC 1950 (zlib); RFC 8878 (zstd), 3.1.1.1 for the header of a frame.

use std::error::Error;
use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::rows::MAX_SECTION;
use crate::{Compression, SectionProblem};

/// A section that says it unpacks to more than this, or to more than [`MAX_RATIO`] times its size, is damaged. Compilers'
/// unpack to five times theirs, and the entries of 20,000 equal functions to 15 (zlib) or 31 times (zstd).
pub(super) const MAX_UNPACKED: u64 = MAX_SECTION as u64;
pub(super) const MAX_RATIO: u64 = 128;

/// The size that a section states to unpack to, if it can be true and is `most` at most.
pub(super) fn plausible(packed: &[u8], stated: u64, most: u64) -> Result<usize, SectionProblem> {
    let implausible = SectionProblem::Implausible { packed: packed.len() as u64, unpacked: stated };
    if stated > most || stated / MAX_RATIO > packed.len() as u64 {
        return Err(implausible);
    }
    usize::try_from(stated).map_err(|_| implausible)
}

/// Unpacks a section of zlib that states to have `size` bytes.
pub(super) fn zlib(packed: &[u8], size: usize) -> Result<Vec<u8>, SectionProblem> {
    const FORMAT: Compression = Compression::Zlib;
    let mut decoder = Decompress::new(true);
    let mut unpacked = Vec::with_capacity(size);
    loop {
        let (read, written) = (decoder.total_in(), decoder.total_out());
        let rest = packed.get(read as usize..).unwrap_or_default();
        let damaged = |error: flate2::DecompressError| FORMAT.damaged(&error);
        let status = if unpacked.len() < size {
            decoder.decompress_vec(rest, &mut unpacked, FlushDecompress::None).map_err(damaged)?
        } else {
            // What is behind the last byte: the end, or one byte more.
            decoder.decompress(rest, &mut [0], FlushDecompress::None).map_err(damaged)?
        };
        if decoder.total_out() > size as u64 {
            return Err(SectionProblem::Longer { stated: size as u64 });
        }
        if status == Status::StreamEnd {
            return of_size(size, unpacked);
        }
        if (decoder.total_in(), decoder.total_out()) == (read, written) {
            return Err(SectionProblem::PackedCutOff { format: FORMAT });
        }
    }
}

/// Frames of zstd that a section may have, whatever its size; and for how many of its bytes another. Each takes a decoder of its
/// own, and empty ones 9 bytes; packers that work in parallel make one of some hundred KiB.
const MOST_FRAMES: usize = 1000;
const BYTES_OF_A_FRAME: usize = 4096;

/// Unpacks a section of zstd that states to have `size` bytes.
pub(super) fn zstd(mut packed: &[u8], size: usize) -> Result<Vec<u8>, SectionProblem> {
    const FORMAT: Compression = Compression::Zstd;
    let cut_off = || SectionProblem::PackedCutOff { format: FORMAT };
    let longer = SectionProblem::Longer { stated: size as u64 };
    let mut unpacked = Vec::with_capacity(size);
    let mut frames_left = MOST_FRAMES + size / BYTES_OF_A_FRAME;
    while !packed.is_empty() {
        let too_many = || FORMAT.damaged(&"it has more frames than its size could need");
        frames_left = frames_left.checked_sub(1).ok_or_else(too_many)?;
        // Each with its own decoder: one that is used again reserves the next frame's window at once.
        let mut frame = FrameDecoder::new();
        let (start, rest) = with_lower_window(packed, size).ok_or_else(cut_off)?;
        match frame.init(start.as_slice().chain(rest)) {
            Ok(()) => packed = packed.get(frame.bytes_read_from_source() as usize..).unwrap_or_default(),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let behind = SKIPPED_HEADER.saturating_add(length as usize);
                packed = packed.get(behind..).ok_or_else(cut_off)?;
                continue;
            }
            Err(FrameDecoderError::WindowSizeTooBig { .. }) => return Err(longer),
            Err(error) => return Err(of_zstd(&error)),
        }
        while !frame.is_finished() {
            let block = frame.decode_blocks(&mut packed, BlockDecodingStrategy::UptoBlocks(1));
            block.map_err(|error| of_zstd(&error))?;
            if unpacked.len() + frame.can_collect() > size {
                return Err(longer);
            }
            frame.collect_to_writer(&mut unpacked).map_err(|error| FORMAT.damaged(&error))?;
        }
        let stated = frame.get_checksum_from_data();
        if stated.is_some() && stated != frame.get_calculated_checksum() {
            return Err(FORMAT.damaged(&"its checksum is another"));
        }
    }
    of_size(size, unpacked)
}

/// Magic number and length of a frame that is skipped.
const SKIPPED_HEADER: usize = 8;

/// What a block unpacks to at most; less where the window is smaller.
const LARGEST_BLOCK: usize = 128 << 10;

/// The first bytes of a frame, and the rest. Its header may ask for a window of up to 4 TiB, of which no more is needed than
/// the frame has content.
fn with_lower_window(frame: &[u8], size: usize) -> Option<([u8; 6], &[u8])> {
    const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
    const SINGLE_SEGMENT: u8 = 1 << 5;
    let (&(mut start), rest) = frame.split_first_chunk::<6>()?;
    let size = size.max(LARGEST_BLOCK) as u64;
    if let [magic @ .., descriptor, window] = &mut start
        && *magic == MAGIC
        && *descriptor & SINGLE_SEGMENT == 0
    {
        let needed = (0..*window).find(|&lower| window_size(lower) >= size);
        *window = needed.unwrap_or(*window);
    }
    Some((start, rest))
}

/// In bytes, of a window descriptor: an exponent and eighths.
fn window_size(descriptor: u8) -> u64 {
    let base = 1 << (10 + (descriptor >> 3));
    base + base / 8 * u64::from(descriptor & 7)
}

fn of_zstd(error: &FrameDecoderError) -> SectionProblem {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
            return SectionProblem::PackedCutOff { format: Compression::Zstd };
        }
        cause = error.source();
    }
    Compression::Zstd.damaged(error)
}

fn of_size(stated: usize, unpacked: Vec<u8>) -> Result<Vec<u8>, SectionProblem> {
    if unpacked.len() == stated {
        Ok(unpacked)
    } else {
        Err(SectionProblem::Shorter { stated: stated as u64, found: unpacked.len() as u64 })
    }
}
