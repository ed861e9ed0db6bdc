//! A file that is packed by xz, zstd or gzip in, a file without a name with what is in it out.
//!
//! Sources: RFC 8878 (zstd) and RFC 1952 (gzip) for what may stand behind each other in one file.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};
use std::num::NonZeroUsize;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use xz4rust::{XzDecoder, XzReader};

/// What unpacks to more is damaged: the largest modules of kernels have some hundred MiB with their DWARF.
const MOST_UNPACKED: u64 = 1 << 30;

/// The dictionary of `xz -9`, the largest preset. Kernels unpack modules with one of 1 or 2 MiB (`scripts/Makefile.modinst`).
const MOST_DICTIONARY: usize = 64 << 20;

/// The window of `zstd --ultra -22`, the largest preset.
const MOST_WINDOW: u64 = 128 << 20;

const BUFFER: NonZeroUsize = NonZeroUsize::new(64 << 10).unwrap();

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Xz,
    Zstd,
    Gzip,
}

impl Packing {
    pub(super) const ALL: [Self; 3] = [Self::Xz, Self::Zstd, Self::Gzip];

    /// What it adds to the name of a file.
    pub(super) const fn ending(self) -> &'static str {
        match self {
            Self::Xz => ".xz",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    /// Unpacks a file beside, where temporary files are, as whoever reads symbols looks here and there in it. The file is gone when
    /// it is closed.
    ///
    /// # Errors
    /// When it is not packed so, is damaged, unpacks to more than 1 GiB, or there is no room for it.
    pub(super) fn unpack(self, packed: File) -> io::Result<File> {
        self.unpack_to(packed, MOST_UNPACKED)
    }

    fn unpack_to(self, packed: File, limit: u64) -> io::Result<File> {
        let mut file = tempfile::tempfile()?;
        // One byte more tells that there is one.
        let unpacked = match self {
            Self::Xz => {
                let decoder = XzDecoder::in_heap_with_alloc_dict_size(0, MOST_DICTIONARY);
                let reader = XzReader::new_with_buffer_size_and_decoder(packed, BUFFER, decoder);
                io::copy(&mut reader.take(limit + 1), &mut file)?
            }
            Self::Zstd => unpack_frames(packed, limit + 1, &mut file)?,
            Self::Gzip => {
                let reader = MultiGzDecoder::new(BufReader::with_capacity(BUFFER.get(), packed));
                io::copy(&mut reader.take(limit + 1), &mut file)?
            }
        };
        if unpacked > limit {
            return Err(io::Error::other(format!("it unpacks to more than {limit} bytes")));
        }
        file.rewind()?;
        Ok(file)
    }
}

/// Unpacks frames of zstd, one behind the other, up to a number of bytes; gives how many there are.
fn unpack_frames(packed: File, limit: u64, out: &mut File) -> io::Result<u64> {
    let mut packed = BufReader::with_capacity(BUFFER.get(), packed);
    // One for all frames, whose memory it uses again: an empty one costs no more than its bytes.
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(MOST_WINDOW);
    let mut unpacked = 0;
    let mut is_first = true;
    while unpacked < limit && (is_first || !packed.fill_buf()?.is_empty()) {
        is_first = false;
        match StreamingDecoder::new_with_decoder(&mut packed, &mut decoder) {
            Ok(frame) => unpacked += io::copy(&mut frame.take(limit - unpacked), out)?,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let length = u64::from(length);
                if io::copy(&mut packed.by_ref().take(length), &mut io::sink())? < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        let told = decoder.get_checksum_from_data().filter(|_| decoder.is_finished());
        if told.is_some() && told != decoder.get_calculated_checksum() {
            return Err(io::Error::other("it has another checksum than it says"));
        }
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    /// A file that its own program packs.
    fn packed(packing: Packing, path: &Path, options: &[&str]) -> File {
        let program = match packing {
            Packing::Xz => "xz",
            Packing::Zstd => "zstd",
            Packing::Gzip => "gzip",
        };
        let place = path.with_extension(&packing.ending()[1..]);
        let out = Stdio::from(File::create(&place).unwrap());
        let packer = Command::new(program).args(options).arg("-c").arg(path).stdout(out).status();
        assert!(packer.unwrap().success());
        File::open(place).unwrap()
    }

    fn read(mut file: File) -> Vec<u8> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        let bytes: Vec<u8> = (0..300_000_u32).flat_map(|word| (word / 7).to_le_bytes()).collect();
        std::fs::write(&path, &bytes).unwrap();
        // As kernels are built, as packages are, and with what makes most of it.
        let all: [(_, &[&[&str]]); 3] = [
            (
                Packing::Xz,
                &[&["--check=crc32", "--lzma2=dict=1MiB"], &["-9e"], &["-1", "--block-size=100000"]],
            ),
            (
                Packing::Zstd,
                &[&["-q"], &["-q", "-19", "-T2"], &["-q", "--ultra", "-22"], &["-q", "--no-check"]],
            ),
            (Packing::Gzip, &[&["-n"], &["-9"], &["-1"]]),
        ];
        for (packing, options) in all {
            for options in options {
                let unpacked = packing.unpack(packed(packing, &path, options)).unwrap();
                assert!(read(unpacked) == bytes, "{packing:?} {options:?}");
            }
            let whole = read(packed(packing, &path, &["-q"]));
            let mut wrong = whole.clone();
            // In the checksum of zstd, and in what is at the end of the others.
            *wrong.last_mut().unwrap() ^= 1;
            for damaged in [&bytes[..], &whole[..whole.len() / 2], &wrong, &[]] {
                std::fs::write(&path, damaged).unwrap();
                let unpacked = packing.unpack(File::open(&path).unwrap());
                assert!(unpacked.is_err(), "{packing:?}: {} bytes", damaged.len());
            }
            std::fs::write(&path, &bytes).unwrap();
        }
    }

    /// Of zstd with one between that is to be skipped, as `pzstd` writes it.
    #[test]
    fn several_in_one_file_are_one_behind_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        std::fs::write(&path, "0123456789".repeat(1000)).unwrap();
        let skipped = [&0x184d_2a50_u32.to_le_bytes()[..], &4_u32.to_le_bytes(), b"skip"].concat();
        for (packing, between) in [(Packing::Zstd, &skipped[..]), (Packing::Zstd, &[]), (Packing::Gzip, &[])]
        {
            let one = read(packed(packing, &path, &["-q"]));
            let twice = folder.path().join("twice");
            let place = |end| std::fs::write(&twice, [&one, between, &one[..end]].concat()).unwrap();
            place(one.len());
            let unpacked = packing.unpack(File::open(&twice).unwrap()).unwrap();
            assert!(read(unpacked) == "0123456789".repeat(2000).as_bytes(), "{packing:?}");
            place(one.len() - 1);
            assert!(packing.unpack(File::open(&twice).unwrap()).is_err(), "{packing:?}");
        }
        std::fs::write(&path, &skipped[..skipped.len() - 1]).unwrap();
        assert!(Packing::Zstd.unpack(File::open(&path).unwrap()).is_err());
    }

    #[test]
    fn what_unpacks_to_more_than_the_limit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeros");
        File::create(&path).unwrap().set_len(5_000_000).unwrap();
        for packing in Packing::ALL {
            let unpack = |limit| packing.unpack_to(packed(packing, &path, &["-1qf"]), limit);
            assert_eq!(unpack(5_000_000).unwrap().metadata().unwrap().len(), 5_000_000);
            let refused = unpack(4_999_999).unwrap_err();
            assert!(refused.to_string().contains("more than 4999999 bytes"), "{packing:?}: {refused}");
        }
    }

    /// A header that wants 256 MiB, of which nothing follows.
    #[test]
    fn a_larger_window_than_any_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("window");
        // Magic, no content size, 2 to the power of 10 + 18, and an empty last block.
        std::fs::write(&path, [0x28, 0xb5, 0x2f, 0xfd, 0, 18 << 3, 1, 0, 0]).unwrap();
        let refused = Packing::Zstd.unpack(File::open(&path).unwrap()).unwrap_err();
        assert!(refused.to_string().contains("indow"), "{refused}");
        std::fs::write(&path, [0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3, 1, 0, 0]).unwrap();
        assert!(read(Packing::Zstd.unpack(File::open(&path).unwrap()).unwrap()).is_empty());
    }
}
