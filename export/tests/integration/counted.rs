//! Counts what is written, and keeps nothing: for what is written of long recordings.

use std::io::{self, Write};

/// How many bytes that were.
#[derive(Default)]
pub(crate) struct Counted(pub(crate) u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
