//! What becomes of real files, against what `PerfView` lists of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use collector_common::event::Guid;
use collector_common::ids::Tid;
use collector_common::record::{
    ExportMachine, FrameId, ImageHeader, ModuleId, ModuleKind, Pdb, Process, Sample, SampleKindId,
};
use collector_user::etw::{Taker, Trace};
use windows_etw::decode::clr::ClrEvent;
use windows_etw::decode::kernel::{
    IMAGE, IMAGE_ID, KernelEvent, PERF_INFO, STACK_WALK, SYS_CONFIG, SYSTEM_CONFIG,
};
use windows_etw::etl::EtlFile;

use crate::data::{baseline, bytes, counts, import, number, value};

const NET: &str = "net.4.5.2.x64.etl";

fn kind(machine: &ExportMachine, name: &str) -> SampleKindId {
    let place = machine.kinds().iter().position(|kind| machine.string(kind.name) == name).unwrap();
    SampleKindId(place as u16)
}

fn samples(machine: &ExportMachine, name: &str) -> Vec<Sample> {
    let kind = kind(machine, name);
    machine.samples().iter().filter(|sample| sample.kind == kind).collect()
}

/// What `PerfView` lists and is a sample here, or described others.
const NO_EVENTS: [&str; 3] = [
    "Windows Kernel/PerfInfo/Sample",
    "KernelTraceControl/MetaData/EventInfo",
    "KernelTraceControl/MetaData/EventMapInfo",
];

/// What it uses for its own list.
const UNLISTED: [&str; 8] = [
    "Microsoft-Windows-DotNETRuntime/Method/ILToNativeMap",
    "Microsoft-Windows-DotNETRuntimeRundown/Method/DCStopVerbose",
    "Microsoft-Windows-DotNETRuntimeRundown/Method/ILToNativeMapDCStop",
    "Windows Kernel/FileIO/FileCreate",
    "Windows Kernel/FileIO/FileDelete",
    "Windows Kernel/FileIO/FileRundown",
    "Windows Kernel/Thread/DCStart",
    "Windows Kernel/Thread/DCStop",
];

#[test]
fn each_event_is_there_once() {
    for file in [NET, "gcevents.etl", "primitive-types.etl"] {
        let Some(imported) = import(file) else { return };
        let machine = &imported.machine;
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for (_, record, _) in machine.event_records().iter() {
            let kind = &machine.event_kinds()[usize::from(record.kind.0)];
            // Of those that nothing describes there is but a number.
            if machine.string(kind.short_name).is_empty() {
                continue;
            }
            let name = match machine.string(kind.name) {
                "Windows Kernel/Image/KernelBase" => "MSNT_SystemTrace/Image/KernelBase",
                "Windows Kernel/SystemConfig/Platform" => "MSNT_SystemTrace/SystemConfig/Platform",
                name => name,
            };
            *found.entry(name.to_owned()).or_default() += 1;
        }
        found.retain(|name, _| !UNLISTED.contains(&name.as_str()));
        let baseline = baseline(file);
        let listed = counts(&baseline).filter(|(name, _)| !NO_EVENTS.contains(name));
        assert_eq!(found, listed.map(|(name, count)| (name.to_owned(), count)).collect(), "{file}");
        assert_eq!((machine.system().lost, machine.event_records().lost()), (Some(0), 0));
    }
}

#[test]
fn cpu_samples_are_those_that_are_listed() {
    let Some(imported) = import(NET) else { return };
    let (machine, baseline) = (&imported.machine, baseline(NET));
    let cpu = samples(machine, "cpu");
    let count = counts(&baseline).find(|(name, _)| *name == "Windows Kernel/PerfInfo/Sample").unwrap().1;
    assert_eq!(cpu.len() as u64, count);
    assert!(cpu.iter().all(|sample| sample.value == 1));
    // `NewInterval=10,000` in units of 100 ns.
    assert_eq!(machine.kinds()[usize::from(cpu[0].kind.0)].period, 1_000_000);
    assert_eq!(machine.shown_kind(), Some(cpu[0].kind));
    let with_stack = cpu.iter().filter(|sample| machine.stacks().get(sample.stack).len() > 1).count();
    assert!(with_stack * 100 > cpu.len() * 98, "{with_stack} of {}", cpu.len());
    assert!(cpu.iter().all(|sample| !machine.stacks().get(sample.stack).is_empty()));

    let mut listed = 0;
    for line in baseline.lines().filter(|line| line.contains(" Windows Kernel/PerfInfo/Sample PID=")) {
        let millis: f64 = line[6..].split_once(": ").unwrap().0.replace(',', "").parse().unwrap();
        let start = machine.system().start.0;
        let is_it = |sample: &&Sample| {
            let (thread, cpu) = (machine.thread(sample.thread), u64::from(sample.cpu));
            let process = machine.process(thread.process);
            ((sample.time.0 - start) as f64 / 1e6 - millis).abs() < 0.001
                && u64::from(thread.tid.0) == number(value(line, "TID"))
                && u64::from(process.pid.0) == number(value(line, "PID"))
                && machine.string(process.name).starts_with(value(line, "PName"))
                && cpu == number(value(line, "ProceNum"))
        };
        assert_eq!(cpu.iter().filter(is_it).count(), 1, "{line}");
        listed += 1;
    }
    assert_eq!(listed, 5);
}

#[test]
fn processes_and_images_are_those_that_are_listed() {
    let Some(imported) = import(NET) else { return };
    let (machine, baseline) = (&imported.machine, baseline(NET));
    let count = |name: &str| {
        let name = format!("Windows Kernel/{name}");
        counts(&baseline).find_map(|(own, count)| (own == name).then_some(count)).unwrap() as usize
    };
    // Some events do not say whose they are.
    let is_known = |process: &&Process| machine.string(process.name) != "[unknown]";
    let told: Vec<_> = machine.processes().iter().filter(is_known).collect();
    let names: Vec<_> = told.iter().map(|process| machine.string(process.name)).collect();
    assert_eq!(told.len(), count("Process/DCStart") + count("Process/Start"), "{names:?}");
    assert_eq!(told.iter().filter(|process| process.end.is_some()).count(), count("Process/Stop"));
    assert_eq!(told.iter().filter(|process| process.start.0 > 0).count(), count("Process/Start"));
    let paths: BTreeSet<(u32, u64, u64, String)> = machine
        .mappings()
        .iter()
        .map(|mapping| {
            let pid = machine.process(mapping.process).pid.0;
            let path = machine.string(machine.module(mapping.module).path).to_lowercase();
            (pid, mapping.start.0, mapping.end.0 - mapping.start.0, path)
        })
        .collect();
    let own = machine.mappings().iter().filter(|mapping| {
        // The kernel's are in other processes, too, as far as these were in it.
        let is_file = machine.module(mapping.module).kind == ModuleKind::File;
        let process = machine.process(mapping.process);
        is_file && is_known(&process) && (mapping.start.0 < 1 << 63 || process.pid.0 == 0)
    });
    assert_eq!(own.count(), count("Image/DCStart") + count("Image/Load"));
    let (mut processes, mut images) = (0, 0);
    for line in baseline.lines().filter(|line| line.starts_with("EVENT ")) {
        if line.contains(" Windows Kernel/Process/") {
            if line.contains("/Defunct ") || line.contains("/PerfCtr") {
                continue;
            }
            let pid = number(value(line, "ProcessID"));
            let process = told.iter().find(|process| u64::from(process.pid.0) == pid).unwrap();
            assert_eq!(machine.string(process.name), value(line, "ImageFileName"));
            let parent = process.parent.map(|parent| u64::from(machine.process(parent).pid.0));
            assert!(parent.is_none_or(|parent| parent == number(value(line, "ParentID"))), "{line}");
            processes += 1;
        } else if line.contains(" Windows Kernel/Image/") {
            let [base, size] = ["ImageBase", "ImageSize"].map(|name| number(value(line, name)));
            let path = value(line, "FileName").trim_end_matches("...").to_lowercase();
            let is_it = |(pid, start, own, known): &(u32, u64, u64, String)| {
                let listed = number(value(line, "PID"));
                (u64::from(*pid) == listed || *pid == 0 && listed == 4)
                    && (*start, *own) == (base, size)
                    && known.starts_with(&path)
            };
            assert!(paths.iter().any(is_it), "{line}");
            images += 1;
        }
    }
    assert!(processes >= 12 && images >= 20, "{processes} {images}");
    // As `PerfView` prints it of the first image that is ntdll.
    let pdbs = (0..machine.modules().len() as u32)
        .filter_map(|module| machine.details(ModuleId(module))?.pdb.clone());
    let is_ntdll =
        |pdb: &Pdb| pdb.path == "wntdll.pdb" && pdb.signature.to_string().starts_with("EC83D8DF555946E0B");
    assert!(pdbs.into_iter().any(|pdb| is_ntdll(&pdb)));
    let system = machine.system();
    assert_eq!((&*system.host, system.cpus, &*system.architecture), ("BRIANROB-W8", 8, "x86_64"));
    assert!(system.kernel.starts_with("Windows 6.2.") && system.distribution == "Windows 8 Pro");
}

/// Versions are told by size and date of a file. Which images have which follows from the bytes of records: `Image` has its base, its size, its
/// process, its date and its path at 0, 8, 16, 24 and 56, `ImageID` base, process and date at 0, 16 and 20, `FileVersion` (opcode 64) size and date
/// at 0 and 4. Neither what decodes events nor what follows images has a part in it.
#[test]
fn images_that_were_there_before_have_their_versions() {
    let Some(bytes) = bytes(NET) else { return };
    let mut file = EtlFile::open(Cursor::new(&*bytes)).unwrap();
    let (mut images, mut dates, mut versions) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
    while let Some(record) = file.next_record().unwrap() {
        let payload = record.payload;
        let word = |at: usize| u32::from_le_bytes(*payload[at..].first_chunk().unwrap());
        let place = || (word(16), u64::from_le_bytes(*payload.first_chunk().unwrap()));
        match (record.provider, record.descriptor.opcode) {
            (IMAGE, 3 | 10) => {
                let path = payload[56..].chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
                let path: Vec<u16> = path.take_while(|unit| *unit > 0).collect();
                let path = String::from_utf16(&path).unwrap().to_lowercase();
                if word(24) > 0 {
                    dates.entry(place()).or_insert_with(BTreeSet::new).insert(word(24));
                }
                images.insert((place(), word(8), path.rsplit('\\').next().unwrap().to_owned()));
            }
            (IMAGE_ID, 0) => {
                dates.entry(place()).or_insert_with(BTreeSet::new).insert(word(20));
            }
            (IMAGE_ID, 64) => {
                versions.insert((word(0), word(4)));
            }
            _ => {}
        }
    }
    // Names of files, with size and date.
    let dated = images.iter().flat_map(|(place, size, name)| {
        dates.get(place).into_iter().flatten().map(move |date| (name.clone(), *size, *date))
    });
    let expected: BTreeSet<_> = dated.filter(|(_, size, date)| versions.contains(&(*size, *date))).collect();

    let Some(imported) = import(NET) else { return };
    let machine = &imported.machine;
    let with_image = machine.modules().iter().zip((0..).map(ModuleId));
    let with_image = with_image.filter_map(|(module, id)| {
        let details = machine.details(id)?;
        let Some(ImageHeader::Dated(key)) = details.image else { panic!("{details:?}") };
        let path = machine.string(module.path).to_lowercase();
        let name = path.rsplit('\\').next().unwrap().to_owned();
        Some(((name, key.size, key.date), details.version.is_some()))
    });
    let with_image: Vec<_> = with_image.collect();
    let found = with_image.iter().filter(|(_, has_version)| *has_version).map(|(image, _)| image.clone());
    let found: BTreeSet<_> = found.collect();
    assert_eq!(found, expected);
    // Without what was there before, and has no dates of its own, there are 166.
    assert_eq!((with_image.len(), found.len()), (709, 704));
}

/// The file's name says what the machine was, and so do each of these: the processor, Windows' edition, and code of the kernel alone.
#[test]
fn the_processor_is_known_by_what_a_trace_has() {
    let Some(bytes) = bytes(NET) else { return };
    let without = |left_out: &[Guid]| {
        let mut etl = EtlFile::open(Cursor::new(&bytes)).unwrap();
        let mut taker = Taker::new(Trace::from(etl.header()), 0);
        while let Some(record) = etl.next_record().unwrap() {
            if !left_out.contains(&record.provider) {
                taker.take(&record);
            }
        }
        taker.finish().machine.system().architecture.clone()
    };
    assert_eq!(without(&[SYS_CONFIG]), "x86_64");
    assert_eq!(without(&[SYSTEM_CONFIG, PERF_INFO, STACK_WALK]), "x86_64");
    assert_eq!(without(&[SYSTEM_CONFIG, SYS_CONFIG]), "x86_64");
}

/// Which samples are in which method, by looking at all methods that were ever told of.
#[test]
fn methods_are_named_by_what_the_runtime_tells() {
    let Some(bytes) = bytes(NET) else { return };
    let mut etl = EtlFile::open(Cursor::new(bytes)).unwrap();
    let (mut methods, mut sampled, mut of_thread) = (Vec::new(), Vec::new(), BTreeMap::new());
    while let Some(record) = etl.next_record().unwrap() {
        match KernelEvent::decode(&record).unwrap() {
            Some(KernelEvent::Sample(sample)) if sample.tid != Tid(0) => sampled.push(sample),
            Some(KernelEvent::ThreadStart(thread) | KernelEvent::ThreadDcStart(thread)) => {
                of_thread.insert(thread.tid, thread.pid.0);
            }
            _ => {}
        }
        if let Some(
            ClrEvent::NamedMethodLoad(method)
            | ClrEvent::NamedMethodUnload(method)
            | ClrEvent::NamedMethodDcStop(method),
        ) = ClrEvent::decode(&record).unwrap()
        {
            let name = format!("{}.{}", method.namespace, method.name);
            methods.push((record.pid.unwrap().0, method.start..method.start + u64::from(method.size), name));
        }
    }
    let mut expected: BTreeMap<(u32, String), u64> = BTreeMap::new();
    for sample in &sampled {
        let Some(pid) = of_thread.get(&sample.tid) else { continue };
        let mut holding = methods
            .iter()
            .filter(|(own, range, _)| own == pid && range.contains(&sample.instruction.0))
            .map(|(.., name)| name);
        if let Some(name) = holding.next().filter(|name| holding.all(|other| other == *name)) {
            *expected.entry((*pid, name.clone())).or_default() += 1;
        }
    }
    let imported = import(NET).unwrap();
    let (machine, symbols) = (&imported.machine, &imported.symbols);
    let mut found: BTreeMap<(u32, String), u64> = BTreeMap::new();
    for sample in samples(machine, "cpu") {
        let leaf = machine.stacks().get(sample.stack)[0];
        if symbols.is_resolved(leaf) {
            let pid = machine.process(machine.thread(sample.thread).process).pid.0;
            *found.entry((pid, symbols.name(leaf).function.to_owned())).or_default() += 1;
        }
    }
    assert!(expected.values().sum::<u64>() > 1000);
    let differing: Vec<_> = expected
        .iter()
        .filter_map(|(key, count)| {
            let own = found.get(key).copied().unwrap_or_default();
            (own.abs_diff(*count) > 1).then_some((key, count, own))
        })
        .collect();
    assert!(differing.is_empty(), "{differing:?}");
    // What the test program is known to do.
    let main = (0..machine.frames().len() as u32)
        .map(FrameId)
        .find(|frame| symbols.name(*frame).function == "Test.Program.Main")
        .unwrap();
    assert!(symbols.name(main).linkage.starts_with("Test.Program.Main "));
}

#[test]
fn a_manifest_tells_of_processes_where_the_kernel_does_not() {
    let Some(imported) = import("Process.etl") else { return };
    let machine = &imported.machine;
    let began = machine.processes().iter().filter(|process| process.start.0 > 0).count();
    let ended = machine.processes().iter().filter(|process| process.end.is_some()).count();
    assert_eq!((began, ended), (4, 4));
    let loads = machine.mappings().iter().filter(|mapping| mapping.since.0 > 0).count();
    assert_eq!(loads, 1115);
    assert_eq!(machine.event_records().len(), 10_344);
}

/// Of events that come when a device is done, and of lists at the beginning and the end, the fields tell whose they are.
#[test]
fn events_are_of_the_processes_that_are_listed() {
    const KINDS: [&str; 6] = [
        "Memory/HardFault",
        "DiskIO/ReadInit",
        "DiskIO/Read",
        "TcpIp/SendIPV6",
        "UdpIp/RecvIPV6",
        "Process/DCStart",
    ];
    let Some(imported) = import(NET) else { return };
    let (machine, baseline) = (&imported.machine, baseline(NET));
    let start = machine.system().start.0;
    let events: Vec<(f64, &str, u64)> = machine
        .event_records()
        .iter()
        .map(|(_, record, _)| {
            let name = machine.string(machine.event_kinds()[usize::from(record.kind.0)].name);
            let pid = machine.process(machine.thread(record.thread).process).pid.0;
            ((record.time.0 as f64 - start as f64) / 1e6, name, u64::from(pid))
        })
        .collect();
    let mut listed = 0;
    for kind in KINDS {
        let name = format!("Windows Kernel/{kind}");
        for line in baseline.lines().filter(|line| line.contains(&format!(" {name} PID="))) {
            let millis: f64 = line[6..].split_once(": ").unwrap().0.replace(',', "").parse().unwrap();
            let pid = number(value(line, "PID"));
            let is_it =
                |(at, own, of): &&(f64, &str, u64)| (at - millis).abs() < 0.001 && *own == name && *of == pid;
            assert!(events.iter().any(|event| is_it(&event)), "{line}");
            listed += 1;
        }
    }
    assert!(listed >= 25, "{listed}");
}
