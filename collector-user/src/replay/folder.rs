//! A recording in several files: the folder that `perf record --threads` or `--kcore` makes.
//!
//! ```text
//! data                 header, events, features; records that perf itself made of what was there before
//! data.0, data.1 ...   records of the kernel, as the threads of perf took them out of the rings; not with `--kcore`
//! ```
//!
//! Source: `tools/perf/Documentation/perf.data-directory-format.txt`, `perf_data__open_dir` of `tools/perf/util/data.c`.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use collector_common::perf::file::{Feature, FileReader};

use super::ReplayError;

/// The recording in a file, or in the files of a folder.
///
/// # Errors
/// When it can't be read, is no `perf.data`, or is not all there.
pub fn open_recording(path: &Path) -> Result<FileReader<BufReader<File>>, ReplayError> {
    if !path.is_dir() {
        return open_first(File::open(path)?);
    }
    let first = File::open(path.join("data")).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReplayError::Folder { missing: "data" },
        _ => error.into(),
    })?;
    let reader = FileReader::open(buffered(first))?;
    let parts = parts(path)?;
    if parts.is_empty() && is_first_of_several(&reader) {
        return Err(ReplayError::Folder { missing: "data.0" });
    }
    let folder = path.to_owned();
    let open = move |part: u32| Ok(buffered(File::open(folder.join(format!("data.{part}")))?));
    Ok(reader.with_parts(parts.into_iter().map(open)))
}

/// A recording that is all in one file.
pub(super) fn open_first(file: File) -> Result<FileReader<BufReader<File>>, ReplayError> {
    let reader = FileReader::open(buffered(file))?;
    if is_first_of_several(&reader) { Err(ReplayError::PartOfFolder) } else { Ok(reader) }
}

fn is_first_of_several<R: Read>(reader: &FileReader<R>) -> bool {
    let missing = reader.missing_features();
    reader.features().section(Feature::DIR_FORMAT).is_some()
        || missing.is_some_and(|missing| missing.features.contains(&Feature::DIR_FORMAT))
}

pub(super) fn buffered<R: Read>(file: R) -> BufReader<R> {
    BufReader::with_capacity(1 << 20, file)
}

/// The numbers of the other files, in order.
fn parts(folder: &Path) -> io::Result<Vec<u32>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("data.")?.parse::<u32>().ok());
        let is_part = |number: &u32| {
            let file = format!("data.{number}");
            name == *file && folder.join(file).is_file()
        };
        parts.extend(number.filter(is_part));
    }
    parts.sort_unstable();
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = include_bytes!("../../../collector-common/tests/fuzzing/seeds/perf_data/plain");

    /// The records of that file: where they are and how many bytes they have stands in its header.
    fn records() -> &'static [u8] {
        let [at, size] =
            [40, 48].map(|word| u64::from_le_bytes(FILE[word..word + 8].try_into().unwrap()) as usize);
        &FILE[at..at + size]
    }

    /// How many records there are, whatever is damaged.
    fn counted(path: &Path) -> usize {
        let mut reader = open_recording(path).unwrap();
        let mut count = 0;
        loop {
            match reader.next_record() {
                Ok(Some(_)) => count += 1,
                Ok(None) => return count,
                Err(_) => {}
            }
        }
    }

    #[test]
    fn records_of_all_files_are_taken_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        fs::write(path("data"), FILE).unwrap();
        let one = counted(&path("data"));
        assert_eq!(counted(folder.path()), one);
        for name in ["data.0", "data.10"] {
            fs::write(path(name), records()).unwrap();
        }
        // No parts of it.
        for name in ["data.x", "data.010", "data.old"] {
            fs::write(path(name), records()).unwrap();
        }
        fs::create_dir(path("data.3")).unwrap();
        assert!(one > 0);
        assert_eq!(counted(folder.path()), 3 * one);
        for len in (0..records().len()).step_by(37) {
            fs::write(path("data.0"), &records()[..len]).unwrap();
            assert!((2 * one..=3 * one).contains(&counted(folder.path())), "{len}");
        }
    }

    #[test]
    fn what_is_no_recording_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let told = |path: &Path| open_recording(path).err().map(|error| error.to_string()).unwrap();
        assert!(told(folder.path()).contains("without a file `data`"));
        // The flags of features are the last words of the header; each has its section behind the records, in order. The
        // last section becomes the folder's.
        let mut bytes = FILE.to_vec();
        let flags = 72..80;
        let known = u64::from_le_bytes(bytes[flags.clone()].try_into().unwrap());
        let changed = known ^ (1 << known.ilog2()) | 1 << Feature::DIR_FORMAT.0;
        bytes[flags].copy_from_slice(&changed.to_le_bytes());
        let first = folder.path().join("data");
        fs::write(&first, bytes).unwrap();
        assert!(told(&first).contains("name the folder"));
        assert!(told(folder.path()).contains("without a file `data.0`"));
    }
}
