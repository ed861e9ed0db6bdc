//! What a stream tells of its files behind their mappings, where it is in a file and can be read twice.
//!
//! `perf inject --build-ids` puts a file's build id (`PERF_RECORD_HEADER_BUILD_ID`) before the first sample in it, which may be long after
//! it was mapped (`tools/perf/builtin-inject.c`). Files are opened as they are mapped, by their build ids.

use std::fs::File;
use std::io::{self, Seek as _};

use collector_common::ids::BuildId;
use collector_common::perf::RecordKind;
use collector_common::perf::file::{FileReader, FileRecord, HeaderBuildId, UserRecord};
use rustc_hash::FxHashMap;

use super::folder::buffered;
use crate::modules::MOST_BUILD_IDS;

/// By path.
pub(super) type BuildIds = FxHashMap<Box<[u8]>, BuildId>;

/// Build ids that are told among the records of a stream; none of a file that is no stream, or of what is behind damage. The file is at
/// its beginning then.
///
/// # Errors
/// When the file can't be read from its beginning again.
pub(super) fn build_ids(mut file: &File) -> io::Result<BuildIds> {
    let mut ids = BuildIds::default();
    if let Ok(mut stream) = FileReader::stream(buffered(file)) {
        while let Ok(Some(record)) = stream.next_record() {
            add(&record, &mut ids);
        }
    }
    file.rewind()?;
    Ok(ids)
}

/// Adds what a record tells.
pub(super) fn add(record: &FileRecord<'_>, ids: &mut BuildIds) {
    if record.raw.kind == RecordKind::HEADER_BUILD_ID
        && let UserRecord::HeaderBuildId(HeaderBuildId { build_id: Some(id), path, .. }) =
            record.parse_user().record
        && ids.len() < MOST_BUILD_IDS
    {
        ids.insert(path.bytes().to_cow().into(), id);
    }
}
