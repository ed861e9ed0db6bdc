//! The hash that ties a compiled eBPF object to the sources it was made from.
//!
//! In: the top folder of a checkout. Out: 16 hexadecimal digits over everything the object depends on: the eBPF
//! crate's sources, manifest and lock file, the wire types it shares with user space, and the recipe it was
//! built by. `cargo xtask build-ebpf` writes the hash beside the object; the build script of `collector-user`
//! computes it again and notices a stale object. Both include this file, so it uses nothing but `std`.
//!
//! The function is FNV-1a with 64 bits (offset basis and prime as published by Fowler, Noll and Vo): it tells
//! apart versions of one's own sources and is no defence against forgery.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What goes into the object, relative to the top folder. Folders are taken with all that is below them.
const INPUTS: [&str; 5] = [
    "collector-common/src/wire",
    "collector-ebpf/Cargo.lock",
    "collector-ebpf/Cargo.toml",
    "collector-ebpf/build.rs",
    "collector-ebpf/src",
];

/// Raise when `cargo xtask build-ebpf` compiles the same sources in another way.
const RECIPE: &str = "1";

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The hash of the sources below `top`. An input that is absent counts as empty, any other failure is an error.
pub(crate) fn source_hash(top: &Path) -> io::Result<String> {
    let mut hash = OFFSET_BASIS;
    feed(&mut hash, RECIPE.as_bytes());
    for file in source_files(top)? {
        let relative = file.strip_prefix(top).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        feed(&mut hash, relative.as_bytes());
        feed(&mut hash, &fs::read(&file)?);
    }
    Ok(format!("{hash:016x}"))
}

/// Every file that is hashed, sorted by its path.
pub(crate) fn source_files(top: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for input in INPUTS {
        collect(&top.join(input), &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let kind = match fs::metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if kind.is_file() {
        files.push(path.to_path_buf());
    } else if kind.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    }
    Ok(())
}

/// One part of the input; its length goes first, so that bytes can't move from one part into the next unnoticed.
fn feed(hash: &mut u64, part: &[u8]) {
    for byte in (part.len() as u64).to_le_bytes().iter().chain(part) {
        *hash = (*hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
}
