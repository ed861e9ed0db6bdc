//! Which file a number of the kernel's stands for: what tells names in, paths out when all is known.
//!
//! `FileIo` tells names of file keys (`Name`, `FileCreate`, `FileDelete`, `FileRundown`), most of them when the trace ends, and `Create` the path
//! that a file object was opened by; a `DiskIo` names its file by the key in `FileObject`, a `FileIo/Read` by `FileKey` (Microsoft's pages on
//! `FileIo_Name`, `FileIo_Create` and `FileIo_ReadWrite`). A key is used again after its file is deleted: a [`FileUse`] is one use of it.

use std::collections::HashMap;
use std::sync::Arc;

use windows_etw::decode::kernel::{FileName, KernelEvent};

use super::name;

/// Uses that are kept.
const MOST: usize = 1 << 20;

/// One use of a file key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileUse(pub(super) u32);

#[derive(Debug, Default)]
struct Known {
    /// One file may be opened as often as it likes, and its path is there once.
    path: Arc<str>,
    /// Whether the key itself was told of, not only what it was opened by.
    is_told: bool,
}

/// All files of a trace.
#[derive(Debug, Default)]
pub(super) struct Files {
    keys: HashMap<u64, FileUse>,
    uses: Vec<Known>,
    /// What file objects were opened by.
    opened: HashMap<u64, Arc<str>>,
    left_out: u64,
}

impl Files {
    /// Takes an event; those that tell nothing of names are passed over.
    pub(super) fn take(&mut self, event: &KernelEvent<'_>) {
        match event {
            KernelEvent::FileName(file) | KernelEvent::FileNameRundown(file) => {
                self.tell(file);
            }
            KernelEvent::FileNameCreate(file) => {
                self.keys.remove(&file.file_object.0);
                self.tell(file);
            }
            KernelEvent::FileNameDelete(file) => {
                self.tell(file);
                self.keys.remove(&file.file_object.0);
            }
            KernelEvent::FileCreate(file) => {
                if self.opened.len() < MOST || self.opened.contains_key(&file.file_object.0) {
                    let path = file.path.to_string();
                    self.opened.insert(file.file_object.0, name(&path).into());
                } else {
                    self.left_out += 1;
                }
            }
            KernelEvent::FileClose(file) => {
                self.opened.remove(&file.file_object.0);
            }
            _ => {}
        }
    }

    /// The use of a key now, and of the object that is opened of it, where that is told; none for 0, and where there are too many.
    pub(super) fn of(&mut self, key: u64, object: Option<u64>) -> Option<FileUse> {
        let id = self.use_of(key)?;
        let opened = object.and_then(|object| self.opened.get(&object));
        if let (Some(path), Some(known)) = (opened, self.uses.get_mut(id.0 as usize))
            && known.path.is_empty()
        {
            known.path.clone_from(path);
        }
        Some(id)
    }

    /// As the kernel has it; none where it was never told.
    pub(super) fn path(&self, id: FileUse) -> Option<&str> {
        self.uses.get(id.0 as usize).map(|known| &*known.path).filter(|path| !path.is_empty())
    }

    /// Names that there was no room for.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }

    fn tell(&mut self, file: &FileName<'_>) {
        let Some(id) = self.use_of(file.file_object.0) else { return };
        let Some(known) = self.uses.get_mut(id.0 as usize).filter(|known| !known.is_told) else { return };
        let path = file.path.to_string();
        if !path.is_empty() {
            *known = Known { path: name(&path).into(), is_told: true };
        }
    }

    fn use_of(&mut self, key: u64) -> Option<FileUse> {
        if key == 0 {
            return None;
        }
        if let Some(known) = self.keys.get(&key) {
            return Some(*known);
        }
        if self.uses.len() >= MOST {
            self.left_out += 1;
            return None;
        }
        let id = FileUse(self.uses.len() as u32);
        self.uses.push(Known::default());
        self.keys.insert(key, id);
        Some(id)
    }
}
