//! Tracepoints of this program's own, which the kernel has for as long as they are registered: `user_events:NAME`. Source:
//! `Documentation/trace/user_events.rst`.
//!
//! A [`Declaration`] has a name and fields, of which the kernel's own text is made. [`UserEvents::register`] makes a [`UserEvent`] of
//! it: while nobody records it, it costs a load; to who does, be it this library, `perf` or tracefs, [`UserEvent::write`] hands each
//! occurrence by one system call.
//!
//! ```no_run
//! use collector_common::event::{Extent, FieldKind, Width};
//! use collector_user::user_events::{Declaration, UserEvents};
//!
//! let declared = Declaration::new("request_done")
//!     .field("bytes", FieldKind::Unsigned(Width::W64), Extent::One)
//!     .field("path", FieldKind::Char, Extent::RelLoc);
//! let events = UserEvents::open()?;
//! let done = events.register(&declared)?;
//! if done.is_enabled() {
//!     done.write(&[4096_u64.into(), "/index.html".into()])?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Minimum kernel: 6.4, built with `CONFIG_USER_EVENTS`, which few are. Rights: those of writing to `user_events_data` in tracefs,
//! root's unless somebody gave them to others.

mod declaration;
mod error;
mod keeper;
mod payload;
mod registered;

pub use declaration::{Declaration, LONGEST_ARRAY, LONGEST_DECLARATION};
pub use error::{DeclarationError, UserEventError, ValueProblem, WriteError};
pub use payload::{FieldValue, LONGEST_PAYLOAD};
pub use registered::{UserEvent, UserEvents};
