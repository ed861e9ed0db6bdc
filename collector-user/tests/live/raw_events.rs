//! Events with their fields in JSON lines, beside what is known to happen, the ledger, and `perf script`.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use collector_common::event::EventFlags;
use collector_common::loss::LossCause;
use collector_user::session::{self, Session, SessionSettings};
use collector_user::source::{Hook, Settings};
use collector_user::tracefs::Tracefs;
use serde_json::Value;

use crate::prerequisites::{live, live_with};
use crate::probe_values::TIMES;
use crate::programs::{compile, folder};
use crate::recording::{assert_balanced, collector, figure};

/// A shell that executes five programs.
const FIVE: [&str; 3] = ["sh", "-c", "ls /dev/null; true; cat /dev/null; ls /dev/null; env true; echo end"];

/// Lines of events, behind the first, which tells of the recording.
fn events(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(lines.next().unwrap()["type"], "recording");
    lines.inspect(|line| assert_eq!(line["type"], "event", "{line}")).collect()
}

/// What `collector run` writes of events, and its figures.
fn recorded(folder: &Path, args: &[&str]) -> (Vec<Value>, Value) {
    let [lines, stats] = ["x.jsonl", "stats.json"].map(|name| folder.join(name));
    let mut recorder = collector();
    recorder.args(["run", "-o"]).arg(&lines).arg("--stats").arg(&stats).args(args);
    let output = recorder.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stats: Value = serde_json::from_slice(&fs::read(stats).unwrap()).unwrap();
    assert_balanced(&stats);
    (events(&lines), stats)
}

fn number(event: &Value, place: &str) -> i64 {
    event.pointer(place).and_then(Value::as_i64).unwrap_or_else(|| panic!("no {place} in {event}"))
}

#[test]
fn each_program_that_is_executed_is_a_line() {
    let Some(_live) = live("each_program_that_is_executed_is_a_line") else { return };
    let folder = folder();
    let args = [&["-e", "sched:sched_process_exec", "--"][..], &FIVE].concat();
    let (events, stats) = recorded(folder.path(), &args);
    let file = |event: &Value| event["fields"]["filename"].as_str().unwrap().to_owned();
    let names: Vec<String> =
        events.iter().map(|event| file(event).rsplit('/').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["sh", "ls", "cat", "ls", "env", "true"]);
    for event in &events {
        assert_eq!(number(event, "/fields/pid"), number(event, "/pid"), "{event}");
        assert_eq!(event["event"], "sched:sched_process_exec");
        assert!(event["stack"].as_array().is_some_and(|stack| !stack.is_empty()), "{event}");
    }
    assert_eq!((figure(&stats, "/samples/delivered"), figure(&stats, "/samples/produced")), (6, 6));
}

#[test]
fn switches_are_of_the_thread_that_stops() {
    let Some(_live) = live("switches_are_of_the_thread_that_stops") else { return };
    let folder = folder();
    let (events, stats) = recorded(folder.path(), &["-e", "sched:sched_switch", "-d", "500ms"]);
    assert!(events.len() > 20, "{}", events.len());
    assert_eq!(events.len() as u64, figure(&stats, "/samples/delivered"));
    for event in &events {
        assert_eq!(number(event, "/fields/prev_pid"), number(event, "/tid"), "{event}");
    }
    let times: Vec<i64> = events.iter().map(|event| number(event, "/time_ns")).collect();
    assert!(times.is_sorted());
}

/// `work` of the program, with the arguments of its source.
#[test]
fn arguments_of_a_probe_are_fields() {
    const TEXTS: [&str; 4] = ["zero", "one", "two words", ""];
    let Some(_live) = live("arguments_of_a_probe_are_fields") else { return };
    let folder = folder();
    let program = compile(folder.path(), "probed", "probed.c", &[]);
    let program = program.to_str().unwrap();
    let probe = format!("uprobe:{program}:work(a:i32, text:str, c:i64)");
    let times = TIMES.to_string();
    let (events, stats) = recorded(folder.path(), &["-e", &probe, "--", program, &times]);
    assert_eq!(events.len() as u64, figure(&stats, "/samples/delivered"));
    assert_eq!(events.len(), TIMES);
    for (event, i) in events.iter().zip(0_i64..) {
        let expected = serde_json::json!({ "a": i - 50, "text": TEXTS[i as usize % 4], "c": i << 33 });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&event["fields"][name], value, "{event}");
        }
        assert_eq!(event["stack"][0], "work", "{event}");
    }
}

/// Events of one recording, by what is kept beside the lines: the kernel's records, and a trace.
#[test]
fn fields_survive_in_other_formats() {
    let Some(_live) = live("fields_survive_in_other_formats") else { return };
    let folder = folder();
    let [data, trace] = ["x.perf.data", "x.nettrace"].map(|name| folder.path().join(name));
    let outputs = ["-o", data.to_str().unwrap(), "-o", trace.to_str().unwrap()];
    let what = ["-e", "sched:sched_process_exec", "-e", "raw_syscalls:sys_enter/id == 59/", "--"];
    let (events_of_run, _) = recorded(folder.path(), &[&outputs[..], &what, &FIVE].concat());
    let of_each = |events: &[Value]| -> Vec<[Value; 5]> {
        let members = ["time_ns", "event", "tid", "comm", "fields"];
        events.iter().map(|event| members.map(|name| event[name].clone())).collect()
    };
    // 59 is `execve`, of which `env` makes some more on its way along PATH.
    assert!(events_of_run.len() >= 12, "{}", events_of_run.len());
    for input in [data, trace] {
        let lines = input.with_extension("jsonl");
        let converted = collector().arg("convert").arg(&input).arg("-o").arg(&lines).output().unwrap();
        assert!(converted.status.success(), "{}", String::from_utf8_lossy(&converted.stderr));
        assert_eq!(of_each(&events(&lines)), of_each(&events_of_run), "{}", input.display());
    }
}

/// What there is no room for is lost with its sample, and both add up.
#[test]
fn events_beyond_the_limit_are_counted() {
    let Some(_live) = live("events_beyond_the_limit_are_counted") else { return };
    let mut event = Tracefs::open().unwrap().event("sched:sched_process_exec").unwrap();
    event.flags_mut().set(EventFlags::CALLSTACK, true);
    let sampling = Settings { clock: false, ..Settings::default() };
    // Room for a few: each takes about 28 bytes, and its own.
    let settings = SessionSettings {
        sampling,
        events: vec![Hook::tracepoint(event)],
        event_bytes: 200,
        ..SessionSettings::default()
    };
    let command: Vec<_> = FIVE.iter().map(Into::into).collect();
    let mut session = Session::start(settings, Some(session::Command::start(&command).unwrap())).unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    session.run(stop.as_fd(), |_| {}).unwrap();
    let recording = session.finish().unwrap();
    let (kept, lost) = (recording.ledger.delivered(), recording.ledger.lost(LossCause::EventsFull));
    assert!(kept > 0 && lost > 0 && kept + lost == 6, "{kept} and {lost}");
    let machine = &recording.machine;
    assert_eq!((machine.samples().len() as u64, machine.event_records().len() as u64), (kept, kept));
    assert!(machine.event_records().bytes() <= 200);
    assert!(recording.stats.account()[0].contains(&format!("events_full {lost}")));
}

/// As the events' `print fmt` in tracefs has it.
fn as_perf_prints(event: &Value) -> String {
    let field = |name: &str| match &event["fields"][name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match event["event"].as_str().unwrap() {
        "sched:sched_process_exec" => {
            format!("filename={} pid={} old_pid={}", field("filename"), field("pid"), field("old_pid"))
        }
        "sched:sched_switch" => {
            let [prev, next] = ["prev", "next"].map(|who| {
                let part = |name: &str| field(&format!("{who}_{name}"));
                format!("{who}_comm={} {who}_pid={} {who}_prio={}", part("comm"), part("pid"), part("prio"))
            });
            let state = number(event, "/fields/prev_state");
            let known = [(0, "R"), (1, "S"), (2, "D"), (0x10, "X"), (0x20, "Z"), (0x80, "I"), (0x100, "R+")];
            let (_, state) = known.iter().find(|(number, _)| *number == state).unwrap();
            format!("{prev} prev_state={state} ==> {next}")
        }
        "raw_syscalls:sys_enter" => {
            let args = event["fields"]["args"].as_array().unwrap();
            let args: Vec<String> =
                args.iter().map(|argument| format!("{:x}", argument.as_u64().unwrap())).collect();
            format!("NR {} ({})", field("id"), args.join(", "))
        }
        other => panic!("{other}"),
    }
}

#[test]
fn fields_of_a_recording_of_perf_are_those_that_perf_prints() {
    let Some(_live) = live_with("fields_of_a_recording_of_perf_are_those_that_perf_prints", &["perf"]) else {
        return;
    };
    let folder = folder();
    let [data, lines] = ["perf.data", "y.jsonl"].map(|name| folder.path().join(name));
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-N", "-o"]).arg(&data);
    for event in ["sched:sched_switch", "sched:sched_process_exec", "raw_syscalls:sys_enter"] {
        perf.args(["-e", event]);
    }
    assert!(perf.arg("--").args(FIVE).stdin(Stdio::null()).status().unwrap().success());
    let converted = collector().arg("convert").arg(&data).arg("-o").arg(&lines).output().unwrap();
    assert!(converted.status.success(), "{}", String::from_utf8_lossy(&converted.stderr));
    let ours: BTreeSet<(i64, i64, String)> = events(&lines)
        .iter()
        .map(|event| (number(event, "/time_ns"), number(event, "/tid"), as_perf_prints(event)))
        .collect();
    let mut perf = Command::new("perf");
    perf.args(["script", "--ns", "-F", "tid,time,trace", "-i"]).arg(&data);
    let output = perf.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let theirs: BTreeSet<(i64, i64, String)> = text
        .lines()
        .map(|line| {
            let (tid, rest) = line.trim().split_once(' ').unwrap();
            let (time, trace) = rest.trim().split_once(": ").unwrap();
            let (seconds, nanoseconds) = time.split_once('.').unwrap();
            let time = seconds.parse::<i64>().unwrap() * 1_000_000_000 + nanoseconds.parse::<i64>().unwrap();
            (time, tid.parse().unwrap(), trace.trim().to_owned())
        })
        .collect();
    assert!(theirs.len() > 100, "{}", theirs.len());
    let all: Vec<_> = ours.symmetric_difference(&theirs).collect();
    assert!(all.is_empty(), "{all:#?}");
}

/// Where no output holds them, and where one keeps the records themselves.
#[test]
fn events_that_an_output_has_no_place_for_are_counted() {
    let Some(_live) = live("events_that_an_output_has_no_place_for_are_counted") else { return };
    let folder = folder();
    let [raw, folded, lines] = ["x.perf.data", "x.folded", "x.jsonl"].map(|name| folder.path().join(name));
    let told = |command: &mut Command| {
        let output = command.stdin(Stdio::null()).output().unwrap();
        let says = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{says}");
        says.lines().filter(|line| line.contains("leaves out")).map(str::to_owned).collect::<Vec<_>>()
    };
    let is_of_six = |told: &[String]| match told {
        [line] => line.contains("folded leaves out ") && line.contains(" 6 raw events"),
        _ => false,
    };
    let event = ["-e", "sched:sched_process_exec"];
    let mut run = collector();
    run.arg("run").args(event).arg("-o").arg(&folded).arg("--").args(FIVE);
    let of_run = told(&mut run);
    assert!(is_of_six(&of_run), "{of_run:?}");
    let mut run = collector();
    run.arg("run").args(event).arg("-o").arg(&raw).arg("-o").arg(&folded).arg("--").args(FIVE);
    let of_both = told(&mut run);
    // The file with the records has the events, and what they are of; who made the processes before is not in it.
    let [of_raw, of_folded] = &of_both[..] else { panic!("{of_both:?}") };
    assert!(of_raw.contains("perf.data leaves out ") && !of_raw.contains("raw events"), "{of_both:?}");
    assert!(of_raw.contains("command lines, users, cgroups") && !of_raw.contains("kinds"), "{of_both:?}");
    assert!(is_of_six(std::slice::from_ref(of_folded)), "{of_both:?}");
    let of_converted = told(collector().arg("convert").arg(&raw).arg("-o").arg(&folded));
    assert!(is_of_six(&of_converted), "{of_converted:?}");
    let both = told(collector().arg("convert").arg(&raw).arg("-o").arg(&lines).arg("-o").arg(&folded));
    assert!(both.iter().any(|line| is_of_six(std::slice::from_ref(line))), "{both:?}");
    assert_eq!(events(&lines).len(), 6);
}
