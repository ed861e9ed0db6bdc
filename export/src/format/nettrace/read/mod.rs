//! A trace in, whoever wrote it; its events out, one by one, in the order of the file.
//!
//! The bytes may be hostile: no size is trusted before the bytes are there, each reference is checked, and what is kept is
//! limited. What the specification does not allow is an error, but for what makes no difference, which some writers do: a day of the week
//! from Monday on, two sequence points at one time, times outside of what the file tells of them, which are counted, and fields of types
//! that it does not know, behind which an event's fields are not taken apart.
//!
//! [`crate::import::nettrace`] makes a machine of them.
//!
//! - `cursor`: the smallest parts; `fields`: types of fields, and events by them; `formats`: the same as event formats.
//! - `tables`: what events refer to; `blobs`: blocks of events, whose headers `header` reads.
//! - `framing`: blocks, in a file of any version; `blocks`: what is made of them.
//! - `old_types`: types of events before version 6.

mod blobs;
mod blocks;
mod cursor;
mod fields;
mod formats;
mod framing;
mod header;
mod old_types;
mod tables;

use std::borrow::Cow;
use std::io::{self, Read};

use collector_common::event::EventFormat;
use collector_common::record::EventFacts;
use collector_common::remedy;

pub use fields::Value;
pub use tables::{Label, LabelValue, Thread};

use cursor::Cursor;
use fields::Field;

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Reading failed.
    #[error("reading the trace failed: {0}")]
    Read(#[from] io::Error),
    /// It is of a version that is not read.
    #[error("nettrace of version {0} is not read, only versions 4 to 6")]
    Version(u32),
    /// It has more of something than is read.
    #[error("the trace is too large: {what} at byte {position}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// Where.
        position: u64,
    },
    /// It ends within what is before its first event.
    #[error(
        "the trace is cut short: it ends at byte {position}, before its first event is whole, at least {missing} bytes too early"
    )]
    Cut {
        /// Where it ends.
        position: u64,
        /// Bytes that what was begun there lacks.
        missing: u64,
    },
    /// It is not a trace.
    #[error("not a nettrace file, or a damaged one: it has {what} at byte {position}")]
    Malformed {
        /// What it has.
        what: &'static str,
        /// Where.
        position: u64,
    },
}

impl ReadError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Read(error) => remedy::of_reading(error),
            Self::Version(..4) => "record it again with .NET Core 3.1 or newer, which write version 4",
            Self::Version(_) => remedy::NEWER,
            Self::TooLarge { .. } => remedy::TOO_LARGE,
            Self::Cut { .. } => remedy::CUT,
            Self::Malformed { .. } => remedy::DAMAGED,
        }
    }
}

/// The trace as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The time of day that was at `ticks`, in milliseconds since 1970 in UTC.
    pub unix_milliseconds: i64,
    /// The trace's clock at that time.
    pub ticks: i64,
    /// Ticks of that clock in a second.
    pub frequency: u64,
    /// Bytes of an address.
    pub pointer_size: u32,
    /// Facts by name.
    pub pairs: Vec<(String, String)>,
}

/// What was read to the end of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of events.
    pub events: u64,
    /// Number of events that numbers are missing for.
    pub lost: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Number of sequence points.
    pub sequence_points: u64,
    /// Number of events outside of the time that their block tells, and of sequence points that are older than events before them.
    pub misplaced: u64,
    /// Where the file ends, if that is not where the trace does: it was cut, or whoever wrote it was killed. Blocks that are whole were
    /// read.
    pub cut_at: Option<u64>,
}

/// A type of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventType {
    /// Who the event is of.
    pub provider: String,
    /// The provider's GUID in the order of the file, where it is told.
    pub provider_guid: Option<[u8; 16]>,
    /// The event's number with its provider.
    pub id: u32,
    /// The event's name.
    pub name: String,
    /// Its version, importance and the like; 0 where they are not told.
    pub facts: EventFacts,
    /// Further facts by name.
    pub pairs: Vec<(String, String)>,
    /// How many types were told of before it.
    pub position: u32,
    fields: Vec<Field>,
    /// Whether there are numbers of variable length in them.
    has_varints: bool,
    /// Whether each is one, or text in UTF-8.
    are_numbers_and_text: bool,
    /// Whether there are more fields behind these, the first of which is of a type that means none.
    pub has_more_fields: bool,
}

impl EventType {
    /// Names of the fields, as far as their types are known.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    /// The fields, as [`Event::described`] has their bytes. `None` for what an event's format has no words for, and where there are no
    /// fields.
    pub fn format(&self) -> Option<EventFormat> {
        formats::format_of(&self.fields, self.has_more_fields)
    }
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Its type.
    pub event_type: &'a EventType,
    /// In ticks.
    pub time: u64,
    /// The thread that it is about.
    pub thread: &'a Thread,
    /// The processor it was recorded on.
    pub processor: u32,
    /// Labels.
    pub labels: &'a [Label],
    /// Which of the trace's lists of labels these are, by how many were told of up to it; `None` for what is of this event alone.
    pub label_list: Option<u32>,
    /// Which of the trace's stacks it has, by how many were told of up to it; `None` for one that has none.
    pub stack_position: Option<u32>,
    /// The stack's addresses, as the file has them.
    stack: &'a [u8],
    pointer_size: usize,
    /// What the fields are in.
    pub payload: &'a [u8],
    /// Where that begins in the file.
    position: u64,
}

impl Event<'_> {
    /// Addresses of the stack, leaf first.
    pub fn stack(&self) -> impl ExactSizeIterator<Item = u64> {
        let chunks = self.stack.chunks_exact(self.pointer_size);
        chunks.map(|bytes| bytes.iter().rev().fold(0, |address, &byte| address << 8 | u64::from(byte)))
    }

    /// The fields' values, in their order.
    pub fn values(&self) -> Result<Vec<Value>, ReadError> {
        fields::values(&self.event_type.fields, self.fields())
    }

    /// The first field's value, if there is one.
    pub fn first_value(&self) -> Result<Option<Value>, ReadError> {
        fields::first_value(&self.event_type.fields, self.fields())
    }

    /// What the fields are in, as [`EventType::format`] describes it: the payload, with numbers of variable length written out.
    pub fn described(&self) -> Result<Cow<'_, [u8]>, ReadError> {
        let EventType { fields, has_more_fields, has_varints, .. } = self.event_type;
        if !has_varints {
            return Ok(Cow::Borrowed(self.payload));
        }
        formats::described(fields, *has_more_fields, self.fields()).map(Cow::Owned)
    }

    /// The values of an event whose provider is known to have certain fields: text where `are_text` says so, else numbers of variable
    /// length. The trace says the same, or has text as one byte of UTF-8, as some writers do; what follows is passed over. `None` where it
    /// says that there are other types.
    pub(crate) fn known_values(&self, are_text: &[bool]) -> Option<Result<Vec<Value>, ReadError>> {
        self.event_type.are_numbers_and_text.then(|| fields::known_values(are_text, self.fields()))
    }

    const fn fields(&self) -> Cursor<'_> {
        Cursor::of(self.payload, self.position)
    }
}

/// Reads a trace: `begin` is given what is told at its start, `each` its events. Of one that is cut, those of the blocks before the cut.
///
/// # Errors
/// When it can't be read, is not a trace, has more of something than is read, or is cut before its first event.
pub fn read(
    input: impl Read,
    begin: impl FnOnce(&Trace),
    each: impl FnMut(&Event<'_>),
) -> Result<Summary, ReadError> {
    blocks::read(input, begin, each)
}
