//! The file for speedscope, by its schema under Node (`tests/browser/speedscope_file.mjs`).

use serde_json::Value;

use super::facts::{Fact, Reader, Row, Told};
use super::recording::{PERIOD, last_name};
use crate::tools::{file, node, output};

pub(super) const READER: Reader = Reader {
    format: "speedscope",
    column: "speedscope",
    holds: |row| {
        if row.value <= 0 {
            return None;
        }
        let thread = last_name(&row, |other| other.kind == row.kind && other.value > 0);
        let Row { kind, pid, process, tid, stack, value, .. } = row;
        Some(Row { kind, pid, process, tid, thread, stack, value, ..Row::default() })
    },
    has_single_samples: true,
    facts: &[Fact::Path, Fact::Line, Fact::Source, Fact::Period, Fact::Command, Fact::Lost, Fact::Account],
    read: |bytes| {
        let mut reader = node("speedscope_file.mjs")?;
        let file = file(bytes, ".speedscope.json");
        let file: Value = serde_json::from_str(&output(reader.arg(&*file))).unwrap();
        Some(told(&file))
    },
};

fn told(file: &Value) -> Told {
    let mut told = Told::default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().unwrap().clone();
    // As `app --all (5 samples lost)`.
    let name = text(&file["name"]);
    let (command, lost) = name.strip_suffix(" samples lost)").unwrap().split_once(" (").unwrap();
    told.add(Fact::Command, command);
    told.add(Fact::Lost, lost);
    text(&file["exporter"]).split("; ").skip(1).for_each(|line| told.add(Fact::Account, line));
    for profile in list(&file["profiles"]) {
        // As `cpu: worker (tid 301) of app (pid 300)`.
        let name = text(&profile["name"]);
        let (name, pid) = name.strip_suffix(')').unwrap().rsplit_once(" (pid ").unwrap();
        let (name, process) = name.rsplit_once(") of ").unwrap();
        let (name, tid) = name.rsplit_once(" (tid ").unwrap();
        let kinds = ["cpu", "off_cpu", "alloc_space", "sched:sched_switch"];
        let of_kind = |kind: &&str| name.strip_prefix(kind).is_some_and(|rest| rest.starts_with(": "));
        let kind = kinds.into_iter().find(of_kind).unwrap();
        let unit =
            ["nanoseconds", "nanoseconds", "bytes", "none"][kinds.iter().position(|it| *it == kind).unwrap()];
        assert_eq!(profile["unit"], unit);
        for sample in list(&profile["samples"]) {
            let frames = list(&sample["stack"]);
            for frame in &frames {
                // A source file has a line.
                let (name, file) = (text(&frame["name"]), text(&frame["file"]));
                match frame["line"].as_u64() {
                    Some(line) => told.line(&name, &file, line),
                    None => told.path(&name, &file),
                }
            }
            let weight = sample["weight"].as_i64().unwrap();
            // One of the clock is its time.
            if kind == "cpu" {
                assert_eq!(weight % PERIOD as i64, 0);
                told.add(Fact::Period, format!("cpu {PERIOD}"));
            }
            told.rows.push(Row {
                kind: kind.to_owned(),
                pid: pid.parse().ok(),
                process: Some(process.to_owned()),
                tid: tid.parse().ok(),
                thread: Some(name[kind.len() + 2..].to_owned()),
                stack: frames.iter().map(|frame| text(&frame["name"])).collect(),
                value: if kind == "cpu" { weight / PERIOD as i64 } else { weight },
                ..Row::default()
            });
        }
    }
    told
}
