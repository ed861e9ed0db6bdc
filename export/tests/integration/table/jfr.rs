//! JFR, as the JDK's own `jfr print --json` shows it.

use serde_json::Value;

use super::facts::{Fact, Reader, Row, Said, Span, Told, command_line};
use super::recording::{PERIOD, REALTIME};
use crate::jfr::{duration, nanoseconds, printed};
use crate::tools::{file, tool};

pub(super) const READER: Reader = Reader {
    format: "jfr",
    column: "JFR",
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
        Fact::Mapping,
        Fact::Line,
        Fact::LaterLine,
        Fact::Inlined,
        Fact::Period,
        Fact::Host,
        Fact::Kernel,
        Fact::Command,
        Fact::Lost,
        Fact::Account,
        Fact::Span,
    ],
    read: |bytes| {
        let mut jfr = tool("jfr")?;
        let file = file(bytes, ".jfr");
        let mut told = Told::default();
        for event in printed(&mut jfr, &file) {
            add(&event, &mut told);
        }
        Some(told)
    },
};

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn add(event: &Value, told: &mut Told) {
    let of = &event["values"];
    let time = nanoseconds(of["startTime"].as_str().unwrap()) - REALTIME;
    match event["type"].as_str().unwrap() {
        "collector.Recording" => {
            told.add(Fact::Host, text(&of["host"]));
            told.add(Fact::Kernel, text(&of["kernel"]));
            told.add(Fact::Command, text(&of["command"]));
            told.add(Fact::Lost, of["lostSamples"].to_string());
        }
        "collector.Note" => told.add(Fact::Account, text(&of["text"])),
        "collector.Process" => {
            let process = format!("{} {}", of["processId"], text(&of["name"]));
            told.process(of["processId"].as_u64().unwrap(), &text(&of["name"]));
            if of["startSeen"] == true {
                told.add(Fact::Start, format!("{process} {time}"));
            }
            if of["endSeen"] == true {
                let end = time + duration(of["duration"].as_str().unwrap()).unsigned_abs();
                told.add(Fact::End, format!("{process} {end}"));
            }
            if of["parentId"] != 0 {
                told.add(Fact::Parent, format!("{process} {}", of["parentId"]));
            }
            let (pid, name) = (of["processId"].as_u64().unwrap() as u32, text(&of["name"]));
            for (what, field) in
                [("command", "commandLine"), ("container", "container"), ("cgroup", "cgroup")]
            {
                if let Some(value) = of[field].as_str() {
                    told.of_process(pid, &name, &format!("{what}: {value}"));
                }
            }
            if of["exitStatus"] != -1 {
                told.of_process(pid, &name, &format!("exit status: {}", of["exitStatus"]));
            }
            if of["namespaceProcessId"] != 0 {
                told.of_process(pid, &name, &format!("pid in its namespace: {}", of["namespaceProcessId"]));
            }
            if let Some(user) = of["userName"].as_str() {
                told.of_process(pid, &name, &format!("user: {user} ({})", of["userId"]));
            }
        }
        "collector.Program" => {
            let arguments: Vec<String> = serde_json::from_str(of["arguments"].as_str().unwrap()).unwrap();
            let line = command_line(arguments.iter().map(String::as_str));
            assert_eq!(of["argumentsCut"], false);
            told.add(Fact::Program, format!("{} {} {time}: {line}", of["processId"], text(&of["name"])));
        }
        "collector.Span" => {
            assert_eq!(of["endSeen"], true);
            let [timeline, name] = [&of["timeline"], &of["name"]].map(text);
            let thread = &of["eventThread"];
            let is_of_process = of["process"].is_string();
            told.span(Span {
                pid: of["processId"].as_u64().filter(|_| is_of_process),
                tid: thread["osThreadId"].as_u64(),
                begin: time,
                lasted: duration(of["duration"].as_str().unwrap()).unsigned_abs(),
                timeline,
                name,
                attributes: attributes(of),
            });
        }
        "jdk.NativeLibrary" => {
            let path = text(&of["name"]);
            let [start, end] = ["baseAddress", "topAddress"].map(|name| of[name].as_u64().unwrap());
            told.add(Fact::Mapping, format!("{} {start:#x}-{end:#x} {path} {time}", of["processId"]));
            told.add(Fact::BuildId, format!("{path} {}", text(&of["buildId"])));
        }
        "jdk.ActiveSetting" if of["name"] == "period" => {
            assert_eq!(of["value"], format!("{PERIOD} ns"));
            // That of a type of events, which is not shown by its name.
            told.add(Fact::Period, format!("cpu {PERIOD}"));
        }
        "jdk.ActiveRecording"
        | "jdk.ActiveSetting"
        | "jdk.CPUInformation"
        | "jdk.OSInformation"
        | "jdk.JVMInformation" => {}
        sample => {
            let kind = match sample {
                "jdk.ExecutionSample" => "cpu",
                "collector.OffCpu" => "off_cpu",
                "jdk.ObjectAllocationSample" => "alloc_space",
                "collector.SchedSchedSwitch" => "sched:sched_switch",
                other => panic!("{other}"),
            };
            let row = row(kind, of, time, told);
            told.rows.push(row);
        }
    }
}

/// A text with all of them; those that are numbers are fields, too.
fn attributes(of: &Value) -> Vec<(String, Said)> {
    let all = text(&of["attributes"]);
    let pairs = all.split(", ").filter_map(|pair| pair.split_once('='));
    let said = pairs.map(|(name, value)| {
        // Of events without it the smallest number, which `jfr print` shows as `N/A`.
        let number = of.get(name).and_then(Value::as_i64).filter(|number| *number != i64::MIN);
        let said = number.map_or_else(|| value.into(), Said::Number);
        assert!(number.is_none_or(|number| number.to_string() == value), "{name}");
        (name.to_owned(), said)
    });
    said.collect()
}

fn row(kind: &str, of: &Value, time: u64, told: &mut Told) -> Row {
    let thread = of.get("sampledThread").or(of.get("eventThread")).unwrap();
    // As `app (pid 300)`.
    let group = text(&thread["group"]["name"]);
    let (process, pid) = group.strip_suffix(')').unwrap().rsplit_once(" (pid ").unwrap();
    assert_eq!(pid, thread["processId"].to_string());
    let value = match of.get("value").or(of.get("weight")) {
        None => 1,
        Some(Value::String(time)) => duration(time),
        Some(number) => number.as_i64().unwrap(),
    };
    let mut stack = Vec::new();
    for frame in of["stackTrace"]["frames"].as_array().into_iter().flatten() {
        let (method, class) = (&frame["method"], &frame["method"]["type"]);
        let name = text(&method["name"]);
        if let Some(folder) = class["package"]["name"].as_str() {
            told.path(&name, &format!("{folder}/{}", text(&class["name"])));
        }
        told.line(&name, "", frame["lineNumber"].as_u64().unwrap());
        if frame["type"] == "Inlined" {
            told.add(Fact::Inlined, &name);
        }
        stack.push(name);
    }
    stack.reverse();
    Row {
        kind: kind.to_owned(),
        time: Some(time),
        pid: pid.parse().ok(),
        process: Some(process.to_owned()),
        tid: thread["osThreadId"].as_u64().map(|tid| tid as u32),
        thread: Some(text(&thread["osName"])),
        cpu: of["cpu"].as_u64().map(|cpu| cpu as u16),
        attributes: attributes(of),
        stack,
        value,
    }
}
