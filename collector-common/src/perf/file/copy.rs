//! Copies a recording: packed records come out unpacked, and a stream or the files of a folder come out as a file.

use std::io::{Read, Seek, Write};

use super::{
    Feature, FileError, FileReader, FileRecord, FileWriteError, FileWriter, MissingFeatures, TracingData,
    UserRecord,
};
use crate::perf::{RawRecord, RecordKind};

/// A file that was written by [`copy`].
#[derive(Debug)]
pub struct Copied<W> {
    /// What it was written to.
    pub out: W,
    /// Why the recording could not be read to its end. What comes before is in the file.
    pub cut_off: Option<FileError>,
    /// Whether the recording was never completed: what was written of it is in the file.
    pub is_unfinished: bool,
    /// Features that could not be read.
    pub missing_features: Option<MissingFeatures>,
}

/// Writes all records that `reader` has not given out yet into a new file, with the events and features of the recording.
/// Records keep their bytes and their order; only those are left out that tell of events and features in a stream, as a
/// file has them in its header.
///
/// # Errors
/// When the file can't be written.
pub fn copy<R: Read, W: Write + Seek>(
    mut reader: FileReader<R>,
    out: W,
) -> Result<Copied<W>, FileWriteError> {
    let (order, has_parts) = (reader.byte_order(), reader.has_parts());
    let mut writer = FileWriter::new(out, order)?;
    let mut build_ids = Vec::new();
    let mut tracing_data = None;
    let cut_off = loop {
        let record = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        match record.raw.kind {
            RecordKind::HEADER_ATTR | RecordKind::HEADER_FEATURE => {}
            RecordKind::HEADER_BUILD_ID => {
                RawRecord { kind: RecordKind(0), ..record.raw }.write(order, &mut build_ids)?;
            }
            RecordKind::FINISHED_ROUND if has_parts => {}
            RecordKind::HEADER_TRACING_DATA => tracing_data = Some(without_filling(&record)),
            _ => writer.write_raw(&record.raw, record.payload)?,
        }
    };
    for event in reader.events() {
        writer.add_event(&event.attr, event.ids.clone(), event.name.clone())?;
    }
    for (feature, bytes) in reader.features().sections() {
        // These three are about how the recording lay in its file; and behind its last feature a stream has an empty one.
        let is_of_file = [Feature::COMPRESSED, Feature::DIR_FORMAT, Feature::AUXTRACE].contains(&feature);
        let is_mark = feature > Feature::PMU_CAPS && bytes.is_empty();
        if !is_of_file && !is_mark {
            writer.features().set_section(feature, bytes.to_vec());
        }
    }
    if !build_ids.is_empty() {
        let mut all = writer.features().section(Feature::BUILD_ID).unwrap_or_default().to_vec();
        all.append(&mut build_ids);
        writer.features().set_section(Feature::BUILD_ID, all);
    }
    if let Some(bytes) = tracing_data {
        writer.features().set_section(Feature::TRACING_DATA, bytes);
    }
    let (is_unfinished, missing_features) = (reader.is_unfinished(), reader.missing_features().cloned());
    Ok(Copied { out: writer.finish()?, cut_off, is_unfinished, missing_features })
}

/// The formats of tracepoints. In a stream they are filled up to a multiple of 8.
fn without_filling(record: &FileRecord<'_>) -> Vec<u8> {
    let UserRecord::TracingData(TracingData { size }) = record.parse_user().record else { return Vec::new() };
    record.payload.get(..size as usize).unwrap_or(record.payload).to_vec()
}
