//! Where PDBs and maps of what .NET compiled ahead are: in the folders of `_NT_SYMBOL_PATH`, as Windows' debuggers look for them. Servers
//! are not asked; what they gave before lies in a folder as `NAME.pdb/GUIDAGE/NAME.pdb`, which is what `symstore` makes, too, and
//! `NAME.ni.r2rmap/r2rmap-v1-SIGNATURE/NAME.ni.r2rmap`, which is what `dotnet-symbol` makes with small letters.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};

use collector_common::record::{ExportMachine, ImageKey, ModuleId};
use export::symbolize::{AheadMapId, PdbId};

/// The variable that has the list of folders, such as `/symbols;srv*/cache*https://server`.
pub(crate) const VARIABLE: &str = "_NT_SYMBOL_PATH";

/// Where a file of symbols may be, in the order in which it is looked for.
#[derive(Debug)]
pub(crate) struct SymbolPlaces {
    /// The file's name.
    pub(crate) name: OsString,
    /// In folders of servers and stores, where it is the right one.
    pub(crate) stored: Vec<PathBuf>,
    /// In the folders themselves, where any of that name may be.
    pub(crate) plain: Vec<PathBuf>,
}

impl SymbolPlaces {
    /// A PDB's, in a list of folders; none for a name that leads out of a folder.
    pub(crate) fn of(id: &PdbId, symbol_path: &OsStr) -> Option<Self> {
        let name = text(id.name());
        let stored = [id.key(), id.key().to_lowercase()].map(|key| Path::new(&name).join(key).join(&name));
        Self::in_folders(name, &stored, symbol_path)
    }

    /// The same of a map of what .NET compiled ahead.
    pub(crate) fn of_map(id: &AheadMapId, symbol_path: &OsStr) -> Option<Self> {
        let name = text(id.name());
        let small = text(&id.name().to_ascii_lowercase());
        let stored = [&name, &small].map(|name| Path::new(name).join(id.key()).join(name));
        Self::in_folders(name, &stored, symbol_path)
    }

    /// The same of an image with this name, by the size of its memory and the date in its header, which are a folder's name together: as eight
    /// digits and as many as it has.
    pub(crate) fn of_image(name: &OsStr, key: ImageKey, symbol_path: &OsStr) -> Option<Self> {
        let ImageKey { date, size } = key;
        let keys = [key.to_string(), format!("{date:08x}{size:x}"), format!("{date:08X}{size:X}")];
        let stored = keys.map(|key| Path::new(name).join(key).join(name));
        Self::in_folders(name.to_owned(), &stored, symbol_path)
    }

    /// The first one that is there; beside the image, if its folder is known, before what is in the folders themselves.
    pub(crate) fn open_beside(self, folder: Option<&Path>) -> Option<File> {
        let beside = folder.map(|folder| folder.join(&self.name));
        self.stored.into_iter().chain(beside).chain(self.plain).find_map(|path| File::open(path).ok())
    }

    /// Of its name, and where it is in a folder of a server or a store.
    fn in_folders(name: OsString, stored: &[PathBuf], symbol_path: &OsStr) -> Option<Self> {
        Path::new(&name).file_name().filter(|it| *it == name.as_os_str())?;
        let folders = once_each(parts(symbol_path).filter(|part| part.is_absolute()));
        let stored = once_each(stored);
        let stored = folders.iter().flat_map(|folder| stored.iter().map(|path| folder.join(path))).collect();
        let plain = folders.iter().map(|folder| folder.join(&name)).collect();
        Some(Self { name, stored, plain })
    }
}

/// Equal ones once, in their order: names and keys that have no letters are the same in small ones.
fn once_each<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for it in all {
        if !kept.contains(&it) {
            kept.push(it);
        }
    }
    kept
}

/// Which PDB a recording tells to be a module's.
pub(crate) fn pdb_of(machine: &ExportMachine, module: ModuleId) -> Option<PdbId> {
    let pdb = machine.details(module)?.pdb.as_ref()?;
    Some(PdbId { guid: pdb.signature.0, age: pdb.age, path: pdb.path.clone().into_bytes() })
}

/// Which map of what .NET compiled ahead a recording tells to be a module's.
pub(crate) fn ahead_map_of(machine: &ExportMachine, module: ModuleId) -> Option<AheadMapId> {
    let map = machine.details(module)?.perf_map.as_ref()?;
    Some(AheadMapId { signature: map.signature, version: map.version, path: map.path.clone().into_bytes() })
}

/// Bytes as a file's name has them.
#[cfg(unix)]
pub(crate) fn text(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStrExt as _;
    OsStr::from_bytes(bytes).to_owned()
}

/// The same where names are text.
#[cfg(not(unix))]
pub(crate) fn text(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[cfg(unix)]
fn parts(symbol_path: &OsStr) -> impl Iterator<Item = PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let parts = symbol_path.as_bytes().split(|byte| matches!(byte, b';' | b'*'));
    parts.map(|part| PathBuf::from(OsStr::from_bytes(part)))
}

#[cfg(not(unix))]
fn parts(symbol_path: &OsStr) -> impl Iterator<Item = PathBuf> {
    let text = symbol_path.to_string_lossy().into_owned();
    let parts: Vec<PathBuf> = text.split([';', '*']).map(PathBuf::from).collect();
    parts.into_iter()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_places_are_looked_at_once() {
        let places = |key, path: &str| {
            let SymbolPlaces { stored, plain, .. } =
                SymbolPlaces::of_image(OsStr::new("a.dll"), key, OsStr::new(path)).unwrap();
            (stored, plain)
        };
        let digits = ImageKey { date: 0x1234_5678, size: 0x9000 };
        let one = (vec![PathBuf::from("/s/a.dll/123456789000/a.dll")], vec![PathBuf::from("/s/a.dll")]);
        assert_eq!(places(digits, "srv*/s*https://server;/s"), one);
        let letters = ImageKey { date: 0xabcd_0123, size: 0xf000 };
        let stored =
            ["/s/a.dll/ABCD0123f000/a.dll", "/s/a.dll/abcd0123f000/a.dll", "/s/a.dll/ABCD0123F000/a.dll"];
        assert_eq!(places(letters, "/s").0, stored.map(PathBuf::from));
    }
}
