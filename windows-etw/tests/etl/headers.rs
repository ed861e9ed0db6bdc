//! Records with each kind of header, made by hand.

use std::io::Cursor;

use collector_common::event::{FileTime, Guid};
use collector_common::ids::{Pid, Tid};
use windows_etw::etl::{ClockKind, EtlFile, Losses, TimeZone, TraceVersion};
use windows_etw::record::{
    Descriptor, EtwRecord, Extended, Instance, PointerSize, Schema, StackItem, StackKey,
};

use crate::written::{
    ACTIVITY, ACTIVITY_IN_FILE, Buffer, PROVIDER, System, TICKS, Trace, classic, event, item, message,
    perf_info,
};

const NO_GUID: Guid = Guid([0; 16]);

/// Reads a file with these records in a buffer of CPU 3, gives each to `check`, and returns what is lost.
fn read(records: &[Vec<u8>], mut check: impl FnMut(usize, EtwRecord<'_>)) -> Losses {
    let buffer = Buffer { cpu: 3, size: 4096, ..Buffer::default() };
    let losses = [buffer.bytes(records), buffer.packed(records)].map(|buffer| {
        let mut file = EtlFile::open(Cursor::new(Trace::default().file(&[buffer]))).unwrap();
        file.next_record().unwrap().unwrap();
        let mut number = 0;
        while let Some(record) = file.next_record().unwrap() {
            check(number, record);
            number += 1;
        }
        let losses = file.losses().clone();
        let known = number as u64 + losses.unread_records + losses.damages;
        assert_eq!(known, records.len() as u64, "{number} were read; {losses:?}");
        losses
    });
    assert_eq!(losses[0], losses[1], "packed or not");
    losses[0].clone()
}

/// What records by hand have in common.
fn record<'a>(provider: &str, ticks: i64, payload: &'a [u8]) -> EtwRecord<'a> {
    EtwRecord {
        provider: provider.parse().unwrap(),
        descriptor: Descriptor::default(),
        schema: Schema::Classic,
        pointer_size: PointerSize::Bits64,
        pid: Some(Pid(1)),
        tid: Some(Tid(2)),
        cpu: 3,
        ticks,
        activity: NO_GUID,
        extended: Extended::default(),
        payload,
    }
}

#[test]
fn kernel_headers() {
    let known = System { group: 5, opcode: 36, version: 4, pid: 1, tid: 2, ..System::default() };
    let nobody = System { pid: u32::MAX, tid: u32::MAX, ..known };
    let records = [
        System { kind: 1, ..known }.bytes(1001, b"long, 32 bits"),
        System { kind: 2, ..nobody }.bytes(1002, b"long, 64 bits"),
        System { kind: 3, ..nobody }.bytes(1003, b"short, 32 bits"),
        System { kind: 4, ..known }.bytes(1004, b""),
        perf_info(16, 2, (15, 46), 1005, b"32 bits"),
        perf_info(17, 3, (15, 46), 1006, b"64 bits"),
        // An image that is loaded has the group of processes.
        System { group: 3, opcode: 10, ..known }.bytes(1007, b"image"),
        System { group: 77, ..known }.bytes(1008, b"a group that is not known"),
    ];
    let thread = "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c";
    let perf = "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc";
    let image = "2cb15d1d-5fc1-11d2-abe1-00a0c911f518";
    let none = "00000000-0000-0000-0000-000000000000";
    read(&records, |number, found| {
        let (provider, payload, version, opcode, is_wide, has_thread) = match number {
            0 => (thread, &b"long, 32 bits"[..], 4, 36, false, true),
            1 => (thread, &b"long, 64 bits"[..], 4, 36, true, false),
            2 => (thread, &b"short, 32 bits"[..], 4, 36, false, false),
            3 => (thread, &b""[..], 4, 36, true, true),
            4 => (perf, &b"32 bits"[..], 2, 46, false, false),
            5 => (perf, &b"64 bits"[..], 3, 46, true, false),
            6 => (image, &b"image"[..], 4, 10, true, true),
            _ => (none, &b"a group that is not known"[..], 4, 36, true, true),
        };
        let mut expected = record(provider, 1001 + number as i64, payload);
        expected.descriptor = Descriptor { version, opcode, ..Descriptor::default() };
        if !is_wide {
            expected.pointer_size = PointerSize::Bits32;
        }
        if !has_thread {
            (expected.pid, expected.tid) = (None, None);
        }
        assert_eq!(found, expected);
    });
}

#[test]
fn counters_between_a_kernel_header_and_its_payload() {
    let behind = b"pebs....counter1counter2payload";
    let records = [
        perf_info(17, 0x8202, (15, 46), 1001, behind),
        perf_info(17, 0x0202, (15, 46), 1002, &behind[8..]),
        perf_info(17, 0x8002, (15, 46), 1003, &[&behind[..8], b"payload"].concat()),
        // Seven that are not there.
        perf_info(17, 0x0702, (15, 46), 1004, behind),
    ];
    let losses = read(&records, |number, found| {
        assert_eq!(found.payload, b"payload");
        assert_eq!(found.descriptor.version, 2);
        let counters = (number != 2).then_some(&b"counter1counter2"[..]);
        assert_eq!(found.extended, Extended { counters, ..Extended::default() });
    });
    assert_eq!(losses.damages, 1);
    assert!(losses.places[0].to_string().ends_with("the record at its byte 192 is damaged"), "{losses:?}");
}

#[test]
fn event_headers() {
    let descriptor = Descriptor {
        id: 0x102,
        version: 3,
        channel: 4,
        level: 5,
        opcode: 6,
        task: 0x708,
        keyword: 0x090a_0b0c,
    };
    let records = [
        event(18, 0, 1001, b"", b"32 bits"),
        event(19, 0, 1002, b"", b""),
        event(19, 4, 1003, b"", b"t\0e\0x\0t\0"),
        event(19, 0x100, 1004, b"", b"classic"),
    ];
    read(&records, |number, found| {
        let (payload, schema) = match number {
            0 => (&b"32 bits"[..], Schema::Manifest),
            1 => (&b""[..], Schema::Manifest),
            2 => (&b"t\0e\0x\0t\0"[..], Schema::Text),
            _ => (&b"classic"[..], Schema::Classic),
        };
        let mut expected = record(PROVIDER, 1001 + number as i64, payload);
        (expected.descriptor, expected.schema) = (descriptor, schema);
        expected.activity = ACTIVITY.parse().unwrap();
        if number == 0 {
            expected.pointer_size = PointerSize::Bits32;
        }
        assert_eq!(found, expected);
    });
}

#[test]
fn extended_items() {
    let related = item(1, true, &ACTIVITY_IN_FILE);
    let instance = [&7_u32.to_le_bytes()[..], &8_u32.to_le_bytes(), &ACTIVITY_IN_FILE].concat();
    let all = [
        related.clone(),
        item(2, true, b"sid of eleven"),
        item(3, true, &4_u32.to_le_bytes()),
        item(4, true, &instance),
        item(6, true, b"match id12345678abcdefghrest"),
        item(7, true, b"pebs...."),
        item(8, true, b"counter1counter2"),
        item(0xa, true, &5_u64.to_le_bytes()),
        item(0xb, true, b"schema"),
        item(0xc, true, b"traits"),
        item(0xd, true, &6_u64.to_le_bytes()),
        item(0x10, true, b"container"),
        item(0x12, true, b"match idkey of 8"),
        item(0x99, false, b"what is not known"),
    ]
    .concat();
    let narrow = [item(5, true, b"match id12345678abc"), item(0x11, false, b"match idkey.pad.")].concat();
    let unending = item(1, true, &ACTIVITY_IN_FILE);
    let records = [
        event(19, 1, 1001, &all, b"payload"),
        event(18, 1, 1002, &narrow, b"payload"),
        // They are there without the flag: then they are payload.
        event(19, 0, 1003, b"", &related),
        event(19, 1, 1004, &unending, b""),
        event(19, 1, 1005, &item(1, false, b"short"), b"payload"),
    ];
    let word = |text: &[u8; 8]| u64::from_le_bytes(*text);
    let losses = read(&records, |number, found| match number {
        0 => {
            assert_eq!(found.payload, b"payload");
            assert_eq!(found.schema, Schema::SelfDescribing);
            let addresses = &b"12345678abcdefgh"[..];
            let expected = Extended {
                related_activity: Some(ACTIVITY.parse().unwrap()),
                sid: Some(b"sid of eleven"),
                terminal_session: Some(4),
                stack: Some(StackItem { match_id: word(b"match id"), width: PointerSize::Bits64, addresses }),
                self_description: Some(b"schema"),
                provider_traits: Some(b"traits"),
                process_start_key: Some(6),
                stack_key: Some(StackKey { match_id: word(b"match id"), key: word(b"key of 8") }),
                instance: Some(Instance { id: 7, parent_id: 8, parent: ACTIVITY.parse().unwrap() }),
                counters: Some(b"counter1counter2"),
                event_key: Some(5),
                container: Some(b"container"),
                is_after_loss: false,
            };
            assert_eq!(found.extended, expected);
        }
        1 => {
            let addresses = &b"12345678"[..];
            let stack = StackItem { match_id: word(b"match id"), width: PointerSize::Bits32, addresses };
            assert_eq!(found.extended.stack, Some(stack));
            let key = u64::from(u32::from_le_bytes(*b"key."));
            assert_eq!(found.extended.stack_key, Some(StackKey { match_id: word(b"match id"), key }));
            assert_eq!(found.payload, b"payload");
        }
        2 => assert_eq!((found.extended, found.payload), (Extended::default(), &related[..])),
        _ => assert_eq!((found.extended, found.payload), (Extended::default(), &b"payload"[..])),
    });
    assert_eq!(losses.damages, 1, "the fourth goes on behind its end");
}

#[test]
fn classic_headers() {
    let instance = [&7_u32.to_le_bytes()[..], &8_u32.to_le_bytes(), &ACTIVITY_IN_FILE, b"payload"].concat();
    let records = [
        classic(10, 1001, b"payload"),
        classic(20, 1002, b"payload"),
        classic(11, 1003, &instance),
        classic(21, 1004, &instance),
    ];
    read(&records, |number, found| {
        let mut expected = record(PROVIDER, 1001 + number as i64, b"payload");
        expected.descriptor = Descriptor { opcode: 1, level: 2, version: 3, ..Descriptor::default() };
        if number % 2 == 0 {
            expected.pointer_size = PointerSize::Bits32;
        }
        if number >= 2 {
            let parent = ACTIVITY.parse().unwrap();
            expected.extended.instance = Some(Instance { id: 7, parent_id: 8, parent });
        }
        assert_eq!(found, expected);
    });
}

#[test]
fn messages() {
    let time = 1001_i64.to_le_bytes();
    let thread = [2_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
    let all = [&[9; 4], &ACTIVITY_IN_FILE[..], &time, &thread, b"payload"].concat();
    let records = [
        message(1 | 2 | 8 | 0x20 | 0x40, &all),
        message(2 | 0x10, &[&ACTIVITY_IN_FILE[..], &1002_i64.to_le_bytes(), b"payload"].concat()),
        // A component in place of a GUID, and no time: it is given that of the one before.
        message(4, b"compayload"),
        message(0, b"payload"),
    ];
    read(&records, |number, found| {
        let mut expected = record(ACTIVITY, [1001, 1002, 1002, 1002][number], b"payload");
        expected.descriptor.id = 9;
        expected.schema = Schema::Message;
        if number == 0 {
            expected.pointer_size = PointerSize::Bits32;
        } else {
            (expected.pid, expected.tid) = (None, None);
        }
        if number >= 2 {
            expected.provider = NO_GUID;
        }
        expected.payload = if number == 2 { b"ayload" } else { b"payload" };
        assert_eq!(found, expected);
    });
}

/// The first records of a buffer may be messages without a time. Then the first time in the buffer is theirs.
#[test]
fn messages_before_there_is_a_time() {
    let records = [message(0, b"a"), message(0, b"b"), event(19, 0, 1234, b"", b"c"), message(0, b"d")];
    read(&records, |_, found| assert_eq!(found.ticks, 1234));
    read(&records[..2], |_, found| assert_eq!(found.ticks, TICKS));
}

#[test]
fn headers_that_are_not_read_are_counted() {
    let timed = [&[16, 0, 0, 0xb0, 1, 0, 0, 0][..], &1001_i64.to_le_bytes()].concat();
    let wnode = [&[48, 0, 0, 0][..], &[0; 44]].concat();
    let error = [&[20, 0, 13, 0xc0][..], &[0; 16]].concat();
    let records = [timed, wnode, error, event(19, 0, 1002, b"", b"behind")];
    let losses = read(&records, |_, found| assert_eq!(found.payload, b"behind"));
    assert_eq!((losses.unread_records, losses.damages), (3, 0));
}

#[test]
fn the_header_of_a_file() {
    for pointer_size in [PointerSize::Bits32, PointerSize::Bits64] {
        let trace = Trace { pointer_size, events_lost: 3, buffers_lost: 4, mode: 2, ..Trace::default() };
        let mut file = EtlFile::open(Cursor::new(trace.file(&[]))).unwrap();
        let header = file.header().clone();
        assert_eq!(header.pointer_size, pointer_size);
        assert_eq!((header.buffer_size, header.cpus, header.cpu_mhz), (512, 8, 3000));
        assert_eq!(header.version, TraceVersion { major: 10, minor: 0, sub: 1, sub_minor: 5, build: 19_045 });
        assert_eq!(
            (header.boot, header.end),
            (FileTime(trace.start - 7), Some(FileTime(trace.start + 50_000_000)))
        );
        assert_eq!((header.timer_resolution, header.most_megabytes, header.mode), (156_250, 500, 2));
        assert_eq!((header.buffers_written, header.start_buffers), (1, 1));
        assert_eq!((header.events_lost, header.buffers_lost), (3, 4));
        assert_eq!((&*header.session, &*header.file), ("session", "file"));
        let zone = TimeZone {
            bias: -60,
            standard_bias: 1,
            daylight_bias: -61,
            standard_name: "here".into(),
            daylight_name: "there".into(),
        };
        assert_eq!(header.time_zone, zone);
        let clock = header.clock;
        assert_eq!((clock.kind, clock.frequency), (ClockKind::PerformanceCounter, 10_000_000));
        assert_eq!((clock.start_ticks, clock.start), (TICKS, FileTime(trace.start)));
        let record = file.next_record().unwrap().unwrap();
        assert_eq!(record.provider, windows_etw::etl::EVENT_TRACE);
        assert_eq!((record.ticks, record.pid, record.pointer_size), (TICKS, Some(Pid(5)), pointer_size));
        assert!(file.next_record().unwrap().is_none());
        assert_eq!((file.losses().events, file.losses().buffers), (3, 4));
    }
}

#[test]
fn clocks() {
    let clock = |clock, frequency, mhz| {
        let trace = Trace { clock, frequency, mhz, ..Trace::default() };
        EtlFile::open(Cursor::new(trace.file(&[]))).unwrap().header().clock
    };
    // 3 MHz and 2 GHz, and 100 ns.
    for (clock, kind, nanos) in [
        (clock(1, 3_000_000, 2000), ClockKind::PerformanceCounter, 3000),
        (clock(0, 3_000_000, 2000), ClockKind::PerformanceCounter, 3000),
        (clock(2, 3_000_000, 2000), ClockKind::SystemTime, 900),
        (clock(3, 3_000_000, 2000), ClockKind::CpuCycles, 4),
        // Those that do not say how long a tick is.
        (clock(1, 0, 2000), ClockKind::SystemTime, 900),
        (clock(3, 3_000_000, 0), ClockKind::SystemTime, 900),
    ] {
        assert_eq!((clock.kind, clock.nanos(TICKS + 9)), (kind, nanos));
        assert_eq!(clock.nanos(TICKS - 9), -nanos);
        // 2020-07-29 00:07:00.62 UTC.
        let unix = 1_595_981_220_620_000_000;
        assert_eq!(clock.unix_nanos(TICKS + 9), unix + i128::from(nanos));
        assert!(clock.nanos(i64::MAX) > 0);
        assert!(clock.nanos(i64::MIN) < 0);
    }
}
