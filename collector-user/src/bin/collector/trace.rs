//! The files that Windows itself writes while it records: in a folder of their own beside the outputs, until they are read. Then they are
//! removed, or are what an output `x.etl` is.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use collector_user::etw::{Lost, RecordedPart};
use collector_user::output::Places;
use tempfile::{Builder, TempDir};
use windows_etw::etl::EtlFile;
use windows_etw::session::{Part, Stopped};

use crate::target::{Target, unwritable};
use crate::{Usage, say};

/// The format's name on the command line.
pub(crate) const NAME: &str = "etl";
/// The ending of its files.
pub(crate) const ENDING: &str = ".etl";
/// What it is, for people.
pub(crate) const DESCRIPTION: &str =
    "events as Windows writes them, for `collector convert`, PerfView and Windows Performance Analyzer";

/// Whether an output is what Windows writes.
pub(crate) fn is_trace(path: &Path, format: Option<&str>) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    format.map_or(name.len() > ENDING.len() && name.ends_with(ENDING), |format| format == NAME)
}

/// The files of a recording. Those that are not put into place are removed when it is dropped.
pub(crate) struct TraceFiles {
    folder: TempDir,
    /// Where they are to be; that of the first part.
    into: Option<PathBuf>,
}

impl TraceFiles {
    /// Makes the folder: beside the `.etl` that is asked for, else beside the first of `others` that is a file.
    pub(crate) fn new(traces: &[&Path], others: &[&Path], taken: &mut Places) -> anyhow::Result<Self> {
        let into = match traces {
            [] => None,
            [path] => match Target::open(path, taken)? {
                Target::File(file) => Some(file.place().to_owned()),
                _ => {
                    let shown = path.display();
                    return Err(
                        Usage(format!("{shown}: Windows writes .etl files itself: name a file")).into()
                    );
                }
            },
            [_, second, ..] => {
                let shown = second.display();
                return Err(Usage(format!(
                    "{shown} is a second .etl: Windows writes one, which can be copied"
                ))
                .into());
            }
        };
        let beside = into.as_deref().or_else(|| others.iter().copied().find(|path| path.as_os_str() != "-"));
        let folder = match beside.map(Path::parent) {
            Some(Some(folder)) if !folder.as_os_str().is_empty() => folder.to_owned(),
            Some(_) => PathBuf::from("."),
            None => env::temp_dir(),
        };
        let made = Builder::new().prefix(".collector-").tempdir_in(&folder);
        let folder = made.map_err(|error| unwritable(&folder.join("x.etl"), &error))?;
        Ok(Self { folder, into })
    }

    /// Where the first part is written to.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("trace.etl")
    }

    /// Puts those into place that are asked for, and opens them all, that with the clock first.
    pub(crate) fn open(&self, stopped: &Stopped) -> anyhow::Result<Vec<RecordedPart<File>>> {
        let mut losses = stopped.losses.clone();
        losses.sort_by_key(|(part, _)| *part != Part::Main);
        let mut parts = Vec::new();
        for (part, told) in losses {
            let written = part.file(&self.path());
            let none = "Windows wrote no trace, though it said that it would";
            if !written.exists() {
                anyhow::bail!("{none}: is the disk full, or was the session stopped by another program?");
            }
            let mut path = written;
            if let Some(into) = &self.into {
                let place = part.file(into);
                fs::rename(&path, &place).with_context(|| format!("{} can't be written", place.display()))?;
                say(&format!("wrote {}", place.display()));
                path = place;
            }
            let failed = || format!("what Windows wrote, {}, can't be read", path.display());
            let file = EtlFile::open(File::open(&path).with_context(failed)?).with_context(failed)?;
            parts.push(RecordedPart { file, lost: Lost { events: told.events, buffers: told.file_buffers } });
        }
        Ok(parts)
    }
}
