//! A JFR file in, its events out: by name, with their fields by name, whoever wrote it.
//!
//! A file is chunks, each of which has its own clock, tells its own types, and has the constants that its events refer to. What a field
//! is, and what it means, is what the chunk says ([`Type`], [`Field::annotation`]); nothing here knows what an event is about.
//!
//! The bytes may be hostile: no size is trusted before the bytes are there, values are no deeper than a bound, constants that refer to
//! each other in a circle are followed only as far as the caller does. Errors name the place in the file.
//!
//! ```no_run
//! use export::import::jfr::events::Chunks;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! for chunk in Chunks::of(std::fs::File::open("profile.jfr")?) {
//!     let chunk = chunk?;
//!     for event in chunk.events().filter(|event| event.name() == "profiler.Malloc") {
//!         let thread = event.get("eventThread").get("osName");
//!         let (time, size) = (chunk.clock().unix(event.ticks()), event.get("size").unsigned());
//!         println!("{time} {:?} {size:?}", thread.text());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - `chunk`: a chunk and its events; `cursor`: the smallest parts.
//! - `metadata`: what is told of types; `types`: what that means.
//! - `value`: values of fields.

mod chunk;
mod cursor;
mod metadata;
mod types;
mod value;

use std::io::{self, Read};

use collector_common::remedy;

pub use chunk::{Chunk, Clock, Event};
pub use types::{Field, Type};
pub use value::{Constant, List, Struct, Value};

/// What a file begins with.
pub const MAGIC: &[u8] = b"FLR\0";

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Reading failed.
    #[error("reading the recording failed behind byte {position}: {source}")]
    Read {
        /// Where the chunk begins.
        position: u64,
        /// Why.
        source: io::Error,
    },
    /// It is of a version that is not read.
    #[error("JFR of version {major}.{minor} is not read, only 1 and 2")]
    Version {
        /// Its first part.
        major: u16,
        /// Its second part.
        minor: u16,
    },
    /// It has more of something than is read.
    #[error("the recording is too large: {what} at byte {position}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// Where.
        position: u64,
    },
    /// It ends within a chunk, or within a chunk's end: it was cut, or whoever wrote it was killed. Chunks before that are whole.
    #[error("the recording is cut short: {what} at byte {position}{}", too_early(*missing))]
    Cut {
        /// What there is.
        what: &'static str,
        /// Where.
        position: u64,
        /// Bytes that it lacks; 0 where that is not known.
        missing: u64,
    },
    /// It is not a recording, or it is damaged.
    #[error("not a JFR file, or a damaged one: {what} at byte {position}")]
    Malformed {
        /// What there is.
        what: &'static str,
        /// Where.
        position: u64,
    },
}

impl ReadError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Read { source, .. } => remedy::of_reading(source),
            Self::Version { major: 0, .. } => {
                "record it again with OpenJDK 8u262, 11 or newer, which write version 2"
            }
            Self::Version { .. } => remedy::NEWER,
            Self::TooLarge { .. } => remedy::TOO_LARGE,
            Self::Cut { what: chunk::NOT_ENDED, .. } => {
                "write the recording with `jcmd PID JFR.dump filename=FILE`, or end it, before it is read"
            }
            Self::Cut { .. } => remedy::CUT,
            Self::Malformed { .. } => remedy::DAMAGED,
        }
    }
}

fn too_early(missing: u64) -> String {
    if missing == 0 { String::new() } else { format!(", {missing} bytes too early") }
}

/// A file's chunks, one at a time. It ends behind the first that can't be read.
#[derive(Debug)]
pub struct Chunks<R> {
    input: Option<R>,
    position: u64,
    /// Whether the chunk before was not ended.
    is_open: bool,
}

impl<R: Read> Chunks<R> {
    /// Those of a file. A chunk is read at once.
    pub const fn of(input: R) -> Self {
        Self { input: Some(input), position: 0, is_open: false }
    }
}

impl<R: Read> Iterator for Chunks<R> {
    type Item = Result<Chunk, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match Chunk::read(self.input.as_mut()?, self.position, self.is_open) {
            Ok(Some(chunk)) => {
                self.position += chunk.len() as u64;
                self.is_open = chunk.is_open();
                Some(Ok(chunk))
            }
            Ok(None) if self.position > 0 => None,
            Ok(None) => {
                self.input = None;
                Some(Err(ReadError::Malformed { what: "nothing", position: 0 }))
            }
            Err(error) => {
                self.input = None;
                Some(Err(error))
            }
        }
    }
}
