//! Events of any source: what their payload means, and who gets it.
//!
//! A source (tracefs, uprobes, `user_events`, ETW, `EventPipe`) makes an [`Event`] with an [`EventFormat`] of the fields
//! that its metadata declare, and calls [`Event::process`] for each occurrence. Someone who wants to know resolves an
//! [`EventFieldRef`] once, adds a closure, and gets [`EventData`] whose getters check kinds and bounds.
//!
//! ```
//! use collector_common::event::{
//!     Event, EventErrors, EventField, EventId, Extent, FieldKind, Place, Width, filter,
//! };
//!
//! let mut event = Event::new(EventId(1), "sched:sched_wakeup");
//! let pid = FieldKind::Signed(Width::W32);
//! let pid = event.format_mut().add_field(EventField::new("pid", "pid_t", pid, Extent::One, Place::At(8)))?;
//! event.set_filter(Some(&filter::parse("pid > 0")?))?;
//! event.add_closure(move |data| {
//!     assert_eq!(data.try_get_i32(pid)?, 7);
//!     Ok(())
//! });
//! let mut record = [0; 12];
//! record[8..].copy_from_slice(&7_i32.to_ne_bytes());
//! let mut errors = EventErrors::new();
//! event.process(&record, &record, &mut errors);
//! assert!(errors.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `cargo xtask bench one_collect` hands an event of three unsigned chars to a closure that reads and checks them, in turns with
//! `one_collect`: 3.8 to 4.3 ns, where that takes 6.6 to 9.5 ns. Half of ours is building the [`EventData`] and the call.

mod context;
mod data;
mod decode;
mod dispatch;
mod error;
mod errors;
mod field;
pub mod filter;
mod format;
mod kind;
mod locate;
mod proxy;
mod sid;
pub mod spec;
mod value;
mod write;

pub use crate::byte_order::ByteOrder;
pub use context::Context;
pub use data::{EventData, Values};
pub use dispatch::{Event, EventFlags, EventId};
pub use error::{FieldError, FieldProblem, FormatError};
pub use errors::EventErrors;
pub use field::{EventField, EventFieldRef, KernelStorage};
pub use filter::near;
pub use format::{EventFormat, MOST_DEPTH, MOST_FIELDS, MOST_FLOATING_COUNTS};
pub use kind::{Extent, FieldKind, FloatWidth, KindName, Place, PointerWidth, Width};
pub use sid::Sid;
pub use value::{Elements, FileTime, Guid, NotAGuid, Text, Utf16Text, Value};
pub use write::{Json, PlainText};
