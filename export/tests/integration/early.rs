//! A recording of a machine whose clock nobody set, at half a minute to 1970: formats that have room for that time of day tell it, to readers
//! that are not ours, but for nettrace's, and others say that they leave it out.

use collector_common::record::ClockAnchor;
use export::format::jfr::Jfr;
use export::format::jsonl::JsonLines;
use export::format::nettrace::Nettrace;
use export::format::otlp::Otlp;
use export::format::{Contents, Part, Profile, formats};
use serde_json::{Value, json};

use crate::jfr::printed;
use crate::made::Made;
use crate::pprof::Go;
use crate::random::{imported, written};
use crate::tools::{file, output, python, tool};
use crate::{nettrace, parquet, perfetto};

const START: i128 = -30_000_000_000;

fn early() -> Made {
    let mut made = Made::new();
    let system = made.machine.system_mut();
    system.clocks.start = ClockAnchor::at(system.start, START);
    assert!(system.clocks.start.is_some());
    made
}

#[test]
fn what_formats_have_no_room_for_is_told() {
    let Made { machine, symbols } = early();
    let contents = Contents::of(Profile { machine: &machine, symbols: &symbols });
    let says_so = |of: &Contents, name| {
        let line = of.left_out(export::format::by_name(name).unwrap()).unwrap_or_default();
        line.contains("times of day before 1970")
    };
    for format in formats() {
        assert_eq!(
            says_so(&contents, format.name()),
            !format.holds().has(Part::EarlyTimes),
            "{}",
            format.name()
        );
    }
    let Made { machine, symbols } = Made::new();
    let contents = Contents::of(Profile { machine: &machine, symbols: &symbols });
    assert!(!formats().iter().any(|format| says_so(&contents, format.name())));
}

#[test]
fn json_lines_have_the_time_of_day() {
    let Made { machine, symbols } = early();
    let text = String::from_utf8(written(&JsonLines, &machine, &symbols)).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["start"], "1969-12-31T23:59:30.000000000Z");
    // Recordings begin at 1,000 ns of the clock, and their first samples are at 2,000.
    assert_eq!(lines[1]["time"], "1969-12-31T23:59:30.000001000Z");
}

#[test]
fn pprof_has_the_time_of_day() {
    let Made { machine, symbols } = early();
    let bytes = crate::pprof::written(&machine, &symbols);
    let system = imported(&bytes).unwrap().machine.system().clone();
    assert_eq!(system.clocks.unix_at(system.start), Some(START));
    let Some(go) = Go::new(&bytes) else { return };
    let raw = go.pprof(&["-raw"]);
    // In whatever zone the machine is.
    let time = raw.lines().find_map(|line| line.strip_prefix("Time: ")).unwrap();
    assert!(["1969-12-31 ", "1970-01-01 "].iter().any(|day| time.starts_with(day)), "{time}");
    assert!(time.contains(":30 "), "{time}");
}

#[test]
fn nettrace_has_the_time_of_day() {
    let Made { machine, symbols } = early();
    let bytes = written(&Nettrace, &machine, &symbols);
    assert_eq!(nettrace::File::of(&bytes).trace.unix_milliseconds, -30_000);
    // A Wednesday, the third day of the week from Sunday.
    let date = [1969_u16, 12, 3, 31, 23, 59, 30, 0].map(u16::to_le_bytes);
    assert!(bytes.windows(16).any(|found| found == date.as_flattened()));
    let system = imported(&bytes).unwrap().machine.system().clone();
    assert_eq!(system.clocks.unix_at(system.start), Some(START));
}

#[test]
fn jfr_has_the_time_of_day() {
    let Made { machine, symbols } = early();
    let bytes = written(&Jfr, &machine, &symbols);
    let read = imported(&bytes).unwrap().machine;
    let first = read.samples().span().unwrap().0;
    assert_eq!(read.system().clocks.unix_at(first), Some(START + 1_000));
    let Some(mut jfr) = tool("jfr") else { return };
    let events = printed(&mut jfr, &file(&bytes, ".jfr"));
    let of_samples = events.iter().filter(|event| event["type"] == "jdk.ExecutionSample");
    let times = of_samples.map(|event| event["values"]["startTime"].as_str().unwrap());
    let first = times.map(|time| time.parse::<jiff::Timestamp>().unwrap()).min().unwrap();
    assert_eq!(first.as_nanosecond(), START + 1_000);
}

#[test]
fn parquet_and_perfetto_have_the_time_of_day() {
    let Made { machine, symbols } = early();
    if let Some(told) = parquet::read(&machine, &symbols) {
        assert_eq!(told["facts"]["collector.start"], "1969-12-31T23:59:30.000000000Z");
        let rows = told["rows"].as_array().unwrap();
        let first = rows.iter().find(|row| row["record"] == "sample").unwrap();
        assert_eq!(first["time"], json!(START as i64 + 1_000));
    }
    if let Some(told) = perfetto::told(&written(&export::format::perfetto::Perfetto, &machine, &symbols)) {
        let clocks = &told["clocks"][0];
        let clock = |name: &str| i128::from(clocks[name].as_u64().unwrap());
        // When the clock of the recording is at 1,000 ns.
        let difference = clock("BUILTIN_CLOCK_REALTIME") - clock("BUILTIN_CLOCK_MONOTONIC");
        assert_eq!(1_000 + difference, START);
    }
}

/// Its times have no sign: there are none, and each row of samples has the sum of its values.
#[test]
fn otlp_has_no_times_then() {
    let Made { machine, symbols } = early();
    let Some(mut reader) = python("otlp_profiles.py") else { return };
    let file = file(&written(&Otlp, &machine, &symbols), ".otlp");
    let told: Value = serde_json::from_str(&output(reader.arg(&*file))).unwrap();
    let mut total = 0;
    for resource in told.as_array().unwrap() {
        for sample in
            resource["profiles"].as_array().unwrap().iter().flat_map(|it| it["samples"].as_array().unwrap())
        {
            assert_eq!(sample["times"], json!([]));
            total +=
                sample["values"].as_array().unwrap().iter().map(|value| value.as_i64().unwrap()).sum::<i64>();
        }
    }
    assert_eq!(total, 85);
}
