//! The input is a trace: its events, with their stacks, labels and fields.

use collector_common::event::EventData;
use export::format::nettrace::read;

/// Bytes that reading any file may hold.
const FIXED_MEMORY: u64 = 1 << 20;

/// Bytes that may be held for each of the file's: a list of one label takes two of them, and a thread three.
const PER_BYTE: u64 = 256;

/// Reads all of the input. Out: whether it is a trace.
pub(crate) fn run(input: &[u8]) -> bool {
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
                        assert_eq!(format.fields().len(), fields);
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
