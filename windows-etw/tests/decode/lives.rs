//! Processes and images.

use std::collections::BTreeSet;

use collector_common::ids::Pid;
use windows_etw::decode::kernel::{IMAGE, IMAGE_ID, KernelEvent};
use windows_etw::decode::state::{ImageLife, Lives, NtPaths};
use windows_etw::decode::windows::WindowsEvent;
use windows_etw::record::EtwRecord;

use crate::baseline::counts;
use crate::data::{baseline, open};

/// The value of `name=` in a line.
fn value<'l>(line: &'l str, name: &str) -> &'l str {
    let (_, rest) = line.split_once(&format!(" {name}=")).unwrap();
    rest.split_once("; ").unwrap().0
}

fn number(text: &str) -> u64 {
    let text = text.replace(',', "");
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// Dates of images by the bytes of records: `Image` has its base, its size, process, checksum and date at 0, 8, 16, 20 and 24, `ImageID` base, size,
/// process and date at 0, 8, 16 and 20. `PerfView` prints some of both in its list, which `grep -E 'DCStart.*TimeDateStamp=0;|ImageID PID'` finds.
#[derive(Default)]
struct Dates {
    /// Of `DCStart`, without a date; with a checksum.
    undated: [usize; 2],
    /// By process and base.
    told: BTreeSet<(Pid, u64, u32)>,
}

impl Dates {
    fn take(&mut self, record: &EtwRecord<'_>) {
        let word = |at: usize| u32::from_le_bytes(*record.payload[at..].first_chunk().unwrap());
        let mut tell = |at| {
            let base = u64::from_le_bytes(*record.payload.first_chunk().unwrap());
            self.told.insert((Pid(word(16)), base, word(at)));
        };
        match (record.provider, record.descriptor.opcode) {
            (IMAGE, 3) if word(24) == 0 => {
                self.undated[0] += 1;
                self.undated[1] += usize::from(word(20) > 0);
            }
            (IMAGE, 3 | 10) => tell(24),
            (IMAGE_ID, 0) => tell(20),
            _ => {}
        }
    }

    /// Those that have none of their own have that of `ImageID`, which is told of each of these.
    fn check(&self, images: &[ImageLife]) {
        assert_eq!(self.undated, [1622, 1620]);
        for image in images {
            assert!(self.told.contains(&(image.pid, image.base, image.timestamp.unwrap())), "{image:?}");
        }
    }
}

#[test]
fn processes_and_images_are_those_of_perfview() {
    let file = "net.4.5.2.x64.etl";
    let Some(mut etl) = open(file) else { return };
    let clock = etl.header().clock;
    let (mut paths, mut lives, mut dates) = (NtPaths::default(), Lives::default(), Dates::default());
    while let Some(record) = etl.next_record().unwrap() {
        dates.take(&record);
        if let Some(event) = KernelEvent::decode(&record).unwrap() {
            paths.learn(&event);
            lives.take(&record, &event, &paths);
        }
    }
    dates.check(lives.images());
    let baseline = baseline(file);
    let count = |name: &str| {
        counts(&baseline)
            .find_map(|(own, count)| (own == format!("Windows Kernel/{name}")).then_some(count))
            .unwrap()
    };
    assert_eq!(lives.left_out(), 0);
    let (processes, images) = (lives.processes(), lives.images());
    let before = |start: Option<i64>| start.is_none();
    assert_eq!(processes.iter().filter(|life| before(life.start)).count() as u64, count("Process/DCStart"));
    assert_eq!(processes.len() as u64, count("Process/DCStart") + count("Process/Start"));
    assert_eq!(processes.iter().filter(|life| life.end.is_some()).count() as u64, count("Process/Stop"));
    assert_eq!(processes.iter().filter(|life| life.end.is_none()).count() as u64, count("Process/DCStop"));
    assert_eq!(images.iter().filter(|life| before(life.start)).count() as u64, count("Image/DCStart"));
    assert_eq!(images.len() as u64, count("Image/DCStart") + count("Image/Load"));
    assert_eq!(images.iter().filter(|life| life.end.is_some()).count() as u64, count("Image/Unload"));
    assert_eq!(images.iter().filter(|life| life.end.is_none()).count() as u64, count("Image/DCStop"));

    let (mut seen, mut mapped) = (BTreeSet::new(), 0);
    for line in baseline.lines().filter(|line| line.starts_with("EVENT ")) {
        let name = line.split_once(": ").and_then(|(_, rest)| rest.split_once(" PID=")).unwrap().0;
        let millis: f64 = line[6..].split_once(": ").unwrap().0.replace(',', "").parse().unwrap();
        let at = |start: Option<i64>| {
            start.is_some_and(|ticks| (clock.nanos(ticks) as f64 / 1e6 - millis).abs() < 0.001)
        };
        let text = |own: &str, printed: &str| match printed.strip_suffix("...") {
            Some(start) => own.starts_with(start),
            None => own == printed,
        };
        let Some(kind) = name.strip_prefix("Windows Kernel/") else { continue };
        match kind {
            "Process/DCStart" | "Process/Start" | "Process/Stop" | "Process/DCStop" => {
                let pid = number(value(line, "ProcessID"));
                let found: Vec<_> = processes.iter().filter(|life| u64::from(life.pid.0) == pid).collect();
                let [life] = found[..] else { panic!("{pid} has {} lives", found.len()) };
                assert_eq!(u64::from(life.parent.0), number(value(line, "ParentID")));
                assert_eq!(&*life.image, value(line, "ImageFileName"));
                assert!(text(&life.command_line, value(line, "CommandLine")), "{life:?}");
                match kind {
                    "Process/DCStart" => assert_eq!(life.start, None),
                    "Process/DCStop" => assert_eq!(life.end, None),
                    "Process/Start" => assert!(at(life.start)),
                    _ => {
                        assert!(at(life.end));
                        assert_eq!(life.exit_status, Some(0));
                    }
                }
                seen.insert(pid);
            }
            "Image/DCStart" | "Image/Load" | "Image/Unload" | "Image/DCStop" => {
                let base = number(value(line, "ImageBase"));
                let pid = number(value(line, "PID"));
                let found = images.iter().find(|life| {
                    // PerfView says that images of all processes are those of process 4.
                    (u64::from(life.pid.0) == pid || pid == 4 && life.pid.0 == 0)
                        && life.base == base
                        && match kind {
                            "Image/DCStart" => life.start.is_none(),
                            "Image/DCStop" => life.end.is_none(),
                            "Image/Load" => at(life.start),
                            _ => at(life.end),
                        }
                });
                let life = found.unwrap_or_else(|| panic!("{line}"));
                assert_eq!(life.size, number(value(line, "ImageSize")));
                assert_eq!(u64::from(life.checksum.unwrap()), number(value(line, "ImageChecksum")));
                assert!(text(&life.path, value(line, "FileName")), "{life:?} {line}");
                mapped += 1;
            }
            _ => {}
        }
    }
    assert_eq!((seen.len(), mapped), (6, 20));
    // Each image is told of twice, when it is met and when it is left; those without a PDB are said to have none.
    let with_pdb = images.iter().filter(|life| life.ids.pdb.is_some()).count() as u64;
    eprintln!("{file}: {} processes, {} images, {with_pdb} with PDB", processes.len(), images.len());
    let ids = |name: &str| {
        let name = format!("KernelTraceControl/ImageID/{name}");
        counts(&baseline).find_map(|(own, count)| (own == name).then_some(count)).unwrap()
    };
    assert_eq!(with_pdb, ids("DbgID_RSDS") / 2);
    // ntdll's PDB, as PerfView prints it of the first image.
    let ntdll = images.iter().find(|life| life.base == 0x7771_0000).unwrap();
    let pdb = ntdll.ids.pdb.as_ref().unwrap();
    assert!(pdb.signature.to_string().starts_with("ec83d8df-5559-46e0-b"));
    assert_eq!((pdb.age, &*pdb.path), (2, "wntdll.pdb"));
    assert_eq!(ntdll.ids.original_name.as_deref(), Some("ntdll.dll"));
}

/// A trace of a manifest's provider: when a process was made it says itself, too.
#[test]
fn processes_and_images_by_manifest() {
    let Some(mut etl) = open("Process.etl") else { return };
    let clock = etl.header().clock;
    let (paths, mut lives) = (NtPaths::default(), Lives::default());
    let (mut loads, mut unloads, mut created, mut exited) = (0, 0, Vec::new(), Vec::new());
    while let Some(record) = etl.next_record().unwrap() {
        let Some(event) = WindowsEvent::decode(&record).unwrap() else { continue };
        lives.take_manifest(&record, &event, &paths);
        match event {
            WindowsEvent::ImageLoad(_) => loads += 1,
            WindowsEvent::ImageUnload(_) => unloads += 1,
            WindowsEvent::ProcessStart(process) => created.push((process.pid, process.created)),
            WindowsEvent::ProcessStop(process) => exited.push((process.pid, process.exited)),
            _ => {}
        }
    }
    assert_eq!((loads, unloads), (1115, 1153));
    let unix = |ticks: Option<i64>| clock.unix_nanos(ticks.unwrap());
    for (pid, time) in created {
        let life = lives.processes().iter().find(|life| life.pid == pid && life.start.is_some()).unwrap();
        assert!((unix(life.start) - time.unix_nanos()).abs() < 50_000_000, "{life:?} {time}");
        assert!(life.image.to_lowercase().ends_with(".exe"));
    }
    for (pid, time) in exited {
        let life = lives.processes().iter().find(|life| life.pid == pid && life.end.is_some()).unwrap();
        assert!((unix(life.end) - time.unix_nanos()).abs() < 50_000_000, "{life:?} {time}");
    }
    // What is unmapped was mapped, in the trace or before.
    let images = lives.images();
    let (new, old): (Vec<_>, Vec<_>) = images.iter().partition(|life| life.start.is_some());
    eprintln!(
        "Process.etl: {} processes, {loads} images mapped, {} before",
        lives.processes().len(),
        old.len()
    );
    assert_eq!(new.len(), loads);
    assert!(old.iter().all(|life| life.end.is_some()));
    assert!(images.iter().all(|life| life.base % 0x1000 == 0 && life.size % 0x1000 == 0));
}
