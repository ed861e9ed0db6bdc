//! Elsewhere than on Linux, files are those of recordings of other machines: copies that are kept here, and what servers gave.

use std::fs::File;
use std::path::Path;

use collector_common::ids::Pid;

use crate::modules::store::MappedFile;
use crate::this_machine::is_local;

/// No process of a recording runs here.
pub(in crate::modules) fn open(_pid: Pid, _mapped: &MappedFile<'_>) -> Option<File> {
    None
}

/// The same of a file that a process may not have written anything to yet.
pub(in crate::modules) fn open_growing(_pid: Pid, _mapped: &MappedFile<'_>) -> Option<File> {
    None
}

/// Opens a regular file of this machine that has bytes.
pub(crate) fn open_regular(path: &Path) -> Option<File> {
    is_local(path).then(|| open_chosen(path)).flatten()
}

/// The same at a path that the user has chosen, which may lead to another machine.
pub(crate) fn open_chosen(path: &Path) -> Option<File> {
    let is_regular =
        |file: &File| file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    File::open(path).ok().filter(is_regular)
}
