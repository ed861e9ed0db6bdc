//! OTLP profiles, as OpenTelemetry's crate for the receiving end and its messages for Python decode them, which agree.

use serde_json::Value;

use super::facts::{Fact, Reader, Row, Told, command_line, unnamed};
use super::recording::REALTIME;
use crate::jfr::nanoseconds;
use crate::otlp::told as decoded;

pub(super) const READER: Reader = Reader {
    format: "otlp",
    column: "OTLP",
    holds: Some,
    has_single_samples: true,
    facts: &[
        Fact::CommandLine,
        Fact::User,
        Fact::Container,
        Fact::Cgroup,
        Fact::ExitStatus,
        Fact::NamespacePid,
        Fact::Start,
        Fact::End,
        Fact::Parent,
        Fact::Path,
        Fact::PathBesideSource,
        Fact::PathOfInlined,
        Fact::BuildId,
        Fact::Segment,
        Fact::Line,
        Fact::LaterLine,
        Fact::Source,
        Fact::Inlined,
        Fact::Guessed,
        Fact::Unit,
        Fact::Period,
        Fact::Host,
        Fact::Kernel,
        Fact::Command,
        Fact::Account,
    ],
    read: |bytes| {
        let mut told = Told::default();
        for resource in decoded(bytes).as_array().unwrap() {
            process(resource, &mut told);
        }
        Some(told)
    },
};

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn process(resource: &Value, told: &mut Told) {
    let of = &resource["resource"];
    let pid = of["process.pid"].as_u64().unwrap() as u32;
    let name = text(&of["process.executable.name"]);
    told.process(pid.into(), &name);
    if let Some(parent) = of.get("process.parent_pid") {
        told.add(Fact::Parent, format!("{pid} {name} {parent}"));
    }
    for (fact, attribute) in [(Fact::Start, "process.creation.time"), (Fact::End, "process.exit.time")] {
        if let Some(time) = of.get(attribute) {
            told.add(fact, format!("{pid} {name} {}", nanoseconds(&text(time)) - REALTIME));
        }
    }
    if let Some(arguments) = of.get("process.command_args") {
        let arguments: Vec<String> = arguments.as_array().unwrap().iter().map(text).collect();
        told.of_process(
            pid,
            &name,
            &format!("command: {}", command_line(arguments.iter().map(String::as_str))),
        );
    }
    if let Some(owner) = of.get("process.owner") {
        told.of_process(pid, &name, &format!("user: {} ({})", text(owner), of["process.user.id"]));
    }
    for (what, attribute) in [("cgroup", "process.linux.cgroup"), ("container", "container.id")] {
        if let Some(value) = of.get(attribute) {
            told.of_process(pid, &name, &format!("{what}: {}", text(value)));
        }
    }
    for (what, attribute) in [("exit status", "process.exit.code"), ("pid in its namespace", "process.vpid")]
    {
        if let Some(value) = of.get(attribute) {
            told.of_process(pid, &name, &format!("{what}: {value}"));
        }
    }
    told.add(Fact::Host, text(&of["host.name"]));
    assert_eq!(of["os.type"], "linux");
    told.add(Fact::Kernel, format!("Linux {}", text(&of["os.version"])));
    for profile in resource["profiles"].as_array().unwrap() {
        let [kind, unit] = [0, 1].map(|at| text(&profile["type"][at]));
        // Samples of a clock are called so, and it is what has the period.
        let kind = if kind == "samples" { text(&profile["period_type"][0]) } else { kind };
        told.add(Fact::Unit, format!("{kind} {unit}"));
        if profile["period"] != 1 {
            told.add(Fact::Period, format!("{kind} {}", profile["period"]));
        }
        for line in profile["attributes"]["pprof.profile.comment"].as_array().unwrap() {
            match text(line).strip_prefix("command: ") {
                Some(command) => told.add(Fact::Command, command),
                None => told.add(Fact::Account, text(line)),
            }
        }
        for sample in profile["samples"].as_array().unwrap() {
            let row =
                Row { kind: kind.clone(), pid: Some(pid), process: Some(name.clone()), ..Row::default() };
            rows(sample, &row, told);
        }
    }
}

/// A row for each time of a sample.
fn rows(sample: &Value, of: &Row, told: &mut Told) {
    let (mut stack, mut is_guessed) = (Vec::new(), false);
    for frame in sample["stack"].as_array().unwrap() {
        stack.extend(functions(frame, told));
        is_guessed |= frame["attributes"]["frame"] == "guessed";
    }
    stack.reverse();
    if is_guessed {
        told.add(Fact::Guessed, stack.join(";"));
    }
    let mut row = Row { stack, ..of.clone() };
    for (name, value) in sample["attributes"].as_object().unwrap() {
        match name.as_str() {
            "thread.id" => row.tid = value.as_u64().map(|tid| tid as u32),
            "thread.name" => row.thread = Some(text(value)),
            "cpu.logical_number" => row.cpu = value.as_u64().map(|cpu| cpu as u16),
            _ => row.attributes.push((name.clone(), value.into())),
        }
    }
    // No values are as many ones.
    let mut values = sample["values"].as_array().unwrap().iter().map(|value| value.as_i64().unwrap());
    for time in sample["times"].as_array().unwrap() {
        let time = Some(time.as_u64().unwrap() - REALTIME);
        told.rows.push(Row { time, value: values.next().unwrap_or(1), ..row.clone() });
    }
}

/// Names of a frame's functions, the innermost first.
fn functions(frame: &Value, told: &mut Told) -> Vec<String> {
    let path = text(&frame["path"]);
    if path.starts_with('/') {
        let [start, end, offset] = [0, 1, 2].map(|at| frame["range"][at].as_u64().unwrap());
        told.add(Fact::Segment, format!("{start:#x}-{end:#x} {offset:#x} {path}"));
        let build_id = text(&frame["of_file"]["process.executable.build_id.gnu"]);
        told.add(Fact::BuildId, format!("{path} {build_id}"));
    }
    let lines: Vec<String> = frame["lines"].as_array().unwrap().iter().map(text).collect();
    let mut names = Vec::new();
    if lines.is_empty() {
        names.push(unnamed(&path, &format!("{:x}", frame["address"].as_u64().unwrap())));
    }
    for (line, at) in lines.iter().zip(1..) {
        // As `helper helper.h:3`.
        let (name, place) = line.split_once(' ').unwrap_or((line, ""));
        if let Some((source, line)) = place.split_once(':') {
            told.line(name, source, line.parse().unwrap());
        }
        if at < lines.len() {
            told.add(Fact::Inlined, name);
        }
        told.path(name, &path);
        names.push(name.to_owned());
    }
    names
}
