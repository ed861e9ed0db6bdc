//! The event that both benches dispatch: three unsigned chars and one closure that reads and checks them.

use collector_common::event::{Event, EventField, EventId, Extent, FieldKind, Place, Width};

/// Names of the fields, whose values are these numbers.
pub(crate) const FIELDS: [&str; 3] = ["1", "2", "3"];

/// The event data.
pub(crate) const PAYLOAD: [u8; 3] = [1, 2, 3];

pub(crate) fn three_bytes() -> Event {
    let mut event = Event::new(EventId(1), "test");
    let mut add = |(offset, name)| {
        let kind = FieldKind::Unsigned(Width::W8);
        let field = EventField::new(name, "unsigned char", kind, Extent::One, Place::At(offset));
        event.format_mut().add_field(field).unwrap()
    };
    let [first, second, third] = [(0, FIELDS[0]), (1, FIELDS[1]), (2, FIELDS[2])].map(&mut add);
    event.add_closure(move |data| {
        assert!(data.try_get_u8(first)? == 1);
        assert!(data.try_get_u8(second)? == 2);
        assert!(data.try_get_u8(third)? == 3);
        Ok(())
    });
    event
}
