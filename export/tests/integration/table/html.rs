//! The HTML page, by the decoder that is in it under Node (`tests/browser/decoded.mjs`); and what it shows in a real Chromium
//! (`tests/browser/shown.mjs`).

use std::collections::{BTreeMap, BTreeSet};

use collector_common::record::ESTIMATED;
use export::format::Profile;
use serde_json::Value;

use super::facts::{Fact, Reader, Row, Said, Told};
use super::recording::{END, KINDS, PERIOD, recording, rows};
use super::written;
use crate::tools::{file, node, output, tool};

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

/// A value for each that has one other than 0.
fn sums<K: Ord>(all: impl IntoIterator<Item = (K, i64)>) -> BTreeMap<K, i64> {
    let mut sums = BTreeMap::new();
    all.into_iter().for_each(|(key, value)| *sums.entry(key).or_default() += value);
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// The functions of the table, the boxes of the graph and the lanes of the timeline, each with its sum, for each kind of sample.
#[test]
fn the_page_shows_what_was_recorded() {
    let (machine, symbols) = recording();
    let page = file(&written("html", Profile { machine: &machine, symbols: &symbols }), ".html");
    let Some(mut reader) = node("shown.mjs") else { return };
    if tool("chromium").is_none() {
        return;
    }
    let shown: Vec<Value> = serde_json::from_str(&output(reader.arg(&*page))).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let number = |value: &Value| value.as_i64().unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let names: Vec<String> = shown.iter().map(|kind| text(&kind["name"])).collect();
    assert_eq!(names, KINDS.map(|(name, ..)| name));
    for kind in &shown {
        let name = text(&kind["name"]);
        let rows: Vec<Row> = rows().into_iter().filter(|row| row.kind == name).collect();
        let found = [&kind["samples"], &kind["total"], &kind["duration"]].map(number);
        let total = rows.iter().map(|row| row.value).sum();
        assert_eq!(found, [rows.len() as i64, total, END as i64 / 1000], "{name}");

        let of_functions = |what: &str| {
            sums(list(&kind["functions"]).iter().map(|of| (text(&of["name"]), number(&of[what]))))
        };
        let running = rows.iter().filter_map(|row| Some((row.stack.last()?.clone(), row.value)));
        assert_eq!(of_functions("self"), sums(running), "{name}");
        let on_stacks = rows.iter().flat_map(|row| {
            let distinct: BTreeSet<String> = row.stack.iter().cloned().collect();
            distinct.into_iter().map(|function| (function, row.value))
        });
        assert_eq!(of_functions("total"), sums(on_stacks), "{name}");

        let boxes = list(&kind["boxes"]);
        let paths =
            boxes.iter().map(|of| (list(&of["path"]).iter().map(text).collect(), number(&of["total"])));
        let expected = rows.iter().flat_map(|row| {
            let path: Vec<String> =
                ["all".to_owned()].into_iter().chain(row.process.clone()).chain(row.stack.clone()).collect();
            (1..=path.len()).map(move |end| (path[..end].to_vec(), row.value))
        });
        assert_eq!(sums(paths), sums(expected), "{name}");

        let lanes = list(&kind["lanes"]);
        let of_lane = |lane: &Value| {
            ((number(&lane["pid"]), lane["tid"].as_i64(), text(&lane["name"])), number(&lane["weight"]))
        };
        let expected = rows.iter().flat_map(|row| {
            let pid = row.pid.unwrap().into();
            let process = (pid, None, row.process.clone().unwrap());
            let thread = (pid, row.tid.map(i64::from), row.thread.clone().unwrap());
            [(process, row.value), (thread, row.value)]
        });
        assert_eq!(sums(lanes.iter().map(of_lane)), sums(expected), "{name}");
    }
}
