//! JSON lines, read by Python and `jq`, of raw events that were put down byte by byte.

use std::collections::BTreeSet;
use std::{fmt, fs};

use collector_common::event::{ByteOrder, EventField, EventFormat, Extent, FieldKind, Place, Width};
use collector_common::ids::{Nanos, Pid};
use collector_common::record::{
    AttributeValue, ClockAnchor, Column, EventRecord, Exit, ExportMachine, Histogram, ProcessLife, Sample,
    Table, Unit,
};
use export::format::jfr::Jfr;
use export::format::jsonl::JsonLines;
use export::format::{ExportFormat as _, Profile};
use export::import::Imported;
use export::symbolize::Symbols;
use proptest::prelude::*;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::counted::Counted;
use crate::made::Made;
use crate::raw_events::{Recorded, event_kind, small};
use crate::tools::{output, tool};
use crate::{process_ends, random, spans};

fn written(machine: &ExportMachine, symbols: &Symbols) -> Vec<u8> {
    let mut bytes = Vec::new();
    JsonLines.write(Profile { machine, symbols }, &mut bytes).unwrap();
    bytes
}

/// Reads lines strictly: no member twice, no NaN, and compares them with what is known.
const READ: &str = r#"
import json, math, struct, sys

def members(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)

def refuse(constant):
    raise ValueError(constant)

lines = open(sys.argv[1], encoding="utf-8", newline="\n").read().split("\n")
assert lines.pop() == ""
lines = [json.loads(line, object_pairs_hook=members, parse_constant=refuse) for line in lines]
recording = lines.pop(0)
assert recording["type"] == "recording" and recording["host"] == "build-07" and recording["lost"] == 3
assert recording["account"] == ["3 lost (ring_full 3)"]
assert recording["kinds"] == [{"name": "made:all", "unit": "count", "period": 1}]
common = {"pid": 100, "tid": 101, "comm": "wörk\"er", "process": "prog"}
at = lambda ns: {"time": "2025-06-15T15:06:40.%09dZ" % (ns - 1000 + 789), "time_ns": ns}
sampled = {"cpu": 5, "value": 1, "unit": "count", "stack": ["vfs_read_[k]"]}
alone = lambda name, ns: {"type": "event", "event": "made:" + name, **at(ns), **common, "cpu": 0}
raw = lambda id, payload: {"id": id, "version": 3, "payload": payload}
fields = {
    "small": 254, "largest": 2**64 - 1, "smallest": -2**63, "negative": -300, "half": 1.5, "huge": -2.5e300,
    "address": "0xffff888100001000", "yes": True, "bits": -3, "text": "grüße \"a\"\\\n", "wide": "weit 😀",
    "ip": "127.0.0.1", "ip6": "fe00::1", "guid": "00112233-4455-6677-8899-aabbccddeeff",
    "when": "1970-01-01T00:00:00.0000010Z", "list": [1, 65535], "bytes": "00ab07", "point": {"x": -1, "name": "a"},
    "points": [{"x": 1, "name": "b"}, {"x": 2, "name": ""}], "small_2": 1,
}
expected = [
    {"type": "sample", "event": "made:all", **at(1000), **common, **sampled},
    {"type": "event", "event": "made:all", **at(2000), **common, **sampled, "fields": fields,
     "attributes": {"state": "blocked"}},
    {**alone("unknown", 3000), **raw(10, "01ff")},
    {**alone("text", 4000), "fields": {"number": 1e21, "text": "a\ufffdb"}, **raw(11, struct.pack("<d", 1e21).hex() + "61ff62")},
    {**alone("text", 5000), "fields": {"number": None, "text": "c"}, **raw(11, struct.pack("<d", math.nan).hex() + "63")},
    {**alone("text", 6000), "fields": {"number": None, "text": None}, **raw(11, "010203")},
    alone("unknown", 6500),
]
for line, known in zip(lines, expected):
    assert line == known, (line, known)
    assert all(type(line[name]) is type(known[name]) for name in known)
assert len(lines) == len(expected)
print("all", len(lines))
"#;

#[test]
fn python_reads_what_was_put_down() {
    let Some(mut python) = tool("python3") else { return };
    let Recorded { machine, symbols } = Recorded::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, written(&machine, &symbols)).unwrap();
    assert_eq!(output(python.args(["-c", READ]).arg(&path)), "all 7\n");
}

/// Samples of a recording without events; the totals are those of `made`.
#[test]
fn jq_counts_samples_by_function() {
    let Some(mut jq) = tool("jq") else { return };
    let Made { machine, symbols } = Made::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, written(&machine, &symbols)).unwrap();
    let filter = r#"
        def count(f): map(select(f)) | length;
        map(select(.type == "sample"))
        | [length, count(.stack[0] == "vfs_read_[k]"), count(.stack[-1] == "main"), count(.stack == null),
           count(.stack_guessed), count(.comm == "worker 7"), count(.pid == 200 and .tid == 200)]
        + [([.[].time_ns] | . == sort), all(.[]; (.time | sub("[.][0-9]+Z"; "Z") | fromdateiso8601) > 1.7e9)]
    "#;
    let told = output(jq.args(["-s", "-c", filter]).arg(&path));
    // 40 and 20 of work, 10 of recurse, 8 in the kernel, 4 cut, 2 stray and 1 without a stack.
    assert_eq!(told, "[85,8,78,1,10,21,14,true,true]\n");
}

/// Two processes that were asked for, of which the second goes on; a table, one without rows, and histograms.
fn counted() -> ExportMachine {
    let mut machine = ExportMachine::default();
    let system = machine.system_mut();
    (system.start, system.end) = (Nanos(1_000), Nanos(9_000_000_000));
    let realtime = 1_750_000_000_000_000_000;
    system.clocks.start = Some(ClockAnchor { monotonic: system.start, realtime, boottime: None });
    let shell = machine.add_process(Pid(7), "bash", None, Nanos(0));
    machine.add_program(shell, Nanos(0), "sh");
    let make = machine.add_process(Pid(20), "cc1", Some(shell), Nanos(2_000_001_000));
    let early = machine.add_program(make, Nanos(2_000_101_000), "env");
    machine.set_arguments(early, b"env\0cc1\0two \"words\"\0\0", false);
    let later = machine.add_program(make, Nanos(2_000_201_000), "cc1");
    machine.set_arguments(later, b"cc1\0-O", true);
    machine.end_process(make, Nanos(5_500_001_000));
    machine.process_mut(make).unwrap().exit = Some(Exit::Signal(9));
    // What it runs was executed later than the other one was made.
    machine.add_program(shell, Nanos(4_000_000_000), "bash");
    machine.add_life(ProcessLife { process: shell, made: Nanos(500) });
    machine.add_life(ProcessLife { process: make, made: Nanos(2_000_001_000) });
    let columns = [("calls", Unit::Count), ("in all", Unit::Nanoseconds), ("moved", Unit::Bytes)];
    let columns = columns.map(|(name, unit)| Column { name: name.to_owned(), unit }).to_vec();
    let rows = vec![
        ("read".to_owned(), vec![3, 4_500, 1 << 63]),
        ("wr\"ite\n".to_owned(), vec![2, 500, 0]),
        ("read".to_owned(), vec![1, 0, 7]),
    ];
    machine.add_table(Table { name: "system calls".to_owned(), columns, rows });
    machine.add_table(Table { name: "nothing".to_owned(), columns: Vec::new(), rows: Vec::new() });
    let mut add = |label: &str, unit, first_end, buckets: &[u64], sum| {
        let (name, label, buckets) = ("waits".to_owned(), label.to_owned(), buckets.to_vec());
        machine.add_histogram(Histogram { name, label, unit, first_end, buckets, sum });
    };
    add("all", Unit::Nanoseconds, 1_000, &[4, 0, 2, 1, 0, 0], 17_500);
    add("no end", Unit::Bytes, 1_024, &[0, 5], 1 << 40);
    add("none", Unit::Nanoseconds, 1_000, &[0, 0], 0);
    // Of powers of two up to the largest number, and beyond.
    add("large", Unit::Count, 1, &[1; 66], u64::MAX);
    machine
}

/// Reads what was counted, line by line as a stream, and compares it with what is known.
const READ_COUNTED: &str = r#"
import json, sys

types, found = [], {"process": [], "table": [], "histogram": []}
for line in open(sys.argv[1], encoding="utf-8"):
    line = json.loads(line)
    types.append(line["type"])
    if line["type"] in found:
        found[line.pop("type")].append(line)
assert types == ["recording", *["process"] * 2, *["table"] * 2, *["histogram"] * 4, "exit"], types

shell, make = found["process"]
assert shell == {
    "time": "2025-06-15T15:06:39.999999500Z", "time_ns": 500, "pid": 7, "process": "bash",
    "executed": [
        {"program": "sh", "arguments": []},
        {"program": "bash", "time": "2025-06-15T15:06:43.999999000Z", "time_ns": 4000000000, "arguments": []},
    ],
}, shell
assert make == {
    "time": "2025-06-15T15:06:42.000000000Z", "time_ns": 2000001000, "duration_ns": 3500000000, "pid": 20,
    "process": "cc1", "parent_pid": 7, "parent": "sh", "signal": 9,
    "executed": [
        {"program": "env", "time": "2025-06-15T15:06:42.000100000Z", "time_ns": 2000101000,
         "arguments": ["env", "cc1", 'two "words"', ""]},
        {"program": "cc1", "time": "2025-06-15T15:06:42.000200000Z", "time_ns": 2000201000,
         "arguments": ["cc1", "-O"], "arguments_cut": True},
    ],
}, make

calls, nothing = found["table"]
assert nothing == {"table": "nothing", "columns": [], "rows": []}, nothing
assert calls["table"] == "system calls"
assert calls["columns"] == [
    {"name": "calls", "unit": "count"}, {"name": "in all", "unit": "nanoseconds"}, {"name": "moved", "unit": "bytes"}]
assert [row["label"] for row in calls["rows"]] == ["read", 'wr"ite\n', "read"]
sums = [sum(column) for column in zip(*(row["numbers"] for row in calls["rows"]))]
assert sums == [6, 5000, 2**63 + 7], sums

waits, no_end, none, large = found["histogram"]
assert waits == {
    "histogram": "waits", "label": "all", "unit": "nanoseconds", "count": 7, "sum": 17500,
    "buckets": [{"from": 0, "to": 1000, "count": 4}, {"from": 1000, "to": 2000, "count": 0},
                {"from": 2000, "to": 4000, "count": 2}, {"from": 4000, "to": 8000, "count": 1}],
}, waits
assert no_end["buckets"] == [{"from": 0, "to": 1024, "count": 0}, {"from": 1024, "to": None, "count": 5}], no_end
assert (no_end["unit"], no_end["count"], no_end["sum"]) == ("bytes", 5, 2**40)
assert (none["count"], none["buckets"]) == (0, []), none
assert large["count"] == 66 and large["sum"] == 2**64 - 1
assert sum(bucket["count"] for bucket in large["buckets"]) == 66
bounds = [(bucket["from"], bucket["to"]) for bucket in large["buckets"]]
assert bounds[:64] == [(0, 1)] + [(2**at, 2**(at + 1)) for at in range(63)], bounds
assert bounds[64:] == [(2**63, None), (2**64 - 1, None)], bounds
print("all")
"#;

#[test]
fn python_reads_what_was_counted() {
    let Some(mut python) = tool("python3") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, written(&counted(), &Symbols::default())).unwrap();
    assert_eq!(output(python.args(["-c", READ_COUNTED]).arg(&path)), "all\n");
}

/// Types of lines and members of them that the documentation tells of.
fn documented() -> [BTreeSet<String>; 2] {
    let page = include_str!("../../../docs/formats.md");
    let rows =
        page.lines().skip_while(|line| *line != "## JSON lines").skip_while(|line| !line.starts_with("| `"));
    let quoted =
        |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let [mut types, mut members] = [(); 2].map(|()| BTreeSet::new());
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<_> = row.split('|').collect();
        members.extend(quoted(cells[1]));
        if quoted(cells[1]) == ["type"] {
            types.extend(quoted(cells[3]));
        }
    }
    [types, members]
}

/// Recordings with all types of lines.
#[test]
fn each_type_and_each_member_is_documented() {
    let recorded = Recorded::new();
    let ended = process_ends::ended();
    let spans = spans::recording();
    let nothing = Symbols::default();
    let files = [
        written(&recorded.machine, &recorded.symbols),
        written(&ended.machine, &ended.symbols),
        written(&spans, &nothing),
        written(&counted(), &nothing),
    ];
    let [mut types, mut members] = [(); 2].map(|()| BTreeSet::new());
    for line in
        files.iter().flat_map(|bytes| bytes.split(|&byte| byte == b'\n')).filter(|line| !line.is_empty())
    {
        let line: serde_json::Map<String, Value> = serde_json::from_slice(line).unwrap();
        types.insert(line["type"].as_str().unwrap().to_owned());
        members.extend(line.into_iter().map(|(name, _)| name));
    }
    assert_eq!([types, members], documented());
}

/// What is held while lines are written does not depend on how many there are.
#[test]
fn memory_does_not_grow_with_events() {
    let held = |count: u64| {
        let (mut machine, thread) = small();
        let mut format = EventFormat::new(ByteOrder::Little);
        let number = FieldKind::Unsigned(Width::W64);
        let number = EventField::new("number", "", number, Extent::One, Place::AfterPrevious);
        format.add_field(number).unwrap();
        let kind = event_kind(&mut machine, ["made", "up"], 1, format);
        for at in 0..count {
            let time = Nanos(at * 7_919 % 100_000);
            let record = EventRecord { time, thread, kind, ..EventRecord::default() };
            if at % 2 == 0 {
                machine.add_event_record(&record, &at.to_le_bytes()).unwrap();
            } else {
                let sample = Sample { time, thread, value: 1, ..Sample::default() };
                machine.add_sample_of_event(&sample, kind, &at.to_le_bytes());
            }
        }
        let symbols = Symbols::unresolved(&machine);
        let mut out = Counted::default();
        let used = allocation_counter::measure(|| {
            JsonLines.write(Profile { machine: &machine, symbols: &symbols }, &mut out).unwrap();
        });
        assert!(out.0 > count * 100);
        used.bytes_max
    };
    let (some, many) = (held(600_000), held(1_200_000));
    assert!(some < 20 << 20 && many < 20 << 20, "{some} and {many} bytes");
}

/// An object's members, of which no two have one name: `serde_json` alone takes the last of them, other readers refuse the line.
struct Members(Vec<(String, Value)>);

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfMembers)
    }
}

struct OfMembers;

impl<'de> Visitor<'de> for OfMembers {
    type Value = Members;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        let names: BTreeSet<&str> = members.iter().map(|(name, _): &(String, _)| &**name).collect();
        assert_eq!(names.len(), members.len(), "{names:?}");
        Ok(Members(members))
    }
}

#[derive(serde::Deserialize)]
struct Line {
    #[serde(default)]
    attributes: Option<Members>,
}

#[test]
fn an_attribute_that_is_there_again_has_its_number() {
    let (mut machine, thread) = small();
    let [k, n] = ["k", "n"].map(|name| machine.intern_string(name));
    let texts = ["one", "two"].map(|text| machine.intern_string(text).into());
    let number = AttributeValue::Number;
    let list = [(k, texts[0]), (k, texts[1]), (n, number(1)), (n, number(2))];
    let attributes = machine.attributes_mut().intern::<AttributeValue>(&list);
    machine.add_sample(&Sample { thread, value: 1, attributes, ..Sample::default() });
    let lines = written(&machine, &Symbols::unresolved(&machine));
    let lines = String::from_utf8(lines).unwrap();
    let expected = r#""attributes":{"k":"one","k_2":"two","n":1,"n_2":2}"#;
    assert!(lines.contains(expected), "{lines}");
    // Through JFR, where attributes are a text, numbers are numbers still.
    let jfr = random::written(&Jfr, &machine, &Symbols::unresolved(&machine));
    let Imported { machine, symbols, .. } = random::imported(&jfr).unwrap();
    let lines = String::from_utf8(written(&machine, &symbols)).unwrap();
    assert!(lines.contains(expected), "{lines}");
}

proptest! {
    #[test]
    fn no_member_of_attributes_is_there_twice(rows in random::rows()) {
        let (machine, symbols) = random::recording(&rows, &[("cpu", Unit::Count, 1_000)]);
        let lines = String::from_utf8(written(&machine, &symbols)).unwrap();
        let told = lines.lines().filter_map(|line| serde_json::from_str::<Line>(line).unwrap().attributes);
        let count: usize = told.map(|Members(members)| members.len()).sum();
        let lists = machine.samples().iter().map(|sample| machine.attributes().get(sample.attributes).len());
        prop_assert_eq!(count, lists.sum::<usize>());
    }
}
