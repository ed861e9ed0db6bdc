//! What events mean, from bytes alone: payloads decoded, formats for filters and closures ([`specs`]), names.
//!
//! - [`kernel`]: classic events, of the kernel and of heaps.
//! - [`clr`]: events of the .NET runtime.
//! - [`windows`]: events of processes by manifest.
//! - [`described`]: events that come with what their payload means.
//! - [`state`]: what several events tell together.

pub mod described;
pub mod kernel;
mod registry;
pub mod state;
#[cfg(test)]
mod tests;
pub mod windows;

pub use collector_common::payload::{
    Addresses, Bool32, DecodeError, EventKey, EventSpec, FieldSpec, Fixed, Last, Layout, Pointer, Port,
    Problem, ProcessNumber, clr,
};
pub use registry::{spec_of, specs};
