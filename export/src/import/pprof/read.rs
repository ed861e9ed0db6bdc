//! The reader: the message in, a machine out.

use std::io::{BufReader, SeekFrom};

use collector_common::ids::{Nanos, Pid};
use collector_common::record::{ClockAnchor, ExportMachine, FrameId, ProcessId, Sample};
use prost::Message as _;

use super::kinds::{Column, Kinds, Told};
use super::labels::Labels;
use super::tables::Tables;
use super::wire::{Fields, Stream, Value};
use crate::format::lost_in;
use crate::format::pprof::proto::{self, field};
use crate::import::interface::not_empty;
use crate::import::room::{MOST_SAMPLES, Room, checked, name};
use crate::import::unpack::unpacked;
use crate::import::{Begin, ImportError, ImportFormat, Imported, Input};

/// The most bytes, uncompressed: what is compressed well would be read for long.
const MOST_BYTES: u64 = 4 << 30;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// The most frames on all distinct stacks.
const MOST_FRAMES: usize = 1 << 27;

/// The largest part of it, as one sample.
const MAX_PART: usize = 16 << 20;

/// The most strings, mappings, functions and locations of each.
const MAX_ENTRIES: usize = 1 << 23;

/// The most sample types.
const MAX_TYPES: usize = ExportMachine::MOST_KINDS;

/// The longest name of a sample type or of its unit.
const LONGEST_TYPE: usize = 4 << 10;

/// The most bytes of comments.
const MOST_COMMENTS: usize = 1 << 20;

/// The reader of pprof's profiles.
#[derive(Clone, Copy, Debug)]
pub struct Pprof;

impl ImportFormat for Pprof {
    fn name(&self) -> &'static str {
        "pprof"
    }

    fn description(&self) -> &'static str {
        "pprof"
    }

    fn endings(&self) -> &'static str {
        ".pb.gz .pb"
    }

    fn signature(&self) -> &'static [u8] {
        b""
    }

    fn mark(&self) -> &'static str {
        "fields of profile.proto, perhaps in gzip"
    }

    /// There is no signature: fields that a profile may have, one after another, with a sample type before any sample or table. Writers
    /// write them by their numbers, or samples after what they refer to.
    fn begins(&self, begin: &Begin<'_>) -> bool {
        let mut types = 0;
        for field in Fields::of(&begin.plain) {
            let is_of_profile = match field {
                Ok((field::SAMPLE_TYPE, Value::Bytes(part))) => {
                    types += 1;
                    is_value_type(part)
                }
                Ok((tag, Value::Bytes(_))) => {
                    matches!(tag, field::SAMPLE..=field::STRING_TABLE | field::PERIOD_TYPE | field::COMMENT)
                }
                Ok((tag, Value::Number(_))) => {
                    matches!(tag, field::DROP_FRAMES..=field::DURATION_NANOS | field::PERIOD..=15)
                }
                // Something is cut off, which is where the first bytes end.
                Err(_) => return types > 0,
                Ok(_) => false,
            };
            if !is_of_profile {
                return false;
            }
        }
        types > 0
    }

    fn most_bytes(&self) -> u64 {
        MOST_BYTES
    }

    fn import_into(
        &self,
        mut machine: ExportMachine,
        input: &mut dyn Input,
        _: u64,
    ) -> Result<Imported, ImportError> {
        not_empty(input)?;
        let start = input.stream_position()?;
        let mut reader = Reader::default();
        fields(input, start, |tag, value| reader.take(tag, value))?;
        let process = reader.begin(&mut machine)?;
        fields(input, start, |tag, value| reader.place(&mut machine, process, tag, value))?;
        let kinds = reader.kinds(&mut machine)?;
        let mut labels = Labels::new(&machine, process);
        fields(input, start, |tag, value| match (tag, value) {
            (field::SAMPLE, Value::Bytes(part)) => {
                let sample = proto::Sample::decode(part)?;
                reader.sample(&mut machine, &kinds, &mut labels, &sample)
            }
            _ => Ok(()),
        })?;
        reader.finish(machine, kinds)
    }
}

/// Whether a message has nothing but what a sample type has: two numbers. A trace of Perfetto begins with such a message, too, which has more.
fn is_value_type(part: &[u8]) -> bool {
    Fields::of(part).all(|field| matches!(field, Ok((1 | 2, Value::Number(_)))))
}

/// All fields of the profile that begins there.
fn fields(
    input: &mut dyn Input,
    start: u64,
    mut take: impl FnMut(u32, Value<'_>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    input.seek(SeekFrom::Start(start))?;
    let mut fields = Stream::of(BufReader::with_capacity(PIECE, unpacked(input, MOST_BYTES)?));
    loop {
        let position = fields.position();
        let placed = |error| placed(error, position);
        let Some((tag, value)) = fields.next(MAX_PART).map_err(placed)? else { return Ok(()) };
        take(tag, value).map_err(placed)?;
    }
}

/// An error with the place of the field that it is about, in the file as it is uncompressed.
fn placed(error: ImportError, position: u64) -> ImportError {
    match error {
        ImportError::Malformed { format, what } => {
            ImportError::Malformed { format, what: format!("{what}, at byte {position}") }
        }
        ImportError::TooMuch { what, limit } => {
            ImportError::TooLarge { place: format!("up to byte {position} it"), what, limit }
        }
        other => other,
    }
}

pub(super) fn malformed(what: &str) -> ImportError {
    ImportError::Malformed { format: "pprof profile", what: what.to_owned() }
}

impl From<prost::DecodeError> for ImportError {
    fn from(error: prost::DecodeError) -> Self {
        malformed(&error.to_string())
    }
}

/// What is told of the whole.
#[derive(Default)]
struct Reader {
    tables: Tables,
    types: Vec<proto::ValueType>,
    default_type: i64,
    period_type: Option<proto::ValueType>,
    period: i64,
    time_nanos: i64,
    duration_nanos: i64,
    comments: Vec<i64>,
    drop_frames: i64,
    keep_frames: i64,
    /// Entries by field.
    counts: [usize; 16],
    columns: Vec<Column>,
    /// By column: whether each of its values is the period times that of the column before.
    are_multiples: Vec<bool>,
    stack: Vec<FrameId>,
    room: Room,
    /// Samples, and frames on distinct stacks, so far.
    samples: u64,
    frames: usize,
}

impl Reader {
    /// What samples refer to: its columns and modules, and the process that is made first.
    fn begin(&mut self, machine: &mut ExportMachine) -> Result<ProcessId, ImportError> {
        if self.types.is_empty() {
            return Err(malformed("it has no sample type"));
        }
        self.columns = self.types.iter().map(|of| self.column(*of)).collect::<Result<_, _>>()?;
        self.are_multiples = vec![true; self.columns.len()];
        let program = self.tables.program_path();
        let program = name(program.rsplit('/').next().unwrap_or_default()).to_owned();
        let process = machine.add_process(Pid(0), &program, None, Nanos(0));
        self.tables.map(machine, process)?;
        Ok(process)
    }

    /// Takes a location, which refers to modules and functions, or looks at a sample's values.
    fn place(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        tag: u32,
        value: Value<'_>,
    ) -> Result<(), ImportError> {
        match (tag, value) {
            (field::LOCATION, Value::Bytes(part)) => {
                self.tables.add_location(machine, process, &proto::Location::decode(part)?)
            }
            (field::SAMPLE, Value::Bytes(part)) => self.compare(&proto::Sample::decode(part)?.value),
            _ => Ok(()),
        }
    }

    /// Looks whether values are the period times those before. Checks the row's width.
    fn compare(&mut self, row: &[i64]) -> Result<(), ImportError> {
        if row.len() != self.columns.len() {
            return Err(malformed("a sample has more or fewer values than there are sample types"));
        }
        for (pair, is_multiple) in row.windows(2).zip(self.are_multiples.iter_mut().skip(1)) {
            *is_multiple &= pair[0].saturating_mul(self.period) == pair[1];
        }
        Ok(())
    }

    fn kinds(&self, machine: &mut ExportMachine) -> Result<Kinds, ImportError> {
        let default = self.types.iter().position(|of| of.kind == self.default_type && of.kind != 0);
        let told = Told {
            columns: &self.columns,
            default: default.unwrap_or(self.columns.len() - 1),
            period_type: self.period_type.map(|of| self.column(of)).transpose()?,
            period: self.period,
            are_multiples: &self.are_multiples,
        };
        Ok(Kinds::of(&told, machine))
    }

    fn sample(
        &mut self,
        machine: &mut ExportMachine,
        kinds: &Kinds,
        labels: &mut Labels,
        sample: &proto::Sample,
    ) -> Result<(), ImportError> {
        self.samples += 1;
        self.stack.clear();
        for id in &sample.location_id {
            self.stack.push(self.tables.location(*id)?);
        }
        let known = machine.stacks().len();
        let stack = machine.intern_stack(&self.stack);
        if machine.stacks().len() > known {
            self.frames += self.stack.len();
            if self.frames > MOST_FRAMES {
                return Err(ImportError::TooMuch { what: "frames on all stacks", limit: MOST_FRAMES as u64 });
            }
            let place = || format!("sample {}", self.samples);
            self.room.stack(self.stack.len(), self.tables.frames.size(&self.stack), place)?;
        }
        let (thread, attributes) = labels.take(&sample.label, &mut self.tables, machine)?;
        for (kind, value) in kinds.values(&sample.value) {
            let time = Nanos(0);
            machine.add_sample(&Sample { time, thread, stack, cpu: 0, kind, value, attributes });
        }
        if machine.samples().len() > MOST_SAMPLES {
            return Err(ImportError::TooMuch { what: "samples", limit: MOST_SAMPLES as u64 });
        }
        Ok(())
    }

    /// Counts entries, so that what is kept of many tiny ones is limited.
    fn count(&mut self, tag: u32) -> Result<(), ImportError> {
        let (what, limit) = match tag {
            field::SAMPLE_TYPE => ("sample types", MAX_TYPES),
            field::MAPPING..=field::STRING_TABLE | field::COMMENT => ("entries of a table", MAX_ENTRIES),
            _ => return Ok(()),
        };
        let count = &mut self.counts[tag as usize];
        *count += 1;
        if *count > limit { Err(ImportError::TooMuch { what, limit: limit as u64 }) } else { Ok(()) }
    }

    fn take(&mut self, tag: u32, value: Value<'_>) -> Result<(), ImportError> {
        self.count(tag)?;
        match (tag, value) {
            (field::STRING_TABLE, Value::Bytes(string)) => self.tables.add_string(string)?,
            (field::MAPPING, Value::Bytes(part)) => self.tables.add_mapping(proto::Mapping::decode(part)?),
            (field::FUNCTION, Value::Bytes(part)) => {
                self.tables.add_function(&proto::Function::decode(part)?);
            }
            (field::SAMPLE_TYPE, Value::Bytes(part)) => self.types.push(proto::ValueType::decode(part)?),
            (field::PERIOD_TYPE, Value::Bytes(part)) => {
                self.period_type = Some(proto::ValueType::decode(part)?);
            }
            (field::DEFAULT_SAMPLE_TYPE, Value::Number(number)) => self.default_type = number as i64,
            (field::TIME_NANOS, Value::Number(number)) => self.time_nanos = number as i64,
            (field::DURATION_NANOS, Value::Number(number)) => self.duration_nanos = number as i64,
            (field::PERIOD, Value::Number(number)) => self.period = number as i64,
            (field::COMMENT, Value::Number(number)) => self.comments.push(number as i64),
            (field::COMMENT, Value::Bytes(packed)) => self.packed_comments(packed)?,
            (field::DROP_FRAMES, Value::Number(number)) => self.drop_frames = number as i64,
            (field::KEEP_FRAMES, Value::Number(number)) => self.keep_frames = number as i64,
            _ => {}
        }
        Ok(())
    }

    /// Numbers of one field may stand together.
    fn packed_comments(&mut self, mut packed: &[u8]) -> Result<(), ImportError> {
        while !packed.is_empty() && self.comments.len() < MAX_ENTRIES {
            let (number, rest) =
                crate::leb128::read(packed).map_err(|_| malformed("a comment ends in the middle"))?;
            self.comments.push(number as i64);
            packed = rest;
        }
        Ok(())
    }

    fn column(&self, of: proto::ValueType) -> Result<Column, ImportError> {
        let (name, unit) = (self.tables.string(of.kind)?, self.tables.string(of.unit)?);
        if name.len().max(unit.len()) > LONGEST_TYPE {
            return Err(ImportError::TooMuch {
                what: "bytes in a sample type's name",
                limit: LONGEST_TYPE as u64,
            });
        }
        Ok(Column { name: name.to_owned(), unit: unit.to_owned() })
    }

    /// What is told of the whole, as far as there is room.
    fn account(&self, left_out: &mut Vec<String>) -> Result<Vec<String>, ImportError> {
        let (mut account, mut room) = (Vec::new(), MOST_COMMENTS);
        for index in &self.comments {
            let comment = self.tables.string(*index)?;
            match room.checked_sub(comment.len() + 1) {
                Some(rest) => room = rest,
                None => continue,
            }
            account.push(comment.to_owned());
        }
        if account.len() < self.comments.len() {
            left_out.push(format!(
                "{} comments are left out, which are long",
                self.comments.len() - account.len()
            ));
        }
        Ok(account)
    }

    fn finish(self, mut machine: ExportMachine, kinds: Kinds) -> Result<Imported, ImportError> {
        let mut left_out = vec!["it has no times of samples: each is at the beginning".to_owned()];
        let account = self.account(&mut left_out)?;
        let names = |index: i64| if index == 0 { Ok("") } else { self.tables.string(index) };
        let system = machine.system_mut();
        names(self.drop_frames)?.clone_into(&mut system.drop_frames);
        names(self.keep_frames)?.clone_into(&mut system.keep_frames);
        system.lost = lost_in(&account);
        system.account = account;
        system.end = Nanos(u64::try_from(self.duration_nanos).unwrap_or_default());
        if self.time_nanos != 0 {
            system.clocks.start = ClockAnchor::at(Nanos(0), self.time_nanos.into());
        }
        left_out.extend(kinds.left_out);
        let counted = [
            (self.tables.starts, "lines at which functions begin are left out"),
            (self.tables.folded, "marks of places that are of several functions are left out"),
            (self.tables.cut, "names and labels are cut, which are long"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        left_out.extend(counted.map(|(count, what)| format!("{count} {what}")));
        let symbols = self.tables.frames.finish(&mut machine);
        checked(Imported { machine, symbols, left_out })
    }
}
