//! Where bytes go. Files are the library's: opened before the recording starts, so that a folder that can't be
//! written is told at once, and there when they are whole. What is there already and is no file (a device, a
//! pipe) is opened when the recording is over, as a pipe waits for its reader, and written to as it is. So is, on Linux, what is open
//! already (`/dev/stdout`, `/dev/fd/5`): the file that it leads to has other contents, and other writers.

#[cfg(target_os = "linux")]
use std::fs::File;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
#[cfg(target_os = "linux")]
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::process;

use anyhow::Context as _;
#[cfg(target_os = "linux")]
use collector_user::output::Descriptor;
use collector_user::output::{OutputFile, Place, Places};
#[cfg(target_os = "linux")]
use rustix::fs::{Access, OFlags, access, fcntl_getfl};
#[cfg(target_os = "linux")]
use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::report::unless_closed;
use crate::{Usage, say};

/// Where bytes go.
pub(crate) enum Target {
    Stdout,
    /// Something that is there and is no file.
    Special {
        path: PathBuf,
    },
    /// Something that is open.
    #[cfg(target_os = "linux")]
    Open {
        path: PathBuf,
        file: File,
    },
    File(OutputFile),
}

impl Target {
    /// Makes sure that `path` can be written; `-` is stdout.
    pub(crate) fn open(path: &Path, taken: &mut Places) -> anyhow::Result<Self> {
        let mut take = |place: &Path| {
            let told = || {
                let path = path.display();
                Usage(format!("{path} is named twice as an output: leave one out, or name another file"))
            };
            taken.take(place).then_some(()).ok_or_else(told)
        };
        if path.as_os_str() == "-" {
            take(path)?;
            return Ok(Self::Stdout);
        }
        let refuse = |error: io::Error| match error.kind() {
            io::ErrorKind::IsADirectory => {
                Usage(format!("{} is a folder: name a file in it", path.display())).into()
            }
            _ => unwritable(path, &error),
        };
        match Place::of(path).map_err(refuse)? {
            #[cfg(target_os = "linux")]
            Place::Descriptor(descriptor) => {
                take(path)?;
                Ok(Self::Open { path: path.to_owned(), file: writable(descriptor).map_err(refuse)? })
            }
            Place::Special(place) => {
                take(&place)?;
                #[cfg(target_os = "linux")]
                access(path, Access::WRITE_OK).map_err(|error| refuse(error.into()))?;
                Ok(Self::Special { path: path.to_owned() })
            }
            Place::File(place) => {
                take(&place)?;
                Ok(Self::File(OutputFile::at(place).map_err(refuse)?))
            }
        }
    }

    /// What it is called.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "stdout".to_owned(),
            Self::Special { path } => path.display().to_string(),
            #[cfg(target_os = "linux")]
            Self::Open { path, .. } => path.display().to_string(),
            Self::File(file) => file.place().display().to_string(),
        }
    }

    /// Whether writing it may wait for somebody, as for a pipe's reader.
    pub(crate) fn may_wait(&self) -> bool {
        !matches!(self, Self::File(_))
    }

    /// Lets `write` fill it, and puts a file into place when it is whole.
    pub(crate) fn fill(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
        let failed = |path: &Path| format!("{} can't be written", path.display());
        match self {
            Self::Stdout => {
                unless_closed(buffered(io::stdout().lock(), write)).context("stdout can't be written")
            }
            #[cfg(target_os = "linux")]
            Self::Open { path, file } => unless_closed(buffered(file, write)).with_context(|| failed(&path)),
            Self::Special { path } => OpenOptions::new()
                .write(true)
                .open(&path)
                .and_then(|file| unless_closed(buffered(file, write)))
                .with_context(|| failed(&path)),
            Self::File(file) => {
                let path = file.place().to_owned();
                let place = file.fill(write).with_context(|| failed(&path))?;
                say(&format!("wrote {}", place.display()));
                Ok(())
            }
        }
    }
}

/// What is open there, and not the file behind it opened again, which would be written from its start on.
#[cfg(target_os = "linux")]
fn writable(descriptor: Descriptor) -> io::Result<File> {
    let open = match (descriptor.process == process::id(), descriptor.number) {
        // Containers may forbid `pidfd_getfd`.
        (true, 1) => io::stdout().as_fd().try_clone_to_owned()?,
        (true, 2) => io::stderr().as_fd().try_clone_to_owned()?,
        _ => {
            let process = Pid::from_raw(descriptor.process.cast_signed()).ok_or(Errno::SRCH)?;
            let process = pidfd_open(process, PidfdFlags::empty())?;
            pidfd_getfd(process, descriptor.number, PidfdGetfdFlags::empty())?
        }
    };
    let mode = fcntl_getfl(&open)? & OFlags::RWMODE;
    if mode == OFlags::RDONLY { Err(Errno::BADF.into()) } else { Ok(open.into()) }
}

fn buffered(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(256 << 10, out);
    write(&mut out)?;
    out.flush()
}

/// That nothing can be written at a path, and what helps.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> anyhow::Error {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    anyhow::anyhow!(
        "{} can't be written: {error}; choose a folder that exists and is yours instead of {}",
        path.display(),
        folder.display()
    )
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    use super::*;

    fn write(path: &Path) -> anyhow::Result<()> {
        Target::open(path, &mut Places::default())?.fill(|out| out.write_all(b"new"))
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
        let dangling = folder.path().join("dangling");
        symlink("made", &dangling).unwrap();
        write(&dangling).unwrap();
        assert!(dangling.is_symlink());
        assert_eq!(fs::read_to_string(folder.path().join("made")).unwrap(), "new");
        let circular = folder.path().join("circular");
        symlink(&circular, &circular).unwrap();
        assert!(write(&circular).is_err());
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
    fn a_pipe_without_a_name_is_written_through_its_descriptor() {
        let (mut reader, writer) = io::pipe().unwrap();
        write(Path::new(&format!("/dev/fd/{}", writer.as_raw_fd()))).unwrap();
        let mut bytes = [0; 3];
        io::Read::read_exact(&mut reader, &mut bytes).unwrap();
        assert_eq!(&bytes, b"new");
    }

    #[test]
    fn what_is_open_is_written_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"head ").unwrap();
        let number = file.as_raw_fd();
        let link = folder.path().join("link");
        symlink(format!("/proc/thread-self/fd/{number}"), &link).unwrap();
        write(&link).unwrap();
        write(Path::new(&format!("/dev/fd/{number}"))).unwrap();
        file.write_all(b" tail").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "head newnew tail");
        let reader = File::open(&path).unwrap();
        let number = reader.as_raw_fd();
        assert!(Target::open(Path::new(&format!("/dev/fd/{number}")), &mut Places::default()).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "head newnew tail");
    }

    #[test]
    fn one_place_is_not_written_twice() {
        let folder = tempfile::tempdir().unwrap();
        let mut taken = Places::default();
        Target::open(&folder.path().join("x"), &mut taken).unwrap();
        let again = Target::open(&folder.path().join(".").join("x"), &mut taken);
        assert!(again.is_err_and(|error| error.is::<Usage>()));
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is left behind");
    }
}
