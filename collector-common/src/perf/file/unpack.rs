//! Unpacks records: the bodies of `PERF_RECORD_COMPRESSED` are pieces of one zstd stream, cut wherever a record ended.
//!
//! The decoder keeps back as many bytes as its window has, as later ones may repeat them. So what is unpacked comes
//! later than the record with which it was packed. To know where that record's bytes end all the same, the stream is made
//! to begin with as many zeros as the window has: they are what is kept back at first, and afterwards what can be taken
//! grows with each block by just the block's bytes.
//!
//! Format: RFC 8878, sections 3.1.1.1 (frame header) and 3.1.1.2 (blocks).

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The largest window that the strongest compression has.
const MAX_WINDOW: u64 = 128 << 20;

/// Bytes of a block at most, unpacked.
const MAX_BLOCK: u64 = 128 << 10;

/// Bytes that all records may be unpacked to, and how many more for each packed byte: copies of stacks are much alike, but they have registers and
/// times between them.
const MOST_UNPACKED: u64 = 1 << 30;
const MOST_UNPACKED_EACH: u64 = 256;

/// What is wrong with packed records.
pub(super) struct Damaged(pub(super) String);

impl From<std::io::Error> for Damaged {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// A stream of records in pieces.
pub(super) struct Unpacker {
    decoder: FrameDecoder,
    packed: Vec<u8>,
    used: usize,
    /// Of the frame that is being read; `None` between frames.
    frame: Option<Frame>,
    /// Bytes of records that were taken.
    taken: u64,
    /// The windows of all frames together.
    windows: u64,
    /// Bytes that may be unpacked, of all that was pushed so far.
    most: u64,
}

/// Where in a frame the decoder is.
#[derive(Clone, Copy)]
struct Frame {
    window: u64,
    /// Zeros that have not been taken yet.
    zeros: u64,
    /// Whether a checksum follows its last block.
    has_checksum: bool,
}

impl Unpacker {
    pub(super) fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Self { decoder, packed: Vec::new(), used: 0, frame: None, taken: 0, windows: 0, most: MOST_UNPACKED }
    }

    /// The next piece.
    pub(super) fn push(&mut self, packed: &[u8]) {
        self.packed.drain(..self.used);
        self.used = 0;
        self.packed.extend_from_slice(packed);
        self.most = self.most.saturating_add(packed.len() as u64 * MOST_UNPACKED_EACH);
    }

    /// Bytes unpacked so far, also those that can't be taken yet.
    pub(super) fn produced(&self) -> u64 {
        let held = self.frame.map_or(0, |frame| frame.window - frame.zeros);
        self.taken + held + self.decoder.can_collect() as u64
    }

    /// Unpacks a block if there is a whole one, and appends what can be taken to `out`. Whether there was one.
    pub(super) fn step(&mut self, out: &mut Vec<u8>) -> Result<bool, Damaged> {
        let packed = self.packed.get(self.used..).unwrap_or_default();
        let Some(frame) = self.frame else {
            let Some(header) = FrameHeader::parse(packed)? else { return Ok(false) };
            self.begin(&header)?;
            return Ok(true);
        };
        let Some(len) = block_len(packed, frame.has_checksum) else { return Ok(false) };
        let Some(block) = packed.get(..len) else { return Ok(false) };
        let is_last = decode(&mut self.decoder, block)?;
        self.used += len;
        self.collect(is_last, out)?;
        if self.produced() > self.most {
            return Err(Damaged("they become more than real ones of their length can".into()));
        }
        Ok(true)
    }

    /// Appends all there is, when no piece follows.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Damaged> {
        if let Some(frame) = self.frame {
            // A last block without bytes, and room for a checksum, which is not looked at.
            let end = [1, 0, 0, 0, 0, 0, 0];
            decode(&mut self.decoder, if frame.has_checksum { &end } else { &end[..3] })?;
            self.collect(true, out)?;
        }
        Ok(())
    }

    fn begin(&mut self, header: &FrameHeader) -> Result<(), Damaged> {
        let packed = self.packed.get(self.used..self.used + header.len).unwrap_or_default();
        self.decoder.reset(packed).map_err(damaged)?;
        self.used += header.len;
        let window = header.window;
        // `perf` writes one frame. Many small ones with large windows would cost time that nothing comes of.
        self.windows += window;
        if self.windows > 2 * MAX_WINDOW + self.taken {
            return Err(Damaged("there are more frames than they have bytes".into()));
        }
        let mut left = window;
        while left > 0 {
            let len = left.min(MAX_BLOCK) as u32;
            let [low, middle, high, _] = (len << 3 | RUN_OF_A_BYTE << 1).to_le_bytes();
            decode(&mut self.decoder, &[low, middle, high, 0])?;
            left -= u64::from(len);
        }
        self.frame = Some(Frame { window, zeros: window, has_checksum: header.has_checksum });
        Ok(())
    }

    /// Takes what the decoder gives away, without the zeros.
    fn collect(&mut self, is_end: bool, out: &mut Vec<u8>) -> Result<(), Damaged> {
        let Some(frame) = &mut self.frame else { return Ok(()) };
        frame.zeros -= std::io::copy(&mut self.decoder.by_ref().take(frame.zeros), &mut std::io::sink())?;
        self.taken += self.decoder.read_to_end(out)? as u64;
        if is_end {
            self.frame = None;
        }
        Ok(())
    }
}

/// Decodes one block. Whether it was its frame's last.
fn decode(decoder: &mut FrameDecoder, block: &[u8]) -> Result<bool, Damaged> {
    decoder.decode_blocks(block, BlockDecodingStrategy::UptoBlocks(1)).map_err(damaged)
}

fn damaged(error: impl std::fmt::Display) -> Damaged {
    Damaged(error.to_string())
}

/// Bytes of the block at the front of `packed`, with its header and what follows a last one; `None` if the header is
/// not whole.
fn block_len(packed: &[u8], has_checksum: bool) -> Option<usize> {
    let [low, middle, high] = *packed.first_chunk()?;
    let header = u32::from_le_bytes([low, middle, high, 0]);
    let content = if header >> 1 & 3 == RUN_OF_A_BYTE { 1 } else { header >> 3 };
    let checksum = if has_checksum && header & 1 != 0 { 4 } else { 0 };
    Some(3 + content as usize + checksum)
}

/// `RLE_Block`
const RUN_OF_A_BYTE: u32 = 1;

/// What is to be known of a frame's header.
struct FrameHeader {
    len: usize,
    window: u64,
    has_checksum: bool,
}

impl FrameHeader {
    /// `None` if it is not whole.
    fn parse(packed: &[u8]) -> Result<Option<Self>, Damaged> {
        const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
        let Some((magic, rest)) = packed.split_first_chunk() else { return Ok(None) };
        if *magic != MAGIC {
            return Err(Damaged(format!("a frame begins with {magic:02x?}")));
        }
        let Some((descriptor, rest)) = rest.split_first() else { return Ok(None) };
        let is_single_segment = descriptor & 1 << 5 != 0;
        let dictionary_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let size_len = match descriptor >> 6 {
            0 => usize::from(is_single_segment),
            power => 1 << power,
        };
        let window_len = usize::from(!is_single_segment);
        let fields_len = window_len + dictionary_len + size_len;
        let Some(fields) = rest.get(..fields_len) else { return Ok(None) };
        let window = if is_single_segment {
            let size = &fields[dictionary_len..];
            let size = size.iter().rev().fold(0, |size, &byte| size << 8 | u64::from(byte));
            if size_len == 2 { size + 256 } else { size }
        } else {
            let base = 1_u64 << (10 + (fields[0] >> 3));
            base + base / 8 * u64::from(fields[0] & 7)
        };
        if window > MAX_WINDOW {
            return Err(Damaged(format!("a frame needs a window of {window} bytes")));
        }
        let has_checksum = descriptor & 1 << 2 != 0;
        Ok(Some(Self { len: 5 + fields_len, window, has_checksum }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of 4 bytes, each of which is 128 KiB of one byte.
    #[test]
    fn what_becomes_too_much_is_refused() {
        const BLOCKS: usize = 8;
        let begin = [0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
        let packed = [&begin[..], &[2, 0, 0x10, 8].repeat(BLOCKS)].concat();
        for (most, blocks, is_read) in [(MOST_UNPACKED, BLOCKS, true), (300 << 10, 3, false)] {
            let mut unpacker = Unpacker { most, ..Unpacker::new() };
            unpacker.push(&packed);
            let mut out = Vec::new();
            let end = loop {
                match unpacker.step(&mut out) {
                    Ok(true) => {}
                    end => break end,
                }
            };
            assert_eq!((end.is_ok(), unpacker.produced()), (is_read, blocks as u64 * MAX_BLOCK));
        }
    }
}
