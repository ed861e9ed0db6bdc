//! A profile in pprof's format in, whoever wrote it; [`Recorded`] out.
//!
//! The bytes may be hostile: each size is limited, each reference is checked, and what comes out is at most a
//! small multiple of what went in. The strings may stand behind what refers to them, so that the message is gone
//! through twice.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use prost::Message;
use rustc_hash::FxHashMap;

use super::proto::{self, field};
use super::wire::{Fields, Value};

/// The largest profile, uncompressed.
const MAX_PROFILE: u64 = 256 << 20;

/// The largest part of it, as one sample.
const MAX_PART: usize = 16 << 20;

/// The most functions that are inlined at one place.
const MAX_LINES: usize = 1 << 12;

/// The most strings, mappings, functions and locations of each.
const MAX_ENTRIES: usize = 1 << 23;

/// The most sample types.
const MAX_TYPES: usize = 64;

/// Why a profile could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Reading or uncompressing failed.
    #[error("reading the profile failed: {0}")]
    Read(#[from] io::Error),
    /// It is larger than what is read.
    #[error("the profile is larger than {limit} bytes uncompressed")]
    TooLarge {
        /// The largest that is read.
        limit: u64,
    },
    /// It is not a profile.
    #[error("not a pprof profile: it has {0}")]
    Malformed(&'static str),
    /// A message in it is not one.
    #[error("not a pprof profile: {0}")]
    Message(#[from] prost::DecodeError),
}

/// What values count, as `cpu` in `nanoseconds`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueType {
    /// What.
    pub name: String,
    /// In what unit.
    pub unit: String,
}

/// A function of a [`Recorded`] profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordedFunction<'a> {
    /// Its name; `module+0xaddress` where the profile has none.
    pub name: &'a str,
    /// The file it is in; empty where the profile does not say.
    pub module: &'a str,
}

/// A sample of a [`Recorded`] profile.
#[derive(Clone, Copy, Debug)]
pub struct RecordedSample<'a> {
    locations: &'a [u32],
    /// One for each of [`Recorded::sample_types`].
    pub values: &'a [i64],
}

/// A profile that was read.
#[derive(Debug, Default)]
pub struct Recorded {
    sample_types: Vec<ValueType>,
    default_type: usize,
    time_nanos: i64,
    duration_nanos: i64,
    period: i64,
    /// Text and the end of each string in it.
    text: String,
    ends: Vec<usize>,
    /// Name and module, in the strings.
    functions: Vec<(u32, u32)>,
    /// End of each location in `lines`, which are functions.
    location_ends: Vec<u32>,
    lines: Vec<u32>,
    /// End of each sample's stack in `stacks`, which are locations.
    stack_ends: Vec<usize>,
    stacks: Vec<u32>,
    values: Vec<i64>,
}

impl Recorded {
    /// What the values of samples count.
    pub fn sample_types(&self) -> &[ValueType] {
        &self.sample_types
    }

    /// The position of the sample type that its writer means to be looked at first.
    pub fn default_type(&self) -> usize {
        self.default_type
    }

    /// Unix time of the start in nanoseconds; 0 where not known.
    pub fn time_nanos(&self) -> i64 {
        self.time_nanos
    }

    /// Duration in nanoseconds; 0 where not known.
    pub fn duration_nanos(&self) -> i64 {
        self.duration_nanos
    }

    /// The time or number between two samples; 0 where not known.
    pub fn period(&self) -> i64 {
        self.period
    }

    /// Number of distinct functions.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// A function, by a number that [`Self::stack`] gave.
    pub fn function(&self, function: u32) -> RecordedFunction<'_> {
        let (name, module) = self.functions.get(function as usize).copied().unwrap_or_default();
        RecordedFunction { name: self.string(name), module: self.string(module) }
    }

    /// All samples.
    pub fn samples(&self) -> impl Iterator<Item = RecordedSample<'_>> {
        let width = self.sample_types.len().max(1);
        let starts = [0].into_iter().chain(self.stack_ends.iter().copied());
        starts.zip(&self.stack_ends).zip(self.values.chunks_exact(width)).map(|((start, &end), values)| {
            RecordedSample { locations: self.stacks.get(start..end).unwrap_or_default(), values }
        })
    }

    /// The functions on a sample's stack, leaf first, inlined ones included.
    pub fn stack<'a>(&'a self, sample: &RecordedSample<'a>) -> impl Iterator<Item = u32> + 'a {
        sample.locations.iter().flat_map(|&location| self.location(location)).copied()
    }

    fn location(&self, location: u32) -> &[u32] {
        let index = location as usize;
        let end = self.location_ends.get(index).copied().unwrap_or_default();
        let start = index.checked_sub(1).and_then(|before| self.location_ends.get(before)).copied();
        self.lines.get(start.unwrap_or_default() as usize..end as usize).unwrap_or_default()
    }

    fn string(&self, index: u32) -> &str {
        let index = index as usize;
        let Some(&end) = self.ends.get(index) else { return "" };
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.text.get(start.unwrap_or_default()..end).unwrap_or_default()
    }

    fn add_string(&mut self, string: &str) -> u32 {
        self.text.push_str(string);
        self.ends.push(self.text.len());
        self.ends.len() as u32 - 1
    }
}

/// Reads a profile, compressed by gzip or not.
pub fn read(mut input: impl Read) -> Result<Recorded, ReadError> {
    let mut start = Vec::with_capacity(2);
    input.by_ref().take(2).read_to_end(&mut start)?;
    let compressed = start == [0x1f, 0x8b];
    let whole = start.chain(input);
    let bytes = if compressed { limited(MultiGzDecoder::new(whole))? } else { limited(whole)? };
    Reader::default().read(&bytes)
}

fn limited(input: impl Read) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let read = input.take(MAX_PROFILE + 1).read_to_end(&mut bytes)?;
    if read as u64 > MAX_PROFILE { Err(ReadError::TooLarge { limit: MAX_PROFILE }) } else { Ok(bytes) }
}

/// Ids as the profile has them, and what they stand for.
#[derive(Default)]
struct Reader {
    recorded: Recorded,
    types: Vec<proto::ValueType>,
    default_type: i64,
    mappings: FxHashMap<u64, proto::Mapping>,
    functions: FxHashMap<u64, i64>,
    locations: FxHashMap<u64, u32>,
    /// Functions by name and module.
    distinct: FxHashMap<(u32, u32), u32>,
    made_up: FxHashMap<String, u32>,
    /// Strings, mappings, functions and locations.
    counts: [usize; 4],
}

impl Reader {
    fn read(mut self, bytes: &[u8]) -> Result<Recorded, ReadError> {
        for field in Fields::of(bytes) {
            let field = field?;
            self.count(&field)?;
            match field {
                (_, Value::Bytes(part)) if part.len() > MAX_PART => {
                    return Err(ReadError::Malformed("a part of more than 16 MiB"));
                }
                (field::STRING_TABLE, Value::Bytes(string)) => {
                    self.recorded.add_string(&String::from_utf8_lossy(string));
                }
                (field::MAPPING, Value::Bytes(part)) => {
                    let mapping = proto::Mapping::decode(part)?;
                    self.mappings.insert(mapping.id, mapping);
                }
                (field::FUNCTION, Value::Bytes(part)) => {
                    let function = proto::Function::decode(part)?;
                    let name = if function.name == 0 { function.system_name } else { function.name };
                    self.functions.insert(function.id, name);
                }
                (field::SAMPLE_TYPE, Value::Bytes(part)) => self.types.push(proto::ValueType::decode(part)?),
                (field::DEFAULT_SAMPLE_TYPE, Value::Number(number)) => self.default_type = number as i64,
                (field::TIME_NANOS, Value::Number(number)) => self.recorded.time_nanos = number as i64,
                (field::DURATION_NANOS, Value::Number(number)) => {
                    self.recorded.duration_nanos = number as i64;
                }
                (field::PERIOD, Value::Number(number)) => self.recorded.period = number as i64,
                _ => {}
            }
        }
        self.types()?;
        for field in Fields::of(bytes) {
            if let (field::LOCATION, Value::Bytes(part)) = field? {
                self.location(&proto::Location::decode(part)?)?;
            }
        }
        for field in Fields::of(bytes) {
            if let (field::SAMPLE, Value::Bytes(part)) = field? {
                self.sample(&proto::Sample::decode(part)?)?;
            }
        }
        Ok(self.recorded)
    }

    /// Counts an entry of a table, so that what is kept of many tiny ones is limited.
    fn count(&mut self, field: &(u32, Value<'_>)) -> Result<(), ReadError> {
        let table = match field.0 {
            field::STRING_TABLE => 0,
            field::MAPPING => 1,
            field::FUNCTION => 2,
            field::LOCATION => 3,
            _ => return Ok(()),
        };
        self.counts[table] += 1;
        if self.counts[table] > MAX_ENTRIES {
            return Err(ReadError::Malformed(
                "more than 8 million strings, mappings, functions or locations",
            ));
        }
        Ok(())
    }

    fn types(&mut self) -> Result<(), ReadError> {
        if self.types.is_empty() || self.types.len() > MAX_TYPES {
            return Err(ReadError::Malformed("no sample type, or more than 64"));
        }
        let default = self.types.iter().position(|kind| kind.kind == self.default_type && kind.kind != 0);
        self.recorded.default_type = default.unwrap_or(self.types.len() - 1);
        for kind in std::mem::take(&mut self.types) {
            let name = self.string(kind.kind)?.to_owned();
            let unit = self.string(kind.unit)?.to_owned();
            self.recorded.sample_types.push(ValueType { name, unit });
        }
        Ok(())
    }

    fn string(&self, index: i64) -> Result<&str, ReadError> {
        Ok(self.recorded.string(self.string_index(index)?))
    }

    fn string_index(&self, index: i64) -> Result<u32, ReadError> {
        let count = self.recorded.ends.len();
        let index = u32::try_from(index).ok().filter(|&index| (index as usize) < count);
        index.ok_or(ReadError::Malformed("the number of a string that is not there"))
    }

    fn location(&mut self, location: &proto::Location) -> Result<(), ReadError> {
        if location.line.len() > MAX_LINES {
            return Err(ReadError::Malformed("a location with more than 4096 lines"));
        }
        let mapping = self.mappings.get(&location.mapping_id).copied();
        let module = match mapping {
            Some(mapping) => self.string_index(mapping.filename)?,
            None => 0,
        };
        for line in &location.line {
            let name = self.functions.get(&line.function_id).copied();
            let name = name.ok_or(ReadError::Malformed("a line of a function that is not there"))?;
            let name = self.string_index(name)?;
            self.line(name, module);
        }
        if location.line.is_empty() {
            let name = self.address_name(module, location.address);
            self.line(name, module);
        }
        self.recorded.location_ends.push(self.recorded.lines.len() as u32);
        self.locations.insert(location.id, self.recorded.location_ends.len() as u32 - 1);
        Ok(())
    }

    /// The string `module+0xaddress`.
    fn address_name(&mut self, module: u32, address: u64) -> u32 {
        let path = self.recorded.string(module);
        let name = format!("{}+{address:#x}", path.rsplit('/').next().unwrap_or(path));
        if let Some(&known) = self.made_up.get(&name) {
            return known;
        }
        let index = self.recorded.add_string(&name);
        self.made_up.insert(name, index);
        index
    }

    fn line(&mut self, name: u32, module: u32) {
        let next = self.recorded.functions.len() as u32;
        let function = *self.distinct.entry((name, module)).or_insert(next);
        if function == next {
            self.recorded.functions.push((name, module));
        }
        self.recorded.lines.push(function);
    }

    fn sample(&mut self, sample: &proto::Sample) -> Result<(), ReadError> {
        if sample.value.len() != self.recorded.sample_types.len() {
            return Err(ReadError::Malformed("a sample with more or fewer values than sample types"));
        }
        for id in &sample.location_id {
            let location = self.locations.get(id).copied();
            let location =
                location.ok_or(ReadError::Malformed("a sample at a location that is not there"))?;
            self.recorded.stacks.push(location);
        }
        self.recorded.stack_ends.push(self.recorded.stacks.len());
        self.recorded.values.extend_from_slice(&sample.value);
        Ok(())
    }
}
