//! Traces for Perfetto, as its own messages decode them (`tests/python/perfetto_trace.py`), against recordings of known truth.

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::record::{ESTIMATED, ExportMachine, ProcessId, Sample, Unit};
use export::format::perfetto::Perfetto;
use export::format::{ExportFormat, Profile};
use export::symbolize::Symbols;
use serde_json::{Value, json};

use crate::made::{CONTAINER, Made, PERIOD};
use crate::several::{BOOTTIME, MS, REALTIME, START, Several, at};
use crate::tools;

fn read(machine: &ExportMachine, symbols: &Symbols) -> Option<Value> {
    let mut bytes = Vec::new();
    Perfetto.write(Profile { machine, symbols }, &mut bytes).unwrap();
    told(&bytes)
}

/// What the reader takes a trace for; none where it is missing.
pub(crate) fn told(trace: &[u8]) -> Option<Value> {
    let mut reader = tools::python("perfetto_trace.py")?;
    let file = tools::file(trace, ".pftrace");
    Some(serde_json::from_str(&tools::output(reader.arg(&*file))).unwrap())
}

fn several() -> Option<Value> {
    let several = Several::new();
    read(&several.machine, &several.symbols)
}

/// Some fields of each of a list.
fn fields(list: &Value, names: &[&str]) -> Value {
    let rows = list.as_array().unwrap().iter();
    rows.map(|row| names.iter().map(|name| row[name].clone()).collect::<Value>()).collect()
}

/// Names of functions, the innermost first, of each stack in a list.
fn functions(list: &Value) -> Vec<Vec<&str>> {
    let stacks = list.as_array().unwrap().iter().map(|row| row["stack"].as_array().unwrap().iter());
    stacks.map(|stack| stack.map(|frame| frame["function"].as_str().unwrap()).collect()).collect()
}

fn ns(ms: u64) -> u64 {
    at(ms).0
}

#[test]
fn processes_and_threads_are_there_from_start_to_end() {
    let Some(told) = several() else { return };
    let expected = json!([
        ["app", 300, START, 0, null, null],
        ["child", 400, ns(10), ns(10), "app", ns(20)],
        ["again", 400, ns(30), ns(30), null, null],
    ]);
    assert_eq!(fields(&told["processes"], &["name", "pid", "from", "start", "parent", "end"]), expected);
    let expected = json!([
        ["app", 300, "app: ready"],
        ["app", 301, "worker"],
        ["child", 400, "child"],
        ["again", 400, "again"],
    ]);
    assert_eq!(fields(&told["threads"], &["process", "tid", "name"]), expected);
}

#[test]
fn what_is_known_of_processes_is_told() {
    let mut made = Made::new();
    let second = ProcessId(1);
    let program = made.machine.add_program(second, Nanos(1_500), "prog");
    made.machine.set_arguments(program, b"prog\0a b\0", true);
    let program = made.machine.add_program(second, Nanos(1_700), "sh");
    made.machine.set_arguments(program, b"", false);
    let Some(told) = read(&made.machine, &made.symbols) else { return };
    // The last one's arguments are not known.
    let expected = json!([[100, ["prog", "--fast", "two words"], null], [200, [], 1000]]);
    assert_eq!(fields(&told["processes"], &["pid", "cmdline", "uid"]), expected);
    let events = told["events"].as_array().unwrap().iter().filter(|event| event["track"] == "process");
    let expected = json!([
        [100, 1_000, "command: prog --fast \"two words\""],
        [100, 1_000, "user: ann (1000)"],
        [100, 1_000, "pid in its namespace: 1"],
        [100, 1_000, "executed: prog --fast \"two words\""],
        [200, 1_000, "user: 1000"],
        [200, 1_000, "pid in its namespace: 1"],
        [200, 1_000, format!("container: {CONTAINER}")],
        [200, 1_000, format!("cgroup: /docker/{CONTAINER}")],
        [200, 1_500, "executed: prog \"a b\" ..."],
        [200, 1_700, "executed: sh"],
    ]);
    assert_eq!(fields(&events.cloned().collect(), &["pid", "time", "name"]), expected);
}

#[test]
fn clocks_and_the_machine_are_told() {
    let Some(told) = several() else { return };
    let clocks = |ms: u64| {
        json!({
            "BUILTIN_CLOCK_MONOTONIC": ns(ms),
            "BUILTIN_CLOCK_REALTIME": REALTIME + ms * MS,
            "BUILTIN_CLOCK_BOOTTIME": BOOTTIME + ms * MS,
        })
    };
    assert_eq!(told["clocks"], json!([clocks(0), clocks(40)]));
    assert_eq!(told["system"], json!(["Linux", "6.18.0", "x86_64", "build-07", 2]));
    assert_eq!(told["lost"], json!([[5, ns(40)]]));
    let expected = json!([
        ["recording", START, "command: app --all", null],
        ["recording", START, "5 lost (ring_full 5)", null],
        ["recording", START, "queue: 7.5 requests", null],
    ]);
    let events = fields(&told["events"], &["track", "time", "name", "lasted"]);
    assert_eq!(events.as_array().unwrap()[..3], expected.as_array().unwrap()[..]);
}

#[test]
fn clocks_and_occurrences_are_samples() {
    let Some(told) = several() else { return };
    let fields = fields(&told["samples"], &["kind", "time", "cpu", "process", "tid", "thread", "grown"]);
    let expected = json!([
        ["cpu", ns(1), 0, "app", 300, "app: ready", MS],
        ["cpu", ns(5), 1, "app", 301, "worker", MS],
        ["cpu", ns(6), 1, "app", 301, "worker", 2 * MS],
        ["cpu", ns(8), 0, "app", 300, "app: ready", MS],
        ["cpu", ns(9), 0, "app", 300, "app: ready", MS],
        ["sched:sched_process_exec", ns(11), 0, "child", 400, "child", 1],
        ["cpu", ns(12), 0, "child", 400, "child", MS],
        ["cpu", ns(31), 0, "again", 400, "again", MS],
    ]);
    assert_eq!(fields, expected);
    let running = vec!["helper", "run", "main"];
    let mut stacks = vec![running; 8];
    stacks[4].clear();
    assert_eq!(functions(&told["samples"]), stacks);
    let frame = |function, address, line| {
        json!({
            "function": function,
            "address": address,
            "path": "/opt/app",
            "build_id": "abcd01",
            // The segment at 0x3000 of the file is linked for 0x4000.
            "range": [0x4000, 0x9000, 0x3000, 0x1000],
            "line": line,
            "kind": "KIND_NATIVE",
        })
    };
    let expected = json!([
        frame("helper", 0x4200, "helper.h:3"),
        frame("run", 0x4200, "run.c:20"),
        frame("main", 0x4100, "main.c:7"),
    ]);
    assert_eq!(told["samples"][0]["stack"], expected);
    assert_eq!(told["samples"][0]["period"], MS);
    assert_eq!([&told["samples"][0]["event"], &told["samples"][5]["event"]], ["counter", "tracepoint"]);
}

#[test]
fn times_are_slices_and_bytes_are_counters() {
    let Some(told) = several() else { return };
    let events = told["events"].as_array().unwrap();
    let of = |track: &str| events.iter().filter(|event| event["track"] == track).cloned().collect::<Value>();
    let names = ["time", "owner", "name", "weight", "lasted", "notes"];
    let expected = json!([
        [ns(15), "worker", "off_cpu", 1e7, 10 * MS, { "lock": "0x7f00" }],
        // An estimate did not last so long.
        [ns(16), "app: ready", "off_cpu", 7e6, null, { "estimated": "yes" }],
        [ns(20), "worker", "off_cpu", 1e7, 10 * MS, { "path": "/var/log/x", "bytes": 4096 }],
        [ns(25), "worker", "off_cpu", 5e6, 5 * MS, {}],
    ]);
    let off_cpu = of("off_cpu");
    assert_eq!(fields(&off_cpu, &names), expected);
    assert!(off_cpu.as_array().unwrap().iter().all(|event| event["stack"] == json!(["wait", "main"])));
    let expected = json!([
        [ns(2), "app: ready", "alloc_space", 4096.0, null, {}],
        [ns(3), "worker", "alloc_space", 512.0, null, {}],
        [ns(7), "app: ready", "alloc_space", -96.0, null, {}],
    ]);
    assert_eq!(fields(&of("alloc_space"), &names), expected);
    let counted = fields(&told["counters"], &["track", "owner", "time", "value"]);
    let sum = |ms, value: i64| json!(["alloc_space", "app", ns(ms), value]);
    assert_eq!(counted, json!([sum(2, 4096), sum(3, 4608), sum(7, 4512)]));
    let renamed = json!([[ns(7), "app: ready", "renamed to app: ready", null, null, {}]]);
    assert_eq!(fields(&of(""), &names), renamed);
}

#[test]
fn frames_that_are_no_functions_of_files_are_kept() {
    let made = Made::new();
    let Some(told) = read(&made.machine, &made.symbols) else { return };
    let samples = told["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 85);
    assert!(samples.iter().all(|sample| sample["grown"] == PERIOD && sample["kind"] == "cpu"));
    let count = |functions: &[&str], mode: &str, error: &str| {
        let is = |sample: &&Value| {
            let stack = sample["stack"].as_array().unwrap().iter().map(|frame| &frame["function"]);
            stack.eq(functions) && sample["mode"] == mode && sample["error"] == error
        };
        samples.iter().filter(is).count()
    };
    let work = "work(int; char)";
    assert_eq!(count(&[work, "main"], "MODE_USER", ""), 60);
    assert_eq!(count(&["recurse", "recurse", "recurse", "main"], "MODE_USER", ""), 10);
    assert_eq!(count(&["vfs_read", work, "main"], "MODE_KERNEL", ""), 8);
    assert_eq!(count(&["prog+0x8123", "[stack cut]"], "MODE_USER", "UNWIND_ERROR_UNKNOWN"), 4);
    assert_eq!(count(&["[unmapped]+0xdead0000"], "MODE_USER", ""), 2);
    assert_eq!(count(&[], "MODE_UNKNOWN", ""), 1);
    let places = |function: &str| {
        let frames = samples.iter().flat_map(|sample| sample["stack"].as_array().unwrap());
        let frame = frames.clone().find(|frame| frame["function"] == function).unwrap();
        json!([frame["path"], frame["address"], frame["kind"], frame["build_id"]])
    };
    assert_eq!(places("vfs_read"), json!(["kernel", 0xffff_ffff_8123_4567_u64, "KIND_KERNEL", ""]));
    assert_eq!(places("[unmapped]+0xdead0000"), json!(["[unmapped]", 0xdead_0000_u64, "KIND_UNKNOWN", ""]));
}

#[test]
fn an_empty_recording_is_a_trace() {
    let machine = ExportMachine::default();
    let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
    assert_eq!(told["clocks"], json!([{ "BUILTIN_CLOCK_MONOTONIC": 0 }]));
    assert_eq!(told["samples"], Value::Null);
}

/// A thread is blocked for 4 ms from 10 ms on and then waits 1 ms for a CPU, runs 3 ms of the 5 ms until a tick, and is off for what was
/// too short to be recorded each.
#[test]
fn states_of_threads_are_slices_called_after_them() {
    let mut machine = ExportMachine::default();
    let process = machine.add_process(Pid(7), "app", None, Nanos(0));
    let name = machine.intern_string("app");
    let thread = machine.intern_thread(process, Tid(7), name);
    let kind = machine.add_kind("wall_clock", Unit::Nanoseconds, 1);
    for (at, lasted, state, is_estimate) in [
        (10, 4, "blocked", false),
        (14, 1, "runnable", false),
        (17, 3, "running", false),
        (18, 2, "blocked", true),
    ] {
        let estimated = is_estimate.then_some((ESTIMATED, "yes"));
        let list: Vec<_> = [("state", state)].into_iter().chain(estimated).collect();
        let list: Vec<_> = list
            .into_iter()
            .map(|pair| (machine.intern_string(pair.0), machine.intern_string(pair.1)))
            .collect();
        let attributes = machine.attributes_mut().intern(&list);
        let (time, value) = (Nanos(at * MS), (lasted * MS) as i64);
        machine.add_sample(&Sample { time, thread, kind, value, attributes, ..Sample::default() });
    }
    let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
    let names = ["track", "owner", "name", "time", "lasted", "weight"];
    let expected = json!([
        ["wall_clock", "app", "blocked", 10 * MS, 4 * MS, 4e6],
        ["wall_clock", "app", "runnable", 14 * MS, MS, 1e6],
        ["wall_clock", "app", "running", 17 * MS, 3 * MS, 3e6],
        ["wall_clock", "app", "blocked", 18 * MS, null, 2e6],
    ]);
    assert_eq!(fields(&told["events"], &names), expected);
}
