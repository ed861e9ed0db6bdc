//! The reader: the message in, a machine out.

use std::io::Read as _;

use collector_common::ids::{Nanos, Pid};
use collector_common::record::{ClockAnchor, ExportMachine, Sample};
use prost::Message as _;

use super::kinds::{Column, Kinds, Told};
use super::labels::Labels;
use super::tables::Tables;
use super::wire::{Fields, Value};
use crate::format::lost_in;
use crate::format::pprof::proto::{self, field};
use crate::import::room::{Room, checked, name};
use crate::import::unpack::unpacked;
use crate::import::{Begin, ImportError, ImportFormat, Imported, Input};

/// The largest profile, uncompressed.
const MAX_PROFILE: u64 = 256 << 20;

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

    /// There is no signature: fields that a profile may have, one after another, with a sample type before any sample or table. Writers
    /// write them by their numbers, or samples after what they refer to.
    fn begins(&self, begin: &Begin<'_>) -> bool {
        let mut types = 0;
        for field in Fields::of(&begin.plain) {
            let is_of_profile = match field {
                Ok((field::SAMPLE_TYPE, Value::Bytes(part))) => {
                    types += 1;
                    proto::ValueType::decode(part).is_ok()
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

    fn import(&self, input: &mut dyn Input) -> Result<Imported, ImportError> {
        let mut bytes = Vec::new();
        unpacked(input, MAX_PROFILE)?.read_to_end(&mut bytes)?;
        Reader::default().read(&bytes)
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
}

impl Reader {
    fn read(mut self, bytes: &[u8]) -> Result<Imported, ImportError> {
        for field in Fields::of(bytes) {
            let (tag, value) = field?;
            self.count(tag, &value)?;
            self.take(tag, value)?;
        }
        let columns = self.columns()?;
        let are_multiples = self.multiples(bytes, columns.len())?;
        let mut machine = ExportMachine::default();
        let program = self.tables.program_path();
        let program = name(program.rsplit('/').next().unwrap_or_default()).to_owned();
        let process = machine.add_process(Pid(0), &program, None, Nanos(0));
        self.tables.map(&mut machine, process)?;
        for field in Fields::of(bytes) {
            if let (field::LOCATION, Value::Bytes(part)) = field? {
                self.tables.add_location(&mut machine, process, &proto::Location::decode(part)?)?;
            }
        }
        let default = self.types.iter().position(|of| of.kind == self.default_type && of.kind != 0);
        let told = Told {
            columns: &columns,
            default: default.unwrap_or(columns.len() - 1),
            period_type: self.period_type.map(|of| self.column(of)).transpose()?,
            period: self.period,
            are_multiples: &are_multiples,
        };
        let kinds = Kinds::of(&told, &mut machine);
        let mut labels = Labels::new(&machine, process);
        let (mut stack, mut room, mut number) = (Vec::new(), Room::default(), 0_u64);
        for field in Fields::of(bytes) {
            let (field::SAMPLE, Value::Bytes(part)) = field? else { continue };
            let sample = proto::Sample::decode(part)?;
            number += 1;
            stack.clear();
            for id in &sample.location_id {
                stack.push(self.tables.location(*id)?);
            }
            let known = machine.stacks().len();
            let id = machine.intern_stack(&stack);
            if machine.stacks().len() > known {
                room.stack(stack.len(), self.tables.frames.size(&stack), || format!("sample {number}"))?;
            }
            let (thread, attributes) = labels.take(&sample.label, &mut self.tables, &mut machine)?;
            for (kind, value) in kinds.values(&sample.value) {
                let time = Nanos(0);
                machine.add_sample(&Sample { time, thread, stack: id, cpu: 0, kind, value, attributes });
            }
        }
        self.finish(machine, kinds)
    }

    /// Counts entries, so that what is kept of many tiny ones is limited.
    fn count(&mut self, tag: u32, value: &Value<'_>) -> Result<(), ImportError> {
        if let Value::Bytes(part) = value
            && part.len() > MAX_PART
        {
            return Err(ImportError::TooMuch { what: "bytes in a part", limit: MAX_PART as u64 });
        }
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
        match (tag, value) {
            (field::STRING_TABLE, Value::Bytes(string)) => self.tables.add_string(string),
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

    fn columns(&self) -> Result<Vec<Column>, ImportError> {
        if self.types.is_empty() {
            return Err(malformed("it has no sample type"));
        }
        self.types.iter().map(|of| self.column(*of)).collect()
    }

    /// By column: whether each of its values is the period times that of the column before. Checks the rows' widths.
    fn multiples(&self, bytes: &[u8], width: usize) -> Result<Vec<bool>, ImportError> {
        let mut are_multiples = vec![true; width];
        for field in Fields::of(bytes) {
            let (field::SAMPLE, Value::Bytes(part)) = field? else { continue };
            let sample = proto::Sample::decode(part)?;
            if sample.value.len() != width {
                return Err(malformed("a sample has more or fewer values than there are sample types"));
            }
            for (pair, is_multiple) in sample.value.windows(2).zip(are_multiples.iter_mut().skip(1)) {
                *is_multiple &= pair[0].saturating_mul(self.period) == pair[1];
            }
        }
        Ok(are_multiples)
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
        if self.time_nanos > 0 {
            let realtime = self.time_nanos.unsigned_abs();
            system.clocks.start = Some(ClockAnchor { monotonic: Nanos(0), realtime, boottime: None });
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
