//! Reads a file at places. Errors say where.

use std::io::{ErrorKind, Read, Seek, SeekFrom};

use super::error::EtlError;

/// A file.
#[derive(Debug)]
pub(super) struct Source<R> {
    file: R,
    /// Bytes that it had when it was opened.
    pub(super) length: u64,
}

impl<R: Read + Seek> Source<R> {
    pub(super) fn new(mut file: R) -> Result<Self, EtlError> {
        let length = file.seek(SeekFrom::End(0)).map_err(|source| EtlError::Io { at: 0, source })?;
        Ok(Self { file, length })
    }

    /// Reads what there is at `at`, up to the length of `into`. Tells how much that was. What was appended to the file since it
    /// was opened is not there.
    pub(super) fn read(&mut self, at: u64, into: &mut [u8]) -> Result<usize, EtlError> {
        let error = |source| EtlError::Io { at, source };
        let left = usize::try_from(self.length.saturating_sub(at)).unwrap_or(usize::MAX);
        let most = left.min(into.len());
        let into = &mut into[..most];
        self.file.seek(SeekFrom::Start(at)).map_err(error)?;
        let mut length = 0;
        while length < into.len() {
            match self.file.read(&mut into[length..]) {
                Ok(0) => break,
                Ok(bytes) => length += bytes,
                Err(reason) if reason.kind() == ErrorKind::Interrupted => {}
                Err(reason) => return Err(error(reason)),
            }
        }
        Ok(length)
    }
}
