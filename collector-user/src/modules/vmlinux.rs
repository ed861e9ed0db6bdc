//! The image of the kernel that runs, where its debug package or a build of it has left one: with its DWARF, by build id.

use std::fs::File;
use std::path::{Path, PathBuf};

use collector_common::ids::BuildId;
use object::elf::{FileHeader64, SHT_SYMTAB};
use object::read::elf::{FileHeader, Sym as _};
use object::{Endianness, ReadRef};

use super::bounded::{BoundedFile, UNWIND_SECTIONS};
use super::layout::Layout;
use super::open::open_regular;
use crate::capture::kernel::{beginning, build_id};

/// The image, and how far the kernel lies above where it was linked (KASLR), wrapping.
pub(crate) fn find() -> Option<(File, u64)> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let image = open(Path::new("/"), &release, build_id()?)?;
    let moved = moved(&image)?;
    Some((image, moved))
}

/// How far the kernel that runs lies above where an image of it was linked.
pub(crate) fn moved(image: &File) -> Option<u64> {
    let (symbol, address) = beginning()?;
    Some(address.wrapping_sub(address_of(&BoundedFile::new(image, UNWIND_SECTIONS), symbol.as_bytes())?))
}

/// Where distributions and builds put it. What is there is taken if it has the build id of the kernel that runs.
fn open(root: &Path, release: &str, id: BuildId) -> Option<File> {
    let hex = id.to_string();
    let (head, tail) = hex.split_at_checked(2)?;
    let places: [PathBuf; 6] = [
        format!("usr/lib/debug/.build-id/{head}/{tail}.debug").into(),
        format!("usr/lib/debug/boot/vmlinux-{release}").into(),
        format!("usr/lib/debug/lib/modules/{release}/vmlinux").into(),
        format!("usr/lib/debug/lib/modules/{release}/vmlinux.debug").into(),
        format!("boot/vmlinux-{release}").into(),
        format!("lib/modules/{release}/build/vmlinux").into(),
    ];
    let is_same = |file: &File| Layout::read(file).and_then(|layout| layout.build_id) == Some(id);
    places.iter().find_map(|place| open_regular(&root.join(place)).filter(is_same))
}

/// The address of a symbol.
fn address_of<'d, R: ReadRef<'d>>(data: R, name: &[u8]) -> Option<u64> {
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let symbols = header.sections(endian, data).ok()?.symbols(endian, data, SHT_SYMTAB).ok()?;
    let mut found = symbols.iter().filter(|symbol| symbols.symbol_name(endian, symbol) == Ok(name));
    found.next().map(|symbol| symbol.st_value(endian))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn an_image_counts_by_its_build_id_and_tells_where_it_was_linked() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("kernel.c");
        fs::write(&source, "void _stext(void) {} void _start(void) {}").unwrap();
        let image = folder.path().join("usr/lib/debug/boot/vmlinux-6.1.0-9-amd64");
        fs::create_dir_all(image.parent().unwrap()).unwrap();
        let options = ["-nostdlib", "-static", "-Wl,--build-id=0xabcdef0123", "-Wl,-Ttext=0x81000000", "-o"];
        assert!(Command::new("gcc").args(options).args([&image, &source]).status().unwrap().success());
        let id = |bytes: &[u8]| BuildId::new(bytes).unwrap();
        let found = open(folder.path(), "6.1.0-9-amd64", id(&[0xab, 0xcd, 0xef, 1, 0x23])).unwrap();
        let linked = address_of(&BoundedFile::new(&found, UNWIND_SECTIONS), b"_stext");
        assert_eq!(linked, Some(0x8100_0000));
        assert_eq!(address_of(&BoundedFile::new(&found, UNWIND_SECTIONS), b"_etext_of_none"), None);
        assert!(open(folder.path(), "6.1.0-9-amd64", id(&[1; 20])).is_none());
        assert!(open(folder.path(), "6.1.0-10-amd64", id(&[0xab, 0xcd, 0xef, 1, 0x23])).is_none());
    }
}
