//! JSON lines, one by one.

use serde_json::Value;

use super::facts::{Fact, Reader, Row, Span, Told, attributes, unmarked};
use super::recording::START;

pub(super) const READER: Reader = Reader {
    format: "jsonl",
    column: "JSON lines",
    holds: Some,
    has_single_samples: true,
    facts: &[
        Fact::ExitStatus,
        Fact::NamespacePid,
        Fact::Inlined,
        Fact::Guessed,
        Fact::Unit,
        Fact::Period,
        Fact::Host,
        Fact::Kernel,
        Fact::Command,
        Fact::Lost,
        Fact::Account,
        Fact::Event,
        Fact::Switch,
        Fact::Span,
        Fact::Counted,
    ],
    read: |bytes| {
        let mut told = Told::default();
        for line in str::from_utf8(bytes).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if let Some(inner) = line.get("namespace_pid") {
                let pid = line["pid"].as_u64().unwrap() as u32;
                told.of_process(pid, text(&line["process"]), &format!("pid in its namespace: {inner}"));
            }
            match line["type"].as_str().unwrap() {
                "recording" => recording(&line, &mut told),
                "sample" => sample(&line, &mut told),
                "event" => {
                    event(&line, &mut told);
                    // One that a sample was taken of.
                    if line.get("value").is_some() {
                        sample(&line, &mut told);
                    }
                }
                "span" => {
                    let [timeline, name] = [&line["timeline"], &line["span"]].map(|of| text(of).to_owned());
                    told.span(Span {
                        pid: line["pid"].as_u64(),
                        tid: line["tid"].as_u64(),
                        begin: line["time_ns"].as_u64().unwrap() - START,
                        lasted: line["duration_ns"].as_u64().unwrap(),
                        timeline,
                        name,
                        attributes: attributes(line.get("attributes")),
                    });
                }
                "exit" => {
                    let (pid, name) = (line["pid"].as_u64().unwrap() as u32, text(&line["process"]));
                    told.of_process(pid, name, &format!("exit status: {}", line["status"]));
                }
                "table" => {
                    for row in list(&line["rows"]) {
                        for (number, column) in list(&row["numbers"]).iter().zip(list(&line["columns"])) {
                            let [of, label] = [text(&line["table"]), text(&row["label"])];
                            let [name, unit] = ["name", "unit"].map(|member| text(&column[member]));
                            told.add(Fact::Counted, format!("{of}: {label}: {number} {name} ({unit})"));
                        }
                    }
                }
                "histogram" => {
                    let of = ["histogram", "label"].map(|member| text(&line[member])).join(": ");
                    let [count, sum, unit] = [&line["count"], &line["sum"], &line["unit"]];
                    told.add(Fact::Counted, format!("{of}: {count} of {sum} {}", text(unit)));
                    for bucket in list(&line["buckets"]) {
                        let [from, to, count] = ["from", "to", "count"].map(|member| &bucket[member]);
                        told.add(Fact::Counted, format!("{of}: {count} from {from} to {to}"));
                    }
                }
                "process" => process(&line, &mut told),
                other => panic!("{other}"),
            }
        }
        Some(told)
    },
};

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn process(line: &Value, told: &mut Told) {
    let [pid, made_by, duration, status] =
        ["pid", "parent_pid", "duration_ns", "status"].map(|member| line[member].as_u64().unwrap());
    let [name, parent] = ["process", "parent"].map(|member| text(&line[member]));
    let since_start = |of: &Value| of["time_ns"].as_u64().unwrap() - START;
    let executed = list(&line["executed"]).iter();
    let executed = executed.map(|program| {
        format!(": {} {} {}", since_start(program), text(&program["program"]), program["arguments"])
    });
    let (made, executed) = (since_start(line), executed.collect::<String>());
    told.add(
        Fact::Counted,
        format!("{pid} {name} of {made_by} {parent} at {made} for {duration}, status {status}{executed}"),
    );
}

fn recording(line: &Value, told: &mut Told) {
    for (fact, name) in [(Fact::Host, "host"), (Fact::Kernel, "kernel"), (Fact::Command, "command")] {
        told.add(fact, text(&line[name]));
    }
    told.add(Fact::Lost, line["lost"].to_string());
    for account in line["account"].as_array().unwrap() {
        told.add(Fact::Account, text(account));
    }
    for kind in line["kinds"].as_array().unwrap() {
        told.add(Fact::Unit, format!("{} {}", text(&kind["name"]), text(&kind["unit"])));
        if kind["period"] != 1 {
            told.add(Fact::Period, format!("{} {}", text(&kind["name"]), kind["period"]));
        }
    }
}

fn sample(line: &Value, told: &mut Told) {
    let number = |name: &str| line[name].as_u64().unwrap();
    let mut stack = Vec::new();
    for name in line.get("stack").map(|stack| stack.as_array().unwrap()).into_iter().flatten().rev() {
        let (name, mark) = unmarked(text(name));
        if mark == "_[i]" {
            told.add(Fact::Inlined, name);
        }
        stack.push(name.to_owned());
    }
    if line.get("stack_guessed").is_some() {
        told.add(Fact::Guessed, stack.join(";"));
    }
    told.rows.push(Row {
        kind: text(&line["event"]).to_owned(),
        time: Some(number("time_ns") - START),
        pid: Some(number("pid") as u32),
        process: Some(text(&line["process"]).to_owned()),
        tid: Some(number("tid") as u32),
        thread: Some(text(&line["comm"]).to_owned()),
        cpu: Some(number("cpu") as u16),
        attributes: attributes(line.get("attributes")),
        stack,
        value: line["value"].as_i64().unwrap(),
    });
}

fn event(line: &Value, told: &mut Told) {
    let time = line["time_ns"].as_u64().unwrap() - START;
    let fields = line["fields"].as_object().unwrap().iter();
    let fields = fields.map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!(" {name}={value}")
    });
    let mut fields: Vec<String> = fields.collect();
    fields.sort();
    told.event(time, text(&line["event"]), &fields.concat());
}
