//! Record by record through a `perf.data`.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use super::events::Events;
use super::features::FEATURE_BITS;
use super::section::{Apart, Section, exactly};
use super::unpack::{Damaged, Unpacker};
use super::{
    BranchCounters, Compressed, Compressed2, Feature, Features, FileError, FileEvent, FilePart,
    HeaderFeature, MissingFeatures, ParsedUser, Place, UserRecord,
};
use crate::perf::fields::Fields;
use crate::perf::{
    Attr, AttrError, ByteOrder, Bytes, Misc, OwnedRecord, ParseConfig, ParseError, Parsed, RawRecord,
    RecordKind,
};

/// A record of a file.
#[derive(Clone, Copy, Debug)]
pub struct FileRecord<'a> {
    /// The record.
    pub raw: RawRecord<'a>,
    /// The event that it is from: an index into [`FileReader::events`]. None for the records that `perf` itself
    /// makes, such as [`RecordKind::FINISHED_ROUND`], and for samples whose id no event has.
    pub event: Option<usize>,
    /// What follows the record outside of it: data of the AUX area after [`RecordKind::AUXTRACE`], formats of
    /// tracepoints after [`RecordKind::HEADER_TRACING_DATA`]. Else nothing.
    pub payload: &'a [u8],
    /// How its event's records are laid out.
    pub config: ParseConfig,
}

impl<'a> FileRecord<'a> {
    /// Reads the record's fields.
    ///
    /// # Errors
    /// When the record is too short for them.
    pub fn parse(&self) -> Result<Parsed<'a>, ParseError> {
        self.raw.parse(&self.config)
    }

    /// Reads the fields of a record that `perf` itself made.
    pub fn parse_user(&self) -> ParsedUser<'a> {
        self.raw.parse_user(self.config.byte_order)
    }
}

/// A record with what follows it, and its event.
#[derive(Debug)]
pub(super) struct OwnedFileRecord {
    pub(super) record: OwnedRecord,
    pub(super) payload: Vec<u8>,
    pub(super) event: Option<usize>,
}

/// Reads a `perf.data`.
pub struct FileReader<R> {
    reader: R,
    order: ByteOrder,
    /// Bytes of records that are left; `None` in a stream, which ends when it ends.
    left: Option<u64>,
    /// Where in the file that is being read the current record begins, and the next one.
    at: u64,
    next_at: u64,
    /// Bytes of records that were read, as they lie in the file.
    bytes_read: u64,
    events: Events,
    features: Features,
    missing_features: Option<MissingFeatures>,
    packed: Packed,
    /// Why the file can't be read on, until what was unpacked before has been given out.
    failure: Option<FileError>,
    /// What has further records, if the recording is of several files.
    parts: Option<Parts<R>>,
    /// Why the first of several files that could not be read to its end could not.
    cut_off: Option<FileError>,
    /// Whether its header was never completed.
    is_unfinished: bool,
    /// The record that was given out last, if it did not come packed.
    current: OwnedFileRecord,
}

/// The files of a folder beside the first.
type Parts<R> = Box<dyn Iterator<Item = io::Result<R>>>;

/// The packed records.
struct Packed {
    unpacker: Unpacker,
    /// Unpacked bytes, of which `used` have been given out.
    bytes: Vec<u8>,
    used: usize,
    /// Bytes given out before those.
    given_out: u64,
    /// Where in the file the newest record with packed ones begins.
    at: u64,
    /// Records that were not packed, and how many unpacked bytes there were before each.
    between: VecDeque<(u64, OwnedFileRecord)>,
    is_finished: bool,
}

/// Where the next record is.
enum Next {
    /// It lies unpacked, with so many bytes.
    Unpacked(usize),
    /// It is the current one.
    Current,
    /// There is none.
    None,
}

pub(super) const MAGIC: [u8; 8] = *b"PERFILE2";

/// Bytes of the header of a stream.
const STREAM_HEADER: u64 = 16;

impl<R: Read + Seek> FileReader<R> {
    /// Reads what is before the records of a file, or of a file with a stream in it.
    ///
    /// # Errors
    /// When it can't be read or is no `perf.data`.
    pub fn open(mut reader: R) -> Result<Self, FileError> {
        let (order, size) = start(&mut reader)?;
        if size == STREAM_HEADER {
            return Ok(Self::new(reader, order, None));
        }
        let rest = Section { offset: STREAM_HEADER, size: size.saturating_sub(STREAM_HEADER).min(4096) };
        let header = exactly(FilePart::Header, rest, &mut reader)?;
        let cut_off = || FileError::CutOff { part: FilePart::Header, at: 0, size: 104, len: size };
        let mut fields = Fields::new(Bytes::from(&header), order);
        let mut parts = || {
            let entry_size = fields.u64()?;
            let attrs = Section::read(&mut fields)?;
            let data = Section::read(&mut fields)?;
            let _event_types = Section::read(&mut fields)?;
            Some((entry_size, attrs, data, fields.words(4)?))
        };
        let (entry_size, attrs, data, flags) = parts().ok_or_else(cut_off)?;
        let mut file = Self::new(reader, order, Some(data.size));
        file.read_events(entry_size, attrs)?;
        let list = Section { offset: data.offset.saturating_add(data.size), size: 0 };
        let has_features = flags.iter().any(|word| word != 0);
        if data.size == 0 && has_features && file.begins_with_a_record(list)? {
            file.is_unfinished = true;
            file.left = None;
        } else {
            let has_records = data.size > 0;
            file.read_features(list, flags.iter(), has_records)?;
            file.name_events();
            file.group_events();
        }
        file.reader.seek(SeekFrom::Start(data.offset))?;
        file.next_at = data.offset;
        Ok(file)
    }

    /// Whether records are where the list of features would be if there were none. `perf record` tells how many bytes they have when it
    /// ends, and sets the bits of the features when it begins. A record begins with its type and size, which as one number are no
    /// place in a file; an entry of the list begins with one.
    fn begins_with_a_record(&mut self, list: Section) -> Result<bool, FileError> {
        let end = self.reader.seek(SeekFrom::End(0))?;
        self.reader.seek(SeekFrom::Start(list.offset))?;
        let mut start = Vec::new();
        self.reader.by_ref().take(8).read_to_end(&mut start)?;
        let place = Fields::new(Bytes::from(&start), self.order).u64();
        Ok(place.is_some_and(|place| place > end))
    }

    fn read_events(&mut self, entry_size: u64, attrs: Section) -> Result<(), FileError> {
        let at = attrs.offset;
        let bytes = attrs.bytes(FilePart::Events, &mut self.reader)?;
        let entry_size = usize::try_from(entry_size).unwrap_or(usize::MAX).max(1);
        let entries = bytes.chunks_exact(entry_size);
        if !entries.remainder().is_empty() {
            return Err(FileError::Entries { at, size: attrs.size, entry_size: entry_size as u64 });
        }
        let mut apart = Apart::of(&mut self.reader)?;
        for (place, entry) in entries.enumerate() {
            let at = at + (place * entry_size) as u64;
            let entry = Events::entry(entry, self.order);
            let (attr, ids) = entry.map_err(|source| FileError::Attr { at, source })?;
            let ids = apart.bytes(ids, FilePart::Ids, &mut self.reader)?;
            let ids = crate::perf::Words::new(Bytes::from(&ids), self.order).iter().collect();
            self.events.add(attr, ids, self.order);
        }
        Ok(())
    }

    /// Behind the records is a list of sections, one for each bit that is set. A machine whose `long` has 32 bits
    /// has its words in the other order when it is big-endian; such files are not written any more.
    ///
    /// Records are before them, and are read all the same where the file is cut off in its features.
    fn read_features(
        &mut self,
        list: Section,
        flags: impl Iterator<Item = u64>,
        has_records: bool,
    ) -> Result<(), FileError> {
        let bits = flags.enumerate().flat_map(|(word, flags)| {
            (0..64).filter(move |bit| flags >> bit & 1 != 0).map(move |bit| word as u32 * 64 + bit)
        });
        let features: Vec<Feature> = bits.map(Feature).collect();
        let list = Section { size: features.len() as u64 * Section::SIZE, ..list };
        self.reader.seek(SeekFrom::Start(list.offset))?;
        let mut sections = Vec::new();
        self.reader.by_ref().take(list.size).read_to_end(&mut sections)?;
        // A recording that was killed before its first record has none.
        if sections.is_empty() && !has_records {
            return Ok(());
        }
        let len = sections.len() as u64;
        let mut fields = Fields::new(Bytes::from(&sections), self.order);
        let mut apart = Apart::of(&mut self.reader)?;
        for feature in features {
            let bytes = match Section::read(&mut fields) {
                Some(section) => apart.bytes(section, FilePart::Feature(feature), &mut self.reader),
                None => {
                    Err(FileError::CutOff { part: FilePart::Features, at: list.offset, size: list.size, len })
                }
            };
            match bytes {
                Ok(bytes) => self.features.add(feature, bytes),
                Err(error @ FileError::CutOff { .. }) => self.miss(feature, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn miss(&mut self, feature: Feature, error: &FileError) {
        let nothing = || MissingFeatures { features: Vec::new(), why: error.to_string() };
        self.missing_features.get_or_insert_with(nothing).features.push(feature);
    }
}

/// Byte order and size of the header.
fn start(reader: &mut impl Read) -> Result<(ByteOrder, u64), FileError> {
    let bytes = exactly(FilePart::Header, Section { offset: 0, size: STREAM_HEADER }, reader)?;
    let (magic, size) = bytes.split_first_chunk().ok_or(FileError::Magic([0; 8]))?;
    let reversed = std::array::from_fn(|index| magic[7 - index]);
    let order = match (*magic, reversed) {
        (MAGIC, _) => ByteOrder::Little,
        (_, MAGIC) => ByteOrder::Big,
        _ if magic == b"PERFFILE" => return Err(FileError::FirstVersion),
        _ => return Err(FileError::Magic(*magic)),
    };
    let size = Fields::new(Bytes::from(size), order).u64().ok_or(FileError::Magic(*magic))?;
    Ok((order, size))
}

impl<R: Read> FileReader<R> {
    /// Reads the start of a stream as `perf record -o -` writes it. Its events and features come as records among the
    /// others.
    ///
    /// # Errors
    /// When it can't be read or is no such stream.
    pub fn stream(mut reader: R) -> Result<Self, FileError> {
        let (order, size) = start(&mut reader)?;
        if size == STREAM_HEADER {
            Ok(Self::new(reader, order, None))
        } else {
            Err(FileError::NotAStream(size))
        }
    }

    fn new(reader: R, order: ByteOrder, left: Option<u64>) -> Self {
        let packed = Packed::new();
        let nothing = OwnedRecord { kind: RecordKind(0), misc: Misc(0), body: Vec::new() };
        let current = OwnedFileRecord { record: nothing, payload: Vec::new(), event: None };
        let features = Features::new(order);
        let (failure, parts, cut_off) = (None, None, None);
        Self {
            reader,
            order,
            left,
            at: STREAM_HEADER,
            next_at: STREAM_HEADER,
            bytes_read: 0,
            events: Events::default(),
            features,
            missing_features: None,
            packed,
            failure,
            parts,
            cut_off,
            is_unfinished: false,
            current,
        }
    }

    /// The first file of a folder that `perf record --threads` has made, with the others: records of its events without any
    /// header, packed or not each for itself. Their records come behind its own, those of one file after those of another.
    #[must_use]
    pub fn with_parts(self, parts: impl Iterator<Item = io::Result<R>> + 'static) -> Self {
        Self { parts: Some(Box::new(parts)), ..self }
    }

    /// Whether there are several files. None then tells how far the others have come ([`RecordKind::FINISHED_ROUND`]).
    pub fn has_parts(&self) -> bool {
        self.parts.is_some()
    }

    /// Bytes of the records that were read so far, packed as they are.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Whether the header does not say how many records there are, as of a recording that was killed, or is still being made: they are
    /// read to the end of the file, and there are no features.
    pub fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }

    /// The byte order of the machine that wrote it.
    pub fn byte_order(&self) -> ByteOrder {
        self.order
    }

    /// The events, as far as they have been read: of a stream, those before the last record.
    pub fn events(&self) -> &[FileEvent] {
        &self.events.all
    }

    /// What the counts of an event's branches are of, if they are counted and it is told: of a stream, as far as it has been read.
    pub fn branch_counters(&self, event: usize) -> Option<BranchCounters> {
        BranchCounters::of(event, &self.events.all, &self.features)
    }

    /// What is known of the machine and of the recording, as far as it has been read.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Features that the header of a file tells of, where it is cut off in them.
    pub fn missing_features(&self) -> Option<&MissingFeatures> {
        self.missing_features.as_ref()
    }

    /// The next record in the order of the file; `None` at its end. Packed records come unpacked, and the records
    /// that contain them don't come at all.
    ///
    /// # Errors
    /// When the file can't be read on. After an error it is at its end.
    pub fn next_record(&mut self) -> Result<Option<FileRecord<'_>>, FileError> {
        match self.find_next()? {
            Next::None => Ok(None),
            Next::Unpacked(size) => {
                let from = self.packed.used;
                self.packed.used += size;
                let bytes = self.packed.bytes.get(from..from + size).unwrap_or_default();
                let Some(Ok(raw)) = crate::perf::records(bytes, self.order).next() else { return Ok(None) };
                Ok(Some(self.with_event(raw, self.events.of(&raw), &[])))
            }
            Next::Current => {
                let current = &self.current;
                Ok(Some(self.with_event(current.record.as_raw(), current.event, &current.payload)))
            }
        }
    }

    pub(super) fn with_event<'a>(
        &'a self,
        raw: RawRecord<'a>,
        event: Option<usize>,
        payload: &'a [u8],
    ) -> FileRecord<'a> {
        let config = event.and_then(|event| self.events.all.get(event)).map(|event| event.config);
        let mut config = config.unwrap_or(ParseConfig { byte_order: self.order, ..ParseConfig::default() });
        // `perf` opens another event for mappings where it records whole CPUs, and what it finds in `/proc` has no event's id: that has a build
        // id if it says so, though the first event asks for none. What the kernel says of an event that asks for none may be left from before.
        config.build_id |= raw.kind == RecordKind::MMAP2 && self.events.is_of_perf(&raw);
        FileRecord { raw, event, payload, config }
    }

    fn find_next(&mut self) -> Result<Next, FileError> {
        loop {
            match self.find_next_or_fail() {
                Ok(Next::None) => {}
                Ok(next) => return Ok(next),
                Err(error) => {
                    self.cut_off.get_or_insert(error);
                }
            }
            self.left = Some(0);
            self.packed = Packed { is_finished: true, ..Packed::new() };
            self.failure = None;
            match self.parts.as_mut().and_then(Iterator::next) {
                Some(Ok(part)) => {
                    self.reader = part;
                    self.left = None;
                    self.next_at = 0;
                    self.packed = Packed::new();
                }
                Some(Err(error)) => {
                    self.cut_off.get_or_insert(error.into());
                }
                None => return self.cut_off.take().map_or(Ok(Next::None), Err),
            }
        }
    }

    fn find_next_or_fail(&mut self) -> Result<Next, FileError> {
        loop {
            let unpacked = self.packed.whole_record(self.order)?;
            let position = self.packed.position();
            let before = self.packed.between.front().map(|(before, _)| *before);
            match (unpacked, before) {
                (Some(size), Some(before)) if position + size as u64 > before => {
                    return Ok(self.take_between());
                }
                (Some(size), _) => return Ok(Next::Unpacked(size)),
                (None, Some(before)) if self.packed.bytes_end() >= before => return Ok(self.take_between()),
                (None, _) => {}
            }
            if self.packed.step()? {
                continue;
            }
            match if self.failure.is_some() { Ok(false) } else { self.read_record() } {
                Ok(true) => {}
                Ok(false) if self.packed.is_finished => return self.end(),
                Ok(false) => {
                    self.packed.finish()?;
                    continue;
                }
                // What was read before comes before it.
                Err(error) => {
                    self.failure = Some(error);
                    continue;
                }
            }
            if self.take_note()? {
                continue;
            }
            let current = &mut self.current;
            current.event = self.events.of(&current.record.as_raw());
            if self.packed.is_behind() {
                self.packed.put_between(current);
            } else {
                return Ok(Next::Current);
            }
        }
    }

    /// After the last record.
    fn end(&mut self) -> Result<Next, FileError> {
        self.left = Some(0);
        match (self.failure.take(), self.packed.take_left_over()) {
            (Some(error), _) => Err(error),
            (None, 0) => Ok(Next::None),
            (None, len) => {
                let (part, at) = (FilePart::PackedRecords, self.packed.at);
                Err(FileError::CutOff { part, at, size: len + 1, len })
            }
        }
    }

    fn take_between(&mut self) -> Next {
        if let Some((_, record)) = self.packed.between.pop_front() {
            self.current = record;
        }
        Next::Current
    }

    /// Reads the next record of the file to be the current one; `false` at the end.
    fn read_record(&mut self) -> Result<bool, FileError> {
        const HEADER: u64 = 8;
        if self.left == Some(0) {
            return Ok(false);
        }
        self.at = self.next_at;
        let at = self.at;
        let mut header = Vec::new();
        match self.reader.by_ref().take(HEADER).read_to_end(&mut header) {
            // A stream ends where it likes.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
            other => {
                other?;
            }
        }
        let cut_off = |size: u64, len: u64| FileError::CutOff { part: FilePart::Records, at, size, len };
        match (header.len() as u64, self.left) {
            (0, None) => return Ok(false),
            (HEADER, _) => {}
            (len, left) => return Err(cut_off(left.unwrap_or(HEADER), len)),
        }
        let mut fields = Fields::new(Bytes::from(&header), self.order);
        let mut numbers = || Some((fields.u32()?, fields.u16()?, fields.u16()?));
        let (kind, misc, size) = numbers().ok_or(cut_off(HEADER, 0))?;
        let wrong_size = FileError::RecordSize { at: Place::File(at), kind, size };
        let body = u64::from(size).checked_sub(HEADER).ok_or(wrong_size)?;
        self.current.record = OwnedRecord { kind: RecordKind(kind), misc: Misc(misc), body: Vec::new() };
        let body_read = &mut self.current.record.body;
        self.reader.by_ref().take(body).read_to_end(body_read)?;
        let len = body_read.len() as u64;
        if len < body {
            return Err(cut_off(body, len));
        }
        let payload = payload_size(&self.current.record.as_raw(), self.order);
        let behind = Section { offset: at + HEADER + body, size: payload };
        self.current.payload = exactly(FilePart::Payload, behind, &mut self.reader)?;
        let all = HEADER + body + payload;
        self.next_at = at + all;
        self.bytes_read = self.bytes_read.saturating_add(all);
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(all).ok_or(cut_off(all, *left))?;
        }
        Ok(true)
    }

    /// Takes what the current record says about the file itself. Whether it is none to give out: a piece of packed
    /// records.
    fn take_note(&mut self) -> Result<bool, FileError> {
        match self.current.record.as_raw().parse_user(self.order).record {
            UserRecord::Compressed(Compressed { data }) | UserRecord::Compressed2(Compressed2 { data }) => {
                self.packed.at = self.at;
                for piece in data.pieces() {
                    self.packed.unpacker.push(piece);
                }
                return Ok(true);
            }
            // It is damaged.
            UserRecord::Other(raw) if raw.kind == RecordKind::COMPRESSED2 => return Ok(true),
            UserRecord::HeaderAttr(event) => {
                let attr = event.attr().map_err(|source| FileError::Attr { at: self.at, source })?;
                self.events.add(attr, event.ids.iter().collect(), self.order);
            }
            UserRecord::Other(raw) if raw.kind == RecordKind::HEADER_ATTR => {
                let size = Attr::FIRST_SIZE as u32;
                let source = AttrError::CutOff { size, len: raw.body.len() };
                return Err(FileError::Attr { at: self.at, source });
            }
            // There are no more than a header has bits for.
            UserRecord::HeaderFeature(HeaderFeature { feature, section }) if feature.0 < FEATURE_BITS => {
                self.features.add(feature, section.to_cow().into_owned());
                match feature {
                    Feature::EVENT_DESC => self.name_events(),
                    Feature::GROUP_DESC => self.group_events(),
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(false)
    }

    /// Of a stream, all events come before it is told which of them are of one group.
    fn group_events(&mut self) {
        self.events.set_groups(&self.features.groups().unwrap_or_default());
    }

    fn name_events(&mut self) {
        let descriptions = self.features.events().unwrap_or_default();
        for (place, event) in descriptions.iter().enumerate() {
            self.events.set_name(place, &event.ids, &event.name);
        }
    }
}

/// Bytes that follow a record outside of it.
pub(super) fn payload_size(record: &RawRecord<'_>, order: ByteOrder) -> u64 {
    let mut fields = Fields::new(record.body, order);
    match record.kind {
        RecordKind::AUXTRACE => fields.u64().unwrap_or(0),
        // Filled up to a multiple of 8.
        RecordKind::HEADER_TRACING_DATA => fields.u32().map_or(0, |size| u64::from(size).next_multiple_of(8)),
        _ => 0,
    }
}

impl Packed {
    fn new() -> Self {
        Self {
            unpacker: Unpacker::new(),
            bytes: Vec::new(),
            used: 0,
            given_out: 0,
            at: 0,
            between: VecDeque::new(),
            is_finished: false,
        }
    }

    /// Bytes of the record that comes next, if it is whole.
    fn whole_record(&mut self, order: ByteOrder) -> Result<Option<usize>, FileError> {
        let bytes = self.bytes.get(self.used..).unwrap_or_default();
        let mut fields = Fields::new(Bytes::from(bytes), order);
        let mut header = || Some((fields.u32()?, fields.u16()?, fields.u16()?));
        let Some((kind, _, size)) = header() else { return Ok(None) };
        if size < 8 {
            return Err(FileError::RecordSize { at: Place::Unpacked(self.position()), kind, size });
        }
        Ok(Some(usize::from(size)).filter(|size| *size <= bytes.len()))
    }

    /// How many unpacked bytes have been given out.
    fn position(&self) -> u64 {
        self.given_out + self.used as u64
    }

    /// How many have been unpacked and can be given out.
    fn bytes_end(&self) -> u64 {
        self.given_out + self.bytes.len() as u64
    }

    /// Whether there are records that come before one that is read now.
    fn is_behind(&self) -> bool {
        self.unpacker.produced() > self.bytes_end() || !self.between.is_empty()
    }

    fn put_between(&mut self, current: &mut OwnedFileRecord) {
        let empty = OwnedRecord { kind: RecordKind(0), misc: Misc(0), body: Vec::new() };
        let empty = OwnedFileRecord { record: empty, payload: Vec::new(), event: None };
        let record = std::mem::replace(current, empty);
        self.between.push_back((self.unpacker.produced(), record));
    }

    fn step(&mut self) -> Result<bool, FileError> {
        self.forget_given_out();
        let at = self.at;
        self.unpacker.step(&mut self.bytes).map_err(|Damaged(what)| FileError::Packed { at, what })
    }

    fn finish(&mut self) -> Result<(), FileError> {
        self.forget_given_out();
        self.is_finished = true;
        let at = self.at;
        self.unpacker.finish(&mut self.bytes).map_err(|Damaged(what)| FileError::Packed { at, what })
    }

    fn forget_given_out(&mut self) {
        self.given_out += self.used as u64;
        self.bytes.drain(..self.used);
        self.used = 0;
    }

    /// Bytes of a record that is not whole.
    fn take_left_over(&mut self) -> u64 {
        self.forget_given_out();
        let len = self.bytes.len() as u64;
        self.bytes.clear();
        len
    }
}
