//! The way of an event to its closure: without a filter, and with one that accepts or refuses it; and both written forms.
//!
//! `benches/one_collect` has the first beside `one_collect`.

#![allow(clippy::unwrap_used, reason = "a failed step of a bench should stop it")]

#[path = "event/three_bytes.rs"]
mod three_bytes;

use std::fmt::Write;
use std::hint::black_box;

use collector_common::event::{EventData, EventErrors, filter};
use criterion::{Criterion, criterion_group, criterion_main};

use three_bytes::{PAYLOAD, three_bytes};

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dispatch of three u8");
    for text in [None, Some("`1` == 1 and `2` != 3"), Some("`1` == 2")] {
        let (mut event, mut errors) = (three_bytes(), EventErrors::new());
        let filter = text.map(|text| filter::parse(text).unwrap());
        event.set_filter(filter.as_ref()).unwrap();
        group.bench_function(text.unwrap_or("no filter"), |bencher| {
            bencher.iter(|| {
                let payload = black_box(&PAYLOAD[..]);
                event.process(payload, payload, &mut errors);
            });
        });
        assert!(errors.is_empty());
    }
    group.finish();

    let mut group = criterion.benchmark_group("three u8 as text");
    let event = three_bytes();
    let mut written = String::new();
    let mut write = |name: &str, print: fn(&EventData<'_>, &mut String)| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let payload = black_box(&PAYLOAD[..]);
                written.clear();
                print(&EventData::new(payload, payload, event.format()), &mut written);
            });
        });
    };
    write("name=value", |data, out| write!(out, "{}", data.as_text()).unwrap());
    write("JSON", |data, out| write!(out, "{}", data.as_json()).unwrap());
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
