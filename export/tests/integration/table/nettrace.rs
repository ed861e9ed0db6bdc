//! nettrace, by a strict reader of its specification in Python (`tests/python/nettrace_trace.py`), which shares nothing with ours and
//! names addresses as `PerfView` does: by the symbols of mappings.

use std::collections::BTreeMap;

use serde_json::Value;

use super::facts::{Fact, Reader, Row, Told, unnamed};
use super::recording::{INLINED, LINKED, REALTIME, START};
use crate::tools::{file, output, python};

pub(super) const READER: Reader = Reader {
    format: "nettrace",
    column: "nettrace",
    // An address is of the function that others were compiled into.
    holds: |row| {
        let stack = row.stack.into_iter().filter(|name| name != INLINED).collect();
        Some(Row { stack, ..row })
    },
    has_single_samples: true,
    facts: &[
        Fact::Unsampled,
        Fact::Start,
        Fact::End,
        Fact::NamespacePid,
        Fact::Path,
        Fact::PathBesideSource,
        Fact::BuildId,
        Fact::DebugLink,
        Fact::Mapping,
        Fact::Guessed,
        Fact::Unit,
        Fact::Period,
        Fact::Distribution,
        Fact::Processor,
        Fact::Memory,
        Fact::Booted,
        Fact::Host,
        Fact::Kernel,
        Fact::Command,
        Fact::Lost,
        Fact::Account,
        Fact::Event,
        Fact::Switch,
    ],
    read: |bytes| {
        let mut reader = python("nettrace_trace.py")?;
        let file = file(bytes, ".nettrace");
        let trace: Value = serde_json::from_str(&output(reader.arg(&*file))).unwrap();
        Some(told(&trace))
    },
};

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Nanoseconds since the recording began.
fn time(of: &Value) -> u64 {
    number(&of["time"]) - START
}

fn told(trace: &Value) -> Told {
    let mut told = Told::default();
    // A tick is a nanosecond of the recording's clock; the time of day is that of one of them.
    assert_eq!(trace["frequency"], 1_000_000_000);
    assert_eq!((&trace["ticks"], &trace["utc"]), (&START.into(), &"2025-06-15T15:06:40.000+00:00".into()));
    assert_eq!(REALTIME, 1_750_000_000_000_000_000, "2025-06-15 15:06:40 UTC, as `date -d @1750000000` says");
    told.add(Fact::Lost, trace["lost"].to_string());
    for (key, value) in trace["pairs"].as_object().unwrap() {
        let fact = match key.as_str() {
            "Host" => Fact::Host,
            "Kernel" => Fact::Kernel,
            "Command" => Fact::Command,
            "Distribution" => Fact::Distribution,
            "Processor" => Fact::Processor,
            "MemoryBytes" => Fact::Memory,
            "BootedUnixNanoseconds" => Fact::Booted,
            "Account" | "Metrics" => Fact::Account,
            "HardwareThreadCount" | "ExpectedCPUSamplingRate" | "Architecture" => continue,
            of_kind => {
                let (what, kind) = of_kind.split_once(" of ").unwrap();
                let fact = if what == "Unit" { Fact::Unit } else { Fact::Period };
                told.add(fact, format!("{kind} {}", text(value)));
                continue;
            }
        };
        told.add(fact, text(value));
    }
    // What is there by pid: the end of one that was given anew comes before its next beginning.
    let mut names: BTreeMap<u64, &str> = BTreeMap::new();
    for process in list(&trace["processes"]) {
        let (pid, time) = (number(&process["pid"]), time(process));
        if process["event"] == "ProcessExit" {
            told.add(Fact::End, format!("{pid} {} {time}", names[&pid]));
            continue;
        }
        let name = text(&process["name"]);
        told.process(pid, name);
        let inner = number(&process["namespace_pid"]);
        if inner != pid {
            told.of_process(pid as u32, name, &format!("pid in its namespace: {inner}"));
        }
        match text(&process["event"]) {
            "ProcessCreate" => told.add(Fact::Start, format!("{pid} {name} {time}")),
            event => assert_eq!((event, time), ("ExistingProcess", 0)),
        }
        names.insert(pid, name);
    }
    for mapping in list(&trace["mappings"]) {
        let path = text(&mapping["FileName"]);
        if !path.starts_with('/') {
            continue;
        }
        let [start, end] = ["StartAddress", "EndAddress"].map(|address| number(&mapping[address]));
        let pid = number(&mapping["pid"]);
        told.add(Fact::Mapping, format!("{pid} {start:#x}-{end:#x} {path} {}", time(mapping)));
        let about = &mapping["about"][0];
        told.add(Fact::BuildId, format!("{path} {}", text(&about["build_id"])));
        if let Some(link) = about.get("debug_link") {
            told.add(Fact::DebugLink, format!("{path} {}", text(link)));
        }
    }
    for event in list(&trace["events"]) {
        let row = row(trace, event, &mut told);
        let fields: BTreeMap<&str, &Value> =
            list(&event["fields"]).iter().map(|field| (text(&field[0]), &field[1])).collect();
        if event["provider"] == "Universal.Events" {
            let value = fields["Value"].as_i64().unwrap();
            told.rows.push(Row { value, ..row });
            continue;
        }
        let kind = format!("{}:{}", text(&event["provider"]), text(&event["name"]));
        let shown = |(name, value): (&&str, &&Value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!(" {name}={value}")
        };
        let shown: String = fields.iter().map(shown).collect();
        told.event(time(event), &kind, &shown);
        // The sample that was taken of it.
        if !list(&event["stack"]).is_empty() {
            told.rows.push(Row { kind, value: 1, ..row });
        }
    }
    told
}

fn row(trace: &Value, event: &Value, told: &mut Told) -> Row {
    let mut stack = Vec::new();
    for (depth, frame) in list(&event["stack"]).iter().enumerate().rev() {
        let path = text(&frame[1]);
        let name = match text(&frame[0]) {
            // An address is as it was on the stack: whoever looks it up has the call before it.
            "" => unnamed(path, &format!("{:x}", number(&frame[2]) + LINKED - u64::from(depth > 0))),
            name => name.to_owned(),
        };
        told.path(&name, path);
        stack.push(name);
    }
    let labels = list(&event["labels"]).iter();
    let mut attributes: Vec<_> =
        labels.map(|label| (text(&label[0]).to_owned(), (&label[1]).into())).collect();
    let guessed = ("frames".to_owned(), "guessed".into());
    if let Some(at) = attributes.iter().position(|attribute| *attribute == guessed) {
        attributes.remove(at);
        told.add(Fact::Guessed, stack.join(";"));
    }
    // The last that began before.
    let processes = list(&trace["processes"]).iter().filter(|process| {
        process["pid"] == event["pid"] && process["event"] != "ProcessExit" && time(process) <= time(event)
    });
    let process = processes.max_by_key(|process| time(process));
    Row {
        kind: text(&event["name"]).to_owned(),
        time: Some(time(event)),
        pid: Some(number(&event["pid"]) as u32),
        process: process.map(|process| text(&process["name"]).to_owned()),
        tid: Some(number(&event["tid"]) as u32),
        thread: Some(text(&event["thread_name"]).to_owned()),
        cpu: Some(number(&event["cpu"]) as u16),
        attributes,
        stack,
        value: 0,
    }
}
