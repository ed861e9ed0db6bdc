//! Compressed sections: zlib and zstd.
//!
//! Sources: ELF gABI, "Section Compression"; GNU's `.zdebug_` sections, which begin with `ZLIB` and the size in big-endian;
//! RFC 1950; RFC 8878.

use std::io::{self, Read};

use flate2::read::ZlibDecoder;
use object::Endianness;
use object::endian::Endian;
use ruzstd::decoding::StreamingDecoder;

use super::LineError;

/// The longest header of a compressed section.
pub(super) const MAX_HEADER: usize = 24;

/// A section that says it unpacks to more than so many times its size is damaged: compilers' unpack to some five times
/// theirs.
const MAX_RATIO: u64 = 128;

/// The largest window of zstd: that of its highest level.
const MAX_WINDOW: u64 = 128 << 20;

/// Frames of zstd that a section may have whatever its size, and for how many of its bytes another.
const MOST_FRAMES: usize = 1000;
const BYTES_OF_A_FRAME: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Zlib,
    Zstd,
}

/// How a section is compressed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    method: Method,
    /// Bytes of its header.
    header: usize,
    /// Bytes it says to unpack to.
    pub(super) size: u64,
}

impl Packed {
    /// By the header that ELF defines.
    pub(super) fn of_elf(start: &[u8], endian: Endianness, is_64: bool) -> Result<Self, LineError> {
        let word = |at: usize| Some(endian.read_u32(*start.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(endian.read_u64(*start.get(at..)?.first_chunk()?));
        let (size, header) = if is_64 { (long(8), 24) } else { (word(4).map(u64::from), 12) };
        let method = match word(0) {
            Some(1) => Method::Zlib,
            Some(2) => Method::Zstd,
            _ => return Err(unknown()),
        };
        Ok(Self { method, header, size: size.ok_or_else(unknown)? })
    }

    /// By the header of a `.zdebug_` section.
    pub(super) fn of_gnu(start: &[u8]) -> Result<Self, LineError> {
        let size = start.strip_prefix(b"ZLIB").and_then(<[u8]>::first_chunk).ok_or_else(unknown)?;
        Ok(Self { method: Method::Zlib, header: 12, size: u64::from_be_bytes(*size) })
    }

    /// Whether a section of so many bytes can unpack to what it says.
    pub(super) fn check(self, packed: u64) -> Result<(), LineError> {
        if self.size / MAX_RATIO > packed {
            return Err(LineError::Packed(io::Error::other(format!(
                "{packed} bytes that say to be {} unpacked",
                self.size
            ))));
        }
        Ok(())
    }
}

fn unknown() -> LineError {
    LineError::Packed(io::Error::other("it is packed neither by zlib nor by zstd"))
}

/// Unpacks a section, header included, that has `size` bytes then.
pub(super) fn unpack(packed: Packed, section: &[u8], size: usize) -> io::Result<Vec<u8>> {
    let bytes = section.get(packed.header..).unwrap_or_default();
    // One byte more tells that there is one.
    let limit = size as u64 + 1;
    let mut unpacked = Vec::new();
    match packed.method {
        Method::Zlib => {
            ZlibDecoder::new(bytes).take(limit).read_to_end(&mut unpacked)?;
        }
        Method::Zstd => zstd(bytes, limit, &mut unpacked)?,
    }
    if unpacked.len() == size {
        Ok(unpacked)
    } else {
        Err(io::Error::other(format!("it has another size than {size} bytes")))
    }
}

/// Unpacks frames, one behind the other, up to a number of bytes.
fn zstd(mut bytes: &[u8], limit: u64, unpacked: &mut Vec<u8>) -> io::Result<()> {
    let mut frames_left = MOST_FRAMES + limit as usize / BYTES_OF_A_FRAME;
    while !bytes.is_empty() && (unpacked.len() as u64) < limit {
        frames_left = frames_left.checked_sub(1).ok_or_else(|| io::Error::other("too many frames"))?;
        let frame = StreamingDecoder::new_with_max_window_size(&mut bytes, MAX_WINDOW);
        let frame = frame.map_err(|error| io::Error::other(error.to_string()))?;
        let left = limit - unpacked.len() as u64;
        frame.take(left).read_to_end(unpacked)?;
    }
    Ok(())
}
