//! The input is an `.etl` file: it is read with much memory and with little.

use std::io::Cursor;

use windows_etw::etl::{EtlError, EtlFile};

use super::within_memory;

/// Bytes of buffers that may be in memory: a few small ones, or all.
const LITTLE: usize = 4 << 10;
const MUCH: usize = 64 << 20;

/// Bytes that reading any file may hold besides.
const FIXED: u64 = 64 << 10;

/// Bytes for each of the file's: what lies in it is copied, and of each message of 8 bytes there is a list's entry.
const PER_BYTE: u64 = 16;

/// Records that are read of a file; packed ones can be many more than the file has bytes.
const MOST_RECORDS: usize = 1 << 14;

/// A record as it is compared: its time, and its parts' lengths.
type Told = (i64, usize, u16);

/// Reads the input in both ways.
pub(crate) fn run(input: &[u8]) {
    let may_be_packed = input.iter().any(|byte| byte & 0x40 != 0);
    let unpacked = if may_be_packed { 3 * MUCH as u64 } else { 0 };
    let most = FIXED + input.len() as u64 * PER_BYTE + unpacked;
    let (all, is_whole) = within_memory(most, || read(input, MUCH));
    let (some, _) = within_memory(most, || read(input, LITTLE));
    assert!(some.len() <= all.len() || !is_whole);
    assert_eq!(
        all[..some.len().min(all.len())],
        some[..some.len().min(all.len())],
        "memory changes no record"
    );
}

/// What is in the file, and whether that is all.
fn read(input: &[u8], memory: usize) -> (Vec<Told>, bool) {
    let mut told = Vec::new();
    let mut file = match EtlFile::open_within(Cursor::new(input), memory) {
        Ok(file) => file,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return (told, true);
        }
    };
    let clock = file.header().clock;
    let mut newest = i64::MIN;
    let mut late = 0;
    while told.len() < MOST_RECORDS {
        let record = match file.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) => {
                assert!(matches!(error, EtlError::Overlapping { .. }), "memory has no other errors: {error}");
                assert!(file.next_record().expect("it is at its end").is_none());
                return (told, false);
            }
        };
        late += u64::from(record.ticks < newest);
        newest = newest.max(record.ticks);
        let _ = (clock.nanos(record.ticks), clock.unix_nanos(record.ticks));
        assert!(u16::try_from(record.payload.len()).is_ok());
        if let Some(stack) = record.extended.stack {
            assert_eq!(stack.addresses.len() % stack.width.bytes(), 0);
        }
        told.push((record.ticks, record.payload.len(), record.cpu));
    }
    let losses = file.losses();
    assert_eq!(losses.late_records, late, "what comes late is told");
    assert!(losses.places.len() as u64 <= losses.damages);
    for place in &losses.places {
        assert!(place.buffer < input.len() as u64 && !place.to_string().is_empty());
    }
    (told, true)
}
