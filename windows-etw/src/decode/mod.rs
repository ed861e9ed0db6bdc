//! What events mean, from bytes alone: payloads decoded, formats for filters and closures ([`specs`]), names.
//!
//! - [`kernel`]: classic events, of the kernel and of heaps.
//! - [`clr`]: events of the .NET runtime.
//! - [`windows`]: events of processes by manifest.
//! - [`described`]: events that come with what their payload means.
//! - [`state`]: what several events tell together.

pub mod clr;
mod cursor;
pub mod described;
mod error;
pub mod kernel;
mod registry;
pub mod state;
mod table;
#[cfg(test)]
mod tests;
pub mod windows;
mod wire;

pub use cursor::Layout;
pub use error::{DecodeError, Problem};
pub use registry::{spec_of, specs};
pub use table::{EventKey, EventSpec, FieldSpec};
pub use wire::{Addresses, Bool32, Fixed, Last, Pointer, Port, ProcessNumber};
