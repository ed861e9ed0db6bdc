//! Input that is no regular file: what came through stdin, another pipe or a device in, a file of the same bytes out, which can be read from
//! any place in it.
//!
//! A stream may have no end, so that nothing of it is stored unless its first bytes are those of something that is read, and then no more
//! than is read of such a thing, or than half of what the disk has free: the other half is for what becomes of it, and for others.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::path::PathBuf;

use collector_common::remedy::{TOO_LARGE, of_reading};
use collector_user::spill::{temporary_file, temporary_folder};
use export::import::BEGIN;

/// Bytes that are copied at once.
const AT_ONCE: usize = 256 << 10;

/// The most bytes that are stored where it is not known how much is free.
const MOST_UNKNOWN: u64 = 16 << 30;

/// Why a stream could not be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The stream.
    #[error("reading failed: {}; {}", .0, of_reading(.0))]
    Read(#[source] io::Error),
    /// The file.
    #[error(
        "it can't be stored in {}, as it has to be to be read: {source}; TMPDIR names another folder for it",
        folder.display()
    )]
    Write {
        /// Where it is.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Nothing of its kind is read that is larger.
    #[error("it has more than {0} bytes, which is the most that is read of such a file; {TOO_LARGE}")]
    TooLarge(u64),
    /// There may be no room for all of it.
    #[error(
        "it has more than {room} bytes, which is half of what is free in {}, where it is stored until it ends; name a file in place of a \
         stream, or another folder by TMPDIR",
        folder.display()
    )]
    NoRoom {
        /// Bytes that it may have.
        room: u64,
        /// Where it would be.
        folder: PathBuf,
    },
}

/// A stream of which the beginning has been read.
pub(crate) struct Stream<R> {
    begin: Vec<u8>,
    rest: R,
}

impl<R: Read> Stream<R> {
    /// Waits for as many bytes as tell what it is.
    pub(crate) fn of(mut stream: R) -> io::Result<Self> {
        let mut begin = Vec::new();
        stream.by_ref().take(BEGIN as u64).read_to_end(&mut begin)?;
        Ok(Self { begin, rest: stream })
    }

    /// Its first bytes.
    pub(crate) fn begin(&self) -> &[u8] {
        &self.begin
    }

    /// All of it, in a file that is at its start, if it has no more than so many bytes.
    pub(crate) fn store(self, most: u64) -> Result<File, StoreError> {
        let folder = temporary_folder();
        let failed = |source| StoreError::Write { folder: folder.clone(), source };
        let mut file = temporary_file().map_err(failed)?;
        let room = room(&file);
        self.copy(&mut file, most.min(room)).map_err(|error| match error {
            NotCopied::Read(error) => StoreError::Read(error),
            NotCopied::Written(source) => failed(source),
            NotCopied::TooLarge if most <= room => StoreError::TooLarge(most),
            NotCopied::TooLarge => StoreError::NoRoom { room, folder: folder.clone() },
        })?;
        file.rewind().map_err(failed)?;
        Ok(file)
    }

    fn copy(self, file: &mut File, most: u64) -> Result<(), NotCopied> {
        let mut stream = io::Cursor::new(self.begin).chain(self.rest);
        let mut buffer = vec![0; AT_ONCE];
        let mut left = most;
        loop {
            let read = match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(NotCopied::Read(error)),
            };
            left = left.checked_sub(read as u64).ok_or(NotCopied::TooLarge)?;
            file.write_all(buffer.get(..read).unwrap_or_default()).map_err(NotCopied::Written)?;
        }
    }
}

#[derive(Debug)]
enum NotCopied {
    Read(io::Error),
    Written(io::Error),
    TooLarge,
}

/// Half of what users may still write where a file is.
#[cfg(target_os = "linux")]
fn room(file: &File) -> u64 {
    rustix::fs::fstatvfs(file)
        .map_or(MOST_UNKNOWN, |system| system.f_bavail.saturating_mul(system.f_frsize) / 2)
}

/// It is not asked for.
#[cfg(not(target_os = "linux"))]
fn room(_: &File) -> u64 {
    MOST_UNKNOWN
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts what is read of a stream without end.
    struct Endless<'a>(&'a mut u64);

    impl Read for Endless<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'x');
            *self.0 += buffer.len() as u64;
            Ok(buffer.len())
        }
    }

    #[test]
    fn a_stream_is_stored_as_it_is() {
        for len in [0, 1, BEGIN, BEGIN + 1, 3 * AT_ONCE + 7] {
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let stream = Stream::of(bytes.as_slice()).unwrap();
            assert_eq!(stream.begin(), &bytes[..len.min(BEGIN)]);
            let mut stored = Vec::new();
            stream.store(len as u64).unwrap().read_to_end(&mut stored).unwrap();
            assert!(stored == bytes, "{len}");
        }
    }

    #[test]
    fn a_stream_without_end_is_stored_up_to_a_limit() {
        let mut read = 0;
        let refused = Stream::of(Endless(&mut read)).unwrap().store(1 << 20).unwrap_err();
        assert!(refused.to_string().contains("more than 1048576 bytes"), "{refused}");
        assert!(read <= (1 << 20) + AT_ONCE as u64, "{read}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_went_wrong_is_told() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("torn"))
            }
        }
        let stream = Stream { begin: vec![1], rest: Broken };
        let torn = stream.store(100).unwrap_err().to_string();
        assert!(torn.starts_with("reading failed: torn; copy it to another disk"), "{torn}");
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        let stream = Stream::of(&b"12"[..]).unwrap();
        assert!(matches!(stream.copy(&mut full, 100), Err(NotCopied::Written(_))));
    }
}
