//! An output that is a file. In: its path, and later what writes it. Out: the file, whole.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

#[cfg(not(target_os = "linux"))]
use super::named::Temporary;
use super::place::{Place, folder_of};
#[cfg(target_os = "linux")]
use super::temporary::Temporary;

/// A file that is not there yet. It leaves nothing where it is dropped before it is filled, and where the program is killed: only
/// file systems that know no files without a name (NFS) keep a hidden one then.
pub struct OutputFile {
    place: PathBuf,
    temporary: Temporary,
    if_taken: Option<PathBuf>,
}

impl OutputFile {
    /// Makes sure that a file can be written at `path`. A link is followed.
    ///
    /// # Errors
    /// When it can't: the folder is not there, or not the caller's, or what is there is no file.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Place::File(place) = Place::of(path)? {
            return Self::at(place);
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is there, and is no file"))
    }

    /// The same of what is known to be [`Place::File`].
    ///
    /// # Errors
    /// When no file can be made in its folder.
    pub fn at(place: PathBuf) -> io::Result<Self> {
        let temporary = Temporary::new_in(folder_of(&place))?;
        Ok(Self { place, temporary, if_taken: None })
    }

    /// What is at its place when it is filled is kept, and the file is called `name` then.
    #[must_use]
    pub fn or_named(mut self, name: &str) -> Self {
        self.if_taken = Some(self.place.with_file_name(name));
        self
    }

    /// Where it will be.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// To write to before it is filled.
    pub fn file(&mut self) -> &mut File {
        self.temporary.file()
    }

    /// Lets `write` fill it, and puts it into place: what is there is replaced at once, with its owner and mode. Gives its place.
    ///
    /// # Errors
    /// When it can't be written or replaced: what was there stays.
    pub fn fill(mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<PathBuf> {
        let mut out = BufWriter::with_capacity(256 << 10, self.temporary.file());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        match self.if_taken {
            Some(other) => self.temporary.persist_at_first_free([&self.place, &other]),
            None => self.temporary.persist(&self.place).map(|()| self.place),
        }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "old").unwrap();
        symlink("file", &link).unwrap();
        let output = OutputFile::open(&link).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"old");
        let place = output.fill(|out| out.write_all(b"new")).unwrap();
        assert_eq!(place, file.canonicalize().unwrap());
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn what_fails_to_be_written_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "old").unwrap();
        let full = |out: &mut dyn Write| {
            out.write_all(b"new")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        let error = OutputFile::open(&path).unwrap().fill(full).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_can_not_be_written_is_told_before() {
        for path in ["/no/such/folder/x", "/dev/null", "/dev/fd/1", "/tmp"] {
            assert!(OutputFile::open(Path::new(path)).is_err(), "{path}");
        }
    }
}
