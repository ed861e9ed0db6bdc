//! What records of the events that are asked for are taken in with.

use collector_common::perf::{Bytes, Misc, RawRecord, Record, RecordKind};

use super::attributes::{Common, Kind};
use crate::records::decode::Decoder;
use crate::source::{EventIndex, EventRequest, Rights, Settings, Trigger};

fn kind(trigger: Trigger) -> Kind {
    let common = Common::of(&Settings::default(), Rights::ALL);
    common.event(&EventRequest::new(EventIndex(3), trigger), 997)
}

/// `PERF_RECORD_SAMPLE` of process and thread, as `perf_output_sample` of `kernel/events/core.c` writes it: identifier,
/// process and thread, time, CPU; then what only some events have.
fn record([pid, tid]: [u32; 2], more: &[u8]) -> Vec<u8> {
    let mut body = [7_u64.to_ne_bytes(), (u64::from(tid) << 32 | u64::from(pid)).to_le_bytes()].concat();
    body.extend([1_000_u64.to_ne_bytes(), 2_u64.to_ne_bytes()].concat());
    body.extend(more);
    body
}

/// Process, thread and value that a record is taken in with.
fn taken(kind: &Kind, body: &[u8], is_in_initial_namespace: bool) -> [u64; 3] {
    let raw = RawRecord { kind: RecordKind::SAMPLE, misc: Misc(0), body: Bytes::from(body) };
    let Record::Sample(sample) = raw.parse(&kind.layout).unwrap().record else { panic!() };
    let mut decoder = Decoder::new(is_in_initial_namespace);
    let record = decoder.decode(kind.index, raw.misc, &sample).unwrap();
    assert_eq!((record.event, record.header.time, record.header.cpu), (EventIndex(3), 1_000, 2));
    [record.header.pid.into(), record.header.tid.into(), record.value]
}

#[test]
fn what_the_processor_counted_is_the_value() {
    for trigger in [Trigger::Hardware(1), Trigger::Raw(0x1c2)] {
        let body = record([5, 6], &2_400_123_u64.to_ne_bytes());
        assert_eq!(taken(&kind(trigger), &body, true), [5, 6, 2_400_123]);
        let nothing = record([5, 6], &0_u64.to_ne_bytes());
        assert_eq!(taken(&kind(trigger), &nothing, true), [5, 6, 1]);
    }
    assert_eq!(taken(&kind(Trigger::Software(2)), &record([5, 6], &[]), true), [5, 6, 1]);
}

#[test]
fn a_released_thread_is_told_by_the_data_of_the_tracepoint() {
    // By how much it counts; then 20 bytes: type, flags, preemption count, thread; a field, and what fills up to eight bytes.
    let entry = [&20_u32.to_ne_bytes()[..], &[1, 1, 0, 0], &77_u32.to_ne_bytes(), &[0; 12]].concat();
    let data = [&3_u64.to_ne_bytes()[..], &entry].concat();
    let tracepoint = kind(Trigger::Tracepoint(257));
    let gone = u32::MAX;
    let body = record([gone, gone], &data);
    assert_eq!(taken(&tracepoint, &body, true), [gone.into(), 77, 3]);
    assert_eq!(taken(&tracepoint, &body, false), [gone.into(), gone.into(), 3], "numbers are others there");
    assert_eq!(taken(&tracepoint, &record([5, gone], &data), true), [5, 77, 3]);
    assert_eq!(taken(&tracepoint, &record([5, 6], &data), true), [5, 6, 3]);
    assert_eq!(taken(&kind(Trigger::Software(2)), &record([gone, gone], &[]), true)[1], u64::from(gone));
}
