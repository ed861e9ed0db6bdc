//! The format of an output: by its name where one is given, else by the file's ending.

use std::path::Path;

use export::format::{ExportFormat, by_name, for_path, formats};

use crate::Usage;

/// The format of an output; `-` is stdout, and needs a name. `others` are endings that are known elsewhere.
pub(crate) fn chosen(
    path: &Path,
    format: Option<&str>,
    others: &[&str],
) -> Result<&'static dyn ExportFormat, Usage> {
    let known = || {
        let endings = formats().iter().map(|format| format.ending());
        endings.chain(others.iter().copied()).collect::<Vec<_>>().join(", ")
    };
    let stdout = path.as_os_str() == "-";
    match format {
        Some(name) => by_name(name)
            .ok_or_else(|| Usage(format!("unknown format `{name}`: `collector list formats` lists them"))),
        None if stdout => Err(Usage("writing to stdout needs --format".to_owned())),
        None => for_path(path).ok_or_else(|| {
            let is_trace = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("etl"));
            let why = if is_trace {
                "is what Windows itself writes, by `collector.exe run`, and is read here"
            } else {
                "is no format"
            };
            Usage(format!("the ending of {} {why}: use one of {}", path.display(), known()))
        }),
    }
}
