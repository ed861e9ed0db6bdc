//! Traces for Perfetto, as its own messages decode them (`tests/python/perfetto_trace.py`), against recordings of known truth.

use std::sync::Arc;

use collector_common::event::{ByteOrder, EventField, EventFormat, Extent, FieldKind, Place, Width};
use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::record::{
    ClockAnchor, ESTIMATED, EventFacts, EventKind, EventKindId, EventRecord, ExportMachine, ProcessId,
    Sample, Unit,
};
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

/// Switches and wakeups on two CPUs, by (ms, CPU, name, fields): 300 is woken by 301, which then waits for what 300 does. Fields are in the
/// order of the kernel's formats.
fn scheduled(machine: &mut ExportMachine, planned: &[(u64, u16, &str, &[i64])]) {
    let process = machine.add_process(Pid(300), "app", None, Nanos(0));
    let name = machine.intern_string("app");
    for &(ms, cpu, event, fields) in planned {
        let is_switch = event == "sched_switch";
        let names: &[&str] = if is_switch {
            &["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"]
        } else {
            &["comm", "pid", "prio", "target_cpu"]
        };
        let mut format = EventFormat::new(ByteOrder::Little);
        let mut bytes = Vec::new();
        let mut values = fields.iter();
        for name in names {
            let is_text = name.ends_with("comm");
            let width = if *name == "prev_state" { Width::W64 } else { Width::W32 };
            let (kind, extent) = if is_text {
                (FieldKind::Char, Extent::Array(16))
            } else {
                (FieldKind::Signed(width), Extent::One)
            };
            format.add_field(EventField::new(*name, "", kind, extent, Place::AfterPrevious)).unwrap();
            match width {
                _ if is_text => bytes.extend_from_slice(b"app\0\0\0\0\0\0\0\0\0\0\0\0\0"),
                Width::W64 => bytes.extend_from_slice(&values.next().unwrap().to_le_bytes()),
                _ => bytes.extend_from_slice(&(*values.next().unwrap() as i32).to_le_bytes()),
            }
        }
        let full_name = format!("sched:{event}");
        let [name_, provider, short_name] =
            [&full_name, "sched", event].map(|name| machine.intern_string(name));
        let known = machine.event_kinds().iter().position(|kind| kind.name == name_);
        let kind = known.map_or_else(
            || {
                let facts = EventFacts::default();
                let format = Arc::new(format);
                let kind =
                    EventKind { name: name_, provider, short_name, id: 7, facts, format, samples: None };
                machine.add_event_kind(kind).unwrap()
            },
            |position| EventKindId(position as u16),
        );
        let tid = if is_switch { fields[0] } else { fields[3] };
        let thread = machine.intern_thread(process, Tid(tid as u32), name);
        let record = EventRecord { time: at(ms), thread, kind, cpu, ..EventRecord::default() };
        machine.add_event_record(&record, &bytes).unwrap();
    }
}

/// Of a switch: from whom, with which priority and state, to whom, with which priority. Of a waking: whom, with which priority, on which
/// CPU; and by whom.
const SWITCHES: [(u64, u16, &str, &[i64]); 7] = [
    (1, 0, "sched_switch", &[0, 120, 0, 301, 119]),
    (2, 0, "sched_waking", &[300, 120, 1, 301]),
    (3, 1, "sched_switch", &[0, 120, 0, 300, 120]),
    (4, 0, "sched_switch", &[301, 119, 1, 0, 120]),
    (5, 1, "sched_waking", &[301, 119, 0, 300]),
    (6, 1, "sched_switch", &[300, 120, 2, 0, 120]),
    (9, 0, "sched_switch", &[0, 120, 0, 301, 119]),
];

/// A machine that slept for a second before it was recorded, and another one while it was.
fn slept(machine: &mut ExportMachine) {
    let anchor = |ms: u64, slept: u64| ClockAnchor {
        monotonic: at(ms),
        realtime: REALTIME,
        boottime: Some(Nanos(at(ms).0 + slept * 1000 * MS)),
    };
    let clocks = &mut machine.system_mut().clocks;
    (clocks.start, clocks.end) = (Some(anchor(0, 1)), Some(anchor(8, 2)));
}

#[test]
fn switches_are_rows_of_cpus_and_states_of_threads() {
    let mut machine = ExportMachine::default();
    slept(&mut machine);
    scheduled(&mut machine, &SWITCHES);
    let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
    let expected = json!([
        [0, 301, ns(1), 3 * MS],
        [1, 300, ns(3), 3 * MS],
        [0, 0, ns(4), 5 * MS],
        [1, 0, ns(6), null],
        // Behind the second snapshot of clocks.
        [0, 301, ns(9), null],
    ]);
    assert_eq!(fields(&told["cpus"], &["cpu", "tid", "time", "lasted"]), expected);
    let expected = json!([
        [301, "Running", ns(1), 3 * MS, 0, null],
        [300, "R", ns(2), MS, null, 301],
        [300, "Running", ns(3), 3 * MS, 1, null],
        [301, "S", ns(4), MS, null, null],
        [301, "R", ns(5), 4 * MS, null, 300],
        [300, "D", ns(6), null, null, null],
        [301, "Running", ns(9), null, 0, null],
    ]);
    assert_eq!(fields(&told["states"], &["tid", "state", "time", "lasted", "cpu", "waker"]), expected);
    let waking = json!({ "comm": "app", "pid": 301, "prio": 119, "target_cpu": 0 });
    let all = told["scheduler"].as_array().unwrap();
    assert_eq!((&all[4]["event"], &all[4]["fields"]), (&json!("sched_waking"), &waking));
    assert_eq!(told["gaps"], Value::Null);
}

/// Where nobody tells the time since boot, times are the same.
#[test]
fn switches_have_their_times_without_a_time_since_boot() {
    for has_anchor in [false, true] {
        let mut machine = ExportMachine::default();
        machine.system_mut().start = at(0);
        if has_anchor {
            let anchor = ClockAnchor { monotonic: at(3), realtime: REALTIME, boottime: None };
            machine.system_mut().clocks.start = Some(anchor);
        }
        scheduled(&mut machine, &SWITCHES);
        let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
        let times: Vec<u64> = SWITCHES.iter().map(|(ms, ..)| ns(*ms)).collect();
        let found = told["scheduler"].as_array().unwrap().iter().map(|event| event["time"].as_u64().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), times);
    }
}

/// Between two switches of a CPU that do not fit together others happened. If none was lost, they were not asked for: of a CPU nobody
/// knows then who ran on it, and of a thread not when.
#[test]
fn switches_of_some_threads_are_no_rows() {
    let of_one: Vec<_> = SWITCHES
        .into_iter()
        .filter(|(.., name, fields)| *name != "sched_switch" || fields[0] == 301)
        .collect();
    // The same thread leaves the CPU again, and never came.
    let again: (u64, u16, &str, &[i64]) = (12, 0, "sched_switch", &[301, 119, 1, 0, 120]);
    let of_one = [&of_one[..], &[again]].concat();
    for (lost, expected) in
        [(None, json!([null, null])), (Some(0), json!([null, null])), (Some(1), json!([2, [0]]))]
    {
        let mut machine = ExportMachine::default();
        machine.system_mut().lost = lost;
        scheduled(&mut machine, &of_one);
        let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
        let rows = told["cpus"].as_array().map(Vec::len);
        assert_eq!(json!([rows, told["gaps"]]), expected, "{lost:?} lost");
        assert_eq!(told["scheduler"].is_null(), rows.is_none(), "nor wakeups without switches");
    }
}

/// Many are told in several pieces, and those before a gap are not told of as behind it.
#[test]
fn switches_are_in_pieces() {
    let mut machine = ExportMachine::default();
    machine.system_mut().lost = Some(5);
    let to_and_fro: [&[i64]; 2] = [&[0, 120, 0, 301, 119], &[301, 119, 1, 0, 120]];
    // One is missing between 700 and 702.
    let all =
        (0..1000).filter(|at| *at != 701).map(|at| (at, 3, "sched_switch", to_and_fro[at as usize % 2]));
    scheduled(&mut machine, &all.collect::<Vec<_>>());
    let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
    let rows = told["cpus"].as_array().unwrap();
    assert_eq!(rows.len(), 999);
    let not_ended: Vec<_> =
        rows.iter().filter(|row| row["lasted"].is_null()).map(|row| &row["time"]).collect();
    assert_eq!(json!(not_ended), json!([ns(700), ns(999)]));
    assert_eq!(told["gaps"], json!([3]));
}

/// A process ends behind the last that is told of its threads.
#[test]
fn a_process_ends_behind_its_last_switch() {
    let mut machine = ExportMachine::default();
    scheduled(&mut machine, &SWITCHES);
    machine.end_process(ProcessId(0), at(8));
    let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
    assert_eq!(told["processes"][0]["end"], ns(9) + 1);
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
