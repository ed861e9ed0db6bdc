//! Parquet, as `pyarrow`, `DuckDB` and `DataFusion` read it, which agree.

use std::collections::BTreeMap;

use serde_json::Value;

use super::facts::{Fact, Reader, Row, Said, Span, Told};
use super::recording::{REALTIME, START};
use crate::parquet::told as decoded;

pub(super) const READER: Reader = Reader {
    format: "parquet",
    column: "Parquet",
    holds: Some,
    has_single_samples: true,
    facts: &[
        Fact::Unsampled,
        Fact::CommandLine,
        Fact::User,
        Fact::Container,
        Fact::Cgroup,
        Fact::ExitStatus,
        Fact::NamespacePid,
        Fact::Program,
        Fact::Start,
        Fact::End,
        Fact::Parent,
        Fact::Path,
        Fact::PathBesideSource,
        Fact::PathOfInlined,
        Fact::BuildId,
        Fact::Line,
        Fact::LaterLine,
        Fact::Source,
        Fact::Inlined,
        Fact::Guessed,
        Fact::Unit,
        Fact::Period,
        Fact::Distribution,
        Fact::Processor,
        Fact::Memory,
        Fact::Host,
        Fact::Kernel,
        Fact::Command,
        Fact::Lost,
        Fact::Account,
        Fact::Span,
    ],
    read: |bytes| {
        let decoded = decoded(bytes)?;
        let mut told = Told::default();
        recording(&decoded["facts"], &mut told);
        let rows = decoded["rows"].as_array().unwrap();
        let stacks = stacks(rows, &mut told);
        let pids: BTreeMap<u64, u64> = of(rows, "process")
            .map(|row| (row["process_id"].as_u64().unwrap(), row["pid"].as_u64().unwrap()))
            .collect();
        for row in rows {
            match text(&row["record"]) {
                "sample" => sample(row, &stacks, &mut told),
                "process" => process(row, &pids, &mut told),
                "program" => {
                    let program =
                        format!("{} {}: {}", who(row), since(&row["time_ns"]), text(&row["command"]));
                    told.add(Fact::Program, program);
                }
                "span" => {
                    let (begin, end) = (since(&row["time_ns"]), since(&row["end_ns"]));
                    let [timeline, name] = [&row["timeline"], &row["span"]].map(|of| text(of).to_owned());
                    let [pid, tid] = ["pid", "tid"].map(|column| row[column].as_u64());
                    let attributes = attributes(row);
                    told.span(Span { pid, tid, begin, lasted: end - begin, timeline, name, attributes });
                }
                "frame" => {}
                other => panic!("{other}"),
            }
        }
        Some(told)
    },
};

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn of<'a>(rows: &'a [Value], record: &str) -> impl Iterator<Item = &'a Value> {
    rows.iter().filter(move |row| row["record"] == record)
}

fn who(row: &Value) -> String {
    format!("{} {}", row["pid"], text(&row["process"]))
}

/// Nanoseconds since the recording began; what was before it has none, and counts as its start.
fn since(time: &Value) -> u64 {
    time.as_u64().map_or(0, |time| time - START)
}

fn recording(facts: &Value, told: &mut Told) {
    for (fact, name) in [
        (Fact::Distribution, "distribution"),
        (Fact::Processor, "processor"),
        (Fact::Memory, "memory"),
        (Fact::Host, "host"),
        (Fact::Kernel, "kernel"),
        (Fact::Command, "command"),
        (Fact::Lost, "lost"),
    ] {
        told.add(fact, text(&facts[format!("collector.{name}")]));
    }
    for line in text(&facts["collector.account"]).lines() {
        told.add(Fact::Account, line);
    }
}

/// A stack, the outermost function first, and whether one of them was guessed.
#[derive(Default)]
struct Stack {
    functions: Vec<String>,
    is_guessed: bool,
}

/// By number.
fn stacks(rows: &[Value], told: &mut Told) -> BTreeMap<u64, Stack> {
    let mut frames: Vec<&Value> = of(rows, "frame").collect();
    frames.sort_by_key(|row| std::cmp::Reverse(row["depth"].as_u64()));
    let mut stacks = BTreeMap::<u64, Stack>::new();
    for row in frames {
        let function = text(&row["function"]);
        let stack = stacks.entry(row["stack"].as_u64().unwrap()).or_default();
        stack.functions.push(function.to_owned());
        stack.is_guessed |= row["guessed"] == true;
        if row["inlined"] == true {
            told.add(Fact::Inlined, function);
        }
        let module = text(&row["module"]);
        told.path(function, module);
        if let Some(build_id) = row.get("build_id") {
            told.add(Fact::BuildId, format!("{module} {}", text(build_id)));
        }
        if let Some(file) = row.get("file") {
            told.line(function, text(file), row["line"].as_u64().unwrap());
        }
    }
    stacks
}

/// One column has all of them as texts, another has those that are numbers.
fn attributes(row: &Value) -> Vec<(String, Said)> {
    let attributes = row.get("attributes").and_then(Value::as_object).into_iter().flatten();
    let said = attributes.map(|(name, value)| {
        let number = row["numbers"].get(name);
        assert!(number.is_none_or(|number| text(value).parse() == Ok(number.as_i64().unwrap())), "{name}");
        (name.clone(), number.unwrap_or(value).into())
    });
    said.collect()
}

fn sample(row: &Value, stacks: &BTreeMap<u64, Stack>, told: &mut Told) {
    let kind = text(&row["kind"]).to_owned();
    told.add(Fact::Unit, format!("{kind} {}", text(&row["unit"])));
    if row["period"] != 1 {
        told.add(Fact::Period, format!("{kind} {}", row["period"]));
    }
    let stack = row.get("stack").map(|stack| &stacks[&stack.as_u64().unwrap()]);
    if let Some(stack) = stack.filter(|stack| stack.is_guessed) {
        told.add(Fact::Guessed, stack.functions.join(";"));
    }
    let number = |name: &str| row[name].as_u64().unwrap();
    assert_eq!(number("time") - REALTIME, since(&row["time_ns"]), "both clocks");
    told.rows.push(Row {
        kind,
        time: Some(since(&row["time_ns"])),
        pid: Some(number("pid") as u32),
        process: Some(text(&row["process"]).to_owned()),
        tid: Some(number("tid") as u32),
        thread: Some(text(&row["thread"]).to_owned()),
        cpu: Some(number("cpu") as u16),
        attributes: attributes(row),
        stack: stack.map(|stack| stack.functions.clone()).unwrap_or_default(),
        value: row["value"].as_i64().unwrap(),
    });
}

fn process(row: &Value, pids: &BTreeMap<u64, u64>, told: &mut Told) {
    told.process(row["pid"].as_u64().unwrap(), text(&row["process"]));
    let who = who(row);
    for (fact, column) in [(Fact::Start, "time_ns"), (Fact::End, "end_ns")] {
        if let Some(time) = row.get(column) {
            told.add(fact, format!("{who} {}", since(time)));
        }
    }
    if let Some(parent) = row.get("parent_id") {
        told.add(Fact::Parent, format!("{who} {}", pids[&parent.as_u64().unwrap()]));
    }
    let texts = [(Fact::CommandLine, "command"), (Fact::Container, "container"), (Fact::Cgroup, "cgroup")];
    for (fact, column) in texts {
        if let Some(value) = row.get(column) {
            told.add(fact, format!("{who}: {}", text(value)));
        }
    }
    for (fact, column) in [(Fact::ExitStatus, "exit_status"), (Fact::NamespacePid, "namespace_pid")] {
        if let Some(value) = row.get(column) {
            told.add(fact, format!("{who}: {value}"));
        }
    }
    if let Some(user) = row.get("user") {
        told.add(Fact::User, format!("{who}: {} ({})", text(user), row["uid"]));
    }
}
