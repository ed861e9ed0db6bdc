//! PDBs of PE images: beside the image, and where `_NT_SYMBOL_PATH` says.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

use export::symbolize::PdbId;

use super::root::Root;
use crate::symbol_path::PdbPlaces;

/// The PDB of the image of this path below a root. Whether it is the right one is seen when it is read, so that one in a server's folder is
/// taken before others.
pub(super) fn find(root: &Root, image: &Path, id: &PdbId, symbol_path: Option<&OsStr>) -> Option<File> {
    let PdbPlaces { name, stored, plain } = PdbPlaces::of(id, symbol_path.unwrap_or_default())?;
    let beside = image.parent().filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    stored.into_iter().chain(beside).chain(plain).find_map(|path| root.open(&path))
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
}
