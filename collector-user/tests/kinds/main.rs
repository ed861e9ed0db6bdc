//! `--kind` of `collector convert` and `collector report`, by the binary: what outputs with room for one kind of samples show is what was put
//! into the recording, and what Go's reader of pprof finds in it.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output};

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::record::{ExportMachine, Frame, FrameFlags, ModuleId, Sample, Unit};
use export::format::{Profile, by_name};
use export::symbolize::Symbols;
use tempfile::TempDir;

const PERIOD: u64 = 1_000_000;

/// Kind, unit, period, and the values of samples in `run` and in `wait`, which `main` calls.
type Kind = (&'static str, Unit, u64, &'static [i64], &'static [i64]);

const KINDS: [Kind; 4] = [
    ("cpu", Unit::Count, PERIOD, &[1; 40], &[1, 1]),
    ("off_cpu", Unit::Nanoseconds, 1, &[], &[5_000_000, 700_000_001]),
    ("alloc_space", Unit::Bytes, 1, &[4096, 1 << 40], &[1]),
    ("inuse_space", Unit::Bytes, 1, &[], &[]),
];

fn total((_, _, _, run, wait): Kind) -> i64 {
    run.iter().chain(wait).sum()
}

/// The recording in a format, as a file in a folder.
fn recorded(format: &str) -> TempDir {
    let mut machine = ExportMachine::default();
    let process = machine.add_process(Pid(7), "prog", None, Nanos(0));
    let name = machine.intern_string("prog");
    let thread = machine.intern_thread(process, Tid(7), name);
    let mut frame = |address| {
        let flags = FrameFlags(FrameFlags::KERNEL);
        machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(address), flags })
    };
    let [main, run, wait] = [0x1000, 0x2000, 0x3000].map(|at| frame(0xffff_ffff_8100_0000 + at));
    let stacks = [run, wait].map(|inner| machine.intern_stack(&[inner, main]));
    let mut time = 1_000;
    for (name, unit, period, in_run, in_wait) in KINDS {
        let kind = machine.add_kind(name, unit, period);
        for (stack, values) in stacks.into_iter().zip([in_run, in_wait]) {
            for &value in values {
                time += 1_000;
                let time = Nanos(time);
                machine.add_sample(&Sample { time, thread, stack, kind, value, ..Sample::default() });
            }
        }
    }
    machine.system_mut().end = Nanos(time);
    let mut symbols = Symbols::unresolved(&machine);
    for (frame, name) in [(main, "main"), (run, "run"), (wait, "wait")] {
        symbols.set(frame, name, name);
    }
    let format = by_name(format).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut file = File::create(folder.path().join(format!("in{}", format.ending()))).unwrap();
    format.write(Profile { machine: &machine, symbols: &symbols }, &mut file).unwrap();
    folder
}

fn collector(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_collector")).args(args).current_dir(folder).output().unwrap()
}

/// What it said; it did what it was to do.
fn done(output: &Output) -> String {
    let told = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(output.status.success(), "{told}");
    told
}

/// The names of functions below the thread, and the count, of each line.
fn folded(path: &Path) -> Vec<(String, i64)> {
    let text = fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        (stack.split_once(';').unwrap().1.to_owned(), count.parse().unwrap())
    };
    text.lines().map(line).collect()
}

/// The sums of a profile's columns, by their names, as Go's own reader has them; none without Go, which is told.
fn by_go(folder: &Path, name: &str) -> Option<Vec<(String, i64)>> {
    let mut go = Command::new("go");
    go.args(["tool", "pprof", "-raw", name]).current_dir(folder);
    go.env("HOME", folder).env("PPROF_TMPDIR", folder).env("PPROF_BINARY_PATH", folder);
    let Ok(output) = go.output() else {
        assert!(!std::env::var("CI").is_ok_and(|value| value == "true"), "go is not there");
        eprintln!("SKIPPED: go is not there");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let raw = String::from_utf8(output.stdout).unwrap();
    let mut lines = raw.lines().skip_while(|line| *line != "Samples:").skip(1);
    let columns = lines.next().unwrap().split_whitespace();
    let mut sums: Vec<(String, i64)> =
        columns.map(|column| (column.split('/').next().unwrap().to_owned(), 0)).collect();
    for line in lines.take_while(|line| *line != "Locations") {
        let Some((values, _)) = line.split_once(':') else { continue };
        let values: Vec<i64> = values.split_whitespace().filter_map(|value| value.parse().ok()).collect();
        // Labels of a sample are on lines of their own.
        if values.len() == sums.len() {
            sums.iter_mut().zip(values).for_each(|((_, sum), value)| *sum += value);
        }
    }
    Some(sums)
}

/// The sum of all metrics: of times, and of what a clock stands for, in milliseconds.
fn perfview_total(path: &Path) -> f64 {
    let mut archive = zip::ZipArchive::new(File::open(path).unwrap()).unwrap();
    let mut xml = String::new();
    archive.by_index(0).unwrap().read_to_string(&mut xml).unwrap();
    let metrics = xml.split("Metric=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0);
    metrics.map(|metric| metric.parse::<f64>().unwrap()).sum()
}

#[test]
fn what_is_shown_is_what_other_readers_count() {
    let folder = recorded("pprof");
    let folder = folder.path();
    let sums = by_go(folder, "in.pb.gz");
    for kind in KINDS.into_iter().filter(|kind| total(*kind) > 0) {
        let (name, unit, period, ..) = kind;
        let outputs = ["x.folded", "x.svg", "x.icicle.svg", "x.perfview.xml.zip", "x.pb.gz"];
        let outputs = outputs.iter().flat_map(|output| ["-o", output]);
        let args: Vec<&str> = ["convert", "in.pb.gz", "--kind", name].into_iter().chain(outputs).collect();
        let told = done(&collector(folder, &args));
        assert!(told.contains(&format!("beside {name}")), "{told}");

        let sum: i64 = folded(&folder.join("x.folded")).iter().map(|(_, count)| count).sum();
        assert_eq!(sum, total(kind), "{name}");
        if let Some(sums) = &sums {
            // Of a clock there are its samples, and the time that these stand for.
            let column = if period > 1 { format!("{name}_samples") } else { name.to_owned() };
            assert!(sums.contains(&(column, sum)), "{name}: {sum} of {sums:?}");
        }
        for picture in ["x.svg", "x.icicle.svg"] {
            let digits: String = fs::read_to_string(folder.join(picture)).unwrap();
            let all = digits.split_once("<title>all (").unwrap().1.split(' ').next().unwrap();
            assert_eq!(all.replace(',', "").parse(), Ok(sum), "{name}");
        }
        let in_view = match unit {
            Unit::Bytes => sum as f64,
            Unit::Count | Unit::Nanoseconds => sum as f64 * period as f64 / 1e6,
        };
        let shown = perfview_total(&folder.join("x.perfview.xml.zip"));
        assert!((shown - in_view).abs() < 1e-3, "{name}: {shown} and {in_view}");
        // What holds all kinds has all of them.
        assert_eq!(by_go(folder, "x.pb.gz"), sums);
    }
}

#[test]
fn kinds_are_chosen_of_other_formats_too() {
    for (format, ending) in [("nettrace", ".nettrace"), ("jfr", ".jfr"), ("firefox", ".firefox.json.gz")] {
        let folder = recorded(format);
        for kind in KINDS.into_iter().filter(|kind| total(*kind) > 0) {
            let input = format!("in{ending}");
            done(&collector(folder.path(), &["convert", &input, "--kind", kind.0, "-o", "x.folded"]));
            let (_, _, _, run, wait) = kind;
            let named = |name: &str| {
                let lines = folded(&folder.path().join("x.folded"));
                let of_name = lines.iter().filter(|(stack, _)| stack.contains(name));
                of_name.map(|(_, count)| count).sum::<i64>()
            };
            let sums = [run, wait].map(|values| values.iter().sum::<i64>());
            assert_eq!([named("run"), named("wait")], sums, "{format}: {}", kind.0);
        }
    }
}

#[test]
fn reports_are_of_the_kind_that_is_asked_for() {
    let folder = recorded("pprof");
    let report = |args: &[&str]| {
        let output = collector(folder.path(), &[&["report", "in.pb.gz"], args].concat());
        done(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    for (args, head, first) in [
        (&[][..], "of 42.00 ms (cpu; not shown: ", "run"),
        (&["--kind", "cpu"], "of 42.00 ms (cpu; not shown: ", "run"),
        (&["--kind", "off_cpu"], "of 705.00 ms (off_cpu; not shown: cpu", "wait"),
        (&["--kind", "alloc_space"], "of 1024.00 GiB (alloc_space; not shown: cpu", "run"),
        // As Go's tools show it, too: how often there was one.
        (&["--kind", "off_cpu_samples"], "of 2 samples (off_cpu_samples; not shown: cpu", "wait"),
    ] {
        let text = report(args);
        let (top, rows) = text.split_once('\n').unwrap();
        assert!(top.contains(head), "{args:?}: {text}");
        let row = rows.lines().next().unwrap();
        assert!(row.contains(&format!("%  {first}")), "{args:?}: {text}");
    }
    assert_eq!(report(&["--kind", "cpu"]), report(&[]));
}

#[test]
fn an_unknown_kind_is_wrong_usage_and_leaves_no_file() {
    let folder = recorded("pprof");
    for args in [&["convert", "in.pb.gz", "-o", "x.folded"][..], &["report", "in.pb.gz"]] {
        let output = collector(folder.path(), &[args, &["--kind", "offcpu"]].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        let error = told.lines().last().unwrap();
        let says = "collector: no kind of samples of the recording is called `offcpu`: did you mean off_cpu";
        assert!(error.starts_with(says), "{told}");
        assert!(
            error.contains("It has cpu (count), off_cpu_samples (count), off_cpu (nanoseconds), "),
            "{told}"
        );
        assert!(
            error.ends_with("and of inuse_space_samples (count), inuse_space (bytes) no samples"),
            "{told}"
        );
        assert!(output.stdout.is_empty());
    }
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["in.pb.gz"]);
    let output = collector(folder.path(), &["convert", "in.pb.gz", "--kind", "cpu", "-o", "x.perf.data"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && told.contains("--kind is of outputs with samples"), "{told}");
}

#[test]
fn a_kind_without_samples_is_told_and_shows_nothing_of_another() {
    let folder = recorded("pprof");
    let folder = folder.path();
    let outputs = ["-o", "x.folded", "-o", "x.svg", "-o", "x.pb.gz"];
    let told =
        done(&collector(folder, &[&["convert", "in.pb.gz", "--kind", "inuse_space"][..], &outputs].concat()));
    let warning =
        "warning: the recording has no samples of inuse_space (--kind), but of cpu (count), off_cpu_samples";
    assert!(told.lines().any(|line| line.starts_with(warning)), "{told}");
    let of_output = "/x.folded: folded has no samples, as there are none of inuse_space";
    assert!(told.lines().any(|line| line.ends_with(of_output)), "{told}");
    assert!(!told.contains("beside"), "{told}");
    assert_eq!(fs::read_to_string(folder.join("x.folded")).unwrap(), "");
    assert!(fs::read_to_string(folder.join("x.svg")).unwrap().contains("no samples were recorded"));
    assert_eq!(by_go(folder, "x.pb.gz"), by_go(folder, "in.pb.gz"));
    let output = collector(folder, &["report", "in.pb.gz", "--kind", "inuse_space"]);
    assert!(done(&output).contains(warning));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("of 0 B (inuse_space; not shown: cpu") && text.lines().count() == 1, "{text}");
}
