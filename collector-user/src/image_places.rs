//! The path of an image of Windows and what its header says in, its file out: beside a dump, where it was (on Windows at its path, elsewhere where
//! Wine has that), or in the folders of `_NT_SYMBOL_PATH`, as symbol servers have it (`NAME/TIMESTAMPSIZE/NAME`) or as it is. A file counts if
//! its header has the size and the date that are told.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use collector_common::record::ImageKey;

use crate::modules::{is_loaded, open_chosen, open_regular};
use crate::symbol_path::{SymbolPlaces, VARIABLE, text};
use crate::this_machine::is_local;

/// Where images are looked for.
#[derive(Debug)]
pub(crate) struct ImagePlaces {
    /// That of the dump.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) symbol_path: OsString,
    /// Of Wine, with a link for each drive.
    drives: Option<PathBuf>,
}

impl ImagePlaces {
    /// Those of the environment, and the folder of a dump.
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        let prefix = env::var_os("WINEPREFIX").filter(|prefix| !prefix.is_empty()).map(PathBuf::from);
        let prefix = prefix.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".wine")));
        let drives = prefix.filter(|_| cfg!(unix)).map(|prefix| prefix.join("dosdevices"));
        let symbol_path = env::var_os(VARIABLE).unwrap_or_default();
        Self { folder: folder.map(Path::to_owned), symbol_path, drives }
    }

    /// The image's file and its place, if it is the one that was loaded.
    pub(crate) fn find(&self, path: &str, key: ImageKey) -> Option<(File, PathBuf)> {
        let name = path.rsplit(['\\', '/']).next()?;
        let small = name.to_ascii_lowercase();
        let chosen = |path: PathBuf| Some((open_chosen(&path).filter(|file| is_loaded(file, key))?, path));
        let names = [name, small.as_str()].map(|name| text(name.as_bytes()));
        let is_name = |name: &OsString| Path::new(name).file_name() == Some(name.as_os_str());
        let names: Vec<OsString> = names.into_iter().filter(is_name).collect();
        let folder = self.folder.as_ref();
        let beside = folder.and_then(|folder| names.iter().map(|name| folder.join(name)).find_map(chosen));
        let in_folders = || {
            let stored = names.iter().filter_map(|name| SymbolPlaces::of_image(name, key, &self.symbol_path));
            stored.flat_map(|it| it.stored.into_iter().chain(it.plain)).find_map(chosen)
        };
        let here = || self.here(path).find_map(|path| Some((open_at(&path, key)?, path)));
        beside.or_else(here).or_else(in_folders)
    }

    /// Where a path of Windows may lead on this machine.
    fn here(&self, path: &str) -> impl Iterator<Item = PathBuf> {
        let of_wine = self.drives.as_ref().and_then(|drives| of_wine(drives, path));
        std::iter::once(PathBuf::from(path)).chain(of_wine.into_iter().flatten())
    }
}

/// The image at a path that a recording tells, if it is on a disk of this machine and the one that was loaded.
pub(crate) fn open_at(path: &Path, key: ImageKey) -> Option<File> {
    let is_here = path.is_absolute() && is_local(path);
    is_here.then(|| open_regular(path)).flatten().filter(|file| is_loaded(file, key))
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
    use super::*;

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
