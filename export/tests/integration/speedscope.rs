//! speedscope, as far as its own schema and page (see `tests/browser`) do not tell: threads that change their names, inlined
//! functions, and what was lost.

use collector_common::ids::{Nanos, Tid};
use collector_common::record::{FrameId, ProcessId, Sample, SampleKindId};
use export::format::speedscope::Speedscope;
use export::format::{ExportFormat, Profile};
use export::symbolize::{Function, Symbols};
use serde_json::{Value, json};

use crate::counted::Counted;
use crate::made::Made;

fn written(made: &Made) -> Value {
    let mut out = Vec::new();
    Speedscope.write(Profile { machine: &made.machine, symbols: &made.symbols }, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn profile<'a>(file: &'a Value, part_of_name: &str) -> &'a Value {
    let mut found = file["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|profile| profile["name"].as_str().unwrap().contains(part_of_name));
    let first = found.next().unwrap();
    assert!(found.next().is_none());
    first
}

/// What is held while it is written is no more than 16 bytes for each of 1,048,576 samples, of one thread or of many.
#[test]
fn memory_does_not_grow_with_samples() {
    let held = |count: u64, threads: u64| {
        let Made { mut machine, symbols } = Made::new();
        let sample = machine.samples().at(0);
        let name = machine.intern_string("one");
        let tids = 1000..1000 + threads as u32;
        let threads: Vec<_> = tids.map(|tid| machine.intern_thread(ProcessId(0), Tid(tid), name)).collect();
        for at in 0..count {
            let thread = threads[(at % threads.len() as u64) as usize];
            machine.add_sample(&Sample { time: Nanos(at * 7_919 % 1_000_003), thread, ..sample });
        }
        let mut out = Counted::default();
        let used = allocation_counter::measure(|| {
            Speedscope.write(Profile { machine: &machine, symbols: &symbols }, &mut out).unwrap();
        });
        assert!(out.0 > count * 8);
        used.bytes_max
    };
    for threads in [1, 50] {
        let held = held(1_200_000, threads);
        assert!(held < 24 << 20, "{threads} threads: {held} bytes");
    }
}

#[test]
fn what_was_lost_is_told() {
    let mut made = Made::new();
    made.machine.add_custom_metric("queue", 7.5, "requests");
    let file = written(&made);
    assert_eq!(file["name"], "prog --fast (3 samples lost)");
    let exporter = file["exporter"].as_str().unwrap();
    let (program, account) = exporter.split_once("; ").unwrap();
    assert!(program.starts_with("collector "));
    assert_eq!(account, "3 lost (ring_full 3); 100.00 % are complete; queue: 7.5 requests");
}

#[test]
fn a_thread_that_renames_itself_is_one() {
    let mut made = Made::new();
    let name = made.machine.intern_string("renamed");
    let thread = made.machine.intern_thread(ProcessId(0), Tid(101), name);
    let last = made.machine.samples().iter().max_by_key(|sample| sample.time).unwrap();
    let time = Nanos(last.time.0 + 1);
    made.machine.add_sample(&Sample { time, thread, kind: SampleKindId(0), ..last });
    let file = written(&made);
    assert_eq!(file["profiles"].as_array().unwrap().len(), 3);
    // 20 with a stack, 1 without one, and the new one.
    let weights = profile(&file, "renamed (tid 101) of prog")["weights"].as_array().unwrap();
    assert_eq!(weights.len(), 22);
}

#[test]
fn inlined_functions_are_called_by_what_they_are_inlined_into() {
    let mut made = Made::new();
    let work = FrameId(1);
    assert_eq!(made.symbols.name(work).function, "work(int; char)");
    let functions = ["tiny", "small", "work(int; char)"].map(|name| {
        let name = made.symbols.intern(name);
        Function { name, linkage: name, ..Function::default() }
    });
    made.symbols.set_functions(work, &functions);
    let file = written(&made);
    // All of its samples with a stack are of that stack.
    let stacks = profile(&file, "(tid 101)")["samples"].as_array().unwrap();
    let stack = stacks.iter().filter_map(Value::as_array).find(|stack| !stack.is_empty()).unwrap();
    let name = |at: &Value| file["shared"]["frames"][at.as_u64().unwrap() as usize]["name"].as_str().unwrap();
    let names: Vec<&str> = stack.iter().map(name).collect();
    assert_eq!(names, ["main", "work(int; char)", "small", "tiny"]);
}

/// A function is a frame, whichever of its lines frames are at: it has the file of the first of these that has one, and the first line.
#[test]
fn a_function_has_its_source_file_and_its_first_line() {
    let mut made = Made::new();
    let at = |symbols: &mut Symbols, name, file, line, column| {
        let name = symbols.intern(name);
        Function { name, linkage: name, file: symbols.intern(file), line, column, ..Function::default() }
    };
    let symbols = &mut made.symbols;
    let work = at(symbols, "work(int; char)", "work.c", 20, 4);
    let lists = [
        (FrameId(1), vec![at(symbols, "tiny", "tiny.h", 9, 0), work]),
        (FrameId(2), vec![at(symbols, "tiny", "", 3, 1), Function { column: 3, ..work }]),
        (FrameId(3), vec![at(symbols, "tiny", "tiny.h", 7, 2), Function { line: 21, column: 1, ..work }]),
        (FrameId(4), vec![at(symbols, "tiny", "other.h", 1, 1), Function { line: 0, column: 0, ..work }]),
    ];
    for (frame, list) in lists {
        made.symbols.set_functions(frame, &list);
    }
    let file = written(&made);
    let frames = file["shared"]["frames"].as_array().unwrap();
    let named = |name: &str| -> Vec<&Value> { frames.iter().filter(|frame| frame["name"] == name).collect() };
    assert_eq!(
        named("work(int; char)"),
        [&json!({"name": "work(int; char)", "file": "work.c", "line": 20, "col": 3})]
    );
    assert_eq!(named("tiny")[0], &json!({"name": "tiny", "file": "tiny.h", "line": 7, "col": 2}));
    assert_eq!(named("main"), [&json!({"name": "main", "file": "/opt/prog"})]);
}
