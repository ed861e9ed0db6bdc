//! Spans of a server and its workers, by the formats that hold them, as others read them.

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::record::{AttributeListId, ExportMachine, TimelineOwner};
use export::format::jsonl::JsonLines;
use export::format::perfetto::Perfetto;
use export::format::{ExportFormat, Profile};
use export::symbolize::Symbols;
use serde_json::{Value, json};

use crate::tools;

/// A recording from 1,000 to 2,000 ns: two requests that overlap, the first with two parts, of which one begins when the other ends;
/// a phase of a worker that has no sample; a build that did not end.
pub(crate) fn recording() -> ExportMachine {
    let mut machine = ExportMachine::default();
    (machine.system_mut().start, machine.system_mut().end) = (Nanos(1000), Nanos(2000));
    let server = machine.add_process(Pid(7), "server", None, Nanos(900));
    let name = machine.intern_string("worker");
    let worker = machine.intern_thread(server, Tid(8), name);
    let [key, value] = ["path", "/a"].map(|text| machine.intern_string(text));
    let path = machine.attributes_mut().intern(&[(key, value)]);
    let none = AttributeListId::NONE;
    let requests = TimelineOwner::Process(server);
    for (owner, timeline, name, start, end, attributes) in [
        (requests, "requests", "first", 1100, Some(1500), path),
        (requests, "requests", "parse", 1100, Some(1200), none),
        (requests, "requests", "answer", 1200, Some(1500), none),
        (requests, "requests", "second", 1300, Some(1600), none),
        (requests, "requests", "third", 1500, Some(1700), none),
        (TimelineOwner::Thread(worker), "phases", "sweep", 1250, Some(1250), none),
        (TimelineOwner::Recording, "builds", "all", 1050, None, none),
    ] {
        let timeline = machine.add_timeline(timeline, owner);
        let span = machine.begin_span(timeline, name, Nanos(start), attributes);
        if let Some(end) = end {
            machine.end_span(span, Nanos(end));
        }
    }
    machine
}

fn write(format: &dyn ExportFormat, out: &mut dyn std::io::Write) {
    let (machine, symbols) = (recording(), Symbols::default());
    format.write(Profile { machine: &machine, symbols: &symbols }, out).unwrap();
}

#[test]
fn perfetto_has_them_as_slices_one_within_another() {
    let Some(mut reader) = tools::python("perfetto_trace.py") else { return };
    let file = tempfile::NamedTempFile::new().unwrap();
    write(&Perfetto, &mut file.as_file());
    let told: Value = serde_json::from_str(&tools::output(reader.arg(file.path()))).unwrap();
    let slices = told["events"].as_array().unwrap().iter();
    let slices = slices.map(|event| {
        ["track", "owner", "name", "within", "time", "lasted", "notes"].map(|field| event[field].clone())
    });
    let expected = json!([
        ["builds", null, "all", null, 1050, null, {}],
        ["requests", "server", "first", null, 1100, 400, { "path": "/a" }],
        ["requests", "server", "parse", "first", 1100, 100, {}],
        ["requests", "server", "answer", "first", 1200, 300, {}],
        ["phases", "worker", "sweep", null, 1250, 0, {}],
        ["requests", "server", "second", null, 1300, 300, {}],
        ["requests", "server", "third", null, 1500, 200, {}],
    ]);
    assert_eq!(json!(slices.collect::<Vec<_>>()), expected);
    let threads = json!([{ "process": "server", "pid": 7, "tid": 8, "name": "worker" }]);
    assert_eq!(told["threads"], threads, "one without a sample");
}

#[test]
fn json_lines_have_one_for_each() {
    let mut bytes = Vec::new();
    write(&JsonLines, &mut bytes);
    let lines = str::from_utf8(&bytes).unwrap().lines().skip(1);
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let server = json!({ "pid": 7, "process": "server" });
    let requests = |span, start, lasted: u64| {
        let own = json!({ "timeline": "requests", "span": span, "time_ns": start, "duration_ns": lasted });
        joined(&[&own, &server])
    };
    let worker = json!({ "timeline": "phases", "span": "sweep", "time_ns": 1250, "duration_ns": 0, "tid": 8, "comm": "worker" });
    let expected = [
        joined(&[&json!({ "timeline": "builds", "span": "all", "time_ns": 1050 })]),
        joined(&[&requests("first", 1100, 400), &json!({ "attributes": { "path": "/a" } })]),
        requests("parse", 1100, 100),
        requests("answer", 1200, 300),
        joined(&[&worker, &server]),
        requests("second", 1300, 300),
        requests("third", 1500, 200),
    ];
    assert_eq!(lines, expected);
}

/// The members of several objects, and those that all lines have.
fn joined(objects: &[&Value]) -> Value {
    let common = json!({ "type": "span", "time": null });
    let members =
        [&common].into_iter().chain(objects.iter().copied()).flat_map(|object| object.as_object().unwrap());
    members.map(|(key, value)| (key.clone(), value.clone())).collect()
}
