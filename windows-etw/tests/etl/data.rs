//! Real files, in `shared/data/etl` beside the checkout: those of `PerfView`'s own tests, most of them zipped.

use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use windows_etw::etl::EtlFile;
use zip::ZipArchive;

pub(crate) type File = EtlFile<Cursor<Vec<u8>>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/etl")
}

/// The bytes of a file; none, which is said, where it is not there.
pub(crate) fn bytes(name: &str) -> Option<Vec<u8>> {
    let plain = folder().join(name);
    if let Ok(bytes) = fs::read(&plain) {
        return Some(bytes);
    }
    let zipped = folder().join(format!("{name}.zip"));
    let Ok(archive) = fs::File::open(&zipped) else {
        eprintln!("NOT BESIDE THE CHECKOUT: {} or {}", plain.display(), zipped.display());
        return None;
    };
    let mut archive = ZipArchive::new(archive).unwrap();
    let names: Vec<_> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
    let inside = names
        .into_iter()
        .find(|name| Path::new(name).extension().is_some_and(|ending| ending == "etl"))
        .unwrap();
    let mut bytes = Vec::new();
    archive.by_name(&inside).unwrap().read_to_end(&mut bytes).unwrap();
    Some(bytes)
}

pub(crate) fn open(name: &str) -> Option<File> {
    bytes(name).map(|bytes| EtlFile::open(Cursor::new(bytes)).unwrap())
}

/// What `PerfView` says of it.
pub(crate) fn baseline(name: &str) -> String {
    let path = folder().join(format!("{}.baseline.txt", name.strip_suffix(".etl").unwrap()));
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}
