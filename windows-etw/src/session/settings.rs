//! What a caller says of sessions besides the plan.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where events go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To the sinks.
    Live,
    /// To this `.etl` file, which Windows writes; no sink is called. Parts have their names in front of the ending, as in `x.heap.etl`.
    File(PathBuf),
    /// To both.
    LiveAndFile(PathBuf),
}

impl Target {
    pub(super) fn is_live(&self) -> bool {
        !matches!(self, Self::File(_))
    }

    /// The file of a part.
    pub(super) fn file(&self, part: Part) -> Option<PathBuf> {
        match self {
            Self::Live => None,
            Self::File(path) | Self::LiveAndFile(path) => Some(part.file(path)),
        }
    }
}

/// A session of a plan.
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
    /// What its name has behind the one that the caller chose.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Kernel => "kernel",
            Self::Heap => "heap",
        }
    }

    /// Its file, where that of [`Self::Main`] is `path`.
    pub fn file(self, path: &Path) -> PathBuf {
        if self == Self::Main {
            return path.to_path_buf();
        }
        let mut ending = OsString::from(self.suffix());
        if let Some(given) = path.extension() {
            ending.push(".");
            ending.push(given);
        }
        path.with_extension(ending)
    }
}

/// How sessions are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The sessions' name. One of the same name that no process records with any more is taken over.
    pub name: String,
    /// Where events go.
    pub target: Target,
}

impl Default for Settings {
    fn default() -> Self {
        Self { name: "Collector".to_owned(), target: Target::Live }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_file_of_its_own() {
        let target = Target::File(PathBuf::from("C:\\traces\\x.etl"));
        assert_eq!(target.file(Part::Main), Some(PathBuf::from("C:\\traces\\x.etl")));
        assert_eq!(target.file(Part::Heap), Some(PathBuf::from("C:\\traces\\x.heap.etl")));
        assert_eq!(
            Target::LiveAndFile(PathBuf::from("x")).file(Part::Kernel),
            Some(PathBuf::from("x.kernel"))
        );
        assert_eq!(Target::Live.file(Part::Main), None);
        assert!(Target::Live.is_live() && !target.is_live());
    }
}
