//! The input is a JFR file: its events with all their fields, and the machine that is made of them.

use std::time::{Duration, Instant};

use export::import::jfr::events::{Chunks, ReadError, Struct, Value};
use export::import::jfr::import;

/// Bytes that reading any file may hold.
const FIXED_MEMORY: u64 = 4 << 20;

/// Bytes that may be held for each of the file's: a text of a table takes one of them, a constant two, and names are made of several
/// texts.
const PER_BYTE: u64 = 512;

/// What an input of some kilobytes may take, instrumented or not.
const MOST_TIME: Duration = Duration::from_secs(5);

/// How far constants are followed.
const DEEPEST: u32 = 3;

/// Reads all of the input. Out: the number of its events, where it is a recording.
pub(crate) fn run(input: &[u8]) -> Option<u64> {
    let most = FIXED_MEMORY + input.len() as u64 * PER_BYTE;
    let start = Instant::now();
    let mut result = None;
    let used = allocation_counter::measure(|| {
        let (mut events, mut chunks) = (0, 0);
        let mut is_read = true;
        for chunk in Chunks::of(input) {
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => {
                    is_read = chunks > 0 && matches!(error, ReadError::Cut { .. });
                    break;
                }
            };
            chunks += 1;
            for event in chunk.events() {
                let mut left = 1000;
                look_at(event.fields(), DEEPEST, &mut left);
                events += 1;
            }
        }
        let imported = import(input);
        assert_eq!(imported.is_ok(), is_read, "what can be read can be imported");
        if let Ok(imported) = &imported {
            assert!(imported.machine.samples().len() as u64 <= events);
        }
        result = is_read.then_some(events);
    });
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    assert!(start.elapsed() < MOST_TIME, "{:?} for {} bytes", start.elapsed(), input.len());
    result
}

/// Asks for values, and those within them, until there were enough.
fn look_at(fields: Struct<'_>, depth: u32, left: &mut u32) {
    for (field, value) in fields.fields() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        assert!(!field.name().is_empty() || value.text().is_none_or(|text| text.len() < usize::MAX));
        match value {
            Value::Struct(inner) if depth > 0 => look_at(inner, depth - 1, left),
            Value::List(list) if depth > 0 => {
                for inner in list.take(*left as usize).filter_map(|value| value.fields()) {
                    look_at(inner, depth - 1, left);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    const SEEDS: [&[u8]; 3] = [
        include_bytes!("seeds/jfr/recording"),
        include_bytes!("seeds/jfr/spans"),
        include_bytes!("seeds/jfr/two_chunks"),
    ];

    #[test]
    fn cuts_are_survived() {
        for seed in SEEDS {
            for length in (0..seed.len()).filter(|length| length % 61 == 0 || *length < 80) {
                // The size of the first chunk.
                let first = u64::from_be_bytes(seed[8..16].try_into().unwrap());
                assert_eq!(super::run(&seed[..length]).is_some(), length as u64 >= first, "{length}");
            }
        }
    }

    #[test]
    fn flipped_bits_are_survived() {
        let mut read = 0;
        for seed in SEEDS {
            for at in (0..seed.len() * 8).step_by(59) {
                let mut damaged = seed.to_vec();
                damaged[at / 8] ^= 1 << (at % 8);
                read += u32::from(super::run(&damaged).is_some());
            }
        }
        // In names, for one.
        assert!(read > 100, "{read}");
    }
}
