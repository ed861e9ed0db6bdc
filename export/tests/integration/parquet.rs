//! Parquet against recordings of known truth, as three readers take it (`tests/python/parquet_tables.py`), and the
//! queries of `docs/parquet.md`, as the last two answer them (`tests/python/parquet_queries.py`).

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use collector_common::ids::Nanos;
use collector_common::record::{ExportMachine, ProcessId};
use export::format::parquet::Parquet;
use export::symbolize::Symbols;
use serde_json::{Value, json};

use crate::made::{CONTAINER, Made, PERIOD};
use crate::random::written;
use crate::several::{MS, REALTIME, START, Several, at};
use crate::spans;
use crate::tools;

/// What the readers take a file for; none where they are missing.
pub(crate) fn told(bytes: &[u8]) -> Option<Value> {
    let mut reader = tools::python("parquet_tables.py")?;
    let mut file = tempfile::Builder::new().suffix(".parquet").tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Some(serde_json::from_str(&tools::output(reader.arg(file.path()))).unwrap())
}

/// The same of a recording's.
pub(crate) fn read(machine: &ExportMachine, symbols: &Symbols) -> Option<Value> {
    told(&written(&Parquet, machine, symbols))
}

/// The answers to queries of a file, which these call `x.parquet`; none where the readers are missing.
pub(crate) fn answers(machine: &ExportMachine, symbols: &Symbols, queries: &[&str]) -> Option<Vec<Value>> {
    let mut reader = tools::python("parquet_queries.py")?;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.parquet"), written(&Parquet, machine, symbols)).unwrap();
    let asked = folder.path().join("queries.json");
    std::fs::write(&asked, serde_json::to_vec(queries).unwrap()).unwrap();
    let told = tools::output(reader.current_dir(folder.path()).stdin(File::open(asked).unwrap()));
    Some(serde_json::from_str(&told).unwrap())
}

fn several() -> Option<Value> {
    let several = Several::new();
    read(&several.machine, &several.symbols)
}

fn made() -> Option<Value> {
    let made = Made::new();
    read(&made.machine, &made.symbols)
}

/// The rows of one kind.
pub(crate) fn rows<'a>(told: &'a Value, record: &'a str) -> impl Iterator<Item = &'a Value> {
    told["rows"].as_array().unwrap().iter().filter(move |row| row["record"] == record)
}

/// Some columns of the rows of one kind.
pub(crate) fn columns(told: &Value, record: &str, names: &[&str]) -> Value {
    rows(told, record).map(|row| names.iter().map(|name| row[name].clone()).collect::<Value>()).collect()
}

#[test]
fn samples_are_in_the_order_of_time_with_all_their_facts() {
    let Some(told) = several() else { return };
    let names = ["time_ns", "cpu", "kind", "value", "pid", "process", "tid", "thread", "attributes"];
    let row = |ms: u64, cpu: u32, kind: &str, value: i64, (tid, thread): (u32, &str), attributes: Value| {
        let (pid, process) = if tid < 400 { (300, "app") } else { (400, thread) };
        json!([at(ms).0, cpu, kind, value, pid, process, tid, thread, attributes])
    };
    let (early, late, worker) = ((300, "app"), (300, "app: ready"), (301, "worker"));
    let (child, again) = ((400, "child"), (400, "again"));
    let (ms, none) = (MS as i64, Value::Null);
    let expected = json!([
        row(1, 0, "cpu", 1, early, none.clone()),
        row(2, 0, "alloc_space", 4096, early, none.clone()),
        row(3, 0, "alloc_space", 512, worker, none.clone()),
        row(5, 1, "cpu", 1, worker, none.clone()),
        row(6, 1, "cpu", 2, worker, none.clone()),
        row(7, 0, "alloc_space", -96, late, none.clone()),
        row(8, 0, "cpu", 1, late, none.clone()),
        row(9, 0, "cpu", 1, late, none.clone()),
        row(11, 0, "sched:sched_process_exec", 1, child, none.clone()),
        row(12, 0, "cpu", 1, child, none.clone()),
        row(15, 1, "off_cpu", 10 * ms, worker, json!({ "lock": "0x7f00" })),
        row(16, 1, "off_cpu", 7 * ms, late, json!({ "estimated": "yes" })),
        row(20, 1, "off_cpu", 10 * ms, worker, json!({ "path": "/var/log/x", "bytes": "4096" })),
        row(25, 1, "off_cpu", 5 * ms, worker, none.clone()),
        row(31, 0, "cpu", 1, again, none.clone()),
    ]);
    assert_eq!(columns(&told, "sample", &names), expected);
    for row in rows(&told, "sample") {
        assert_eq!(row["time"].as_u64().unwrap() - REALTIME, row["time_ns"].as_u64().unwrap() - START);
        let expected = match row["kind"].as_str().unwrap() {
            "cpu" => json!(["count", MS]),
            "off_cpu" => json!(["nanoseconds", 1]),
            "alloc_space" => json!(["bytes", 1]),
            _ => json!(["count", 1]),
        };
        assert_eq!(json!([row["unit"], row["period"]]), expected);
        // Only the sample at 9 ms has no stack.
        assert_eq!(row["stack"].is_null(), row["time_ns"] == at(9).0);
    }
}

#[test]
fn stacks_are_rows_of_functions_innermost_first() {
    let Some(told) = several() else { return };
    let frame = |depth: u32, function: &str, address: u64, place: (Option<&str>, Option<u32>)| {
        json!([
            depth,
            function,
            function,
            "/opt/app",
            "abcd01",
            address,
            place.0,
            place.1,
            function == "helper"
        ])
    };
    let main = |depth: u32| frame(depth, "main", 0x4100, (Some("main.c"), Some(7)));
    let expected = json!([
        frame(0, "helper", 0x4200, (Some("helper.h"), Some(3))),
        frame(1, "run", 0x4200, (Some("run.c"), Some(20))),
        main(2),
        frame(0, "wait", 0x4300, (None, None)),
        main(1),
        frame(0, "allocate", 0x4400, (None, None)),
        main(1),
    ]);
    let names = ["depth", "function", "symbol", "module", "build_id", "address", "file", "line", "inlined"];
    assert_eq!(columns(&told, "frame", &names), expected);
}

#[test]
fn frames_that_are_no_functions_of_files_are_kept() {
    let Some(told) = made() else { return };
    let samples: Vec<&Value> = rows(&told, "sample").collect();
    // How often each stack occurs.
    let mut counts = json!({});
    for sample in &samples {
        let frames = rows(&told, "frame").filter(|row| row["stack"] == sample["stack"]);
        let names: Vec<&str> = frames.map(|row| row["function"].as_str().unwrap()).collect();
        let key = names.join("|");
        counts[&key] = json!(counts[&key].as_u64().unwrap_or(0) + 1);
    }
    let expected = json!({
        "work(int; char)|main": 60,
        "recurse|recurse|recurse|main": 10,
        "vfs_read|work(int; char)|main": 8,
        "prog+0x8123|[stack cut]": 4,
        "[unmapped]+0xdead0000": 2,
        "": 1,
    });
    assert_eq!(counts, expected);
    let frame = |function: &str| {
        let row = rows(&told, "frame").find(|row| row["function"] == function).unwrap();
        let names = ["symbol", "module", "address", "kernel", "guessed"];
        names.iter().map(|name| row[name].clone()).collect::<Value>()
    };
    assert_eq!(frame("work(int; char)"), json!(["_Z4workic", "/opt/prog", 0x4200, false, false]));
    assert_eq!(frame("vfs_read"), json!(["vfs_read", "[kernel]", 0xffff_ffff_8123_4567_u64, true, false]));
    assert_eq!(frame("prog+0x8123"), json!([null, "/opt/prog", 0x8123, false, false]));
    assert_eq!(frame("[stack cut]"), json!([null, null, null, false, false]));
    // The outer one of two is guessed; its return address is behind the call.
    let recursive = rows(&told, "frame").filter(|row| row["function"] == "recurse");
    let told: Value = recursive.map(|row| json!([row["address"], row["guessed"]])).collect();
    assert_eq!(told, json!([[0x4300, false], [0x4310, true], [0x4300, false]]));
}

#[test]
fn processes_have_rows_of_their_own() {
    let Some(told) = several() else { return };
    let names = ["process_id", "pid", "process", "parent_id", "time", "time_ns", "end_time", "end_ns"];
    let (start, end) = (at(10).0, at(20).0);
    let day = |ms: u64| REALTIME + ms * MS;
    let expected = json!([
        [0, 300, "app", null, null, null, null, null],
        [1, 400, "child", 0, day(10), start, day(20), end],
        [2, 400, "again", null, day(30), at(30).0, null, null],
    ]);
    assert_eq!(columns(&told, "process", &names), expected);
    let ids = columns(&told, "sample", &["process", "process_id"]);
    let expected = [json!(["app", 0]), json!(["child", 1]), json!(["again", 2])];
    assert!(ids.as_array().unwrap().iter().all(|row| expected.contains(row)));

    let Some(told) = made() else { return };
    let names = ["pid", "parent_id", "uid", "user", "namespace_pid", "command", "container", "cgroup"];
    let command = "prog --fast \"two words\"";
    let cgroup = format!("/docker/{CONTAINER}");
    // Who a user of a container is nobody says.
    let expected = json!([
        [100, null, 1000, "ann", 1, command, null, null],
        [200, 0, 1000, null, 1, command, CONTAINER, cgroup],
    ]);
    assert_eq!(columns(&told, "process", &names), expected);
    assert_eq!(columns(&told, "program", &["pid", "process", "command"]), json!([[100, "prog", command]]));
    for sample in rows(&told, "sample") {
        let container = if sample["pid"] == 200 { json!(CONTAINER) } else { Value::Null };
        assert_eq!((&sample["container"], &sample["period"]), (&container, &json!(PERIOD)));
    }
}

#[test]
fn programs_have_the_time_when_they_were_executed() {
    let mut several = Several::new();
    let machine = &mut several.machine;
    let shell = ProcessId(0);
    for (time, name, arguments) in [(Nanos(0), "sh", "sh\0-c\0true\0"), (at(3), "true", "true\0")] {
        let program = machine.add_program(shell, time, name);
        machine.set_arguments(program, arguments.as_bytes(), false);
    }
    let Some(told) = read(machine, &several.symbols) else { return };
    let expected = json!([
        [0, 300, "sh", "sh -c true", null, null],
        [0, 300, "true", "true", at(3).0, REALTIME + 3 * MS],
    ]);
    assert_eq!(
        columns(&told, "program", &["process_id", "pid", "process", "command", "time_ns", "time"]),
        expected
    );
    // The child has what its parent executed last before it was made.
    let expected = json!([["app", "true"], ["child", "true"], ["again", null]]);
    assert_eq!(columns(&told, "process", &["process", "command"]), expected);
}

#[test]
fn spans_lie_on_timelines_of_their_owners() {
    let Some(told) = read(&spans::recording(), &Symbols::default()) else { return };
    let names = ["timeline", "span", "time_ns", "end_ns", "pid", "tid", "attributes", "numbers"];
    let request =
        |name: &str, start: u64, end: u64| json!(["requests", name, start, end, 7, null, null, null]);
    let (texts, numbers) =
        (json!({ "path": "/a", "size": "-5000000000" }), json!({ "size": -5_000_000_000_i64 }));
    let expected = json!([
        ["requests", "first", 1100, 1500, 7, null, texts, numbers],
        request("parse", 1100, 1200),
        request("answer", 1200, 1500),
        request("second", 1300, 1600),
        request("third", 1500, 1700),
        ["phases", "sweep", 1250, 1250, 7, 8, null, null],
        ["builds", "all", 1050, null, null, null, null, null],
    ]);
    assert_eq!(columns(&told, "span", &names), expected);
}

#[test]
fn the_recording_is_told_of_beside_the_rows() {
    let Some(told) = made() else { return };
    let expected = json!({
        "collector.host": "build-07",
        "collector.kernel": "Linux 6.18.0",
        "collector.architecture": "x86_64",
        "collector.distribution": "Debian GNU/Linux 12 (bookworm)",
        "collector.processor": "A B @ 2 GHz",
        "collector.memory": "8589934592",
        "collector.cpus": "2",
        "collector.command": "prog --fast",
        "collector.start": "2025-06-15T15:06:40.123456789Z",
        "collector.end": "2025-06-15T15:06:42.123456789Z",
        "collector.start_ns": "1000",
        "collector.end_ns": "2000001000",
        "collector.lost": "3",
        "collector.account": "3 lost (ring_full 3)\n100.00 % are complete",
    });
    assert_eq!(told["facts"], expected);
    let Some(told) = several() else { return };
    assert_eq!(told["facts"]["collector.account"], "5 lost (ring_full 5)\nqueue: 7.5 requests");
}

#[test]
fn the_documentation_has_every_column_with_its_type() {
    let machine = ExportMachine::default();
    let Some(told) = read(&machine, &Symbols::unresolved(&machine)) else { return };
    assert_eq!(told["rows"], json!([]));
    let documented = documentation();
    let documented = documented.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let documented: Vec<String> =
        documented.map(|(column, rest)| format!("{column} {}", rest.split(" | ").next().unwrap())).collect();
    let schema = told["schema"].as_array().unwrap().iter().map(|field| {
        let (name, kind) = field.as_str().unwrap().split_once(' ').unwrap();
        let kind = match kind {
            "string" => "text",
            "int64" => "integer",
            "uint64" => "unsigned integer",
            "bool" => "yes or no",
            "timestamp[ns, tz=UTC]" => "time",
            map if map.starts_with("map<string, string") => "map of text",
            map if map.starts_with("map<string, int64") => "map of integers",
            other => panic!("{other}"),
        };
        format!("{name} {kind}")
    });
    assert_eq!(schema.collect::<Vec<_>>(), documented);
}

fn documentation() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/parquet.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn queries_of_the_documentation_are_answered() {
    let several = Several::new();
    let text = documentation();
    let queries: Vec<&str> =
        text.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let Some(answers) = answers(&several.machine, &several.symbols, &queries) else { return };
    let expected = [
        // 1 and 2 of `worker`, 2 of `app`, 1 of `child` and 1 of `again`; that without a stack is in no function.
        json!([["helper", 7.0]]),
        json!([["helper", 7.0], ["main", 7.0], ["run", 7.0]]),
        json!([
            ["worker", "0x7f00", "wait", 1, 10.0],
            ["worker", null, "wait", 1, 10.0],
            ["app: ready", null, "wait", 1, 7.0],
            ["worker", null, "wait", 2, 5.0],
        ]),
        json!([
            ["app", "main;run;helper", 5],
            ["again", "main;run;helper", 1],
            ["child", "main;run;helper", 1]
        ]),
        json!([[300, "app", null, 6.0], [400, "child", "app", 1.0], [400, "again", null, 1.0]]),
        json!([["/var/log/x", 4096, 4096]]),
    ];
    assert_eq!(answers, expected);
}

#[test]
fn without_a_time_of_day_there_is_the_recordings_clock() {
    let mut several = Several::new();
    several.machine.system_mut().clocks = <_>::default();
    let Some(told) = read(&several.machine, &several.symbols) else { return };
    assert!(told["rows"].as_array().unwrap().iter().all(|row| row["time"].is_null()));
    let times: Vec<u64> = rows(&told, "sample").map(|row| row["time_ns"].as_u64().unwrap()).collect();
    let ms = [1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 15, 16, 20, 25, 31];
    assert_eq!(times, ms.map(|ms| at(ms).0));
    assert!(told["facts"]["collector.start"].is_null());
}
