//! The way of an event to its closures allocates nothing. Its own binary, because it replaces the global allocator by one
//! that counts.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

use std::fmt::{self, Write};

use collector_common::event::{
    Event, EventErrors, EventField, EventId, Extent, FieldKind, Place, Value, Width, filter,
};
use collector_common::sharing::Writable;

/// Takes all and keeps nothing.
struct Nowhere(usize);

impl Write for Nowhere {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

#[test]
fn a_warmed_up_event_allocates_nothing() {
    let mut event = Event::new(EventId(1), "test");
    let mut add = |name, kind, extent| {
        let field = EventField::new(name, "", kind, extent, Place::AfterPrevious);
        event.format_mut().add_field(field).unwrap()
    };
    let number = add("number", FieldKind::Unsigned(Width::W32), Extent::One);
    let name = add("name", FieldKind::Char, Extent::ZeroTerminated);
    let wide = add("wide", FieldKind::Utf16, Extent::ZeroTerminated);
    let list = add("list", FieldKind::Signed(Width::W16), Extent::CountPrefixed(Width::W8));
    let behind = add("behind", FieldKind::Unsigned(Width::W8), Extent::One);
    add("pair", FieldKind::Unsigned(Width::W16), Extent::Array(2));
    let text = "pair[1] == 9 and number > 1 and (name starts_with 'ru' or name ~ '*x?') and wide contains 'b' and not behind & 2";
    event.set_filter(Some(&filter::parse(text).unwrap())).unwrap();

    let mut doubled = Event::proxy(EventId(2), "doubled");
    let double = FieldKind::Unsigned(Width::W64);
    let double = EventField::new("double", "", double, Extent::One, Place::AfterPrevious);
    let double = doubled.format_mut().add_field(double).unwrap();
    let sum = Writable::new(0);
    let reader = sum.read_only();
    doubled.add_closure(move |data| {
        let double = data.try_get_u64(double)?;
        Ok(sum.write(|sum| *sum += double)?)
    });
    event.add_proxy(Writable::new(doubled), move |data, out| {
        out.extend_from_slice(&(2 * u64::from(data.try_get_u32(number)?)).to_ne_bytes());
        Ok(true)
    });
    let mut written = Nowhere(0);
    event.add_closure(move |data| {
        assert_eq!(data.try_get_str(name)?, "rust");
        assert_eq!(data.try_get_utf16(wide)?.chars().count(), 2);
        assert_eq!(data.try_get_u8(behind)?, 4);
        let Value::Array(list) = data.value(list)? else { anyhow::bail!("no list") };
        assert_eq!(list.count(), 2);
        // Errors of getters cost nothing either.
        assert!(data.try_get_u64(wide).is_err() && data.try_get_bool(number).is_err());
        write!(written, "{} {}", data.as_text(), data.as_json())?;
        assert!(written.0 > 0);
        Ok(())
    });

    let payload = [&3_u32.to_ne_bytes()[..], b"rust\0"]
        .into_iter()
        .map(<[u8]>::to_vec)
        .chain([u16::from(b'a'), u16::from(b'b'), 0].map(|unit| unit.to_ne_bytes().to_vec()))
        .chain([vec![2], (-1_i16).to_ne_bytes().to_vec(), 5_i16.to_ne_bytes().to_vec(), vec![4]])
        .chain([8_u16, 9].map(|number| number.to_ne_bytes().to_vec()))
        .flatten()
        .collect::<Vec<u8>>();
    let mut errors = EventErrors::new();
    let mut run = || {
        for _ in 0..100 {
            event.process(&payload, &payload, &mut errors);
        }
    };
    let cold = allocation_counter::measure(&mut run);
    let warm = allocation_counter::measure(&mut run);
    assert!(cold.count_total > 0, "the proxy's buffer was made on the first pass, so the counter counts");
    assert_eq!(warm.count_total, 0);
    assert!(errors.is_empty(), "{errors}");
    assert_eq!(reader.read(|sum| *sum), Ok(2 * 3 * 200));
}
