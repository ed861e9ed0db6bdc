//! Debug files: what distributions strip from the files that run, symbols and rarely `.debug_frame`. Which one is a file's
//! is told by its build id, or by a name and a checksum in its `.gnu_debuglink` (GDB's manual, "Separate Debug Files"). All paths are
//! below the root that is given.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Component, Path, PathBuf};

use collector_common::ids::BuildId;

use super::bounded::plausible_size;
use super::layout::{DebugLink, Layout};
use super::root::Root;
use crate::symbol_path::text;

/// Where distributions put debug files.
const FOLDER: &str = "/usr/lib/debug";

/// Of larger files no checksum is taken: more than the debug file of any program that distributions have, and seconds of reading.
const LARGEST: u64 = 4 << 30;

/// The debug file of the file with this build id: `/usr/lib/debug/.build-id/ab/cdef....debug`.
/// Of a container, it is taken if it says that it has this build id: another's files may have the same one.
pub(super) fn by_build_id(root: &Root, build_id: BuildId) -> Option<File> {
    let id = build_id.to_string();
    let (head, tail) = id.split_at_checked(2)?;
    let file = root.open(Path::new(&format!("{FOLDER}/.build-id/{head}/{tail}.debug")))?;
    (!root.is_other() || has_id(&file, build_id)).then_some(file)
}

fn has_id(file: &File, build_id: BuildId) -> bool {
    Layout::read(file).and_then(|layout| layout.build_id) == Some(build_id)
}

/// The debug file that a link in the file of this path names.
pub(super) fn by_link(root: &Root, path: &Path, link: &DebugLink) -> Option<File> {
    linked(root, path, Path::new(&text(&link.name)), link.checksum)
}

/// The file that the debug information of the file of this path is shared with (`dwz -m`), by what `.gnu_debugaltlink` says.
/// Whatever the path leads to, it is taken only if it has the build id.
pub(super) fn shared(root: &Root, path: &Path, link: &[u8], build_id: &[u8]) -> Option<File> {
    let build_id = BuildId::new(build_id)?;
    let link = PathBuf::from(text(link));
    // It is relative to the debug file, which is in any of some folders; there is one for all that are shared.
    let in_common = || {
        let mut folders = link.components();
        folders.by_ref().find(|folder| folder.as_os_str() == ".dwz")?;
        Some(Path::new(FOLDER).join(".dwz").join(folders.as_path()))
    };
    let beside = path.parent().filter(|folder| folder.is_absolute()).map(|folder| folder.join(&link));
    let is_right = |file: &File| has_id(file, build_id);
    let by_path =
        || [beside, in_common()].into_iter().flatten().find_map(|path| root.open(&path).filter(is_right));
    by_build_id(root, build_id).filter(is_right).or_else(by_path)
}

/// The file that debug information of the file of this path was split into, by the compiler's folder and the name it gave:
/// there, or beside the file.
pub(super) fn split(root: &Root, path: &Path, folder: &[u8], name: &[u8]) -> Option<File> {
    let (folder, name) = (PathBuf::from(text(folder)), PathBuf::from(text(name)));
    let compiled = Some(folder.join(&name)).filter(|path| path.is_absolute());
    let beside = path.parent().filter(|folder| folder.is_absolute()).zip(name.file_name());
    let beside = beside.map(|(folder, name)| folder.join(name));
    [compiled, beside].into_iter().flatten().find_map(|path| root.open(&path))
}

/// The file that all of these were packed into.
pub(super) fn package(root: &Root, path: &Path) -> Option<File> {
    let mut name = path.file_name()?.to_owned();
    name.push(".dwp");
    root.open(&Some(path.with_file_name(name)).filter(|path| path.is_absolute())?)
}

/// The file called `name` with this checksum: beside the file of this path, in `.debug` there, or in the same folder below
/// [`FOLDER`].
fn linked(root: &Root, path: &Path, name: &Path, checksum: u32) -> Option<File> {
    // A path would lead anywhere.
    if !matches!(*name.components().collect::<Vec<_>>(), [Component::Normal(_)]) {
        return None;
    }
    let folder = path.parent().filter(|folder| folder.is_absolute())?;
    let below_root = Path::new(FOLDER).join(folder.strip_prefix("/").ok()?);
    [folder, &folder.join(".debug"), &below_root].into_iter().find_map(|folder| {
        let file = root.open(&folder.join(name))?;
        (checksum_of(&file)? == checksum).then_some(file)
    })
}

/// CRC-32 of all of a file.
fn checksum_of(mut file: &File) -> Option<u32> {
    let size = file.metadata().ok()?.len();
    if size > LARGEST.min(plausible_size(file)) {
        return None;
    }
    let mut checksum = crc32fast::Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    let mut rest = file.take(size);
    loop {
        match rest.read(&mut buffer).ok()? {
            0 => break,
            length => checksum.update(buffer.get(..length)?),
        }
    }
    file.rewind().ok()?;
    Some(checksum.finalize())
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_link_is_a_name_in_a_folder_of_debug_files() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(folder.path().join("debug"), "123456789").unwrap();
        // CRC-32's check value is of these digits.
        let found = |program: &Path, name: &str| {
            linked(&Root::default(), program, Path::new(name), 0xcbf4_3926).is_some()
        };
        assert!(found(&folder.path().join("main"), "debug"));
        let absolute = folder.path().join("debug");
        for name in ["../debug", "", ".", "..", "inner/../debug", absolute.to_str().unwrap()] {
            assert!(!found(&inner.join("main"), name), "{name}");
        }
        assert!(!found(Path::new("main"), "debug"));
    }

    #[test]
    fn a_shared_file_has_the_build_id() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, program) = (Root::default(), folder.path().join("main"));
        let source = folder.path().join("main.c");
        std::fs::write(&source, "int main(void) { return 0; }").unwrap();
        let id = "0x00112233445566778899aabbccddeeff00112233";
        let option = format!("-Wl,--build-id={id}");
        let compile =
            std::process::Command::new("gcc").args([&option, "-o"]).args([&program, &source]).status();
        assert!(compile.unwrap().success());
        let id: Vec<u8> = (0..=255).step_by(0x11).chain((0..=0x33).step_by(0x11)).collect();
        assert!(shared(&ours, &program, b"main", &id).is_some());
        assert!(shared(&ours, Path::new("/nowhere/main"), program.as_os_str().as_bytes(), &id).is_some());
        assert!(shared(&ours, &program, b"main", &[1; 20]).is_none());
        assert!(shared(&ours, &program, b"main.c", &id).is_none());
        assert!(shared(&ours, Path::new("main"), b"main", &id).is_none());
    }

    #[test]
    fn a_split_file_is_where_it_was_made_or_beside_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, program) = (Root::default(), folder.path().join("main"));
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        for file in ["inner/made.dwo", "copied.dwo", "main.dwp"] {
            std::fs::write(folder.path().join(file), file).unwrap();
        }
        let folder = folder.path().as_os_str().as_bytes();
        let nowhere = Path::new("/nowhere/main");
        assert!(split(&ours, nowhere, folder, b"inner/made.dwo").is_some());
        assert!(split(&ours, &program, b"/nowhere", b"out/copied.dwo").is_some());
        assert!(split(&ours, nowhere, b"", b"inner/made.dwo").is_none());
        assert!(split(&ours, nowhere, folder, b"inner").is_none(), "a folder is no file");
        assert!(package(&ours, &program).is_some() && package(&ours, &inner).is_none());
    }
}
