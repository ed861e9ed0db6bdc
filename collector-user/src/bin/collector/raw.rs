//! Outputs that hold the records themselves: `perf.data`. They are written while it is recorded, and a header is put before them
//! in the end; so what is no file gets a copy of one.

use std::fs::File;
use std::io::{self, Seek as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use collector_user::output::{Places, is_url};
use export::format::{Contents, Holds, Profile};

use crate::target::Target;
use crate::{Usage, say};

/// The format's name on the command line.
pub(crate) const NAME: &str = "perf.data";
/// The ending of its files.
pub(crate) const ENDING: &str = ".perf.data";
/// What it is, for people.
pub(crate) const DESCRIPTION: &str =
    "registers and stacks as they were recorded, for `collector convert` and perf";

/// Whether an output is of this format.
pub(crate) fn is_raw(path: &Path, format: Option<&str>) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    !is_url(path)
        && format.map_or(name.len() > ENDING.len() && name.ends_with(ENDING), |format| format == NAME)
}

/// `--no-inline` where every output is of this format: it would change nothing.
pub(crate) fn refuse_no_inline(outputs: &[PathBuf], format: Option<&str>) -> Result<(), Usage> {
    if outputs.is_empty() || !outputs.iter().all(|path| is_raw(path, format)) {
        return Ok(());
    }
    Err(Usage(format!(
        "--no-inline is of outputs with names, and {NAME} has none: give it to `collector convert`, or name one beside"
    )))
}

/// Says what of the recording outputs of these names leave out, a line each. What they hold is `captured`.
pub(crate) fn tell_left_out(names: &[String], captured: Holds, profile: Profile<'_>) {
    if names.is_empty() {
        return;
    }
    if let Some(left_out) = Contents::of(profile).left_out_by(NAME, captured) {
        for name in names {
            say(&format!("{name}: {left_out}"));
        }
    }
}

/// An output of this format.
pub(crate) struct RawOutput {
    target: Target,
    file: File,
}

impl RawOutput {
    /// Makes sure that `path` can be written; `-` is stdout.
    pub(crate) fn open(path: &Path, taken: &mut Places) -> anyhow::Result<Self> {
        let mut target = Target::open(path, taken)?;
        let file = match &mut target {
            Target::File(output) => output.file().try_clone(),
            _ => tempfile::tempfile(),
        };
        let file = file.with_context(|| format!("{} can't be written", path.display()))?;
        Ok(Self { target, file })
    }

    /// What it is called.
    pub(crate) fn name(&self) -> String {
        self.target.name()
    }

    /// Where the records go.
    ///
    /// # Errors
    /// When no more files can be open.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Has the same records as another.
    ///
    /// # Errors
    /// When they can't be read or written.
    pub(crate) fn copy_from(&mut self, mut other: &File) -> io::Result<()> {
        other.rewind()?;
        io::copy(&mut other, &mut self.file).map(drop)
    }

    /// Puts it into place.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let is_copied = self.target.may_wait();
        self.target.fill(|out| {
            if is_copied {
                self.file.rewind()?;
                io::copy(&mut self.file, out)?;
            }
            Ok(())
        })
    }
}
