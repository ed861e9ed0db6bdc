//! Where a recording is written. A temporary file is made before the recording starts, so that a folder that can't be
//! written is told at once, and put into place when it is whole. What is there already and is no file (a device, a
//! pipe) is written to as it is.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use export::format::{ExportFormat, Profile, by_name, for_path, formats};

use crate::temporary::Temporary;
use crate::{Usage, say};

/// An output with its format.
pub(crate) struct Output {
    target: Target,
    format: &'static dyn ExportFormat,
}

impl Output {
    /// `-` is stdout and needs `format`; elsewhere the ending says the format, unless `format` does.
    pub(crate) fn open(path: &Path, format: Option<&str>, taken: &mut Taken) -> anyhow::Result<Self> {
        let known = || formats().iter().map(|format| format.ending()).collect::<Vec<_>>().join(", ");
        let stdout = path.as_os_str() == "-";
        let format = match format {
            Some(name) => by_name(name).ok_or_else(|| {
                Usage(format!("unknown format `{name}`: `collector list formats` lists them"))
            })?,
            None if stdout => return Err(Usage("writing to stdout needs --format".to_owned()).into()),
            None => for_path(path).ok_or_else(|| {
                Usage(format!("the ending of {} is no format: use one of {}", path.display(), known()))
            })?,
        };
        let target = if stdout { Target::Stdout } else { Target::open(path, taken)? };
        Ok(Self { target, format })
    }

    /// Writes the profile and puts the file into place.
    pub(crate) fn write(self, profile: Profile<'_>) -> anyhow::Result<()> {
        self.target.fill(|out| self.format.write(profile, out))
    }
}

/// The places that a command line writes to: none may be named twice.
#[derive(Default)]
pub(crate) struct Taken(BTreeSet<PathBuf>);

/// Where bytes go.
pub(crate) enum Target {
    Stdout,
    /// Something that is there and is no file.
    Special {
        path: PathBuf,
        file: File,
    },
    File {
        path: PathBuf,
        temporary: Temporary,
    },
}

impl Target {
    /// Makes sure that `path` can be written.
    pub(crate) fn open(path: &Path, taken: &mut Taken) -> anyhow::Result<Self> {
        if path.is_dir() {
            return Err(Usage(format!("{} is a folder: name a file in it", path.display())).into());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // A link is followed: what it leads to is replaced, not the link.
        let place = path
            .canonicalize()
            .or_else(|_| Ok(folder.canonicalize()?.join(path.file_name().unwrap_or_default())));
        let place = place.map_err(|error: io::Error| unwritable(path, folder, &error))?;
        if !taken.0.insert(place.clone()) {
            return Err(Usage(format!("{} is named twice as an output", path.display())).into());
        }
        if place.metadata().is_ok_and(|data| !data.is_file()) {
            let file = OpenOptions::new().write(true).open(&place);
            let file = file.map_err(|error| unwritable(path, folder, &error))?;
            return Ok(Self::Special { path: path.to_owned(), file });
        }
        let temporary = Temporary::new_in(place.parent().unwrap_or(folder));
        let temporary = temporary.map_err(|error| unwritable(path, folder, &error))?;
        Ok(Self::File { path: place, temporary })
    }

    /// Lets `write` fill it, and puts a file into place when it is whole.
    pub(crate) fn fill(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
        match self {
            Self::Stdout => buffered(io::stdout().lock(), write).context("stdout can't be written"),
            Self::Special { path, file } => {
                buffered(file, write).with_context(|| format!("{} can't be written", path.display()))
            }
            Self::File { path, mut temporary } => {
                buffered(temporary.file(), write)
                    .and_then(|()| temporary.persist(&path))
                    .with_context(|| format!("{} can't be written", path.display()))?;
                say(&format!("wrote {}", path.display()));
                Ok(())
            }
        }
    }
}

fn buffered(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(256 << 10, out);
    write(&mut out)?;
    out.flush()
}

fn unwritable(path: &Path, folder: &Path, error: &io::Error) -> anyhow::Error {
    anyhow::anyhow!(
        "{} can't be written: {error}; choose a folder that exists and is yours instead of {}",
        path.display(),
        folder.display()
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    use super::*;

    fn write(path: &Path) -> anyhow::Result<()> {
        Target::open(path, &mut Taken::default())?.fill(|out| out.write_all(b"new"))
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        write(&link).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn a_pipe_stays_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        // Open for reading and writing, so that neither side waits for the other.
        let mut reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        write(&pipe).unwrap();
        let mut bytes = [0; 3];
        io::Read::read_exact(&mut reader, &mut bytes).unwrap();
        assert_eq!(&bytes, b"new");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    }

    #[test]
    fn one_place_is_not_written_twice() {
        let folder = tempfile::tempdir().unwrap();
        let mut taken = Taken::default();
        Target::open(&folder.path().join("x"), &mut taken).unwrap();
        let again = Target::open(&folder.path().join(".").join("x"), &mut taken);
        assert!(again.is_err_and(|error| error.is::<Usage>()));
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is left behind");
    }
}
