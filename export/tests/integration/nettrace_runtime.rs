//! Events of .NET's runtime in nettrace, of which the file tells numbers alone: their names and fields are those of the runtime's manifest.
//! What `PerfView` lists of captures is what they are compared with; and a file that was put together by hand has known values.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Cursor;

use collector_common::payload::clr::{ClrEvent, provider_of};
use export::format::nettrace::read;
use export::import::nettrace::{import, import_with_events};
use serde_json::{Value, json};

use crate::dotnet::capture;
use crate::nettrace_events::{Fields, Row, by_hand_of, lines, written};
use crate::nettrace_old::{captures, unzipped};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// What its list leaves out: what it uses for others.
const UNLISTED: [&str; 3] = [
    "Microsoft-Windows-DotNETRuntime/Method/ILToNativeMap",
    "Microsoft-Windows-DotNETRuntimeRundown/Method/ILToNativeMapDCStop",
    "Microsoft-Windows-DotNETRuntimeRundown/Method/DCStopVerbose",
];

/// What `PerfView` calls an event: it has tasks and names of its own, where the manifest has symbols.
fn listed_name(event: &str) -> Option<String> {
    let (provider, name) = event.split_once('/')?;
    if provider == SAMPLER {
        return (name == "ThreadSample").then(|| format!("{provider}/Thread/Sample"));
    }
    // It prints events whose fields it does not know under their task.
    if name == "IncreaseMemoryPressure" || name == "DecreaseMemoryPressure" {
        return Some(format!("{provider}/GC"));
    }
    let guid = provider_of(provider)?;
    let mut specs = ClrEvent::SPECS.iter().filter(|spec| spec.provider == guid);
    let spec = specs.find(|spec| spec.manifest_name == name)?;
    Some(format!("{provider}/{}", spec.name))
}

/// Whether a value is what `PerfView` prints: `None` where it prints a name for a number.
fn is_printed(value: &Value, printed: &str) -> Option<bool> {
    let plain = printed.replace(',', "");
    let of_hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let number = of_hex(&plain).or_else(|| plain.parse().ok());
    match value {
        Value::String(text) => match of_hex(text) {
            Some(own) => Some(number == Some(own)),
            None => Some(text.eq_ignore_ascii_case(printed)),
        },
        Value::Bool(own) => Some(own.to_string().eq_ignore_ascii_case(printed)),
        Value::Number(own) if own.is_f64() => {
            let own = own.as_f64()?;
            let printed: f64 = plain.parse().ok()?;
            // It prints 15 digits.
            Some((own - printed).abs() <= own.abs() * 1e-14)
        }
        Value::Number(own) => match (number, plain.parse::<i32>()) {
            (Some(number), _) => Some(own.as_u64() == Some(number)),
            // A number that it takes for a signed one.
            (None, Ok(signed)) => Some(own.as_u64() == Some(u64::from(signed.cast_unsigned()))),
            (None, Err(_)) => None,
        },
        _ => None,
    }
}

/// Each event that it lists of the runtime is here by its own name, as often, and with the values that it prints of the first one.
#[test]
fn captures_have_the_events_of_the_runtime_that_perfview_lists() {
    for path in captures() {
        let imported = import_with_events(Cursor::new(unzipped(&path)), 1 << 28).unwrap();
        let lines = lines(&imported.machine, &imported.symbols);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut first: BTreeMap<String, &Value> = BTreeMap::new();
        for line in lines.iter().filter(|line| line["type"] == "event") {
            let Some(name) = listed_name(line["event"].as_str().unwrap()) else { continue };
            first.entry(name.clone()).or_insert(line);
            *counts.entry(name).or_default() += 1;
        }
        let list = fs::read_to_string(path.with_extension("baseline.txt")).unwrap();
        let mut listed = BTreeSet::new();
        let (mut compared, mut named) = (0, 0);
        for line in list.trim_start_matches('\u{feff}').lines() {
            let mut parts = line.splitn(3, ", ");
            let [name, count, printed] = [(); 3].map(|()| parts.next().unwrap());
            let provider = name.split('/').next().unwrap();
            if ![RUNTIME, RUNDOWN, SAMPLER].contains(&provider) {
                continue;
            }
            assert_eq!(counts.get(name), Some(&count.parse().unwrap()), "{name}");
            listed.insert(name.to_owned());
            let event = first[name];
            let attribute = |of: &str| {
                let (_, rest) = printed.split_once(&format!(" {of}=\""))?;
                let escaped = rest.split('"').next().unwrap();
                Some(
                    escaped
                        .replace("&lt;", "<")
                        .replace("&gt;", ">")
                        .replace("&quot;", "\"")
                        .replace("&amp;", "&"),
                )
            };
            assert_eq!(attribute("TID").unwrap(), event["tid"].to_string(), "{name}");
            let fields = event["fields"].as_object().unwrap_or_else(|| panic!("{event}"));
            assert!(event.get("payload").is_none(), "{event}");
            for (field, value) in fields {
                let Some(printed) = attribute(field) else { continue };
                match is_printed(value, &printed) {
                    Some(is_same) => assert!(is_same, "{name}: {field} is {value}, and {printed} there"),
                    None => named += 1,
                }
                compared += 1;
            }
        }
        println!("{}: {} types, {compared} fields, {named} as names", path.display(), listed.len());
        counts.retain(|name, _| !UNLISTED.contains(&&**name));
        assert_eq!(counts.into_keys().collect::<BTreeSet<_>>(), listed);
        assert!(compared - named >= if listed.len() > 10 { 100 } else { 20 }, "{compared}, {named}");
    }
}

/// Payloads of the runtime's events, by provider, number and version.
fn payloads(bytes: &[u8]) -> BTreeMap<(String, u32, u8), Vec<Vec<u8>>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    read(
        bytes,
        |_| (),
        |event| {
            let of = event.event_type;
            if [RUNTIME, RUNDOWN, SAMPLER].contains(&&*of.provider) && of.field_names().next().is_none() {
                let key = (of.provider.clone(), of.id, of.facts.version);
                all.entry(key).or_default().push(event.payload.to_vec());
            }
        },
    )
    .unwrap();
    for payloads in all.values_mut() {
        payloads.sort_unstable();
    }
    all
}

/// Bytes are those of the runtime in another trace, too, as its own events are what others look for in them.
#[test]
fn events_of_the_runtime_stay_in_another_trace() {
    let files =
        ["3.1", "9", "10"].map(capture).into_iter().chain(captures().into_iter().map(|path| unzipped(&path)));
    for file in files {
        let before = import_with_events(Cursor::new(&file), 1 << 28).unwrap();
        let again = written(&before.machine, &before.symbols);
        let after = import_with_events(Cursor::new(&again), 1 << 28).unwrap();
        // A sample of an event without fields is a sample there.
        let [before, after] = [before, after].map(|imported| {
            let mut lines = lines(&imported.machine, &imported.symbols);
            lines.retain(|line| {
                let name = line["event"].as_str().unwrap_or_default();
                listed_name(name).is_some() && line.get("fields").is_some()
            });
            // Of which there are milliseconds there.
            for line in &mut lines {
                line.as_object_mut().unwrap().remove("time");
            }
            lines
        });
        assert!(before.len() > 30 && before.len() == after.len(), "{}, {}", before.len(), after.len());
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before, after);
        }
        let [told, again] = [&file, &again].map(|bytes| payloads(bytes));
        for (key, payloads) in &again {
            assert_eq!(Some(payloads), told.get(key), "{key:?}");
        }
        assert!(again.len() > 3 && again.len() * 2 > told.len(), "{} of {}", again.len(), told.len());
    }
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn row<'a>(provider: &'a str, id: u16, version: u8, payload: &'a [u8]) -> Row<'a> {
    Row { provider, id, name: "", version, fields: &[], payload }
}

/// The lines of a file's events.
fn imported(file: &[u8]) -> Vec<Value> {
    let imported = import_with_events(Cursor::new(file), 1 << 20).unwrap();
    assert!(imported.left_out.is_empty(), "{:?}", imported.left_out);
    lines(&imported.machine, &imported.symbols)
}

/// The payload of `GCAllocationTick`, after the manifest: of addresses of 4 bytes or 8.
fn tick(pointer_size: usize, version: u8) -> Vec<u8> {
    let address = |address: u64| address.to_le_bytes()[..pointer_size].to_vec();
    let mut payload = [&104_096_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &9_u16.to_le_bytes()].concat();
    payload.extend(104_097_u64.to_le_bytes());
    payload.extend([address(0x7fe0_1234), wide("A[]"), 3_u32.to_le_bytes().to_vec()].concat());
    payload.extend(if version >= 3 { address(0x1020_3040) } else { vec![] });
    payload.extend(if version >= 4 { 4_096_u64.to_le_bytes().to_vec() } else { vec![] });
    payload
}

/// The same as it is told.
fn told_tick(version: u8) -> Value {
    let mut told = json!({
        "AllocationAmount": 104_096, "AllocationKind": 1, "ClrInstanceID": 9, "AllocationAmount64": 104_097,
        "TypeID": "0x7fe01234", "TypeName": "A[]", "HeapIndex": 3,
    });
    let later = [(3, "Address", json!("0x10203040")), (4, "ObjectSize", json!(4_096))];
    for (_, name, value) in later.into_iter().filter(|(since, ..)| version >= *since) {
        told[name] = value;
    }
    told
}

#[test]
fn fields_are_those_of_the_manifest() {
    let exception = [
        wide("System.Exception"),
        wide("grüße"),
        0x7f12_u64.to_le_bytes().to_vec(),
        0x8013_1500_u32.to_le_bytes().to_vec(),
        [0x10, 0, 5, 0].to_vec(),
    ]
    .concat();
    let sample = [&0.25_f64.to_le_bytes()[..], &[7, 0]].concat();
    let load = [wide("Its, Version=1.0.0.0"), wide(""), wide("Main"), wide("Default"), wide("")].concat();
    let load = [&[5, 0][..], &load, &1_u32.to_le_bytes(), &wide("Its"), &wide("/its.dll"), &[0; 4]].concat();
    let ticks = [2, 3, 4].map(|version| tick(8, version));
    let rows = [
        row(RUNTIME, 10, 2, &ticks[0]),
        row(RUNTIME, 10, 3, &ticks[1]),
        row(RUNTIME, 10, 4, &ticks[2]),
        row(RUNTIME, 80, 1, &exception),
        row(RUNTIME, 54, 0, &sample),
        row(RUNTIME, 291, 0, &load),
        row(RUNTIME, 251, 0, &[]),
        row(RUNDOWN, 146, 1, &[6, 0]),
        // By its name, too.
        Row { name: "ThreadSample", ..row(SAMPLER, 0, 0, &[2, 0, 0, 0]) },
    ];
    let known = [
        ("GCAllocationTick", told_tick(2)),
        ("GCAllocationTick", told_tick(3)),
        ("GCAllocationTick", told_tick(4)),
        (
            "ExceptionThrown",
            json!({ "ExceptionType": "System.Exception", "ExceptionMessage": "grüße", "ExceptionEIP": "0x7f12",
                "ExceptionHRESULT": 0x8013_1500_u32, "ExceptionFlags": 16, "ClrInstanceID": 5 }),
        ),
        ("ThreadPoolWorkerThreadAdjustmentSample", json!({ "Throughput": 0.25, "ClrInstanceID": 7 })),
        (
            "AssemblyLoadStop",
            json!({ "ClrInstanceID": 5, "AssemblyName": "Its, Version=1.0.0.0", "AssemblyPath": "",
                "RequestingAssembly": "Main", "AssemblyLoadContext": "Default", "RequestingAssemblyLoadContext": "",
                "Success": true, "ResultAssemblyName": "Its", "ResultAssemblyPath": "/its.dll", "Cached": false }),
        ),
        ("ExceptionCatchStop", Value::Null),
        ("DCEndComplete", json!({ "ClrInstanceID": 6 })),
        ("ThreadSample", json!({ "Type": 2 })),
    ];
    let told = imported(&by_hand_of(&rows, &[], 1, 8));
    assert_eq!(told.len(), known.len());
    for ((row, line), (name, fields)) in rows.iter().zip(&told).zip(known) {
        assert_eq!(line["event"], format!("{}/{name}", row.provider));
        assert_eq!((&line["fields"], line.get("payload")), (&fields, None), "{name}");
    }
    // Addresses of 4 bytes, and in a trace of ours, whose addresses have 8.
    let file = by_hand_of(&[row(RUNTIME, 10, 4, &tick(4, 4))], &[], 1, 4);
    assert_eq!(imported(&file)[0]["fields"], told_tick(4));
    let first = import_with_events(Cursor::new(&file), 1 << 20).unwrap();
    let [line] = &*imported(&written(&first.machine, &first.symbols)) else { panic!() };
    assert_eq!(line["event"], format!("{RUNTIME}/GCAllocationTick"));
    let mut fields = told_tick(4);
    // Integers there.
    (fields["TypeID"], fields["Address"]) = (json!(0x7fe0_1234), json!(0x1020_3040));
    assert_eq!(line["fields"], fields);
}

/// What the file tells of a type counts, and what is not known stays as it is.
#[test]
fn other_types_are_what_the_file_tells() {
    let number: Fields<'_> = &[("Own", &[10])];
    let payload = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0];
    let end = row(RUNTIME, 2, 1, &payload);
    let rows = [
        end,
        Row { name: "GCEnd", ..end },
        Row { name: "Other", ..end },
        Row { name: "GCEnd", fields: number, ..end },
        Row { fields: number, ..end },
        Row { id: 999, ..end },
        Row { provider: "Its", ..end },
        Row { id: 84, ..end },
        Row { provider: SAMPLER, id: 5, ..end },
    ];
    let known = json!({ "Count": 1, "Depth": 2, "ClrInstanceID": 3 });
    let named = |line: &Value| line["event"].as_str().unwrap().split_once('/').unwrap().1.to_owned();
    let told = imported(&by_hand_of(&rows, &[], 1, 8));
    let told: Vec<_> = told.iter().map(|line| (named(line), line["fields"].clone())).collect();
    let own = json!({ "Own": 1 });
    let expected = [
        ("GCEnd", &known),
        ("GCEnd", &known),
        ("Other", &Value::Null),
        ("GCEnd", &own),
        ("GCEnd", &own),
        ("999", &Value::Null),
        ("2", &Value::Null),
        ("AppDomainMemSurvived", &Value::Null),
        ("5", &Value::Null),
    ];
    assert_eq!(told, expected.map(|(name, fields)| (name.to_owned(), fields.clone())));
}

/// Bytes that end before the fields do are no fields, and change nothing of those that are whole.
#[test]
fn damaged_payloads_stay_bytes() {
    let whole = tick(8, 4);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    for len in 0..whole.len() {
        let rows = [row(RUNTIME, 10, 4, &whole[..len]), row(RUNTIME, 10, 4, &whole)];
        let mut file = by_hand_of(&rows, &[], 1, 8);
        for _ in 0..2 {
            let told = imported(&file);
            assert!(told.iter().all(|line| line["event"] == format!("{RUNTIME}/GCAllocationTick")));
            let payload = (len > 0).then(|| json!(hex(&whole[..len])));
            assert_eq!((told[0].get("fields"), told[0].get("payload")), (None, payload.as_ref()), "{len}");
            assert_eq!((&told[1]["fields"], told[1].get("payload")), (&told_tick(4), None), "{len}");
            let again = import_with_events(Cursor::new(&file), 1 << 20).unwrap();
            file = written(&again.machine, &again.symbols);
        }
    }
    // A sampler's too.
    let told = imported(&by_hand_of(&[row(SAMPLER, 0, 0, &[1, 2, 3])], &[], 1, 8));
    assert_eq!((told[0].get("fields"), &told[0]["payload"]), (None, &json!("010203")));
}

/// What is told of a file's addresses that have no name.
fn told_of_names(file: &[u8]) -> Vec<String> {
    let mut left_out = import(Cursor::new(file)).unwrap().left_out;
    left_out.retain(|line| line.contains("have no name"));
    left_out
}

#[test]
fn an_absent_rundown_is_told_with_its_remedy() {
    let absent = "2 addresses on stacks have no name: the trace has no rundown, in which .NET's runtime tells of methods that were \
                  compiled before; record with one (dotnet-trace: without `--rundown false`)";
    let cut = "2 addresses on stacks have no name: the trace is cut before its rundown, in which .NET's runtime tells of methods that \
               were compiled before; stop what records instead of killing it, and wait for its end";
    let file = |rows: &[Row<'_>], stack: &[u64]| by_hand_of(rows, stack, 2, 8);
    let stack = [0x1234, 0x5678];
    let (triggered, sampled) = (row(RUNTIME, 35, 0, &[0; 6]), row(SAMPLER, 0, 0, &[0; 4]));
    for of in [triggered, sampled] {
        let bytes = file(&[of], &stack);
        assert_eq!(told_of_names(&bytes), [absent]);
        // Without what says that this is the end.
        assert_eq!(told_of_names(&bytes[..bytes.len() - 4]), [cut]);
        assert_eq!(told_of_names(&file(&[of], &[])), [""; 0]);
        let end = row(RUNDOWN, 146, 1, &[6, 0]);
        assert_eq!(told_of_names(&file(&[of, end], &stack)), [""; 0]);
        // The rundown's beginning is none.
        assert_eq!(told_of_names(&file(&[of, Row { id: 148, ..end }], &stack)), [absent]);
    }
    assert_eq!(told_of_names(&file(&[row("Its", 35, 0, &[0; 6])], &stack)), [""; 0]);
}

/// One of `PerfView`'s has none: it has no events of the provider in its list.
#[test]
fn captures_without_a_rundown_are_told() {
    for path in captures() {
        let list = fs::read_to_string(path.with_extension("baseline.txt")).unwrap();
        let told = told_of_names(&unzipped(&path));
        assert_eq!(told.len(), usize::from(!list.contains(RUNDOWN)), "{told:?}");
        assert!(told.iter().all(|line| line.contains("has no rundown")), "{told:?}");
    }
    for version in ["3.1", "9", "10"] {
        let whole = capture(version);
        assert_eq!(told_of_names(&whole), [""; 0], "{version}");
        let told = told_of_names(&whole[..whole.len() / 2]);
        println!("{version}: {told:?}");
        assert!(told.iter().all(|line| line.contains("is cut before its rundown")), "{told:?}");
    }
}
