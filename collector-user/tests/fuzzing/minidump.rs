//! The input is a minidump, of which a recording is made.

use std::io::Cursor;

use collector_common::record::ExportMachine;
use collector_user::minidump::{Dump, Minidump};

/// Bytes that any dump may take: blocks of the file, what the unwinder remembers, and a million frames.
const FIXED: u64 = 128 << 20;

/// Bytes for each of the file's: of a module of 108 its image, its mapping and its name; of a thread of 48 its registers.
const PER_BYTE: u64 = 64;

/// Makes a recording of the input. Out: of how many threads; none where it is no such file.
pub(crate) fn run(input: &[u8]) -> Option<usize> {
    let most = FIXED + input.len() as u64 * PER_BYTE;
    let mut samples = None;
    let used = allocation_counter::measure(|| {
        let dump = Minidump.read(ExportMachine::default(), &mut Cursor::new(input), None);
        let Ok(Dump { imported, .. }) = dump else { return };
        let machine = &imported.machine;
        for sample in machine.samples().iter() {
            assert!(usize::from(sample.kind.0) < machine.kinds().len());
            for frame in machine.stacks().get(sample.stack) {
                machine.module(machine.frames().get(*frame).module);
            }
            machine.process(machine.thread(sample.thread).process);
        }
        samples = Some(machine.samples().len());
    });
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    samples
}
