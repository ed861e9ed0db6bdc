//! The input is an `.etl` file, of which a recording is made, with its events.

use std::io::Cursor;

use collector_user::etw::Etl;
use export::import::{ImportFormat as _, Imported};

/// Bytes of events that are kept.
const EVENTS: u64 = 1 << 20;

/// Bytes that any file may hold: tables of what is known, and those events, twice until all is read.
const FIXED: u64 = 8 << 20;

/// Bytes for each of the file's: an event of few bytes makes a format of fields.
const PER_BYTE: u64 = 2048;

/// What packed buffers may be unpacked to, at any one time.
const UNPACKED: u64 = 192 << 20;

/// Makes a recording of the input. Out: of how many samples; none where it is no such file.
pub(crate) fn run(input: &[u8]) -> Option<usize> {
    let may_be_packed = input.iter().any(|byte| byte & 0x40 != 0);
    let most = FIXED + input.len() as u64 * PER_BYTE + if may_be_packed { UNPACKED } else { 0 };
    let mut samples = None;
    let used = allocation_counter::measure(|| {
        let Ok(Imported { machine, .. }) = Etl.import_with_events(&mut Cursor::new(input), EVENTS) else {
            return;
        };
        for sample in machine.samples().iter() {
            assert!(usize::from(sample.kind.0) < machine.kinds().len());
            assert!((sample.stack.0 as usize) < machine.stacks().len());
            machine.process(machine.thread(sample.thread).process);
        }
        for process in machine.processes() {
            assert!(process.parent.is_none_or(|parent| (parent.0 as usize) < machine.processes().len()));
        }
        samples = Some(machine.samples().len());
    });
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    samples
}
