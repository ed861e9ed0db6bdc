//! What plain perf events count, against `perf stat` of the same run of the same program; and what is not counted here.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::prerequisites::{live, live_with};
use crate::programs::{compile, folder};
use crate::recording::{assert_balanced, figure, files, run};

/// Counts of `perf stat`, by its names.
fn counted(file: &Path) -> impl Fn(&str) -> f64 + use<> {
    let text = fs::read_to_string(file).unwrap();
    move |name| {
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let line = lines.find(|words| words.get(2) == Some(&name));
        line.and_then(|words| words[0].parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
    }
}

/// Samples of each event of what is called `comm`, and the statistics.
fn recorded(folder: &Path, events: &[&str], by_perf: &str, program: &[&str]) -> (Vec<Value>, Value) {
    let [file, stats, counts] = ["x.jsonl", "stats.json", "counts"].map(|name| folder.join(name));
    let [file, stats, counts] = [&file, &stats, &counts].map(|path| path.to_str().unwrap());
    let named = events.iter().flat_map(|event| ["-e", event]);
    let record = ["--backend", "perf", "-o", file, "--stats", stats].into_iter();
    let perf = ["--", "perf", "stat", "-x,", "-o", counts, "-e", by_perf, "--"];
    let output = run(record.chain(named).chain(perf).chain(program.iter().copied()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(file).unwrap();
    let samples = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (samples, serde_json::from_slice(&fs::read(stats).unwrap()).unwrap())
}

/// Both count from when the program is executed, from when on it has its name, to its end.
#[test]
fn events_of_the_kernel_are_as_many_as_perf_counts() {
    let test = "events_of_the_kernel_are_as_many_as_perf_counts";
    let Some(_live) = live_with(test, &["perf"]) else { return };
    let folder = folder();
    let naps = compile(folder.path(), "naps", "naps.c", &["-O1", "-pthread"]);
    let lasted = folder.path().join("lasted");
    let program = [naps.to_str().unwrap(), "2", "200", "10", "100", lasted.to_str().unwrap()];
    let events = ["page-faults", "context-switches"];
    let (samples, stats) = recorded(folder.path(), &events, "page-faults,context-switches", &program);
    assert_balanced(&stats);
    let counted = counted(&folder.path().join("counts"));
    // What there was no room for may be the program's, or that of `perf`.
    let full = figure(&stats, "/lost/ring_full");
    for (event, least) in [("page-faults", 40), ("context-switches", 400)] {
        let is_of = |sample: &&Value| sample["event"] == event && sample["comm"] == "naps";
        let (by_us, by_perf) = (samples.iter().filter(is_of).count() as u64, counted(event) as u64);
        let what = format!("{event}: {by_us} and {full} lost, {by_perf} by perf");
        assert!(by_perf >= least && by_us <= by_perf && by_us + full >= by_perf, "{what}");
    }
}

/// A second of computing.
#[test]
fn the_clock_s_samples_are_as_much_time_as_perf_counts() {
    const FREQUENCY: f64 = 997.0;
    let test = "the_clock_s_samples_are_as_much_time_as_perf_counts";
    let Some(_live) = live_with(test, &["perf"]) else { return };
    let folder = folder();
    let recursion = compile(folder.path(), "recursion", "recursion.c", &[]);
    let program = [recursion.to_str().unwrap()];
    let (samples, stats) = recorded(folder.path(), &["cpu-clock"], "task-clock", &program);
    assert_balanced(&stats);
    let is_of = |sample: &&Value| sample["type"] == "sample" && sample["comm"] == "recursion";
    let ours = samples.iter().filter(is_of).count() as f64 / FREQUENCY;
    let lost =
        (figure(&stats, "/samples/produced") - figure(&stats, "/samples/delivered")) as f64 / FREQUENCY;
    let perf_s = counted(&folder.path().join("counts"))("task-clock") / 1000.0;
    // The clock goes on by whole periods, of which one at each turn on a CPU is in part others'.
    assert!(
        perf_s > 0.9 && ours <= perf_s * 1.05 && ours + lost >= perf_s * 0.95,
        "{ours} s, {lost} s lost, {perf_s} s"
    );
}

/// Events of the processor, with `type` and `config` of `perf_event_attr`, as `perf_event_open(2)` has them, and what messages call them.
const OF_PROCESSOR: [(&str, u32, u64, &str); 4] = [
    ("cycles", PERF_TYPE_HARDWARE, 0, "cycles"),
    ("cpu-cycles", PERF_TYPE_HARDWARE, 0, "cycles"),
    ("branch-misses", PERF_TYPE_HARDWARE, 5, "branch-misses"),
    ("r01c2", PERF_TYPE_RAW, 0x01c2, "r01c2"),
];
const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_TYPE_RAW: u32 = 4;

/// What the kernel answers who asks for them: 0, or the number of an error. No file tells it: there are units without counters, and such that
/// have another name than `cpu`.
fn answers(folder: &Path) -> Vec<i32> {
    let program = compile(folder, "counts", "counts.c", &[]);
    let numbers = OF_PROCESSOR.iter().flat_map(|(_, kind, config, _)| [u64::from(*kind), *config]);
    let output = Command::new(program).args(numbers.map(|number| number.to_string())).output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    answers.lines().map(|line| line.parse().unwrap()).collect()
}

/// As there is no unit that counts them in most virtual machines.
#[test]
fn what_the_processor_does_not_count_is_named_with_a_remedy() {
    let Some(_live) = live("what_the_processor_does_not_count_is_named_with_a_remedy") else { return };
    let folder = folder();
    let (file, _) = files(folder.path());
    let answers = answers(folder.path());
    assert_eq!(answers.len(), OF_PROCESSOR.len());
    for ((event, _, _, name), answer) in OF_PROCESSOR.into_iter().zip(answers) {
        let args = ["-d", "100ms", "--backend", "perf", "-e", event, "-o", file.to_str().unwrap()];
        let output = run(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let what = format!("{event}, to which the kernel says {answer}: {stderr}");
        assert_eq!(output.status.success(), answer == 0, "{what}");
        match answer {
            0 => fs::remove_file(&file).unwrap(),
            libc::ENOENT | libc::EOPNOTSUPP | libc::EINVAL => {
                let says = format!("{name} is not counted here: the processor's unit for it is absent");
                assert!(stderr.contains(&says), "{what}");
                assert!(stderr.contains("record one of the kernel's own"), "{what}");
            }
            // Another tool may have all counters, or the machine be short of something.
            error => {
                let told = format!("{name} can't be recorded: the kernel refuses it: ");
                assert!(stderr.contains(&told) && stderr.contains(&format!("os error {error}")), "{what}");
            }
        }
        assert!(!file.exists(), "{event}");
    }
}
