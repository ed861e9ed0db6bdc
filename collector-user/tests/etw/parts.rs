//! A recording in several files, of which one is named: by the program, against the same in one file.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::data::{bytes, split};

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
    let (told, status) = converted(folder.path());
    assert!(status == Some(1) && told.contains("x.heap.etl"), "{told}");
}
