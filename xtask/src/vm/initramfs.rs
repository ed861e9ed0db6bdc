//! What a kernel starts from: busybox, a script, and the modules that reach the machine's own files.
//!
//! In: an extracted kernel package. Out: a cpio archive of the kind `newc`, as `Documentation/driver-api/early-userspace/
//! buffer-format.rst` has it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

/// What a kernel needs to share folders with its host, each after those it needs, and the loop devices that tests read from.
/// Kernels have some of them built in.
const MODULES: [&str; 11] = [
    "virtio",
    "virtio_ring",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "netfs",
    "fscache",
    "9pnet",
    "9pnet_virtio",
    "9p",
    "loop",
];

const INIT: &str = include_str!("init.sh");

const FILE: u32 = 0o100_755;
const FOLDER: u32 = 0o040_755;

/// The archive for the kernel in `folder`.
pub(super) fn pack(folder: &Path) -> Result<Vec<u8>> {
    let busybox = command::find_program("busybox").context("busybox is not on PATH")?;
    let mut archive = Vec::new();
    entry(&mut archive, "init", FILE, INIT.as_bytes());
    entry(&mut archive, "bin", FOLDER, &[]);
    entry(&mut archive, "bin/busybox", FILE, &read(&busybox)?);
    entry(&mut archive, "modules", FOLDER, &[]);
    let files = files_below(folder)?;
    for (number, module) in MODULES.iter().enumerate() {
        let names = [format!("{module}.ko"), format!("{module}.ko.xz")];
        let is_it = |file: &&PathBuf| names.iter().any(|name| file.ends_with(name));
        let Some(file) = files.iter().find(is_it) else { continue };
        // The shell goes through them in the order of their names.
        entry(&mut archive, &format!("modules/{number:02}-{module}.ko"), FILE, &module_of(file)?);
    }
    entry(&mut archive, "TRAILER!!!", 0, &[]);
    Ok(archive)
}

/// The kernel's image in `folder`.
pub(super) fn image(folder: &Path) -> Result<PathBuf> {
    let is_image = |file: &PathBuf| {
        file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("vmlinuz"))
    };
    let found = files_below(folder)?.into_iter().find(is_image);
    found.with_context(|| {
        format!("{} has no image of a kernel in it; remove it to fetch it anew", folder.display())
    })
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("{} can't be read", folder.display()))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    Ok(files)
}

/// A module, unpacked.
fn module_of(file: &Path) -> Result<Vec<u8>> {
    if file.extension().is_none_or(|ending| ending != "xz") {
        return read(file);
    }
    let output = Command::new("xz").args(["--decompress", "--stdout"]).arg(file).output();
    let output = output.context("`xz` can't be started")?;
    anyhow::ensure!(output.status.success(), "{} can't be unpacked", file.display());
    Ok(output.stdout)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("{} can't be read", file.display()))
}

/// Adds a file or folder: a header of eight-digit numbers, the name with a NUL, and what is in it; name and content each to
/// a multiple of four bytes.
fn entry(archive: &mut Vec<u8>, name: &str, mode: u32, content: &[u8]) {
    let name_len = name.len() + 1;
    // Inode, mode, owner, group, links, time, size, device and that of a special file (major, minor), name's length, sum.
    let numbers = [0, mode as usize, 0, 0, 1, 0, content.len(), 0, 0, 0, 0, name_len, 0];
    archive.extend_from_slice(b"070701");
    for number in numbers {
        archive.extend_from_slice(format!("{number:08x}").as_bytes());
    }
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    align(archive);
    archive.extend_from_slice(content);
    align(archive);
}

fn align(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_as_long_as_its_parts() {
        let mut archive = Vec::new();
        entry(&mut archive, "init", FILE, b"hello");
        // A header of 110 bytes, `init` and a NUL: 115, then 116; 5 bytes: 121, then 124.
        assert_eq!(archive.len(), 124);
        assert!(archive.starts_with(b"07070100000000000081ed"));
        assert_eq!(&archive[110..116], b"init\0\0");
        assert_eq!(&archive[116..], b"hello\0\0\0");
    }
}
