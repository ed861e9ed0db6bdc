//! Tracepoints: which there are, and how their data are laid out. Source of the formats: `Documentation/trace/events.rst`.
//!
//! - [`Tracefs`] is the file system, where it is mounted or by itself.
//! - [`Tracefs::event`] makes an [`Event`](collector_common::event::Event) of a tracepoint, ready for closures.

mod directory;
mod error;
mod format;
mod types;

pub use directory::Tracefs;
pub use error::TracefsError;
pub(crate) use format::parse_format_of;
pub use format::{FormatProblem, parse_format};
