//! nettrace of version 6 as another writer has it (`one_collect`, of which `record-trace` is made): put together here byte by byte, with each
//! of the things that it does its own way, one by one and all at once.

use std::io::Cursor;

use collector_common::record::Sample;
use export::format::nettrace::{Summary, read};
use export::import::Imported;
use export::import::nettrace::import;

/// What of it is another way than the specification has it.
#[derive(Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one way, alone and with all others")]
struct Ways {
    /// A week begins on Monday.
    has_monday: bool,
    /// Text is described as one byte of UTF-8, and mappings have more behind their fields.
    has_bytes_of_text: bool,
    /// All that was there when it began is at one time, and so are two sequence points.
    has_equal_points: bool,
    /// The recording ends before its last event.
    ends_early: bool,
}

/// The name and the type of a field.
type Field<'a> = (&'a str, &'a [u8]);

const START: u64 = 1_000;
const SAMPLED: u64 = 2_000;
const END: u64 = 2_500;

pub(crate) fn number(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

pub(crate) fn text(text: &str) -> Vec<u8> {
    [number(text.len() as u64), text.as_bytes().to_vec()].concat()
}

pub(crate) fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes()[..], bytes].concat()
}

pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) fn block(kind: u32, content: &[Vec<u8>]) -> Vec<u8> {
    let content = content.concat();
    [words(&[content.len() as u32 | kind << 24]), content].concat()
}

pub(crate) fn trace(weekday: u16) -> Vec<u8> {
    let date = [2025, 6, weekday, 15, 15, 6, 40, 0].map(u16::to_le_bytes).concat();
    let clock = [START, 1_000_000_000].map(u64::to_le_bytes).concat();
    block(1, &[date, clock, words(&[8, 1]), text("HardwareThreadCount"), text("4")])
}

/// `Universal.Events` come first there.
fn types(text_type: &[u8]) -> Vec<u8> {
    let (number_type, system) = (&[21][..], "Universal.System");
    let life = [("NamespaceId", number_type), ("Name", text_type), ("NamespaceName", text_type)];
    let mapping = [
        ("Id", number_type),
        ("StartAddress", number_type),
        ("EndAddress", number_type),
        ("FileOffset", number_type),
        ("FileName", text_type),
        ("MetadataId", number_type),
    ];
    let symbol = [
        ("Id", number_type),
        ("MappingId", number_type),
        ("StartAddress", number_type),
        ("EndAddress", number_type),
        ("Name", text_type),
    ];
    let metadata = [("Id", number_type), ("SymbolMetadata", text_type), ("VersionMetadata", text_type)];
    let value = [("Value", number_type)];
    let rows: [(&str, u64, &str, &[Field<'_>]); 7] = [
        ("Universal.Events", 1, "cpu", &value),
        (system, 0, "ExistingProcess", &life),
        (system, 1, "ProcessCreate", &life),
        (system, 2, "ProcessExit", &[]),
        (system, 3, "ProcessMapping", &mapping),
        (system, 4, "ProcessSymbol", &symbol),
        (system, 5, "ProcessMappingMetadata", &metadata),
    ];
    let rows = rows.iter().zip(1..).map(|(&(provider, id, name, fields), own)| {
        let field = |(name, of): &(&str, &[u8])| sized(&[text(name), of.to_vec()].concat());
        let fields = [sized_count(fields.len()), fields.iter().flat_map(field).collect()].concat();
        sized(&[number(own), text(provider), number(id), text(name), fields, vec![0; 2]].concat())
    });
    block(3, &[vec![0; 2], rows.flatten().collect()])
}

fn sized_count(count: usize) -> Vec<u8> {
    (count as u16).to_le_bytes().to_vec()
}

/// An event with its type, thread, stack, time and payload.
type Event = (u64, u64, u64, u64, Vec<u8>);

/// A sequence point, and what comes behind it: stacks, threads, labels and events.
fn part(start: u64, end: u64, stacks: &[u64], events: &[Event]) -> Vec<u8> {
    let rows = stacks.iter().flat_map(|address| [words(&[8]), address.to_le_bytes().to_vec()].concat());
    let stacks = block(5, &[words(&[1, stacks.len() as u32]), rows.collect()]);
    let threads = [(0, 0, 0), (1, 400, 0), (2, 400, 401)]
        .map(|(at, pid, tid)| sized(&[number(at), vec![2], number(pid), vec![3], number(tid)].concat()));
    let mut before = 0;
    let events = events.iter().flat_map(|(of, thread, stack, time, payload)| {
        let head =
            [*of, 0, 0, 0, *thread, *stack, time - before, 0, payload.len() as u64].map(number).concat();
        before = *time;
        [vec![223], head, payload.clone()].concat()
    });
    let header = [words(&[0x14 | 1 << 16]), [start, end].map(u64::to_le_bytes).concat()].concat();
    [
        point(start),
        stacks,
        block(6, &threads),
        block(8, &[words(&[1, 0])]),
        block(2, &[header, events.collect()]),
    ]
    .concat()
}

fn point(time: u64) -> Vec<u8> {
    block(4, &[time.to_le_bytes().to_vec(), words(&[1, 0])])
}

impl Ways {
    fn file(self) -> Vec<u8> {
        let fields = |numbers: &[u64]| numbers.iter().copied().flat_map(number).collect::<Vec<u8>>();
        let short = |text: &str| sized(text.as_bytes());
        let more = if self.has_bytes_of_text { [short("{}"), short("")].concat() } else { Vec::new() };
        let mapping = [fields(&[2, 0x40_0000, 0x41_0000, 0]), short("/bin/app"), fields(&[1]), more].concat();
        let build_id = short(r#"{"type":"ELF","build_id":"abcd01"}"#);
        let known = [
            (3, 1, 0, START, [fields(&[0]), short("app"), short("Unknown")].concat()),
            (7, 1, 0, START, [fields(&[1]), build_id, short("")].concat()),
            (5, 1, 0, START, mapping),
            (6, 1, 0, START, [fields(&[1, 2, 0x40_1000, 0x40_10ff]), short("alpha")].concat()),
        ];
        let sample = [(1, 2, 1, SAMPLED, fields(&[5]))];
        let middle = if self.has_equal_points { START } else { 1_500 };
        let end = if self.ends_early { SAMPLED - 1 } else { END };
        [
            b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec(),
            trace(if self.has_monday { 6 } else { 0 }),
            types(if self.has_bytes_of_text { &[23] } else { &[19, 23] }),
            part(START, START, &[], &known),
            part(middle, end, &[0x40_1010], &sample),
            point(end),
            block(0, &[]),
        ]
        .concat()
    }
}

/// The samples: process, thread, value, module with its build id, and function.
fn samples(Imported { machine, symbols, .. }: &Imported) -> Vec<String> {
    let of = |sample: Sample| {
        let thread = machine.thread(sample.thread);
        let process = machine.process(thread.process);
        let frame = machine.stacks().get(sample.stack)[0];
        let module = machine.module(machine.frames().get(frame).module);
        let [process, path] = [process.name, module.path].map(|id| machine.string(id));
        let build_id = module.build_id.map(|id| id.to_string());
        let function = symbols.name(frame).function;
        format!(
            "{process} {} {} {path} {} {function}",
            thread.tid.0,
            sample.value,
            build_id.unwrap_or_default()
        )
    };
    machine.samples().iter().map(of).collect()
}

/// Nothing of it is lost, and what contradicts itself is told.
#[test]
fn files_of_another_writer_are_read() {
    let none = Ways::default();
    let ways = [
        none,
        Ways { has_monday: true, ..none },
        Ways { has_bytes_of_text: true, ..none },
        Ways { has_equal_points: true, ..none },
        Ways { ends_early: true, ..none },
        Ways { has_monday: true, has_bytes_of_text: true, has_equal_points: true, ends_early: true },
    ];
    for (at, ways) in ways.into_iter().enumerate() {
        let imported = import(Cursor::new(ways.file())).unwrap();
        assert_eq!(samples(&imported), ["app 401 5 /bin/app abcd01 alpha"], "{at}");
        let told = [
            "2 times of events and sequence points are outside of what the trace tells of them; they are kept",
        ];
        assert_eq!(imported.left_out, told[..usize::from(ways.ends_early)], "{at}");
        let Summary { misplaced, events, .. } = read(&ways.file()[..], |_| (), |_| ()).unwrap();
        assert_eq!((misplaced, events), (if ways.ends_early { 2 } else { 0 }, 5));
    }
}
