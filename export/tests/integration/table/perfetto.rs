//! Perfetto's trace, as its own messages decode it (`tests/python/perfetto_trace.py`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::facts::{Fact, Reader, Row, Span, Told, attributes, command_line};
use super::recording::{START, last_name};
use crate::perfetto::told as decoded;

pub(super) const READER: Reader = Reader {
    format: "perfetto",
    column: "Perfetto",
    holds: |row| {
        let thread = last_name(&row, |_| true);
        // Samples of counts have a CPU, and those of times and bytes attributes.
        let is_count = row.kind == "cpu" || row.kind.contains(':');
        let cpu = row.cpu.filter(|_| is_count);
        let attributes = if is_count { Vec::new() } else { row.attributes.clone() };
        Some(Row { thread, cpu, attributes, ..row })
    },
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
        Fact::Renamed,
        Fact::Path,
        Fact::PathBesideSource,
        Fact::PathOfInlined,
        Fact::BuildId,
        Fact::Segment,
        Fact::Line,
        Fact::LaterLine,
        Fact::Source,
        Fact::Unit,
        Fact::Period,
        Fact::Host,
        Fact::Kernel,
        Fact::Command,
        Fact::Lost,
        Fact::Account,
        Fact::Switch,
        Fact::Span,
    ],
    read: |bytes| Some(told(&decoded(bytes)?)),
};

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn told(trace: &Value) -> Told {
    let mut told = Told::default();
    let list = |name: &str| trace[name].as_array().into_iter().flatten();
    for process in list("processes") {
        let name = format!("{} {}", process["pid"], text(&process["name"]));
        told.process(number(&process["pid"]), &text(&process["name"]));
        let arguments = process["cmdline"].as_array().unwrap();
        if !arguments.is_empty() {
            let line = command_line(arguments.iter().map(|argument| argument.as_str().unwrap()));
            told.add(Fact::CommandLine, format!("{name}: {line}"));
        }
        if process["start"] != 0 {
            assert_eq!(process["start"], process["from"]);
            told.add(Fact::Start, format!("{name} {}", number(&process["start"]) - START));
        }
        if let Some(end) = process["end"].as_u64() {
            told.add(Fact::End, format!("{name} {}", end - START));
        }
        if let Some(parent) = process["parent"].as_str() {
            let parent = list("processes").find(|other| other["name"] == parent).unwrap();
            told.add(Fact::Parent, format!("{name} {}", parent["pid"]));
        }
    }
    let [system, release, _, host, _] = &trace["system"].as_array().unwrap()[..] else { panic!("{trace}") };
    told.add(Fact::Kernel, format!("{} {}", text(system), text(release)));
    told.add(Fact::Host, text(host));
    list("lost").for_each(|lost| told.add(Fact::Lost, lost[0].to_string()));
    for sample in list("samples") {
        let (kind, period) = (text(&sample["kind"]), number(&sample["period"]));
        told.add(Fact::Unit, format!("{kind} count"));
        if period > 1 {
            told.add(Fact::Period, format!("{kind} {period}"));
        }
        let frames = sample["stack"].as_array().unwrap();
        for of in frames {
            frame(of, &mut told);
        }
        let stack = frames.iter().rev().map(|frame| text(&frame["function"])).collect();
        let thread = Some(text(&sample["thread"]));
        let cpu = Some(number(&sample["cpu"]) as u16);
        let value = (number(&sample["grown"]) / period) as i64;
        let own = Row { kind, thread, cpu, stack, value, ..Row::default() };
        told.rows.push(of_thread(sample, own));
    }
    for event in list("events") {
        if event["track"] == "recording" {
            let line = text(&event["name"]);
            match line.strip_prefix("command: ") {
                Some(command) => told.add(Fact::Command, command),
                None => told.add(Fact::Account, line),
            }
            continue;
        }
        if event["track"] == "process" {
            let (line, name) = (text(&event["name"]), text(&event["owner"]));
            match line.strip_prefix("executed: ") {
                Some(line) => {
                    let time = number(&event["time"]) - START;
                    told.add(Fact::Program, format!("{} {name} {time}: {line}", event["pid"]));
                }
                None => told.of_process(number(&event["pid"]) as u32, &name, &line),
            }
            continue;
        }
        let (kind, value) = (text(&event["track"]), event["weight"].as_f64().unwrap_or(0.0) as i64);
        if kind.is_empty() {
            let name = text(&event["name"]);
            let name = name.strip_prefix("renamed to ").unwrap();
            told.add(Fact::Renamed, format!("{} {} {name}", event["pid"], event["tid"]));
            continue;
        }
        if event["weight"].is_null() {
            told.span(Span {
                pid: event["pid"].as_u64(),
                tid: event["tid"].as_u64(),
                begin: number(&event["time"]) - START,
                lasted: number(&event["lasted"]),
                timeline: kind,
                name: text(&event["name"]),
                attributes: attributes(event.get("notes")),
            });
            continue;
        }
        // Whatever is no estimate lasted for so long.
        if let Some(lasted) = event["lasted"].as_i64() {
            assert_eq!(lasted, value);
            told.add(Fact::Unit, format!("{kind} nanoseconds"));
        }
        let thread = Some(text(&event["owner"]));
        let attributes = attributes(event.get("notes"));
        let stack = event["stack"].as_array().unwrap().iter().rev().map(text).collect();
        let own = Row { kind, thread, attributes, stack, value, ..Row::default() };
        told.rows.push(of_thread(event, own));
    }
    list("scheduler").for_each(|event| of_scheduler(event, &mut told));
    for counter in list("counters") {
        told.add(Fact::Unit, format!("{} bytes", text(&counter["track"])));
    }
    told
}

fn of_scheduler(event: &Value, told: &mut Told) {
    let fields: BTreeMap<_, _> = event["fields"].as_object().unwrap().iter().collect();
    let fields = fields.into_iter().fold(String::new(), |fields, (name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{fields} {name}={value}")
    });
    let time = number(&event["time"]) - START;
    told.event(time, &format!("sched:{}", text(&event["event"])), &fields);
}

fn of_thread(told: &Value, row: Row) -> Row {
    Row {
        time: Some(number(&told["time"]) - START),
        pid: Some(number(&told["pid"]) as u32),
        process: Some(text(&told["process"])),
        tid: Some(number(&told["tid"]) as u32),
        ..row
    }
}

fn frame(frame: &Value, told: &mut Told) {
    let (function, path) = (text(&frame["function"]), text(&frame["path"]));
    if path.starts_with('/') {
        let [start, end, offset] = [0, 1, 2].map(|at| number(&frame["range"][at]));
        told.add(Fact::Segment, format!("{start:#x}-{end:#x} {offset:#x} {path}"));
        told.add(Fact::BuildId, format!("{path} {}", text(&frame["build_id"])));
    }
    told.path(&function, &path);
    if let Some((source, line)) = text(&frame["line"]).split_once(':') {
        told.line(&function, source, line.parse().unwrap());
    }
}
