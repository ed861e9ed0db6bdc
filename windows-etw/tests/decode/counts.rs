//! How many events of which name there are.

use std::collections::BTreeMap;

use collector_common::event::{EventData, Value};
use collector_common::ids::Tid;
use windows_etw::decode::described::Schemas;
use windows_etw::decode::kernel::KernelEvent;
use windows_etw::decode::windows::WindowsEvent;
use windows_etw::record::EtwRecord;

use crate::baseline::counts;
use crate::data::{baseline, open};

/// `PerfView` leaves out samples of idle CPUs, unless one handles an interrupt or what that left to do.
fn is_idle(record: &EtwRecord<'_>) -> bool {
    match KernelEvent::decode(record) {
        Ok(Some(KernelEvent::Sample(sample))) => sample.tid == Tid(0) && sample.flags % 4 == 0,
        _ => false,
    }
}

/// What `PerfView`'s list leaves out: what it uses for others.
const UNLISTED: [&str; 14] = [
    "Microsoft-Windows-DotNETRuntime/ClrStack/Walk",
    "Microsoft-Windows-DotNETRuntime/Method/ILToNativeMap",
    "Microsoft-Windows-DotNETRuntimeRundown/Method/DCStopVerbose",
    "Microsoft-Windows-DotNETRuntimeRundown/Method/ILToNativeMapDCStop",
    "Windows Kernel/FileIO/FileCreate",
    "Windows Kernel/FileIO/FileDelete",
    "Windows Kernel/FileIO/FileRundown",
    "Windows Kernel/StackWalk/KeyDelete",
    "Windows Kernel/StackWalk/KeyRundown",
    "Windows Kernel/StackWalk/Stack",
    "Windows Kernel/StackWalk/StackKeyKernel",
    "Windows Kernel/StackWalk/StackKeyUser",
    "Windows Kernel/Thread/DCStart",
    "Windows Kernel/Thread/DCStop",
];

/// Described in the file itself by Windows, under another name of the same provider.
const RENAMED: [(&str, &str); 2] = [
    ("Windows Kernel/Image/KernelBase", "MSNT_SystemTrace/Image/KernelBase"),
    ("Windows Kernel/SystemConfig/Platform", "MSNT_SystemTrace/SystemConfig/Platform"),
];

/// Events that neither side knows: class or provider, and how many.
const UNKNOWN: [(&str, u64); 5] = [
    ("gcevents.etl 68fdd900-4a3e-11d1-84f4-0000f80464e3 80", 1),
    ("net.4.5.2.x64.etl 01853a65-418f-4f36-aefc-dc0f1d2fd235 18", 1),
    ("net.4.5.2.x64.etl 01853a65-418f-4f36-aefc-dc0f1d2fd235 28", 1),
    ("net.4.5.2.x64.etl 2cb15d1d-5fc1-11d2-abe1-00a0c911f518 34", 1),
    ("primitive-types.etl 68fdd900-4a3e-11d1-84f4-0000f80464e3 80", 1),
];

#[test]
fn counts_are_those_of_perfview() {
    let mut unknown: BTreeMap<String, u64> = BTreeMap::new();
    for (file, kinds) in [("net.4.5.2.x64.etl", 152), ("gcevents.etl", 21), ("primitive-types.etl", 2)] {
        let Some(mut etl) = open(file) else { return };
        let mut schemas = Schemas::default();
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        while let Some(record) = etl.next_record().unwrap() {
            schemas.learn(&record).unwrap();
            if is_idle(&record) {
                continue;
            }
            let described = schemas.describe(&record).unwrap();
            let name = described.map(|described| format!("{}/{}", described.provider, described.name));
            let renamed =
                |name: &str| RENAMED.iter().find(|(own, _)| *own == name).map(|(_, theirs)| *theirs);
            match name {
                Some(name) if UNLISTED.contains(&name.as_str()) => {}
                Some(name) => {
                    let name = renamed(&name).unwrap_or(&name).to_owned();
                    *found.entry(name).or_default() += 1;
                }
                None => {
                    let name = format!("{file} {} {}", record.provider, record.descriptor.opcode);
                    *unknown.entry(name).or_default() += 1;
                }
            }
        }
        assert_eq!(schemas.left_out(), 0);
        let baseline = baseline(file);
        let expected: BTreeMap<String, u64> =
            counts(&baseline).map(|(name, count)| (name.to_owned(), count)).collect();
        assert_eq!(found, expected, "{file}");
        assert_eq!(found.len(), kinds, "{file}");
    }
    for (name, count) in UNKNOWN {
        assert_eq!(unknown.remove(name), Some(count), "{name}");
    }
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// How many of each event there are in `Process.etl`, by their numbers in the manifest, as the reader's tests count them, too. Each payload is
/// all that its layout says, which it would not be if a field were of another size.
#[test]
fn events_of_processes_are_told_without_descriptions() {
    let Some(mut etl) = open("Process.etl") else { return };
    let mut schemas = Schemas::default();
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    while let Some(record) = etl.next_record().unwrap() {
        let described = schemas.describe(&record).unwrap().unwrap();
        *found.entry(described.name.to_string()).or_default() += 1;
        if described.name.starts_with("EventTrace") {
            continue;
        }
        let data = EventData::new(record.payload, record.payload, &described.format);
        let last = described.format.field_refs().last().unwrap();
        let slice = data.try_get_slice(last).unwrap();
        let nul = match data.value(last).unwrap() {
            Value::Utf16(path) => {
                assert!(path.to_string().starts_with('\\'), "{path}");
                2
            }
            Value::Text(_) => 1,
            _ => 0,
        };
        let end = slice.as_ptr_range().end as usize - record.payload.as_ptr() as usize + nul;
        assert_eq!(end, record.payload.len(), "{}", described.name);
        match WindowsEvent::decode(&record).unwrap() {
            Some(WindowsEvent::ProcessStart(process)) => {
                assert!(process.image.to_string().to_lowercase().ends_with(".exe"));
            }
            Some(WindowsEvent::CpuPriority(change)) => assert!(change.old < 32 && change.new < 32),
            Some(_) => {}
            None => panic!("{}", described.name),
        }
    }
    let expected = [
        ("CpuBasePriorityChange", 810),
        ("CpuPriorityChange", 5088),
        ("EventTrace", 1),
        ("ImageLoad", 1115),
        ("ImageUnload", 1153),
        ("IoPriorityChange", 780),
        ("PagePriorityChange", 838),
        ("ProcessStart/Start", 4),
        ("ProcessStop/Stop", 4),
        ("ThreadStart/Start", 287),
        ("ThreadStop/Stop", 264),
    ];
    assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)).into());
}
