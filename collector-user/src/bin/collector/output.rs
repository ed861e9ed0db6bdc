//! Where a recording is written. Every file is made under a temporary name in its folder before the recording
//! starts, so that a folder that can't be written is told at once, and renamed into place when it is whole.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use export::format::{ExportFormat, Profile, by_name, for_path, formats};
use tempfile::NamedTempFile;

use crate::Usage;

/// An output with its format.
pub(crate) struct Output {
    target: Target,
    format: &'static dyn ExportFormat,
}

enum Target {
    Stdout,
    File { path: PathBuf, temporary: NamedTempFile },
}

impl Output {
    /// `-` is stdout and needs `format`; elsewhere the ending says the format, unless `format` does.
    pub(crate) fn open(path: &Path, format: Option<&str>) -> anyhow::Result<Self> {
        let known = || formats().iter().map(|format| format.ending()).collect::<Vec<_>>().join(", ");
        let format = match format {
            Some(name) => by_name(name).ok_or_else(|| {
                Usage(format!("unknown format `{name}`: `collector list formats` lists them"))
            })?,
            None if is_stdout(path) => {
                return Err(Usage("writing to stdout needs --format".to_owned()).into());
            }
            None => for_path(path).ok_or_else(|| {
                Usage(format!("the ending of {} is no format: use one of {}", path.display(), known()))
            })?,
        };
        let target = if is_stdout(path) {
            Target::Stdout
        } else {
            Target::File { temporary: temporary_beside(path)?, path: path.to_owned() }
        };
        Ok(Self { target, format })
    }

    /// Writes the profile and puts the file into place.
    pub(crate) fn write(self, profile: Profile<'_>) -> anyhow::Result<()> {
        match self.target {
            Target::Stdout => {
                let mut out = BufWriter::new(io::stdout().lock());
                self.format.write(profile, &mut out).and_then(|()| out.flush()).context("stdout")
            }
            Target::File { path, temporary } => {
                let mut out = BufWriter::with_capacity(256 << 10, temporary);
                self.format
                    .write(profile, &mut out)
                    .and_then(|()| out.flush())
                    .with_context(|| format!("{} can't be written", path.display()))?;
                let temporary = out.into_inner().map_err(io::IntoInnerError::into_error)?;
                persist(temporary, &path)?;
                eprintln!("wrote {}", path.display());
                Ok(())
            }
        }
    }
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A temporary file in the folder of `path`.
pub(crate) fn temporary_beside(path: &Path) -> anyhow::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() {
        return Err(Usage(format!("{} is a folder", path.display())).into());
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".collector-").permissions(readable());
    builder
        .tempfile_in(folder)
        .with_context(|| format!("{} can't be written: folder {}", path.display(), folder.display()))
}

/// As any file that a program makes; the umask takes away from it.
fn readable() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::Permissions::from_mode(0o666)
}

/// Renames a finished file into place.
pub(crate) fn persist(temporary: NamedTempFile, path: &Path) -> anyhow::Result<()> {
    temporary.persist(path).map_err(|error| error.error).with_context(|| path.display().to_string())?;
    Ok(())
}
