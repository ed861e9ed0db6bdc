//! Raw events in nettrace: with their fields, written and read back; and those of a file that was put together by hand, after the
//! specification, with types that we do not write.

use std::fs;
use std::io::Cursor;
use std::time::{Duration, Instant};

use collector_common::event::{EventData, EventFormat};
use collector_common::ids::{Nanos, Svma, Tid};
use collector_common::record::{ExportMachine, Frame, FrameFlags, ModuleId, Sample, Unit};
use export::format::jsonl::JsonLines;
use export::format::nettrace::{LabelValue, Nettrace, Value, read};
use export::format::{Contents, ExportFormat as _, Profile, by_name};
use export::import::Imported;
use export::import::nettrace::{import, import_with_events};
use export::symbolize::Symbols;

use crate::nettrace_old::{captures, unzipped};
use crate::raw_events::{Recorded, event_kind, small};

pub(crate) fn written(machine: &ExportMachine, symbols: &Symbols) -> Vec<u8> {
    let mut bytes = Vec::new();
    Nettrace.write(Profile { machine, symbols }, &mut bytes).unwrap();
    bytes
}

/// An event that was read: time, provider and name, number, version, label of partial fields, values by name.
type Told = (u64, String, u32, u8, bool, Vec<(String, Value)>);

fn events(bytes: &[u8]) -> Vec<Told> {
    let mut told = Vec::new();
    let each = |event: &export::format::nettrace::Event<'_>| {
        let of = event.event_type;
        if of.provider == "Universal.System" {
            return;
        }
        let partial = LabelValue::Text("partial".to_owned());
        let is_partial = event.labels.iter().any(|label| label.key == "fields" && label.value == partial);
        let names = of.field_names().map(str::to_owned);
        let values = names.zip(event.values().unwrap()).collect();
        assert_eq!((event.thread.pid, event.thread.tid), (Some(100), Some(101)));
        let name = format!("{}/{}", of.provider, of.name);
        told.push((event.time, name, of.id, of.facts.version, is_partial, values));
    };
    read(bytes, |_| (), each).unwrap();
    told
}

#[test]
fn fields_are_read_as_they_were_put_down() {
    let Recorded { machine, symbols } = Recorded::new();
    let told = events(&written(&machine, &symbols));
    let text = |text: &str| Value::Text(text.to_owned());
    let (signed, unsigned) = (Value::Signed, Value::Unsigned);
    let point = |x, name| Value::List(vec![signed(x), text(name)]);
    let guid =
        [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
    let all = [
        ("small", unsigned(254)),
        ("largest", unsigned(u64::MAX)),
        ("smallest", signed(i64::MIN)),
        ("negative", signed(-300)),
        ("half", Value::Float(1.5)),
        ("huge", Value::Float(-2.5e300)),
        ("address", unsigned(0xffff_8881_0000_1000)),
        ("yes", unsigned(1)),
        ("bits", signed(-3)),
        ("text", text("grüße \"a\"\\\n")),
        ("wide", text("weit 😀")),
        ("ip", text("127.0.0.1")),
        ("ip6", text("fe00::1")),
        ("guid", Value::Bytes(guid.to_vec())),
        ("when", text("1970-01-01T00:00:00.0000010Z")),
        ("list", Value::List(vec![unsigned(1), unsigned(65_535)])),
        ("bytes", Value::List(vec![unsigned(0), unsigned(0xab), unsigned(7)])),
        ("point", point(-1, "a")),
        ("points", Value::List(vec![point(1, "b"), point(2, "")])),
        ("small", unsigned(1)),
    ];
    let number = |number, own| vec![("number", Value::Float(number)), ("text", text(own))];
    let known = [
        (1_000, "Universal.Events/made:all", 1, 0, false, vec![("Value", unsigned(1))]),
        (2_000, "made/all", 9, 3, false, all.to_vec()),
        (3_000, "made/unknown", 10, 3, false, vec![]),
        (4_000, "made/text", 11, 3, true, number(1e21, "a\u{fffd}b")),
        (6_000, "made/text", 11, 3, true, number(0.0, "")),
        (6_500, "made/unknown", 10, 3, false, vec![]),
    ];
    let known = known.map(|(time, name, id, version, is_partial, values)| {
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value));
        (time, name.to_owned(), id, version, is_partial, values.collect::<Vec<_>>())
    });
    let (nan, told): (Vec<_>, Vec<_>) = told.into_iter().partition(|(time, ..)| *time == 5_000);
    assert_eq!(told, known);
    assert!(matches!(&nan[0].5[0].1, Value::Float(number) if number.is_nan()) && !nan[0].4);
}

/// What a hook changes of a sample is so of the event that it was taken of, in both formats that hold events.
#[test]
fn an_event_is_where_its_changed_sample_is() {
    let Recorded { mut machine, symbols } = Recorded::new();
    machine.change_samples(|machine, sample| {
        if sample.time == Nanos(2_000) {
            let process = machine.thread(sample.thread).process;
            let [name, key, value] = ["other", "lock", "held"].map(|text| machine.intern_string(text));
            sample.thread = machine.intern_thread(process, Tid(102), name);
            let frame = machine.stacks().get(sample.stack)[0];
            sample.stack = machine.intern_stack(&[frame, frame]);
            sample.attributes = machine.attributes_mut().intern(&[(key, value)]);
            (sample.time, sample.cpu) = (Nanos(2_500), 6);
        }
        true
    });
    let mut lines = Vec::new();
    JsonLines.write(Profile { machine: &machine, symbols: &symbols }, &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let [line] = &lines.filter(|line| line["time_ns"] == 2_500).collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!((&line["type"], &line["tid"], &line["cpu"]), (&"event".into(), &102.into(), &6.into()));
    assert_eq!(line["stack"], serde_json::json!(["vfs_read_[k]", "vfs_read_[k]"]));
    assert_eq!(line["attributes"], serde_json::json!({ "lock": "held" }));

    let mut told = Vec::new();
    let each = |event: &export::format::nettrace::Event<'_>| {
        if event.event_type.name == "all" {
            let labels = event.labels.iter().map(|label| (label.key.clone(), label.value.clone()));
            let (tid, depth) = (event.thread.tid, event.stack().len());
            told.push((event.time, tid, event.processor, depth, labels.collect::<Vec<_>>()));
        }
    };
    read(&written(&machine, &symbols)[..], |_| (), each).unwrap();
    let labels = vec![("lock".to_owned(), LabelValue::Text("held".to_owned()))];
    assert_eq!(told, [(2_500, Some(102), 6, 2, labels)]);
}

/// By the specification: a row of a type, byte for byte.
#[test]
fn a_type_is_a_row_of_the_specification() {
    let Recorded { machine, symbols } = Recorded::new();
    let bytes = written(&machine, &symbols);
    // Number 10 in the file (6 of the system, 1 kind of sample, and the third of these), `made`, 11, `text`, two fields of types 14 and
    // of arrays of bytes of UTF-8; then operation code, level, version, keywords, and the name.
    let row = [
        &b"\x0a\x04made\x0b\x04text\x02\0"[..],
        b"\x08\0\x06number\x0e",
        b"\x07\0\x04text\x13\x17",
        b"\x29\0\x01\x01\x08\x04\x09\x03\x03\x01\0\0\0\0\0\0\x80",
        b"\x06\x0eCollector.Name\x09made:text",
    ]
    .concat();
    let row = sized(&row);
    assert!(bytes.windows(row.len()).any(|window| window == row), "{row:x?}");
}

pub(crate) fn lines(machine: &ExportMachine, symbols: &Symbols) -> Vec<serde_json::Value> {
    let mut bytes = Vec::new();
    JsonLines.write(Profile { machine, symbols }, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn events_that_we_write_are_imported_as_they_were() {
    let Recorded { machine, symbols } = Recorded::new();
    let bytes = written(&machine, &symbols);
    let imported = import_with_events(Cursor::new(&bytes), 1 << 20).unwrap();
    assert!(imported.left_out.is_empty(), "{:?}", imported.left_out);
    let (mut before, mut after) = (lines(&machine, &symbols), lines(&imported.machine, &imported.symbols));
    for line in before.iter_mut().chain(&mut after) {
        let line = line.as_object_mut().unwrap();
        // The time of day has milliseconds there. What could not be written is a label then, and without a payload.
        for name in ["time", "payload", "id", "version", "attributes"] {
            line.remove(name);
        }
        let Some(fields) = line.get_mut("fields") else { continue };
        let fields = fields.as_object_mut().unwrap();
        // Integers there, and text.
        for name in ["address", "guid", "yes"] {
            fields.remove(name);
        }
        fields.iter_mut().filter(|(_, value)| value.is_null()).for_each(|(name, value)| {
            *value = if name == "text" { "".into() } else { 0.0.into() };
        });
    }
    assert_eq!(before, after);
    let without = import(Cursor::new(&bytes)).unwrap();
    assert!(without.machine.event_records().is_empty() && without.machine.samples().len() == 2);
    assert_eq!(without.left_out, ["5 events without a stack are left out"]);
    let contents = Contents::of(Profile { machine: &without.machine, symbols: &without.symbols });
    let left_out = contents.left_out(by_name("folded").unwrap()).unwrap();
    assert!(left_out.contains(" 1 raw event") && !left_out.contains("raw events"), "{left_out}");
    // Room for one of them: what is lost is told.
    let few = import_with_events(Cursor::new(&bytes), 300).unwrap();
    let records = few.machine.event_records();
    assert!(records.len() < 6 && records.len() as u64 + records.lost() == 6);
    assert_eq!(few.machine.system().lost, Some(3 + records.lost()));
}

#[test]
fn bytes_of_which_nothing_is_known_are_kept_with_their_sample() {
    let (mut machine, thread) = small();
    let frame =
        Frame { module: ModuleId::KERNEL, address: Svma(1 << 63), flags: FrameFlags(FrameFlags::KERNEL) };
    let frame = machine.intern_frame(frame);
    let stack = machine.intern_stack(&[frame]);
    let kind = machine.add_kind("made:manifest", Unit::Count, 1);
    let of = event_kind(&mut machine, ["made", "manifest"], 65_534, EventFormat::default());
    let sample = Sample { time: Nanos(50), thread, stack, kind, value: 1, ..Sample::default() };
    machine.add_sample_of_event(&sample, of, b"<manifest>");
    let imported =
        import_with_events(Cursor::new(&written(&machine, &Symbols::unresolved(&machine))), 1 << 20);
    let records = imported.as_ref().unwrap().machine.event_records();
    let records: Vec<_> = records.iter().map(|(_, record, bytes)| (record.time, bytes.to_vec())).collect();
    assert_eq!(records, [(Nanos(50), b"<manifest>".to_vec())]);
    assert_eq!(imported.unwrap().machine.samples().len(), 1);
}

fn text(text: &str) -> Vec<u8> {
    [&[text.len() as u8][..], text.as_bytes()].concat()
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes()[..], bytes].concat()
}

fn block(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32 | u32::from(kind) << 24).to_le_bytes()[..], bytes].concat()
}

/// Names and types of fields, as the specification has them in bytes.
pub(crate) type Fields<'a> = &'a [(&'a str, &'a [u8])];

/// A type as it is told, and the payload of its events.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) provider: &'a str,
    pub(crate) id: u16,
    pub(crate) name: &'a str,
    pub(crate) version: u8,
    pub(crate) fields: Fields<'a>,
    pub(crate) payload: &'a [u8],
}

/// A file of version 6 with an event of each of some types.
fn by_hand(types: &[(Fields<'_>, &[u8])]) -> Vec<u8> {
    by_hand_with(types, &[], 1)
}

/// The same with so many events of each type, all of one stack.
fn by_hand_with(types: &[(Fields<'_>, &[u8])], stack: &[u64], count: usize) -> Vec<u8> {
    let row = |(&(fields, payload), id)| Row { provider: "Its", id, name: "E", version: 0, fields, payload };
    let rows: Vec<Row<'_>> = types.iter().zip(1..).map(row).collect();
    by_hand_of(&rows, stack, count, 8)
}

/// The same of types that have names and versions, and of addresses of so many bytes.
pub(crate) fn by_hand_of(rows: &[Row<'_>], stack: &[u64], count: usize, pointer_size: u32) -> Vec<u8> {
    let mut trace: Vec<u8> =
        [2025_u16, 6, 0, 15, 15, 6, 40, 0].into_iter().flat_map(u16::to_le_bytes).collect();
    trace.extend([1_000_u64, 1_000_000_000].into_iter().flat_map(u64::to_le_bytes));
    trace.extend([pointer_size, 0].into_iter().flat_map(u32::to_le_bytes));
    let mut metadata = vec![0, 0];
    let mut sequence = 0_u32;
    let mut events = [20_u16, 0].map(u16::to_le_bytes).concat();
    events.extend([1_000_u64, 2_000].into_iter().flat_map(u64::to_le_bytes));
    for (&Row { provider, id, name, version, fields, payload }, number) in rows.iter().zip(1_u8..) {
        // Both bytes of a number of variable length.
        let id = [id as u8 | 0x80, (id >> 7) as u8];
        let mut row = [&[number][..], &text(provider), &id, &text(name), &[fields.len() as u8, 0]].concat();
        for (name, of) in fields {
            row.extend(sized(&[&text(name)[..], of].concat()));
        }
        row.extend(sized(&[9, version]));
        metadata.extend(sized(&row));
        for _ in 0..count {
            sequence += 1;
            let mut event = u32::from(number).to_le_bytes().to_vec();
            event.extend(sequence.to_le_bytes());
            event.extend([1_u64, 1].into_iter().flat_map(u64::to_le_bytes));
            event.extend([0, u32::from(!stack.is_empty())].into_iter().flat_map(u32::to_le_bytes));
            event.extend((1_000 + u64::from(number)).to_le_bytes());
            event.extend([0, payload.len() as u32].into_iter().flat_map(u32::to_le_bytes));
            event.extend_from_slice(payload);
            events.extend((event.len() as u32).to_le_bytes());
            events.extend(event);
        }
    }
    let thread = sized(&[1, 2, 7, 3, 8]);
    let mut stacks = [1_u32, 1, stack.len() as u32 * 8].map(u32::to_le_bytes).concat();
    stacks.extend(stack.iter().flat_map(|address| address.to_le_bytes()));
    [
        b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec(),
        block(1, &trace),
        block(3, &metadata),
        block(6, &thread),
        block(5, &stacks),
        block(2, &events),
        block(0, &[]),
    ]
    .concat()
}

/// A stack is a few bytes for each event that has it.
#[test]
fn a_deep_stack_of_many_events_is_refused_while_it_is_read() {
    let of = |depth: u64, count| {
        let stack: Vec<u64> = (1..=depth).collect();
        let file = by_hand_with(&[(&[("number", &[12])], &[1, 2, 3, 4])], &stack, count);
        let started = Instant::now();
        let imported = import(Cursor::new(file)).map(|imported| imported.machine.samples().len());
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        imported.map_err(|error| error.to_string())
    };
    assert_eq!(of(1 << 16, 2), Ok(2));
    let deep = of((1 << 16) + 1, 200_000).unwrap_err();
    assert!(deep.starts_with("sample 1 has more than 65536 frames on its stack"), "{deep}");
}

/// How many samples there are of each kind, in the order of the kinds.
fn samples_by_kind(imported: &Imported) -> Vec<(&str, usize)> {
    let machine = &imported.machine;
    let count = |at| machine.samples().iter().filter(|sample| usize::from(sample.kind.0) == at).count();
    let kinds = machine.kinds().iter().enumerate();
    kinds.map(|(at, kind)| (machine.string(kind.name), count(at))).collect()
}

/// A provider's number may be that of several events, and an event may have several versions, or numbers.
#[test]
fn samples_are_of_the_kind_of_their_events_name() {
    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
    let row =
        |provider, id, name, version| Row { provider, id, name, version, fields: &[], payload: &[0; 4] };
    let rows = [
        row("Its", 1, "First", 0),
        row("Its", 1, "Second", 0),
        row("Its", 1, "First", 2),
        row("Its", 2, "First", 0),
        row("Its", 3, "", 0),
        row("Other", 1, "First", 0),
        row(RUNTIME, 35, "", 0),
        row(RUNTIME, 35, "GCTriggered", 0),
        row("Universal.Events", 7, "Its/Second", 0),
    ];
    let file = by_hand_of(&rows, &[0x1234, 0x5678], 3, 8);
    let known = [
        ("Its/First", 9),
        ("Its/Second", 6),
        ("Its/3", 3),
        ("Other/First", 3),
        ("Microsoft-Windows-DotNETRuntime/GCTriggered", 6),
    ];
    assert_eq!(samples_by_kind(&import(Cursor::new(&file)).unwrap()), known);
    let with_events = import_with_events(Cursor::new(&file), 1 << 20).unwrap();
    assert_eq!(samples_by_kind(&with_events), known);
    let again = written(&with_events.machine, &with_events.symbols);
    assert_eq!(samples_by_kind(&import(Cursor::new(&again)).unwrap()), known);
}

#[test]
fn types_of_other_writers_become_fields() {
    let wide =
        |text: &str| -> Vec<u8> { text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect() };
    let payload = [
        &b"\x03\xac\x02"[..],   // -2 and 300, zigzag and plain
        b"\x02\0\x01\x80\x01",  // 1 and 128
        &wide("hi"),            // text
        b"\x02\0h\0i\0",        // units of UTF-16
        b"\x01\0\0\0",          // true
        &1.5_f32.to_le_bytes(), // a half
        &116_444_736_000_000_010_u64.to_le_bytes(),
        &[7; 16],
        b"\x01\0\x02\0\x05\x06", // an array of an array of bytes
        b"abc",                  // three units of UTF-8
    ]
    .concat();
    let various: Fields<'_> = &[
        ("signed", &[20]),
        ("unsigned", &[21]),
        ("list", &[19, 21]),
        ("wide", &[18]),
        ("units", &[19, 4]),
        ("yes", &[3]),
        ("half", &[13]),
        ("when", &[16]),
        ("guid", &[17]),
        ("arrays", &[19, 19, 6]),
        ("three", &[22, 23, 3, 0]),
    ];
    // An offset from the event's start, and one from behind the field; the sizes are of bytes.
    let located = b"\x08\0\x04\0\x04\0\x02\0\x01\0\x02\0hi";
    let places: Fields<'_> = &[("from_start", &[25, 8]), ("from_here", &[24, 23])];
    // Bytes of which a part is written anew are not where the event says.
    let both: Fields<'_> = &[("from_start", &[25, 8]), ("number", &[21])];
    let short: Fields<'_> = &[("number", &[12])];
    let file = by_hand(&[(various, &payload), (places, located), (both, b"\0\0\0\0\x07"), (short, &[1, 2])]);
    let Imported { machine, symbols, left_out } = import_with_events(Cursor::new(file), 1 << 20).unwrap();
    assert!(left_out.is_empty(), "{left_out:?}");
    let lines = lines(&machine, &symbols);
    let fields: Vec<_> = lines.iter().map(|line| &line["fields"]).collect();
    let known = serde_json::json!({
        "signed": -2, "unsigned": 300, "list": [1, 128], "wide": "hi", "units": "hi", "yes": true, "half": 1.5,
        "when": "1970-01-01T00:00:00.0000010Z", "guid": "07070707-0707-0707-0707-070707070707",
        "arrays": [{ "value": "0506" }], "three": "abc",
    });
    assert_eq!(*fields[0], known);
    assert_eq!(*fields[1], serde_json::json!({ "from_start": [1, 2], "from_here": "hi" }));
    assert_eq!((fields[2], &lines[2]["payload"]), (&serde_json::Value::Null, &"0000000007".into()));
    assert_eq!(*fields[3], serde_json::json!({ "number": null }));
    assert_eq!((&lines[3]["event"], &lines[3]["payload"]), (&"Its/E".into(), &"0102".into()));
    assert!(lines.iter().all(|line| line["pid"] == 7 && line["tid"] == 8 && line.get("stack").is_none()));
}

/// Arrays of type 0, as `one_collect` writes them of text with its length before it: what is before them is told, nothing of the file is
/// refused, and no byte is lost.
#[test]
fn what_is_behind_a_type_that_means_none_is_bytes() {
    let none: &[u8] = &[19, 0];
    let first: Fields<'_> = &[("list", none), ("number", &[10])];
    let behind: Fields<'_> = &[("number", &[8]), ("list", none), ("late", &[10])];
    // Numbers of variable length are written anew.
    let varying: Fields<'_> = &[("number", &[21]), ("list", none)];
    let within: Fields<'_> =
        &[("number", &[6]), ("object", &[1, 1, 0, 4, 0, 1, b'x', 19, 0]), ("late", &[6])];
    let whole: Fields<'_> = &[("number", &[8])];
    let types: [(Fields<'_>, &[u8]); 5] = [
        (first, b"\x02\0hi\x07\0\0\0"),
        (behind, b"\x05\x01\x02\0hi\x07\0\0\0"),
        (varying, b"\xac\x02\x02\0hi"),
        (within, b"\x09\x01\0\x05\x08"),
        (whole, b"\x05\x01"),
    ];
    let file = by_hand_with(&types, &[0x1234], 2);
    let plain = import(Cursor::new(&file)).unwrap();
    assert!(plain.left_out.is_empty(), "{:?}", plain.left_out);
    assert_eq!(samples_by_kind(&plain).iter().map(|of| of.1).sum::<usize>(), 10);

    let Imported { machine, symbols, left_out } = import_with_events(Cursor::new(&file), 1 << 20).unwrap();
    let told =
        "8 events have fields of types that mean none; these, and what is behind them, are bytes alone";
    assert_eq!(left_out, [told]);
    let told = |lines: &[serde_json::Value]| -> Vec<serde_json::Value> {
        assert_eq!(lines.len(), 10);
        lines.iter().step_by(2).map(|line| line["fields"].clone()).collect()
    };
    let known = [
        serde_json::json!(null),
        serde_json::json!({ "number": 261, "rest": "0200686907000000" }),
        serde_json::json!({ "number": 300, "rest": "02006869" }),
        serde_json::json!({ "number": 9, "rest": "01000508" }),
        serde_json::json!({ "number": 261 }),
    ];
    let shown = lines(&machine, &symbols);
    assert_eq!(told(&shown), known);
    assert_eq!(shown[0]["payload"], "0200686907000000");
    // What is written of them is read again.
    let again = import_with_events(Cursor::new(written(&machine, &symbols)), 1 << 20).unwrap();
    assert_eq!(told(&lines(&again.machine, &again.symbols))[1..], known[1..]);
}

/// How often a type of event is there as `PerfView` counts it, which has names for what is told as numbers.
fn counted(list: &str, name: &str) -> usize {
    let mut lines = list.trim_start_matches('\u{feff}').lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(", ")).unwrap();
    line.split(',').next().unwrap().parse().unwrap()
}

/// Events are called by their provider and their name there, and samples of them as those of other recordings.
#[test]
fn events_of_a_capture_have_their_own_names_and_samples_those_of_their_kinds() {
    let names = [
        (
            "Microsoft-DotNETCore-SampleProfiler/ThreadSample",
            "Microsoft-DotNETCore-SampleProfiler/Thread/Sample",
        ),
        (
            "Microsoft-Windows-DotNETRuntime/GCAllocationTick",
            "Microsoft-Windows-DotNETRuntime/GC/AllocationTick",
        ),
    ];
    for path in captures().into_iter().filter(|path| path.to_string_lossy().contains("dotnetcore3.0")) {
        let Imported { machine, symbols, .. } =
            import_with_events(Cursor::new(unzipped(&path)), 1 << 28).unwrap();
        let list = fs::read_to_string(path.with_extension("baseline.txt")).unwrap();
        let lines = lines(&machine, &symbols);
        let events: Vec<_> = lines.iter().filter(|line| line["type"] == "event").collect();
        for (name, listed) in names {
            let count = events.iter().filter(|line| line["event"] == name).count();
            assert_eq!(count, counted(&list, listed), "{name}");
        }
        assert!(events.iter().all(|line| line["event"].as_str().unwrap().contains('/')));
        let kind = |name| machine.kinds().iter().any(|kind| machine.string(kind.name) == name);
        assert!(kind("thread_sample") && kind("alloc_space"));
    }
}

/// Values as `PerfView` prints them, without the commas between thousands.
#[test]
fn captures_have_the_values_that_perfview_prints() {
    for path in captures().into_iter().filter(|path| path.to_string_lossy().contains("arraytypes")) {
        let Imported { machine, .. } = import_with_events(Cursor::new(unzipped(&path)), 1 << 26).unwrap();
        let list = fs::read_to_string(path.with_extension("baseline.txt")).unwrap();
        let mut compared = 0;
        for (_, record, bytes) in machine.event_records().iter() {
            let kind = &machine.event_kinds()[usize::from(record.kind.0)];
            let data = EventData::new(bytes, bytes, &kind.format);
            let name = machine.string(kind.name);
            if !name.starts_with("TestEventSource0/") {
                continue;
            }
            let line =
                list.lines().find(|line| line.trim_start_matches('\u{feff}').starts_with(name)).unwrap();
            let json: serde_json::Value = serde_json::from_str(&data.as_json().to_string()).unwrap();
            for (name, value) in json.as_object().unwrap() {
                let (_, printed) = line.split_once(&format!(" {name}=\"")).unwrap();
                let printed = printed.split('"').next().unwrap();
                let printed = if value.is_number() { printed.replace(',', "") } else { printed.to_owned() };
                let own = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                assert_eq!(own, printed, "{line}");
                compared += 1;
            }
        }
        assert_eq!(compared, 3 + 4 + 1);
    }
}
