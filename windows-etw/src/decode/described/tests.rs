//! Descriptions written by hand after `TraceLoggingProvider.h` and `tdh.h`, and what their payloads then are.

mod bounded;

use std::sync::atomic::{AtomicU32, Ordering};

use collector_common::event::{ByteOrder, EventData, Guid, PointerWidth};

use super::{DescriptionProblem, EventInfo, InfoKey, ProviderTraits, Schemas, TraceLoggingEvent};
use crate::decode::kernel::META_DATA;
use crate::record::{Descriptor, EtwRecord, Extended, PointerSize, Schema};

/// A description behind its size.
fn sized(rest: &[u8]) -> Vec<u8> {
    let mut description = (rest.len() as u16 + 2).to_le_bytes().to_vec();
    description.extend_from_slice(rest);
    description
}

fn record(schema: Schema, provider: Guid, payload: &[u8]) -> EtwRecord<'_> {
    EtwRecord {
        provider,
        descriptor: Descriptor::default(),
        schema,
        pointer_size: PointerSize::Bits64,
        pid: None,
        tid: None,
        cpu: 0,
        ticks: 0,
        activity: Guid([0; 16]),
        extended: Extended::default(),
        payload,
    }
}

fn text(event: &TraceLoggingEvent, payload: &[u8]) -> String {
    EventData::new(payload, payload, &event.format).as_text().to_string()
}

/// Each scalar with how it is shown, tags of the event and of a field, counted and ended text.
#[test]
fn trace_logging_scalars() {
    let description = sized(
        b"\x81\x02Ev\0\
        wide\0\x01\
        utf8\0\x82\xa3\x05\
        i8\0\x03\
        truth\0\x84\x03\
        port\0\x86\x07\
        ip\0\x88\x08\
        x\0\x0c\
        b\0\x0d\
        bin\0\x0e\
        v6\0\x8e\x09\
        g\0\x0f\
        t\0\x11\
        sid\0\x13\
        hex\0\x15\
        cs\0\x16\
        ca\0\x17\
        cb\0\x19",
    );
    let mut payload = b"W\0i\0\0\0utf8\0\xfe\x01".to_vec();
    payload.extend([1, 187, 10, 0, 0, 1]);
    payload.extend(1.5_f64.to_le_bytes());
    payload.extend(1_u32.to_le_bytes());
    payload.extend([2, 0, 7, 8]);
    payload.extend([16, 0, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    payload.extend([
        0xe9, 0x0d, 0x3c, 0xe1, 0xcc, 0xbc, 0x12, 0x4e, 0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27, 0xe4,
    ]);
    payload.extend(133_485_408_001_234_567_u64.to_le_bytes());
    payload.extend([1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0]);
    payload.extend(255_u64.to_le_bytes());
    payload.extend(b"\x04\0c\0s\0\x02\0ca\x01\0\x09");
    for width in [PointerWidth::W32, PointerWidth::W64] {
        let event = TraceLoggingEvent::parse(&description, width).unwrap();
        assert_eq!((&*event.name, event.tags), ("Ev", 1 << 21 | 2 << 14));
        assert_eq!(
            text(&event, &payload),
            "wide=\"Wi\" utf8=\"utf8\" i8=-2 truth=true port=443 ip=10.0.0.1 x=1.5 b=true bin=[7, 8] \
             v6=[32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] \
             g=e13c0de9-bccc-4e12-931b-d9cc2eee27e4 t=2024-01-01T00:00:00.1234567Z sid=S-1-5-18 hex=255 \
             cs=\"cs\" ca=\"ca\" cb=[9]"
        );
    }
    for cut in 0..description.len() {
        assert!(TraceLoggingEvent::parse(&description[..cut], PointerWidth::W64).is_err(), "{cut}");
    }
}

/// Lists of both kinds, of numbers and of text, structures in structures, and lists of these.
#[test]
fn trace_logging_lists_and_structures() {
    let description = sized(
        b"\0E\0\
        three\0\x28\x03\0\
        some\0\x46\
        texts\0\x41\
        at\0\x98\x02\
        x\0\x07\
        in\0\x98\x01\
        name\0\x02\
        rows\0\xd8\x01\
        v\0\x04\
        packed\0\x6e\x02\0ab\
        last\0\x04",
    );
    let mut payload = Vec::new();
    for number in [1_u32, 2, 3] {
        payload.extend(number.to_le_bytes());
    }
    payload.extend([2, 0, 5, 0, 6, 0]);
    payload.extend(b"\x02\0a\0\0\0b\0\0\0");
    payload.extend((-1_i32).to_le_bytes());
    payload.extend(b"inner\0");
    payload.extend([3, 0, 7, 8, 9]);
    payload.extend([1, 0, 0xaa, 42]);
    let event = TraceLoggingEvent::parse(&description, PointerWidth::W64).unwrap();
    assert_eq!(
        text(&event, &payload),
        "three=[1, 2, 3] some=[5, 6] texts=[{value=\"a\"}, {value=\"b\"}] at={x=-1 in={name=\"inner\"}} \
         rows=[{v=7}, {v=8}, {v=9}] packed=[170] last=42"
    );
    let unknown = sized(b"\0E\0f\0\x1f");
    let error = TraceLoggingEvent::parse(&unknown, PointerWidth::W64).unwrap_err();
    assert_eq!(error.problem, DescriptionProblem::Type { input: 31, output: 0 });
    // 40 structures, each the only member of the one before.
    let mut deep = b"\0E\0".to_vec();
    for _ in 0..40 {
        deep.extend(b"s\0\x98\x01");
    }
    deep.extend(b"f\0\x04");
    assert!(TraceLoggingEvent::parse(&sized(&deep), PointerWidth::W64).is_err());
    // A structure that has more members than there are.
    assert!(TraceLoggingEvent::parse(&sized(b"\0E\0s\0\x98\x03f\0\x04"), PointerWidth::W64).is_err());
}

#[test]
fn provider_traits() {
    let mut description = b"My.Provider\0".to_vec();
    description.extend([4, 0, 7, 1]);
    description.extend([19, 0, 1]);
    description.extend([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    let description = sized(&description);
    let traits = ProviderTraits::parse(&description).unwrap();
    assert_eq!(&*traits.name, "My.Provider");
    assert_eq!(traits.group.unwrap().to_string(), "04030201-0605-0807-090a-0b0c0d0e0f10");
    for cut in 0..description.len() {
        assert!(ProviderTraits::parse(&description[..cut]).is_err(), "{cut}");
    }
    assert!(
        ProviderTraits::parse(&sized(b"P\0\x02\0\x01")).is_err(),
        "a trait is at least its size and type"
    );
}

/// A `TRACE_EVENT_INFO` and where its names go.
struct Info {
    bytes: Vec<u8>,
    names: Vec<(usize, &'static str)>,
}

impl Info {
    fn new(source: u32, guids: [u8; 2], properties: u32, top_level: u32) -> Self {
        let mut bytes = vec![guids[0]; 16];
        bytes.extend([guids[1]; 16]);
        bytes.extend([7, 0, 2, 0, 4, 1, 3, 0]);
        bytes.extend([0; 8]);
        bytes.extend(source.to_le_bytes());
        bytes.resize(112, 0);
        bytes[100..104].copy_from_slice(&properties.to_le_bytes());
        bytes[104..108].copy_from_slice(&top_level.to_le_bytes());
        Self { bytes, names: vec![(52, "Provider "), (68, "Task"), (72, "win:Start "), (76, "Message %1")] }
    }

    fn property(
        &mut self,
        flags: u32,
        name: &'static str,
        types: [u16; 2],
        count: u16,
        length: u16,
    ) -> &mut Self {
        self.bytes.extend(flags.to_le_bytes());
        self.names.push((self.bytes.len(), name));
        self.bytes.extend([0; 4]);
        self.bytes.extend(types.iter().flat_map(|number| number.to_le_bytes()));
        self.bytes.extend([0; 4]);
        self.bytes.extend([count, length].iter().flat_map(|number| number.to_le_bytes()));
        self.bytes.extend([0; 4]);
        self
    }

    fn done(&mut self) -> Vec<u8> {
        for (place, name) in std::mem::take(&mut self.names) {
            let at = (self.bytes.len() as u32).to_le_bytes();
            self.bytes[place..place + 4].copy_from_slice(&at);
            self.bytes.extend(name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        }
        std::mem::take(&mut self.bytes)
    }
}

#[test]
fn event_info() {
    let mut info = Info::new(0, [1, 2], 9, 7);
    info.property(0, "Count", [8, 8], 1, 4)
        .property(2, "Bytes", [14, 15], 1, 0)
        .property(2, "Text", [1, 1], 1, 0)
        .property(5, "Rows", [7, 2], 0, 0)
        .property(0, "Pointer", [16, 0], 1, 8)
        .property(0, "Fixed", [1, 1], 1, 2)
        .property(0, "Port", [6, 22], 1, 2)
        .property(0, "X", [4, 4], 1, 1)
        .property(0, "Y", [13, 13], 1, 4);
    let info = info.done();
    let mut payload = 2_u32.to_le_bytes().to_vec();
    payload.extend(b"\x07\x08h\0i\0");
    payload.extend([5, 1, 0, 0, 0, 6, 0, 0, 0, 0]);
    for width in [PointerWidth::W32, PointerWidth::W64] {
        let parsed = EventInfo::parse(&info, width).unwrap();
        assert_eq!(parsed.key, InfoKey::Manifest(Guid([1; 16]), 7, 2));
        assert_eq!((parsed.provider.as_deref(), parsed.name().as_str()), (Some("Provider"), "Task/Start"));
        assert_eq!(parsed.message.as_deref(), Some("Message %1"));
        let mut payload = payload.clone();
        payload.extend(0x1234_u64.to_le_bytes().iter().take(width.width().bytes() as usize));
        payload.extend(b"o\0k\0\0\x50");
        let data = EventData::new(&payload, &payload, &parsed.format);
        assert_eq!(
            data.as_text().to_string(),
            "Count=2 Bytes=[7, 8] Text=\"hi\" Rows=[{X=5 Y=true}, {X=6 Y=false}] Pointer=0x1234 Fixed=\"ok\" \
             Port=80"
        );
    }
    for cut in 0..info.len() {
        assert!(EventInfo::parse(&info[..cut], PointerWidth::W64).is_err(), "{cut}");
    }
}

#[test]
fn event_info_that_can_not_be() {
    let parse =
        |info: &mut Info| EventInfo::parse(&info.done(), PointerWidth::W64).map_err(|error| error.problem);
    // The count of a list is behind it.
    let mut info = Info::new(0, [1, 2], 2, 2);
    info.property(4, "List", [8, 8], 1, 0).property(0, "Count", [8, 8], 1, 4);
    assert_eq!(parse(&mut info).unwrap_err(), DescriptionProblem::Counter { index: 1 });
    // A structure that is a member of itself.
    let mut info = Info::new(0, [1, 2], 2, 2);
    info.property(1, "Self", [0, 2], 1, 0).property(0, "X", [8, 8], 1, 4);
    assert_eq!(parse(&mut info).unwrap_err(), DescriptionProblem::Members { members: 2, left: 0 });
    let mut info = Info::new(0, [1, 2], 1, 5);
    info.property(0, "X", [8, 8], 1, 4);
    assert_eq!(parse(&mut info).unwrap_err(), DescriptionProblem::Members { members: 5, left: 1 });
    let mut info = Info::new(0, [1, 2], 1, 1);
    info.property(0, "X", [302, 0], 1, 0);
    assert_eq!(parse(&mut info).unwrap_err(), DescriptionProblem::Type { input: 302, output: 0 });
    let mut info = Info::new(0, [1, 2], u32::MAX, 1);
    info.property(0, "X", [8, 8], 1, 4);
    assert!(parse(&mut info).is_err());
}

/// Names that are all the same text cost as much as if each had its own.
#[test]
fn names_of_event_info_that_are_longer_than_all_of_it() {
    let mut info = Info::new(0, [1, 2], 2, 2);
    info.property(0, "One", [8, 8], 1, 4).property(0, "Two", [8, 8], 1, 4);
    let whole = info.done();
    assert!(EventInfo::parse(&whole, PointerWidth::W64).is_ok());
    // A thousand properties, of which each has its name where all other names are, too: a long one.
    let count = 1000_u32;
    let mut many = whole[..112].to_vec();
    let name = 112 + 24 * count;
    // The numbers of properties, in all and of the event itself.
    many[100..108].copy_from_slice(&[count.to_le_bytes(), count.to_le_bytes()].concat());
    many[52..80].fill(0);
    for _ in 0..count {
        many.extend(&whole[112..136]);
        let start = many.len() - 24;
        many[start + 4..start + 8].copy_from_slice(&name.to_le_bytes());
    }
    many.extend("n".repeat(100).encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    let error = EventInfo::parse(&many, PointerWidth::W64).unwrap_err();
    assert_eq!((error.what, error.problem), ("a property's name", DescriptionProblem::NoEnd));
}

/// Of which a reader that looks through all opcodes and makes all fields for each event would take minutes.
#[test]
fn manifests_with_much_in_common() {
    // For pointers of both widths no more are kept.
    const EVENTS: usize = 8000;
    let many = |count: usize, of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<String>();
    let opcodes = many(EVENTS, &|number| format!("<opcode name=\"O{number}\" value=\"11\"/>"));
    let fields =
        many(4000, &|number| format!("<data name=\"f{number}\" inType=\"win:Binary\" length=\"size\"/>"));
    let events = many(EVENTS, &|number| {
        format!("<event value=\"{number}\" task=\"Work\" opcode=\"O{number}\" template=\"All\"/>")
    });
    let text = format!(
        "<provider name=\"Much\"><opcodes>{opcodes}</opcodes><events>{events}</events><templates>\
         <template tid=\"All\"><data name=\"size\" inType=\"win:UInt16\"/>{fields}</template></templates></provider>"
    );
    let mut schemas = Schemas::default();
    for part in parts(text.as_bytes(), 60_000) {
        schemas.learn(&manifest_part(&part)).unwrap();
    }
    let mut of = |id: u16| {
        let mut event = record(Schema::Manifest, Guid([4; 16]), &[]);
        event.descriptor.id = id;
        schemas.describe(&event).unwrap().unwrap()
    };
    let [first, last] = [of(0), of(EVENTS as u16 - 1)];
    assert_eq!([&*first.name, &*last.name], ["Work/O0", "Work/O7999"]);
    assert_eq!(first.format.fields().len(), 4001);
    assert!(std::sync::Arc::ptr_eq(&first.format, &last.format));
}

/// As `EventSource` writes them: some of `PerfView`'s own manifest, shortened, and a blob with its size before it.
const MANIFEST: &str = r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
 <instrumentation xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:win="http://manifests.microsoft.com/win/2004/08/windows/events">
  <events xmlns="http://schemas.microsoft.com/win/2004/08/events">
<provider name="My-Source" guid="{04040404-0404-0404-0404-040404040404}" resourceFileName="My" symbol="My">
 <tasks><task name="Work" value="1"/><task name="Note" value="65500"/></tasks>
 <opcodes><opcode name="Half" value="11"/></opcodes>
 <events>
  <event value="1" version="2" level="win:Informational" symbol="WorkStart" task="Work" opcode="win:Start" template="WorkArgs"/>
  <event value="2" version="0" level="win:Informational" symbol="WorkHalf" task="Work" opcode="Half"/>
  <event value="3" version="0" level="win:Informational" symbol="Note" task="Note" template="NoteArgs"/>
  <event value="4" version="0" level="win:Informational" symbol="Odd" template="OddArgs"/>
 </events>
 <templates>
  <template tid="WorkArgs"><data name="name" inType="win:UnicodeString"/><data name="on" inType="win:Boolean"/></template>
  <template tid="NoteArgs"><data name="blobSize" inType="win:UInt32"/>
   <data name="blob" inType="win:Binary" length="blobSize"/><data name="at" inType="win:Pointer"/>
   <data name="when" inType="win:FILETIME"/><data name="letter" inType="win:UInt16" outType="xs:string"/></template>
  <template tid="OddArgs"><data name="odd" inType="win:Odd"/></template>
 </templates>
</provider></events></instrumentation></instrumentationManifest>"#;

/// Parts of a manifest, each of so many bytes.
fn parts(text: &[u8], size: usize) -> Vec<Vec<u8>> {
    let total = text.len().div_ceil(size) as u16;
    let parts = text.chunks(size).zip(0_u16..);
    let head = |part: u16| [&[1, 1, 0, 0x5b][..], &total.to_le_bytes(), &part.to_le_bytes()].concat();
    parts.map(|(text, part)| [&head(part), text].concat()).collect()
}

fn manifest_part(part: &[u8]) -> EtwRecord<'_> {
    let mut record = record(Schema::Manifest, Guid([4; 16]), part);
    record.descriptor = Descriptor { id: 0xfffe, opcode: 0xfe, version: 1, ..Descriptor::default() };
    record
}

fn described(schemas: &mut Schemas, id: u16, version: u8, payload: &[u8]) -> Option<(String, String)> {
    let mut event = record(Schema::Manifest, Guid([4; 16]), payload);
    event.descriptor = Descriptor { id, version, ..Descriptor::default() };
    let described = schemas.describe(&event).unwrap()?;
    let data = EventData::new(payload, payload, &described.format);
    Some((format!("{}/{}", described.provider, described.name), data.as_text().to_string()))
}

#[test]
fn manifests_that_programs_write() {
    let note = [
        &[2, 0, 0, 0, 7, 8][..],
        &0x1234_u64.to_le_bytes(),
        &133_485_408_001_234_567_u64.to_le_bytes(),
        b"x\0",
    ];
    let note = note.concat();
    for size in [MANIFEST.len(), 1000, 7] {
        let mut schemas = Schemas::default();
        let parts = parts(MANIFEST.as_bytes(), size);
        for part in &parts {
            assert!(described(&mut schemas, 2, 0, &[]).is_none());
            schemas.learn(&manifest_part(part)).unwrap();
        }
        let work = described(&mut schemas, 1, 2, b"a\0\0\0\x01\0\0\0");
        assert_eq!(work, Some(("My-Source/Work/Start".into(), "name=\"a\" on=true".into())));
        assert_eq!(described(&mut schemas, 1, 3, &[]), None);
        assert_eq!(described(&mut schemas, 2, 0, &[]), Some(("My-Source/Work/Half".into(), String::new())));
        let text = "blobSize=2 blob=[7, 8] at=0x1234 when=2024-01-01T00:00:00.1234567Z letter=\"x\"";
        assert_eq!(described(&mut schemas, 3, 0, &note), Some(("My-Source/Note".into(), text.into())));
        assert_eq!(described(&mut schemas, 4, 0, &[]), None, "its type is not known");
        let own = described(&mut schemas, 0xfffe, 1, &parts[0]).unwrap();
        assert_eq!(own.0, "My-Source/ManifestData");
    }
}

#[test]
fn parts_of_manifests_that_do_not_fit() {
    let parts = parts(MANIFEST.as_bytes(), 500);
    let mut schemas = Schemas::default();
    // The second is missing; then all of it, after a part that belongs to nothing.
    for part in [&parts[0], &parts[2], &parts[3]].into_iter().chain(&parts) {
        assert!(described(&mut schemas, 2, 0, &[]).is_none());
        schemas.learn(&manifest_part(part)).unwrap();
    }
    assert!(described(&mut schemas, 2, 0, &[]).is_some());
    for len in 0..9 {
        schemas.learn(&manifest_part(&parts[0][..len])).unwrap();
    }
}

#[test]
fn manifests_that_can_not_be() {
    let many = |what: &str, count: usize| format!("<provider {}>", what.repeat(count));
    let attributes: Vec<String> = (0..20_000).map(|number| format!("a{number}='' ")).collect();
    for text in [
        String::new(),
        "<".into(),
        "<a/>".into(),
        "<provider guid='x'/>".into(),
        MANIFEST.replace('>', ""),
        "<a>".repeat(100_000),
        many("xmlns:a='b' ", 20),
        many(&attributes.concat(), 1),
        "<!DOCTYPE a [<!ENTITY b 'c'>]><provider guid='&b;'/>".into(),
    ] {
        let part = &parts(text.as_bytes(), text.len().max(1))
            .pop()
            .unwrap_or_else(|| vec![1, 1, 0, 0x5b, 1, 0, 0, 0]);
        let error = Schemas::default().learn(&manifest_part(part)).unwrap_err();
        assert_eq!(error.problem, DescriptionProblem::Xml, "{}", text.get(..50).unwrap_or(&text));
    }
    let not_text = [1, 1, 0, 0x5b, 1, 0, 0, 0, 0xff];
    assert!(Schemas::default().learn(&manifest_part(&not_text)).is_err());
}

#[test]
fn who_is_asked_is_asked_once_for_each_kind_that_nothing_else_describes() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    // Number 7 and version 2, whatever is asked for.
    let ask = |_: &EtwRecord<'_>| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        Some(Info::new(0, [1, 2], 1, 1).property(0, "X", [8, 8], 1, 4).done())
    };
    let mut schemas = Schemas::asking(ask);
    let mut event = record(Schema::Manifest, Guid([1; 16]), &[9, 0, 0, 0]);
    event.descriptor = Descriptor { id: 7, version: 2, ..Descriptor::default() };
    for _ in 0..2 {
        let described = schemas.describe(&event).unwrap().unwrap();
        assert_eq!((&*described.provider, &*described.name), ("Provider", "Task/Start"));
        let data = EventData::new(event.payload, event.payload, &described.format);
        assert_eq!((data.as_text().to_string(), ASKED.load(Ordering::Relaxed)), ("X=9".to_owned(), 1));
    }
    // Of another version nothing was told.
    event.descriptor.version = 3;
    for _ in 0..2 {
        assert!(schemas.describe(&event).unwrap().is_none());
        assert_eq!(ASKED.load(Ordering::Relaxed), 2);
    }
    // Classes and what is known are not asked for.
    let sample = record(Schema::Classic, Guid([1; 16]), &[]);
    assert!(schemas.describe(&sample).unwrap().is_none());
    let mut method = record(Schema::Manifest, crate::decode::clr::RUNTIME, &[]);
    method.descriptor = Descriptor { id: 143, version: 1, ..Descriptor::default() };
    assert!(schemas.describe(&method).unwrap().is_some());
    assert_eq!(ASKED.load(Ordering::Relaxed), 2);
}

#[test]
fn schemas_know_what_a_trace_holds() {
    let mut info = Info::new(1, [1, 2], 1, 1);
    let info = info.property(0, "X", [8, 8], 1, 4).done();
    let mut learnt = record(Schema::Classic, META_DATA, &info);
    learnt.descriptor.opcode = 32;
    let mut event = record(Schema::Classic, Guid([2; 16]), &[9, 0, 0, 0]);
    event.descriptor = Descriptor { version: 2, opcode: 1, ..Descriptor::default() };
    let mut schemas = Schemas::default();
    assert!(schemas.describe(&event).unwrap().is_none());
    schemas.learn(&learnt).unwrap();
    let described = schemas.describe(&event).unwrap().unwrap();
    assert_eq!((&*described.provider, &*described.name), ("Provider", "Task/Start"));
    let data = EventData::new(event.payload, event.payload, &described.format);
    assert_eq!(data.as_text().to_string(), "X=9");
    assert_eq!(described.format.order(), ByteOrder::Little);
    // A spoilt description is told, and the one before it stays.
    learnt.payload = &info[..60];
    assert!(schemas.learn(&learnt).is_err());
    assert!(schemas.describe(&event).unwrap().is_some());

    let description = sized(b"\0Own\0x\0\x04");
    let traits = sized(b"P\0");
    let mut event = record(Schema::SelfDescribing, Guid([3; 16]), &[5]);
    event.extended.self_description = Some(&description);
    event.extended.provider_traits = Some(&traits);
    let first = schemas.describe(&event).unwrap().unwrap();
    assert_eq!((&*first.provider, &*first.name), ("P", "Own"));
    assert!(std::sync::Arc::ptr_eq(&first, &schemas.describe(&event).unwrap().unwrap()));
    event.extended.self_description = Some(&[1]);
    assert!(schemas.describe(&event).is_err());
    // Where its provider is not told, it has the number of it; what the event tells of itself does not lack anything.
    let description = sized(b"\0Lone\0x\0\x04");
    for (traits, name) in [(&b"\xff\0P\0"[..], "03030303-0303-0303-0303-030303030303"), (&traits, "P")] {
        let mut schemas = Schemas::default();
        event.extended.self_description = Some(&description);
        event.extended.provider_traits = Some(traits);
        let described = schemas.describe(&event).unwrap().unwrap();
        assert_eq!((&*described.provider, &*described.name), (name, "Lone"));
    }

    let event = record(Schema::Text, Guid([3; 16]), b"h\0i\0");
    for _ in 0..2 {
        let described = schemas.describe(&event).unwrap().unwrap();
        let data = EventData::new(event.payload, event.payload, &described.format);
        assert_eq!(data.as_text().to_string(), "Message=\"hi\"");
    }
}
