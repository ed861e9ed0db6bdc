//! A .NET program that is in one file with its runtime: another assembly in the place of its own.
//!
//! The place of the list of files is in front of a mark (`Bundle/Manifest.cs` and `FileEntry.cs` of `Microsoft.NET.HostModel`, version 6):
//! versions, the number of files, an identifier, where two of the files are and 64 bits of flags; then of each file where it is, its
//! size, its size if it is compressed, its type and its path. Numbers are little-endian, lengths of texts LEB128.

use anyhow::{Context, Result, ensure};

/// The SHA-256 of `.net core bundle`.
const MARK: [u8; 32] = [
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13,
    0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
];

/// Puts a file in the place of one that is not smaller. What is left of that becomes zeros: an assembly says itself where it ends.
pub(super) fn replace(bundle: &mut [u8], path: &str, file: &[u8]) -> Result<()> {
    let mark = bundle.windows(MARK.len()).position(|bytes| bytes == MARK).context("it is no bundle")?;
    let start = Reader { rest: bundle.get(mark - 8..).context("it is no bundle")? }.number(8)?;
    let mut list = Reader { rest: bundle.get(start..).context("its list of files is not in it")? };
    ensure!(list.number(4)? == 6, "its list of files has another version");
    let (_minor, files) = (list.number(4)?, list.number(4)?);
    list.text()?;
    list.take(5 * 8)?;
    for _ in 0..files {
        let (offset, size, compressed, _kind) =
            (list.number(8)?, list.number(8)?, list.number(8)?, list.number(1)?);
        if list.text()? != path.as_bytes() {
            continue;
        }
        ensure!(compressed == 0 && file.len() <= size, "{path} is compressed, or smaller");
        let place = bundle.get_mut(offset..offset + size).with_context(|| format!("{path} is not in it"))?;
        place.fill(0);
        place[..file.len()].copy_from_slice(file);
        return Ok(());
    }
    anyhow::bail!("there is no {path} in it")
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(size).context("its list of files ends too early")?;
        self.rest = rest;
        Ok(bytes)
    }

    fn number(&mut self, size: usize) -> Result<usize> {
        let bytes = self.take(size)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    fn text(&mut self) -> Result<&'a [u8]> {
        let mut length = 0;
        for shift in (0..28).step_by(7) {
            let byte = self.number(1)?;
            length |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two files of eight bytes behind 16 of the host, and their list.
    fn made() -> Vec<u8> {
        let mut bytes = [&[0; 16], &b"11111111"[..], b"22222222"].concat();
        let list = bytes.len() as u64;
        bytes.extend([6_u32, 0, 2].map(u32::to_le_bytes).concat());
        bytes.extend(b"\x02id");
        bytes.extend([0; 40]);
        for (offset, path) in [(16_u64, "a.dll"), (24, "b.dll")] {
            bytes.extend([offset, 8, 0].map(u64::to_le_bytes).concat());
            bytes.extend([1, path.len() as u8]);
            bytes.extend(path.as_bytes());
        }
        bytes.extend(list.to_le_bytes());
        bytes.extend(MARK);
        bytes
    }

    #[test]
    fn one_file_is_replaced() -> Result<()> {
        let mut bytes = made();
        replace(&mut bytes, "b.dll", b"new")?;
        assert_eq!(bytes[16..32], *b"11111111new\0\0\0\0\0");
        assert_eq!(bytes[32..], made()[32..]);
        assert!(replace(&mut bytes, "c.dll", b"new").is_err());
        assert!(replace(&mut bytes, "a.dll", b"too large").is_err());
        let length = bytes.len();
        bytes[length - 40] = 0xff;
        assert!(replace(&mut bytes, "a.dll", b"new").is_err());
        Ok(())
    }
}
