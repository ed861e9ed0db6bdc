//! One file of each reader, and what spoils it: where, and what is to be said then.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A spoilt file.
pub(crate) struct Broken {
    pub(crate) bytes: Vec<u8>,
    /// What has to be said, in this order: the cause, and behind a semicolon what helps.
    pub(crate) cause: &'static str,
    pub(crate) remedy: &'static str,
}

/// A reader, by what it reads.
pub(crate) struct Reader {
    /// As `collector list formats` has it.
    pub(crate) name: &'static str,
    /// What its errors call it.
    pub(crate) called: &'static str,
    pub(crate) ending: &'static str,
    pub(crate) whole: &'static [u8],
    /// Whether `report` reads it, too.
    pub(crate) is_reported: bool,
    /// Whether a file without any byte is one.
    pub(crate) may_be_empty: bool,
    pub(crate) broken: Vec<Broken>,
}

const AGAIN: &str = "copy it again";

fn broken(bytes: Vec<u8>, cause: &'static str, remedy: &'static str) -> Broken {
    Broken { bytes, cause, remedy }
}

/// Its first bytes.
fn cut(whole: &[u8], length: usize) -> Vec<u8> {
    whole[..length].to_vec()
}

/// With other bytes at a place.
fn with(whole: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut changed = whole.to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    changed
}

/// Text with the first of some words changed.
fn with_text(whole: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = str::from_utf8(whole).unwrap();
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1).into_bytes()
}

pub(crate) fn packed(plain: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(plain).unwrap();
    packed.finish().unwrap()
}

/// All of them.
pub(crate) fn readers() -> Vec<Reader> {
    vec![perf_data(), nettrace(), jfr(), firefox(), pprof(), folded(), etl(), minidump()]
}

fn perf_data() -> Reader {
    let whole = include_bytes!("../../../collector-common/tests/fuzzing/seeds/perf_data/plain");
    Reader {
        name: "perf.data",
        called: "perf.data",
        ending: ".perf.data",
        whole,
        is_reported: false,
        may_be_empty: false,
        broken: vec![
            broken(cut(whole, 5), "cut short: it has 5 of the 8 bytes that perf.data begins with", AGAIN),
            broken(cut(whole, 12), "cut short: it ends at byte 12, in its header", AGAIN),
            broken(cut(whole, 60), "cut off in its header at byte 16: 44 bytes of 88", AGAIN),
            broken(cut(whole, 200), "cut off in its list of events at byte 120: 80 bytes of 144", AGAIN),
            broken(
                with(whole, 0, b"QERFILE2"),
                "begins with the bytes 51 45 52 46",
                "name a file of these: perf.data",
            ),
            // `attr_size`.
            broken(with(whole, 16, &[143]), "144 bytes, which are no entries of 143 each", AGAIN),
            // `attr.size` of the first event.
            broken(with(whole, 124, &[1]), "attributes at byte 120 of the perf.data can't be read", AGAIN),
            broken(
                with(whole, 0, b"PERFFILE"),
                "of the first version",
                "record it again with perf of Linux 2.6.36",
            ),
        ],
    }
}

fn nettrace() -> Reader {
    let whole = include_bytes!("../../../export/tests/fuzzing/seeds/nettrace/recording");
    let version = |version: u8| with(whole, 12, &[version]);
    Reader {
        name: "nettrace",
        called: "nettrace",
        ending: ".nettrace",
        whole,
        is_reported: true,
        may_be_empty: false,
        broken: vec![
            broken(cut(whole, 6), "cut short: it has 6 of the 8 bytes that nettrace begins with", AGAIN),
            // The first block's size, 220 bytes, stands at byte 20.
            broken(
                cut(whole, 100),
                "it ends at byte 100, before its first event is whole, at least 144 bytes too early",
                AGAIN,
            ),
            broken(
                with(whole, 0, b"n"),
                "its ending is that of nettrace, as which it can't be read: not a nettrace",
                AGAIN,
            ),
            broken(
                with(whole, 23, &[9]),
                "damaged one: it has another first block than that of the trace at byte 24",
                AGAIN,
            ),
            broken(version(7), "version 7 is not read, only versions 4 to 6", "take a newer collector"),
            broken(version(3), "version 3 is not read", "record it again with .NET Core 3.1 or newer"),
            broken(packed(whole), "it is nettrace that is compressed by gzip", "unpack it first"),
        ],
    }
}

fn jfr() -> Reader {
    let whole = include_bytes!("../../../export/tests/fuzzing/seeds/jfr/recording");
    // A chunk that was not ended has no size yet.
    let not_ended = with(whole, 8, &[0; 8]);
    Reader {
        name: "jfr",
        called: "JFR",
        ending: ".jfr",
        whole,
        is_reported: true,
        may_be_empty: false,
        broken: vec![
            broken(cut(whole, 3), "cut short: it has 3 of the 4 bytes that JFR begins with", AGAIN),
            broken(cut(whole, 60), "ends before its head does at byte 60, 8 bytes too early", AGAIN),
            // Its size is 0x1f93.
            broken(cut(whole, 4000), "ends before it should at byte 4000, 4083 bytes too early", AGAIN),
            broken(with(whole, 0, b"f"), "as which it can't be read: not a JFR file", AGAIN),
            broken(with(whole, 56, &[0; 8]), "a clock without a frequency at byte 56", AGAIN),
            broken(not_ended, "a chunk that was not ended", "`jcmd PID JFR.dump"),
            broken(with(whole, 4, &[0, 9]), "JFR of version 9.0 is not read", "take a newer collector"),
            broken(
                with(whole, 4, &[0, 0]),
                "JFR of version 0.0 is not read",
                "record it again with OpenJDK 8u262",
            ),
            broken(packed(whole), "it is JFR that is compressed by gzip", "unpack it first"),
        ],
    }
}

fn firefox() -> Reader {
    const KEY: &str = "\"preprocessedProfileVersion\":";
    let whole = include_bytes!("../../../export/tests/fuzzing/seeds/firefox/ours");
    let version = |number: u32| with_text(whole, &format!("{KEY}55"), &format!("{KEY}{number}"));
    let in_gzip = packed(whole);
    Reader {
        name: "firefox",
        called: "Firefox Profiler",
        ending: ".json.gz",
        whole,
        is_reported: true,
        may_be_empty: false,
        broken: vec![
            broken(cut(whole, 3000), "it is cut short: EOF while parsing", AGAIN),
            broken(cut(&in_gzip, in_gzip.len() / 2), "stream, behind byte ", AGAIN),
            broken(with(&in_gzip, in_gzip.len() / 2, &[0xff; 40]), "reading failed: ", AGAIN),
            broken(
                with(whole, 0, b"("),
                "as which it can't be read: not a profile of Firefox Profiler",
                AGAIN,
            ),
            broken(
                with_text(whole, "\"threads\":[", "\"threads\":(["),
                "expected value at line 1 column",
                AGAIN,
            ),
            broken(version(99), "of version 99 of Firefox Profiler's format", "take a newer collector"),
            broken(
                version(46),
                "of which 47 to 75 are read",
                "open it in profiler.firefox.com and save it there",
            ),
            broken(
                with_text(whole, KEY, "\"other\":"),
                "as the browser itself hands it over",
                "open it in profiler.firefox.com",
            ),
        ],
    }
}

fn pprof() -> Reader {
    let whole = include_bytes!("../../../export/tests/fuzzing/seeds/pprof/ours");
    let in_gzip = packed(whole);
    Reader {
        name: "pprof",
        called: "pprof",
        ending: ".pb.gz",
        whole,
        is_reported: true,
        may_be_empty: false,
        broken: vec![
            // A sample type of 4 bytes.
            broken(
                cut(whole, 4),
                "it is cut short: it ends at byte 4, in a field, at least 2 bytes too early",
                AGAIN,
            ),
            broken(cut(whole, 400), "it is cut short: it ends at byte 400, in a field, at least ", AGAIN),
            broken(
                cut(&in_gzip, 10),
                "compressed by gzip, and cut short or damaged in its first bytes",
                AGAIN,
            ),
            broken(cut(&in_gzip, in_gzip.len() / 2), "stream, behind byte ", AGAIN),
            broken(with(&in_gzip, in_gzip.len() - 8, &[1, 2, 3, 4]), "reading failed: ", AGAIN),
            broken(
                with(whole, 0, &[0x0f]),
                "as which it can't be read: not a pprof profile, or a damaged one",
                AGAIN,
            ),
        ],
    }
}

fn folded() -> Reader {
    let whole = include_bytes!("../../../export/tests/fuzzing/seeds/folded/ours");
    let without_last = whole.iter().rposition(|byte| *byte == b' ').unwrap();
    Reader {
        name: "folded",
        called: "folded stacks",
        ending: ".folded",
        whole,
        is_reported: true,
        may_be_empty: true,
        broken: vec![
            broken(cut(whole, without_last), "it is cut short: line 7 has no count", AGAIN),
            broken(
                with_text(whole, "0x8123 4\n", "0x8123 x\n"),
                "as which it can't be read: not a folded profile, or a damaged one: line 1",
                AGAIN,
            ),
            broken(
                with_text(whole, " 40\n", " 4x\n"),
                "line 4 has no count behind its last space, as in `a;b;c 12`",
                AGAIN,
            ),
        ],
    }
}

fn etl() -> Reader {
    let whole = include_bytes!("../../../windows-etw/tests/fuzzing/seeds/etl/plain");
    Reader {
        name: "etl",
        called: "Windows' .etl",
        ending: ".etl",
        whole,
        is_reported: true,
        may_be_empty: false,
        broken: vec![
            broken(
                cut(whole, 50),
                "it is cut short: it ends at byte 50, in its first buffer, at least 22 bytes",
                AGAIN,
            ),
            // It has 0x280 bytes, and a record of 0x158 behind its header of 72.
            broken(
                cut(whole, 100),
                "it is cut short: it ends at byte 100, in its first buffer, at least 540 bytes",
                AGAIN,
            ),
            broken(
                with(whole, 0, &[0; 4]),
                "or a damaged one: at byte 0, there should be the header of a buffer",
                AGAIN,
            ),
            broken(
                with(whole, 72, &[0xff; 8]),
                "or a damaged one: at byte 72, the first record should be",
                AGAIN,
            ),
        ],
    }
}

fn minidump() -> Reader {
    let whole = include_bytes!("../../../collector-user/tests/fuzzing/seeds/minidump/x64");
    // Its description of the system begins at byte 32: the processor, and at 20 bytes the platform.
    let system = 32;
    Reader {
        name: "minidump",
        called: "Windows' .dmp",
        ending: ".dmp",
        whole,
        is_reported: true,
        may_be_empty: false,
        broken: vec![
            broken(cut(whole, 2), "cut short: it has 2 of the 4 bytes that Windows' .dmp begins with", AGAIN),
            broken(
                cut(whole, 20),
                "cut short: the header at byte 0 should have 32 bytes, and it ends 12 bytes too early",
                AGAIN,
            ),
            broken(
                cut(whole, 1000),
                "cut short: the list of streams at byte 1807 should have 72 bytes",
                AGAIN,
            ),
            broken(
                with(whole, 0, b"m"),
                "as which it can't be read: not a minidump, or a damaged one",
                AGAIN,
            ),
            broken(
                with(whole, 8, &[0xff; 4]),
                "the list of streams at byte 1807 has 4294967295 entries",
                AGAIN,
            ),
            broken(with(whole, system, &[5, 0]), "of processor architecture 5", "read it with WinDbg"),
            broken(
                with(whole, system + 20, &[1, 0x82, 0, 0]),
                "a system other than Windows",
                "a debugger of that system",
            ),
            // It has no stream.
            broken(with(whole, 8, &[0; 4]), "it lacks the description of the system", "procdump -ma"),
            broken(packed(whole), "it is Windows' .dmp that is compressed by gzip", "unpack it first"),
        ],
    }
}
