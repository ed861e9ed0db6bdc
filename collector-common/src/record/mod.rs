//! The universal record layer: what was recorded, the same on every system and from every source.
//!
//! A source fills an [`ExportMachine`] while recording; symbols and formats only read it.

mod chosen;
mod clocks;
mod container;
mod event_kind;
mod event_records;
mod frame;
mod kernel_code;
mod life;
mod machine;
mod module;
mod order;
mod process;
mod program;
mod sample;
mod samples;
mod span;
mod table;

pub use chosen::Renumbered;
pub use clocks::{ClockAnchor, Clocks};
pub use event_kind::{EventFacts, EventKind, EventKindId};
pub use event_records::{EventRecord, EventRecordId, EventRecords};
pub use frame::{Frame, FrameFlags, FrameId, InternedFrames, WITHOUT_ADDRESS};
pub use kernel_code::{KernelCode, RemovedCodes};
pub use life::{Exit, ProcessLife};
pub use machine::{ExportMachine, SystemInfo};
pub use module::{
    DebugLink, ImageHeader, ImageKey, Module, ModuleDetails, ModuleId, ModuleKind, ModuleMapping, Pdb,
    PerfMap, Signature,
};
pub use order::Happened;
pub use process::{Process, ProcessId, Thread, ThreadId};
pub use program::{Program, ProgramId};
pub use sample::{
    AttributeListId, AttributeValue, Attributes, ESTIMATED, Sample, SampleKind, SampleKindId, Unit,
};
pub use samples::{Samples, SpillFile};
pub use span::{Span, SpanId, Timeline, TimelineId, TimelineOwner};
pub use table::{Column, Histogram, Metric, Table};
