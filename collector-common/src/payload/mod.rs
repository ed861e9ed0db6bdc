//! Payloads whose layouts are known beforehand, as the event does not bring them along: those of manifests and of the kernel's classes.
//!
//! A layout is written down once, as a list of fields with the versions that have them ([`layout!`](crate::layout)); from it come the type that a
//! payload is decoded into, and its [`EventFormat`](crate::event::EventFormat). A table ([`events!`](crate::events)) says which event has which.
//!
//! - [`clr`]: events of .NET's runtime, which come by ETW and by `EventPipe` with the same bytes.

pub mod clr;
mod cursor;
mod encoded;
mod error;
mod opaque;
mod table;
mod wire;

pub use cursor::{Cursor, Layout};
pub use encoded::{Encoded, PointerSize};
pub use error::{DecodeError, Problem};
pub use opaque::Opaque;
pub use table::{EventKey, EventSpec, FieldSpec, Payload, field, guid, payload};
pub use wire::{Addresses, Bool32, Fixed, Last, Pointer, Port, ProcessNumber, Wire, width_of};
