//! The path of an image of Windows and what its header says in, its file out: beside a dump, where it was (on Windows at its path, elsewhere where
//! Wine has that), or in the folders of `_NT_SYMBOL_PATH`, as symbol servers have it (`NAME/TIMESTAMPSIZE/NAME`) or as it is. A file counts if
//! its header has the size and the date that are told. Where no date is, it counts where the image was, if its header has the size and the checksum.

use std::cell::RefCell;
use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use collector_common::intern::Seeded;
use collector_common::record::ImageHeader;

use crate::modules::{is_loaded, open_chosen, open_regular};
use crate::symbol_path::{SymbolPlaces, VARIABLE, text};
use crate::this_machine::is_local;

/// Images of a recording of ETW that are looked for at most: each in up to three places of this machine and eight of each folder of
/// `_NT_SYMBOL_PATH`, which may be on a server. They are not kept open. `net.4.5.2.x64.etl` has 709 files in 33 processes, fewer of them on stacks.
pub(crate) const MOST_IMAGES: usize = 1 << 12;

/// Where the image with a path and a header is, if it is here.
type Known = HashMap<(Box<str>, ImageHeader), Option<PathBuf>, Seeded>;

/// Where images are looked for.
#[derive(Debug)]
pub(crate) struct ImagePlaces {
    /// That of the dump.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) symbol_path: OsString,
    /// Of Wine, with a link for each drive.
    drives: Option<PathBuf>,
    /// Where those are that were looked for before.
    known: RefCell<Known>,
}

impl ImagePlaces {
    /// Those of the environment, and the folder of a dump.
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        let prefix = env::var_os("WINEPREFIX").filter(|prefix| !prefix.is_empty()).map(PathBuf::from);
        let prefix = prefix.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".wine")));
        let drives = prefix.filter(|_| cfg!(unix)).map(|prefix| prefix.join("dosdevices"));
        let symbol_path = env::var_os(VARIABLE).unwrap_or_default();
        Self { folder: folder.map(Path::to_owned), symbol_path, drives, known: RefCell::default() }
    }

    /// The image's file and its place, if it is the one that was loaded. None by its size alone.
    pub(crate) fn find(&self, path: &str, told: ImageHeader) -> Option<(File, PathBuf)> {
        let image = (path.into(), told);
        if let Some(place) = self.known.borrow().get(&image) {
            let file = open_chosen(place.as_ref()?).filter(|file| is_loaded(file, told))?;
            return Some((file, place.clone()?));
        }
        let found = self.look_for(path, told);
        self.known.borrow_mut().insert(image, found.as_ref().map(|(_, place)| place.clone()));
        found
    }

    fn look_for(&self, path: &str, told: ImageHeader) -> Option<(File, PathBuf)> {
        let key = match told {
            ImageHeader::Dated(key) => Some(key),
            ImageHeader::Summed { .. } => None,
            ImageHeader::Sized(_) => return None,
        };
        let name = path.rsplit(['\\', '/']).next()?;
        let small = name.to_ascii_lowercase();
        let chosen = |path: PathBuf| Some((open_chosen(&path).filter(|file| is_loaded(file, told))?, path));
        let names = [name, small.as_str()].map(|name| text(name.as_bytes()));
        let is_name = |name: &OsString| Path::new(name).file_name() == Some(name.as_os_str());
        let mut names: Vec<OsString> = names.into_iter().filter(is_name).collect();
        names.dedup();
        let folder = self.folder.as_ref();
        let beside = folder.and_then(|folder| names.iter().map(|name| folder.join(name)).find_map(chosen));
        let in_folders = || {
            let key = key?;
            let stored = names.iter().filter_map(|name| SymbolPlaces::of_image(name, key, &self.symbol_path));
            stored.flat_map(|it| it.stored.into_iter().chain(it.plain)).find_map(chosen)
        };
        let here = || self.here(path).find_map(|path| Some((open_at(&path, told)?, path)));
        beside.or_else(here).or_else(in_folders)
    }

    /// Where a path of Windows may lead on this machine.
    fn here(&self, path: &str) -> impl Iterator<Item = PathBuf> {
        let of_wine = self.drives.as_ref().and_then(|drives| of_wine(drives, path));
        std::iter::once(PathBuf::from(path)).chain(of_wine.into_iter().flatten())
    }
}

/// The image at a path that a recording tells, if it is on a disk of this machine and the one that was loaded.
pub(crate) fn open_at(path: &Path, told: ImageHeader) -> Option<File> {
    let is_here = path.is_absolute() && is_local(path);
    is_here.then(|| open_regular(path)).flatten().filter(|file| is_loaded(file, told))
}

/// Where Wine has a path, which it may have been told in other letters.
fn of_wine(drives: &Path, path: &str) -> Option<[PathBuf; 2]> {
    let (drive, rest) = path.split_at_checked(2)?;
    let is_drive = drive.starts_with(|letter: char| letter.is_ascii_alphabetic()) && drive.ends_with(':');
    let rest = rest.strip_prefix(['\\', '/']).filter(|_| is_drive)?;
    let path = |rest: &str| {
        let mut path = drives.join(drive.to_ascii_lowercase());
        path.extend(rest.split(['\\', '/']));
        path
    };
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    rest.split(['\\', '/']).all(is_plain).then(|| [path(rest), path(&rest.to_ascii_lowercase())])
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;

    use collector_common::record::ImageKey;

    use super::*;

    /// Bytes that are just enough of an image to have a date and a size.
    fn image(key: ImageKey) -> Vec<u8> {
        let mut bytes = vec![0; 0x200];
        let mut put = |at: usize, part: &[u8]| bytes[at..][..part.len()].copy_from_slice(part);
        put(0, b"MZ");
        put(0x3c, &0x40_u32.to_le_bytes());
        put(0x40, b"PE\0\0");
        put(0x44, &[0x64, 0x86]);
        put(0x48, &key.date.to_le_bytes());
        // `SizeOfOptionalHeader` with 16 directories, and its mark, its `SizeOfImage` and how many directories there are.
        put(0x54, &240_u16.to_le_bytes());
        put(0x58, &[0x0b, 0x02]);
        put(0x58 + 56, &key.size.to_le_bytes());
        put(0x58 + 108, &16_u32.to_le_bytes());
        bytes
    }

    #[test]
    fn what_was_looked_for_is_not_looked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut places = ImagePlaces::new(None);
        places.symbol_path = folder.path().into();
        let key = ImageKey { date: 5, size: 0x9000 };
        let is_there = |name: &str, told: ImageHeader| places.find(name, told).is_some();
        fs::write(folder.path().join("a.dll"), image(key)).unwrap();
        assert!(is_there(r"C:\a.dll", key.into()));
        assert!(!is_there(r"C:\a.dll", ImageKey { date: 6, ..key }.into()));
        for told in [ImageHeader::Summed { checksum: 1, size: key.size }, ImageHeader::Sized(key.size)] {
            assert!(!is_there(r"C:\a.dll", told), "nothing in folders without a date");
        }
        assert!(!is_there(r"C:\b.dll", key.into()));
        fs::write(folder.path().join("b.dll"), image(key)).unwrap();
        assert!(!is_there(r"C:\b.dll", key.into()) && is_there(r"D:\b.dll", key.into()));
        // What is known is opened again, and is no other file by then.
        fs::write(folder.path().join("a.dll"), image(ImageKey { date: 6, ..key })).unwrap();
        assert!(!is_there(r"C:\a.dll", key.into()));
    }

    #[test]
    fn paths_of_windows_lead_to_where_wine_has_them() {
        let found = |path| of_wine(Path::new("/w/dosdevices"), path);
        let paths = ["/w/dosdevices/c:/Windows/A.dll", "/w/dosdevices/c:/windows/a.dll"].map(PathBuf::from);
        assert_eq!(found(r"C:\Windows\A.dll"), Some(paths));
        for other in ["", "C:", r"C:\..\x", r"C:\a\\x", r"\\server\x", "/x/y", r"\Device\x", "é:\\x"] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
