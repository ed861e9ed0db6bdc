//! A JFR file in, a machine out: of the JDK's flight recorder, of async-profiler, or our own. Each event with a stack becomes a sample,
//! of a kind that is called after the event where it is none that is known.
//!
//! - [`events`]: any file's events with their fields.
//! - `samples`: which of them become what; `roles` by their type; `code`: their stacks; `attributes`: of our own samples.
//! - `facts`: what is told of the recording as a whole; `texts`: names, each kept once.

mod attributes;
mod code;
pub mod events;
mod facts;
mod roles;
mod samples;
mod texts;

use std::io::{BufReader, Read};

use collector_common::record::ExportMachine;

use super::interface::not_empty;
use super::missing_end::tell_missing_end;
use super::room::checked;
use super::{Begin, ImportError, ImportFormat, Imported, Input};
use events::{Chunks, ReadError};
use samples::Samples;

/// Reads a recording; of one that is cut, the chunks before that.
///
/// # Errors
/// When it can't be read, is not one, has no chunk that is whole, or has a deeper stack than any.
pub fn import(input: impl Read) -> Result<Imported, ImportError> {
    import_into(ExportMachine::default(), input)
}

fn import_into(machine: ExportMachine, input: impl Read) -> Result<Imported, ImportError> {
    let mut samples = Samples::of(machine);
    let (mut events, mut chunks, mut missing) = (0, 0, None);
    for chunk in Chunks::of(input) {
        let chunk = match chunk {
            Err(ReadError::Cut { what, position, .. }) if chunks > 0 => {
                missing = Some(format!("{what} at byte {position}"));
                break;
            }
            chunk => chunk?,
        };
        events += chunk.events().count() as u64;
        chunks += 1;
        samples.take(&chunk)?;
    }
    let mut imported = samples.finish(events);
    if let Some(place) = missing {
        tell_missing_end(&mut imported, &place);
    }
    Ok(imported)
}

/// The reader of JFR files.
#[derive(Clone, Copy, Debug)]
pub struct Jfr;

impl ImportFormat for Jfr {
    fn name(&self) -> &'static str {
        "jfr"
    }

    fn description(&self) -> &'static str {
        "JFR"
    }

    fn endings(&self) -> &'static str {
        ".jfr"
    }

    fn signature(&self) -> &'static [u8] {
        events::MAGIC
    }

    fn mark(&self) -> &'static str {
        "`FLR` and a zero"
    }

    fn begins(&self, begin: &Begin<'_>) -> bool {
        begin.bytes.starts_with(self.signature())
    }

    fn import_into(
        &self,
        machine: ExportMachine,
        input: &mut dyn Input,
        _: u64,
    ) -> Result<Imported, ImportError> {
        not_empty(input)?;
        checked(import_into(machine, BufReader::new(input))?)
    }
}
