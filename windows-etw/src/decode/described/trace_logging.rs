//! `TraceLogging`: what an event says of itself, and its provider of itself. Layouts are those of `TraceLoggingProvider.h`.
//!
//! Both begin with their size (u16, itself included). Of an event, tags follow (bytes up to the first below 128), the name, and
//! per field: name, type, and by the type's highest bit how it is shown, and by that one's highest bit tags; then by
//! the bits 32 and 64 of the type how many there are. A structure is a field whose number of members stands for
//! how it is shown. Of a provider, its name follows, and traits, each with its size (u16) and type (u8). Names are
//! UTF-8 and end at a NUL.

use std::sync::Arc;

use collector_common::event::{
    ByteOrder, EventFormat, Extent, FieldKind, Guid, MOST_DEPTH, PointerWidth, Width,
};

use super::error::{DescriptionError, DescriptionProblem};
use super::reader::Reader;
use super::types::{Element, Repeat, Shown, add, element, input};

/// The type says that how it is shown follows.
const CHAIN: u8 = 0x80;
/// Which bits of a type say how many there are.
const COUNTED: u8 = 0x60;
/// So many as follows the type, in the description.
const FIXED: u8 = 0x20;
/// So many as the payload says.
const PREFIXED: u8 = 0x40;
/// The trait that is the provider's group.
const GROUP: u8 = 1;

/// What an event says of itself.
#[derive(Debug)]
pub struct TraceLoggingEvent {
    /// Its name.
    pub name: Box<str>,
    /// Bits that its provider attaches a meaning to.
    pub tags: u32,
    /// Its fields.
    pub format: EventFormat,
}

impl TraceLoggingEvent {
    /// Reads a description.
    ///
    /// # Errors
    /// When it ends early, has a type that is not known, or more than a format can have.
    pub fn parse(description: &[u8], pointer: PointerWidth) -> Result<Self, DescriptionError> {
        let mut reader = whole(description)?;
        let tags = tags(&mut reader)?;
        let name = reader.text("the event's name")?.into();
        let mut format = EventFormat::new(ByteOrder::Little);
        while !reader.is_empty() {
            field(&mut reader, &mut format, pointer, 1)?;
        }
        Ok(Self { name, tags, format })
    }
}

/// What a provider says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderTraits {
    /// Its name.
    pub name: Box<str>,
    /// The group that it is of.
    pub group: Option<Guid>,
}

impl ProviderTraits {
    /// Reads a description.
    ///
    /// # Errors
    /// When it ends early.
    pub fn parse(description: &[u8]) -> Result<Self, DescriptionError> {
        let mut reader = whole(description)?;
        let name = reader.text("the provider's name")?.into();
        let mut group = None;
        while !reader.is_empty() {
            let size = usize::from(reader.u16("the size of a trait")?);
            let kind = reader.u8("the type of a trait")?;
            let short = reader.error("the size of a trait", DescriptionProblem::TooShort);
            let value = reader.bytes(size.checked_sub(3).ok_or(short)?, "a trait")?;
            if kind == GROUP
                && let Some(guid) = value.first_chunk()
            {
                group = Some(Guid::from_bytes(*guid, ByteOrder::Little));
            }
        }
        Ok(Self { name, group })
    }
}

/// The description behind its size, without what may be behind it.
fn whole(description: &[u8]) -> Result<Reader<'_>, DescriptionError> {
    let mut reader = Reader::new(description);
    let size = usize::from(reader.u16("the description's size")?);
    let short = reader.error("the description's size", DescriptionProblem::TooShort);
    let mut own = Reader::new(description.get(..size).ok_or(short)?);
    own.u16("the description's size")?;
    Ok(own)
}

/// Bytes up to the first below 128, seven bits each, the highest first.
fn tags(reader: &mut Reader<'_>) -> Result<u32, DescriptionError> {
    // Four of them have 28 bits, which is what there may be.
    let mut tags = 0;
    for shift in [21, 14, 7, 0] {
        let byte = reader.u8("tags")?;
        tags |= u32::from(byte & 0x7f) << shift;
        if byte < CHAIN {
            return Ok(tags);
        }
    }
    while reader.u8("tags")? >= CHAIN {}
    Ok(tags)
}

/// Reads a field with its members, and adds it.
fn field(
    reader: &mut Reader<'_>,
    format: &mut EventFormat,
    pointer: PointerWidth,
    depth: u32,
) -> Result<(), DescriptionError> {
    let start = *reader;
    let name = reader.text("a field's name")?;
    let kind = reader.u8("a field's type")?;
    let mut shown = 0;
    if kind & CHAIN != 0 {
        shown = reader.u8("how a field is shown")?;
        if shown & CHAIN != 0 {
            tags(reader)?;
        }
    }
    let repeat = match kind & COUNTED {
        0 => Repeat::One,
        FIXED => Repeat::Fixed(reader.u16("how many elements a field has")?),
        PREFIXED => Repeat::Prefixed,
        // Packed in a way of its own: bytes behind their length, and how they are packed in the description.
        _ => {
            let size = reader.u16("how a field is packed")?;
            reader.bytes(size.into(), "how a field is packed")?;
            let bytes = Element {
                kind: FieldKind::Unsigned(Width::W8),
                extent: Extent::LengthPrefixed(Width::W16),
                name: "win:Binary",
            };
            return added(start, format, &name, bytes, Repeat::One);
        }
    };
    let (kind, shown) = (kind & !(CHAIN | COUNTED), shown & !CHAIN);
    if kind != input::STRUCT {
        let wrong = DescriptionProblem::Type { input: kind.into(), output: shown.into() };
        let element = match u16::from(kind) {
            input::BINARY => Some(Element {
                kind: FieldKind::Unsigned(Width::W8),
                extent: Extent::LengthPrefixed(Width::W16),
                name: "win:Binary",
            }),
            other => element(other, Shown::by_trace_logging(shown), pointer),
        };
        let element = element.ok_or_else(|| start.error("a field", wrong))?;
        return added(start, format, &name, element, repeat);
    }
    if depth >= MOST_DEPTH {
        return Err(start.error("a structure", DescriptionProblem::Depth));
    }
    let mut inner = EventFormat::new(ByteOrder::Little);
    for _ in 0..shown {
        field(reader, &mut inner, pointer, depth + 1)?;
    }
    let element = Element { kind: FieldKind::Struct(Arc::new(inner)), extent: Extent::One, name: "struct" };
    added(start, format, &name, element, repeat)
}

fn added(
    start: Reader<'_>,
    format: &mut EventFormat,
    name: &str,
    element: Element,
    repeat: Repeat,
) -> Result<(), DescriptionError> {
    add(format, name, element, repeat).map(drop).map_err(|error| start.error("a field", error.into()))
}
