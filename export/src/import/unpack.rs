//! Bytes in that may be compressed by gzip, the uncompressed ones out, as far as a limit.

use std::borrow::Cow;
use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The most bytes that are uncompressed to see what a file is.
const MOST_OF_BEGIN: u64 = 1 << 14;

/// Uncompressed bytes of a file's beginning, as many as it has.
pub(super) fn begin(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.starts_with(&GZIP) {
        return Cow::Borrowed(bytes);
    }
    let mut plain = Vec::new();
    // It ends in the middle of what is compressed: what was there until then counts.
    let _ = MultiGzDecoder::new(bytes).take(MOST_OF_BEGIN).read_to_end(&mut plain);
    Cow::Owned(plain)
}

/// There is more than is read. It comes through readers, as what is behind an [`io::Error`].
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("it has more than {limit} {what}, which is the most that is read")]
pub(super) struct Beyond {
    /// Of what.
    pub(super) what: &'static str,
    /// The most that is read.
    pub(super) limit: u64,
}

/// An error with the place behind which it is; one that tells of a limit stays as it is.
pub(super) fn placed(error: io::Error, position: u64) -> io::Error {
    if let Some(within) = error.get_ref()
        && within.is::<Beyond>()
    {
        return error;
    }
    io::Error::new(error.kind(), format!("{error}, behind byte {position}"))
}

/// A file's bytes uncompressed. More than `limit` of them are an error that names it.
pub(super) fn unpacked<'a>(mut input: impl Read + 'a, limit: u64) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = Vec::with_capacity(GZIP.len());
    input.by_ref().take(GZIP.len() as u64).read_to_end(&mut start)?;
    let is_compressed = start == GZIP;
    let whole = BufReader::with_capacity(64 << 10, io::Cursor::new(start).chain(input));
    Ok(if is_compressed {
        Box::new(Limited { input: MultiGzDecoder::new(whole), left: limit, limit })
    } else {
        Box::new(Limited { input: whole, left: limit, limit })
    })
}

struct Limited<R> {
    input: R,
    left: u64,
    limit: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        let too_large = || Beyond { what: "bytes uncompressed", limit: self.limit };
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other(too_large()))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn the_limit_is_named() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&[7; 1000]).unwrap();
        let packed = packed.finish().unwrap();
        let read = |bytes: &[u8], limit| {
            let mut out = Vec::new();
            let read = unpacked(bytes, limit).unwrap().read_to_end(&mut out);
            read.map_err(|error| error.to_string())
        };
        for bytes in [&packed[..], &[7; 1000]] {
            assert_eq!(read(bytes, 1000), Ok(1000));
            assert!(read(bytes, 999).unwrap_err().contains("999 bytes"));
        }
        assert_eq!(&*begin(&packed), [7; 1000]);
        assert_eq!(&*begin(&packed[..1]), [0x1f]);
    }
}
