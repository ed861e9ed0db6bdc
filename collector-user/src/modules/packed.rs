//! A file that is packed by xz in, a file without a name with what is in it out.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::num::NonZeroUsize;

use xz4rust::{XzDecoder, XzReader};

/// What unpacks to more is damaged: the largest modules of kernels have some hundred MiB with their DWARF.
const MOST_UNPACKED: u64 = 1 << 30;

/// The dictionary of `xz -9`, the largest preset. Kernels unpack modules with one of 1 or 2 MiB (`scripts/Makefile.modinst`).
const MOST_DICTIONARY: usize = 64 << 20;

const BUFFER: NonZeroUsize = NonZeroUsize::new(64 << 10).unwrap();

/// Unpacks a file beside, where temporary files are, as whoever reads symbols looks here and there in it. The file is gone when
/// it is closed.
///
/// # Errors
/// When it is not packed by xz, is damaged, unpacks to more than 1 GiB, or there is no room for it.
pub(super) fn unpack(packed: File) -> io::Result<File> {
    unpack_to(packed, MOST_UNPACKED)
}

fn unpack_to(packed: File, limit: u64) -> io::Result<File> {
    let decoder = XzDecoder::in_heap_with_alloc_dict_size(0, MOST_DICTIONARY);
    let reader = XzReader::new_with_buffer_size_and_decoder(packed, BUFFER, decoder);
    let mut file = tempfile::tempfile()?;
    if io::copy(&mut reader.take(limit + 1), &mut file)? > limit {
        return Err(io::Error::other(format!("it unpacks to more than {limit} bytes")));
    }
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    /// A file that xz packs.
    fn packed(path: &Path, options: &[&str]) -> File {
        let out = File::create(path.with_extension("xz")).unwrap();
        let xz = Command::new("xz").args(options).arg("-c").arg(path).stdout(Stdio::from(out)).status();
        assert!(xz.unwrap().success());
        File::open(path.with_extension("xz")).unwrap()
    }

    #[test]
    fn what_xz_packs_is_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        let bytes: Vec<u8> = (0..300_000_u32).flat_map(|word| (word / 7).to_le_bytes()).collect();
        std::fs::write(&path, &bytes).unwrap();
        // As kernels are built, as a package is, and of several blocks.
        for options in [&["--check=crc32", "--lzma2=dict=1MiB"][..], &["-9e"], &["-1", "--block-size=100000"]]
        {
            let mut unpacked = Vec::new();
            unpack(packed(&path, options)).unwrap().read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == bytes, "{options:?}");
        }
        let whole = std::fs::read(path.with_extension("xz")).unwrap();
        for damaged in [&bytes[..], &whole[..whole.len() / 2], &[]] {
            std::fs::write(&path, damaged).unwrap();
            assert!(unpack(File::open(&path).unwrap()).is_err(), "{} bytes", damaged.len());
        }
    }

    #[test]
    fn what_unpacks_to_more_than_the_limit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeros");
        File::create(&path).unwrap().set_len(5_000_000).unwrap();
        assert_eq!(
            unpack_to(packed(&path, &["-0"]), 5_000_000).unwrap().metadata().unwrap().len(),
            5_000_000
        );
        let refused = unpack_to(packed(&path, &["-0f"]), 4_999_999).unwrap_err();
        assert!(refused.to_string().contains("more than 4999999 bytes"), "{refused}");
    }
}
