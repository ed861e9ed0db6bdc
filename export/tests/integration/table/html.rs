//! The HTML page, by its own decoder under Node (`tests/browser/decoded.mjs`).

use collector_common::record::ESTIMATED;
use serde_json::Value;

use super::facts::{Fact, Reader, Row, Said, Told};
use super::recording::PERIOD;
use crate::tools::{file, node, output};

pub(super) const READER: Reader = Reader {
    format: "html",
    column: "HTML",
    holds: |mut row| {
        // Of times alone.
        row.attributes.retain(|(name, _)| name == ESTIMATED && row.kind == "off_cpu");
        Some(Row { time: row.time.map(|time| time / 1000 * 1000), ..row })
    },
    has_single_samples: true,
    facts: &[
        Fact::CommandLine,
        Fact::User,
        Fact::Container,
        Fact::Cgroup,
        Fact::ExitStatus,
        Fact::NamespacePid,
        Fact::Path,
        Fact::PathBesideSource,
        Fact::PathOfInlined,
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
        let mut reader = node("decoded.mjs")?;
        let file = file(bytes, ".html");
        let page: Value = serde_json::from_str(&output(reader.arg(&*file))).unwrap();
        Some(told(&page))
    },
};

fn estimated() -> (String, Said) {
    (ESTIMATED.to_owned(), "yes".into())
}

fn told(page: &Value) -> Told {
    let mut told = Told::default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let number = |value: &Value| value.as_u64().unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    for (fact, name) in [(Fact::Host, "host"), (Fact::Kernel, "kernel"), (Fact::Command, "command")] {
        told.add(fact, text(&page["system"][name]));
    }
    for line in list(&page["system"]["account"]) {
        told.add(Fact::Account, text(&line));
    }
    for kind in list(&page["kinds"]) {
        let unit = ["count", "nanoseconds", "bytes"][number(&kind["unit"]) as usize];
        told.add(Fact::Unit, format!("{} {unit}", text(&kind["name"])));
        if kind["period"] == PERIOD {
            told.add(Fact::Period, format!("{} {PERIOD}", text(&kind["name"])));
        }
    }
    for process in list(&page["processes"]) {
        let (pid, name) = (number(&process["pid"]) as u32, text(&process["name"]));
        told.process(pid.into(), &name);
        text(&process["facts"]).lines().for_each(|line| told.of_process(pid, &name, line));
    }
    for row in list(&page["rows"]) {
        let frames = list(&row["stack"]);
        let stack: Vec<String> = frames.iter().map(|frame| text(&frame["function"]["name"])).collect();
        for (frame, name) in frames.iter().zip(&stack) {
            let function = &frame["function"];
            told.path(name, &text(&function["module"]));
            for line in ["firstLine", "lastLine"] {
                told.line(name, &text(&function["source"]), number(&function[line]));
            }
            if frame["inlined"] == true {
                told.add(Fact::Inlined, name);
            }
            if frame["heuristic"] == true {
                told.add(Fact::Guessed, stack.join(";"));
            }
        }
        told.rows.push(Row {
            kind: text(&row["kind"]),
            time: Some(number(&row["us"]) * 1000),
            pid: Some(number(&row["process"]["pid"]) as u32),
            process: Some(text(&row["process"]["name"])),
            tid: Some(number(&row["thread"]["tid"]) as u32),
            thread: Some(text(&row["thread"]["name"])),
            cpu: Some(number(&row["cpu"]) as u16),
            attributes: if row["estimated"] == true { vec![estimated()] } else { Vec::new() },
            stack,
            value: row["value"].as_i64().unwrap(),
        });
    }
    told
}
