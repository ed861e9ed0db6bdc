//! What a caller says of sessions besides the plan.

use std::path::PathBuf;

use crate::part::Part;

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
    fn each_part_has_a_file_where_there_is_one() {
        let target = Target::File(PathBuf::from("C:\\traces\\x.etl"));
        assert_eq!(target.file(Part::Main), Some(PathBuf::from("C:\\traces\\x.etl")));
        assert_eq!(target.file(Part::Heap), Some(PathBuf::from("C:\\traces\\x.heap.etl")));
        assert_eq!(Target::Live.file(Part::Main), None);
        assert!(Target::Live.is_live() && !target.is_live());
    }
}
