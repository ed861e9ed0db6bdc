//! `TRACE_EVENT_INFO` of `tdh.h`: what Windows knew of an event, as merging a trace writes it into the file
//! (`KernelTraceControl/MetaData/EventInfo`).
//!
//! A header of 112 bytes with offsets of names; then 24 bytes per property: flags (u32), offset of its name (u32), type and how it is
//! shown (u16 each) or first member and number of members, offset of its map (u32), count and length (u16 each) or
//! the properties that have them, and tags (u32). Offsets are from the start, names are UTF-16 and end at a NUL.

use std::sync::Arc;

use collector_common::event::{
    ByteOrder, EventFieldRef, EventFormat, Extent, FieldKind, Guid, MOST_DEPTH, PointerWidth,
};

use super::error::{DescriptionError, DescriptionProblem};
use super::reader::Reader;
use super::types::{Element, Repeat, Shown, add, element, sized};
use crate::record::Descriptor;

/// What it was described by: a class (MOF), as opposed to a manifest.
const BY_CLASS: u32 = 1;

/// Flags of a property.
mod flags {
    pub(super) const STRUCT: u32 = 1;
    pub(super) const LENGTH_OF: u32 = 2;
    pub(super) const COUNT_OF: u32 = 4;
}

/// Which event is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InfoKey {
    /// A classic one by its class, opcode and version.
    Classic(Guid, u8, u8),
    /// One of a manifest by its provider, number and version.
    Manifest(Guid, u16, u8),
}

/// What Windows knew of an event.
#[derive(Debug)]
pub struct EventInfo {
    /// Which event.
    pub key: InfoKey,
    /// Its descriptor.
    pub descriptor: Descriptor,
    /// Name of the provider.
    pub provider: Option<Box<str>>,
    /// Name of the task.
    pub task: Option<Box<str>>,
    /// Name of the opcode.
    pub opcode: Option<Box<str>>,
    /// What it means, with `%1` for the first field.
    pub message: Option<Box<str>>,
    /// Its fields.
    pub format: EventFormat,
}

/// One `EVENT_PROPERTY_INFO`.
#[derive(Clone, Debug)]
struct Property {
    position: usize,
    flags: u32,
    name: String,
    /// Type, or first member.
    input: u16,
    /// How it is shown, or number of members.
    output: u16,
    count: u16,
    length: u16,
}

impl EventInfo {
    /// Reads a description. `pointer` is the width of pointers in the payloads that it describes.
    ///
    /// # Errors
    /// When it ends early, has a type that is not known, or what a format can't have.
    pub fn parse(description: &[u8], pointer: PointerWidth) -> Result<Self, DescriptionError> {
        let mut reader = Reader::new(description);
        let provider = Guid::from_bytes(reader.array("ProviderGuid")?, ByteOrder::Little);
        let class = Guid::from_bytes(reader.array("EventGuid")?, ByteOrder::Little);
        let descriptor = Descriptor {
            id: reader.u16("Id")?,
            version: reader.u8("Version")?,
            channel: reader.u8("Channel")?,
            level: reader.u8("Level")?,
            opcode: reader.u8("Opcode")?,
            task: reader.u16("Task")?,
            keyword: reader.array("Keyword").map(u64::from_le_bytes)?,
        };
        let source = reader.u32("DecodingSource")?;
        let [provider_name, _, _, _, task, opcode, message] = offsets(&mut reader)?;
        // Of the provider's message, of the manifest itself and of activities.
        let [_, _, _, _, _] = offsets(&mut reader)?;
        let [count, top_level, _] = offsets(&mut reader)?;
        let mut left = description.len();
        let mut text = |offset, what| {
            reader.utf16_at(offset, what, &mut left).map(|text| text.map(|text| text.trim_end().into()))
        };
        let (provider_name, task) = (text(provider_name, "ProviderName")?, text(task, "TaskName")?);
        let (opcode, message) = (text(opcode, "OpcodeName")?, text(message, "EventMessage")?);
        let properties = properties(&mut reader, count, &mut left)?;
        let mut left = properties.len();
        let top_level = top_level as usize;
        let format = Members { all: &properties, pointer }.format(0, top_level, &mut left, 1)?;
        let key = if source == BY_CLASS {
            InfoKey::Classic(class, descriptor.opcode, descriptor.version)
        } else {
            InfoKey::Manifest(provider, descriptor.id, descriptor.version)
        };
        Ok(Self { key, descriptor, provider: provider_name, task, opcode, message, format })
    }

    /// Task and opcode, as PerfView prints them: the opcode is left out where it says nothing.
    pub fn name(&self) -> String {
        let task = self.task.as_deref().unwrap_or_default();
        let task = if task.is_empty() { format!("Task({})", self.descriptor.task) } else { identifier(task) };
        match self.opcode.as_deref().map(|opcode| opcode.strip_prefix("win:").unwrap_or(opcode)) {
            None | Some("" | "Info") => task,
            Some(_) if self.descriptor.opcode == 0 => task,
            Some(opcode) => format!("{task}/{}", identifier(opcode)),
        }
    }
}

/// A name without what names in programs can't have.
fn identifier(name: &str) -> String {
    name.trim().chars().filter(|char| char.is_alphanumeric() || "_-./".contains(*char)).collect()
}

fn offsets<const N: usize>(reader: &mut Reader<'_>) -> Result<[u32; N], DescriptionError> {
    let mut offsets = [0; N];
    for offset in &mut offsets {
        *offset = reader.u32("the header")?;
    }
    Ok(offsets)
}

/// `left` units may be in their names.
fn properties(
    reader: &mut Reader<'_>,
    count: u32,
    left: &mut usize,
) -> Result<Vec<Property>, DescriptionError> {
    let mut properties = Vec::new();
    for _ in 0..count {
        let position = reader.error("a property", DescriptionProblem::TooShort).position;
        let flags = reader.u32("a property")?;
        let name = reader.u32("a property")?;
        let name = reader.utf16_at(name, "a property's name", left)?.unwrap_or_default();
        let (input, output) = (reader.u16("a property")?, reader.u16("a property")?);
        reader.u32("a property")?;
        let (count, length) = (reader.u16("a property")?, reader.u16("a property")?);
        reader.u32("a property")?;
        properties.push(Property { position, flags, name, input, output, count, length });
    }
    Ok(properties)
}

/// Properties that make a format.
struct Members<'a> {
    all: &'a [Property],
    pointer: PointerWidth,
}

impl Members<'_> {
    /// The format of `count` properties from `first` on. Each property may be used once: `left` of them may still be.
    fn format(
        &self,
        first: usize,
        count: usize,
        left: &mut usize,
        depth: u32,
    ) -> Result<EventFormat, DescriptionError> {
        let position = self.all.get(first).map_or(0, |property| property.position);
        let error = |problem| DescriptionError { what: "a structure", position, problem };
        let members = first.checked_add(count).and_then(|end| self.all.get(first..end));
        let members = members.filter(|members| members.len() <= *left);
        let members =
            members.ok_or_else(|| error(DescriptionProblem::Members { members: count, left: *left }))?;
        *left -= members.len();
        if depth > MOST_DEPTH {
            return Err(error(DescriptionProblem::Depth));
        }
        let mut format = EventFormat::new(ByteOrder::Little);
        let mut added: Vec<EventFieldRef> = Vec::new();
        for property in members {
            let error =
                |problem| DescriptionError { what: "a property", position: property.position, problem };
            let other = |index: u16| {
                let own = usize::from(index).checked_sub(first).and_then(|own| added.get(own));
                own.copied().ok_or_else(|| error(DescriptionProblem::Counter { index }))
            };
            let repeat = match property.count {
                index if property.flags & flags::COUNT_OF != 0 => Repeat::Of(other(index)?),
                0 | 1 => Repeat::One,
                count => Repeat::Fixed(count),
            };
            let element = if property.flags & flags::STRUCT != 0 {
                let (first, count) = (property.input.into(), property.output.into());
                let inner = self.format(first, count, left, depth + 1)?;
                Element { kind: FieldKind::Struct(Arc::new(inner)), extent: Extent::One, name: "struct" }
            } else {
                let (input, output) = (property.input, property.output);
                let shown = Shown::by_manifest(output);
                let length = match property.length {
                    index if property.flags & flags::LENGTH_OF != 0 => Some(Extent::CountOf(other(index)?)),
                    0 => None,
                    length => Some(Extent::Array(length.into())),
                };
                length
                    .and_then(|extent| sized(input, shown, extent))
                    .or_else(|| element(input, shown, self.pointer))
                    .ok_or_else(|| error(DescriptionProblem::Type { input, output }))?
            };
            added.push(
                add(&mut format, &property.name, element, repeat).map_err(|problem| error(problem.into()))?,
            );
        }
        Ok(format)
    }
}
