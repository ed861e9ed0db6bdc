//! How processes ended, and their pids in their namespaces, in each format that holds these, by readers that are not ours; and what is told
//! of the others.

use collector_common::ids::Nanos;
use collector_common::record::{Exit, ExportMachine, ProcessId};
use export::format::{Contents, Held, Part, Profile, by_name, formats};
use export::symbolize::Symbols;
use serde_json::{Value, json};

use crate::made::Made;
use crate::tools::{file, python, tool};
use crate::{jfr, otlp, parquet, perfetto};

/// The first process of the made recording ends with a status, the second one by a signal; both are 1 in their namespaces.
pub(crate) fn ended() -> Made {
    let mut made = Made::new();
    for (id, exit) in [(0, Exit::Code(3)), (1, Exit::Signal(9))] {
        made.machine.end_process(ProcessId(id), Nanos(1_000_000_000 + u64::from(id)));
        made.machine.process_mut(ProcessId(id)).unwrap().exit = Some(exit);
    }
    made
}

fn written(format: &str, machine: &ExportMachine, symbols: &Symbols) -> Vec<u8> {
    let mut bytes = Vec::new();
    by_name(format).unwrap().write(Profile { machine, symbols }, &mut bytes).unwrap();
    bytes
}

/// Of each process the pid, the one in its namespace, its status and its signal.
fn expected() -> Value {
    json!([[100, 1, 3, null], [200, 1, null, 9]])
}

#[test]
fn jfr_has_them_as_the_jdk_shows_and_as_is_read() {
    let Made { machine, symbols } = ended();
    let bytes = written("jfr", &machine, &symbols);
    let read = export::import::jfr::import(&*bytes).unwrap().machine;
    let exits: Vec<_> =
        read.processes().iter().map(|process| (process.namespace_pid, process.exit)).collect();
    let recorded: Vec<_> = machine.processes().iter().map(|of| (of.namespace_pid, of.exit)).collect();
    assert_eq!(exits, recorded);
    let Some(mut command) = tool("jfr") else { return };
    let events = jfr::printed(&mut command, &file(&bytes, ".jfr"));
    let processes = events.iter().filter(|event| event["type"] == "collector.Process");
    let known = |value: &Value| if *value == -1 { Value::Null } else { value.clone() };
    let told = processes.map(|event| {
        let of = &event["values"];
        let [pid, inner] = ["processId", "namespaceProcessId"].map(|name| of[name].clone());
        json!([pid, inner, known(&of["exitStatus"]), known(&of["exitSignal"])])
    });
    let mut told: Vec<Value> = told.collect();
    told.sort_by_key(|row| row[0].as_u64());
    assert_eq!(Value::from(told), expected());
}

#[test]
fn parquet_has_columns_of_them() {
    let Made { machine, symbols } = ended();
    let Some(told) = parquet::read(&machine, &symbols) else { return };
    let names = ["pid", "namespace_pid", "exit_status", "exit_signal"];
    assert_eq!(parquet::columns(&told, "process", &names), expected());
}

#[test]
fn perfetto_has_moments_of_them() {
    let Made { machine, symbols } = ended();
    let Some(told) = perfetto::told(&written("perfetto", &machine, &symbols)) else { return };
    let has = |pid: u32, name: &str| {
        let mut events = told["events"].as_array().unwrap().iter();
        events.any(|event| event["track"] == "process" && event["pid"] == pid && event["name"] == name)
    };
    assert!([100, 200].iter().all(|&pid| has(pid, "pid in its namespace: 1")));
    assert!(has(100, "exit status: 3") && has(200, "ended by signal: 9"), "{}", told["events"]);
    assert!(!has(200, "exit status: 3"));
}

/// A process's pid in its namespace; how it ended has no place.
#[test]
fn nettrace_has_the_pids() {
    let Made { mut machine, symbols } = ended();
    // One of which that is not known.
    machine.process_mut(ProcessId(1)).unwrap().namespace_pid = None;
    let bytes = written("nettrace", &machine, &symbols);
    let read = export::import::nettrace::import(std::io::Cursor::new(&bytes)).unwrap().machine;
    let mut inner: Vec<_> = read
        .processes()
        .iter()
        .map(|process| (process.pid.0, process.namespace_pid.map(|pid| pid.0)))
        .collect();
    inner.sort_unstable();
    assert_eq!(inner, [(100, Some(1)), (200, Some(200))]);
    let Some(mut reader) = python("nettrace_trace.py") else { return };
    let lines = file(&bytes, ".nettrace");
    let told: Value = serde_json::from_str(&crate::tools::output(reader.arg(&*lines))).unwrap();
    let begun = told["processes"].as_array().unwrap().iter().filter(|of| of["event"] != "ProcessExit");
    let mut told: Vec<Value> = begun.map(|of| json!([of["pid"], of["namespace_pid"]])).collect();
    told.sort_by_key(|row| row[0].as_u64());
    assert_eq!(told, [json!([100, 1]), json!([200, 200])]);
}

#[test]
fn json_lines_have_them() {
    let Made { machine, symbols } = ended();
    let bytes = written("jsonl", &machine, &symbols);
    let Some(mut jq) = tool("jq") else { return };
    let lines = file(&bytes, ".jsonl");
    let exits = r#"[inputs | select(.type == "exit") | [.pid, .namespace_pid, .status, .signal]]"#;
    let told: Value =
        serde_json::from_str(&crate::tools::output(jq.args(["-n", "-c", exits]).arg(&*lines))).unwrap();
    assert_eq!(told, expected());
    let all = r#"[inputs | select(.type == "sample") | .namespace_pid] | unique"#;
    let told = crate::tools::output(tool("jq").unwrap().args(["-n", "-c", all]).arg(&*lines));
    assert_eq!(told.trim(), "[1]");
    let times = r#"[inputs | select(.type == "exit") | [.time_ns, .time, .process]] | .[0]"#;
    let told = crate::tools::output(tool("jq").unwrap().args(["-n", "-c", times]).arg(&*lines));
    assert_eq!(told.trim(), r#"[1000000000,"2025-06-15T15:06:41.123455789Z","prog"]"#);
}

#[test]
fn otlp_has_attributes_of_them() {
    let Made { machine, symbols } = ended();
    let told = otlp::told(&written("otlp", &machine, &symbols));
    let resources = told.as_array().unwrap().iter().map(|of| &of["resource"]);
    let names = ["process.pid", "process.vpid", "process.exit.code", "collector.process.exit.signal"];
    let mut told: Vec<Value> = resources
        .map(|of| names.iter().map(|name| of.get(*name).cloned().unwrap_or_default()).collect())
        .collect();
    told.sort_by_key(|row| row[0].as_u64());
    assert_eq!(Value::from(told), expected());
}

/// The formats that have no place say so, and a pid that is the same everywhere is nothing that is left out.
#[test]
fn what_has_no_place_is_told() {
    let Made { mut machine, symbols } = ended();
    let contents = Contents::of(Profile { machine: &machine, symbols: &symbols });
    for format in formats() {
        let line = contents.left_out(*format).unwrap_or_default();
        for (part, text) in
            [(Part::ExitStatuses, "exit statuses"), (Part::NamespacePids, "pids in their namespaces")]
        {
            let is_held = format.holds().held(part) == Held::Wholly;
            assert_eq!(line.contains(text), !is_held, "{}: {line}", format.name());
        }
    }
    for id in [0, 1] {
        let process = machine.process_mut(ProcessId(id)).unwrap();
        (process.namespace_pid, process.exit) = (Some(process.pid), None);
    }
    let contents = Contents::of(Profile { machine: &machine, symbols: &symbols });
    assert!(!contents.has(Part::ExitStatuses) && !contents.has(Part::NamespacePids));
}
