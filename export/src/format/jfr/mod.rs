//! JFR, version 2: the recordings that the JDK's `jfr`, JDK Mission Control and async-profiler's converters read.
//!
//! Source of the format: what the JDK's own reader (`jdk.jfr.consumer`) and async-profiler's (`one.jfr.JfrReader`) demand. Of a type
//! that these know, the fields are theirs and in their order; what we add stands behind.
//!
//! - `write`: the format; `facts`: events of the recording itself.
//! - `kinds`: which type of events each kind of sample becomes; `numbers`: attributes that are fields of these; `types`: all types, and `metadata` the event that tells them.
//! - `code`: functions as methods of classes; `constants`: what events refer to, by chunk.
//! - `chunk`: events on their way into chunks; `wire`: their smallest parts.
//!
//! [`crate::import::jfr`] reads such files, whoever wrote them.

mod chunk;
mod code;
mod constants;
mod facts;
mod kinds;
mod metadata;
mod numbers;
mod types;
mod wire;
mod write;

pub(crate) use code::{JAVA, NO_DESCRIPTOR};
pub use write::Jfr;
