//! What a file with code was found to be when it was mapped for the first time, for whoever takes in the same mappings later: whether it
//! could be opened, and its build id. By that it is found again, if it is still there.

use std::fs::File;

use collector_common::ids::BuildId;

use super::layout::Layout;
use super::store::MappedFile;
use crate::packed::{Packed, Unpacker, packed};
use crate::procfs::Identity;

/// The name of the vDSO among paths.
pub(super) const VDSO: &[u8] = b"[vdso]";

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotedFile {
    /// Which file; `None` for the vDSO, and where nobody told.
    pub(super) identity: Option<Identity>,
    pub(super) path: Box<[u8]>,
    pub(super) is_open: bool,
    pub(super) build_id: Option<BuildId>,
}

impl NotedFile {
    /// Of a mapping, with its file if that could be opened. `None` where nothing tells which file it is.
    pub(super) fn of(mapped: &MappedFile<'_>, file: Option<&File>) -> Option<Self> {
        let identity = Some(mapped.identity?);
        let build_id = file.and_then(Layout::read).and_then(|layout| layout.build_id);
        Some(Self { identity, path: mapped.path.into(), is_open: file.is_some(), build_id })
    }

    pub(super) fn of_vdso(image: Option<&[u8]>) -> Self {
        let build_id = image.and_then(Layout::of_image).and_then(|layout| layout.build_id);
        Self { identity: None, path: VDSO.into(), is_open: image.is_some(), build_id }
    }
}

packed! {
    NotedFile { identity, path, is_open, build_id }
}

impl Packed for BuildId {
    fn pack(&self, out: &mut Vec<u8>) {
        Box::<[u8]>::from(self.as_bytes()).pack(out);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        Self::new(from.counted()?)
    }
}
