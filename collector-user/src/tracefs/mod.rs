//! Tracepoints: which there are, and how their data are laid out. Source of the formats: `Documentation/trace/events.rst`.
//!
//! - [`Tracefs`] is the file system, where it is mounted or by itself.
//! - [`Tracefs::event`] makes an [`Event`](collector_common::event::Event) of a tracepoint, ready for closures.

#[cfg(target_os = "linux")]
mod directory;
#[cfg(target_os = "linux")]
mod error;
mod format;
mod types;

#[cfg(target_os = "linux")]
pub use directory::Tracefs;
#[cfg(target_os = "linux")]
pub use error::TracefsError;
pub(crate) use format::parse_format_of;
pub use format::{FormatProblem, parse_format};
