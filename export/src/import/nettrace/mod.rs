//! A trace in, a machine out. Each event with a stack becomes a sample of a kind that is called after the event.
//!
//! A trace is read twice. Names of code may stand at its end, as .NET's runtime tells what it has compiled when it is asked to stop;
//! so all that is known of code is collected first (`code`), and events become samples after that (`samples`). What lies at an address is
//! what was mapped there last by the time of the event; of methods of .NET, which are told of at any time, what is told last counts.
//!
//! - `universal`: what events of `Universal.System` say; `runtime`: what those of .NET's runtime do.
//! - `lives`: processes, as ids of them are used again; `programs`: what they run; `files`: what is known of files.
//! - `ranges`: what lies where; `by_time`: the same where that changed; `methods`: where .NET's code lies.
//! - `event_kinds`: what is kept of types of events.

mod by_time;
mod code;
mod event_kinds;
mod files;
mod lives;
mod methods;
mod programs;
mod ranges;
mod runtime;
mod samples;
mod universal;

use std::io::{BufReader, Read, Seek, SeekFrom};

use collector_common::record::ExportMachine;

use super::interface::not_empty;
use super::room::checked;
use super::{Begin, ImportError, ImportFormat, Imported, Input};
use crate::format::nettrace::read;
use code::Code;

/// Reads a trace of version 4 to 6: samples alone.
///
/// # Errors
/// When it can't be read, is not a trace, or its stacks are larger than any.
pub fn import(input: impl Read + Seek) -> Result<Imported, ImportError> {
    import_with_events(input, 0)
}

/// Reads a trace of version 4 to 6, and keeps its events with their fields, in so many bytes of memory. An event for which there is no
/// room is lost, with its sample.
///
/// # Errors
/// When it can't be read, is not a trace, or its stacks are larger than any.
pub fn import_with_events(input: impl Read + Seek, event_bytes: u64) -> Result<Imported, ImportError> {
    import_into(ExportMachine::default(), input, event_bytes)
}

fn import_into(
    machine: ExportMachine,
    mut input: impl Read + Seek,
    event_bytes: u64,
) -> Result<Imported, ImportError> {
    let start = input.stream_position()?;
    let mut code = Code::default();
    read(BufReader::new(&mut input), |_| (), |event| code.take(event))?;
    code.settle();
    input.seek(SeekFrom::Start(start))?;
    samples::read_with(machine, BufReader::new(input), code, event_bytes)
}

/// The reader of traces.
#[derive(Clone, Copy, Debug)]
pub struct Nettrace;

impl ImportFormat for Nettrace {
    fn name(&self) -> &'static str {
        "nettrace"
    }

    fn description(&self) -> &'static str {
        "nettrace"
    }

    fn endings(&self) -> &'static str {
        ".nettrace"
    }

    fn signature(&self) -> &'static [u8] {
        b"Nettrace"
    }

    fn mark(&self) -> &'static str {
        "`Nettrace`"
    }

    fn begins(&self, begin: &Begin<'_>) -> bool {
        begin.bytes.starts_with(self.signature())
    }

    fn import_into(
        &self,
        machine: ExportMachine,
        input: &mut dyn Input,
        event_bytes: u64,
    ) -> Result<Imported, ImportError> {
        not_empty(input)?;
        checked(import_into(machine, input, event_bytes)?)
    }
}
