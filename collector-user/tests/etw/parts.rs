//! A recording in several files, of which one is named: by the program, against the same in one file.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Output};

use collector_common::record::ExportMachine;
use collector_user::etw::{Difference, Etl, PartsError};
use export::import::ImportFormat as _;

use crate::data::{bytes, split};
use crate::file::{self, Buffer, System, TICKS, event, perf_info};
use crate::made::Payload;

const FILE: &str = "net.4.5.2.x64.etl";
/// In a file: `WMI_BUFFER_HEADER`, then the header of the first record, with its time, then `TRACE_LOGFILE_HEADER`.
const RECORD: usize = 72;
const TIME: usize = RECORD + 16;
const HEADER: usize = RECORD + 32;

fn collector(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_collector")).args(args).current_dir(folder).output().unwrap()
}

/// What it says and its status.
fn converted(folder: &Path) -> (String, Option<i32>) {
    let output = collector(folder, &["convert", "x.etl", "-o", "x.folded"]);
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

fn set_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..][..8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn parts_beside_a_trace_are_read_with_it() {
    let Some(bytes) = bytes(FILE) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("x.etl"), &bytes).unwrap();
    let (told, _) = converted(folder.path());
    assert!(!told.contains("read with"), "{told}");
    let whole = fs::read_to_string(at("x.folded")).unwrap();
    let report = collector(folder.path(), &["report", "x.etl"]).stdout;

    for part in ["x.heap.etl", "x.kernel.etl"] {
        let [one, other] = split(&bytes);
        fs::write(at("x.etl"), one).unwrap();
        let (_, status) = converted(folder.path());
        let half = fs::read_to_string(at("x.folded")).unwrap();
        assert!(status == Some(0) && half.lines().count() < whole.lines().count());
        fs::write(at(part), other).unwrap();
        let (told, _) = converted(folder.path());
        assert_eq!(
            told.lines().filter(|line| line.starts_with(&format!("read with {part}"))).count(),
            1,
            "{told}"
        );
        assert_eq!(fs::read_to_string(at("x.folded")).unwrap(), whole);
        let of_parts = collector(folder.path(), &["report", "x.etl"]);
        assert!(of_parts.stdout == report && !report.is_empty());
        assert!(String::from_utf8(of_parts.stderr).unwrap().contains(part));
        fs::remove_file(at(part)).unwrap();
    }
}

#[test]
fn what_can_be_no_part_is_refused_by_name() {
    let Some(bytes) = bytes(FILE) else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let [one, other] = split(&bytes);
    fs::write(at("x.etl"), &one).unwrap();
    let refused = |part: &[u8]| {
        fs::write(at("x.heap.etl"), part).unwrap();
        let (told, status) = converted(folder.path());
        assert!(status == Some(1) && told.contains("x.heap.etl") && !at("x.folded").exists(), "{told}");
        told
    };
    let with = |at: usize, change: fn(u64) -> u64| {
        let mut part = other.clone();
        set_u64(&mut part, at, change(u64_at(&other, at)));
        part
    };
    // 0xf8 boot, 0x100 ticks in a second; 0x10 the end, which is told here.
    assert!(u64_at(&other, HEADER + 0x10) > u64_at(&other, HEADER + 0x108));
    assert!(refused(&with(HEADER + 0xf8, |boot| boot + 10_000_000)).contains("booted at another time"));
    assert!(refused(&with(HEADER + 0x100, |frequency| frequency * 2)).contains("its clock is another"));
    // The trace takes 12 s, at some millions of ticks a second.
    let hour: fn(u64) -> u64 = |ticks| ticks + 10_000_000 * 3600;
    assert!(refused(&with(TIME, hour)).contains("recorded at another time"));
    assert!(refused(b"no trace").contains("can't be read"));
    fs::remove_file(at("x.heap.etl")).unwrap();
    fs::create_dir(at("x.heap.etl")).unwrap();
    let no_file = |folder: &Path| {
        let (told, status) = converted(folder);
        assert!(
            status == Some(1) && told.contains("x.heap.etl") && told.contains("no regular file"),
            "{told}"
        );
    };
    no_file(folder.path());
    fs::remove_dir(at("x.heap.etl")).unwrap();
    // Nobody writes to it.
    assert!(Command::new("mkfifo").arg(at("x.heap.etl")).status().unwrap().success());
    no_file(folder.path());
}

/// A trace whose first record came so many seconds later than that of others of the same boot, with these records.
fn later(seconds: i64, records: &[Vec<u8>]) -> Vec<u8> {
    let trace = file::Trace::default();
    let mut bytes = trace.file(&[Buffer { size: 4096, ..Buffer::default() }.bytes(records)]);
    let ticks = seconds * 10_000_000;
    // 0x10 the end, 0x108 the start.
    for at in [TIME, HEADER + 0x10, HEADER + 0x108] {
        let moved = u64_at(&bytes, at).checked_add_signed(ticks).unwrap();
        set_u64(&mut bytes, at, moved);
    }
    bytes
}

/// `PerfView` asks .NET for its methods when the recording is over.
#[test]
fn methods_that_are_told_when_it_is_over_have_names() {
    const CODE: u64 = 0x20_0000;
    /// The first record of the whole trace.
    const BEGIN: i64 = TICKS + 100 * 10_000_000;
    let made = || Payload::default();
    let kernel = |group, opcode, version, at: i64, payload: Payload| {
        let system = System { group, opcode, version, pid: 70, tid: 71, ..System::default() };
        system.bytes(BEGIN + at, &payload.0)
    };
    let process = made().u64(&[0x1000]).u32(&[70, 4, 1, 0, 0]).u8(b"made.exe\0").wide("made.exe");
    let thread = made().u32(&[70, 71]).u64(&[0; 7]).u32(&[0]).u8(&[8, 5, 2, 0]).wide("");
    let sample = made().u64(&[CODE + 8]).u32(&[71]).u8(&[1, 0, 0, 0]);
    let whole = later(
        100,
        &[
            kernel(3, 1, 2, 1, process),
            kernel(5, 1, 3, 2, thread),
            perf_info(17, 2, (15, 46), BEGIN + 10, &sample.0),
        ],
    );
    // `MethodDCEndVerbose` of the rundown provider, 6 s after a trace of 5 s.
    let method =
        made().u64(&[CODE, 1, CODE]).u32(&[0x100, 0, 0]).wide("Made.Type").wide("Late").wide("").u16(9);
    let rundown = |seconds: i64| {
        let mut told = event(19, 0, TICKS + seconds * 10_000_000 + 1, b"", &method.0);
        let provider = 0x1c02_69a6_50c4_0946_a035_5af5_9af4_df18_u128;
        told[0x18..0x28].copy_from_slice(&provider.to_be_bytes());
        told[0x28..0x2b].copy_from_slice(&[144, 0, 1]);
        told[0xc..0x10].copy_from_slice(&70_u32.to_le_bytes());
        later(seconds, &[told])
    };
    let import = |name: &str, seconds| {
        let [whole, rundown] = [whole.clone(), rundown(seconds)].map(Cursor::new);
        Etl.import_with_parts(ExportMachine::default(), whole, vec![(name.into(), rundown)], 1 << 20)
    };
    let imported = import("x.clrRundown.etl", 106).unwrap();
    let (machine, symbols) = (&imported.machine, &imported.symbols);
    let samples: Vec<_> = machine.samples().iter().collect();
    let [frame] = machine.stacks().get(samples[0].stack) else { panic!("one frame") };
    assert_eq!((samples.len(), symbols.name(*frame).function), (1, "Made.Type.Late"));
    // It is as long as it was without.
    let alone = Etl.import(&mut Cursor::new(whole.clone())).unwrap().machine;
    assert_eq!((machine.system().start, machine.system().end), (alone.system().start, alone.system().end));

    let refused = |name, seconds| match import(name, seconds) {
        Err(PartsError::Other { why, .. }) => Some(why),
        _ => None,
    };
    assert_eq!(refused("x.kernel.etl", 106), Some(Difference::Time));
    assert_eq!(refused("x.clrRundown.etl", 94), Some(Difference::Time));
}
