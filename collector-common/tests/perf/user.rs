//! The records that `perf` itself writes: fields with values that are known, what is read is written, and noise breaks
//! nothing.

use collector_common::ids::{Avma, BuildId, Nanos, Pid, Tid};
use collector_common::perf::file::{
    Auxtrace, CpuMap, Feature, Guest, IdIndexEntry, ParsedUser, SchedstatCpu, Stat, StatRound, TimeConv,
    TimeConvCycles, Update, UserRecord,
};
use collector_common::perf::{ByteOrder, Bytes, Misc, OwnedRecord, RawRecord, RecordKind, records};
use proptest::prelude::*;

use crate::{layout, user_layout};

pub(crate) const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

/// A field.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    /// In so many bytes.
    Text(&'a str, usize),
}

use Part::{Text, U8, U16, U32, U64};

/// A record with these fields.
pub(crate) fn made(kind: RecordKind, order: ByteOrder, parts: &[Part<'_>]) -> OwnedRecord {
    let mut body = Vec::new();
    let number = |little: &[u8]| -> Vec<u8> {
        if order == ByteOrder::Little { little.to_vec() } else { little.iter().rev().copied().collect() }
    };
    for part in parts {
        match *part {
            U8(value) => body.push(value),
            U16(value) => body.extend(number(&value.to_le_bytes())),
            U32(value) => body.extend(number(&value.to_le_bytes())),
            U64(value) => body.extend(number(&value.to_le_bytes())),
            Text(text, len) => {
                body.extend(text.as_bytes());
                body.resize(body.len() + len - text.len(), 0);
            }
        }
    }
    OwnedRecord { kind, misc: Misc(0), body }
}

/// Reads a record with these fields in both byte orders.
fn each(kind: RecordKind, parts: &[Part<'_>], check: impl Fn(UserRecord<'_>)) {
    for order in ORDERS {
        let record = made(kind, order, parts);
        let parsed = record.as_raw().parse_user(order);
        assert_eq!(parsed.record.kind(), kind);
        assert!(parsed.rest.is_empty(), "{parsed:?}");
        assert_eq!(written(&parsed, order), whole(&record, order));
        check(parsed.record);
        // The last byte is missing: another text, or no such record.
        let cut = RawRecord { body: Bytes::from(&record.body[..record.body.len() - 1]), ..record.as_raw() };
        let parsed = cut.parse_user(order);
        assert_eq!(written(&parsed, order).len() + 1, whole(&record, order).len());
    }
}

/// Says in one line which record is expected.
macro_rules! expect {
    ($record:expr, $variant:ident) => {{
        let UserRecord::$variant(fields) = $record else { panic!("{:?}", $record) };
        fields
    }};
}

fn whole(record: &OwnedRecord, order: ByteOrder) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.as_raw().write(order, &mut bytes).unwrap();
    bytes
}

fn written(parsed: &ParsedUser<'_>, order: ByteOrder) -> Vec<u8> {
    let mut bytes = Vec::new();
    parsed.write(order, &mut bytes).unwrap();
    bytes
}

/// `struct perf_record_header_attr`, `_header_event_type`, `_header_tracing_data`, `_header_build_id`, `_id_index` and
/// `_header_feature`
#[test]
fn records_of_a_stream_s_header() {
    let attr = [U32(1), U32(64), U64(2), U64(4000), U64(0x107), U64(4), U64(0)];
    let rest_of_attr_and_ids = [U32(0), U32(0), U64(0), U64(71), U64(72)];
    each(RecordKind::HEADER_ATTR, &[&attr[..], &rest_of_attr_and_ids].concat(), |record| {
        let event = expect!(record, HeaderAttr);
        let attr = event.attr().unwrap();
        assert_eq!((attr.kind, attr.size, attr.config, attr.sample_period), (1, 64, 2, 4000));
        assert_eq!(event.ids.iter().collect::<Vec<_>>(), [71, 72]);
    });
    each(RecordKind::HEADER_EVENT_TYPE, &[U64(5), Text("cycles", 8)], |record| {
        let event = expect!(record, EventType);
        assert_eq!((event.config, event.name.to_string_lossy().as_ref()), (5, "cycles"));
    });
    each(RecordKind::HEADER_TRACING_DATA, &[U32(1234)], |record| {
        assert_eq!(expect!(record, TracingData).size, 1234);
    });
    let build_id = [U32(u32::MAX), Text("01234567890123456789", 20), U32(0), Text("/bin/oven", 64)];
    each(RecordKind::HEADER_BUILD_ID, &build_id, |record| {
        let file = expect!(record, HeaderBuildId);
        assert_eq!((file.pid, file.path.to_string_lossy().as_ref()), (Pid(u32::MAX), "/bin/oven"));
        assert_eq!(file.build_id, BuildId::new(b"01234567890123456789"));
    });
    let entries = [U64(2), U64(11), U64(0), U64(3), U64(u64::MAX), U64(12), U64(1), U64(4), U64(99)];
    let entry = |id, index, cpu, tid, guest| IdIndexEntry { id, index, cpu, tid, guest };
    each(RecordKind::ID_INDEX, &entries, |record| {
        let all: Vec<_> = expect!(record, IdIndex).iter().collect();
        assert_eq!(all, [entry(11, 0, 3, -1, None), entry(12, 1, 4, 99, None)]);
    });
    let guests = [U64(500), U64(0), U64(501), U64(1)];
    each(RecordKind::ID_INDEX, &[&entries[..], &guests].concat(), |record| {
        let all: Vec<_> = expect!(record, IdIndex).iter().collect();
        assert_eq!(all, [entry(11, 0, 3, -1, Some((500, 0))), entry(12, 1, 4, 99, Some((501, 1)))]);
    });
    each(RecordKind::HEADER_FEATURE, &[U64(3), U32(4), Text("oven", 4)], |record| {
        let feature = expect!(record, HeaderFeature);
        assert_eq!((feature.feature, feature.section.len()), (Feature::HOSTNAME, 8));
    });
}

/// `struct perf_record_auxtrace_info`, `_auxtrace` and `_auxtrace_error`
#[test]
fn records_of_aux_areas() {
    each(RecordKind::AUXTRACE_INFO, &[U32(1), U32(0), U64(8), U64(9)], |record| {
        let info = expect!(record, AuxtraceInfo);
        assert_eq!((info.kind, info.private.iter().collect::<Vec<_>>()), (1, vec![8, 9]));
    });
    let trace = [U64(4096), U64(8192), U64(0xabc), U32(2), U32(u32::MAX), U32(3), U32(0)];
    each(RecordKind::AUXTRACE, &trace, |record| {
        let expected = Auxtrace { size: 4096, offset: 8192, reference: 0xabc, index: 2, tid: -1, cpu: 3 };
        assert_eq!(expect!(record, Auxtrace), expected);
    });
    let head = |format| [U32(1), U32(7), U32(u32::MAX), U32(10), U32(11), U32(format), U64(0x0040_1000)];
    let message = Text("Lost trace data", 16);
    let check = |record: UserRecord<'_>, format, time: Option<u64>, guest| {
        let error = expect!(record, AuxtraceError);
        assert_eq!((error.kind, error.code, error.cpu, error.format), (1, 7, -1, format));
        assert_eq!((error.pid, error.tid, error.ip), (Pid(10), Tid(11), Avma(0x0040_1000)));
        assert_eq!((error.time, error.guest), (time.map(Nanos), guest));
        assert_eq!(error.message.to_string_lossy(), "Lost trace data");
    };
    let kind = RecordKind::AUXTRACE_ERROR;
    each(kind, &[&head(0)[..], &[message]].concat(), |record| check(record, 0, None, None));
    each(kind, &[&head(1)[..], &[U64(55), message]].concat(), |record| check(record, 1, Some(55), None));
    each(kind, &[&head(2)[..], &[U64(55), message]].concat(), |record| check(record, 2, Some(55), None));
    let with_guest = [&head(2)[..], &[U64(55), Text("Lost trace data", 64), U32(900), U32(2)]].concat();
    each(kind, &with_guest, |record| check(record, 2, Some(55), Some(Guest { pid: Pid(900), cpu: 2 })));
}

/// `struct perf_record_cpu_map_data`: in a record, and in an event's update.
#[test]
fn cpus_in_every_encoding() {
    let cpus = |map: CpuMap<'_>| (map.iter().collect::<Vec<_>>(), map.has_any());
    let kind = RecordKind::CPU_MAP;
    let list = [U16(0), U16(3), U16(0xffff), U16(2), U16(300)];
    each(kind, &list, |record| assert_eq!(cpus(expect!(record, CpuMap)), (vec![2, 300], true)));
    let mask32 = [U16(1), U16(2), U16(4), U32(1 << 31 | 1), U32(2)];
    each(kind, &mask32, |record| assert_eq!(cpus(expect!(record, CpuMap)), (vec![0, 31, 33], false)));
    let mask64 = [U16(1), U16(2), U16(8), U32(0), U64(1 << 63 | 2), U64(1)];
    each(kind, &mask64, |record| assert_eq!(cpus(expect!(record, CpuMap)), (vec![1, 63, 64], false)));
    let range = [U16(2), U8(1), U8(0), U16(4), U16(6)];
    each(kind, &range, |record| assert_eq!(cpus(expect!(record, CpuMap)), (vec![4, 5, 6], true)));
    for order in ORDERS {
        for wrong in [[U16(3), U16(0), U16(0)], [U16(1), U16(0), U16(2)]] {
            let record = made(kind, order, &wrong);
            assert!(matches!(record.as_raw().parse_user(order).record, UserRecord::Other(_)));
        }
    }
}

/// `struct perf_record_stat*`, `_thread_map`, `_event_update` and `_time_conv`
#[test]
fn records_of_counters() {
    let config = [U64(3), U64(0), U64(2), U64(1), U64(20), U64(2), U64(1)];
    each(RecordKind::STAT_CONFIG, &config, |record| {
        let config = expect!(record, StatConfig);
        assert_eq!(
            (config.aggregation(), config.interval(), config.is_scaled()),
            (Some(2), Some(20), Some(true))
        );
    });
    each(RecordKind::STAT, &[U64(81), U32(3), U32(1), U64(1000), U64(20), U64(10)], |record| {
        let expected = Stat { id: 81, cpu: 3, thread: 1, value: 1000, enabled: 20, running: 10 };
        assert_eq!(expect!(record, Stat), expected);
    });
    each(RecordKind::STAT_ROUND, &[U64(1), U64(77)], |record| {
        assert_eq!(expect!(record, StatRound), StatRound { kind: 1, time: Nanos(77) });
    });
    let threads = [U64(2), U64(u64::MAX), Text("", 16), U64(5), Text("baker", 16)];
    each(RecordKind::THREAD_MAP, &threads, |record| {
        let threads = expect!(record, ThreadMap);
        let threads: Vec<_> =
            threads.iter().map(|thread| (thread.tid, thread.name.to_string_lossy())).collect();
        assert_eq!(threads, [(-1, "".into()), (5, "baker".into())]);
    });
    let kind = RecordKind::EVENT_UPDATE;
    let update = |record: UserRecord<'_>| {
        let update = expect!(record, EventUpdate);
        assert_eq!(update.id, 9);
        match update.update {
            Update::Unit(text) => format!("unit {}", text.to_string_lossy()),
            Update::Scale(scale) => format!("scale {scale}"),
            Update::Name(text) => format!("name {}", text.to_string_lossy()),
            Update::Cpus(cpus) => format!("cpus {:?}", cpus.iter().collect::<Vec<_>>()),
        }
    };
    each(kind, &[U64(0), U64(9), Text("Joules", 8)], |record| assert_eq!(update(record), "unit Joules"));
    // 0.5 as IEEE 754 has it.
    each(kind, &[U64(1), U64(9), U64(0x3fe0 << 48)], |record| assert_eq!(update(record), "scale 0.5"));
    each(kind, &[U64(2), U64(9), Text("bread", 8)], |record| assert_eq!(update(record), "name bread"));
    let cpus = [U64(3), U64(9), U16(0), U16(2), U16(1), U16(5)];
    each(kind, &cpus, |record| assert_eq!(update(record), "cpus [1, 5]"));
    let conversion = [U64(31), U64(700), U64(5)];
    let short = TimeConv { shift: 31, multiplier: 700, zero: 5, cycles: None };
    each(RecordKind::TIME_CONV, &conversion, |record| assert_eq!(expect!(record, TimeConv), short));
    let behind = [U64(123), U64(0xff), U8(1), U8(0), U16(0), U32(0)];
    let cycles = TimeConvCycles { cycles: 123, mask: 0xff, has_zero: true, is_short: false };
    each(RecordKind::TIME_CONV, &[&conversion[..], &behind].concat(), |record| {
        assert_eq!(expect!(record, TimeConv), TimeConv { cycles: Some(cycles), ..short });
    });
}

/// `struct perf_record_compressed`, `_compressed2`, `_bpf_metadata`, `_schedstat_cpu` and `_schedstat_domain`
#[test]
fn packed_records_programs_and_the_scheduler() {
    each(RecordKind::COMPRESSED, &[Text("packed", 6)], |record| {
        assert_eq!(expect!(record, Compressed).data, &b"packed"[..]);
    });
    each(RecordKind::COMPRESSED2, &[U64(6), Text("packed", 6)], |record| {
        assert_eq!(expect!(record, Compressed2).data, &b"packed"[..]);
    });
    for order in ORDERS {
        let filled_up = made(RecordKind::COMPRESSED2, order, &[U64(6), Text("packed", 8)]);
        assert_eq!(filled_up.as_raw().parse_user(order).rest, &[0, 0][..]);
    }
    let metadata = [Text("bpf_prog_1234_bake", 512), U64(2), Text("author", 64), Text("baker", 256)];
    let second = [Text("version", 64), Text("7", 256)];
    each(RecordKind::BPF_METADATA, &[&metadata[..], &second].concat(), |record| {
        let metadata = expect!(record, BpfMetadata);
        assert_eq!(metadata.program.to_string_lossy(), "bpf_prog_1234_bake");
        let entries: Vec<_> = metadata.iter().map(|entry| (entry.key, entry.value)).collect();
        let text = collector_common::perf::Text::new;
        let expected = [
            (text(b"author".as_slice()), text(b"baker".as_slice())),
            (text(b"version".as_slice()), text(b"7".as_slice())),
        ];
        assert_eq!(entries, expected);
    });
    let numbers: Vec<_> = (1..=6).map(U32).chain((7..=9).map(U64)).collect();
    let head = |version, domain| [U64(4000), U32(2), U16(version), U16(domain)];
    each(RecordKind::SCHEDSTAT_CPU, &[&head(16, 0)[..], &numbers].concat(), |record| {
        let expected = SchedstatCpu {
            timestamp: 4000,
            cpu: 2,
            version: 16,
            yields: 1,
            legacy: 2,
            schedules: 3,
            idles: 4,
            wakeups: 5,
            local_wakeups: 6,
            run_time: 7,
            run_delay: 8,
            time_slices: 9,
        };
        assert_eq!(expect!(record, SchedstatCpu), expected);
    });
    for (version, count) in [(15, 36), (16, 36), (17, 45)] {
        let counters: Vec<_> = (1..=count).map(U32).collect();
        each(RecordKind::SCHEDSTAT_DOMAIN, &[&head(version, 3)[..], &counters].concat(), |record| {
            let domain = expect!(record, SchedstatDomain);
            assert_eq!((domain.timestamp, domain.cpu, domain.version, domain.domain), (4000, 2, version, 3));
            assert!(domain.counters.iter().eq(1..=u64::from(count)));
        });
    }
    for order in ORDERS {
        let newer = made(RecordKind::SCHEDSTAT_CPU, order, &[&head(18, 0)[..], &numbers].concat());
        assert!(matches!(newer.as_raw().parse_user(order).record, UserRecord::Other(_)));
    }
}

/// Goes over everything that is in a record; a number that depends on all of it.
fn sum(record: &UserRecord<'_>) -> u64 {
    let of_text = |text: collector_common::perf::Text<'_>| text.bytes().iter().map(u64::from).sum::<u64>();
    let of_cpus = |cpus: CpuMap<'_>| cpus.iter().map(u64::from).sum::<u64>();
    let add = |sum: u64, value: u64| sum.wrapping_add(value);
    match *record {
        UserRecord::HeaderAttr(event) => {
            event.ids.iter().fold(event.attr().map_or(0, |attr| attr.config), add)
        }
        UserRecord::IdIndex(index) => index.iter().map(|entry| entry.id).fold(0, add),
        UserRecord::AuxtraceInfo(info) => info.private.iter().fold(0, add),
        UserRecord::ThreadMap(threads) => threads.iter().map(|thread| of_text(thread.name)).sum(),
        UserRecord::CpuMap(cpus) => of_cpus(cpus),
        UserRecord::StatConfig(config) => config.iter().map(|(_, value)| value).fold(0, add),
        UserRecord::EventUpdate(update) => match update.update {
            Update::Unit(text) | Update::Name(text) => of_text(text),
            Update::Scale(scale) => scale.to_bits(),
            Update::Cpus(cpus) => of_cpus(cpus),
        },
        UserRecord::BpfMetadata(metadata) => metadata.iter().map(|entry| of_text(entry.value)).sum(),
        UserRecord::SchedstatDomain(domain) => domain.counters.iter().sum(),
        other => other.kind().0.into(),
    }
}

#[test]
fn reading_allocates_nothing() {
    let noise: Vec<u64> = (1..90).collect();
    for order in ORDERS {
        let mut ring = Vec::new();
        for kind in user_layout::KINDS {
            let record = user_layout::record(RecordKind(kind), order, &noise);
            // Attributes that are longer than those that are known here are kept.
            let is_new = kind == RecordKind::HEADER_ATTR.0 && record.body.len() > 144;
            assert!(!is_new, "{record:?}");
            record.as_raw().write(order, &mut ring).unwrap();
        }
        let (first, second) = ring.split_at(ring.len() / 2 - 3);
        let mut known = 0;
        let used = allocation_counter::measure(|| {
            for raw in records(Bytes::wrapped(first, second), order) {
                let parsed = raw.unwrap().parse_user(order);
                known +=
                    usize::from(!matches!(parsed.record, UserRecord::Other(_)) && sum(&parsed.record) > 0);
            }
        });
        assert_eq!(used.count_total, 0);
        assert!(known > 18, "{known}");
    }
}

proptest! {
    #[test]
    fn what_is_read_is_written(kind in user_layout::KINDS, noise in layout::noise(), is_big: bool) {
        let (order, other) = if is_big { (ByteOrder::Big, ByteOrder::Little) } else { (ByteOrder::Little, ByteOrder::Big) };
        let record = user_layout::record(RecordKind(kind), order, &noise);
        let bytes = whole(&record, order);
        let parsed = record.as_raw().parse_user(order);
        prop_assert!(!matches!(parsed.record, UserRecord::Other(_)), "{:?}", record);
        prop_assert_eq!(parsed.record.kind(), record.kind);
        prop_assert_eq!(&written(&parsed, order), &bytes);
        let swapped = written(&parsed, other);
        let raw = records(&swapped, other).next().unwrap().unwrap();
        prop_assert_eq!(written(&raw.parse_user(other), order), &bytes[..]);
        for at in 0..=record.body.len() {
            let (first, second) = record.body.split_at(at);
            let wrapped = RawRecord { body: Bytes::wrapped(first, second), ..record.as_raw() };
            let in_two = wrapped.parse_user(order);
            prop_assert_eq!(sum(&in_two.record), sum(&parsed.record));
            if at % 7 == 0 {
                prop_assert_eq!(&written(&in_two, order), &bytes);
            }
        }
    }

    #[test]
    fn noise_is_never_fatal(
        kind in prop_oneof![user_layout::KINDS, any::<u32>()],
        misc: u16,
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..1000),
            // Counts that fit.
            proptest::collection::vec(0..4_u8, 0..1000),
        ],
        is_big: bool,
    ) {
        let order = if is_big { ByteOrder::Big } else { ByteOrder::Little };
        let raw = RawRecord { kind: RecordKind(kind), misc: Misc(misc), body: Bytes::from(&bytes) };
        let parsed = raw.parse_user(order);
        let _ = format!("{parsed:?} {}", sum(&parsed.record));
        prop_assert_eq!(written(&parsed, order).len(), 8 + bytes.len());
    }
}
