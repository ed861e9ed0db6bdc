//! pprof, by what `go tool pprof -raw` shows of it: samples, then locations, then mappings. A sample without a stack it shows in the total
//! alone.

use std::collections::{BTreeMap, HashMap};

use super::facts::{Fact, Reader, Row, Said, Told, unnamed};
use super::recording;
use crate::pprof::Go;

pub(super) const READER: Reader = Reader {
    format: "pprof",
    column: "pprof",
    holds: |mut row| {
        // It leaves out what is to be dropped.
        row.stack.retain(|name| name != "vfs_read");
        (!row.stack.is_empty()).then_some(Row { time: None, cpu: None, ..row })
    },
    has_single_samples: false,
    facts: &[
        Fact::Container,
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
        Fact::FrameRules,
        Fact::Unit,
        Fact::Period,
        Fact::Distribution,
        Fact::Processor,
        Fact::Memory,
        Fact::Host,
        Fact::Kernel,
        Fact::Command,
        Fact::Account,
    ],
    read: |bytes| {
        let go = Go::new(bytes)?;
        let mut told = raw(&go.pprof(&["-raw"]));
        for comment in go.pprof(&["-comments"]).lines() {
            let fact = match comment {
                "build-07" => Fact::Host,
                "Linux 6.18.0" => Fact::Kernel,
                "app --all" => Fact::Command,
                "Debian GNU/Linux 12 (bookworm)" => Fact::Distribution,
                "A B @ 2 GHz" => Fact::Processor,
                "8192 MiB" => {
                    told.add(Fact::Memory, (8192_u64 << 20).to_string());
                    continue;
                }
                "x86_64" | "2 CPUs" | "" => continue,
                _ => Fact::Account,
            };
            told.add(fact, comment);
        }
        if told.rows.is_empty() {
            return Some(told);
        }
        let top = go.pprof(&["-top", "-sample_index=cpu_samples"]);
        // Those without a stack are left out of the other answer.
        let without_stack = recording::rows().into_iter().filter(|row| row.stack.is_empty());
        let all = told.rows.iter().cloned().chain(without_stack).filter(|row| row.kind == "cpu");
        let all: i64 = all.map(|row| row.value).sum();
        assert!(top.contains(&format!(" of {all} total")), "{top}");
        Some(told)
    },
};

/// A function of a location: name, file and line.
type Line = (String, String, u64);

/// What is at an address: the mapping, and functions with the innermost first.
#[derive(Default)]
struct Location {
    mapping: String,
    address: String,
    lines: Vec<Line>,
}

fn raw(text: &str) -> Told {
    let mut told = Told::default();
    let (head, rest) = text.split_once("Samples:\n").unwrap();
    let (samples, rest) = rest.split_once("Locations\n").unwrap();
    let (locations, mappings) = rest.split_once("Mappings\n").unwrap();
    let period = head.lines().find_map(|line| line.strip_prefix("Period: ")).unwrap();
    let of = head.lines().find_map(|line| line.strip_prefix("PeriodType: "));
    // Without samples there is none.
    if let Some(of) = of.and_then(|of| of.strip_suffix(" nanoseconds")) {
        told.add(Fact::Period, format!("{of} {period}"));
    }
    let files = files(mappings, &mut told);
    let locations = places(locations);
    for location in locations.values() {
        for ((name, source, line), at) in location.lines.iter().zip(1..) {
            told.path(name, &files[&location.mapping]);
            told.line(name, source, *line);
            if at < location.lines.len() {
                told.add(Fact::Inlined, name);
            }
        }
    }
    let mut lines = samples.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    for column in &columns {
        let (name, unit) = column.trim_end_matches("[dflt]").split_once('/').unwrap();
        match (name.strip_suffix("_samples"), name) {
            // How many samples the values are of.
            (Some("cpu"), _) => told.add(Fact::Unit, format!("cpu {unit}")),
            (Some(_), _) => assert_eq!(unit, "count"),
            // The time that these stand for.
            (None, "cpu") => assert_eq!(unit, "nanoseconds"),
            (None, name) => told.add(Fact::Unit, format!("{name} {unit}")),
        }
    }
    let mut at: Option<(Vec<i64>, Row)> = None;
    let mut finished = Vec::new();
    for line in lines {
        if let Some((values, stack)) = line.split_once(':').filter(|(values, _)| is_numbers(values)) {
            finished.extend(at.take());
            let values = values.split_whitespace().map(|value| value.parse().unwrap()).collect();
            let names = |id| {
                let Location { mapping, address, lines }: &Location = &locations[id];
                let names: Vec<String> = lines.iter().map(|(name, ..)| name.clone()).collect();
                if names.is_empty() { vec![unnamed(&files[mapping], address)] } else { names }
            };
            let mut stack: Vec<String> = stack.split_whitespace().flat_map(names).collect();
            stack.reverse();
            at = Some((values, Row { stack, ..Row::default() }));
        } else {
            let (_, row) = at.as_mut().unwrap();
            // Those of text come first, which each of ours has.
            let are_numbers = row.thread.is_some();
            for (name, value) in labels(line) {
                let said = if are_numbers { number(name, value) } else { value.into() };
                label(row, name, said, &mut told);
            }
        }
    }
    finished.extend(at);
    let has = |name: &str| finished.iter().any(|(_, row)| row.stack.iter().any(|of| of == name));
    if !has("vfs_read") && has("run") {
        told.add(Fact::FrameRules, "vfs_read, not run");
    }
    for (values, row) in finished {
        let mut row = row;
        row.attributes.sort();
        let attribute = row.attributes.iter().position(|(name, _)| name == "container");
        if let Some(Said::Text(container)) = attribute.map(|at| row.attributes.remove(at).1) {
            let (pid, name) = (row.pid.unwrap(), row.process.clone().unwrap());
            told.add(Fact::Container, format!("{pid} {name}: {container}"));
        }
        let by_column: BTreeMap<&str, i64> = columns.iter().copied().zip(values).collect();
        for (kind, column) in [
            ("cpu", "cpu_samples/count"),
            ("off_cpu", "off_cpu/nanoseconds"),
            ("alloc_space", "alloc_space/bytes"),
            ("sched:sched_switch", "sched:sched_switch/count"),
        ] {
            let value = *by_column.get(column).unwrap_or_else(|| panic!("{column} in {columns:?}"));
            if value != 0 {
                told.rows.push(Row { kind: kind.to_owned(), value, ..row.clone() });
            }
        }
    }
    told
}

fn is_numbers(text: &str) -> bool {
    text.split_whitespace().all(|word| word.parse::<i64>().is_ok())
}

/// With the unit where there is one, which here is called as it is without.
fn number(name: &str, value: &str) -> Said {
    let (number, unit) = value.split_once(' ').unwrap_or((value, name));
    assert_eq!(unit, name);
    Said::Number(number.parse().unwrap())
}

fn label(row: &mut Row, name: &str, said: Said, told: &mut Told) {
    match (name, said) {
        ("pid", Said::Number(pid)) => row.pid = pid.try_into().ok(),
        ("tid", Said::Number(tid)) => row.tid = tid.try_into().ok(),
        ("comm", Said::Text(name)) => row.thread = Some(name),
        ("process", Said::Text(name)) => row.process = Some(name),
        ("frames", said) => {
            assert_eq!(said, "guessed".into());
            told.add(Fact::Guessed, row.stack.join(";"));
        }
        (_, said) => row.attributes.push((name.to_owned(), said)),
    }
}

/// Labels of a line, as `comm:[worker] lock:[0x7f00]`.
fn labels(mut line: &str) -> Vec<(&str, &str)> {
    let mut labels = Vec::new();
    while let Some((name, rest)) = line.split_once(":[") {
        let (value, rest) = rest.split_once(']').unwrap();
        labels.push((name.trim(), value));
        line = rest;
    }
    labels
}

/// Locations by their ids, as `1: 0x4200 M=1 helper helper.h:3:0 s=0`, and on a line of its own the function that it is inlined into.
fn places(text: &str) -> HashMap<&str, Location> {
    let mut all = HashMap::new();
    let mut last = "";
    for line in text.lines() {
        let words = line.trim_start();
        let function = match words.split_once(": 0x") {
            Some((id, rest)) if id.parse::<u64>().is_ok() => {
                let (address, rest) = rest.split_once(" M=").unwrap();
                let (mapping, function) = rest.split_once(' ').unwrap();
                let [mapping, address] = [mapping, address].map(str::to_owned);
                all.insert(id, Location { mapping, address, lines: Vec::new() });
                last = id;
                if function.trim().is_empty() {
                    continue;
                }
                function
            }
            _ => words,
        };
        let (function, _) = function.trim_end().rsplit_once(" s=").unwrap();
        let (name, place) = function.rsplit_once(' ').unwrap();
        // Of some releases of Go with the column behind it.
        let (file, line) = place.split_once(':').unwrap();
        let line = line.split(':').next().unwrap();
        let line = (name.to_owned(), file.to_owned(), line.parse().unwrap());
        all.get_mut(last).unwrap().lines.push(line);
    }
    all
}

/// Paths by the mappings' ids, as `1: 0x4000/0x9000/0x3000 /opt/app abcd01 [FN]`.
fn files(text: &str, told: &mut Told) -> HashMap<String, String> {
    let mut all = HashMap::new();
    for line in text.lines() {
        let (id, rest) = line.split_once(": ").unwrap();
        let words: Vec<&str> = rest.split(' ').collect();
        let path = words[1];
        if path.starts_with('/') {
            let [start, end, offset] = words[0].split('/').collect::<Vec<_>>().try_into().unwrap();
            told.add(Fact::Segment, format!("{start}-{end} {offset} {path}"));
            told.add(Fact::BuildId, format!("{path} {}", words[2]));
        }
        all.insert(id.to_owned(), path.to_owned());
    }
    all
}
