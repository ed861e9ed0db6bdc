//! PDBs of PE images: beside the image, and where `_NT_SYMBOL_PATH` says, as Windows' debuggers look for them. Servers are not
//! asked; what they gave before lies in a folder as `NAME.pdb/GUIDAGE/NAME.pdb`, which is what `symstore` makes, too.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use export::symbolize::PdbId;

use super::root::Root;

/// The PDB of the image of this path below a root. Whether it is the right one is seen when it is read, so that one in a server's folder is
/// taken before others.
pub(super) fn find(root: &Root, image: &Path, id: &PdbId, symbol_path: Option<&OsStr>) -> Option<File> {
    let name = Path::new(OsStr::from_bytes(id.name()));
    // A name that leads out of a folder is none.
    name.file_name().filter(|it| *it == name.as_os_str())?;
    let folders = folders(symbol_path.unwrap_or_default());
    let stored = folders.iter().flat_map(|folder| {
        let of_name = folder.join(name);
        [id.key(), id.key().to_lowercase()].map(|key| of_name.join(key).join(name))
    });
    let beside = image.parent().filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    let plain = folders.iter().map(|folder| folder.join(name));
    stored.chain(beside).chain(plain).find_map(|path| root.open(&path))
}

/// The folders of a list such as `/symbols;srv*/cache*https://server`.
fn folders(symbol_path: &OsStr) -> Vec<PathBuf> {
    let elements = symbol_path.as_bytes().split(|&byte| byte == b';');
    let parts = elements.flat_map(|element| element.split(|&byte| byte == b'*'));
    parts.map(|part| PathBuf::from(OsStr::from_bytes(part))).filter(|part| part.is_absolute()).collect()
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
