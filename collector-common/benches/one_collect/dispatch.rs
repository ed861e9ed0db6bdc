//! Dispatch of an event beside `one_collect`'s, in the manner of its own bench `event` (`min_parse`), in turns in one process:
//! `cargo xtask bench one_collect`.

#![allow(clippy::unwrap_used, reason = "a failed step of a bench should stop it")]

#[path = "../event/three_bytes.rs"]
mod three_bytes;

use std::hint::black_box;

use collector_common::event::EventErrors;
use criterion::{Criterion, criterion_group, criterion_main};

use three_bytes::{FIELDS, PAYLOAD, three_bytes};

fn peer() -> one_collect::event::Event {
    use one_collect::event::{Event, EventField, LocationType};
    let mut event = Event::new(1, "test".into());
    let format = event.format_mut();
    for (offset, name) in FIELDS.into_iter().enumerate() {
        let field = EventField::new(name.into(), "unsigned char".into(), LocationType::Static, offset, 1);
        format.add_field(field);
    }
    let [first, second, third] = FIELDS.map(|name| format.get_field_ref(name).unwrap());
    event.add_callback(move |data| {
        let (format, data) = (data.format(), data.event_data());
        assert!(format.get_data(first, data)[0] == 1);
        assert!(format.get_data(second, data)[0] == 2);
        assert!(format.get_data(third, data)[0] == 3);
        Ok(())
    });
    event
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dispatch of three u8");
    for turn in 1..=3 {
        let (mut event, mut errors) = (three_bytes(), EventErrors::new());
        group.bench_function(format!("collector {turn}"), |bencher| {
            bencher.iter(|| {
                let payload = black_box(&PAYLOAD[..]);
                event.process(payload, payload, &mut errors);
            });
        });
        assert!(errors.is_empty());

        let (mut event, mut errors) = (peer(), Vec::new());
        group.bench_function(format!("one_collect {turn}"), |bencher| {
            bencher.iter(|| {
                let payload = black_box(&PAYLOAD[..]);
                event.process(payload, payload, &mut errors);
                errors.clear();
            });
        });
        assert!(errors.is_empty());
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
