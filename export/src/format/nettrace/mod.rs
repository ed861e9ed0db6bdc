//! nettrace, version 6: the traces that `PerfView` and the libraries behind it read.
//!
//! Source of the format: `NetTraceFormat.md` and `UniversalProviders.md` of microsoft/perfview, and what its reader demands.
//!
//! - `write`: the format; `blocks` are what a file is made of, `wire` their smallest parts.
//! - `types`: the types of events, and the trace's own description.
//! - `event_types`: types of raw events; `event_fields`: their fields; `known_types`: those that are told by number alone.
//! - `descriptions`: what is known of files.
//! - `places`: where code lies in which process, and when; `homeless`: where it is put if nobody tells.
//! - `stream`: events with their stacks and labels on their way into blocks; `names`: what frames are called.
//! - [`read()`]: a reader for any writer's traces.

mod blocks;
mod descriptions;
mod event_fields;
mod event_types;
mod homeless;
mod known_types;
mod labels;
mod names;
mod places;
mod read;
mod stream;
mod types;
mod wire;
mod write;

pub(crate) use known_types::{KnownType, SAMPLER};
pub use read::{Event, EventType, Label, LabelValue, ReadError, Summary, Thread, Trace, Value, read};
pub(crate) use types::{
    CUT_STACKS, NAME, NO_SAMPLES, PERIOD_OF, SAMPLES, SHOWN_KIND, UNIT_OF, UNKNOWN_LOSSES, UNKNOWN_TIME,
};
pub use write::Nettrace;
