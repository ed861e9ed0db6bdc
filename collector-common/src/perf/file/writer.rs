//! Records, events and features in, a `perf.data` out: the file mode of `perf record`.
//!
//! ```text
//! 0    header: magic, where the rest is, a bit for each feature       (written by `finish`)
//! 104  records, as they come
//!      list of features, features, ids, list of events                (written by `finish`)
//! ```
//!
//! Source: `struct perf_file_header` of `tools/perf/util/header.h`, `perf_session__do_write_header` of `header.c`.

use std::io::{Seek, SeekFrom, Write};

use super::features::FEATURE_BITS;
use super::reader::{MAGIC, payload_size};
use super::section::{Section, write_count, write_string};
use super::{Feature, Features, FileEvent, FileWriteError};
use crate::perf::write::Writer;
use crate::perf::{Attr, ByteOrder, Bytes, Misc, ParseConfig, Parsed, RawRecord, RecordKind};

/// Bytes of `struct perf_file_header`, before the records.
const HEADER: u64 = 104;

/// `PERF_ATTR_SIZE_VER0` to `VER9`.
const ATTR_SIZES: [usize; 10] = [64, 72, 80, 96, 104, 112, 120, 128, 136, 144];

/// Writes a `perf.data`.
///
/// Records go out at once and are not kept. Events with their ids, features, and 16 bytes for each
/// [`RecordKind::AUXTRACE`] are held in memory until [`Self::finish`], so that they may come at any time before it.
/// Until then the file begins with zeros, and every reader says that it is no `perf.data`.
///
/// If there is more than one event, readers find a record's event by its id: all should have
/// [`crate::perf::SampleType::IDENTIFIER`], and [`crate::perf::AttrFlags::SAMPLE_ID_ALL`].
pub struct FileWriter<W> {
    out: W,
    order: ByteOrder,
    events: Vec<FileEvent>,
    features: Features,
    /// Bytes of records.
    size: u64,
    /// Whether something behind the records was left by a failure.
    is_torn: bool,
    /// Where each [`RecordKind::AUXTRACE`] is, without the data behind it.
    aux_index: Vec<Section>,
    record: Vec<u8>,
}

impl<W: Write + Seek> FileWriter<W> {
    /// A file in `out`, from its start on, which should be empty. Numbers are written in `order`.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn new(mut out: W, order: ByteOrder) -> Result<Self, FileWriteError> {
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&[0; HEADER as usize])?;
        Ok(Self {
            out,
            order,
            events: Vec::new(),
            features: Features::new(order),
            size: 0,
            is_torn: false,
            aux_index: Vec::new(),
            record: Vec::new(),
        })
    }

    /// Adds an event with its ids, and with the name that is to be shown. The index that it has in
    /// [`Self::events`].
    ///
    /// The attributes of all events are written with the size of the oldest version that has all that is in them:
    /// `perf` reads no version that is newer than itself.
    ///
    /// # Errors
    /// When the attributes' size is one that they can't have.
    pub fn add_event(
        &mut self,
        attr: &Attr,
        ids: Vec<u64>,
        name: Option<String>,
    ) -> Result<usize, FileWriteError> {
        let mut bytes = Vec::new();
        attr.write(self.order, &mut bytes);
        // What is behind the size does not count.
        let attr = Attr::parse(&bytes, self.order)?;
        let config = ParseConfig::from(&attr, self.order);
        self.events.push(FileEvent { attr, config, ids, name });
        Ok(self.events.len() - 1)
    }

    /// The events so far.
    pub fn events(&self) -> &[FileEvent] {
        &self.events
    }

    /// What is to be said of the machine and of the recording. [`Feature::EVENT_DESC`] and [`Feature::AUXTRACE`] are
    /// made from the events and records: the first if each event has a name.
    pub fn features(&mut self) -> &mut Features {
        &mut self.features
    }

    /// Writes a record of the event with this index.
    ///
    /// # Errors
    /// When there is no such event, the record does not suit it, or it can't be written.
    pub fn write(&mut self, event: usize, record: &Parsed<'_>) -> Result<(), FileWriteError> {
        let config = self.events.get(event).ok_or(FileWriteError::NoEvent(event))?.config;
        self.record.clear();
        record.write(&config, &mut self.record)?;
        self.append(&[])
    }

    /// Writes a record that is in the file's byte order, and what follows it outside of it, as
    /// [`super::FileRecord::payload`] has it.
    ///
    /// # Errors
    /// When the record is too long, says that something of another length follows it, or can't be written.
    pub fn write_raw(&mut self, record: &RawRecord<'_>, payload: &[u8]) -> Result<(), FileWriteError> {
        let (size, len) = (payload_size(record, self.order), payload.len() as u64);
        if size != len {
            return Err(FileWriteError::Payload { kind: record.kind, size, len });
        }
        self.record.clear();
        record.write(self.order, &mut self.record)?;
        let section = Section { offset: HEADER + self.size, size: self.record.len() as u64 };
        self.append(payload)?;
        if record.kind == RecordKind::AUXTRACE {
            self.aux_index.push(section);
        }
        Ok(())
    }

    /// Says that all rings have been read up to now: no record that follows is older than any that came before the
    /// last such mark. Readers sort records between them.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn finish_round(&mut self) -> Result<(), FileWriteError> {
        let mark = RawRecord { kind: RecordKind::FINISHED_ROUND, misc: Misc(0), body: Bytes::default() };
        self.write_raw(&mark, &[])
    }

    /// Writes the record that lies ready. After a failure, the next one takes the place of what was left of it.
    fn append(&mut self, payload: &[u8]) -> Result<(), FileWriteError> {
        if self.is_torn {
            self.out.seek(SeekFrom::Start(HEADER + self.size))?;
        }
        self.is_torn = true;
        self.out.write_all(&self.record)?;
        self.out.write_all(payload)?;
        self.is_torn = false;
        self.size += (self.record.len() + payload.len()) as u64;
        Ok(())
    }

    /// Writes what is behind the records, and at last the header that makes it a `perf.data`.
    ///
    /// # Errors
    /// When a feature has a number that the header has no bit for, or something can't be written.
    pub fn finish(mut self) -> Result<W, FileWriteError> {
        self.describe()?;
        let data = Section { offset: HEADER, size: self.size };
        let mut sections: Vec<_> = self.features.sections().collect();
        sections.sort_by_key(|(feature, _)| *feature);
        let mut flags = [0_u64; FEATURE_BITS as usize / 64];
        for (Feature(bit), _) in &sections {
            let word = flags.get_mut(*bit as usize / 64);
            *word.ok_or(FileWriteError::Feature(Feature(*bit)))? |= 1 << (bit % 64);
        }

        let mut bytes = Vec::new();
        let mut place = data.offset + data.size;
        self.out.seek(SeekFrom::Start(place))?;
        let mut writer = Writer::new(&mut bytes, self.order);
        place += Section::SIZE * sections.len() as u64;
        for (_, section) in &sections {
            let size = section.len() as u64;
            Section { offset: place, size }.write(&mut writer);
            place += size;
        }
        self.out.write_all(&bytes)?;
        for (_, section) in &sections {
            self.out.write_all(section)?;
        }

        bytes.clear();
        let attr_size = self.attr_size();
        let mut ids = Vec::with_capacity(self.events.len());
        for event in &self.events {
            let size = event.ids.len() as u64 * 8;
            ids.push(Section { offset: place, size });
            place += size;
            let mut writer = Writer::new(&mut bytes, self.order);
            event.ids.iter().for_each(|id| writer.u64(*id));
        }
        let attrs_at = place;
        for (event, ids) in self.events.iter().zip(ids) {
            with_size(&event.attr, attr_size).write(self.order, &mut bytes);
            ids.write(&mut Writer::new(&mut bytes, self.order));
        }
        self.out.write_all(&bytes)?;

        let entry_size = attr_size as u64 + Section::SIZE;
        let attrs = Section { offset: attrs_at, size: entry_size * self.events.len() as u64 };
        bytes.clear();
        let mut writer = Writer::new(&mut bytes, self.order);
        writer.u64(u64::from_le_bytes(MAGIC));
        writer.u64(HEADER);
        writer.u64(entry_size);
        for section in [attrs, data, Section::default()] {
            section.write(&mut writer);
        }
        for word in flags {
            writer.u64(word);
        }
        // A header must not come to the disk before what it speaks of, as far as that is in our hands.
        self.out.flush()?;
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&bytes)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Bytes of attributes: as many as the longest of them needs.
    fn attr_size(&self) -> usize {
        let needed = self.events.iter().map(|event| {
            let mut bytes = Vec::new();
            event.attr.write(self.order, &mut bytes);
            bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
        });
        let needed = needed.max().unwrap_or(0);
        ATTR_SIZES.into_iter().find(|size| *size >= needed).unwrap_or(needed.next_multiple_of(8))
    }

    /// Makes the features that are about the file itself.
    fn describe(&mut self) -> Result<(), FileWriteError> {
        if !self.aux_index.is_empty() {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes, self.order);
            writer.u64(self.aux_index.len() as u64);
            self.aux_index.iter().for_each(|section| section.write(&mut writer));
            self.features.set_section(Feature::AUXTRACE, bytes);
        }
        let names: Option<Vec<_>> = self.events.iter().map(|event| event.name.as_deref()).collect();
        let Some(names) = names.filter(|names| !names.is_empty()) else { return Ok(()) };
        let attr_size = self.attr_size();
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, self.order);
        write_count(&mut writer, names.len())?;
        write_count(&mut writer, attr_size)?;
        for (event, name) in self.events.iter().zip(names) {
            with_size(&event.attr, attr_size).write(self.order, &mut bytes);
            let mut writer = Writer::new(&mut bytes, self.order);
            write_count(&mut writer, event.ids.len())?;
            write_string(&mut writer, name)?;
            event.ids.iter().for_each(|id| writer.u64(*id));
        }
        self.features.set_section(Feature::EVENT_DESC, bytes);
        Ok(())
    }
}

fn with_size(attr: &Attr, size: usize) -> Attr {
    Attr { size: size as u32, ..attr.clone() }
}
