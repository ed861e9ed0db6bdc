//! Firefox Profiler's processed profile, by its tables. Its own command line reads such files in `tests/browser`, and shows attributes
//! and spans here.

use export::format::firefox::Firefox;
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::facts::{Fact, Reader, Row, Said, Span, Told, unnamed};
use super::recording::{PERIOD, last_name, recording};
use crate::random::written;
use crate::tools::{file, node, output};

pub(super) const READER: Reader = Reader {
    format: "firefox",
    column: "Firefox Profiler",
    holds: |row| {
        // A main thread is called after its process.
        let is_main = row.pid == row.tid;
        let name = if is_main { row.process.clone() } else { last_name(&row, |_| true) };
        let row = Row { thread: name, ..row };
        Some(match row.kind.as_str() {
            "cpu" => Row { cpu: None, attributes: Vec::new(), ..row },
            // Those of a process.
            "alloc_space" => {
                let (tid, thread) = (row.pid, row.process.clone());
                Row { tid, thread, cpu: None, attributes: Vec::new(), ..row }
            }
            _ => row,
        })
    },
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
        Fact::Renamed,
        Fact::Path,
        Fact::PathBesideSource,
        Fact::BuildId,
        Fact::Line,
        Fact::LaterLine,
        Fact::Source,
        Fact::Inlined,
        Fact::Guessed,
        Fact::Period,
        Fact::Host,
        Fact::Kernel,
        Fact::Command,
        Fact::Account,
        Fact::Span,
    ],
    read: |bytes| {
        let file: Value = serde_json::from_reader(GzDecoder::new(bytes)).unwrap();
        Some(read(&file))
    },
};

fn read(file: &Value) -> Told {
    let mut told = Told::default();
    let meta = &file["meta"];
    // As `app --all on build-07`, and `Linux 6.18.0 x86_64`.
    let (command, host) = text(&meta["product"]).rsplit_once(" on ").unwrap();
    told.add(Fact::Command, command);
    told.add(Fact::Host, host);
    told.add(Fact::Kernel, text(&meta["oscpu"]).strip_suffix(" x86_64").unwrap());
    told.add(Fact::Period, format!("cpu {}", nanoseconds(&meta["interval"])));
    for library in list(&file["libs"]) {
        // The kernel's is not known.
        if let Some(build_id) = library["codeId"].as_str() {
            told.add(Fact::BuildId, format!("{} {build_id}", text(&library["path"])));
        }
    }
    for thread in list(&file["threads"]) {
        let thread = Thread::of(file, thread);
        thread.process(&mut told);
        thread.samples(&mut told);
        thread.allocations(&mut told);
        thread.markers(&mut told);
    }
    told
}

/// As the application's own code shows it: markers that are spans or have attributes, with pid, tid, name, start, how long they last, the
/// span's name, and the values of the attributes.
#[test]
fn the_application_shows_attributes_and_spans() {
    let Some(mut reader) = node("firefox_file.mjs") else { return };
    let (machine, symbols) = recording();
    let file = file(&written(&Firefox, &machine, &symbols), ".firefox.json.gz");
    let threads: Value = serde_json::from_str(&output(reader.arg(&*file))).unwrap();
    let mut shown = Vec::new();
    for thread in list(&threads) {
        for marker in list(&thread["markers"]) {
            let own = ["span", "attribute0", "attribute1"].map(|field| marker["data"][field].clone());
            if own.iter().any(|value| !value.is_null()) {
                let of = ["pid", "tid"].map(|field| thread[field].clone());
                let at = ["name", "start", "lasts"].map(|field| marker[field].clone());
                shown.push(json!([of, at, own]));
            }
        }
    }
    shown.sort_by_key(|marker| marker[1][1].as_u64());
    let expected = json!([
        [[300, 300], ["builds", 1_500_000, 30_000_000], ["link", "release", 5_000_000_000_u64]],
        [[300, 300], ["requests", 4_000_000, 500_000], ["answer", null, null]],
        [[300, 301], ["tasks", 6_500_000, 700_001], ["poll", "7", 3]],
        [[300, 301], ["off_cpu", 15_000_000, 10_000_000], [null, "0x7f00", "7"]],
        [[300, 300], ["off_cpu", 16_000_000, null], [null, "yes", null]],
        [[300, 301], ["off_cpu", 20_000_000, 10_000_000], [null, 1_099_511_627_776_u64, "/var/log/x"]],
    ]);
    assert_eq!(json!(shown), expected);
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Of a time in milliseconds.
fn nanoseconds(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1e6).round() as u64
}

/// A thread, and what all of its rows have.
struct Thread<'a> {
    file: &'a Value,
    table: &'a Value,
    pid: u32,
    row: Row,
}

impl<'a> Thread<'a> {
    fn of(file: &'a Value, thread: &'a Value) -> Self {
        // A number tells it apart from the one that had the id before, as in `400.1`.
        let id = |value: &Value| text(value).split('.').next().unwrap().parse::<u32>().unwrap();
        let pid = id(&thread["pid"]);
        let row = Row {
            pid: Some(pid),
            process: Some(text(&thread["processName"]).to_owned()),
            tid: Some(id(&thread["tid"])),
            thread: Some(text(&thread["name"]).to_owned()),
            ..Row::default()
        };
        Self { file, table: thread, pid, row }
    }

    fn string(&self, index: &Value) -> &str {
        text(&self.table["stringArray"][index.as_u64().unwrap() as usize])
    }

    fn process(&self, told: &mut Told) {
        let name = format!("{} {}", self.pid, self.row.process.as_deref().unwrap());
        told.process(self.pid.into(), self.row.process.as_deref().unwrap());
        let start = nanoseconds(&self.table["processStartupTime"]);
        if start > 0 {
            told.add(Fact::Start, format!("{name} {start}"));
        }
        if !self.table["processShutdownTime"].is_null() {
            told.add(Fact::End, format!("{name} {}", nanoseconds(&self.table["processShutdownTime"])));
        }
    }

    /// Names on a stack, the outermost first; with what is told of its frames.
    fn stack(&self, stack: &Value, told: &mut Told) -> Vec<String> {
        let (mut names, mut stack, mut is_guessed) = (Vec::new(), stack, false);
        let at = |table: &str, column: &str, index: &Value| {
            &self.table[table][column][index.as_u64().unwrap() as usize]
        };
        while !stack.is_null() {
            let frame = at("stackTable", "frame", stack);
            let function = at("frameTable", "func", frame);
            let mut name = self.string(at("funcTable", "name", function)).to_owned();
            let category = at("frameTable", "category", frame).as_u64().unwrap() as usize;
            let subcategory = at("frameTable", "subcategory", frame).as_u64().unwrap() as usize;
            let subcategory = &self.file["meta"]["categories"][category]["subcategories"][subcategory];
            if *subcategory == "Inlined" {
                told.add(Fact::Inlined, &name);
            }
            is_guessed |= *subcategory == "Guessed";
            let resource = at("funcTable", "resource", function);
            if resource.as_i64().is_some_and(|resource| resource >= 0) {
                let library = at("resourceTable", "lib", resource).as_u64().unwrap() as usize;
                let path = text(&self.file["libs"][library]["path"]);
                if let Some(address) = name.strip_prefix("0x") {
                    assert_eq!(
                        u64::from_str_radix(address, 16).ok(),
                        at("frameTable", "address", frame).as_u64()
                    );
                    name = unnamed(path, address);
                }
                told.path(&name, path);
            }
            let source = at("funcTable", "fileName", function);
            let source = if source.is_null() { "" } else { self.string(source) };
            told.line(&name, source, at("frameTable", "line", frame).as_u64().unwrap_or(0));
            names.push(name);
            stack = at("stackTable", "prefix", stack);
        }
        names.reverse();
        if is_guessed {
            told.add(Fact::Guessed, names.join(";"));
        }
        names
    }

    fn samples(&self, told: &mut Told) {
        let samples = &self.table["samples"];
        let mut time = 0.0;
        for (at, stack) in list(&samples["stack"]).iter().enumerate() {
            time += samples["timeDeltas"][at].as_f64().unwrap();
            let value = samples["weight"][at].as_i64().unwrap();
            // The two that say when the recording began and ended.
            if value == 0 {
                continue;
            }
            assert_eq!(samples["threadCPUDelta"][at].as_u64(), Some(value.unsigned_abs() * PERIOD / 1000));
            let stack = self.stack(stack, told);
            let time = Some((time * 1e6).round() as u64);
            told.rows.push(Row { kind: "cpu".to_owned(), time, stack, value, ..self.row.clone() });
        }
    }

    fn allocations(&self, told: &mut Told) {
        let allocations = &self.table["nativeAllocations"];
        for (at, stack) in allocations["stack"].as_array().into_iter().flatten().enumerate() {
            let stack = self.stack(stack, told);
            let time = Some(nanoseconds(&allocations["time"][at]));
            let value = allocations["weight"][at].as_i64().unwrap();
            told.rows.push(Row { kind: "alloc_space".to_owned(), time, stack, value, ..self.row.clone() });
        }
    }

    fn markers(&self, told: &mut Told) {
        let markers = &self.table["markers"];
        for (at, data) in list(&markers["data"]).iter().enumerate() {
            let name = self.string(&markers["name"][at]);
            match text(&data["type"]) {
                "recording" if name == "process" => {
                    told.of_process(
                        self.pid,
                        self.row.process.as_deref().unwrap(),
                        self.string(&data["text"]),
                    );
                }
                "recording" => told.add(Fact::Account, self.string(&data["text"])),
                "renamed" => {
                    let (tid, name) = (self.row.tid.unwrap(), self.string(&data["name"]));
                    told.add(Fact::Renamed, format!("{} {tid} {name}", self.pid));
                }
                of if of.starts_with("span") => {
                    let [begin, end] =
                        ["startTime", "endTime"].map(|column| nanoseconds(&markers[column][at]));
                    let is_of = |owner: &str| of.split(": ").next() == Some(owner);
                    let pid = (!is_of("span of the recording")).then_some(self.pid.into());
                    told.span(Span {
                        pid,
                        tid: self.row.tid.filter(|_| is_of("span")).map(u64::from),
                        begin,
                        lasted: end - begin,
                        timeline: name.to_owned(),
                        name: self.string(&data["span"]).to_owned(),
                        attributes: self.attributes(of, data),
                    });
                }
                of_samples => {
                    let value = data["value"].as_f64().unwrap() as i64;
                    let time = nanoseconds(&markers["startTime"][at]);
                    let attributes = self.attributes(of_samples, data);
                    let is_estimate = attributes.iter().any(|(name, _)| name == "estimated");
                    if name == "off_cpu" && !is_estimate {
                        assert_eq!(nanoseconds(&markers["endTime"][at]) - time, value.unsigned_abs());
                    }
                    let stack = self.stack(&data["cause"]["stack"], told);
                    told.rows.push(Row {
                        kind: name.to_owned(),
                        time: Some(time),
                        cpu: Some(data["cpu"].as_f64().unwrap() as u16),
                        attributes,
                        stack,
                        value,
                        ..self.row.clone()
                    });
                }
            }
        }
    }

    /// Fields of a marker beside its value and CPU, or its name, which are called as its schema says.
    fn attributes(&self, marker_type: &str, data: &Value) -> Vec<(String, Said)> {
        let schemas = list(&self.file["meta"]["markerSchema"]);
        let schema = schemas.iter().find(|schema| schema["name"] == marker_type).unwrap();
        let is_attribute = |field: &&Value| !matches!(text(&field["key"]), "value" | "cpu" | "span");
        let named = list(&schema["fields"]).iter().filter(is_attribute).map(|field| {
            let value = &data[text(&field["key"])];
            let said = match text(&field["format"]) {
                "unique-string" => self.string(value).into(),
                "integer" => Said::Number(value.as_f64().unwrap() as i64),
                other => panic!("{other}"),
            };
            (text(&field["label"]).to_owned(), said)
        });
        named.collect()
    }
}
