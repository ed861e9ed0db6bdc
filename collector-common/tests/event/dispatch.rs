//! Who gets an event, in what order, and what becomes of failures.

use anyhow::{Context, bail};
use collector_common::event::{
    Event, EventErrors, EventField, EventFieldRef, EventFlags, EventFormat, EventId, Extent, Place, filter,
};
use collector_common::sharing::{ReadOnly, Writable};

use super::encode::{I32, U8, U32, U64, add};

fn event() -> (Event, EventFieldRef) {
    let mut event = Event::new(EventId(7), "test:event");
    let field = add(event.format_mut(), "value", U32, Extent::One);
    (event, field)
}

/// A log that a closure writes and the test reads.
fn log<T: Clone + 'static>() -> (Writable<Vec<T>>, impl Fn() -> Vec<T>) {
    let log = Writable::new(Vec::new());
    let reader: ReadOnly<Vec<T>> = log.read_only();
    (log, move || reader.read(Clone::clone).unwrap())
}

#[test]
fn closures_are_called_in_order_and_one_that_fails_stops_no_other() {
    let (mut event, field) = event();
    let (calls, seen) = log();
    for number in 0..3 {
        let calls = calls.clone();
        event.add_closure(move |data| {
            calls.write(|calls| calls.push((number, data.try_get_u32(field))))?;
            anyhow::ensure!(number != 1, "the second fails");
            Ok(())
        });
    }
    let mut errors = EventErrors::new();
    event.process(&[], &5_u32.to_ne_bytes(), &mut errors);
    event.process(&[], &6_u32.to_ne_bytes(), &mut errors);
    let expected = [(0, 5), (1, 5), (2, 5), (0, 6), (1, 6), (2, 6)];
    assert_eq!(seen(), expected.map(|(number, value)| (number, Ok(value))));
    assert_eq!(errors.messages().collect::<Vec<_>>(), [(EventId(7), "test:event", "the second fails", 2)]);
}

#[test]
fn a_closure_sees_the_whole_record_and_its_part() {
    let (mut event, field) = event();
    event.add_closure(move |data| {
        assert_eq!(data.full_data(), b"head\x01\0\0\0tail");
        assert_eq!(data.event_data().len(), 4);
        assert_eq!(data.format().field(field).map(EventField::name), Some("value"));
        Ok(())
    });
    let record = b"head\x01\0\0\0tail";
    let mut errors = EventErrors::new();
    event.process(record, &record[4..8], &mut errors);
    assert!(errors.is_empty());
}

#[test]
fn errors_name_event_and_field_and_are_told_once() {
    let (mut event, field) = event();
    event.add_closure(move |data| Ok(data.try_get_u8(field).map(|_| ())?));
    event.add_closure(move |data| data.try_get_u32(field).map(|_| ()).context("no value"));
    let mut errors = EventErrors::new();
    for _ in 0..1000 {
        event.process(&[], &[1], &mut errors);
    }
    assert_eq!(errors.total(), 2000);
    assert_eq!(
        errors.to_string(),
        "test:event (event 7): 1000 times: field value: it is u32, u8 was asked for\n\
         test:event (event 7): 1000 times: no value: field value: the event data end before it does"
    );
    errors.clear();
    assert!(errors.is_empty() && errors.to_string().is_empty());
}

#[test]
fn messages_that_always_differ_have_a_bound() {
    let (mut event, _) = event();
    let mut number = 0;
    event.add_closure(move |_| {
        number += 1;
        bail!("failure {number}")
    });
    let mut errors = EventErrors::new();
    for _ in 0..1000 {
        event.process(&[], &[], &mut errors);
    }
    let printed = errors.to_string();
    assert!(printed.starts_with("test:event (event 7): 1 time: failure 1\n"), "{printed}");
    assert_eq!(printed.lines().count(), 17);
    assert!(printed.ends_with("test:event (event 7): 984 times: other messages"), "{printed}");

    for id in 0..5000 {
        let mut event = Event::new(EventId(id), "many");
        event.add_closure(|_| bail!("always"));
        event.process(&[], &[], &mut errors);
    }
    assert_eq!(errors.total(), 6000);
    let told: u64 = errors.messages().map(|(.., count)| count).sum();
    // That of the same number and another name is another one, and leaves room for 1,023.
    assert_eq!(told, 16 + 1023);
    assert!(errors.to_string().ends_with("3977 times: messages of other events"), "{errors}");
}

#[test]
fn a_filter_lets_through_what_it_accepts_and_reports_what_it_cannot_read() {
    let (mut event, field) = event();
    let (calls, seen) = log();
    event.add_closure(move |data| Ok(calls.write(|calls| calls.push(data.try_get_u32(field)))?));
    event.set_filter(Some(&filter::parse("value >= 2 and value != 3").unwrap())).unwrap();
    let mut errors = EventErrors::new();
    for value in 0..5_u32 {
        event.process(&[], &value.to_ne_bytes(), &mut errors);
    }
    assert_eq!(seen(), [Ok(2), Ok(4)]);
    assert!(errors.is_empty());

    event.process(&[], &[], &mut errors);
    assert_eq!(seen().len(), 2);
    assert!(errors.to_string().ends_with("1 time: field value: the event data end before it does"));

    event.set_filter(None).unwrap();
    event.process(&[], &0_u32.to_ne_bytes(), &mut errors);
    assert_eq!(seen().len(), 3);

    *event.format_mut() = EventFormat::default();
    event.process(&[], &0_u32.to_ne_bytes(), &mut errors);
    assert_eq!(errors.total(), 1, "the closure keeps the error for itself");
    assert!(seen()[3].is_err(), "a reference of the format before means nothing now");
}

#[test]
fn flags_say_what_is_wanted() {
    let (mut event, _) = event();
    assert!(event.is_idle());
    let (calls, seen) = log();
    event.add_closure(move |_| Ok(calls.write(|calls| calls.push(()))?));
    assert!(!event.is_idle());
    event.flags_mut().set(EventFlags::DISABLED, true);
    event.flags_mut().set(EventFlags::CALLSTACK, true);
    assert!(event.is_idle());
    let mut errors = EventErrors::new();
    event.process(&[], &[], &mut errors);
    assert!(seen().is_empty());
    event.flags_mut().set(EventFlags::DISABLED, false);
    event.process(&[], &[], &mut errors);
    assert_eq!(seen().len(), 1);
    assert!(event.flags().contains(EventFlags::CALLSTACK) && !event.flags().contains(EventFlags::PROXY));
}

/// Latency of a request out of its begin and end, as an event of its own with a filter and closures of its own.
#[test]
fn a_proxy_is_made_of_another_events_data() {
    let mut latency = Event::proxy(EventId(100), "request:latency");
    let pid = add(latency.format_mut(), "pid", I32, Extent::One);
    let nanos = add(latency.format_mut(), "nanos", U64, Extent::One);
    latency.set_filter(Some(&filter::parse("nanos > 10").unwrap())).unwrap();
    let (calls, seen) = log();
    latency.add_closure(move |data| {
        let pair = (data.try_get_i32(pid)?, data.try_get_u64(nanos)?, data.full_data().len());
        Ok(calls.write(|calls| calls.push(pair))?)
    });
    assert!(latency.flags().contains(EventFlags::PROXY));
    let latency = Writable::new(latency);

    let mut request = Event::new(EventId(1), "request");
    let pid = add(request.format_mut(), "pid", I32, Extent::One);
    let is_end = add(request.format_mut(), "is_end", U8, Extent::One);
    let time = add(request.format_mut(), "time", U64, Extent::One);
    let mut begun = None;
    request.add_proxy(latency.clone(), move |data, out| {
        let time = data.try_get_u64(time)?;
        if data.try_get_u8(is_end)? == 0 {
            begun = Some(time);
            return Ok(false);
        }
        let begun = begun.take().context("an end without a begin")?;
        out.extend_from_slice(&data.try_get_i32(pid)?.to_ne_bytes());
        out.extend_from_slice(&(time - begun).to_ne_bytes());
        Ok(true)
    });
    let mut errors = EventErrors::new();
    for (pid, is_end, time) in [(4_i32, 0, 100_u64), (4, 1, 150), (5, 0, 200), (5, 1, 205), (6, 1, 300)] {
        let record = [&pid.to_ne_bytes()[..], &[is_end], &time.to_ne_bytes()].concat();
        request.process(&record, &record, &mut errors);
    }
    assert_eq!(seen(), [(4, 50, 13)]);
    assert_eq!(errors.to_string(), "request (event 1): 1 time: an end without a begin");
}

#[test]
fn events_that_are_made_of_each_other_end_with_an_error() {
    let one = Writable::new(Event::proxy(EventId(1), "one"));
    let other = Writable::new(Event::proxy(EventId(2), "other"));
    one.write(|event| event.add_proxy(other.clone(), |_, _| Ok(true))).unwrap();
    other.write(|event| event.add_proxy(one.clone(), |_, _| Ok(true))).unwrap();
    let mut errors = EventErrors::new();
    one.write(|event| event.process(&[], &[], &mut errors)).unwrap();
    let printed = errors.to_string();
    assert!(printed.starts_with("other (event 2): 1 time: a shared "), "{printed}");
    assert!(printed.contains("in use further out"), "{printed}");
}

#[test]
fn a_field_added_at_an_offset_needs_no_field_before_it() {
    let mut event = Event::new(EventId(1), "gaps");
    let field = EventField::new("late", "u32", U32, Extent::One, Place::At(12));
    let late = event.format_mut().add_field(field).unwrap();
    event.add_closure(move |data| {
        assert_eq!(data.try_get_u32(late)?, 3);
        Ok(())
    });
    let mut record = [0; 16];
    record[12..].copy_from_slice(&3_u32.to_ne_bytes());
    let mut errors = EventErrors::new();
    event.process(&record, &record, &mut errors);
    assert!(errors.is_empty());
}
