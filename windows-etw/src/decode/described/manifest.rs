//! Manifests that programs write as events: `EventSource` of .NET describes its events so, in XML of the kind that Windows' own manifests
//! have, in parts that fit an event.
//!
//! A part is a head of 8 bytes (`ManifestEnvelope`: format 1, two bytes of version, `0x5b`, number of parts and place of this one, u16
//! each) and UTF-8 text. Events of number `0xfffe` and opcode `0xfe` have them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use collector_common::event::{ByteOrder, EventFieldRef, EventFormat, Extent, Guid, PointerWidth};
use collector_common::ids::Tid;
use roxmltree::{Document, Node, ParsingOptions};

use super::error::{DescriptionError, DescriptionProblem};
use super::types::{Repeat, Shown, add, element, sized};
use crate::record::EtwRecord;

/// The number of events that have parts of a manifest.
pub(super) const ID: u16 = 0xfffe;
/// Their opcode.
const OPCODE: u8 = 0xfe;
/// The only format that there is.
const SIMPLE_XML: u8 = 1;
/// What tells a head from other bytes.
const MAGIC: u8 = 0x5b;
/// Bytes of a manifest: `EventSource` gives up beyond some hundred parts.
const MOST_BYTES: usize = 8 << 20;
/// Manifests that come in parts at once.
const MOST_AT_ONCE: usize = 64;
/// Elements of a manifest.
const MOST_NODES: u32 = 1 << 18;
/// Attributes of an element: a reader compares each with each.
const MOST_ATTRIBUTES: usize = 256;
/// Bytes of a provider's name that are kept: each of its events has it.
const LONGEST_NAME: usize = 4 << 10;
/// Namespaces of a manifest: a reader keeps all of them for each element in them.
const MOST_NAMESPACES: usize = 16;

/// Parts of manifests that are not whole yet.
#[derive(Debug, Default)]
pub(super) struct Parts {
    of: HashMap<(Guid, Option<Tid>), (u16, Vec<u8>)>,
}

impl Parts {
    /// Takes an event. Out: a manifest that is whole with it. What does not follow the part before it begins anew or is left out: the program
    /// writes its manifest again when it is asked to.
    pub(super) fn take(&mut self, record: &EtwRecord<'_>) -> Option<Vec<u8>> {
        if record.descriptor.id != ID || record.descriptor.opcode != OPCODE {
            return None;
        }
        let ([SIMPLE_XML, _, _, MAGIC, rest @ ..], text) = record.payload.split_first_chunk::<8>()? else {
            return None;
        };
        let [total, part] = [[rest[0], rest[1]], [rest[2], rest[3]]].map(u16::from_le_bytes);
        let key = (record.provider, record.tid);
        let (next, mut whole) = match part {
            0 => (0, Vec::new()),
            _ => self.of.remove(&key)?,
        };
        if next != part || part >= total || whole.len() + text.len() > MOST_BYTES {
            return None;
        }
        whole.extend_from_slice(text);
        if part + 1 == total {
            self.of.remove(&key);
            return Some(whole);
        }
        if self.of.len() < MOST_AT_ONCE {
            self.of.insert(key, (part + 1, whole));
        }
        None
    }
}

/// An event of a manifest.
#[derive(Debug)]
pub(super) struct ManifestEvent {
    pub(super) id: u16,
    pub(super) version: u8,
    /// Task and opcode, as PerfView prints them.
    pub(super) name: Box<str>,
    /// Events of one template have one format.
    pub(super) format: Arc<EventFormat>,
}

/// A manifest. Which provider it is of its event says.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) name: Box<str>,
    pub(super) events: Vec<ManifestEvent>,
}

impl Manifest {
    /// Reads a manifest. Events whose fields can't be understood are left out.
    ///
    /// # Errors
    /// When it is no XML, or tells of no provider.
    pub(super) fn parse(text: &[u8], width: PointerWidth) -> Result<Self, DescriptionError> {
        let error = |what, position| DescriptionError { what, position, problem: DescriptionProblem::Xml };
        let text = str::from_utf8(text).map_err(|utf8| error("a manifest's text", utf8.valid_up_to()))?;
        let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
        let text = text.trim_start_matches('\u{feff}').trim_end_matches('\0');
        if !is_bounded(text) {
            return Err(error("a manifest", 0));
        }
        let document = Document::parse_with_options(text, options).map_err(|_| error("a manifest", 0))?;
        let provider = child_of(document.root(), "provider").ok_or_else(|| error("a provider", 0))?;
        let names = Names::of(provider);
        let formats: HashMap<&str, Option<Arc<EventFormat>>> = children(provider, "templates")
            .flat_map(|templates| children(templates, "template"))
            .filter_map(|template| {
                Some((template.attribute("tid")?, format_of(template, width).map(Arc::new)))
            })
            .collect();
        let none = Arc::new(EventFormat::new(ByteOrder::Little));
        let events = children(provider, "events").flat_map(|events| children(events, "event"));
        let events = events.filter_map(|event| {
            let number = |name| event.attribute(name).and_then(number);
            let id = u16::try_from(number("value")?).ok()?;
            let version = u8::try_from(number("version").unwrap_or(0)).ok()?;
            let format = event.attribute("template").and_then(|template| formats.get(template));
            let format = Arc::clone(format.map_or(Some(&none), Option::as_ref)?);
            Some(ManifestEvent { id, version, name: names.name(event, id), format })
        });
        let name = provider.attribute("name");
        let name = name.ok_or_else(|| error("a provider's name", provider.range().start))?;
        let name = name[..name.floor_char_boundary(LONGEST_NAME)].into();
        Ok(Self { name, events: events.collect() })
    }
}

/// Whether reading it takes time and memory in proportion to its length.
fn is_bounded(text: &str) -> bool {
    let attributes = |tag: &str| tag.bytes().filter(|byte| *byte == b'=').count();
    text.split('<').all(|tag| attributes(tag) <= MOST_ATTRIBUTES)
        && text.matches("xmlns").count() <= MOST_NAMESPACES
}

/// Names of opcodes that all providers have (`winmeta.xml`), as PerfView prints them.
const OPCODES: [(&str, &str); 10] = [
    ("win:Start", "Start"),
    ("win:Stop", "Stop"),
    ("win:DC_Start", "DCStart"),
    ("win:DC_Stop", "DCStop"),
    ("win:Extension", "Extension"),
    ("win:Reply", "Reply"),
    ("win:Resume", "Resume"),
    ("win:Suspend", "Suspend"),
    ("win:Send", "Send"),
    ("win:Receive", "Receive"),
];

/// Which names are of tasks and opcodes of the provider.
struct Names<'x> {
    opcodes: HashSet<&'x str>,
}

impl<'x> Names<'x> {
    fn of(provider: Node<'x, '_>) -> Self {
        // Opcodes may be those of a task.
        let opcodes = provider.descendants().filter(|node| node.has_tag_name_of("opcode"));
        Self { opcodes: opcodes.filter_map(|opcode| opcode.attribute("name")).collect() }
    }

    /// Task and opcode of an event; without a task its symbol.
    fn name(&self, event: Node<'_, '_>, id: u16) -> Box<str> {
        let task = event.attribute("task").or_else(|| event.attribute("symbol"));
        let task = task.map_or_else(|| format!("EventID({id})"), str::to_owned);
        let opcode = event.attribute("opcode").and_then(|opcode| {
            let known = OPCODES.iter().find(|(own, _)| *own == opcode).map(|(_, shown)| *shown);
            known.or_else(|| self.opcodes.get(opcode).copied())
        });
        match opcode {
            Some(opcode) => format!("{task}/{opcode}").into(),
            None => task.into(),
        }
    }
}

/// Whether a node is an element of this name, in any namespace.
trait HasTagName {
    fn has_tag_name_of(&self, name: &str) -> bool;
}

impl HasTagName for Node<'_, '_> {
    fn has_tag_name_of(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}

fn children<'a, 'x>(node: Node<'a, 'x>, name: &'static str) -> impl Iterator<Item = Node<'a, 'x>> {
    node.children().filter(move |child| child.has_tag_name_of(name))
}

fn child_of<'a, 'x>(node: Node<'a, 'x>, name: &str) -> Option<Node<'a, 'x>> {
    node.descendants().find(|child| child.has_tag_name_of(name))
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Names of types as manifests have them, by their numbers from 1 on.
const INPUTS: [&str; 21] = [
    "win:UnicodeString",
    "win:AnsiString",
    "win:Int8",
    "win:UInt8",
    "win:Int16",
    "win:UInt16",
    "win:Int32",
    "win:UInt32",
    "win:Int64",
    "win:UInt64",
    "win:Float",
    "win:Double",
    "win:Boolean",
    "win:Binary",
    "win:GUID",
    "win:Pointer",
    "win:FILETIME",
    "win:SYSTEMTIME",
    "win:SID",
    "win:HexInt32",
    "win:HexInt64",
];

/// The format of a template; none where a field of it can't be understood.
fn format_of(template: Node<'_, '_>, width: PointerWidth) -> Option<EventFormat> {
    let mut format = EventFormat::new(ByteOrder::Little);
    // Of fields of one name the first counts.
    let mut fields: HashMap<&str, EventFieldRef> = HashMap::new();
    for field in template.children().filter(Node::is_element) {
        if !field.has_tag_name_of("data") {
            return None;
        }
        let name = field.attribute("name")?;
        let input = field.attribute("inType")?;
        let input = 1 + INPUTS.iter().position(|own| *own == input)? as u16;
        let shown = match field.attribute("outType") {
            Some("xs:string") => Shown::Text,
            Some("xs:boolean") => Shown::Truth,
            Some("win:Port") => Shown::Port,
            Some("win:IPv4") => Shown::Ipv4,
            Some("win:IPv6") => Shown::Ipv6,
            _ => Shown::AsIs,
        };
        // A number, or the field that has it.
        let measure = |attribute: &str| -> Option<Option<Measure>> {
            let Some(value) = field.attribute(attribute) else { return Some(None) };
            match number(value) {
                Some(number) => u16::try_from(number).ok().map(|number| Some(Measure::Fixed(number))),
                None => fields.get(value).map(|field| Some(Measure::Of(*field))),
            }
        };
        let length = measure("length")?;
        let repeat = match measure("count")? {
            None => Repeat::One,
            Some(Measure::Fixed(count)) => Repeat::Fixed(count),
            Some(Measure::Of(counter)) => Repeat::Of(counter),
        };
        let extent = length.map(|length| match length {
            Measure::Fixed(length) => Extent::Array(length.into()),
            Measure::Of(counter) => Extent::CountOf(counter),
        });
        let own = extent.and_then(|extent| sized(input, shown, extent));
        let own = own.or_else(|| element(input, shown, width))?;
        let own = add(&mut format, name, own, repeat).ok()?;
        fields.entry(name).or_insert(own);
    }
    Some(format)
}

#[derive(Clone, Copy)]
enum Measure {
    Fixed(u16),
    Of(EventFieldRef),
}
