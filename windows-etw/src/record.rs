//! An event as ETW tells it, before its payload is understood. The live callback, the reader of `.etl` files and tests
//! make it; decoders take nothing else.

use collector_common::event::Guid;
use collector_common::ids::{Pid, Tid};
use collector_common::payload::Encoded;
pub use collector_common::payload::PointerSize;

/// What kind of event it is (`EVENT_DESCRIPTOR`). Classic events have a version, a level and an opcode alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Number of the event within its provider.
    pub id: u16,
    /// Version of its payload.
    pub version: u8,
    /// The channel, for Windows' event log.
    pub channel: u8,
    /// Severity: 1 critical to 5 verbose; 0 is always told.
    pub level: u8,
    /// What happens in the task: 1 start, 2 stop, others are the provider's.
    pub opcode: u8,
    /// The task.
    pub task: u16,
    /// Categories of the provider, a bit each.
    pub keyword: u64,
}

/// How the payload is described (`EVENT_HEADER_FLAG_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// By its class and opcode (`EVENT_HEADER_FLAG_CLASSIC_HEADER`): events of the kernel, and of MOF providers.
    Classic,
    /// By a manifest of the provider.
    Manifest,
    /// By the event itself: [`Extended::self_description`].
    SelfDescribing,
    /// The payload is UTF-16 text (`EVENT_HEADER_FLAG_STRING_ONLY`).
    Text,
    /// By the program's debug information alone: messages of WPP (`EVENT_HEADER_FLAG_TRACE_MESSAGE`). The provider is the
    /// message's GUID, the id its number.
    Message,
}

/// Return addresses that ETW has taken with the event itself, innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackItem<'a> {
    /// Where it is not 0: another event with the same number has the rest of the stack.
    pub match_id: u64,
    /// Width of an address.
    pub width: PointerSize,
    /// The addresses, little-endian.
    pub addresses: &'a [u8],
}

/// In place of return addresses: another event with this key has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackKey {
    /// As [`StackItem::match_id`].
    pub match_id: u64,
    /// The key.
    pub key: u64,
}

/// Which of several like it an event is of (`EVENT_EXTENDED_ITEM_INSTANCE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its number.
    pub id: u32,
    /// The number of what it belongs to.
    pub parent_id: u32,
    /// The class of what it belongs to.
    pub parent: Guid,
}

/// What goes with an event besides its payload (`EVENT_HEADER_EXTENDED_DATA_ITEM`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extended<'a> {
    /// The activity that led to this one.
    pub related_activity: Option<Guid>,
    /// The user's security identifier.
    pub sid: Option<&'a [u8]>,
    /// The session of a terminal server.
    pub terminal_session: Option<u32>,
    /// Return addresses.
    pub stack: Option<StackItem<'a>>,
    /// `TraceLogging`'s description of the payload (`EVENT_HEADER_EXT_TYPE_EVENT_SCHEMA_TL`).
    pub self_description: Option<&'a [u8]>,
    /// `TraceLogging`'s description of the provider (`EVENT_HEADER_EXT_TYPE_PROV_TRAITS`).
    pub provider_traits: Option<&'a [u8]>,
    /// Number of the process that no other since boot has (`EVENT_HEADER_EXT_TYPE_PROCESS_START_KEY`).
    pub process_start_key: Option<u64>,
    /// Where the return addresses are, if they are elsewhere (`EVENT_HEADER_EXT_TYPE_STACK_KEY32` and `64`).
    pub stack_key: Option<StackKey>,
    /// Which of several it is of.
    pub instance: Option<Instance>,
    /// What the CPU's counters stood at (`EVENT_HEADER_EXT_TYPE_PMC_COUNTERS`): u64 each, little-endian.
    pub counters: Option<&'a [u8]>,
    /// Number of the event (`EVENT_HEADER_EXT_TYPE_EVENT_KEY`).
    pub event_key: Option<u64>,
    /// The container that it happened in (`EVENT_HEADER_EXT_TYPE_CONTAINER_ID`), as it was written.
    pub container: Option<&'a [u8]>,
    /// Of files: events of the kernel may have been lost on its CPU just before it. It is the first of a buffer with such events that says so, or is
    /// behind one that does and has none.
    pub is_after_loss: bool,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtwRecord<'a> {
    /// The provider; the class of classic events, for instance `ce1dbfb4-…` of `PerfInfo`.
    pub provider: Guid,
    /// Which of its events.
    pub descriptor: Descriptor,
    /// How the payload is described.
    pub schema: Schema,
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// Process that it happened in; the kernel does not tell it for some of its own.
    pub pid: Option<Pid>,
    /// Thread that it happened in.
    pub tid: Option<Tid>,
    /// CPU that it happened on.
    pub cpu: u16,
    /// When, in ticks of the trace's clock.
    pub ticks: i64,
    /// The activity that it is part of; zero where there is none.
    pub activity: Guid,
    /// What goes with it.
    pub extended: Extended<'a>,
    /// Its own bytes.
    pub payload: &'a [u8],
}

impl<'a> From<&EtwRecord<'a>> for Encoded<'a> {
    fn from(record: &EtwRecord<'a>) -> Self {
        let &EtwRecord { provider, descriptor, pointer_size, payload: bytes, .. } = record;
        Self {
            provider,
            id: descriptor.id,
            opcode: descriptor.opcode,
            version: descriptor.version,
            pointer_size,
            bytes,
        }
    }
}
