//! Files of which ETW lost a part: what is told of that, in the recording and in what is written of it.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use collector_common::record::{EventRecords, ExportMachine};
use collector_user::etw::{Asking, Etl, Lost, Recorded, RecordedPart};
use export::import::{ImportFormat as _, Imported};
use windows_etw::etl::EtlFile;

use crate::file::{Buffer, TICKS, Trace, event, perf_info};
use crate::shown;

/// Flags of a buffer: its CPU is a number, and events or buffers were lost before it.
const CPU_IS_NUMBER: u16 = 0x20;
const EVENTS_LOST: u16 = 2;
const BUFFERS_LOST: u16 = 4;

fn import(bytes: &[u8]) -> Imported {
    Etl.import_with_events(&mut Cursor::new(bytes.to_vec()), EventRecords::LIMIT).unwrap()
}

/// `PerfInfo/Sample` of thread 71: address, thread, count and flags.
fn sample(at: i64) -> Vec<u8> {
    let payload = [&0x10_0000_u64.to_le_bytes()[..], &71_u32.to_le_bytes(), &[1, 0, 0, 0]].concat();
    perf_info(17, 2, (15, 46), TICKS + at, &payload)
}

/// `Thread/CSwitch`: the old thread's state is 5 if it waits.
fn switch(at: i64, old: u32, new: u32) -> Vec<u8> {
    let (old_is_idle, threads) = (old == 0, [new, old].map(u32::to_le_bytes).concat());
    let state = if old_is_idle { 2 } else { 5 };
    perf_info(17, 2, (5, 36), TICKS + at, &[&threads[..], &[8, 8, 0, 0, 4, 1, state, 0], &[0; 8]].concat())
}

/// Two buffers with three samples; the second has these flags.
fn file(trace: Trace, flags: u16) -> Vec<u8> {
    let first = Buffer::default().bytes(&[sample(10), sample(20)]);
    let second = Buffer { flags: CPU_IS_NUMBER | flags, ..Buffer::default() }.bytes(&[sample(900)]);
    trace.file(&[first, second])
}

#[test]
fn what_was_lost_is_counted_by_its_cause() {
    let told = |bytes: &[u8]| {
        let Imported { machine, left_out, .. } = import(bytes);
        (machine.system().lost, machine.system().account[0].clone(), left_out.join("\n"))
    };
    let (lost, account, left_out) = told(&file(Trace::default(), 0));
    assert_eq!((lost, account.as_str()), (Some(0), "none lost"));
    assert!(!left_out.contains("lost"), "{left_out}");

    let trace = Trace { events_lost: 7, buffers_lost: 3, ..Trace::default() };
    let (lost, account, left_out) = told(&file(trace, EVENTS_LOST));
    assert_eq!((lost, account.as_str()), (Some(10), "10 lost (ring_full 7, buffer_lost 3)"));
    for line in [
        "7 events were lost while it was recorded: there was no room for them; record fewer kinds of events, or sample less often",
        "3 buffers of events were lost while it was recorded: they were not written in time; record to a faster disk, or fewer kinds of events",
        "1 buffers say that events were lost before them",
    ] {
        assert!(left_out.lines().any(|told| told == line), "{line}: {left_out}");
    }

    // A session that was not ended wrote no counts.
    let (lost, account, _) = told(&file(Trace::default(), BUFFERS_LOST));
    assert_eq!((lost, account.as_str()), (Some(1), "1 lost (ring_full 1)"));
    // Of three buffers one is not there.
    let whole = file(Trace::default(), 0);
    let (lost, account, _) = told(&whole[..whole.len() - 512]);
    assert_eq!((lost, account.as_str()), (Some(1), "1 lost (buffer_lost 1)"));
    // A record of no size ends its buffer.
    let mut spoilt = whole.clone();
    let at = whole.len() - 512 + 72;
    spoilt[at + 4..at + 6].copy_from_slice(&[0, 0]);
    let (lost, account, _) = told(&spoilt);
    assert_eq!((lost, account.as_str()), (Some(1), "1 lost (malformed 1)"));
    let machine = import(&spoilt).machine;
    let place = format!(
        "the first place that is damaged: in the buffer at byte {} there is no record at its byte 72",
        whole.len() - 512
    );
    assert!(machine.system().account.contains(&place), "{:?}", machine.system().account);
}

/// Files of sessions that lost something, one of which is spoilt, too: `convert` and `run` count the same.
#[test]
fn what_several_files_lack_is_added_up() {
    let lossy = |events_lost, buffers_lost| {
        file(Trace { events_lost, buffers_lost, ..Trace::default() }, EVENTS_LOST)
    };
    let (first, mut second) = (lossy(7, 3), lossy(1, 2));
    // A record of no size ends its buffer.
    let at = second.len() - 512 + 72;
    second[at + 4..at + 6].copy_from_slice(&[0, 0]);
    let all = [first, second, file(Trace::default(), BUFFERS_LOST)];
    let expected = "15 lost (ring_full 9, malformed 1, buffer_lost 5)";

    let [first, second, third] = all.clone().map(Cursor::new);
    let parts = vec![("x.kernel.etl".into(), second), ("x.heap.etl".into(), third)];
    let machine = ExportMachine::default();
    let imported = Etl.import_with_parts(machine, first, parts, EventRecords::LIMIT).unwrap();
    let system = imported.machine.system();
    assert_eq!((system.lost, system.account[0].as_str()), (Some(15), expected));
    let warned = |line: &str| imported.left_out.iter().any(|told| told.starts_with(line));
    assert!(warned("7 events were lost") && warned("1 events were lost"), "{:?}", imported.left_out);

    let part = |bytes: Vec<u8>| {
        let file = EtlFile::open(Cursor::new(bytes)).unwrap();
        RecordedPart { file, lost: Lost::default() }
    };
    let recorded = Recorded::read(all.map(part).into(), &Asking::default()).unwrap();
    let system = recorded.machine.system();
    assert_eq!((system.lost, system.account[0].as_str()), (Some(15), expected));
    assert_eq!(recorded.stats.ledger.to_string(), expected);
}

/// Who has the only CPU from when on; 0 is nobody. All that is there of a thread's waits follows from it.
const SCHEDULE: [(i64, u32); 14] = [
    (100, 71),
    (130, 72),
    (145, 0),
    (200, 71),
    (210, 73),
    (260, 71),
    (300, 72),
    (340, 0),
    (390, 73),
    (410, 72),
    (470, 71),
    (520, 73),
    (560, 0),
    (600, 71),
];

/// From when to when a thread is off the CPU; the last time may not end.
fn waits(of: u32) -> Vec<(i64, i64)> {
    let mut waits = Vec::new();
    let mut gone = None;
    for pair in SCHEDULE.windows(2) {
        let [(_, old), (at, new)] = pair else { unreachable!("two of them") };
        if *new == of {
            waits.extend(gone.take().map(|gone| (gone, *at)));
        }
        if *old == of {
            gone = Some(*at);
        }
    }
    waits.extend(gone.map(|gone| (gone, i64::MAX)));
    waits
}

/// Times off the CPU of a thread as they are told, in ticks: from when to when, and whether that is the end.
fn told(switches: [&[Vec<u8>]; 2], flags: u16) -> Vec<(u32, (i64, i64), bool)> {
    let size = 4096;
    let first = Buffer { size, ..Buffer::default() }.bytes(switches[0]);
    let second = Buffer { size, flags: CPU_IS_NUMBER | flags, ..Buffer::default() }.bytes(switches[1]);
    let Imported { machine, .. } = import(&Trace::default().file(&[first, second]));
    // The clock of the file counts units of 100 ns.
    let ticks = |nanos: u64| i64::try_from((nanos - machine.system().start.0) / 100).unwrap();
    let of = |it: shown::Shown| {
        let (at, took) = (ticks(it.at), it.value / 100);
        (it.tid, (at, at + took), !it.attributes.contains("cut=yes"))
    };
    shown::samples(&machine, "off_cpu").into_iter().map(of).collect()
}

#[test]
fn a_wait_is_cut_where_a_buffer_with_switches_was_lost() {
    let all: Vec<Vec<u8>> = SCHEDULE.windows(2).map(|pair| switch(pair[1].0, pair[0].1, pair[1].1)).collect();
    for begin in 1..all.len() {
        for end in begin..all.len() {
            let flags = if end > begin { BUFFERS_LOST } else { 0 };
            let told = told([&all[..begin], &all[end..]], flags);
            for of in [71, 72, 73] {
                let of_it: Vec<_> = told.iter().filter(|(tid, ..)| *tid == of).collect();
                for (_, (since, until), is_whole) in &of_it {
                    let is_true = |wait: &(i64, i64)| {
                        let is_end = if *is_whole { wait.1 == *until } else { wait.1 >= *until };
                        wait.0 == *since && is_end
                    };
                    assert!(waits(of).iter().any(is_true), "{of} without {begin}..{end}: {of_it:?}");
                }
                if begin == end {
                    let whole: Vec<_> = waits(of).into_iter().filter(|wait| wait.1 < i64::MAX).collect();
                    assert_eq!(of_it.iter().map(|it| it.1).collect::<Vec<_>>(), whole);
                }
            }
        }
    }
    // 73 has the CPU from 210 to 260, and from 390: that is lost. It went once more at 410, of which nothing tells.
    let lost = told([&all[..6], &all[10..]], BUFFERS_LOST);
    let of_it: Vec<_> = lost.iter().filter(|(tid, ..)| *tid == 73).map(|it| (it.1, it.2)).collect();
    assert_eq!(of_it, [((260, 300), false)]);
}

/// A buffer may tell of a loss and have nothing of the kernel's itself: it was flushed as it was, or others wrote into it.
#[test]
fn a_wait_is_cut_behind_a_buffer_without_switches_that_tells_of_a_loss() {
    let all: Vec<Vec<u8>> = SCHEDULE.windows(2).map(|pair| switch(pair[1].0, pair[0].1, pair[1].1)).collect();
    // The CPU is idle at both ends of what is lost, so that the switches themselves don't tell of it. Of 71 it is
    // known that it is off from 130 to 145, and of 72, which leaves then, nothing.
    let (before, behind) = (&all[..2], &all[7..]);
    let at = |at: i64| event(19, 0, TICKS + at, &[], &[]);
    let cut = |before: &[Vec<u8>], between: &[Vec<u8>], flags: u16, cpu: u16| {
        let size = 4096;
        let whole = |records: &[Vec<u8>]| Buffer { size, ..Buffer::default() }.bytes(records);
        let between = Buffer { size, cpu, flags: CPU_IS_NUMBER | flags, ..Buffer::default() }.bytes(between);
        let imported = import(&Trace::default().file(&[whole(before), between, whole(&[]), whole(behind)]));
        let all = shown::samples(&imported.machine, "off_cpu");
        all.iter().filter(|it| it.attributes.contains("cut=yes")).count()
    };
    assert_eq!(
        (told([before, behind], 0).iter().filter(|(.., is_whole)| !is_whole).count(), cut(before, &[], 0, 0)),
        (0, 0)
    );
    let mixed = [&[at(1)], before].concat();
    for flags in [EVENTS_LOST, BUFFERS_LOST] {
        assert_eq!(cut(before, &[], flags, 0), 1);
        assert_eq!(cut(&mixed, &[at(300)], flags, 0), 1);
        // Of a CPU that tells nothing more, and of a file of two sessions of which the providers' has lost something.
        assert_eq!(cut(before, &[], flags, 1), 0);
        assert_eq!(cut(before, &[at(300)], flags, 0), 0);
    }
}

#[test]
fn outputs_and_the_summary_tell_what_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let trace = Trace { events_lost: 7, buffers_lost: 3, ..Trace::default() };
    fs::write(folder.path().join("x.etl"), file(trace, 0)).unwrap();
    let collector = |args: &[&str]| {
        let mut collector = Command::new(env!("CARGO_BIN_EXE_collector"));
        let output = collector.args(args).current_dir(folder.path()).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{told}");
        told
    };
    let told = collector(&["convert", "x.etl", "-o", "x.jsonl", "-o", "x.nettrace", "-o", "x.pb.gz"]);
    assert!(told.contains("3 samples, 10 lost (ring_full 7, buffer_lost 3)\n"), "{told}");
    assert!(told.contains("warning: 3 buffers of events were lost while it was recorded: "), "{told}");
    assert_eq!(lost_of(&folder.path().join("x.jsonl")), Some(10));
    for other in ["x.nettrace", "x.pb.gz"] {
        let told = collector(&["convert", other, "-o", "back.jsonl"]);
        assert!(told.contains(" samples, 10 lost (ring_full 7, buffer_lost 3)\n"), "{other}: {told}");
        assert_eq!(lost_of(&folder.path().join("back.jsonl")), Some(10), "{other}");
    }
}

/// What JSON lines tell of the whole recording.
fn lost_of(path: &Path) -> Option<u64> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.find(|line| line["type"] == "recording").and_then(|line| line["lost"].as_u64())
}
