//! A chunk: its clock, its types, where its constants are, and its events.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;

use super::cursor::{Cursor, WrittenText};
use super::types::{Field, Type, Types};
use super::value::{self, Struct, Value};
use super::{ReadError, metadata};

type Result<T> = std::result::Result<T, ReadError>;

pub(super) const HEADER: usize = 68;

/// The largest chunk: places in it have 32 bits.
const LARGEST: u64 = u32::MAX as u64;

/// Where a chunk tells whether it was ended: what is not 0 there counts how often it was written to the file up to now.
const STATE: usize = 64;

pub(super) const NOT_ENDED: &str = "a chunk that was not ended";

const METADATA: u64 = 0;
const CONSTANTS: u64 = 1;

/// A chunk's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The time of day at `start_ticks`: nanoseconds since 1970 in UTC, which may be before that.
    pub start: i64,
    /// What the clock of events showed then.
    pub start_ticks: u64,
    /// Ticks of that clock in a second.
    pub frequency: u64,
    /// For how many nanoseconds the chunk was recorded.
    pub duration: u64,
}

impl Clock {
    /// So many ticks, in nanoseconds; rounded down.
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        const SECOND: u128 = 1_000_000_000;
        let nanoseconds = u128::from(ticks) * SECOND / u128::from(self.frequency.max(1));
        nanoseconds.try_into().unwrap_or(u64::MAX)
    }

    /// Nanoseconds since 1970 in UTC when the clock showed this, which may be before that.
    pub fn unix(&self, ticks: u64) -> i64 {
        match ticks.checked_sub(self.start_ticks) {
            Some(after) => self.start.saturating_add_unsigned(self.nanoseconds(after)),
            None => self.start.saturating_sub_unsigned(self.nanoseconds(self.start_ticks - ticks)),
        }
    }
}

/// A part of a file that can be read by itself.
#[derive(Debug)]
pub struct Chunk {
    bytes: Vec<u8>,
    /// Where it begins in the file.
    base: u64,
    is_compressed: bool,
    clock: Clock,
    types: Types,
    /// By position of the type: where the constants are, by their numbers, which the file chooses.
    constants: HashMap<usize, HashMap<u64, u32>>,
}

impl Chunk {
    /// Reads the next chunk; `None` at the end of the file. `base` is where it begins there, behind one that perhaps was not ended.
    pub(super) fn read(input: &mut impl Read, base: u64, is_behind_open: bool) -> Result<Option<Self>> {
        let at = |position| move |source| ReadError::Read { position, source };
        let mut bytes = Vec::new();
        input.take(HEADER as u64).read_to_end(&mut bytes).map_err(at(base))?;
        let malformed = |what, offset: u64| ReadError::Malformed { what, position: base + offset };
        let cut = |what, offset: u64, missing| ReadError::Cut { what, position: base + offset, missing };
        let begins = bytes.iter().zip(super::MAGIC).all(|(byte, magic)| byte == magic);
        if is_behind_open && (bytes.is_empty() || !begins) {
            return Err(cut(NOT_ENDED, 0, 0));
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        if !begins {
            return Err(malformed("other first bytes than a chunk", 0));
        }
        if bytes.len() < HEADER {
            let length = bytes.len() as u64;
            return Err(cut("a chunk that ends before its head does", length, HEADER as u64 - length));
        }
        let number = |offset: usize| {
            bytes[offset..offset + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        let [major, minor] = [4, 6].map(|at| u16::from_be_bytes([bytes[at], bytes[at + 1]]));
        if !(1..=2).contains(&major) {
            return Err(ReadError::Version { major, minor });
        }
        let (size, start, duration, start_ticks, frequency) =
            (number(8), number(32), number(40), number(48), number(56));
        if size == 0 {
            return Err(cut(NOT_ENDED, 8, 0));
        }
        if size < HEADER as u64 {
            return Err(malformed("a chunk that is smaller than its head", 8));
        }
        if size > LARGEST {
            return Err(ReadError::TooLarge { what: "a chunk", position: base + 8 });
        }
        if frequency == 0 || frequency > i64::MAX.cast_unsigned() {
            return Err(malformed("a clock without a frequency", 56));
        }
        let is_compressed = bytes[HEADER - 1] & 1 != 0;
        input.take(size - HEADER as u64).read_to_end(&mut bytes).map_err(at(base))?;
        if bytes.len() as u64 != size {
            let length = bytes.len() as u64;
            return Err(cut("a chunk that ends before it should", length, size - length));
        }
        let clock = Clock { start: start.cast_signed(), start_ticks, frequency, duration };
        let types = Types::default();
        let mut chunk = Self { bytes, base, is_compressed, clock, types, constants: HashMap::new() };
        chunk.index()?;
        Ok(Some(chunk))
    }

    /// Finds the types and the constants, and looks at all events once, so that what is read of them later is there.
    fn index(&mut self) -> Result<()> {
        let mut told = None;
        let mut pools = Vec::new();
        let mut cursor = self.cursor(HEADER);
        while !cursor.is_at_end() {
            let (at, id, content) = frame(&mut cursor)?;
            match id {
                // The last one has all types.
                METADATA => told = Some((at, metadata::read(content)?)),
                CONSTANTS => pools.push((content.at(), content.left())),
                _ => {}
            }
        }
        let (at, classes) = told.ok_or_else(|| cursor.malformed("a chunk that does not tell its types"))?;
        self.types = Types::of(classes, self.base + at as u64)?;
        // The newest is what counts.
        for &(at, length) in pools.iter().rev() {
            let mut constants = std::mem::take(&mut self.constants);
            self.add_constants(self.cursor(at).part(length, 0)?, &mut constants)?;
            self.constants = constants;
        }
        let mut cursor = self.cursor(HEADER);
        while !cursor.is_at_end() {
            let (_, id, mut content) = frame(&mut cursor)?;
            if let Some(of) = self.event_type(id) {
                value::skip(self, of, &mut content)?;
            }
        }
        Ok(())
    }

    /// The position of a type of events.
    fn event_type(&self, id: u64) -> Option<usize> {
        let of = self.types.position(id).filter(|_| id != METADATA && id != CONSTANTS)?;
        self.types.list[of].is_event().then_some(of)
    }

    fn add_constants(
        &self,
        mut cursor: Cursor<'_>,
        constants: &mut HashMap<usize, HashMap<u64, u32>>,
    ) -> Result<()> {
        let (_start, _duration, _event_before) = (cursor.long()?, cursor.long()?, cursor.long()?);
        let _flags = cursor.byte()?;
        for _ in 0..cursor.count()? {
            let before = cursor;
            let of = self.types.position(cursor.long()?);
            let of = of.ok_or_else(|| before.malformed("constants of an unknown type"))?;
            let pool = constants.entry(of).or_default();
            for _ in 0..cursor.count()? {
                let number = cursor.long()?;
                pool.entry(number).or_insert(cursor.at() as u32);
                value::skip(self, of, &mut cursor)?;
            }
        }
        Ok(())
    }

    pub(super) fn cursor(&self, at: usize) -> Cursor<'_> {
        Cursor::new(&self.bytes, at, self.base, self.is_compressed)
    }

    pub(super) const fn types(&self) -> &Types {
        &self.types
    }

    /// A type of the chunk by its name, whether there are events of it or not.
    pub fn type_named(&self, name: &str) -> Option<&Type> {
        self.types.list.iter().find(|of| of.name() == name)
    }

    pub(super) fn constant_at(&self, of: usize, number: u64) -> Option<usize> {
        self.constants.get(&of)?.get(&number).map(|at| *at as usize)
    }

    /// A constant that is text itself.
    pub(super) fn constant_text(&self, number: u64) -> Option<Cow<'_, str>> {
        let at = self.constant_at(self.types.text?, number)?;
        match self.cursor(at).text() {
            Ok(WrittenText::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Its clock.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Number of its bytes.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it was not ended: a virtual machine that is killed leaves one that is whole up to the size it had when it was written to
    /// the file last, with perhaps more behind that.
    pub(super) fn is_open(&self) -> bool {
        self.bytes[STATE] != 0
    }

    /// Never true: it has a head.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Its types, those of values, too.
    pub fn kinds(&self) -> impl Iterator<Item = &Type> {
        self.types.list.iter()
    }

    /// The type of a field's values.
    ///
    /// # Panics
    /// For a field of another chunk.
    pub fn kind_of(&self, field: &Field) -> &Type {
        &self.types.list[field.of]
    }

    /// Its events, in the order of the file, which is not that of time. Those of unknown types are left out.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        let mut cursor = self.cursor(HEADER);
        std::iter::from_fn(move || {
            loop {
                let (_, id, content) = frame(&mut cursor).ok()?;
                if let Some(of) = self.event_type(id) {
                    return Some(Event {
                        fields: Struct { chunk: self, of, at: content.at(), constant: None },
                    });
                }
            }
        })
    }
}

/// Reads an event's size and type. Out: where it begins, its type, and what is behind that.
fn frame<'a>(cursor: &mut Cursor<'a>) -> Result<(usize, u64, Cursor<'a>)> {
    let before = *cursor;
    let size = cursor.int()? as usize;
    let id = cursor.long()?;
    let used = cursor.at() - before.at();
    if size < used {
        return Err(before.malformed("an event that is smaller than its head"));
    }
    let content = cursor.part(size, used)?;
    Ok((before.at(), id, content))
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    fields: Struct<'a>,
}

impl<'a> Event<'a> {
    /// Its type.
    pub fn kind(&self) -> &'a Type {
        self.fields.kind()
    }

    /// The name of its type, as `jdk.ExecutionSample`.
    pub fn name(&self) -> &'a str {
        self.kind().name()
    }

    /// What the chunk's clock showed when it began.
    pub fn ticks(&self) -> u64 {
        self.get("startTime").integer().unwrap_or_default().cast_unsigned()
    }

    /// The value of a field; [`Value::Null`] where there is none of that name.
    pub fn get(&self, name: &str) -> Value<'a> {
        self.fields.get(name)
    }

    /// All its fields.
    pub const fn fields(&self) -> Struct<'a> {
        self.fields
    }
}
