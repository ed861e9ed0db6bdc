//! JSON lines, read by Python and `jq`, of raw events that were put down byte by byte.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};

use collector_common::event::{ByteOrder, EventField, EventFormat, Extent, FieldKind, Place, Width};
use collector_common::ids::Nanos;
use collector_common::record::{EventRecord, ExportMachine, Sample};
use export::format::jsonl::JsonLines;
use export::format::{ExportFormat as _, Profile};
use export::symbolize::Symbols;
use serde_json::Value;

use crate::made::Made;
use crate::raw_events::{Recorded, event_kind, small};
use crate::tools::{output, tool};
use crate::{process_ends, spans};

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

/// Counts what is written, and keeps nothing.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
        let mut out = Counted(0);
        let used = allocation_counter::measure(|| {
            JsonLines.write(Profile { machine: &machine, symbols: &symbols }, &mut out).unwrap();
        });
        assert!(out.0 > count * 100);
        used.bytes_max
    };
    let (some, many) = (held(600_000), held(1_200_000));
    assert!(some < 20 << 20 && many < 20 << 20, "{some} and {many} bytes");
}
