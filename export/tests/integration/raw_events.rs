//! Recordings with raw events, whose fields are put down byte by byte.

use std::sync::Arc;

use collector_common::event::{
    ByteOrder, EventField, EventFormat, Extent, FieldKind, FloatWidth, Place, PointerWidth, Width,
};
use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::record::{
    AttributeListId, ClockAnchor, EventFacts, EventKind, EventKindId, EventRecord, ExportMachine, Frame,
    FrameFlags, ModuleId, Sample, SampleKindId, ThreadId, Unit,
};
use export::symbolize::Symbols;

const U8: FieldKind = FieldKind::Unsigned(Width::W8);
const U16: FieldKind = FieldKind::Unsigned(Width::W16);
const U64: FieldKind = FieldKind::Unsigned(Width::W64);
const I32: FieldKind = FieldKind::Signed(Width::W32);

fn add(format: &mut EventFormat, name: &str, kind: FieldKind, extent: Extent) {
    format.add_field(EventField::new(name, "", kind, extent, Place::AfterPrevious)).unwrap();
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// A field of each kind, and bytes of an event of them: tests know what they are.
pub(crate) fn every_kind() -> (EventFormat, Vec<u8>) {
    let mut format = EventFormat::new(ByteOrder::Little);
    let mut bytes = Vec::new();
    let mut field = |name: &str, kind: FieldKind, extent, own: &[u8]| {
        add(&mut format, name, kind, extent);
        bytes.extend_from_slice(own);
    };
    let one = Extent::One;
    let mut point = EventFormat::new(ByteOrder::Little);
    add(&mut point, "x", I32, one);
    add(&mut point, "name", FieldKind::Char, Extent::ZeroTerminated);
    let point = Arc::new(point);
    field("common_pid", I32, one, &7_i32.to_le_bytes());
    field("small", U8, one, &[254]);
    field("largest", U64, one, &u64::MAX.to_le_bytes());
    field("smallest", FieldKind::Signed(Width::W64), one, &i64::MIN.to_le_bytes());
    field("negative", FieldKind::Signed(Width::W16), one, &(-300_i16).to_le_bytes());
    field("half", FieldKind::Float(FloatWidth::W32), one, &1.5_f32.to_le_bytes());
    field("huge", FieldKind::Float(FloatWidth::W64), one, &(-2.5e300_f64).to_le_bytes());
    field("address", FieldKind::Pointer(PointerWidth::W64), one, &0xffff_8881_0000_1000_u64.to_le_bytes());
    field("yes", FieldKind::Bool(Width::W32), one, &2_u32.to_le_bytes());
    let bits = FieldKind::Bits { unit: Width::W8, first: 2, count: 3, signed: true };
    field("bits", bits, one, &[0b0001_0100]);
    field("text", FieldKind::Char, Extent::Array(17), b"gr\xc3\xbc\xc3\x9fe \"a\"\\\n\0old");
    field("wide", FieldKind::Utf16, Extent::ZeroTerminated, &wide("weit 😀"));
    field("ip", FieldKind::Ipv4, one, &[127, 0, 0, 1]);
    let mut address = [0; 16];
    (address[0], address[15]) = (0xfe, 1);
    field("ip6", FieldKind::Ipv6, one, &address);
    let guid =
        [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
    field("guid", FieldKind::Guid, one, &guid);
    field("when", FieldKind::FileTime, one, &116_444_736_000_000_010_u64.to_le_bytes());
    field("list", U16, Extent::CountPrefixed(Width::W16), &[2, 0, 1, 0, 0xff, 0xff]);
    field("bytes", U8, Extent::Array(3), &[0, 0xab, 7]);
    field("point", FieldKind::Struct(Arc::clone(&point)), one, b"\xff\xff\xff\xffa\0");
    let points = b"\x02\0\x01\0\0\0b\0\x02\0\0\0\0";
    field("points", FieldKind::Struct(point), Extent::CountPrefixed(Width::W16), points);
    field("small", U8, one, &[1]);
    (format, bytes)
}

/// Events of that kind and of others, one of which no field is known; some with samples.
pub(crate) struct Recorded {
    pub(crate) machine: ExportMachine,
    pub(crate) symbols: Symbols,
}

pub(crate) fn event_kind(
    machine: &mut ExportMachine,
    [provider, name]: [&str; 2],
    id: u64,
    format: EventFormat,
) -> EventKindId {
    let kind = EventKind {
        name: machine.intern_string(&format!("{provider}:{name}")),
        provider: machine.intern_string(provider),
        short_name: machine.intern_string(name),
        id,
        facts: EventFacts { version: 3, level: 4, opcode: 1, keywords: 0x8000_0000_0000_0001 },
        format: Arc::new(format),
        samples: Some(SampleKindId(0)),
    };
    machine.add_event_kind(kind).unwrap()
}

impl Recorded {
    /// At 1,000 to 6,000 ns, in the order that is not theirs: a sample of its own, an event of each kind of field with its sample, one
    /// of which nothing is known, one with text that is not UTF-8, one with NaN, and one that ends too early.
    pub(crate) fn new() -> Self {
        let mut machine = ExportMachine::default();
        let system = machine.system_mut();
        "build-07".clone_into(&mut system.host);
        (system.start, system.end, system.lost) = (Nanos(1_000), Nanos(9_000), Some(3));
        system.account = vec!["3 lost (ring_full 3)".to_owned()];
        let realtime = 1_750_000_000_000_000_789;
        system.clocks.start = Some(ClockAnchor { monotonic: Nanos(1_000), realtime, boottime: None });
        let kind = machine.add_kind("made:all", Unit::Count, 1);
        let process = machine.add_process(Pid(100), "prog", None, Nanos(0));
        let name = machine.intern_string("wörk\"er");
        let thread = machine.intern_thread(process, Tid(101), name);
        let kernel = FrameFlags(FrameFlags::KERNEL);
        let frame = Frame { module: ModuleId::KERNEL, address: Svma(1 << 63), flags: kernel };
        let frame = machine.intern_frame(frame);
        let stack = machine.intern_stack(&[frame]);
        let [key, value] = ["state", "blocked"].map(|text| machine.intern_string(text));
        let attributes = machine.attributes_mut().intern(&[(key, value)]);
        let sample =
            |time| Sample { time: Nanos(time), thread, stack, cpu: 5, kind, value: 1, ..Sample::default() };

        let (format, bytes) = every_kind();
        let all = event_kind(&mut machine, ["made", "all"], 9, format);
        machine.add_sample_of_event(&Sample { attributes, ..sample(2_000) }, all, &bytes);
        let unknown = event_kind(&mut machine, ["made", "unknown"], 10, EventFormat::default());
        let mut alone = |kind, time, bytes: &[u8]| {
            let attributes = AttributeListId::NONE;
            let record =
                EventRecord { time: Nanos(time), thread, kind, attributes, ..EventRecord::default() };
            machine.add_event_record(&record, bytes).unwrap();
        };
        alone(unknown, 3_000, &[1, 0xff]);
        alone(unknown, 6_500, &[]);
        let mut format = EventFormat::new(ByteOrder::Little);
        add(&mut format, "number", FieldKind::Float(FloatWidth::W64), Extent::One);
        add(&mut format, "text", FieldKind::Char, Extent::Rest);
        let text = event_kind(&mut machine, ["made", "text"], 11, format);
        let mut alone = |time, bytes: &[u8]| {
            let record = EventRecord { time: Nanos(time), thread, kind: text, ..EventRecord::default() };
            machine.add_event_record(&record, bytes).unwrap();
        };
        alone(4_000, &[&1e21_f64.to_le_bytes()[..], b"a\xffb"].concat());
        alone(5_000, &[&f64::NAN.to_le_bytes()[..], b"c"].concat());
        alone(6_000, &[1, 2, 3]);
        machine.add_sample(&sample(1_000));
        let mut symbols = Symbols::unresolved(&machine);
        symbols.set(frame, "vfs_read", "vfs_read");
        Self { machine, symbols }
    }
}

/// A thread and a kind of sample, for machines with more.
pub(crate) fn small() -> (ExportMachine, ThreadId) {
    let mut machine = ExportMachine::default();
    let process = machine.add_process(Pid(9), "prog", None, Nanos(0));
    let name = machine.intern_string("prog");
    let thread = machine.intern_thread(process, Tid(9), name);
    machine.add_kind("cpu", Unit::Count, 1_000_000);
    (machine, thread)
}
