//! Spans of a server and its workers, by the formats that hold them, as others read them.

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::record::{AttributeListId, AttributeValue, ExportMachine, Sample, TimelineOwner, Unit};
use export::format::firefox::Firefox;
use export::format::jfr::Jfr;
use export::format::jsonl::JsonLines;
use export::format::perfetto::Perfetto;
use export::format::{ExportFormat, Profile};
use export::symbolize::Symbols;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::jfr::{duration, nanoseconds, printed};
use crate::random::{imported, written};
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
    let size = machine.intern_string("size");
    let path = [(key, value.into()), (size, AttributeValue::Number(-5_000_000_000))];
    let path = machine.attributes_mut().intern(&path);
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
        ["requests", "server", "first", null, 1100, 400, { "path": "/a", "size": -5_000_000_000_i64 }],
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

/// Firefox Profiler's own command line shows them on their threads, in a row for each timeline: of a process its first thread, and of
/// nobody in particular the first of all. What did not end lasts until the end, which is an interval after the last sample there.
#[test]
fn firefox_profiler_shows_them_as_markers_of_their_threads() {
    let Some(mut reader) = tools::node("firefox_file.mjs") else { return };
    let file = tempfile::Builder::new().suffix(".firefox.json.gz").tempfile().unwrap();
    write(&Firefox, &mut file.as_file());
    let threads: Value = serde_json::from_str(&tools::output(reader.arg(file.path()))).unwrap();
    let shown = threads.as_array().unwrap().iter().map(|thread| {
        let markers = thread["markers"].as_array().unwrap().iter();
        let markers = markers.map(|marker| {
            let of = ["name", "label", "start", "lasts"].map(|field| marker[field].clone());
            let own = ["span", "attribute0", "attribute1"].map(|field| marker["data"][field].clone());
            json!([of, own])
        });
        let of = ["pid", "tid", "process", "name"].map(|field| thread[field].clone());
        json!([of, markers.collect::<Vec<_>>()])
    });
    let request = |span, start, lasts, label| json!([["requests", label, start, lasts], [span, null, null]]);
    let expected = json!([[
        [7, 8, "server", "worker"],
        [
            [["builds", "all", 50, 1_000_950], ["all", null, null]],
            [
                ["requests", "first (path: /a, size: -5,000,000,000)", 100, 400],
                ["first", "/a", -5_000_000_000_i64]
            ],
            request("parse", 100, 100, "parse"),
            request("answer", 200, 300, "answer"),
            [["phases", "sweep", 250, 0], ["sweep", null, null]],
            request("second", 300, 300, "second"),
            request("third", 500, 200, "third"),
        ]
    ]]);
    assert_eq!(json!(shown.collect::<Vec<_>>()), expected);
}

/// Where no thread has anything, there is one of each process that has a span, or of none.
#[test]
fn firefox_profiler_has_those_of_no_thread() {
    let mut machine = ExportMachine::default();
    (machine.system_mut().start, machine.system_mut().end) = (Nanos(5000), Nanos(6000));
    let timeline = machine.add_timeline("builds", TimelineOwner::Recording);
    // It began before the recording, and ended after it.
    let span = machine.begin_span(timeline, "all", Nanos(3000), AttributeListId::NONE);
    machine.end_span(span, Nanos(7000));
    let threads = |machine: &ExportMachine| {
        let mut out = Vec::new();
        let symbols = Symbols::default();
        Firefox.write(Profile { machine, symbols: &symbols }, &mut out).unwrap();
        let file: Value = serde_json::from_reader(flate2::read::GzDecoder::new(&out[..])).unwrap();
        let threads = file["threads"].as_array().unwrap().iter().map(|thread| {
            let markers = &thread["markers"];
            let columns = ["startTime", "endTime", "phase"].map(|column| markers[column].clone());
            json!([thread["tid"], thread["name"], columns, thread["samples"]["timeDeltas"]])
        });
        json!(threads.collect::<Vec<_>>())
    };
    // 1 is an interval. The samples tell of all of the time.
    let interval = json!([[0.0], [0.004], [1]]);
    assert_eq!(threads(&machine), json!([["0", "nothing recorded", interval, [0.0, 0.004]]]));

    for (pid, name) in [(8, "idle"), (9, "batch"), (7, "server")] {
        let process = machine.add_process(Pid(pid), name, None, Nanos(0));
        if name != "idle" {
            let timeline = machine.add_timeline("jobs", TimelineOwner::Process(process));
            machine.begin_span(timeline, name, Nanos(4000), AttributeListId::NONE);
        }
    }
    // 2 is the start of one without an end.
    let both = json!([[0.0, 0.001], [0.004, 0.0], [1, 2]]);
    let one = json!([[0.001], [0.0], [2]]);
    assert_eq!(
        threads(&machine),
        json!([["7", "server", one, []], ["9", "batch", both, [0.0, 0.004]]]),
        "nobody's are with the process that was added first"
    );
}

/// The JDK shows them as events that last, of their thread where they have one. What an event has no number for is not available.
#[test]
fn jfr_has_them_as_events_that_last() {
    const NOT_THERE: i64 = i64::MIN;
    let Some(mut jfr) = tools::tool("jfr") else { return };
    let mut bytes = Vec::new();
    write(&Jfr, &mut bytes);
    let file = tools::file(&bytes, ".jfr");
    let events = printed(&mut jfr, &file);
    let Some(mut jfr) = tools::tool("jfr") else { return };
    let shown = tools::output(jfr.args(["print", "--events", "collector.Span"]).arg(&*file));
    let sizes = shown.lines().filter_map(|line| line.trim().strip_prefix("size = "));
    let mut sizes: Vec<_> = sizes.collect();
    sizes.sort_unstable();
    assert_eq!(sizes, ["-5000000000", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A"]);
    let spans = events.iter().filter(|event| event["type"] == "collector.Span").map(|event| {
        let of = &event["values"];
        let time = nanoseconds(of["startTime"].as_str().unwrap());
        let lasted = duration(of["duration"].as_str().unwrap());
        let texts = ["timeline", "name", "process", "processId", "endSeen", "attributes", "size"];
        let thread = &of["eventThread"];
        json!([texts.map(|field| of[field].clone()), [thread["osName"], thread["osThreadId"]], time, lasted])
    });
    let none = json!([null, null]);
    let request = |name, start, lasted| {
        let (all, size) = if name == "first" {
            (json!("path=/a, size=-5000000000"), -5_000_000_000)
        } else {
            (Value::Null, NOT_THERE)
        };
        json!([["requests", name, "server", 7, true, all, size], none, start, lasted])
    };
    let expected = json!([
        [["builds", "all", null, 0, false, null, NOT_THERE], none, 1050, 950],
        request("parse", 1100, 100),
        request("first", 1100, 400),
        request("answer", 1200, 300),
        [["phases", "sweep", "server", 7, true, null, NOT_THERE], ["worker", 8], 1250, 0],
        request("second", 1300, 300),
        request("third", 1500, 200),
    ]);
    let mut spans: Vec<Value> = spans.collect();
    spans.sort_by_key(|span| (span[2].as_u64(), span[3].as_u64()));
    assert_eq!(json!(spans), expected);
}

/// What is read of our own file is what was written.
#[test]
fn files_that_are_read_again_have_them() {
    // Times of Firefox's are from the recording's start.
    for (format, started) in [(&Jfr as &dyn ExportFormat, 0), (&Firefox, 1000)] {
        let mut bytes = Vec::new();
        write(format, &mut bytes);
        let imported = imported(&bytes).unwrap();
        assert!(imported.left_out.is_empty(), "{:?}", imported.left_out);
        assert_eq!(told(&imported.machine, started), told(&recording(), 0), "{}", format.name());
    }
}

/// A text, or a number that double precision holds.
#[derive(Clone, Debug)]
enum Said {
    Text(String),
    Number(i64),
}

fn attributes() -> impl Strategy<Value = Vec<(String, Said)>> {
    const LARGEST: i64 = 1 << 53;
    let said = prop_oneof![
        "[a-c,= ]{0,3}|-?[0-9]".prop_map(Said::Text),
        (-9..9_i64).prop_map(Said::Number),
        (-LARGEST..=LARGEST).prop_map(Said::Number),
    ];
    // A name that is there twice is a field of JFR once.
    prop::collection::btree_map("[ab]|a, b|name", said, 0..4).prop_map(|list| list.into_iter().collect())
}

proptest! {
    #[test]
    fn any_spans_are_read_as_they_were(
        spans in prop::collection::vec((0..4_usize, 0..900_u64, prop::option::of(0..99_u64), attributes()), 0..12)
    ) {
        let mut machine = ExportMachine::default();
        (machine.system_mut().start, machine.system_mut().end) = (Nanos(1000), Nanos(2000));
        let server = machine.add_process(Pid(7), "server", None, Nanos(900));
        let [worker, main] = [("worker", 8), ("server", 7)].map(|(name, tid)| {
            let name = machine.intern_string(name);
            TimelineOwner::Thread(machine.intern_thread(server, Tid(tid), name))
        });
        let owners = [TimelineOwner::Recording, TimelineOwner::Process(server), worker, main];
        for (owner, start, lasts, attributes) in spans {
            let list: Vec<_> = attributes
                .iter()
                .map(|(name, said)| match said {
                    Said::Text(text) => (machine.intern_string(name), machine.intern_string(text).into()),
                    Said::Number(number) => (machine.intern_string(name), AttributeValue::Number(*number)),
                })
                .collect();
            let attributes = machine.attributes_mut().intern(&list);
            let timeline = machine.add_timeline("work", owners[owner]);
            let span = machine.begin_span(timeline, "a", Nanos(1000 + start), attributes);
            if let Some(lasts) = lasts {
                machine.end_span(span, Nanos(1000 + start + lasts));
            }
        }
        for (format, started) in [(&Jfr as &dyn ExportFormat, 0), (&Firefox, 1000)] {
            let again = imported(&written(format, &machine, &Symbols::default())).unwrap();
            prop_assert_eq!(told(&again.machine, started), told(&machine, 0), "{}", format.name());
        }
    }
}

/// Spans of a recording whose times are so much less than they are.
fn told(machine: &ExportMachine, started: u64) -> Vec<impl Ord + std::fmt::Debug + use<>> {
    let spans = machine.spans().iter().map(|span| {
        let timeline = machine.timeline_of(span).unwrap();
        let owner = match timeline.owner {
            TimelineOwner::Recording => String::new(),
            TimelineOwner::Process(id) => machine.process(id).pid.to_string(),
            TimelineOwner::Thread(id) => {
                format!("{} {}", machine.thread(id).tid.0, machine.string(machine.thread(id).name))
            }
        };
        let attributes = machine.attributes().get(span.attributes).iter();
        let attributes = attributes.map(|&(name, value)| match value {
            AttributeValue::Label(text) => format!("{}={:?}", machine.string(name), machine.string(text)),
            AttributeValue::Number(number) => format!("{}={number}", machine.string(name)),
        });
        let attributes = attributes.collect::<Vec<_>>();
        let [timeline, name] = [timeline.name, span.name].map(|text| machine.string(text).to_owned());
        let since_boot = |time: Nanos| time.0 + started;
        (since_boot(span.start), span.end.map(since_boot), owner, timeline, name, attributes)
    });
    let mut spans: Vec<_> = spans.collect();
    spans.sort();
    spans
}

/// A kind of samples has another type than what is no sample.
#[test]
fn jfr_tells_spans_from_samples_that_are_called_so() {
    let Some(mut jfr) = tools::tool("jfr") else { return };
    let mut machine = recording();
    let kinds = ["span", "process"].map(|name| machine.add_kind(name, Unit::Count, 1));
    for kind in kinds {
        machine.add_sample(&Sample { time: Nanos(1500), kind, value: 5, ..Sample::default() });
    }
    let mut bytes = Vec::new();
    let symbols = Symbols::unresolved(&machine);
    Jfr.write(Profile { machine: &machine, symbols: &symbols }, &mut bytes).unwrap();
    let summary = tools::output(jfr.arg("summary").arg(&*tools::file(&bytes, ".jfr")));
    let count = |name: &str| {
        let mut lines = summary.lines().map(str::split_whitespace);
        lines.find_map(|mut words| words.next().filter(|word| *word == name).and(words.next()?.parse().ok()))
    };
    for (name, expected) in [("Span", 7), ("Span2", 1), ("Process", 1), ("Process2", 1)] {
        assert_eq!(count(&format!("collector.{name}")), Some(expected), "{name}: {summary}");
    }
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
        joined(&[
            &requests("first", 1100, 400),
            &json!({ "attributes": { "path": "/a", "size": -5_000_000_000_i64 } }),
        ]),
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
