//! The input is a journal, of which a recording is made.

use collector_user::journal::Journal;
use collector_user::session::Session;

/// Bytes that any journal may hold: tables of what is known, and the files that are at the paths in it.
const FIXED: u64 = 64 << 20;

/// Bytes for each of the journal's: a mapping of a few makes a module.
const PER_BYTE: u64 = 2048;

/// Makes a recording of the input. Out: of how many samples; none where it is no such file, or not whole.
pub(crate) fn run(input: &[u8]) -> Option<usize> {
    let most = FIXED + input.len() as u64 * PER_BYTE;
    let mut samples = None;
    let used = allocation_counter::measure(|| {
        let Ok(journal) = Journal::open(input) else { return };
        let settings = journal.settings();
        let Ok(recording) = Session::replay(journal, settings) else { return };
        let machine = &recording.machine;
        for sample in machine.samples().iter() {
            assert!(usize::from(sample.kind.0) < machine.kinds().len());
            assert!((sample.stack.0 as usize) < machine.stacks().len());
            machine.process(machine.thread(sample.thread).process);
        }
        samples = Some(machine.samples().len());
    });
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    samples
}
