//! A PE image's file as its unwind table reads it: functions, one by one, as long as stacks lead through them.

use std::fs::File;
use std::sync::Arc;

use unwinder::ImageBytes;

use super::file::Written;
use crate::this_machine::read_exact_at;

/// The file that a module keeps open, as long as it holds what was executed.
#[derive(Clone, Debug)]
pub(crate) struct ImageFile {
    file: Arc<File>,
    written: Written,
}

impl ImageFile {
    /// A file that was last written to then.
    pub(super) fn new(file: Arc<File>, written: Written) -> Self {
        Self { file, written }
    }

    /// A file as it is now; none where its size can't be told.
    pub(crate) fn of(file: Arc<File>) -> Option<Self> {
        let written = Written::of(&file)?;
        Some(Self { file, written })
    }
}

impl ImageBytes for ImageFile {
    fn size(&self) -> u64 {
        self.written.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let is_read = Written::of(&self.file) == Some(self.written)
            && read_exact_at(&self.file, buffer, offset).is_ok();
        if is_read { buffer.len() } else { 0 }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_until_it_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        std::fs::write(&path, "0123456789").unwrap();
        let image = ImageFile::of(Arc::new(File::open(&path).unwrap())).unwrap();
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        let mut buffer = [0; 4];
        assert_eq!((image.size(), image.read_at(3, &mut buffer), &buffer), (10, 4, b"3456"));
        assert_eq!(image.read_at(8, &mut buffer), 0, "there are two");
        File::options().write(true).open(folder.path().join("old")).unwrap().set_len(8).unwrap();
        assert_eq!(image.read_at(3, &mut buffer), 0, "it holds something else now");
    }
}
