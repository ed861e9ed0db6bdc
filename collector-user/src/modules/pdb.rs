//! PDBs of PE images, and maps of what .NET compiled ahead: beside the image, and where `_NT_SYMBOL_PATH` says.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use export::symbolize::{AheadMapId, PdbId};

use super::root::Root;
use crate::symbol_path::SymbolPlaces;

/// The PDB of the image of this path below a root. Whether it is the right one is seen when it is read, so that one in a server's folder is
/// taken before others.
pub(super) fn find(root: &Root, image: &Path, id: &PdbId, symbol_path: Option<&OsStr>) -> Option<File> {
    open(root, image, SymbolPlaces::of(id, symbol_path.unwrap_or_default())?)
}

/// The same of a map.
pub(super) fn find_map(
    root: &Root,
    image: &Path,
    id: &AheadMapId,
    symbol_path: Option<&OsStr>,
) -> Option<File> {
    open(root, image, SymbolPlaces::of_map(id, symbol_path.unwrap_or_default())?)
}

fn open(root: &Root, image: &Path, places: SymbolPlaces) -> Option<File> {
    let SymbolPlaces { name, stored, plain } = places;
    let beside = image.parent().filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    let chosen = |path: PathBuf| root.open_chosen(&path);
    let of_server = stored.into_iter().find_map(chosen);
    of_server.or_else(|| root.open(&beside?)).or_else(|| plain.into_iter().find_map(chosen))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_pdb_is_where_symbol_servers_and_linkers_put_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let id = |path: &str| PdbId { guid: [0x11; 16], age: 2, path: path.as_bytes().to_vec() };
        let stored = at("cache/main.pdb/111111111111111111111111111111112");
        fs::create_dir_all(&stored).unwrap();
        for (path, text) in
            [(stored.join("main.pdb"), "stored"), (at("main.pdb"), "beside"), (at("cache/x.pdb"), "plain")]
        {
            fs::write(path, text).unwrap();
        }
        let list = format!("relative;srv*{}*https://nowhere", at("cache").display());
        let found = |path: &str, list: &str| {
            let mut text = String::new();
            find(&Root::default(), &at("main.exe"), &id(path), Some(OsStr::new(list)))?
                .read_to_string(&mut text)
                .unwrap();
            Some(text)
        };
        assert_eq!(found(r"d:\build\main.pdb", &list).as_deref(), Some("stored"));
        assert_eq!(found(r"d:\build\main.pdb", "").as_deref(), Some("beside"));
        assert_eq!(found("/build/x.pdb", &list).as_deref(), Some("plain"));
        for nothing in ["", "..", r"a\..", "none.pdb"] {
            assert_eq!(found(nothing, &list), None, "{nothing}");
        }
    }

    #[test]
    fn a_map_is_where_symbol_servers_and_compilers_put_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let name = "App.ni.r2rmap";
        let id = AheadMapId { signature: [0xa1; 16], version: 1, path: name.as_bytes().to_vec() };
        let list = at("cache").into_os_string();
        let found = || {
            let mut text = String::new();
            let file = find_map(&Root::default(), &at("App.dll"), &id, Some(&list));
            file.map(|mut file| file.read_to_string(&mut text).unwrap())?;
            Some(text)
        };
        assert_eq!(found(), None);
        fs::write(at(name), "beside").unwrap();
        assert_eq!(found().as_deref(), Some("beside"));
        let key = format!("r2rmap-v1-{}", "a1".repeat(16));
        let small = name.to_lowercase();
        for name in [&*small, name] {
            let stored = at("cache").join(name).join(&key);
            fs::create_dir_all(&stored).unwrap();
            fs::write(stored.join(name), name).unwrap();
            assert_eq!(found().as_deref(), Some(name));
        }
    }
}
