//! What events refer to: threads, stacks, lists of labels and types of events, each by a number.
//!
//! A file chooses these numbers, so that they are kept under a hash that it can't foresee.

use std::collections::HashMap;

use super::cursor::Cursor;
use super::{EventType, ReadError, fields, formats};

type Result<T> = std::result::Result<T, ReadError>;

/// The most rows of one table.
const MOST_ROWS: usize = 1 << 22;
const ROWS: &str = "rows of a table";

/// The most bytes of stacks between two sequence points.
const MOST_STACK_BYTES: usize = 256 << 20;

/// The most labels between two sequence points.
const MOST_LABELS: usize = 1 << 22;

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its name.
    pub name: Option<String>,
    /// Its process's id.
    pub pid: Option<u64>,
    /// Its id.
    pub tid: Option<u64>,
    /// Facts by name.
    pub pairs: Vec<(String, String)>,
}

/// What a label says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelValue {
    /// Text.
    Text(String),
    /// A number.
    Number(i64),
    /// A number that belongs to the format, as a level.
    Known(u64),
    /// An id of 16 bytes.
    Id([u8; 16]),
}

/// A label of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub key: String,
    /// What it says.
    pub value: LabelValue,
}

/// A list of labels, and how many there were up to it.
#[derive(Debug)]
struct LabelList {
    labels: Vec<Label>,
    position: u32,
}

/// Whether something with a number may be added once more.
fn room(rows: usize, position: u64) -> Result<()> {
    if rows < MOST_ROWS { Ok(()) } else { Err(ReadError::TooLarge { what: ROWS, position }) }
}

/// A thread, and what is known of the events that it recorded.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) thread: Thread,
    /// The number of the last one; in old files not known before the first.
    sequence: Option<u32>,
    pub(super) last_time: u64,
}

impl Recorder {
    /// Notes that numbers are used up to this one. Out: by how many that is more than before.
    pub(super) fn advance(&mut self, sequence: u32) -> Option<u32> {
        self.sequence.replace(sequence).map(|before| sequence.wrapping_sub(before))
    }
}

/// All tables.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) threads: HashMap<u64, Recorder>,
    pub(super) types: HashMap<u32, EventType>,
    /// How many there were, with those that were forgotten.
    types_before: u32,
    /// By number: how many there were up to each, and its bytes.
    stacks: HashMap<u32, (u32, Box<[u8]>)>,
    /// How many there were, with those that were forgotten.
    stacks_before: u32,
    stack_bytes: usize,
    label_lists: HashMap<u32, LabelList>,
    /// How many there were, with those that were forgotten.
    lists_before: u32,
    labels: usize,
}

impl Tables {
    /// The bytes of the stack of an event that is there in the file, and how many stacks there were up to it; none for number 0.
    pub(super) fn stack(&self, number: u32, position: u64) -> Result<(&[u8], Option<u32>)> {
        match (number, self.stacks.get(&number)) {
            (0, _) => Ok((&[], None)),
            (_, Some((position, stack))) => Ok((stack, Some(*position))),
            (_, None) => Err(malformed("an event with a stack that is not there", position)),
        }
    }

    /// A list of labels, and how many lists there were up to it; an empty one for number 0.
    pub(super) fn label_list(&self, number: u32, position: u64) -> Result<(&[Label], Option<u32>)> {
        match (number, self.label_lists.get(&number)) {
            (0, _) => Ok((&[], None)),
            (_, Some(list)) => Ok((&list.labels, Some(list.position))),
            (_, None) => Err(malformed("an event with labels that are not there", position)),
        }
    }

    pub(super) fn thread(&mut self, index: u64, position: u64) -> Result<&mut Recorder> {
        self.threads.get_mut(&index).ok_or_else(|| malformed("a thread that is not there", position))
    }

    /// Forgets what numbers begin anew for at a sequence point.
    pub(super) fn forget(&mut self) {
        self.stacks = HashMap::new();
        self.label_lists = HashMap::new();
        (self.stack_bytes, self.labels) = (0, 0);
    }

    pub(super) fn add_stacks(&mut self, mut block: Cursor<'_>, pointer_size: u32) -> Result<()> {
        let start = block;
        let (first, count) = (block.u32()?, block.u32()?);
        for number in numbers(start, first, count)? {
            let row = block;
            let size = block.u32()?;
            if !size.is_multiple_of(pointer_size) {
                return Err(row.malformed("a stack that is not made of addresses"));
            }
            let stack = block.bytes(size as usize)?;
            self.stack_bytes += stack.len();
            if self.stack_bytes > MOST_STACK_BYTES {
                return Err(row.too_large("stacks between two sequence points"));
            }
            room(self.stacks.len(), row.position())?;
            self.stacks_before = self.stacks_before.checked_add(1).ok_or_else(|| row.too_large(ROWS))?;
            if self.stacks.insert(number, (self.stacks_before, stack.into())).is_some() {
                return Err(row.malformed("two stacks of one number"));
            }
        }
        empty(block)
    }

    pub(super) fn add_labels(&mut self, mut block: Cursor<'_>) -> Result<()> {
        let start = block;
        let (first, count) = (block.u32()?, block.u32()?);
        for number in numbers(start, first, count)? {
            let row = block;
            let labels = label_list(&mut block)?;
            self.labels += labels.len();
            if self.labels > MOST_LABELS {
                return Err(row.too_large("labels between two sequence points"));
            }
            self.lists_before = self.lists_before.checked_add(1).ok_or_else(|| row.too_large(ROWS))?;
            let list = LabelList { labels, position: self.lists_before };
            if self.label_lists.insert(number, list).is_some() {
                return Err(row.malformed("two lists of labels of one number"));
            }
        }
        empty(block)
    }

    pub(super) fn add_threads(&mut self, mut block: Cursor<'_>) -> Result<()> {
        while !block.is_empty() {
            let mut row = block.part()?;
            let start = row;
            let index = row.varuint()?;
            let mut thread = Thread::default();
            while !row.is_empty() {
                let fact = row;
                match row.u8()? {
                    1 => thread.name = Some(row.text()?.to_owned()),
                    2 => thread.pid = Some(row.varuint()?),
                    3 => thread.tid = Some(row.varuint()?),
                    4 => thread.pairs.push((row.text()?.to_owned(), row.text()?.to_owned())),
                    _ => return Err(fact.malformed("a fact about a thread of an unknown kind")),
                }
            }
            room(self.threads.len(), start.position())?;
            let recorder = Recorder { thread, sequence: Some(0), last_time: 0 };
            if self.threads.insert(index, recorder).is_some() {
                return Err(start.malformed("two threads of one number"));
            }
        }
        Ok(())
    }

    pub(super) fn add_types(&mut self, mut block: Cursor<'_>) -> Result<()> {
        block.part()?;
        while !block.is_empty() {
            let mut row = block.part()?;
            let start = row.position();
            let number = row.varuint32()?;
            let provider = row.text()?.to_owned();
            let id = row.varuint32()?;
            let name = row.text()?.to_owned();
            let (fields, has_more_fields) = fields::leading_fields(&mut row)?;
            let mut of = EventType { provider, id, name, fields, has_more_fields, ..EventType::default() };
            optional(row.part()?, &mut of)?;
            self.add_type(number, of, start)?;
        }
        Ok(())
    }

    pub(super) fn add_type(&mut self, number: u32, of: EventType, at: u64) -> Result<()> {
        room(self.types.len(), at)?;
        let position = self.types_before;
        let too_large = ReadError::TooLarge { what: ROWS, position: at };
        self.types_before = position.checked_add(1).ok_or(too_large)?;
        let has_varints = formats::has_varints(&of.fields);
        let are_numbers_and_text = of.fields.iter().all(|field| fields::is_number_or_text(&field.of));
        match self.types.insert(number, EventType { position, has_varints, are_numbers_and_text, ..of }) {
            None if number > 0 => Ok(()),
            _ => Err(malformed("two types of events of one number, or one of number 0", at)),
        }
    }

    /// Adds the thread of an id, unless it is there: old files do not tell of threads before they are referred to.
    pub(super) fn old_thread(&mut self, tid: u64, pid: u64, position: u64) -> Result<()> {
        room(self.threads.len(), position)?;
        self.threads.entry(tid).or_insert_with(|| {
            let thread = Thread { tid: Some(tid), pid: Some(pid), ..Thread::default() };
            Recorder { thread, ..Recorder::default() }
        });
        Ok(())
    }
}

fn malformed(what: &'static str, position: u64) -> ReadError {
    ReadError::Malformed { what, position }
}

/// Numbers of rows, the first of which is at least 1, as a block begins with.
fn numbers(block: Cursor<'_>, first: u32, count: u32) -> Result<impl Iterator<Item = u32> + use<>> {
    match first.checked_add(count) {
        Some(end) if first > 0 => Ok(first..end),
        _ => Err(block.malformed("a row of a number that can't be")),
    }
}

fn empty(block: Cursor<'_>) -> Result<()> {
    if block.is_empty() { Ok(()) } else { Err(block.malformed("more in a block than it tells of")) }
}

/// Reads what is known of a type beyond its fields.
fn optional(mut part: Cursor<'_>, of: &mut EventType) -> Result<()> {
    while !part.is_empty() {
        let fact = part;
        match part.u8()? {
            1 => of.facts.opcode = part.u8()?,
            3 => of.facts.keywords = part.u64()?,
            4 | 5 => {
                part.text()?;
            }
            6 => of.pairs.push((part.text()?.to_owned(), part.text()?.to_owned())),
            7 => of.provider_guid = Some(part.array()?),
            8 => of.facts.level = part.u8()?,
            9 => of.facts.version = part.u8()?,
            _ => return Err(fact.malformed("a fact about a type of an unknown kind")),
        }
    }
    Ok(())
}

fn label_list(block: &mut Cursor<'_>) -> Result<Vec<Label>> {
    let mut list = Vec::new();
    loop {
        let label = *block;
        let kind = block.u8()?;
        let named = |name: &str, value| Label { key: name.to_owned(), value };
        list.push(match kind & 0x7f {
            1 => named("ActivityId", LabelValue::Id(block.array()?)),
            2 => named("RelatedActivityId", LabelValue::Id(block.array()?)),
            3 => named("TraceId", LabelValue::Id(block.array()?)),
            4 => named("SpanId", LabelValue::Known(block.u64()?)),
            5 => named(block.text()?, LabelValue::Text(block.text()?.to_owned())),
            6 => named(block.text()?, LabelValue::Number(block.varint()?)),
            7 => named("OpCode", LabelValue::Known(block.u8()?.into())),
            8 => named("Keywords", LabelValue::Known(block.u64()?)),
            9 => named("Level", LabelValue::Known(block.u8()?.into())),
            10 => named("Version", LabelValue::Known(block.u8()?.into())),
            _ => return Err(label.malformed("a label of an unknown kind")),
        });
        if kind & 0x80 != 0 {
            return Ok(list);
        }
    }
}
