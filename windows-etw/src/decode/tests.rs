//! Every event of the tables, in every version and with both widths of pointers: what is decoded is what the format's getters
//! give, each cut is an error, noise does no harm; and payloads have the sizes that PerfView's readers ask for.

use collector_common::event::{ByteOrder, EventData, Extent, FieldKind, Guid};

use super::clr::{self, ClrEvent};
use super::kernel::{self, KernelEvent};
use super::windows::{self, WindowsEvent};
use super::{DecodeError, EventKey, EventSpec, Layout, spec_of, specs};
use crate::record::{Descriptor, EtwRecord, Extended, PointerSize, Schema};

mod offsets;
mod payloads;

const WIDTHS: [PointerSize; 2] = [PointerSize::Bits32, PointerSize::Bits64];

/// Numbers without a pattern, the same in each run (xorshift).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Each layout of an event, one version more than is known.
fn layouts(spec: &EventSpec) -> Vec<Layout> {
    let known = spec.fields.iter().map(|field| field.since).max().unwrap_or(0) + 1;
    let versions = spec.since..=spec.until.min(known.max(spec.since));
    versions.flat_map(|version| WIDTHS.map(|pointer| Layout { version, pointer })).collect()
}

fn record<'a>(spec: &EventSpec, layout: Layout, payload: &'a [u8]) -> EtwRecord<'a> {
    let mut descriptor = Descriptor { version: layout.version, ..Descriptor::default() };
    match spec.key {
        EventKey::Opcode(opcode) => descriptor.opcode = opcode,
        EventKey::Id(id) => descriptor.id = id,
    }
    EtwRecord {
        provider: spec.provider,
        descriptor,
        schema: Schema::Classic,
        pointer_size: layout.pointer,
        pid: None,
        tid: None,
        cpu: 0,
        ticks: 0,
        activity: Guid([0; 16]),
        extended: Extended::default(),
        payload,
    }
}

/// Names and values.
type Shown = Vec<(&'static str, String)>;

/// Name and fields of what is decoded.
fn decode(record: &EtwRecord<'_>) -> Result<(&'static str, Shown), DecodeError> {
    if let Some(event) = KernelEvent::decode(record)? {
        return Ok((event.name(), event.shown()));
    }
    if let Some(event) = ClrEvent::decode(record)? {
        return Ok((event.name(), event.shown()));
    }
    let event = WindowsEvent::decode(record)?.expect("the event is of a table");
    Ok((event.name(), event.shown()))
}

/// Bytes that a field may have.
fn some_bytes(kind: &FieldKind, extent: Extent, noise: &mut Noise) -> Vec<u8> {
    let letters = |noise: &mut Noise, wide: bool| -> Vec<u8> {
        let count = noise.next() % 9;
        let letters = (0..count).map(|_| b'!' + (noise.next() % 90) as u8);
        letters.flat_map(|letter| if wide { vec![letter, 0] } else { vec![letter] }).collect()
    };
    match (kind, extent) {
        (FieldKind::Sid(before), _) => {
            let mut bytes = Vec::new();
            if let Some(width) = before {
                if noise.next().is_multiple_of(4) {
                    return vec![0; 4];
                }
                bytes.resize(2 * width.width().bytes() as usize, 7);
            }
            bytes.extend([1, 2]);
            bytes.extend(noise.bytes(6 + 8));
            bytes
        }
        (FieldKind::Utf16, Extent::Array(count)) => {
            let mut bytes = letters(noise, true);
            bytes.resize(2 * count as usize, 0);
            bytes
        }
        (FieldKind::Utf16, _) => {
            let mut bytes = letters(noise, true);
            bytes.extend([0, 0]);
            bytes
        }
        (FieldKind::Char, _) => {
            let mut bytes = letters(noise, false);
            bytes.push(0);
            bytes
        }
        (kind, Extent::Array(count)) => noise.bytes((kind.size().unwrap() * count) as usize),
        (kind, Extent::Rest) => {
            let count = noise.next() % 5;
            noise.bytes(kind.size().unwrap() as usize * count as usize)
        }
        (kind, _) => noise.bytes(kind.size().unwrap() as usize),
    }
}

/// What the getters of the event's format give for each field.
fn by_format(spec: &EventSpec, layout: Layout, payload: &[u8]) -> Vec<(String, String)> {
    let format = spec.format(layout).unwrap();
    assert_eq!(format.order(), ByteOrder::Little);
    let data = EventData::new(payload, payload, &format);
    let text = |name: &str| {
        let field = format.field_refs().find(|field| format.field(*field).unwrap().name() == name);
        let value = data.value(field.unwrap());
        assert!(value.is_ok(), "{} {layout:?} {name}: {value:?}", spec.name);
    };
    for field in format.fields() {
        text(field.name());
    }
    // As they are printed, a field a time.
    data.values()
        .map(|(field, _)| {
            let mut single = collector_common::event::EventFormat::new(ByteOrder::Little);
            let reference =
                format.field_refs().find(|reference| std::ptr::eq(format.field(*reference).unwrap(), field));
            let bytes = data.try_get_slice(reference.unwrap()).unwrap();
            let extent = if field.extent() == Extent::ZeroTerminated { Extent::Rest } else { field.extent() };
            single
                .add_field(collector_common::event::EventField::new(
                    field.name(),
                    "",
                    field.kind().clone(),
                    extent,
                    collector_common::event::Place::AfterPrevious,
                ))
                .unwrap();
            let printed = EventData::new(bytes, bytes, &single).as_text().to_string();
            let value = printed.split_once('=').unwrap().1;
            (field.name().to_owned(), value.to_owned())
        })
        .collect()
}

#[test]
fn what_is_decoded_is_what_the_formats_say() {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let mut checked = 0;
    for spec in specs() {
        for layout in layouts(spec) {
            for _ in 0..4 {
                let mut payload = Vec::new();
                for field in spec.fields_of(layout.version) {
                    let (kind, extent) = (field.kind)(layout);
                    let mut bytes = some_bytes(&kind, extent, &mut noise);
                    // A process has a number of 32 bits, however wide it lies there.
                    if ["ProcessId", "ParentId"].contains(&field.name) {
                        bytes.iter_mut().skip(4).for_each(|byte| *byte = 0);
                    }
                    payload.extend(bytes);
                }
                let (name, shown) = decode(&record(spec, layout, &payload)).unwrap();
                assert_eq!(name, spec.name);
                let expected = by_format(spec, layout, &payload);
                let shown: Vec<_> = shown.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                assert_eq!(shown, expected, "{name} {layout:?}");
                checked += 1;
                cuts(spec, layout, &payload);
            }
        }
    }
    assert!(checked > 3000, "{checked}");
}

/// Each cut of a payload is an error that says where, unless it lies in fields that may be absent.
fn cuts(spec: &EventSpec, layout: Layout, payload: &[u8]) {
    let format = spec.format(layout).unwrap();
    let data = EventData::new(payload, payload, &format);
    let may_be_cut =
        spec.fields_of(layout.version).zip(format.field_refs()).find_map(|(field, reference)| {
            let optional = (field.kind)(layout).1 == Extent::Rest
                || ["ThreadName", "Label", "SourceName", "SessionNameString", "LogFileNameString"]
                    .contains(&field.name)
                    && spec.name != "Thread/SetName";
            let start = data.try_get_slice(reference).unwrap().as_ptr() as usize - payload.as_ptr() as usize;
            optional.then_some(start)
        });
    let most = may_be_cut.unwrap_or(payload.len());
    for len in 0..payload.len() {
        match decode(&record(spec, layout, &payload[..len])) {
            Err(error) => {
                assert!(len < most, "{error}");
                assert_eq!((error.event, error.version, error.len), (spec.name, layout.version, len));
                assert!(error.position <= len);
            }
            Ok(_) => assert!(len >= most, "{} {layout:?}: cut at {len} of {}", spec.name, payload.len()),
        }
    }
}

#[test]
fn noise_is_decoded_or_refused() {
    let mut noise = Noise(1);
    for spec in specs() {
        for layout in layouts(spec) {
            for size in [0, 3, 40, 300, 1200] {
                let payload = noise.bytes(size);
                let _ = decode(&record(spec, layout, &payload));
            }
        }
    }
}

#[test]
fn each_event_is_told_by_one_row() {
    for spec in specs() {
        for layout in layouts(spec) {
            let record = record(spec, layout, &[]);
            let event = (&record).into();
            let rows = specs().filter(|other| other.is_of(&event));
            assert_eq!(rows.count(), 1, "{} {layout:?}", spec.name);
            assert!(std::ptr::eq(spec_of(&record).unwrap(), spec));
        }
        assert!(
            [kernel::provider_name, clr::provider_name, windows::provider_name]
                .iter()
                .any(|provider_name| provider_name(spec.provider).is_some()),
            "{}",
            spec.name
        );
    }
}

/// Name, version, bytes with pointers of 4 bytes, how many pointers. From the lengths that PerfView's `KernelTraceEventParser` and
/// `SymbolTraceEventParser` assert, and for the CLR from the manifest's types.
const SIZES: &[(&str, u8, u32, u32)] = &[
    ("Thread/Start", 0, 8, 0),
    ("Thread/Stop", 1, 8, 0),
    ("Thread/DCStart", 2, 40, 7),
    ("Thread/CSwitch", 2, 24, 0),
    ("Dispatcher/ReadyThread", 2, 8, 0),
    ("PerfInfo/Sample", 2, 12, 1),
    ("PerfInfo/PMCSample", 2, 12, 1),
    ("PerfInfo/SetInterval", 2, 12, 0),
    ("PerfInfo/SysClEnter", 2, 4, 1),
    ("PerfInfo/SysClExit", 2, 4, 0),
    ("PerfInfo/ISR", 2, 16, 1),
    ("PerfInfo/DPC", 2, 12, 1),
    ("Process/PerfCtr", 2, 60, 11),
    ("DiskIO/Read", 0, 40, 2),
    ("DiskIO/ReadInit", 0, 4, 1),
    ("DiskIO/FlushBuffers", 0, 20, 1),
    ("FileIO/Close", 2, 16, 4),
    ("FileIO/Close", 3, 16, 3),
    ("FileIO/Read", 2, 32, 4),
    ("FileIO/Read", 3, 32, 3),
    ("FileIO/QueryInfo", 2, 24, 5),
    ("FileIO/QueryInfo", 3, 24, 4),
    ("FileIO/OperationEnd", 2, 12, 2),
    ("TcpIp/Send", 2, 36, 1),
    ("TcpIp/Connect", 2, 44, 1),
    ("TcpIp/Fail", 2, 4, 0),
    ("UdpIp/Send", 0, 20, 1),
    ("UdpIp/SendIPV6", 2, 52, 1),
    ("Memory/TransitionFault", 0, 8, 2),
    ("Memory/HardFault", 0, 32, 2),
    ("Memory/ImageLoadBacked", 0, 12, 1),
    ("VirtualMem/Alloc", 2, 16, 2),
    ("SystemConfig/CPU", 2, 804, 1),
    ("SystemConfig/PhyDisk", 2, 568, 0),
    ("SystemConfig/LogDisk", 2, 112, 0),
    ("SystemConfig/Network", 2, 16, 0),
    ("GC/Start", 2, 26, 0),
    ("GC/HeapStats", 1, 94, 0),
    ("GC/HeapStats", 2, 110, 0),
    ("Method/Load", 2, 46, 0),
    ("AppDomainResourceManagement/ThreadCreated", 0, 30, 0),
];

#[test]
fn payloads_have_the_sizes_that_others_ask_for() {
    for (name, version, narrow, pointers) in SIZES {
        let spec = specs().find(|spec| spec.name == *name && (spec.since..=spec.until).contains(version));
        let spec = spec.unwrap();
        for (pointer, size) in [(PointerSize::Bits32, *narrow), (PointerSize::Bits64, narrow + 4 * pointers)]
        {
            let format = spec.format(Layout { version: *version, pointer }).unwrap();
            assert_eq!(format.size(), Some(size), "{name} {version} {pointer:?}");
        }
    }
}

/// Events are handed around by value.
#[test]
fn events_are_small() {
    let sizes = [size_of::<KernelEvent<'_>>(), size_of::<ClrEvent<'_>>(), size_of::<WindowsEvent<'_>>()];
    assert!(sizes.iter().all(|size| *size <= 264), "{sizes:?}");
}

/// What people are told of.
#[test]
fn each_task_is_in_the_documentation() {
    let docs = include_str!("../../../docs/etw.md");
    for spec in specs() {
        let task = spec.name.split('/').next().unwrap();
        let task = task.strip_suffix("Change").map_or(task, |_| "changes of priority");
        assert!(docs.contains(&format!("`{task}`")) || docs.contains(task), "{task}");
    }
}
