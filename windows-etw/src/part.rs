//! The sessions of one recording, and what their files are called: on every system, for files are read elsewhere, too.
//!
//! `PerfView` calls its files so as well, as long as they are not merged, and has one more, of a session that it starts when the others are over.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the name of the file has in which `PerfView` has .NET's runtime tell of its methods when a recording is over.
const RUNDOWN: &str = "clrRundown";

/// A session of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The kernel's events and those of providers.
    Main,
    /// The kernel's events alone, in the session that all programs share: where all other system loggers are taken.
    Kernel,
    /// Blocks of heaps.
    Heap,
}

impl Part {
    /// All but [`Self::Main`].
    pub const OTHERS: [Self; 2] = [Self::Kernel, Self::Heap];

    /// What the name of its session has behind the one that the caller chose.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Kernel => "kernel",
            Self::Heap => "heap",
        }
    }

    /// Its file, where that of [`Self::Main`] is `path`: `x.heap.etl` beside `x.etl`.
    pub fn file(self, path: &Path) -> PathBuf {
        if self == Self::Main { path.to_path_buf() } else { file_of(self.suffix(), path) }
    }

    /// The files of other parts that lie beside that of [`Self::Main`], with that of what .NET told when it was over.
    pub fn beside(path: &Path) -> Vec<PathBuf> {
        let files = Self::OTHERS.iter().map(|part| part.file(path)).chain([file_of(RUNDOWN, path)]);
        files.filter(|file| file.symlink_metadata().is_ok()).collect()
    }

    /// Whether a file of [`Self::beside`] is of a session that began when the others were over.
    pub fn is_rundown(path: &Path) -> bool {
        let stem = path.file_stem().map(Path::new);
        stem.and_then(Path::extension).is_some_and(|extension| extension == RUNDOWN)
    }
}

fn file_of(suffix: &str, path: &Path) -> PathBuf {
    let mut ending = OsString::from(suffix);
    if let Some(given) = path.extension() {
        ending.push(".");
        ending.push(given);
    }
    path.with_extension(ending)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_part_has_a_file_of_its_own() {
        let file = |part: Part, path: &str| part.file(Path::new(path));
        assert_eq!(file(Part::Main, "traces/x.etl"), Path::new("traces/x.etl"));
        assert_eq!(file(Part::Heap, "traces/x.etl"), Path::new("traces/x.heap.etl"));
        assert_eq!(file(Part::Kernel, "a.b.ETL"), Path::new("a.b.kernel.ETL"));
        assert_eq!(file(Part::Kernel, "x"), Path::new("x.kernel"));
    }

    #[test]
    fn parts_are_found_by_the_name_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["x.etl", "x.heap.etl", "x.clrRundown.etl", "y.kernel.etl", "heap.etl"] {
            fs::write(at(name), "").unwrap();
        }
        let found = ["x.etl", "y.etl", "x.heap.etl", "absent.etl"].map(|name| Part::beside(&at(name)));
        assert_eq!(
            found,
            [vec![at("x.heap.etl"), at("x.clrRundown.etl")], vec![at("y.kernel.etl")], vec![], vec![]]
        );
        assert_eq!(found[0].iter().map(|file| Part::is_rundown(file)).collect::<Vec<_>>(), [false, true]);
        assert!(
            !Part::is_rundown(Path::new("clrRundown.etl")) && !Part::is_rundown(Path::new("x.clrRundown"))
        );
    }
}
