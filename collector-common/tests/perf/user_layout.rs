//! Makes the bytes of the records that `perf` itself writes, from the structures of
//! `tools/lib/perf/include/perf/event.h` and without the code under test.

use collector_common::perf::{ByteOrder, Misc, OwnedRecord, RecordKind};

use crate::layout::Layout;

/// Every type of record that `perf` has.
pub(crate) const KINDS: std::ops::RangeInclusive<u32> = 64..=86;

/// A record of `kind`, whose fields come from noise.
pub(crate) fn record(kind: RecordKind, order: ByteOrder, noise: &[u64]) -> OwnedRecord {
    let mut layout = Layout::new(order, noise);
    let misc = Misc(layout.any() as u16);
    body(&mut layout, kind, misc);
    OwnedRecord { kind, misc, body: layout.bytes }
}

fn zeros(layout: &mut Layout<'_>, count: usize) {
    layout.bytes.resize(layout.bytes.len() + count, 0);
}

fn put_count(layout: &mut Layout<'_>) -> u64 {
    let count = layout.count();
    layout.put(count, 8);
    count
}

fn coin(layout: &mut Layout<'_>) -> bool {
    layout.any().is_multiple_of(2)
}

fn body(layout: &mut Layout<'_>, kind: RecordKind, misc: Misc) {
    match kind {
        RecordKind::HEADER_ATTR => attr(layout),
        RecordKind::HEADER_EVENT_TYPE => {
            layout.any_words(1);
            layout.text();
        }
        RecordKind::HEADER_TRACING_DATA => layout.any_halves(1),
        RecordKind::HEADER_BUILD_ID => build_id(layout, misc),
        RecordKind::FINISHED_ROUND | RecordKind::FINISHED_INIT => {}
        RecordKind::ID_INDEX => {
            let count = put_count(layout);
            let with_guests = coin(layout);
            layout.any_words(count * if with_guests { 6 } else { 4 });
        }
        RecordKind::AUXTRACE_INFO => {
            layout.any_halves(1);
            zeros(layout, 4);
            let count = layout.count();
            layout.any_words(count);
        }
        RecordKind::AUXTRACE => {
            layout.any_words(3);
            layout.any_halves(3);
            zeros(layout, 4);
        }
        RecordKind::AUXTRACE_ERROR => auxtrace_error(layout),
        RecordKind::THREAD_MAP => {
            for _ in 0..put_count(layout) {
                layout.any_words(1);
                layout.any_bytes(16);
            }
        }
        RecordKind::CPU_MAP => {
            cpu_map(layout);
            layout.zeros_to_a_word(0);
        }
        RecordKind::STAT_CONFIG => {
            let count = put_count(layout);
            layout.any_words(count * 2);
        }
        RecordKind::STAT => layout.any_words(5),
        RecordKind::STAT_ROUND => layout.any_words(2),
        RecordKind::EVENT_UPDATE => event_update(layout),
        RecordKind::TIME_CONV => {
            layout.any_words(3);
            if coin(layout) {
                layout.any_words(2);
                for _ in 0..2 {
                    let flag = coin(layout);
                    layout.put(flag.into(), 1);
                }
                zeros(layout, 6);
            }
        }
        RecordKind::HEADER_FEATURE => {
            let feature = layout.any() % 300;
            layout.put(feature, 8);
            let count = layout.count();
            layout.any_bytes(count);
        }
        RecordKind::COMPRESSED => {
            let count = layout.any() % 20;
            layout.any_bytes(count);
        }
        RecordKind::COMPRESSED2 => {
            let count = put_count(layout);
            layout.any_bytes(count);
            layout.zeros_to_a_word(0);
        }
        RecordKind::BPF_METADATA => {
            layout.any_bytes(512);
            let count = put_count(layout);
            layout.any_bytes(count * (64 + 256));
        }
        RecordKind::SCHEDSTAT_CPU => {
            layout.any_words(1);
            layout.any_halves(1);
            let version = 15 + layout.any() % 3;
            layout.put(version, 2);
            zeros(layout, 2);
            layout.any_halves(6);
            layout.any_words(3);
        }
        RecordKind::SCHEDSTAT_DOMAIN => {
            layout.any_words(1);
            layout.any_halves(1);
            let (version, domain) = (15 + layout.any() % 3, layout.any());
            layout.put(version, 2);
            layout.put(domain, 2);
            layout.any_halves(if version < 17 { 36 } else { 45 });
            layout.zeros_to_a_word(0);
        }
        _ => layout.any_words(3),
    }
}

/// One of any version, or of one that is not known yet, and ids.
fn attr(layout: &mut Layout<'_>) {
    layout.any_halves(1);
    let size = 64 + layout.any() % 13 * 8;
    let is_first = size == 64 && coin(layout);
    layout.put(if is_first { 0 } else { size }, 4);
    layout.any_bytes(size - 8);
    let ids = layout.count();
    layout.any_words(ids);
}

fn build_id(layout: &mut Layout<'_>, misc: Misc) {
    layout.any_halves(1);
    let has_size = misc.0 & 1 << 15 != 0;
    let len = if has_size { layout.any() % 21 } else { 20 };
    layout.any_bytes(len);
    zeros(layout, 20 - len as usize);
    layout.put(if has_size { len } else { 0 }, 1);
    zeros(layout, 3);
    layout.text();
}

fn auxtrace_error(layout: &mut Layout<'_>) {
    layout.any_halves(5);
    let format = layout.any() % 3;
    layout.put(format, 4);
    layout.any_words(if format > 0 { 2 } else { 1 });
    if format > 1 && coin(layout) {
        layout.any_bytes(64);
        layout.any_halves(2);
    } else {
        layout.text();
    }
}

fn cpu_map(layout: &mut Layout<'_>) {
    let encoding = layout.any() % 4;
    layout.put(if encoding == 3 { 1 } else { encoding }, 2);
    let count = layout.count();
    match encoding {
        0 => {
            layout.put(count, 2);
            for _ in 0..count {
                let cpu = layout.any();
                layout.put(cpu, 2);
            }
        }
        1 => {
            layout.put(count, 2);
            layout.put(4, 2);
            layout.any_halves(count);
        }
        2 => {
            layout.put(count % 2, 1);
            layout.put(0, 1);
            let (first, last) = (layout.any(), layout.any());
            layout.put(first, 2);
            layout.put(last, 2);
        }
        _ => {
            layout.put(count, 2);
            layout.put(8, 2);
            zeros(layout, 4);
            layout.any_words(count);
        }
    }
}

fn event_update(layout: &mut Layout<'_>) {
    let kind = layout.any() % 4;
    layout.put(kind, 8);
    layout.any_words(1);
    match kind {
        1 => layout.any_words(1),
        3 => {
            cpu_map(layout);
            layout.zeros_to_a_word(0);
        }
        _ => layout.text(),
    }
}
