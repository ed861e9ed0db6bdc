//! JFR: recordings of known truth, written and read by the JDK's own `jfr` and by the crate `jfrs`.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::intern::StringId;
use collector_common::record::{
    AttributeValue, ESTIMATED, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind,
    Sample, ThreadId, Unit,
};
use export::format::jfr::Jfr;
use export::format::{ExportFormat as _, Profile};
use export::symbolize::{Function, Symbols};
use serde_json::Value;

use crate::made::Made;
use crate::tools::{file, output, tool};

/// What the made recordings' clock is behind the time of day.
pub(crate) const REALTIME: u64 = 1_750_000_000_123_456_789 - 1_000;

pub(crate) fn written(machine: &ExportMachine, symbols: &Symbols) -> Vec<u8> {
    let mut bytes = Vec::new();
    Jfr.write(Profile { machine, symbols }, &mut bytes).unwrap();
    bytes
}

/// The made recording, with samples of all kinds of values behind it, inlined functions with lines, and code of a JIT compiler.
pub(crate) fn every_kind() -> Made {
    let Made { mut machine, .. } = Made::new();
    let process = machine.thread(ThreadId(0)).process;
    let mut module = |kind, path| {
        let path = machine.intern_string(path);
        machine.add_module(Module { kind, path, build_id: None })
    };
    let library = module(ModuleKind::File, "/usr/lib/x/libñ.so.1");
    let jit = module(ModuleKind::Anonymous(process), "[anon]");
    let mut frame = |module, address, flags| {
        machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags(flags) })
    };
    let with_inlined = frame(library, 0x1234, 0);
    let compiled = frame(jit, 0x7000_0000, FrameFlags::RETURN_ADDRESS);
    let cut = frame(ModuleId::KERNEL, 0, FrameFlags::CUT);
    let stack = machine.intern_stack(&[with_inlined, compiled]);
    let cut_stack = machine.intern_stack(&[compiled, cut]);

    let list = |machine: &mut ExportMachine, pairs: &[(&str, &str)]| {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(key, value)| (machine.intern_string(key), machine.intern_string(value)))
            .collect();
        machine.attributes_mut().intern(&pairs)
    };
    let waker = list(&mut machine, &[("waker", r"a,b=c\d"), ("open", "yes")]);
    let estimated = list(&mut machine, &[("state", "blocked"), (ESTIMATED, "yes")]);
    let running = list(&mut machine, &[("state", "running")]);
    let none = list(&mut machine, &[]);

    let thread = ThreadId(1);
    let mut add = |kind: (&str, Unit), samples: &[(u64, i64, _, _)]| {
        let kind = machine.add_kind(kind.0, kind.1, 1);
        for &(time, value, stack, attributes) in samples {
            let time = Nanos(time);
            machine.add_sample(&Sample { time, thread, stack, cpu: 1, kind, value, attributes });
        }
    };
    add(
        ("off_cpu", Unit::Nanoseconds),
        &[(5_000, 7_000_000, stack, waker), (6_000, 123_456_789_012, cut_stack, estimated)],
    );
    add(
        ("wall_clock", Unit::Nanoseconds),
        &[(7_000, 1_000_001, stack, running), (8_000, 2, cut_stack, estimated)],
    );
    add(("alloc_space", Unit::Bytes), &[(9_000, 1 << 40, stack, none)]);
    add(("inuse_space", Unit::Bytes), &[(9_000, -5, stack, none)]);
    add(("sched:sched_switch", Unit::Count), &[(500, i64::MIN, stack, none), (9_001, 3, cut_stack, waker)]);

    let mut symbols = Symbols::unresolved(&machine);
    rename(&mut symbols);
    let mut function = |name: &str, line| {
        let name = symbols.intern(name);
        Function { name, linkage: name, line, ..Function::default() }
    };
    let functions = [function("Vec<T>::push", 77), function("caller", 12)];
    symbols.set_functions(with_inlined, &functions);
    symbols.set(compiled, "LazyCompile:*run", "LazyCompile:*run");
    Made { machine, symbols }
}

/// The names of the made recording's frames, which are the first ones.
fn rename(symbols: &mut Symbols) {
    let Made { machine, symbols: before } = Made::new();
    for id in (0..machine.frames().len() as u32).map(FrameId).filter(|id| before.is_resolved(*id)) {
        let name = before.name(id);
        symbols.set(id, name.function, name.linkage);
    }
}

/// A sample, by what it says.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    event: String,
    /// Nanoseconds since 1970.
    time: u64,
    thread: String,
    tid: u64,
    pid: u64,
    group: String,
    value: i64,
    duration: Option<i64>,
    cpu: u64,
    attributes: String,
    is_cut: bool,
    /// Package, class, method, line and type.
    frames: Vec<[String; 5]>,
}

/// What of a machine is expected in the file.
fn expected(machine: &ExportMachine, symbols: &Symbols) -> Vec<Told> {
    let event_of = |kind: &str| match kind {
        "cpu" => "jdk.ExecutionSample",
        "wall_clock" => "profiler.WallClockSample",
        "alloc_space" => "jdk.ObjectAllocationSample",
        "off_cpu" => "collector.OffCpu",
        "inuse_space" => "collector.InuseSpace",
        "sched:sched_switch" => "collector.SchedSchedSwitch",
        other => panic!("{other}"),
    };
    let of = |sample: Sample| {
        let kind = machine.string(machine.kinds()[usize::from(sample.kind.0)].name);
        let thread = machine.thread(sample.thread);
        let process = machine.process(thread.process);
        let stack = machine.stacks().get(sample.stack);
        let has = |id: &FrameId, flag| machine.frames().get(*id).flags.has(flag);
        let list = machine.attributes().get(sample.attributes);
        let text = |text: &str| text.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
        let attribute = |(key, value): &(StringId, AttributeValue)| {
            format!("{}={}", text(machine.string(*key)), text(&machine.attribute_text(*value)))
        };
        let attributes: Vec<_> = list.iter().map(attribute).collect();
        let is_estimate = attributes.iter().any(|text| text.starts_with(ESTIMATED));
        let mut frames = Vec::new();
        for id in stack.iter().filter(|id| !has(id, FrameFlags::CUT)) {
            let module = machine.module(machine.frames().get(*id).module);
            let path = machine.string(module.path);
            let (package, class) = path.rsplit_once('/').unwrap_or(("", path));
            for function in symbols.functions(*id) {
                let frame_type = match module.kind {
                    _ if function.is_inlined => "Inlined",
                    ModuleKind::Kernel => "Kernel",
                    ModuleKind::Anonymous(_) => "JIT compiled",
                    _ => "Native",
                };
                let name = symbols.function(function.name);
                let line = function.line.to_string();
                frames.push([package, class, name, &line, frame_type].map(str::to_owned));
            }
        }
        Told {
            event: event_of(kind).to_owned(),
            time: REALTIME + sample.time.0,
            thread: machine.string(thread.name).to_owned(),
            tid: thread.tid.0.into(),
            pid: process.pid.0.into(),
            group: format!("{} (pid {})", machine.string(process.name), process.pid.0),
            value: sample.value,
            duration: (kind == "off_cpu").then_some(if is_estimate { 0 } else { sample.value }),
            cpu: sample.cpu.into(),
            attributes: attributes.join(", "),
            is_cut: stack.iter().any(|id| has(id, FrameFlags::CUT)),
            frames,
        }
    };
    let mut told: Vec<_> = machine.samples().iter().map(of).collect();
    told.sort();
    told
}

/// What `jfr print --json` shows of a file.
pub(crate) fn printed(jfr: &mut Command, path: &Path) -> Vec<Value> {
    let text = output(jfr.args(["print", "--json", "--stack-depth", "10000"]).arg(path));
    let Value::Array(events) = serde_json::from_str::<Value>(&text).unwrap()["recording"]["events"].take()
    else {
        panic!("no events")
    };
    events
}

/// Nanoseconds since 1970 of a time as `jfr` prints it.
pub(crate) fn nanoseconds(time: &str) -> u64 {
    time.parse::<jiff::Timestamp>().unwrap().as_nanosecond().try_into().unwrap()
}

/// Nanoseconds of a duration as `jfr` prints it.
pub(crate) fn duration(text: &str) -> i64 {
    text.parse::<jiff::SignedDuration>().unwrap().as_nanos().try_into().unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A sample as `jfr` shows it; `None` for another event.
fn shown(event: &Value) -> Option<Told> {
    let values = &event["values"];
    let thread = values.get("sampledThread").or(values.get("eventThread"))?;
    let stack = &values["stackTrace"];
    let frames = stack["frames"].as_array().map(Vec::as_slice).unwrap_or_default();
    let frame = |frame: &Value| {
        let method = &frame["method"];
        assert_eq!(method["descriptor"], "()L;");
        let class = &method["type"];
        [
            text(&class["package"]["name"]),
            text(&class["name"]),
            text(&method["name"]),
            frame["lineNumber"].to_string(),
            text(&frame["type"]),
        ]
    };
    let value = values.get("value").or(values.get("weight")).or(values.get("timeSpan"));
    let value = match value {
        None => 1,
        Some(Value::String(time)) => duration(time),
        Some(number) => number.as_i64().unwrap(),
    };
    Some(Told {
        event: text(&event["type"]),
        time: nanoseconds(values["startTime"].as_str()?),
        thread: text(&thread["osName"]),
        tid: thread["osThreadId"].as_u64()?,
        pid: thread["processId"].as_u64()?,
        group: text(&thread["group"]["name"]),
        value,
        duration: values.get("duration").and_then(Value::as_str).map(duration),
        cpu: values["cpu"].as_u64()?,
        attributes: text(&values["attributes"]),
        is_cut: stack["truncated"].as_bool().unwrap_or_default(),
        frames: frames.iter().map(frame).collect(),
    })
}

#[test]
fn the_jdk_shows_what_was_recorded() {
    let Some(mut jfr) = tool("jfr") else { return };
    let Made { machine, symbols } = every_kind();
    let file = file(&written(&machine, &symbols), ".jfr");
    let events = printed(&mut jfr, &file);
    let mut samples: Vec<_> = events.iter().filter_map(shown).collect();
    samples.sort();
    assert_eq!(samples, expected(&machine, &symbols));

    let of = |name: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["type"] == name).map(|event| &event["values"]).collect()
    };
    let recording = of("collector.Recording")[0];
    assert_eq!(
        (&recording["host"], &recording["kernel"], &recording["lostSamples"], &recording["command"]),
        (&"build-07".into(), &"Linux 6.18.0".into(), &3.into(), &"prog --fast".into())
    );
    let notes: Vec<_> = of("collector.Note").iter().map(|note| text(&note["text"])).collect();
    assert_eq!(notes, ["3 lost (ring_full 3)", "100.00 % are complete"]);
    let settings: Vec<_> = of("jdk.ActiveSetting")
        .iter()
        .map(|setting| [text(&setting["name"]), text(&setting["value"])])
        .collect();
    assert!(settings.contains(&["period".to_owned(), "1003009 ns".to_owned()]));
    assert_eq!(of("jdk.OSInformation")[0]["osVersion"], "Linux 6.18.0");
    assert_eq!(of("jdk.CPUInformation")[0]["hwThreads"], 2);
    let libraries: Vec<_> = of("jdk.NativeLibrary")
        .iter()
        .map(|library| [text(&library["name"]), text(&library["buildId"])])
        .collect();
    assert_eq!(libraries, [["/opt/prog", "abcd01"]; 2]);
    let processes: Vec<_> = of("collector.Process")
        .iter()
        .map(|of| (of["processId"].as_u64(), of["parentId"].as_u64(), text(&of["startTime"])))
        .collect();
    // What was there before is told of as from the first time that is known.
    let time = |nanoseconds: &str| format!("2025-06-15T15:06:40.{nanoseconds}Z");
    assert!(processes.contains(&(Some(200), Some(100), time("123455794"))), "{processes:?}");
    assert!(processes.contains(&(Some(100), Some(0), time("123456289"))), "{processes:?}");
}

#[test]
fn the_jdk_counts_what_was_recorded() {
    let Some(mut jfr) = tool("jfr") else { return };
    let Made { machine, symbols } = every_kind();
    let file = file(&written(&machine, &symbols), ".jfr");
    let summary = output(jfr.arg("summary").arg(&*file));
    let count = |name: &str| -> Option<u64> {
        let mut line =
            summary.lines().find(|line| line.split_whitespace().next() == Some(name))?.split_whitespace();
        line.nth(1)?.parse().ok()
    };
    assert!(summary.contains("Chunks: 1"), "{summary}");
    for (name, expected) in [
        ("jdk.ExecutionSample", 85),
        ("profiler.WallClockSample", 2),
        ("jdk.ObjectAllocationSample", 1),
        ("collector.OffCpu", 2),
        ("collector.SchedSchedSwitch", 2),
        ("collector.Process", 2),
    ] {
        assert_eq!(count(name), Some(expected), "{name}: {summary}");
    }
}

/// Another reader, which knows no types by itself.
#[test]
fn jfrs_reads_the_same_functions_threads_and_totals() {
    use jfrs::reader::JfrReader;
    use jfrs::reader::event::Accessor;

    fn string(value: Option<Accessor<'_>>) -> String {
        value.and_then(|value| <&str>::try_from(value.value).ok()).unwrap_or_default().to_owned()
    }
    let Made { machine, symbols } = every_kind();
    let mut reader = JfrReader::new(Cursor::new(written(&machine, &symbols)));
    let mut found: BTreeMap<[String; 3], u32> = BTreeMap::new();
    for chunk in reader.chunks() {
        let (mut reader, chunk) = chunk.unwrap();
        for event in reader.events(&chunk) {
            let event = event.unwrap();
            if event.class.name() != "jdk.ExecutionSample" {
                continue;
            }
            let thread = string(event.value().get_field("sampledThread").unwrap().get_field("osName"));
            let stack = event.value().get_field("stackTrace").and_then(|stack| stack.get_field("frames"));
            let top = stack.and_then(|frames| frames.as_iter()?.next()?.get_field("method")?.resolve());
            let symbol = |of: &str| {
                let name = top.as_ref().and_then(|method| method.get_field(of));
                let name = name.and_then(|of| {
                    of.get_field("string").or_else(|| of.get_field("name")?.get_field("string"))
                });
                string(name)
            };
            *found.entry([thread, symbol("type"), symbol("name")]).or_default() += 1;
        }
    }
    let expected = [
        (["prog", "[kernel]", "vfs_read"], 8),
        (["prog", "[unmapped]", "[unmapped]+0xdead0000"], 2),
        (["prog", "prog", "prog+0x8123"], 4),
        (["prog", "prog", "recurse"], 10),
        (["prog", "prog", "work(int; char)"], 40),
        (["worker 7", "", ""], 1),
        (["worker 7", "prog", "work(int; char)"], 20),
    ];
    let expected = expected.map(|(names, count)| (names.map(str::to_owned), count));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
}

/// As many distinct stacks as there is no room for in one chunk.
#[test]
fn chunks_can_be_read_each_by_itself() {
    let Some(mut jfr) = tool("jfr") else { return };
    let mut machine = ExportMachine::default();
    let kind = machine.add_kind("cpu", Unit::Count, 1_000_000);
    let process = machine.add_process(Pid(7), "p", None, Nanos(0));
    let name = machine.intern_string("p");
    let thread = machine.intern_thread(process, Tid(7), name);
    let frames: Vec<_> = (0..200)
        .map(|address| {
            let flags = FrameFlags(FrameFlags::KERNEL);
            machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(address), flags })
        })
        .collect();
    for at in 0..12_000_usize {
        let mut stack = frames.clone();
        stack.rotate_left(at % 200);
        stack.truncate(140 + at / 200);
        let stack = machine.intern_stack(&stack);
        machine.add_sample(&Sample {
            time: Nanos(at as u64 * 1_000),
            thread,
            stack,
            kind,
            value: 1,
            ..Sample::default()
        });
    }
    let file = file(&written(&machine, &Symbols::unresolved(&machine)), ".jfr");
    let chunks = output(jfr.arg("summary").arg(&*file));
    assert!(chunks.contains("Chunks: 2"), "{chunks}");
    let printed = output(tool("jfr").unwrap().args(["print", "--stack-depth", "1"]).arg(&*file));
    let tops = |name: &str| printed.matches(&format!("    {name}() line: 0\n")).count();
    assert_eq!(printed.matches("jdk.ExecutionSample {").count(), 12_000);
    assert_eq!((tops("[kernel].[kernel]+0x0"), tops("[kernel].[kernel]+0xc7")), (60, 60));
}
