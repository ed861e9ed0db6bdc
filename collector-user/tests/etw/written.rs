//! A real file in other formats, by the program: read by `go tool pprof`, by Python, and by our own reader of nettrace.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::data::bytes;

const SAMPLES: i64 = 6320;

fn collector(folder: &Path, args: &[&str]) -> Output {
    let output =
        Command::new(env!("CARGO_BIN_EXE_collector")).args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The first line of a report, and its three rows.
fn reported(folder: &Path, file: &str) -> [String; 2] {
    let report = String::from_utf8(collector(folder, &["report", file, "--top", "3"]).stdout).unwrap();
    let (first, rows) = report.split_once('\n').unwrap();
    [first, rows].map(str::to_owned)
}

/// Stacks and how often each is there.
fn folded(path: &Path) -> BTreeMap<String, i64> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            (stack.to_owned(), count.parse().unwrap())
        })
        .collect()
}

/// Events with bytes or fields of their own, in their order.
fn events(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["type"] == "event").collect()
}

/// What nettrace keeps of an event. That a number is an address, which JSON lines show, how the process is called that stands for no
/// process (`Idle`), and from when to when a library was mapped that is on a stack it does not say.
fn kept(mut event: Value) -> Value {
    fn plain(value: &mut Value) {
        match value {
            Value::String(text) => {
                let number = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
                if let Some(number) = number {
                    *value = number.into();
                }
            }
            Value::Array(values) => values.iter_mut().for_each(plain),
            Value::Object(values) => values.values_mut().for_each(plain),
            _ => {}
        }
    }
    plain(&mut event["fields"]);
    if event["pid"] == 0 {
        event["process"].take();
    }
    if let Some(stack) = event["stack"].as_array() {
        event["stack"] = stack.len().into();
    }
    event
}

/// Every event of a real file with its time, thread, CPU and fields, behind nettrace and without it. Out: of how many the fields are there in part,
/// which they say themselves.
fn come_back(folder: &Path, name: &str, count: usize) -> usize {
    let [before, after] = ["", "-back"].map(|which| events(&folder.join(format!("{name}{which}.jsonl"))));
    assert_eq!((before.len(), after.len()), (count, count), "{name}");
    let mut partial = 0;
    for (before, after) in before.into_iter().zip(after) {
        let (mut before, mut after) = (kept(before), kept(after));
        if after["attributes"]["fields"] == "partial" {
            partial += 1;
            after.as_object_mut().unwrap().remove("attributes");
            let there = after["fields"]["Values"].as_str().unwrap().len();
            let Value::String(values) = &mut before["fields"]["Values"] else { panic!("no bytes") };
            values.truncate(there);
        }
        assert!(before == after, "{name}: {} at {}", before["event"], before["time"]);
    }
    partial
}

/// Of so many of the samples a function is on the stack.
fn with(stacks: &BTreeMap<String, i64>, function: &str) -> i64 {
    let is_in = |stack: &str| stack.split(';').any(|own| own == function);
    stacks.iter().filter(|(stack, _)| is_in(stack)).map(|(_, count)| count).sum()
}

#[test]
fn a_trace_is_the_same_in_all_formats() {
    let Some(bytes) = bytes("net.4.5.2.x64.etl") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("net.etl"), bytes).unwrap();
    let outputs = ["net.folded", "net.pb.gz", "net.html", "net.nettrace", "net.jsonl"];
    let args: Vec<&str> =
        ["convert", "net.etl"].into_iter().chain(outputs.iter().flat_map(|output| ["-o", output])).collect();
    let told = String::from_utf8(collector(folder, &args).stderr).unwrap();
    assert!(told.contains(" samples, 0 lost\n") && told.contains("_NT_SYMBOL_PATH"), "{told}");

    let stacks = folded(&folder.join("net.folded"));
    assert_eq!(stacks.values().sum::<i64>(), SAMPLES);
    let main = with(&stacks, "Test.Program.Main");
    assert!(main > 3000, "{main}");

    // Back from nettrace.
    let told =
        collector(folder, &["convert", "net.nettrace", "-o", "back.folded", "-o", "net-back.jsonl"]).stderr;
    let told = String::from_utf8(told).unwrap();
    assert!(!told.contains("could not be understood"), "{told}");
    let back = folded(&folder.join("back.folded"));
    // A library that was unloaded before that sample: the format has no event that ends a mapping.
    let elsewhere = "Test.x64.exe;[unmapped]+0x1aef8f7f;msvcr120_clr0400.dll+0x11f9";
    let there = "Test.x64.exe;mscorlib.dll+0xe8f7f;msvcr120_clr0400.dll+0x11f9";
    let mut stacks = stacks;
    let count = stacks.remove(elsewhere).unwrap();
    stacks.insert(there.to_owned(), count);
    let differ: Vec<_> = stacks.iter().filter(|(stack, count)| back.get(*stack) != Some(*count)).collect();
    assert!(differ.is_empty(), "{} of {} stacks differ: {:?}", differ.len(), stacks.len(), differ[0]);
    assert_eq!(back.len(), stacks.len());
    // 65,280 bytes of `GC/BulkMovedObjectRanges` are more than an event of the format holds.
    assert_eq!(come_back(folder, "net", 72_598), 1);
    let in_kernel = |stack: &str| stack.contains(";ntoskrnl.exe+0x") && stack.ends_with("_[k]");
    assert!(back.keys().any(|stack| in_kernel(stack)));

    // A sample each millisecond.
    let [first, rows] = reported(folder, "net.etl");
    assert!(first.contains("of 6.32 s (cpu") && rows.lines().count() == 3, "{rows}");
    assert_eq!(reported(folder, "net.pb.gz")[1], rows);

    by_node(folder, "net", main);
    by_python(folder, main);
    by_go(folder, main);
}

/// The files that have events and no samples.
#[test]
fn events_are_the_same_in_all_formats() {
    for (name, file, count) in [
        ("process", "Process.etl", 10_344),
        ("gc", "gcevents.etl", 71),
        ("primitive", "primitive-types.etl", 7),
    ] {
        let Some(bytes) = bytes(file) else { return };
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let outputs = ["etl", "jsonl", "nettrace", "pb.gz", "html", "-back.jsonl"];
        let [etl, jsonl, nettrace, pprof, html, back] = outputs.map(|end| {
            let dot = if end.starts_with('-') { "" } else { "." };
            format!("{name}{dot}{end}")
        });
        fs::write(folder.join(&etl), bytes).unwrap();
        collector(folder, &["convert", &etl, "-o", &jsonl, "-o", &nettrace, "-o", &pprof, "-o", &html]);
        collector(folder, &["convert", &nettrace, "-o", &back]);
        assert_eq!(come_back(folder, name, count), 0);
        by_node(folder, name, 0);
        // It has samples alone, if any: it is read all the same.
        assert_eq!(reported(folder, &pprof)[1], reported(folder, &etl)[1], "{file}");
    }
}

/// What the decoder that is in a page makes of it, against the samples of the lines of JSON: their number, and for each kind that is no event of its
/// own number and sum of values.
fn by_node(folder: &Path, name: &str, main: i64) {
    const COUNT: &str = r#"
import { readFileSync } from "node:fs";
const page = readFileSync(process.argv[1], "utf8");
const [, text] = /<script[^>]*id="profile"[^>]*>([^<]*)<\/script>/.exec(page);
const [, decoder] = /<script type="module">\s*\/\/ decode\.js\n([^]*?)\n\/\/ format\.js\n/.exec(page);
const { decodeProfile } = await import(`data:text/javascript,${encodeURIComponent(`${decoder}\nexport { decodeProfile };`)}`);
const { kinds, functions, frames, nodes, samples } = await decodeProfile(text);
const found = { all: samples.count, main: 0, kinds: {} };
for (let at = 0; at < samples.count; at += 1) {
  const kind = kinds[samples.kind?.[at] ?? 0].name;
  const [count, sum] = found.kinds[kind] ?? [0, 0];
  found.kinds[kind] = [count + 1, sum + (samples.value?.[at] ?? 1)];
  let node = samples.node[at];
  while (nodes.depth[node] > 1 && functions[frames.function[nodes.frame[node]]].name !== "Test.Program.Main") node = nodes.parent[node];
  found.main += kind === "cpu" && nodes.depth[node] > 1;
}
console.log(JSON.stringify(found));
"#;
    let page = folder.join(format!("{name}.html"));
    assert!(fs::read_to_string(&page).unwrap().ends_with("</html>\n"), "{name}");
    let node = Command::new("node").args(["--input-type=module", "-e", COUNT]).arg(&page).output();
    let Ok(node) = node else {
        eprintln!("SKIPPED: node is not there");
        return;
    };
    assert!(node.status.success(), "{}", String::from_utf8_lossy(&node.stderr));
    let found: Value = serde_json::from_slice(&node.stdout).unwrap();
    let text = fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (mut all, mut kinds) = (0, BTreeMap::<String, (u64, u64)>::new());
    for line in lines.filter(|line| line["value"].is_u64()) {
        all += 1;
        if line["type"] == "sample" {
            let (count, sum) = kinds.entry(line["event"].as_str().unwrap().to_owned()).or_default();
            (*count, *sum) = (*count + 1, *sum + line["value"].as_u64().unwrap());
        }
    }
    assert_eq!((&found["all"], &found["main"]), (&all.into(), &main.into()), "{name}");
    for (kind, (count, sum)) in kinds {
        assert_eq!(found["kinds"][&kind], serde_json::json!([count, sum]), "{name}: {kind}");
    }
}

/// Lines of JSON, counted by Python.
fn by_python(folder: &Path, main: i64) {
    const COUNT: &str = "
import json, sys
samples = main = ticks = 0
for line in open('net.jsonl', encoding='utf-8'):
    it = json.loads(line)
    if it.get('event') == 'cpu':
        samples += 1
        main += 'Test.Program.Main' in it['stack']
    if it.get('event') == 'Microsoft-Windows-DotNETRuntime/GC/AllocationTick':
        ticks += it['fields']['AllocationAmount'] > 0
print(samples, main, ticks)
";
    let Ok(python) = Command::new("python3").args(["-c", COUNT]).current_dir(folder).output() else {
        eprintln!("SKIPPED: python3 is not there");
        return;
    };
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    // As many allocation ticks as PerfView counts.
    assert_eq!(String::from_utf8(python.stdout).unwrap().trim(), format!("{SAMPLES} {main} 10382"));
}

/// Samples of pprof, as `go tool pprof -raw` shows them: values, a colon, locations.
fn by_go(folder: &Path, main: i64) {
    let go = |args: &[&str]| {
        let mut go = Command::new("go");
        go.args(["tool", "pprof"]).args(args).arg("net.pb.gz").current_dir(folder);
        go.env("HOME", folder).env("PPROF_TMPDIR", folder).env("PPROF_BINARY_PATH", folder);
        go.output().ok().map(|output| {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        })
    };
    let index = "-sample_index=cpu_samples";
    let Some(raw) = go(&["-raw"]) else {
        eprintln!("SKIPPED: go is not there");
        return;
    };
    let kinds = raw.lines().skip_while(|line| *line != "Samples:").nth(1).unwrap();
    let index = if kinds.contains("cpu_samples/") { index } else { "-sample_index=samples" };
    let top = go(&["-top", "-nodecount=100000", "-nodefraction=0", index]).unwrap();
    let total = top.lines().find(|line| line.contains(" total")).unwrap();
    assert!(total.contains(&format!("of {SAMPLES} total")), "{total}");
    let row = top.lines().find(|line| line.ends_with(" Test.Program.Main")).unwrap();
    let cum = row.split_whitespace().nth(3).unwrap();
    assert_eq!(cum, main.to_string(), "{row}");
}
