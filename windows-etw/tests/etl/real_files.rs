//! Real files: how many of which events there are, when, where and whose, as `PerfView` says.

use std::collections::BTreeMap;

use windows_etw::etl::ClockKind;
use windows_etw::record::{EtwRecord, Schema};

use crate::baseline::{counts, events};
use crate::data::{baseline, open};
use crate::names::name;

/// Files with a list of what `PerfView` finds in them; how many records of any kind they have, and the sum of their ticks, as
/// `dissect.etl` 3.14 reads them, which goes through a file from its beginning to its end.
const LISTED: [(&str, u64, i64); 3] = [
    ("net.4.5.2.x64.etl", 179_474, 359_850_266_916_283),
    ("gcevents.etl", 71, 388_009_635_970_988),
    ("primitive-types.etl", 7, 18_225_303_034_704),
];

/// Of this file there is no list: what `dissect.etl` reads.
const UNLISTED: (&str, u64, i64) = ("Process.etl", 10_344, 1_843_368_933_453_688);

/// `PerfView` leaves out samples of idle CPUs: their thread is 0 (the u32 behind the instruction pointer), and they neither
/// handle an interrupt nor what one left to do (the lowest bits of the byte behind the count).
fn is_idle(record: &EtwRecord<'_>, name: &str) -> bool {
    name == "Windows Kernel/PerfInfo/Sample"
        && record.payload[8..12] == [0; 4]
        && matches!(record.payload[14] & 3, 0)
}

/// Events of which `PerfView` tells the process or thread that they are about, not the one that they happened in.
const ABOUT_OTHERS: [&str; 9] = [
    "Windows Kernel/DiskIO/",
    "Windows Kernel/Image/",
    "Windows Kernel/Memory/",
    "Windows Kernel/PerfInfo/Sample",
    "Windows Kernel/Process/",
    "Windows Kernel/SystemConfig/Services",
    "Windows Kernel/TcpIp/",
    "Windows Kernel/Thread/",
    "Windows Kernel/UdpIp/",
];

#[test]
fn counts_are_those_of_perfview() {
    for (file, records, ticks) in LISTED {
        let Some(mut etl) = open(file) else { return };
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let (mut number, mut last, mut sum) = (0, i64::MIN, 0);
        while let Some(record) = etl.next_record().unwrap() {
            number += 1;
            assert!(last <= record.ticks, "{file}: record {number} is older than the one before");
            last = record.ticks;
            sum += last;
            if let Some(name) = name(&record).filter(|name| !is_idle(&record, name)) {
                *found.entry(name).or_default() += 1;
            }
        }
        let baseline = baseline(file);
        let expected: BTreeMap<String, u64> =
            counts(&baseline).map(|(name, count)| (name.to_owned(), count)).collect();
        assert_eq!(found, expected, "{file}");
        assert_eq!((number, sum), (records, ticks), "{file}");
        assert!(etl.losses().is_none(), "{file}: {:?}", etl.losses());
    }
}

#[test]
fn events_are_when_and_where_perfview_says() {
    for (file, ..) in LISTED {
        let Some(mut etl) = open(file) else { return };
        let clock = etl.header().clock;
        let baseline = baseline(file);
        let mut by_name: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for event in events(&baseline) {
            by_name.entry(event.name).or_default().push(event);
        }
        let mut whose = 0;
        while let Some(record) = etl.next_record().unwrap() {
            let Some(name) = name(&record) else { continue };
            let Some(expected) = by_name.get_mut(&*name) else { continue };
            let nanos = clock.nanos(record.ticks);
            let index = expected.iter().position(|event| {
                (event.nanos - nanos).abs() <= 500
                    && event.cpu == record.cpu
                    && event.length == record.payload.len()
            });
            let Some(event) = index.map(|index| expected.remove(index)) else { continue };
            if !ABOUT_OTHERS.iter().any(|others| name.starts_with(others)) {
                let known = |id: Option<u32>| id.map_or(-1, i64::from);
                let pid = known(record.pid.map(|pid| pid.0));
                assert_eq!(
                    (pid, known(record.tid.map(|tid| tid.0))),
                    (event.pid, event.tid),
                    "{file}: {event:?}"
                );
                whose += 1;
            }
        }
        by_name.retain(|_, events| !events.is_empty());
        assert!(by_name.is_empty(), "{file}: not found: {by_name:?}");
        assert!(whose > 5, "{file}: {whose} events with process and thread were compared");
    }
}

/// `2020-07-29T00:07:00.6`, of what `PerfView` prints as `20/07/29 00:07:00.62...`, to a second.
fn second(text: &str) -> String {
    let (date, time) = text.split_once(' ').unwrap();
    format!("20{}T{}", date.replace('/', "-"), &time[..8])
}

#[test]
fn headers_are_as_perfview_prints_them() {
    for (file, ..) in LISTED {
        let Some(etl) = open(file) else { return };
        let (header, baseline) = (etl.header(), baseline(file));
        let line = baseline.lines().find(|line| line.contains(": Windows Kernel/EventTrace PID=")).unwrap();
        let text = |name: &str| {
            let (_, value) = line.split_once(&format!(" {name}=")).unwrap();
            value.split_once("; ").unwrap().0
        };
        let number = |name: &str| text(name).replace(',', "").parse::<i64>().unwrap();
        let version = header.version;
        let version_number =
            u32::from_le_bytes([version.major, version.minor, version.sub, version.sub_minor]);
        assert_eq!(i64::from(header.buffer_size), number("BufferSize"));
        assert_eq!(i64::from(version_number), number("Version"));
        assert_eq!(i64::from(version.build), number("ProviderVersion"));
        assert_eq!(i64::from(header.cpus), number("NumberOfProcessors"));
        assert_eq!(i64::from(header.timer_resolution), number("TimerResolution"));
        assert_eq!(i64::from(header.most_megabytes), number("MaxFileSize"));
        assert_eq!(i64::from(header.mode), number("LogFileMode"));
        assert_eq!(i64::from(header.buffers_written), number("BuffersWritten"));
        assert_eq!(i64::from(header.start_buffers), number("StartBuffers"));
        assert_eq!(header.pointer_size.bytes() as i64, number("PointerSize"));
        assert_eq!(i64::from(header.events_lost), number("EventsLost"));
        assert_eq!(i64::from(header.buffers_lost), number("BuffersLost"));
        assert_eq!(i64::from(header.cpu_mhz), number("CPUSpeed"));
        assert_eq!(header.clock.frequency, number("PerfFreq") as u64);
        assert_eq!(header.clock.kind, ClockKind::PerformanceCounter);
        assert_eq!(number("ReservedFlags"), 1);
        assert_eq!(i64::from(header.time_zone.bias), number("UtcOffsetMinutes"));
        assert_eq!(header.session, text("SessionName"));
        // Long texts are cut.
        assert!(header.file.starts_with(text("LogFileName").trim_end_matches('.')), "{}", header.file);
        for (name, time) in
            [("StartTime", header.clock.start), ("EndTime", header.end.unwrap()), ("BootTime", header.boot)]
        {
            assert!(time.to_string().starts_with(&second(text(name))), "{file}: {name} {time}");
        }
    }
}

/// It has two CPUs, and buffers of the form before there was a flag for many.
#[test]
fn a_file_of_windows_7() {
    let (file, records, ticks) = UNLISTED;
    let Some(mut etl) = open(file) else { return };
    let version = etl.header().version;
    assert_eq!((version.major, version.minor, version.build, etl.header().cpus), (6, 1, 7600, 2));
    assert_eq!(etl.header().session, "DataCollector02");
    let (mut by_cpu, mut events, mut last, mut sum) = ([0; 2], BTreeMap::new(), i64::MIN, 0);
    while let Some(record) = etl.next_record().unwrap() {
        assert!(last <= record.ticks);
        last = record.ticks;
        sum += last;
        by_cpu[usize::from(record.cpu)] += 1;
        if record.schema == Schema::Manifest {
            assert_eq!(record.provider.to_string(), "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");
            *events.entry(record.descriptor.id).or_insert(0) += 1;
        }
    }
    assert_eq!((by_cpu.iter().sum::<u64>(), sum), (records, ticks));
    assert!(by_cpu.iter().all(|records| *records > 1000), "{by_cpu:?}");
    // Of `Microsoft-Windows-Kernel-Process`: as many processes end as begin, and images come before they go.
    let expected =
        [(1, 4), (2, 4), (3, 287), (4, 264), (5, 1115), (6, 1153), (7, 810), (8, 5088), (9, 838), (10, 780)];
    assert_eq!(events, BTreeMap::from(expected));
    assert!(etl.losses().is_none(), "{:?}", etl.losses());
}
