//! Where an image's bytes are read: in its file when they are needed, or in memory that a caller has.

use object::read::ReadCacheOps;

/// The bytes of a PE image's file, of which a table reads a function's when it is first asked for.
///
/// Bytes in memory are (`Vec<u8>`, `Arc<[u8]>`, `&'static [u8]`, a file that is mapped); they are held as long as the table reads
/// them. For a file that is read, and neither held in memory nor mapped:
///
/// ```
/// # #[cfg(unix)] {
/// use std::fs::File;
/// use std::os::unix::fs::FileExt;
///
/// use unwinder::ImageBytes;
///
/// struct ImageFile {
///     file: File,
///     size: u64,
/// }
///
/// impl ImageBytes for ImageFile {
///     fn size(&self) -> u64 {
///         self.size
///     }
///
///     fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
///         self.file.read_exact_at(buffer, offset).map_or(0, |()| buffer.len())
///     }
/// }
/// # }
/// ```
pub trait ImageBytes: Send + Sync + 'static {
    /// How many bytes there are. It is asked for when a table is made.
    fn size(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on, and returns how many these are: fewer than it has room for where there are no
    /// more, or where they can't be read. What is asked for lies within [`Self::size`].
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize;
}

impl<T: AsRef<[u8]> + Send + Sync + 'static> ImageBytes for T {
    fn size(&self) -> u64 {
        self.as_ref().len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.as_ref().get(offset..));
        let rest = rest.unwrap_or_default();
        let read = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..read), rest.get(..read)) {
            to.copy_from_slice(from);
        }
        read
    }
}

/// Reads on from a place, for what parses headers.
pub(super) struct Headers<'b> {
    pub(super) bytes: &'b dyn ImageBytes,
    pub(super) at: u64,
}

impl ReadCacheOps for Headers<'_> {
    fn len(&mut self) -> Result<u64, ()> {
        Ok(self.bytes.size())
    }

    fn seek(&mut self, at: u64) -> Result<u64, ()> {
        self.at = at;
        Ok(at)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ()> {
        let read = self.bytes.read_at(self.at, buffer);
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ()> {
        let read = self.read(buffer)?;
        (read == buffer.len()).then_some(()).ok_or(())
    }
}
