//! Real files, and what `PerfView` says of them.

use std::fs;
use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};

use collector_common::record::EventRecords;
use collector_user::etw::Etl;
use export::import::{ImportFormat as _, Imported};
use zip::ZipArchive;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/etl")
}

/// The bytes of a file; none, which is said, where it is not there.
pub(crate) fn bytes(name: &str) -> Option<Vec<u8>> {
    if let Ok(bytes) = fs::read(folder().join(name)) {
        return Some(bytes);
    }
    let zipped = folder().join(format!("{name}.zip"));
    let Ok(archive) = fs::File::open(&zipped) else {
        eprintln!("NOT BESIDE THE CHECKOUT: {}", zipped.display());
        return None;
    };
    let mut archive = ZipArchive::new(archive).unwrap();
    let names: Vec<_> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
    let inside = names.into_iter().find(|name| name.to_lowercase().ends_with(".etl")).unwrap();
    let mut bytes = Vec::new();
    archive.by_name(&inside).unwrap().read_to_end(&mut bytes).unwrap();
    Some(bytes)
}

/// A file with its events.
pub(crate) fn import(name: &str) -> Option<Imported> {
    let mut file = Cursor::new(bytes(name)?);
    Some(Etl.import_with_events(&mut file, EventRecords::LIMIT).unwrap())
}

/// What `PerfView` says of it.
pub(crate) fn baseline(name: &str) -> String {
    let path = folder().join(format!("{}.baseline.txt", name.strip_suffix(".etl").unwrap()));
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

/// Names and numbers of `COUNT` lines.
pub(crate) fn counts(baseline: &str) -> impl Iterator<Item = (&str, u64)> {
    baseline.lines().filter_map(|line| line.strip_prefix("COUNT ")).map(|line| {
        let (name, count) = line.trim_end().rsplit_once(':').unwrap();
        (name, count.parse().unwrap())
    })
}

/// The value of `name=` in an `EVENT` line.
pub(crate) fn value<'l>(line: &'l str, name: &str) -> &'l str {
    let (_, rest) = line.split_once(&format!(" {name}=")).unwrap();
    rest.split_once("; ").unwrap().0
}

/// A number as `PerfView` prints it.
pub(crate) fn number(text: &str) -> u64 {
    let text = text.replace(',', "");
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// Buffers by turns into two files, each with the first, which has the file's header. A buffer begins with its size.
pub(crate) fn split(bytes: &[u8]) -> [Vec<u8>; 2] {
    let mut buffers = Vec::new();
    let mut rest = bytes;
    while let Some(size) = rest.first_chunk() {
        let (buffer, others) = rest.split_at(u32::from_le_bytes(*size) as usize);
        buffers.push(buffer);
        rest = others;
    }
    assert!(buffers.len() > 100, "{}", buffers.len());
    let mut files = [buffers[0].to_vec(), buffers[0].to_vec()];
    for (buffer, index) in buffers[1..].iter().zip(0..) {
        files[index % 2].extend_from_slice(buffer);
    }
    files
}
