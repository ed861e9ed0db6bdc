//! Why an event of this program's own can't be had, or an occurrence of it not be written.

use std::io;
use std::path::PathBuf;

use collector_common::event::Extent;
use thiserror::Error;

use super::declaration::{LONGEST_ARRAY, LONGEST_DECLARATION};
use super::payload::LONGEST_PAYLOAD;
use crate::tracefs::TracefsError;

/// Why an event can't be declared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeclarationError {
    /// A name is no word.
    #[error(
        "event {event}: `{name}` is no name for it or a field: take letters, digits and underscores, and no digit first"
    )]
    Name {
        /// The event.
        event: String,
        /// The name.
        name: String,
    },
    /// Two fields have one name.
    #[error("event {event}: two fields are called {field}: give each a name of its own")]
    Twice {
        /// The event.
        event: String,
        /// The name.
        field: String,
    },
    /// The kernel has no such type.
    #[error(
        "event {event}: the kernel has no type for field {field}, {kind} with the extent {extent:?}: it has single integers, and text \
         and bytes, of 1 to {LONGEST_ARRAY} in place or of any length by `RelLoc`"
    )]
    Kind {
        /// The event.
        event: String,
        /// The field.
        field: String,
        /// What an element is.
        kind: &'static str,
        /// How many there are, and where.
        extent: Extent,
    },
    /// All names and types together.
    #[error(
        "event {event}: its declaration takes {len} bytes, and the kernel takes {LONGEST_DECLARATION}: shorten the names, or leave out fields"
    )]
    TooLong {
        /// The event.
        event: String,
        /// Bytes.
        len: usize,
    },
}

/// Why an event can't be registered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UserEventError {
    /// It can't be declared.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
    /// The kernel has no such events.
    #[error(
        "this kernel lets no program register events of its own: it was built without CONFIG_USER_EVENTS, which is there since Linux \
         6.4; boot one that has it"
    )]
    NotInKernel,
    /// Tracefs can't be reached.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// The rights are missing.
    #[error(
        "{} is root's to write to: run this program with sudo, or let others reach it, as by `sudo chmod o+x {}` and `sudo chmod o+w {0}`",
        path.display(),
        path.parent().unwrap_or(path).display()
    )]
    NotPermitted {
        /// The file.
        path: PathBuf,
    },
    /// The file can't be opened.
    #[error("{} can't be opened: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The thread that registers can't be started, or is another process's.
    #[error(
        "no event can be registered: this process has no thread for it ({source}); where it was forked, it needs `UserEvents` of its own"
    )]
    Thread {
        /// The system's reason.
        source: io::Error,
    },
    /// There is one of the name, of another program or of an earlier version of this one.
    #[error(
        "event {event} is registered already, with other fields: give this one another name, or end the program that has it; \
         `sudo cat /sys/kernel/tracing/dynamic_events` lists them with their fields"
    )]
    OtherFields {
        /// The event.
        event: String,
    },
    /// The machine has as many as it may (`kernel.user_events_max`).
    #[error(
        "event {event}: the machine has as many events of programs as it may: raise kernel.user_events_max with sysctl"
    )]
    TooMany {
        /// The event.
        event: String,
    },
    /// The kernel refuses for a reason of its own.
    #[error("event {event}: the kernel does not register it as `{declaration}`: {source}")]
    Refused {
        /// The event.
        event: String,
        /// In the kernel's words.
        declaration: String,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// Why an occurrence was not written. Nobody has it then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// There are not as many values as fields.
    #[error(
        "event {event} has {fields} fields, and {given} values were given: give one for each, in their order"
    )]
    Count {
        /// The event.
        event: String,
        /// How many it has.
        fields: usize,
        /// How many values there were.
        given: usize,
    },
    /// A value is not of its field's kind, or too large for it.
    #[error("event {event}, field {field}: {problem}")]
    Value {
        /// The event.
        event: String,
        /// The field.
        field: String,
        /// What is wrong, and what to give.
        problem: ValueProblem,
    },
    /// All values together.
    #[error(
        "event {event}: its values take {len} bytes, and the kernel takes {LONGEST_PAYLOAD}: shorten its text"
    )]
    TooLong {
        /// The event.
        event: String,
        /// Bytes.
        len: usize,
    },
    /// The kernel refuses it.
    #[error("event {event}: the kernel does not take it: {source}")]
    System {
        /// The event.
        event: String,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ValueProblem {
    /// It is of another kind.
    #[error("it takes {0}")]
    Kind(&'static str),
    /// The integer is out of the field's range.
    #[error("the number is out of its range: declare a wider one")]
    Range,
    /// The text or bytes are longer than the array.
    #[error("{len} bytes have no room in its {room}: declare more, or `RelLoc`")]
    Room {
        /// Bytes given.
        len: usize,
        /// Bytes declared.
        room: u32,
    },
    /// A reader would end the text there.
    #[error("a NUL is within its text, at which readers end it: declare bytes")]
    Nul,
}
