//! nettrace, by the strict reader of its specification, which names addresses as `PerfView` does: by the symbols of mappings.

use std::collections::BTreeMap;

use export::format::nettrace::Value;

use super::facts::{Fact, Reader, Row, Said, Told, unnamed};
use super::recording::{INLINED, LINKED, START};
use crate::nettrace::{File, Read};

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
        Fact::Host,
        Fact::Kernel,
        Fact::Command,
        Fact::Lost,
        Fact::Account,
        Fact::Event,
    ],
    read: |bytes| Some(told(&File::of(bytes))),
};

fn told(file: &File) -> Told {
    let mut told = Told::default();
    told.add(Fact::Lost, file.summary.lost.to_string());
    for (key, value) in &file.trace.pairs {
        let fact = match key.as_str() {
            "Host" => Fact::Host,
            "Kernel" => Fact::Kernel,
            "Command" => Fact::Command,
            "Distribution" => Fact::Distribution,
            "Processor" => Fact::Processor,
            "Account" | "Metrics" => Fact::Account,
            "HardwareThreadCount" | "ExpectedCPUSamplingRate" | "Architecture" => continue,
            of_kind => {
                let (what, kind) = of_kind.split_once(" of ").unwrap();
                let fact = if what == "Unit" { Fact::Unit } else { Fact::Period };
                told.add(fact, format!("{kind} {value}"));
                continue;
            }
        };
        told.add(fact, value);
    }
    // What is there by pid: the end of one that was given anew comes before its next beginning.
    let mut names: BTreeMap<u64, &str> = BTreeMap::new();
    for (time, event, pid, name) in &file.processes {
        let time = time - START;
        told.process(*pid, name);
        match event.as_str() {
            "ProcessCreate" => told.add(Fact::Start, format!("{pid} {name} {time}")),
            "ProcessExit" => told.add(Fact::End, format!("{pid} {} {time}", names[pid])),
            _ => assert_eq!(time, 0),
        }
        names.insert(*pid, name);
    }
    for mapping in file.mappings.iter().filter(|mapping| mapping.path.starts_with('/')) {
        let (path, range) = (&mapping.path, format!("{:#x}-{:#x}", mapping.start, mapping.end));
        told.add(Fact::Mapping, format!("{} {range} {path} {}", mapping.pid, mapping.time - START));
        let about: BTreeMap<String, serde_json::Value> =
            serde_json::Deserializer::from_str(&mapping.file).into_iter().next().unwrap().unwrap();
        told.add(Fact::BuildId, format!("{path} {}", about["build_id"].as_str().unwrap()));
        if let Some(link) = about.get("debug_link") {
            told.add(Fact::DebugLink, format!("{path} {}", link.as_str().unwrap()));
        }
    }
    for sample in &file.samples {
        let row = row(file, sample, &mut told);
        told.rows.push(row);
    }
    for (event, fields) in &file.events {
        let shown = |(name, value): &(String, Value)| match value {
            Value::Signed(number) => format!(" {name}={number}"),
            Value::Text(text) => format!(" {name}={text}"),
            other => panic!("{other:?}"),
        };
        let mut fields: Vec<String> = fields.iter().map(shown).collect();
        fields.sort();
        told.add(Fact::Event, format!("{} {}{}", event.time - START, event.kind, fields.concat()));
        // The sample that was taken of it.
        if !event.stack.is_empty() {
            let row = row(file, event, &mut told);
            told.rows.push(Row { value: 1, ..row });
        }
    }
    told
}

fn row(file: &File, sample: &Read, told: &mut Told) -> Row {
    let mut stack = Vec::new();
    for (depth, &address) in sample.stack.iter().enumerate().rev() {
        let is_in = |start, end| (start..end).contains(&address);
        let mapping = file.mappings.iter().find(|of| of.pid == sample.pid && is_in(of.start, of.end));
        let mapping = mapping.unwrap();
        // An address is as it was on the stack: whoever looks it up has the call before it.
        let call = address - u64::from(depth > 0);
        let linked = || unnamed(&mapping.path, &format!("{:x}", call - mapping.start + LINKED));
        let name = file.name(sample.pid, address).map_or_else(linked, str::to_owned);
        told.path(&name, &mapping.path);
        stack.push(name);
    }
    let said = sample.labels.iter().map(|(name, value)| {
        let is_number = sample.numbers.contains(name);
        let said = if is_number { Said::Number(value.parse().unwrap()) } else { value.as_str().into() };
        (name.clone(), said)
    });
    let mut attributes: Vec<_> = said.collect();
    let guessed = ("frames".to_owned(), "guessed".into());
    if let Some(at) = attributes.iter().position(|attribute| *attribute == guessed) {
        attributes.remove(at);
        told.add(Fact::Guessed, stack.join(";"));
    }
    // The last that began before.
    let processes = file
        .processes
        .iter()
        .filter(|(time, event, pid, _)| *time <= sample.time && *pid == sample.pid && event != "ProcessExit");
    Row {
        kind: sample.kind.clone(),
        time: Some(sample.time - START),
        pid: Some(sample.pid as u32),
        process: processes.max_by_key(|(time, ..)| *time).map(|(.., name)| name.clone()),
        tid: Some(sample.tid as u32),
        thread: Some(sample.thread.clone()),
        cpu: Some(sample.cpu as u16),
        attributes,
        stack,
        value: sample.value,
    }
}
