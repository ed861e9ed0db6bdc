//! All formats that can be written, and how one is chosen.

use std::path::Path;

use super::ExportFormat;
use super::firefox::Firefox;
use super::flamegraph::{FlameGraph, Icicle};
use super::folded::Folded;
use super::html::Html;
use super::jfr::Jfr;
use super::jsonl::JsonLines;
use super::nettrace::Nettrace;
use super::otlp::Otlp;
#[cfg(feature = "parquet")]
use super::parquet::Parquet;
use super::perfetto::Perfetto;
use super::perfview::PerfView;
use super::pprof::Pprof;
use super::speedscope::Speedscope;

/// All formats that are built in, in the order in which they are listed.
pub fn formats() -> &'static [&'static dyn ExportFormat] {
    static FORMATS: &[&dyn ExportFormat] = &[
        &Html,
        &Pprof,
        &Folded,
        &FlameGraph,
        &Icicle,
        &Speedscope,
        &Firefox,
        &Nettrace,
        &PerfView,
        &Perfetto,
        &Otlp,
        &Jfr,
        #[cfg(feature = "parquet")]
        &Parquet,
        &JsonLines,
    ];
    FORMATS
}

/// The format whose ending a file's name has; of several the one with the longest ending. Upper case counts as
/// lower case.
pub fn for_path(path: &Path) -> Option<&'static dyn ExportFormat> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let fits =
        |format: &&&dyn ExportFormat| name.len() > format.ending().len() && name.ends_with(format.ending());
    formats().iter().filter(fits).max_by_key(|format| format.ending().len()).copied()
}

/// The format of a name.
pub fn by_name(name: &str) -> Option<&'static dyn ExportFormat> {
    formats().iter().find(|format| format.name() == name).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn chosen(path: &str) -> Option<&'static str> {
        for_path(Path::new(path)).map(ExportFormat::name)
    }

    #[test]
    fn the_ending_chooses() {
        assert_eq!(chosen("out.pb.gz"), Some("pprof"));
        assert_eq!(chosen("/a.folded/b.c.html"), Some("html"));
        assert_eq!(chosen("OUT.SVG"), Some("flamegraph"));
        assert_eq!(chosen("out.icicle.svg"), Some("icicle"));
        assert_eq!(chosen("stacks.folded"), Some("folded"));
        assert_eq!(chosen("a.firefox.json.gz"), Some("firefox"));
        assert_eq!(chosen("out.gz"), None);
        assert_eq!(chosen("out.txt"), None);
        assert_eq!(chosen(".svg"), None);
        assert_eq!(chosen("dir.svg/.."), None);
    }

    #[test]
    fn names_and_endings_are_each_of_one_format() {
        let names: HashSet<_> = formats().iter().map(|format| format.name()).collect();
        let endings: HashSet<_> = formats().iter().map(|format| format.ending()).collect();
        assert_eq!((names.len(), endings.len()), (formats().len(), formats().len()));
        assert!(formats().iter().all(|format| by_name(format.name()).is_some()));
        assert!(by_name("gif").is_none());
    }
}
