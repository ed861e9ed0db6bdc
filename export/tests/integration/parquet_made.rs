//! Parquet of made-up recordings: of as many numbers and texts as its encodings have cases, of what nobody would record, and of more
//! rows than a group has.

use std::io;

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::intern::StackId;
use collector_common::record::{
    AttributeValue, ClockAnchor, ExportMachine, Frame, FrameFlags, ModuleId, Sample, SampleKindId, ThreadId,
    Unit,
};
use export::format::parquet::Parquet;
use export::format::{ExportFormat as _, Profile};
use export::symbolize::Symbols;
use serde_json::{Value, json};

use crate::parquet::{answers, columns, read, rows};
use crate::raw_events::Recorded;

/// xorshift64*: the same numbers every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 8) % limit
    }
}

/// A machine with a kind and a thread of each name.
fn machine(names: &[&str]) -> (ExportMachine, SampleKindId, Vec<ThreadId>) {
    let mut machine = ExportMachine::default();
    let kind = machine.add_kind("cpu", Unit::Count, 1);
    let process = machine.add_process(Pid(1), "one", None, Nanos(0));
    let threads = names.iter().zip(0..).map(|(name, tid)| {
        let name = machine.intern_string(name);
        machine.intern_thread(process, Tid(tid), name)
    });
    let threads = threads.collect();
    (machine, kind, threads)
}

#[test]
fn numbers_of_all_sizes_and_texts_in_all_orders_come_back() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let names: Vec<String> = (0..300).map(|at| format!("thread {at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut machine, kind, threads) = machine(&names);
    let mut expected = Vec::new();
    let mut thread = 0;
    for time in 0..5_000_u64 {
        // Runs of all lengths up to 40, and such of numbers that differ.
        if random.below(40) == 0 || time % 1000 < 300 {
            thread = random.below(300) as usize;
        }
        // Of each number of bits.
        let value = (random.next() >> random.below(64)).cast_signed() >> random.below(64);
        let mut list: Vec<(String, String)> = Vec::new();
        for at in 0..random.below(8).saturating_sub(4) {
            list.push((format!("name {at}"), format!("value {}", random.below(20))));
        }
        let ids: Vec<_> = list
            .iter()
            .map(|(name, value)| (machine.intern_string(name), machine.intern_string(value)))
            .collect();
        let attributes = machine.attributes_mut().intern(&ids);
        let cpu = (time / 7 % 5) as u16;
        let sample = Sample {
            time: Nanos(time),
            thread: threads[thread],
            kind,
            cpu,
            value,
            attributes,
            ..<_>::default()
        };
        machine.add_sample(&sample);
        let list: serde_json::Map<String, Value> =
            list.into_iter().map(|(name, value)| (name, json!(value))).collect();
        let list = if list.is_empty() { Value::Null } else { Value::Object(list) };
        expected.push(json!([time, cpu, value, names[thread], thread, list]));
    }
    let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
    let told = columns(&told, "sample", &["time_ns", "cpu", "value", "thread", "tid", "attributes"]);
    for (told, expected) in told.as_array().unwrap().iter().zip(&expected) {
        assert_eq!(told, expected);
    }
    assert_eq!(told.as_array().unwrap().len(), expected.len());
}

#[test]
fn what_nobody_would_record_is_written_too() {
    let odd = ["", "'\"\\;\n\r\t", "nul \0 in it", "\u{fffd}\u{fffd}", "\u{10ffff}é\u{301}", "\u{202e}x"];
    let (mut machine, kind, threads) = machine(&odd);
    let anchor = ClockAnchor { monotonic: Nanos(0), realtime: 5, boottime: None };
    machine.system_mut().clocks.start = Some(anchor);
    let strings = ["a", "a", "a_2", "a", ""].map(|name| machine.intern_string(name));
    let list: Vec<_> = strings.into_iter().zip(strings).collect();
    let attributes = machine.attributes_mut().intern(&list);
    let address = u64::MAX;
    let frame =
        Frame { module: ModuleId::KERNEL, address: Svma(address), flags: FrameFlags(FrameFlags::KERNEL) };
    let frame = machine.intern_frame(frame);
    let stack = machine.intern_stack(&[frame]);
    let values = [i64::MIN, i64::MAX, 0, -1, i64::MAX, i64::MIN];
    for (at, value) in values.into_iter().enumerate() {
        let time = Nanos(if at == 5 { 1 << 63 } else { at as u64 });
        let thread = threads[at];
        // The last is of a kind that there is not.
        let kind = if at == 5 { SampleKindId(200) } else { kind };
        machine.add_sample(&Sample { time, thread, stack, cpu: u16::MAX, kind, value, attributes });
    }
    let mut symbols = Symbols::unresolved(&machine);
    let long = "ö".repeat(1 << 20);
    symbols.set(frame, &long, "");
    let Some(told) = read(&machine, &symbols) else { return };
    let names: Vec<Value> =
        odd.iter().map(|name| if name.is_empty() { Value::Null } else { json!(name) }).collect();
    let samples: Vec<&Value> = rows(&told, "sample").collect();
    assert_eq!(samples.iter().map(|row| row["thread"].clone()).collect::<Vec<_>>(), names);
    assert_eq!(columns(&told, "sample", &["value"]), json!(values.map(|value| [value])));
    let last = samples[5];
    assert_eq!(
        (&last["time_ns"], &last["time"], &last["kind"]),
        (&json!(i64::MAX), &Value::Null, &Value::Null)
    );
    assert_eq!(samples[4]["time"], 9);
    // Of names that are there twice none is lost; a name may be empty.
    let list = json!({ "a": "a", "a_2": "a", "a_2_2": "a_2", "a_3": "a", "": "" });
    assert!(samples.iter().all(|row| row["attributes"] == list && row["cpu"] == u16::MAX));
    let frames: Vec<&Value> = rows(&told, "frame").collect();
    let [frame] = frames[..] else { panic!("{} frames", frames.len()) };
    assert_eq!(frame["address"], address);
    assert_eq!(frame["function"].as_str(), Some(&long[..64 << 10]));
    assert!(frame["symbol"].is_null());
}

#[test]
fn attributes_of_one_name_are_all_there_up_to_a_limit() {
    let (mut machine, kind, threads) = machine(&["one"]);
    let name = machine.intern_string("a");
    let list: Vec<_> = (0..2_000).map(|at| (name, machine.intern_string(&format!("value {at}")))).collect();
    let attributes = machine.attributes_mut().intern(&list);
    machine.add_sample(&Sample { thread: threads[0], kind, attributes, ..<_>::default() });
    let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
    let sample = rows(&told, "sample").next().unwrap();
    let expected = (0..1024).map(|at| {
        let name = if at == 0 { "a".to_owned() } else { format!("a_{}", at + 1) };
        (name, json!(format!("value {at}")))
    });
    assert_eq!(sample["attributes"], Value::Object(expected.collect()));
}

#[test]
fn attributes_that_are_numbers_are_also_there_as_numbers() {
    let (mut machine, kind, threads) = machine(&["one"]);
    let [a, b, c, digits] = ["a", "b", "c", "7"].map(|text| machine.intern_string(text));
    let [least, most, below] = [i64::MIN, i64::MAX, -1].map(AttributeValue::Number);
    let list = [(a, least), (a, most), (b, digits.into()), (c, below)];
    for list in [&list[..], &list[2..3], &[], &list[3..]] {
        let attributes = machine.attributes_mut().intern(list);
        machine.add_sample(&Sample { thread: threads[0], kind, attributes, ..<_>::default() });
    }
    let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
    let (least, most) = ("-9223372036854775808", "9223372036854775807");
    let expected = json!([
        [{ "a": least, "a_2": most, "b": "7", "c": "-1" }, { "a": i64::MIN, "a_2": i64::MAX, "c": -1 }],
        [{ "b": "7" }, null],
        [null, null],
        [{ "c": "-1" }, { "c": -1 }],
    ]);
    assert_eq!(columns(&told, "sample", &["attributes", "numbers"]), expected);
}

#[test]
fn samples_of_events_are_samples_and_events_alone_are_not() {
    let recorded = Recorded::new();
    let Some(told) = read(&recorded.machine, &recorded.symbols) else { return };
    let expected = json!([
        [1_000, "made:all", 1, 5, "wörk\"er", null],
        [2_000, "made:all", 1, 5, "wörk\"er", { "state": "blocked" }],
    ]);
    let names = ["time_ns", "kind", "value", "cpu", "thread", "attributes"];
    assert_eq!(columns(&told, "sample", &names), expected);
    // Its address is a number that stands for none.
    let frames = columns(&told, "frame", &["function", "address", "kernel"]);
    assert_eq!(frames, json!([["vfs_read", null, true]]));
}

#[test]
fn samples_without_stacks_have_no_frames() {
    let (mut machine, kind, threads) = machine(&["one"]);
    machine.add_sample(&Sample { thread: threads[0], kind, value: 7, ..<_>::default() });
    let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
    let all = ["record", "value", "stack"];
    assert_eq!(columns(&told, "sample", &all), json!([["sample", 7, null]]));
    assert_eq!(rows(&told, "frame").count(), 0);
    assert_eq!(rows(&told, "process").count(), 1);
}

/// So many samples on so many stacks of ten frames, of 100 threads, in no order.
fn long(samples: u64, stacks: u64) -> (ExportMachine, Symbols) {
    let names: Vec<String> = (0..100).map(|at| format!("thread {at}")).collect();
    let (mut machine, kind, threads) = machine(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut frame = |address| {
        machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(address), flags: FrameFlags(0) })
    };
    let outer: Vec<_> = (0..9).map(|at| frame(1 << 40 | at)).collect();
    let inner: Vec<_> = (0..stacks).map(&mut frame).collect();
    let stacks: Vec<StackId> =
        inner.iter().map(|inner| machine.intern_stack(&[&[*inner], &outer[..]].concat())).collect();
    let mut random = Random(7);
    for at in 0..samples {
        let stack = stacks[at as usize % stacks.len()];
        let thread = threads[random.below(100) as usize];
        let time = Nanos(at * 7_919 % samples);
        machine.add_sample(&Sample { time, thread, stack, kind, value: at.cast_signed(), ..<_>::default() });
    }
    let symbols = Symbols::unresolved(&machine);
    (machine, symbols)
}

#[test]
fn long_recordings_are_groups_of_one_kind_in_the_order_of_time() {
    const SAMPLES: u64 = 300_000;
    const STACKS: u64 = 20_000;
    let (machine, symbols) = long(SAMPLES, STACKS);
    let queries = [
        "SELECT record, count(*), sum(value), count(DISTINCT stack), max(depth) FROM 'x.parquet' GROUP BY record ORDER BY record",
        // How many samples are not one nanosecond after the one before.
        "SELECT count(*) FROM (SELECT time_ns, lag(time_ns) OVER (ORDER BY time_ns) AS before FROM 'x.parquet' WHERE record = 'sample')
         WHERE time_ns <> before + 1",
        // Each stack has its 15 samples, in its own function.
        "SELECT n, count(*) FROM (
             SELECT f.function, count(*) AS n FROM 'x.parquet' s JOIN 'x.parquet' f ON f.stack = s.stack AND f.depth = 0
             WHERE s.record = 'sample' GROUP BY 1
         ) GROUP BY n",
    ];
    let Some(answers) = answers(&machine, &symbols, &queries) else { return };
    let sum = (0..SAMPLES).sum::<u64>();
    let expected = [
        json!([
            ["frame", STACKS * 10, null, STACKS, 9],
            ["process", 1, null, 0, null],
            ["sample", SAMPLES, sum, STACKS, null],
        ]),
        json!([[0]]),
        json!([[15, STACKS]]),
    ];
    assert_eq!(answers, expected);
}

/// What is held while rows are written depends on groups and distinct stacks, not on how many samples there are.
#[test]
fn memory_does_not_grow_with_samples() {
    let held = |samples: u64| {
        let (machine, symbols) = long(samples, 1000);
        let used = allocation_counter::measure(|| {
            Parquet.write(Profile { machine: &machine, symbols: &symbols }, &mut io::sink()).unwrap();
        });
        used.bytes_max
    };
    let (some, many) = (held(600_000), held(1_200_000));
    assert!(some < 24 << 20 && many < 24 << 20, "{some} and {many} bytes");
}

/// Stacks whose names have no room in one dictionary.
#[test]
fn long_names_end_a_group() {
    let (mut machine, kind, threads) = machine(&["one"]);
    let frames: Vec<_> = (0..1_000_u64)
        .map(|at| {
            machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(at), flags: FrameFlags(0) })
        })
        .collect();
    let stack = machine.intern_stack(&frames);
    machine.add_sample(&Sample { thread: threads[0], stack, kind, value: 1, ..<_>::default() });
    let mut symbols = Symbols::unresolved(&machine);
    for (&frame, at) in frames.iter().zip(0..) {
        let name = format!("{at}{}", "x".repeat(60_000));
        symbols.set(frame, &name, &name);
    }
    let used = allocation_counter::measure(|| {
        Parquet.write(Profile { machine: &machine, symbols: &symbols }, &mut io::sink()).unwrap();
    });
    // Twice 60 MB of names.
    assert!(used.bytes_max < 100 << 20, "{} bytes", used.bytes_max);
    let queries = [
        "SELECT count(DISTINCT function), min(length(symbol)), max(length(symbol)) FROM 'x.parquet' WHERE record = 'frame'",
    ];
    let Some(answers) = answers(&machine, &symbols, &queries) else { return };
    assert_eq!(answers, [json!([[1000, 60_001, 60_003]])]);
}
