//! The files. What they are made of is in the specifications of their formats: `profile.proto` of pprof, and the types of Firefox
//! Profiler's processed format.

use std::io::{Read as _, Write as _};

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleKind, Sample, Unit};
use export::format::by_name;
use export::import::importers;
use export::symbolize::Symbols;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::random::written;

/// What becomes of a file.
pub(super) enum Expected {
    /// It is read, and written by every format.
    Read,
    /// An error that has this.
    Refused(&'static str),
}

/// A file.
pub(super) struct Hostile {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<u8>,
    /// Its length uncompressed.
    pub(super) plain_len: usize,
    pub(super) expected: Expected,
}

/// All of them.
pub(super) fn all() -> Vec<Hostile> {
    let mut all = Vec::new();
    for (name, plain, expected) in pprof().into_iter().chain(firefox()) {
        // A bomb is one because it is compressed.
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&plain).unwrap();
        all.push(Hostile { name, bytes: packed.finish().unwrap(), plain_len: plain.len(), expected });
    }
    all.extend(of_all_importers());
    all
}

pub(super) fn plain(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    MultiGzDecoder::new(packed).read_to_end(&mut plain).unwrap();
    plain
}

/// A stack deeper than any that is read, and many stacks of functions of their own, by our writers.
fn of_all_importers() -> Vec<Hostile> {
    let deep = recording(&[(0..70_000).collect()]);
    let wide: Vec<Vec<u32>> = (0..10_000).map(|at| vec![at, at / 100, at / 1000]).collect();
    let wide = recording(&wide);
    let mut all = Vec::new();
    for importer in importers() {
        let format = by_name(importer.name()).unwrap();
        for (name, (machine, symbols)) in [("deep", &deep), ("wide", &wide)] {
            let bytes = written(format, machine, symbols);
            let plain_len = if bytes.starts_with(&[0x1f, 0x8b]) { plain(&bytes).len() } else { bytes.len() };
            let expected = match (name, importer.name()) {
                // Ours have 8,190 of the frames.
                ("deep", "nettrace") | ("wide", _) => Expected::Read,
                ("deep", "firefox") => Expected::Refused("stack 69999 has more than 65536 frames"),
                ("deep", "folded") => Expected::Refused("line 1 has more than 65536 functions on its stack"),
                _ => Expected::Refused("sample 1 has more than 65536 functions on its stack"),
            };
            all.push(Hostile { name, bytes, plain_len, expected });
        }
    }
    all
}

/// A recording of these stacks.
fn recording(stacks: &[Vec<u32>]) -> (ExportMachine, Symbols) {
    let mut machine = ExportMachine::default();
    let kind = machine.add_kind("cpu", Unit::Count, 1_000_000);
    let process = machine.add_process(Pid(1), "prog", None, Nanos(0));
    let name = machine.intern_string("prog");
    let thread = machine.intern_thread(process, Tid(1), name);
    let path = machine.intern_string("/bin/prog");
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    for (stack, at) in stacks.iter().zip(0..) {
        let frame = |&at: &u32| Frame { module, address: Svma(u64::from(at) * 16), flags: FrameFlags(0) };
        let frames: Vec<FrameId> = stack.iter().map(|at| machine.intern_frame(frame(at))).collect();
        let stack = machine.intern_stack(&frames);
        machine.add_sample(&Sample { time: Nanos(at), thread, stack, kind, value: 1, ..Sample::default() });
    }
    let mut symbols = Symbols::unresolved(&machine);
    for id in (0..machine.frames().len() as u32).map(FrameId) {
        let name = format!("f{}", id.0);
        symbols.set(id, &name, &name);
    }
    (machine, symbols)
}

/// A message of protobuf.
#[derive(Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(mut self, tag: u64, number: u64) -> Self {
        self.varint(tag << 3);
        self.varint(number);
        self
    }

    fn bytes(mut self, tag: u64, bytes: &[u8]) -> Self {
        self.varint(tag << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn message(self, tag: u64, message: &Self) -> Self {
        self.bytes(tag, &message.0)
    }

    /// Numbers in one field.
    fn packed(self, tag: u64, numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut packed = Self::default();
        numbers.into_iter().for_each(|number| packed.varint(number));
        self.message(tag, &packed)
    }
}

const SAMPLE_TYPE: u64 = 1;
const SAMPLE: u64 = 2;
const MAPPING: u64 = 3;
const LOCATION: u64 = 4;
const FUNCTION: u64 = 5;
const STRING: u64 = 6;

/// A profile of one sample type, with strings, of which the first is empty, and a function of the name of each.
fn profile(strings: &[&str]) -> Message {
    let kind = Message::default().number(1, 0).number(2, 0);
    let mut profile = Message::default().message(SAMPLE_TYPE, &kind).bytes(STRING, b"");
    for (string, id) in strings.iter().zip(1..) {
        profile = profile.bytes(STRING, string.as_bytes());
        profile = profile.message(FUNCTION, &Message::default().number(1, id).number(2, id));
    }
    profile
}

/// A location of so many functions, all of them the first one.
fn location(id: u64, lines: usize) -> Message {
    let line = Message::default().number(1, 1);
    let begin = Message::default().number(1, id).number(3, id * 16);
    (0..lines).fold(begin, |location, _| location.message(4, &line))
}

fn sample(stack: impl IntoIterator<Item = u64>) -> Message {
    Message::default().packed(1, stack).packed(2, [1])
}

fn with(message: Message, tag: u64, parts: impl IntoIterator<Item = Message>) -> Message {
    parts.into_iter().fold(message, |message, part| message.message(tag, &part))
}

fn pprof() -> Vec<(&'static str, Vec<u8>, Expected)> {
    use Expected::{Read, Refused};
    let long = "n".repeat(1 << 20);
    let one = || profile(&["f"]).message(LOCATION, &location(1, 1));
    let inlined =
        || profile(&["f"]).message(LOCATION, &location(1, 4096)).message(LOCATION, &location(2, 4096));
    // Ways to choose between two locations.
    let ways = (0..400_u64).map(|way| sample((0..15).map(move |bit| 1 + (way >> bit & 1))));
    let label = |key: u64, text: u64| Message::default().number(1, key).number(2, text);
    let named_threads = (0..2_000_u64).map(|at| {
        let tid = Message::default().number(1, 3).number(3, at);
        sample([1]).message(3, &label(2, 4)).message(3, &tid).message(3, &label(4, 4))
    });
    let mapping = Message::default().number(1, 1).number(2, 4096).number(3, 1 << 40).number(5, 1);
    let unnamed =
        (1..=5_000).map(|id| Message::default().number(1, id).number(2, 1).number(3, 4096 + id * 16));
    let files = vec![
        (
            "many frames of many inlined functions",
            inlined().message(SAMPLE, &sample(vec![1; 1 << 20])),
            Refused("sample 1 has more than 65536 functions on its stack"),
        ),
        (
            "many stacks of many inlined functions",
            with(inlined(), SAMPLE, ways),
            // 274 of 61,440 functions are the first that are beyond 2^24 and 4 for each of their 15 frames.
            Refused("up to sample 274 it has more than 16793656 functions on all stacks"),
        ),
        (
            "a long name on a deep stack",
            profile(&[&long]).message(LOCATION, &location(1, 1)).message(SAMPLE, &sample(vec![1; 100])),
            Refused("sample 1 has more than 67108864 bytes of names on its stack"),
        ),
        (
            "long names on the stacks of many samples",
            with(
                profile(&[&long]).message(LOCATION, &location(1, 1)),
                SAMPLE,
                (0..1_000).map(|_| sample([1; 60])),
            ),
            // 60 MiB each, beyond 1 GiB and 32 KiB for each.
            Refused(
                "up to sample 18 it has more than 1074331648 bytes of names on the stacks of all samples",
            ),
        ),
        ("a deep stack", one().message(SAMPLE, &sample(vec![1; 60_000])), Read),
        (
            "long names of threads and labels",
            with(
                profile(&["f", "thread", "tid", &long]).message(LOCATION, &location(1, 1)),
                SAMPLE,
                named_threads,
            ),
            Read,
        ),
        (
            "unnamed places of a long path",
            with(
                with(profile(&[&long]).message(MAPPING, &mapping), LOCATION, unnamed),
                SAMPLE,
                (1..=5_000).map(|id| sample([id])),
            ),
            Read,
        ),
    ];
    files.into_iter().map(|(name, file, expected)| (name, file.0, expected)).collect()
}

/// A profile with a thread of which each stack is called from the one before it.
fn chain(count: usize, is_inlined: bool) -> Value {
    let prefix: Vec<Option<usize>> = (0..count).map(|at| at.checked_sub(1)).collect();
    json!({
        "meta": {"preprocessedProfileVersion": 55, "interval": 1, "startTime": 0},
        "threads": [{
            "name": "t", "pid": 1, "tid": 1, "stringArray": ["f"],
            "stackTable": {"frame": vec![0; count], "prefix": prefix},
            "frameTable": {"func": [0], "inlineDepth": [u8::from(is_inlined)]},
            "funcTable": {"name": [0]},
            "samples": {"stack": [], "time": []}
        }]
    })
}

fn firefox() -> Vec<(&'static str, Vec<u8>, Expected)> {
    use Expected::{Read, Refused};
    let sampled = |mut file: Value, stacks: Vec<usize>| {
        file["threads"][0]["samples"]["time"] = json!(vec![0; stacks.len()]);
        file["threads"][0]["samples"]["stack"] = json!(stacks);
        file
    };
    let long = "n".repeat(1 << 20);
    let mut markers = chain(1, false);
    let count = 150;
    let names: Vec<String> = (0..count).map(|at| format!("m{at}")).collect();
    let data = json!({"type": "x", "cause": {"stack": 0}});
    markers["threads"][0]["name"] = json!(long);
    markers["threads"][0]["stringArray"] = json!([&["f".to_owned()][..], &names].concat());
    markers["threads"][0]["markers"] = json!({
        "name": (1..=count).collect::<Vec<_>>(), "startTime": vec![1; count], "endTime": vec![2; count],
        "data": vec![data; count]
    });
    let mut files = vec![
        (
            "stacks of inlined functions",
            sampled(chain(5_000, true), (0..5_000).collect()),
            Refused("up to stack 2057 it has more than 2117152 functions inlined together"),
        ),
        (
            "a stack that is too deep",
            sampled(chain(70_000, false), vec![69_999]),
            Refused("stack 69999 has more than 65536 frames"),
        ),
        // 2^28 and 1,024 for each of the samples, of which each has 60,000.
        (
            "a deep stack of many samples",
            sampled(chain(60_000, false), vec![59_999; 10_000]),
            Refused("functions on the stacks of all samples"),
        ),
        ("a long name of a thread with many kinds", markers, Read),
    ];
    for (name, limit, refused) in [
        ("libs", 1 << 16, "there are more than 65536 libraries at line 1 column"),
        ("counters", 1 << 16, "there are more than 65536 counters at line 1 column"),
        ("categories", 1 << 10, "there are more than 1024 categories at line 1 column"),
        ("markerSchema", 1 << 16, "there are more than 65536 types of markers at line 1 column"),
        ("fields", 1 << 10, "there are more than 1024 fields of markers at line 1 column"),
    ] {
        let mut file = chain(1, false);
        // Many more, so that what holds them all first is seen to.
        let list = vec![json!({"name": ""}); limit * 4];
        match name {
            "fields" => file["meta"]["markerSchema"] = json!([{"name": "", "fields": list}]),
            "libs" | "counters" => file[name] = json!(list),
            _ => file["meta"][name] = json!(list),
        }
        files.push((name, file, Refused(refused)));
    }
    let text = |name, file: &Value| {
        let text = file.to_string();
        // What a file is must be seen at its beginning.
        if name == "counters" { text.replacen('{', "{\"shared\":{},", 1) } else { text }
    };
    files.into_iter().map(|(name, file, expected)| (name, text(name, &file).into_bytes(), expected)).collect()
}
