//! Sessions of ETW on this machine: a [`Plan`](crate::plan::Plan) is carried out, and its records are handed over as they come.
//!
//! [`Sessions::start`] opens what a plan needs: a system logger that providers write into, too, and a session for heaps where the
//! plan has one. Each has a thread that gives [`Live`] events to a [`Sink`], which may hand their records to closures ([`Dispatch`](crate::dispatch::Dispatch)). [`Sessions::stop`] returns when the last event has been
//! given. No session is left behind: a `Sessions` that is dropped stops them, as does Ctrl-C ([`console`]), and those
//! of a process that was killed are stopped by name when the next one starts.
//!
//! Errors tell an administrator's right that is missing apart from the rest ([`SessionError::NotAdministrator`]).

mod claim;
pub mod console;
mod error;
mod intervals;
mod kernel_logger;
mod losses;
mod restored;
mod running;
mod settings;
mod start;
mod sys;
mod unanswered;

pub use error::{SessionError, Win32Error};
pub use losses::Losses;
pub use restored::Restored;
pub use settings::{Settings, Target};
pub use start::{Sessions, Stopped, kernel_logger_file, stop_abandoned, stop_kernel_logger, try_interval};
pub use sys::{
    Clock, Live, MakeSink, OtherProcess, OwnUsage, Sink, Suspended, alive, description, drives, own_usage,
    providers,
};
pub use unanswered::{Asked, Unanswered};
