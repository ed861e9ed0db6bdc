//! Debug files: what distributions strip from the files that run, symbols and rarely `.debug_frame`.

use std::fs::File;

use collector_common::ids::BuildId;

/// The debug file of the file with this build id, where distributions put it:
/// `/usr/lib/debug/.build-id/ab/cdef....debug`.
pub(crate) fn open(build_id: BuildId) -> Option<File> {
    let id = build_id.to_string();
    let (head, tail) = id.split_at_checked(2)?;
    File::open(format!("/usr/lib/debug/.build-id/{head}/{tail}.debug")).ok()
}
