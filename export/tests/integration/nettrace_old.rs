//! nettrace before version 6: a trace made by hand after the specification, and captures of .NET with what `PerfView` counted in
//! them.
//!
//! The captures are those of `PerfView`'s own tests, in `shared/data/nettrace` beside the checkout: zipped, each with the list of
//! its events, `provider/event, count, ...`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use export::format::nettrace::{LabelValue, ReadError, Value, read};
use flate2::read::DeflateDecoder;

use crate::nettrace::{any_damage_is_survived, beginnings_are_read, read_all};

/// A file that is being made.
struct Made(Vec<u8>);

impl Made {
    fn new() -> Self {
        Self(b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec())
    }

    fn begin(&mut self, name: &str, version: u32) {
        self.0.extend([5, 5, 1]);
        for number in [version, version, name.len() as u32] {
            self.0.extend(number.to_le_bytes());
        }
        self.0.extend(name.as_bytes());
        self.0.push(6);
    }

    fn block(&mut self, name: &str, content: &[u8]) {
        self.begin(name, 2);
        self.0.extend((content.len() as u32).to_le_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.0.extend(content);
        self.0.push(6);
    }
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The header of a block of events: its size, whether headers of events are compressed, and times.
fn block_header(flags: u16) -> Vec<u8> {
    let mut header = [20_u16.to_le_bytes(), flags.to_le_bytes()].concat();
    header.extend(5_u64.to_le_bytes());
    header.extend(100_u64.to_le_bytes());
    header
}

/// A trace of two events: the first of thread 77 with a stack, the second with an activity and an array.
fn made() -> Vec<u8> {
    let mut file = Made::new();
    file.begin("Trace", 4);
    // Saturday, 2019-06-15, 23:56:59.754.
    for part in [2019_u16, 6, 6, 15, 23, 56, 59, 754] {
        file.0.extend(part.to_le_bytes());
    }
    file.0.extend(1_000_u64.to_le_bytes());
    file.0.extend(10_000_000_u64.to_le_bytes());
    file.0.extend(numbers(&[8, 4321, 4, 1_000_000]));
    file.0.push(6);

    // A field of type Int32 and one that is text.
    let first = [
        numbers(&[1]),
        wide("Provider"),
        numbers(&[12]),
        wide("First"),
        numbers(&[0, 0, 0, 4, 2, 9]),
        wide("Count"),
        numbers(&[18]),
        wide("Name"),
    ]
    .concat();
    // No fields, and then a tag with an array of Int16.
    let array = [wide("List"), numbers(&[19, 7])].concat();
    let array = [numbers(&[array.len() as u32 + 4]), array].concat();
    let tag = [numbers(&[1]), array].concat();
    let second = [
        numbers(&[2]),
        wide("Provider"),
        numbers(&[13]),
        wide("Second"),
        numbers(&[0, 0, 0, 4, 0]),
        numbers(&[tag.len() as u32]),
        vec![2],
        tag,
    ]
    .concat();
    let mut types = block_header(1);
    for payload in [&first, &second] {
        // The size of what follows, and a time.
        types.extend([0x80, 5]);
        // The time is counted from the one before.
        if payload == &second {
            *types.last_mut().unwrap() = 0;
        }
        let length = payload.len();
        types.extend([length as u8 & 0x7f | 0x80, (length >> 7) as u8]);
        types.extend(payload);
    }
    file.block("MetadataBlock", &types);
    let stack = [numbers(&[1, 1, 16]), 0x1234_u64.to_le_bytes().to_vec(), u64::MAX.to_le_bytes().to_vec()];
    file.block("StackBlock", &stack.concat());

    // Not compressed, and padded.
    let payload = [(-3_i32).to_le_bytes().to_vec(), wide("xy")].concat();
    let mut event = numbers(&[80 - 4 + payload.len() as u32, 1 | 1 << 31, 7]);
    event.extend(77_u64.to_le_bytes());
    event.extend(77_u64.to_le_bytes());
    event.extend(numbers(&[3, 1]));
    event.extend(10_u64.to_le_bytes());
    event.extend([0; 32]);
    event.extend(numbers(&[payload.len() as u32]));
    event.extend(payload);
    event.resize(event.len().next_multiple_of(4), 0);
    file.block("EventBlock", &[block_header(0), event].concat());

    // Compressed: type 2, number 10 (of which two are missing), thread 77, processor 1, at time 100, with an activity.
    let mut event = vec![1 | 2 | 4 | 16 | 64 | 128, 2, 9, 77, 1, 77, 100];
    event.extend([0xab; 16]);
    event.extend([6, 2, 0, 1, 0, 0xff, 0xff]);
    file.block("EventBlock", &[block_header(1), event].concat());
    // One more is missing.
    let point =
        [100_u64.to_le_bytes().to_vec(), numbers(&[1]), 77_u64.to_le_bytes().to_vec(), numbers(&[11])];
    file.block("SPBlock", &point.concat());
    file.0.push(1);
    file.0
}

#[test]
fn a_trace_made_by_hand_is_read() {
    let mut trace = None;
    let mut events = Vec::new();
    let summary = read(
        &made()[..],
        |of| trace = Some(of.clone()),
        |event| {
            let labels: Vec<_> =
                event.labels.iter().map(|label| (label.key.clone(), label.value.clone())).collect();
            let id = (event.event_type.name.clone(), event.event_type.id);
            let thread = (event.thread.pid, event.thread.tid);
            let stack: Vec<u64> = event.stack().collect();
            events.push((id, event.time, thread, event.processor, stack, labels, event.values().unwrap()));
        },
    )
    .unwrap();
    let trace = trace.unwrap();
    // By `date -u -d '2019-06-15 23:56:59' +%s`.
    assert_eq!((trace.unix_milliseconds, trace.ticks), (1_560_643_019_754, 1_000));
    assert_eq!(trace.pairs[1], ("HardwareThreadCount".to_owned(), "4".to_owned()));
    assert_eq!((summary.events, summary.lost, summary.sequence_points), (2, 3, 1));
    let thread = (Some(4321), Some(77));
    let first = (
        ("First".to_owned(), 12),
        10,
        thread,
        3,
        vec![0x1234, u64::MAX],
        vec![],
        vec![Value::Signed(-3), Value::Text("xy".to_owned())],
    );
    let second = (
        ("Second".to_owned(), 13),
        100,
        thread,
        1,
        vec![],
        vec![("ActivityId".to_owned(), LabelValue::Id([0xab; 16]))],
        vec![Value::List(vec![Value::Signed(1), Value::Signed(-1)])],
    );
    assert_eq!(events, [first, second]);
}

#[test]
fn an_old_file_that_is_damaged_is_survived() {
    any_damage_is_survived(made());
}

#[test]
fn errors_name_their_place() {
    let good = made();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        match read_all(&bytes) {
            Err(ReadError::Malformed { what, position }) => (what, position as usize),
            other => panic!("{other:?}"),
        }
    };
    let of = |bytes: &[u8]| good.windows(bytes.len()).position(|there| there == bytes).unwrap();
    // Its type is before a field's name, and tags and numbers are before a block's.
    let [name, block] = [of(&wide("Name")) - 4, of(b"StackBlock") - 15];
    assert_eq!(with(name, 99), ("a type of field that does not exist", name));
    assert_eq!(with(block, 9), ("other tags than those of an object", block));
    // A stack's size is before it, and the flags and the type of the second event are before its activity.
    let [stack, event] = [of(&0x1234_u64.to_le_bytes()) - 4, of(&[0xab; 16]) - 7];
    assert_eq!(with(stack, 17), ("a stack that is not made of addresses", stack));
    assert_eq!(with(event + 1, 9), ("an event of a type, or of a thread, that is not there", event));
}

/// The only file of a zip archive (APPNOTE.TXT, 4.3.7): what follows its header, its name and what else is known of it.
pub(crate) fn unzipped(path: &Path) -> Vec<u8> {
    let archive = fs::read(path).unwrap();
    assert_eq!(archive[..4], *b"PK\x03\x04");
    let length = |at: usize| usize::from(u16::from_le_bytes([archive[at], archive[at + 1]]));
    let mut bytes = Vec::new();
    DeflateDecoder::new(&archive[30 + length(26) + length(28)..]).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The captures; none, which is said, where they are not there.
pub(crate) fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/nettrace");
    let Ok(entries) = folder.read_dir() else {
        eprintln!("NOT BESIDE THE CHECKOUT: {}", folder.display());
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "zip")).collect()
}

/// Names that `PerfView` gives events that have only a number in the file.
const NAMES: [(&str, u32, &str); 8] = [
    ("Microsoft-DotNETCore-SampleProfiler", 0, "Thread/Sample"),
    ("Microsoft-Windows-DotNETRuntime", 10, "GC/AllocationTick"),
    ("Microsoft-Windows-DotNETRuntime", 7, "GC/RestartEEStart"),
    ("Microsoft-Windows-DotNETRuntime", 9, "GC/SuspendEEStart"),
    ("Microsoft-Windows-DotNETRuntime", 145, "Method/JittingStarted"),
    ("Microsoft-Windows-DotNETRuntime", 159, "Method/R2RGetEntryPoint"),
    ("Microsoft-Windows-DotNETRuntimeRundown", 146, "Method/DCStopComplete"),
    ("Microsoft-Windows-DotNETRuntimeRundown", 156, "Loader/AssemblyDCStop"),
];

/// By capture: the lines of its list that are told by the same name here. Others have names that `PerfView` makes of numbers.
const AGREED: [(&str, &[&str]); 2] = [
    (
        "eventpipe-dotnetcore3.0-win-x64-objver4.nettrace.zip",
        &[
            "Microsoft-DotNETCore-SampleProfiler/Thread/Sample",
            "Microsoft-Windows-DotNETRuntime/GC/AllocationTick",
            "Microsoft-Windows-DotNETRuntime/GC/RestartEEStart",
            "Microsoft-Windows-DotNETRuntime/GC/SuspendEEStart",
            "Microsoft-Windows-DotNETRuntime/Method/JittingStarted",
            "Microsoft-Windows-DotNETRuntime/Method/R2RGetEntryPoint",
        ],
    ),
    (
        "eventpipe-dotnetcore5.0-win-x64-arraytypes.nettrace.zip",
        &[
            "Microsoft-DotNETCore-EventPipe/ProcessInfo",
            "Microsoft-Windows-DotNETRuntimeRundown/Loader/AssemblyDCStop",
            "Microsoft-Windows-DotNETRuntimeRundown/Method/DCStopComplete",
            "TestEventSource0/TestEvent1",
            "TestEventSource0/TestEvent2",
        ],
    ),
];

#[test]
fn captures_have_the_events_that_perfview_counts() {
    for path in captures() {
        let bytes = unzipped(&path);
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut frames = 0;
        let summary = read(
            &bytes[..],
            |_| (),
            |event| {
                let of = event.event_type;
                let known = NAMES.iter().find(|(provider, id, _)| (*provider, *id) == (&*of.provider, of.id));
                let name = known.map_or(of.name.as_str(), |(.., name)| name);
                *counts.entry(format!("{}/{name}", of.provider)).or_default() += 1;
                frames += event.stack().filter(|&address| address != 0).count();
                event.values().unwrap();
            },
        )
        .unwrap();
        let list = path.with_extension("baseline.txt");
        let list = fs::read_to_string(list).unwrap();
        let mut agreed = Vec::new();
        for line in list.trim_start_matches('\u{feff}').lines() {
            let mut parts = line.split(", ");
            let (name, count) = (parts.next().unwrap(), parts.next().unwrap());
            if let Some(&found) = counts.get(name) {
                assert_eq!(found, count.parse::<u64>().unwrap(), "{name}");
                agreed.push(name);
            }
        }
        println!("{}: {summary:?}, {frames} frames, {} types agreed", path.display(), agreed.len());
        let name = path.file_name().unwrap().to_str().unwrap();
        let (_, expected) = AGREED.iter().find(|(capture, _)| *capture == name).unwrap();
        assert_eq!(agreed, *expected);
        assert!(frames > 20 && summary.lost == 0);
        beginnings_are_read(&bytes, (0..bytes.len()).step_by(bytes.len() / 6));
    }
}
