//! Descriptions that somebody made to cost much: memory goes by their bytes, and an event does not take the time that its description does.

use super::{
    Descriptor, EtwRecord, Guid, Info, META_DATA, Schema, Schemas, manifest_part, parts, record, sized,
};

fn numbered(id: u16) -> EtwRecord<'static> {
    let mut event = record(Schema::Manifest, Guid([4; 16]), &[]);
    event.descriptor.id = id;
    event
}

/// Each event has the name of its provider.
#[test]
fn a_long_name_of_a_provider_of_many_events() {
    const LETTERS: usize = 2_000_000;
    let events: Vec<String> =
        (0..8000).map(|number| format!("<event value=\"{number}\" task=\"T\"/>")).collect();
    let text =
        format!("<provider name=\"{}\"><events>{}</events></provider>", "n".repeat(LETTERS), events.concat());
    let mut schemas = Schemas::default();
    // It is 32 GB with all of the name for each.
    let used = allocation_counter::measure(|| {
        for part in parts(text.as_bytes(), 60_000) {
            schemas.learn(&manifest_part(&part)).unwrap();
        }
    });
    assert!(used.bytes_max < 192 << 20, "{} bytes were held", used.bytes_max);
    let last = schemas.describe(&numbered(7999)).unwrap().unwrap();
    assert_eq!((last.provider.len(), &*last.name), (4096, "T"));
}

/// Of more kinds than are kept each event would have to read its description.
#[test]
fn what_is_not_kept_is_not_read_for_each_event() {
    let mut schemas = Schemas::default();
    for id in 0..1 << 14 {
        assert!(schemas.describe(&numbered(id)).unwrap().is_none());
    }
    let info = Info::new(0, [1, 2], 1, 1).property(0, "X", [8, 8], 1, 4).done();
    let mut told = record(Schema::Classic, META_DATA, &info);
    told.descriptor = Descriptor { opcode: 32, version: 2, ..Descriptor::default() };
    schemas.learn(&told).unwrap();
    let mut event = record(Schema::Manifest, Guid([1; 16]), &[9, 0, 0, 0]);
    event.descriptor = Descriptor { id: 7, version: 2, ..Descriptor::default() };
    assert!(Schemas::default().describe(&event).unwrap().is_none());
    for round in 0..3 {
        assert!(schemas.describe(&event).unwrap().is_none());
        assert_eq!(schemas.left_out(), round + 1);
    }
}

/// Fields of two bytes, each of which is a structure.
#[test]
fn fields_that_take_more_than_their_bytes() {
    const FIELDS: usize = 455;
    let used = allocation_counter::measure(|| {
        let mut schemas = Schemas::default();
        for number in 0..4000_u16 {
            // `win:SYSTEMTIME`.
            let description = [format!("\0{number}\0").into_bytes(), [0, 18].repeat(FIELDS)].concat();
            let description = sized(&description);
            let mut event = record(Schema::SelfDescribing, Guid([3; 16]), &[]);
            event.extended.self_description = Some(&description);
            let described = schemas.describe(&event).unwrap().unwrap();
            assert_eq!(described.format.fields().len(), FIELDS);
        }
    });
    // Without a limit it would be 300 MB, and 2 GB if each had a structure of its own.
    assert!(used.bytes_max < 48 << 20, "{} bytes were held", used.bytes_max);
}
