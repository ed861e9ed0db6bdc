//! What `perf` prints of files that are written here, and of recordings that are copied.
//!
//! As for `recorded`, a machine where `perf` can't record is skipped, or fails with `COLLECTOR_LIVE=require`.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Cursor};
use std::path::{Path, PathBuf};
use std::process::Command;

use collector_common::perf::ByteOrder;
use collector_common::perf::file::{FileError, FileReader, copy};

use crate::files::shared;
use crate::recorded::{can_record, folder, record, recorded_by};
use crate::written::recording;

fn perf(arguments: &[&str], file: &Path) -> String {
    let output = Command::new("perf").args(arguments).arg("-i").arg(file).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?} {}: {errors}", file.display());
    String::from_utf8(output.stdout).unwrap()
}

fn script(file: &Path) -> String {
    script_with("+period", file)
}

fn script_with(fields: &str, file: &Path) -> String {
    let events = ["--show-task-events", "--show-mmap-events", "--show-switch-events"];
    perf(&[&["script", "-F", fields], &events[..]].concat(), file)
}

const OF_PROGRAMS: &str = "comm,dso,sym";

/// Without what is said around the table, of which a part is chosen at random.
fn table(sorted_by: &str, file: &Path) -> String {
    let report = perf(&["report", "--stdio", "-s", sorted_by], file);
    let lines = report.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Without where the parts of the file are, when it was written, and how it was packed.
fn header(file: &Path) -> Vec<String> {
    const OF_THE_FILE: [&str; 6] =
        ["# captured on", "# data ", "# feat offset", "# event : ", "# compressed", "# missing features"];
    let report = perf(&["report", "--header-only", "-I"], file);
    let lines = report.lines().filter(|line| !OF_THE_FILE.iter().any(|start| line.starts_with(start)));
    lines.map(str::to_owned).collect()
}

fn place(name: &str, which: &str) -> PathBuf {
    folder().join(format!("{name}.{which}.data"))
}

fn copy_file(from: &Path, to: &Path) -> Option<FileError> {
    let reader = FileReader::open(BufReader::new(File::open(from).unwrap())).unwrap();
    copy(reader, BufWriter::new(File::create(to).unwrap())).unwrap().cut_off
}

/// `recording` is what the lines say: its two samples are in the order of their times.
#[test]
fn what_was_written() {
    if !can_record() {
        return;
    }
    for (order, name) in [(ByteOrder::Little, "little"), (ByteOrder::Big, "big")] {
        let path = place(name, "written");
        fs::write(&path, recording(order)).unwrap();
        // `perf_event__mmap2_swap` of perf 6.1 leaves the protection as it is.
        let protection = if order == ByteOrder::NATIVE { "r-xp" } else { "---p" };
        let mmap = "PERF_RECORD_MMAP2 4711/4712: [0x400000(0x1000) @ 0 08:01 5 0]:";
        assert_eq!(
            script(&path).lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>(),
            [
                "baker  4712     1.000000: PERF_RECORD_COMM: baker:4711/4712",
                &format!("baker  4712     1.000001: {mmap} {protection} /no/such/bakery"),
                "baker  4712     1.250000:        250 page-faults:            400456 [unknown] (/no/such/bakery)",
                "baker  4712     1.500000:        250   cpu-clock:            400123 [unknown] (/no/such/bakery)",
            ],
            "{name}"
        );
        let header = header(&path);
        for line in [
            "# hostname : oven",
            "# os release : 6.1.0-bread",
            "# perf version : 6.1.1",
            "# arch : x86_64",
            "# nrcpus online : 6",
            "# nrcpus avail : 8",
            "# cpudesc : Rye 9000",
            "# cpuid : GenuineRye,6,1,2",
            "# total memory : 1048576 kB",
            "# cmdline : perf record bake ",
            "# node0 meminfo  : total = 1048576 kB, free = 524288 kB",
            "# node0 cpu list : 0-7",
            "#  L1 Data                 32K [0,4]",
            "# pmu mappings: software = 1",
            "# group: dough{cpu-clock,page-faults}",
            "# time of first sample : 1.250000",
            "# time of last sample : 1.500000",
            "# clockid frequency: 1000 MHz",
            "# clockid: monotonic (1)",
        ] {
            assert!(header.iter().any(|printed| printed == line), "{name} {line}: {header:#?}");
        }
        assert!(table(OF_PROGRAMS, &path).contains("baker    bakery"), "{name}");
        let build_ids = perf(&["buildid-list"], &path);
        assert_eq!(build_ids.trim(), "0123456789abcdef303132333435363738396162 /no/such/bakery");
    }
}

#[test]
fn a_copy_is_shown_as_the_recording() {
    if !can_record() {
        return;
    }
    let workload = "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; ls / >/dev/null; (exit 0) & wait";
    let recordings: [(&str, &[&str]); 8] = [
        ("plain", &["-e", "cpu-clock", "-F", "1999", "-g"]),
        ("stacks", &["-e", "cpu-clock", "-F", "997", "--call-graph", "dwarf,1024"]),
        ("tracepoints", &["-e", "sched:sched_switch", "-e", "cpu-clock"]),
        ("group", &["-e", "{cpu-clock,page-faults}:S"]),
        ("machine", &["-a", "-e", "cpu-clock", "--switch-events"]),
        ("packed", &["-e", "cpu-clock", "-F", "4999", "-z"]),
        ("clock", &["-e", "cpu-clock", "-k", "mono"]),
        ("build ids", &["-e", "cpu-clock", "--buildid-mmap"]),
    ];
    for (name, options) in recordings {
        let (from, to) = (place(name, "from"), place(name, "copy"));
        record(&from, options, workload).unwrap();
        assert!(copy_file(&from, &to).is_none(), "{name}");
        // Names are looked up when they are shown: those of the whole machine's programs may be others a moment later.
        let is_ours = !options.contains(&"-a");
        let (fields, sorted_by) =
            if is_ours { ("+period", OF_PROGRAMS) } else { ("+period,-sym,-symoff,-dso", "pid,comm") };
        let printed = script_with(fields, &from);
        assert!(printed.lines().count() > 10, "{name}: {printed}");
        assert!(printed == script_with(fields, &to), "{name}");
        assert!(table(sorted_by, &from) == table(sorted_by, &to), "{name}");
        assert_eq!(header(&from), header(&to), "{name}");
        assert_eq!(perf(&["buildid-list"], &from), perf(&["buildid-list"], &to), "{name}");
    }
}

/// A stream comes out as a file, with the names of its tracepoints' fields.
#[test]
fn a_copied_stream_is_shown_as_the_stream() {
    if !can_record() {
        return;
    }
    for (name, options) in [
        ("stream", &["-e", "cpu-clock", "-F", "1999"][..]),
        ("stream of tracepoints", &["-e", "sched:sched_switch", "-e", "cpu-clock"]),
        ("packed stream", &["-e", "cpu-clock", "-F", "1999", "-z"]),
    ] {
        let (from, to) = (place(name, "from"), place(name, "copy"));
        let mut recorder = Command::new("perf");
        recorder.args(["record", "-q", "-N", "-o", "-"]).args(options).args(["--", "ls", "/proc"]);
        let output = recorded_by(recorder.stdout(File::create(&from).unwrap())).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // What `ls` printed is behind the records, where `perf` stops reading too.
        copy_file(&from, &to);
        let printed = script(&from);
        assert!(printed.contains("cpu-clock:"), "{name}: {printed}");
        assert_eq!(printed, script(&to), "{name}");
    }
}

/// The attributes in these have 8 bytes more than perf 6.1 takes: zeros, which a copy leaves out. Here they are
/// taken out by hand.
#[test]
fn copies_of_recordings_of_newer_versions() {
    if !can_record() {
        return;
    }
    for name in ["sleep.data", "sleep.compressed.data"] {
        let Some(mut bytes) = shared(name) else { continue };
        let (from, to) = (place(name, "from"), place(name, "copy"));
        let copied = copy(FileReader::open(Cursor::new(&bytes)).unwrap(), File::create(&to).unwrap());
        assert!(copied.unwrap().cut_off.is_none());
        let attr = bytes[24] as usize;
        assert_eq!(
            (bytes[16], bytes[32], bytes[attr + 4], &bytes[attr + 128..attr + 136]),
            (152, 152, 136, &[0; 8][..])
        );
        (bytes[16], bytes[32], bytes[attr + 4]) = (144, 144, 128);
        bytes.copy_within(attr + 136..attr + 152, attr + 128);
        fs::write(&from, &bytes).unwrap();
        assert!(script(&from).lines().count() > 10, "{name}");
        assert_eq!(script(&from), script(&to), "{name}");
        assert_eq!(header(&from), header(&to), "{name}");
    }
}

/// perf 6.1 knows the older form of packed records only, which is the newer one without the size before and the filling
/// behind; and it takes what the recorder said to its user, behind the records, for a damaged one.
#[test]
fn a_copy_of_a_stream_with_the_newer_packed_records() {
    let Some(bytes) = shared("sleep.compressed2.pipe.data") else { return };
    if !can_record() {
        return;
    }
    let (from, to) = (place("compressed2", "from"), place("compressed2", "copy"));
    let copied = copy(FileReader::open(Cursor::new(&bytes)).unwrap(), File::create(&to).unwrap());
    assert!(matches!(copied.unwrap().cut_off, Some(FileError::CutOff { .. })));
    let (header, mut rest) = bytes.split_at(16);
    let mut older = header.to_vec();
    loop {
        let kind = u32::from_le_bytes(rest[..4].try_into().unwrap());
        if kind > 100 {
            break;
        }
        let size = u16::from_le_bytes([rest[6], rest[7]]);
        let (record, behind) = rest.split_at(size.into());
        if kind == 83 {
            let len = u16::from_le_bytes([record[8], record[9]]);
            older.extend([81, 0, 0, 0, record[4], record[5]]);
            older.extend((len + 8).to_le_bytes());
            older.extend(&record[16..16 + usize::from(len)]);
        } else {
            older.extend(record);
        }
        rest = behind;
    }
    fs::write(&from, older).unwrap();
    assert!(script(&from).lines().count() > 5);
    assert_eq!(script(&from), script(&to));
}
