//! What events are asked for with, and what their records are taken in with.

use std::process::Command;

use collector_common::perf::{Bytes, Misc, RawRecord, Record, RecordKind};

use super::attributes::{Common, Kind};
use crate::records::decode::Decoder;
use crate::source::{COUNTERS, EventIndex, EventRequest, Hook, Rights, Settings, Trigger};

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

/// Further names that `perf list` has.
const FURTHER: [&str; 7] = [
    "faults",
    "cs",
    "migrations",
    "cpu-cycles",
    "branch-instructions",
    "idle-cycles-frontend",
    "idle-cycles-backend",
];

/// `type` and `config` of what `perf stat -vv` opens for a name, as it prints them; earlier versions print no numbers that are 0. Whether the machine has
/// the event does not matter.
fn asked_by_perf(name: &str) -> Option<[u64; 2]> {
    let perf = Command::new("perf").args(["stat", "-vv", "-e", name, "--", "true"]).output().ok()?;
    let text = String::from_utf8(perf.stderr).unwrap();
    let (_, attr) = text.split_once("perf_event_attr:\n").unwrap_or_else(|| panic!("{name}: {text}"));
    let lines = attr.lines().take_while(|line| !line.starts_with("---"));
    let numbers: Vec<(&str, &str)> = lines.filter_map(|line| line.trim().split_once(' ')).collect();
    let number = |name| {
        let Some((_, number)) = numbers.iter().find(|(of, _)| *of == name) else { return 0 };
        // Later ones have the constant's name in brackets behind it.
        let number = number.split_whitespace().next().unwrap_or_default();
        let hexadecimal = number.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        hexadecimal.unwrap_or_else(|| number.parse()).unwrap()
    };
    Some(["type", "config"].map(number))
}

#[test]
fn names_are_of_what_perf_opens_for_them() {
    if asked_by_perf("cs").is_none() {
        eprintln!("SKIPPED: perf is not there");
        let required = std::env::var_os("COLLECTOR_LIVE").is_some_and(|live| live == "require");
        assert!(!required, "perf is not there");
        return;
    }
    let names = COUNTERS.iter().map(|counter| counter.name).chain(FURTHER);
    for name in names.chain(["r1c2", "r01C2", "rffff", "r100000003"]) {
        let attr = kind(Hook::counter(name).unwrap().trigger).attr;
        assert_eq!(Some([attr.type_.into(), attr.config]), asked_by_perf(name), "{name}");
    }
    let clock = Common::of(&Settings::default(), Rights::ALL).clock(1_000_000).attr;
    assert_eq!(Some([clock.type_.into(), clock.config]), asked_by_perf("cpu-clock"));
}
