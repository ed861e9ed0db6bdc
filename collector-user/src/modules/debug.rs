//! Debug files: what distributions strip from the files that run, symbols and rarely `.debug_frame`. Which one is a file's
//! is told by its build id, or by a name and a checksum in its `.gnu_debuglink` (GDB's manual, "Separate Debug Files").

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use collector_common::ids::BuildId;

use super::bounded::plausible_size;
use super::layout::DebugLink;
use super::open::open_regular;

/// Where distributions put debug files.
const ROOT: &str = "/usr/lib/debug";

/// Of larger files no checksum is taken, for that takes seconds.
const LARGEST: u64 = 1 << 30;

/// The debug file of the file with this build id: `/usr/lib/debug/.build-id/ab/cdef....debug`.
pub(super) fn by_build_id(build_id: BuildId) -> Option<File> {
    let id = build_id.to_string();
    let (head, tail) = id.split_at_checked(2)?;
    open_regular(Path::new(&format!("{ROOT}/.build-id/{head}/{tail}.debug")))
}

/// The debug file that a link in the file of this path names.
pub(super) fn by_link(path: &Path, link: &DebugLink) -> Option<File> {
    linked(path, Path::new(OsStr::from_bytes(&link.name)), link.checksum)
}

/// The file called `name` with this checksum: beside the file of this path, in `.debug` there, or in the same folder below
/// [`ROOT`].
fn linked(path: &Path, name: &Path, checksum: u32) -> Option<File> {
    // A path would lead anywhere.
    if !matches!(*name.components().collect::<Vec<_>>(), [Component::Normal(_)]) {
        return None;
    }
    let folder = path.parent().filter(|folder| folder.is_absolute())?;
    let below_root = Path::new(ROOT).join(folder.strip_prefix("/").ok()?);
    [folder, &folder.join(".debug"), &below_root].into_iter().find_map(|folder| {
        let file = open_regular(&folder.join(name))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_name_in_a_folder_of_debug_files() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(folder.path().join("debug"), "123456789").unwrap();
        // CRC-32's check value is of these digits.
        let found = |program: &Path, name: &str| linked(program, Path::new(name), 0xcbf4_3926).is_some();
        assert!(found(&folder.path().join("main"), "debug"));
        let absolute = folder.path().join("debug");
        for name in ["../debug", "", ".", "..", "inner/../debug", absolute.to_str().unwrap()] {
            assert!(!found(&inner.join("main"), name), "{name}");
        }
        assert!(!found(Path::new("main"), "debug"));
    }
}
