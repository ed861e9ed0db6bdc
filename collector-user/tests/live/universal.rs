//! `UniversalExporter`: its hooks, its errors, and what is left where something fails.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use collector_common::ids::{Nanos, Pid};
use collector_common::record::{AttributeListId, TimelineOwner};
use collector_user::recorder::Verdict;
use collector_user::universal::{ExportError, ExportSettings, RECORDER, UniversalExporter};
use rustix::time::{ClockId, clock_gettime};

use crate::prerequisites::live;
use crate::programs::folder;

/// Records what this process does on the CPUs.
fn own() -> ExportSettings {
    ExportSettings::default().with_scenario("cpu_profiling").with_pid(std::process::id())
}

/// As much CPU time as gives some hundred samples, however long this thread waits for a CPU.
fn burn() {
    let own_time = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let end = own_time() + 300_000_000;
    while own_time() < end {
        std::hint::black_box(0);
    }
}

/// A hook's calls, from whatever thread.
#[derive(Clone, Default)]
struct Calls(Arc<AtomicU64>);

impl Calls {
    fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn so_far(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn samples_go_into_a_file_and_out_of_it() {
    let Some(_live) = live("samples_go_into_a_file_and_out_of_it") else { return };
    let folder = folder();
    let path = folder.path().join("x.folded");
    let mut exporter =
        UniversalExporter::new(own().with_frequency(9_973).with_sample_bytes(0).with_output(&path));
    exporter.on_parsed(|machine| {
        machine.apply_custom_filter(|machine, sample| machine.thread(sample.thread).tid.0 > 0);
    });
    exporter.start_collection().unwrap();
    let busy = || (0..10).for_each(|_| burn());
    thread::scope(|scope| (0..2).for_each(|_| _ = scope.spawn(busy)));
    let brought = exporter.stop_and_export().unwrap();
    let samples = brought.recording.machine.samples();
    assert!(samples.len() > 8_192, "{} samples", samples.len());
    assert!(samples.bytes_in_file() > 30_000, "{} bytes", samples.bytes_in_file());
    let folded = fs::read_to_string(&path).unwrap();
    let counts = folded.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<usize>().ok());
    assert_eq!(counts.sum::<usize>(), samples.len());
    assert!(folded.contains("burn"), "{folded}");
}

#[test]
fn events_are_recorded_with_their_fields() {
    let Some(_live) = live("events_are_recorded_with_their_fields") else { return };
    let folder = folder();
    let path = folder.path().join("x.jsonl");
    let settings = ExportSettings::default()
        .with_pid(std::process::id())
        .with_event("sched:sched_process_exec/filename ends_with \"/true\"/")
        .with_output(&path);
    let mut exporter = UniversalExporter::new(settings);
    exporter.start_collection().unwrap();
    for program in ["true", "env", "true"] {
        assert!(Command::new(program).stdout(Stdio::null()).status().unwrap().success());
    }
    let exported = exporter.stop_and_export().unwrap();
    assert_eq!(exported.recording.ledger.total_lost(), 0, "{:?}", exported.recording.ledger);
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let names = lines.filter_map(|line| Some(line["fields"]["filename"].as_str()?.to_owned()));
    let names: Vec<_> = names.collect();
    assert!(names.len() == 2 && names.iter().all(|name| name.ends_with("/true")), "{names:?}");

    let mut wrong = UniversalExporter::new(ExportSettings::default().with_event("sched:sched_swich"));
    let error = wrong.start_collection().unwrap_err();
    assert!(matches!(error, ExportError::Event(_)), "{error}");
    assert!(error.to_string().contains("did you mean sched:sched_switch"), "{error}");
}

#[test]
fn hooks_hold_for_every_collection() {
    let Some(_live) = live("hooks_hold_for_every_collection") else { return };
    let folder = folder();
    let below = folder.path().join("made later");
    let path = below.join("x.folded");
    let mut exporter = UniversalExporter::new(own().with_output(&path));
    let [sampled, parsed, exported] = [(); 3].map(|()| Calls::default());
    let calls = sampled.clone();
    exporter.on_sample(move |_, _| {
        calls.count();
        Verdict::Keep
    });
    let calls = parsed.clone();
    exporter.on_parsed(move |_| calls.count());
    let calls = exported.clone();
    exporter.on_export(move |_| {
        calls.count();
        Ok(())
    });
    assert!(matches!(exporter.start_collection(), Err(ExportError::Output { .. })));
    fs::create_dir(&below).unwrap();
    for collections in 1..=2 {
        let before = sampled.so_far();
        exporter.start_collection().unwrap();
        assert!(matches!(exporter.start_collection(), Err(ExportError::Started)));
        burn();
        let brought = exporter.stop_and_export().unwrap();
        assert_eq!(sampled.so_far() - before, brought.recording.machine.samples().len() as u64);
        assert!(sampled.so_far() - before > 50, "collection {collections}");
        assert_eq!([parsed.so_far(), exported.so_far()], [collections; 2]);
        assert_eq!(brought.written, [path.canonicalize().unwrap()]);
        let folded = fs::read_to_string(&path).unwrap();
        assert!(folded.contains("burn"), "{folded}");
        fs::remove_file(&path).unwrap();
    }
    assert!(matches!(exporter.stop_and_export(), Err(ExportError::NotStarted)));
}

#[test]
fn what_fails_is_told_with_what_was_recorded_and_written() {
    let Some(_live) = live("what_fails_is_told_with_what_was_recorded_and_written") else { return };
    let folder = folder();
    let gone = folder.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let [first, last] = ["first.folded", "last.html"].map(|name| folder.path().join(name));
    let settings = own().with_output(&first).with_output(gone.join("x.folded")).with_output(&last);
    let mut exporter = UniversalExporter::new(settings);
    exporter.on_export(|_| anyhow::bail!("no time"));
    exporter.start_collection().unwrap();
    burn();
    fs::remove_dir(&gone).unwrap();
    let Err(ExportError::Incomplete(incomplete)) = exporter.stop_and_export() else {
        panic!("it was told that all is well")
    };
    let told = incomplete.to_string();
    assert!(told.contains("no time") && told.contains("gone/x.folded can't be written"), "{told}");
    let [ExportError::Hook(_), ExportError::Output { .. }] = &incomplete.failures[..] else {
        panic!("{:?}", incomplete.failures)
    };
    let exported = incomplete.into_exported();
    assert_eq!(exported.written, [&first, &last].map(|path| path.canonicalize().unwrap()));
    assert!(exported.recording.ledger.delivered() > 50);
}

#[test]
fn a_hook_that_panics_is_an_error_and_is_kept() {
    let Some(_live) = live("a_hook_that_panics_is_an_error_and_is_kept") else { return };
    let folder = folder();
    let path = folder.path().join("x.folded");
    let mut exporter = UniversalExporter::new(own().with_output(&path));
    let calls = Calls::default();
    let counted = calls.clone();
    exporter.on_sample(move |_, _| {
        counted.count();
        assert!(counted.so_far() > 1, "the first sample is too much");
        Verdict::Keep
    });
    // It is met while the collection starts, or later.
    let failed = exporter.start_collection().err().or_else(|| {
        burn();
        exporter.stop_and_export().err()
    });
    let Some(ExportError::Panicked(told)) = failed else { panic!("{failed:?}") };
    assert_eq!(told, "the first sample is too much");
    assert!(!path.exists());
    exporter.start_collection().unwrap();
    burn();
    exporter.stop_and_export().unwrap();
    assert!(calls.so_far() > 50 && path.exists());
}

/// A process without a sample that has a span is in one of the files, if the format holds spans; what an output leaves out is of all of
/// its files.
#[test]
fn files_by_name_have_together_what_one_has() {
    let Some(_live) = live("files_by_name_have_together_what_one_has") else { return };
    let folder = folder();
    let outputs = ["x.jsonl", "x.folded"].map(|name| folder.path().join(name));
    let settings = outputs.iter().fold(own().split_by_comm(), ExportSettings::with_output);
    let mut exporter = UniversalExporter::new(settings);
    exporter.on_parsed(|machine| {
        let idle = machine.add_process(Pid(u32::MAX), "idle", None, Nanos(0));
        let timeline = machine.add_timeline("work", TimelineOwner::Process(idle));
        let start = machine.system().start;
        machine.begin_span(timeline, "a", start, AttributeListId::NONE);
    });
    exporter.start_collection().unwrap();
    burn();
    let exported = exporter.stop_and_export().unwrap();
    let (mut spans, mut samples, mut folded) = (Vec::new(), 0, 0);
    for path in &exported.written {
        let text = fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            let of_type = |kind: &str| text.lines().filter(|line| line.starts_with(kind)).count();
            samples += of_type(r#"{"type":"sample""#);
            spans.extend(std::iter::repeat_n(name.to_owned(), of_type(r#"{"type":"span""#)));
        } else {
            let counts = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap());
            folded += counts.sum::<usize>();
            assert!(text.lines().next().is_some(), "{name} is empty");
        }
    }
    let all = exported.recording.machine.samples().len();
    assert_eq!((&spans[..], samples, folded), (&["x.idle.jsonl".to_owned()][..], all, all));
    let [lines, stacks] = &exported.left_out[..] else { panic!("{:?}", exported.left_out) };
    assert!(!lines.contains("span") && stacks.contains(" 1 span"), "{:?}", exported.left_out);
}

#[test]
fn one_that_is_dropped_leaves_nothing() {
    let Some(_live) = live("one_that_is_dropped_leaves_nothing") else { return };
    let folder = folder();
    let mut exporter = UniversalExporter::new(own().with_output(folder.path().join("x.html")));
    exporter.start_collection().unwrap();
    assert_eq!(recorders(), 1);
    drop(exporter);
    assert_eq!(recorders(), 0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Threads of this process that record.
fn recorders() -> usize {
    let threads = fs::read_dir(Path::new("/proc/self/task")).unwrap();
    let names = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == RECORDER).count()
}

/// One thread of that name, and one of another.
#[test]
fn threads_of_a_name_alone() {
    let Some(_live) = live("threads_of_a_name_alone") else { return };
    let mut exporter = UniversalExporter::new(own().with_comm("wanted"));
    exporter.start_collection().unwrap();
    let busy = |name: &str| thread::Builder::new().name(name.to_owned()).spawn(burn).unwrap();
    for thread in ["wanted", "unwanted"].map(busy) {
        thread.join().unwrap();
    }
    let machine = exporter.stop_and_export().unwrap().recording.machine;
    let name = |sample: collector_common::record::Sample| machine.string(machine.thread(sample.thread).name);
    assert!(machine.samples().len() > 50, "{}", machine.samples().len());
    assert!(machine.samples().iter().all(|sample| name(sample) == "wanted"));
    let mut exporter = UniversalExporter::new(own().with_comm(""));
    assert!(matches!(exporter.start_collection(), Err(ExportError::EmptyComm)));
}
