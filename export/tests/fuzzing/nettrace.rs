//! The input is a trace: its events, with their stacks, labels and fields, and the machine that is made of them.

use std::io::Cursor;

use collector_common::event::EventData;
use export::format::nettrace::read;
use export::import::nettrace::{Nettrace, import_with_events};

use super::bounded;

/// Bytes that reading any file may hold.
const FIXED_MEMORY: u64 = 1 << 20;

/// Bytes that may be held for each of the file's: a list of one label takes two of them, and a thread three.
const PER_BYTE: u64 = 256;

/// The same of making a machine of it, which knows what lies where, and has each stack with its frames.
const FIXED_MEMORY_OF_MACHINE: u64 = 4 << 20;
const PER_BYTE_OF_MACHINE: u64 = 512;

/// Bytes that events may take in a machine.
const EVENT_BYTES: u64 = 1 << 20;

/// Reads all of the input. Out: whether it is a trace.
pub(crate) fn run(input: &[u8]) -> bool {
    let is_trace = is_read(input);
    let imported = bounded::run(&Nettrace, input, FIXED_MEMORY_OF_MACHINE, PER_BYTE_OF_MACHINE);
    assert!(is_trace || !imported, "what can be imported can be read");
    // Each event's record, and what is held while more room for them is made.
    let most = FIXED_MEMORY_OF_MACHINE + 4 * EVENT_BYTES + input.len() as u64 * PER_BYTE_OF_MACHINE;
    let used = allocation_counter::measure(|| {
        let with_events = import_with_events(Cursor::new(input), EVENT_BYTES);
        assert!(with_events.is_ok() || !imported, "what has samples has events");
        let Ok(with_events) = with_events else { return };
        let records = with_events.machine.event_records();
        let kinds = with_events.machine.event_kinds();
        for (_, record, bytes) in records.iter() {
            let format = &kinds[usize::from(record.kind.0)].format;
            EventData::new(bytes, bytes, format).values().for_each(drop);
        }
    });
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    is_trace
}

/// Reads all of its events. Out: whether it is a trace.
fn is_read(input: &[u8]) -> bool {
    let most = FIXED_MEMORY + input.len() as u64 * PER_BYTE;
    let mut result = None;
    let used = allocation_counter::measure(|| {
        let (mut events, mut seen) = (0, None);
        let summary = read(
            input,
            |_| (),
            |event| {
                let fields = event.event_type.field_names().count();
                if let Ok(values) = event.values() {
                    assert_eq!(values.len(), fields, "each field has a value");
                }
                // The format of a type once, as there may be many events of many fields.
                if Some(event.event_type.position) > seen {
                    seen = Some(event.event_type.position);
                    let format = event.event_type.format();
                    if let (Some(format), Ok(bytes)) = (format, event.described()) {
                        // What is behind the last one whose type is known is another one there.
                        let rest = usize::from(event.event_type.has_more_fields);
                        assert_eq!(format.fields().len(), fields + rest);
                        EventData::new(&bytes, &bytes, &format).values().for_each(drop);
                    }
                }
                assert!(event.stack().len() <= input.len() / 4);
                events += 1;
            },
        );
        if let Ok(summary) = &summary {
            assert_eq!(summary.events, events);
        }
        result = Some(summary.is_ok());
    });
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    result.expect("it was run")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::run;

    const RECORDING: &[u8] = include_bytes!("seeds/nettrace/recording");
    const OLD: &[u8] = include_bytes!("seeds/nettrace/old");

    /// A trace of one block behind the first one.
    fn with_block(kind: u8, content: &[u8]) -> Vec<u8> {
        let mut data = RECORDING.to_vec();
        let first = usize::from(data[20]) | usize::from(data[21]) << 8;
        data.truncate(24 + first);
        data.extend((content.len() as u32 | u32::from(kind) << 24).to_le_bytes());
        data.extend(content);
        data.extend([0; 4]);
        data
    }

    /// What takes the most memory for each byte: lists of one label, threads and stacks of which only the number is told.
    #[test]
    fn the_densest_tables_are_in_proportion() {
        const COUNT: u32 = 300_000;
        let rows =
            |row: &[u8]| [1_u32.to_le_bytes().to_vec(), COUNT.to_le_bytes().to_vec(), row.repeat(300_000)];
        assert!(run(&with_block(8, &rows(&[0x87, 0]).concat())));
        assert!(run(&with_block(5, &rows(&[0; 4]).concat())));
        let threads =
            (0..COUNT).flat_map(|at| [3, 0, at as u8 | 0x80, (at >> 7) as u8 | 0x80, (at >> 14) as u8]);
        assert!(run(&with_block(6, &threads.collect::<Vec<u8>>())));
    }

    #[test]
    fn flipped_bits_are_survived() {
        let mut read = 0;
        for (seed, step) in [(RECORDING, 7), (OLD, 3)] {
            for at in (0..seed.len() * 8).step_by(step) {
                let mut damaged = seed.to_vec();
                damaged[at / 8] ^= 1 << (at % 8);
                read += u32::from(run(&damaged));
            }
        }
        // In names, for one.
        assert!(read > 1_000, "{read}");
    }

    proptest! {
        /// Where a block that is not the first one begins, after its size and kind.
        #[test]
        fn noise_in_a_block(
            noise in proptest::collection::vec(any::<u8>(), 0..400),
            kind in 1_u8..10,
        ) {
            run(&with_block(kind, &noise));
        }
    }
}
