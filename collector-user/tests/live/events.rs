//! Events: every format of the running kernel, tracepoints and counters with their fields, by what is known to happen.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use collector_common::event::{EventData, EventFlags, filter};
use collector_common::loss::LossCause;
use collector_common::sharing::Writable;
use collector_user::clock;
use collector_user::session::{self, Backend, Recording, Session, SessionSettings};
use collector_user::source::{Hook, Named, Settings};
use collector_user::tracefs::{Tracefs, TracefsError};

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::{collector, record, run};
use crate::scenarios;

/// Records events alone while a command runs.
fn record_events(events: Vec<Hook>, command: &[&str]) -> Recording {
    let sampling = Settings { clock: false, ..Settings::default() };
    let settings = SessionSettings { sampling, events, ..SessionSettings::default() };
    let command: Vec<_> = command.iter().map(Into::into).collect();
    let mut session = Session::start(settings, Some(session::Command::start(&command).unwrap())).unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    session.run(stop.as_fd(), |_| {}).unwrap();
    session.finish().unwrap()
}

/// A shell that executes five programs.
const FIVE: [&str; 3] = ["sh", "-c", "ls /dev/null; true; cat /dev/null; ls /dev/null; env true; echo end"];

/// All that has a format file, by the folders of tracefs.
fn all_with_a_format(tracefs: &Tracefs) -> Vec<String> {
    let below = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let categories = below(&tracefs.root().join("events")).filter(|path| path.is_dir());
    let events = categories.flat_map(|category| below(&category).collect::<Vec<_>>());
    let names = events.filter(|event| event.join("format").exists()).map(|event| {
        let [category, name] = [event.parent().unwrap(), &event].map(|path| path.file_name().unwrap());
        format!("{}:{}", category.to_str().unwrap(), name.to_str().unwrap())
    });
    names.collect()
}

#[test]
fn every_format_of_this_kernel_is_read() {
    let Some(_live) = live("every_format_of_this_kernel_is_read") else { return };
    let tracefs = Tracefs::open().unwrap();
    let names = all_with_a_format(&tracefs);
    assert!(names.len() > 1000, "{}", names.len());
    for name in &names {
        let text = tracefs.format(name).unwrap();
        let event = tracefs.event(name).unwrap_or_else(|error| panic!("{error}"));
        let lines: Vec<&str> = text.lines().filter(|line| line.trim().starts_with("field:")).collect();
        let fields = event.format().fields();
        assert_eq!(fields.len(), lines.len(), "{name}");
        // Each takes the place that its line says, but for arguments that are narrower than their registers.
        for (field, line) in fields.iter().zip(lines) {
            let number = |key: &str| -> u32 {
                let rest = line.split_once(key).unwrap().1;
                rest.split(';').next().unwrap().parse().unwrap()
            };
            let (size, taken) = (number("size:"), field.fixed_size().unwrap_or(0));
            let is_narrow = name.starts_with("syscalls:") && size == 8 && [2, 4].contains(&taken);
            assert!(taken == size || is_narrow, "{name}: {line}: {field:?}");
            let declared = line.trim().strip_prefix("field:").unwrap();
            assert!(declared.contains(field.name()), "{name}: {line}: {field:?}");
        }
        let id: u64 = text.lines().find_map(|line| line.strip_prefix("ID: ")).unwrap().parse().unwrap();
        assert_eq!(event.id().0, id, "{name}");
    }
}

/// What the kernel's tracers write has a format, and no number that perf events take.
#[test]
fn formats_of_what_can_t_be_recorded_are_read_and_told_so() {
    let Some(_live) = live("formats_of_what_can_t_be_recorded_are_read_and_told_so") else { return };
    let tracefs = Tracefs::open().unwrap();
    let recordable = tracefs.events().unwrap();
    let mut others = all_with_a_format(&tracefs);
    others.retain(|name| recordable.binary_search(name).is_err());
    // Those that every kernel has with a tracer: `kernel/trace/trace_entries.h`.
    for name in ["ftrace:kernel_stack", "ftrace:user_stack", "ftrace:wakeup", "ftrace:bprint"] {
        assert!(others.iter().any(|other| other == name), "{name}: {others:?}");
    }
    for name in &others {
        assert!(name.starts_with("ftrace:") && !tracefs.is_recordable(name), "{name}");
        let error = Named::parse(&[name], true).map(drop).unwrap_err();
        assert!(error.is_of_the_request(), "{error}");
        let told = format!("`{name}` can't be recorded: it is what a tracer of the kernel's own writes");
        assert!(error.to_string().starts_with(&told), "{error}");
        // The kernel takes it from nobody who has its number from the format.
        let events = vec![Hook::tracepoint(tracefs.event(name).unwrap())];
        let settings = SessionSettings { events, backend: Backend::Perf, ..SessionSettings::default() };
        let error = Session::start(settings, None).err().unwrap();
        assert!(error.to_string().starts_with(&format!("{name} can't be recorded")), "{error}");
    }
    // What is of an unknown number of elements is what is left of the record.
    let event = tracefs.event("ftrace:bprint").unwrap();
    let record = [&[0; 24][..], &7_u32.to_ne_bytes(), &9_u32.to_ne_bytes()].concat();
    let data = EventData::new(&record, &record, event.format());
    assert!(data.as_text().to_string().contains(" buf=[7, 9]"), "{}", data.as_text());
}

#[test]
fn a_name_that_is_nearly_right() {
    let Some(_live) = live("a_name_that_is_nearly_right") else { return };
    let tracefs = Tracefs::open().unwrap();
    let error = tracefs.event("sched:sched_swich").unwrap_err();
    assert!(error.to_string().contains("did you mean sched:sched_switch"), "{error}");
    for name in ["sched_switch", "sched:", ":x", "../x:y", "sched:../../trace_pipe", ""] {
        assert!(matches!(tracefs.event(name), Err(TracefsError::NoName { .. })), "{name}");
    }
}

#[test]
fn a_closure_gets_each_program_that_is_executed() {
    let Some(_live) = live("a_closure_gets_each_program_that_is_executed") else { return };
    let mut event = Tracefs::open().unwrap().event("sched:sched_process_exec").unwrap();
    let [file, pid] = ["filename", "pid"].map(|name| event.format().field_ref(name).unwrap());
    let seen = Writable::new(Vec::new());
    let executed = seen.clone();
    let began = clock::now();
    event.add_closure(move |data| {
        let (file, pid) = (data.try_get_str(file)?.to_owned(), data.try_get_i32(pid)?);
        let context = data.context().unwrap();
        assert_eq!(i64::from(context.pid.0), i64::from(pid), "who executes it tells of it");
        assert!(context.cpu < 4096 && began <= context.time && context.time <= clock::now());
        Ok(executed.write(|seen| seen.push((file, pid)))?)
    });
    let recording = record_events(vec![Hook::tracepoint(event)], &FIVE);
    let seen = seen.into_inner().unwrap();
    let names: Vec<&str> = seen.iter().map(|(file, _)| file.rsplit('/').next().unwrap()).collect();
    // `env` looks for `true` along PATH, and only the one that is there is executed.
    assert_eq!(names, ["sh", "ls", "cat", "ls", "env", "true"], "{seen:?}");
    assert!(seen.iter().all(|(_, pid)| *pid > 0));
    assert_eq!([recording.ledger.delivered(), recording.ledger.total_lost()], [6, 0]);
    assert_eq!(recording.machine.samples().len(), 0, "no stacks were asked for");
}

#[test]
fn what_a_filter_lets_through_becomes_samples() {
    let Some(_live) = live("what_a_filter_lets_through_becomes_samples") else { return };
    let mut event = Tracefs::open().unwrap().event("sched:sched_process_exec").unwrap();
    event.set_filter(Some(&filter::parse("filename ends_with '/ls'").unwrap())).unwrap();
    event.flags_mut().set(EventFlags::CALLSTACK, true);
    let recording = record_events(vec![Hook::tracepoint(event)], &FIVE);
    let machine = &recording.machine;
    assert_eq!(machine.samples().len(), 2);
    assert_eq!([recording.ledger.delivered(), recording.ledger.total_lost()], [2, 0]);
    let kinds: Vec<&str> = machine.kinds().iter().map(|kind| machine.string(kind.name)).collect();
    assert_eq!(kinds, ["sched:sched_process_exec"]);
    let named = |sample: collector_common::record::Sample| machine.string(machine.thread(sample.thread).name);
    assert!(machine.samples().iter().all(|sample| named(sample) == "ls"));
}

#[test]
fn a_closure_that_fails_is_told_of_and_stops_nothing() {
    let Some(_live) = live("a_closure_that_fails_is_told_of_and_stops_nothing") else { return };
    let mut event = Tracefs::open().unwrap().event("sched:sched_process_exec").unwrap();
    let calls = Writable::new(0);
    let counted = calls.clone();
    event.add_closure(|_| anyhow::bail!("no luck"));
    event.add_closure(move |_| Ok(counted.write(|calls| *calls += 1)?));
    let recording = record_events(vec![Hook::tracepoint(event)], &FIVE);
    assert_eq!(calls.into_inner().unwrap(), 6);
    let told = recording.warnings.iter().find(|line| line.contains("no luck"));
    assert!(told.is_some_and(|line| line.contains('6')), "{:?}", recording.warnings);
}

#[test]
fn the_last_switch_of_a_thread_is_its_own() {
    let Some(_live) = live("the_last_switch_of_a_thread_is_its_own") else { return };
    let folder = folder();
    let births = compile(folder.path(), "births", "births.c", &["-pthread"]);
    let mut event = Tracefs::open().unwrap().event("sched:sched_switch").unwrap();
    let [name, tid, state] =
        ["prev_comm", "prev_pid", "prev_state"].map(|name| event.format().field_ref(name).unwrap());
    let seen = Writable::new((0, 0, Vec::new()));
    let switches = seen.clone();
    event.add_closure(move |data| {
        /// `EXIT_DEAD` and `EXIT_ZOMBIE` of `include/linux/sched.h`, as the field reports them.
        const ENDED: i64 = 0x10 | 0x20;
        let (tid, state) = (data.try_get_i32(tid)?, data.try_get_i64(state)?);
        let context = *data.context().unwrap();
        let ended = state & ENDED != 0 && data.try_get_str(name)?.starts_with("births");
        Ok(switches.write(|(all, last, wrong)| {
            *all += 1;
            *last += u32::from(ended);
            if i64::from(context.tid.0) != i64::from(tid) {
                wrong.push((context.pid, context.tid, tid));
            }
        })?)
    });
    let sampling = Settings { clock: false, ..Settings::default() };
    let settings = SessionSettings { sampling, events: vec![Hook::tracepoint(event)], ..Default::default() };
    // Of the whole machine: a thread's own events end before it does.
    let mut session = Session::start(settings, None).unwrap();
    let (stop, at_the_end) = UnixStream::pair().unwrap();
    let running = std::thread::spawn(move || {
        let status = Command::new(births).status();
        drop(at_the_end);
        status
    });
    session.run(stop.as_fd(), |_| {}).unwrap();
    assert!(running.join().unwrap().unwrap().success());
    let recording = session.finish().unwrap();
    let (all, last, wrong) = seen.into_inner().unwrap();
    // 10,000 threads end.
    let lost = recording.ledger.total_lost();
    assert!(u64::from(last) + lost >= 10_000, "{last} of {all}, {:?}", recording.ledger);
    assert!(wrong.is_empty(), "{} of {all}: {:?}", wrong.len(), wrong.first());
    for cause in [LossCause::NoProcess, LossCause::Unaccounted] {
        assert_eq!(recording.ledger.lost(cause), 0, "{:?}", recording.ledger);
    }
    let pids = recording.machine.processes().iter().map(|process| process.pid.0);
    assert!(pids.into_iter().all(|pid| pid <= 1 << 22), "more than a kernel gives");
}

#[test]
fn page_faults_are_where_memory_is_touched_first() {
    let Some(_live) = live("page_faults_are_where_memory_is_touched_first") else { return };
    let folder = folder();
    let touches = compile(folder.path(), "touches", "touches.c", &[]);
    let args = ["-e".as_ref(), "page-faults".as_ref(), "--".as_ref(), touches.as_os_str()];
    let recorded = record(folder.path(), args);
    let in_function =
        recorded.stacks.iter().filter(|stack| stack.frames.iter().any(|frame| frame == "touch_pages"));
    let faults: u64 = in_function.clone().map(|stack| stack.count).sum();
    // And the one for the loop's own code or stack, if that. They come faster than the ring may be emptied.
    let [lost, unaccounted] = ["/lost/ring_full", "/lost/unaccounted"].map(|place| recorded.figure(place));
    assert!(faults > 500 && faults < 2010 && faults + lost >= 2000, "{faults}: {}", recorded.stderr);
    assert_eq!(unaccounted, 0, "{}", recorded.stderr);
    assert!(in_function.clone().all(|stack| !stack.is_cut()), "{}", recorded.stderr);
}

#[test]
fn the_clock_and_an_event_at_once() {
    let Some(_live) = live("the_clock_and_an_event_at_once") else { return };
    for backend in ["ebpf", "perf"] {
        let folder = folder();
        let file = folder.path().join("both.pb.gz");
        let program = compile(folder.path(), "recursion", "recursion.c", &[]);
        let mut command = collector();
        command.args([
            "run",
            "--backend",
            backend,
            "-s",
            "cpu_profiling",
            "-e",
            "sched:sched_process_exit",
            "-o",
        ]);
        let output = command.arg(&file).arg("--").arg(program).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Read by Go's own reader.
        let raw = Command::new("go").args(["tool", "pprof", "-raw"]).arg(&file).output().unwrap();
        let raw = String::from_utf8(raw.stdout).unwrap();
        let types = raw.lines().find(|line| line.contains("sched:sched_process_exit")).unwrap_or_default();
        assert!(types.contains("cpu") && types.contains("sched:sched_process_exit/count"), "{raw}");
    }
}

#[test]
fn a_program_in_the_kernel_does_nothing_for_events_alone() {
    let Some(_live) = live("a_program_in_the_kernel_does_nothing_for_events_alone") else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let event = ["--backend", "ebpf", "-e", "sched:sched_process_exec", "--"].map(AsRef::as_ref);
    let recorded = record(folder.path(), event.into_iter().chain([program.as_os_str()]));
    assert_eq!(recorded.figure("/samples/delivered"), 1, "{}", recorded.stderr);
}

#[test]
fn more_events_than_a_recording_has_room_for() {
    let Some(_live) = live("more_events_than_a_recording_has_room_for") else { return };
    let tracefs = Tracefs::open().unwrap();
    let exec = |_| Hook::tracepoint(tracefs.event("sched:sched_process_exec").unwrap());
    let events = (0..4001).map(exec).collect();
    let settings = SessionSettings { events, ..SessionSettings::default() };
    let error = Session::start(settings, None).err().unwrap().to_string();
    assert_eq!(error, "4001 events are too many: a recording has at most 4000; name fewer");
}

#[test]
fn all_system_calls_are_recorded_at_once() {
    let Some(_live) = live("all_system_calls_are_recorded_at_once") else { return };
    let folder = folder();
    let program = compile(folder.path(), "calls", "calls.c", &[]);
    let [file, told] = ["x.jsonl", "told"].map(|name| folder.path().join(name));
    let args = ["-e", "syscalls:sys_enter_*", "-o"].map(AsRef::<OsStr>::as_ref);
    // So few that a ring has room for all of them, whenever its reader comes.
    let rest = [file.as_ref(), "--".as_ref(), program.as_os_str(), told.as_ref(), "500".as_ref()];
    let output = run(args.into_iter().chain(rest));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.contains("; none lost"), "{stderr}");
    let counts = counts_of_events(&file);
    // More than a byte can number, and those that the program makes by their numbers.
    assert!(Tracefs::open().unwrap().matching("syscalls:sys_enter_*").unwrap().unwrap().len() > 300);
    let made = [("getppid", 500), ("openat2", 300), ("nanosleep", 20)];
    for (call, count) in made {
        assert_eq!(counts.get(&format!("syscalls:sys_enter_{call}")), Some(&count), "{counts:?}");
    }
}

/// How often each event is in a file of JSON lines.
fn counts_of_events(file: &Path) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut counts = BTreeMap::new();
    for line in lines {
        if let Some(event) = line["event"].as_str() {
            *counts.entry(event.to_owned()).or_insert(0) += 1;
        }
    }
    counts
}

#[test]
fn a_pattern_means_all_tracepoints_that_it_matches() {
    let Some(_live) = live("a_pattern_means_all_tracepoints_that_it_matches") else { return };
    let folder = folder();
    let file = folder.path().join("x.jsonl");
    let args = ["-e", "sched:sched_process_e*", "-o", file.to_str().unwrap(), "--"];
    let output = run(args.iter().chain(&FIVE));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let counts = counts_of_events(&file);
    // Six programs in five processes: one executes another.
    let expected = [("sched:sched_process_exec", 6), ("sched:sched_process_exit", 5)];
    assert_eq!(counts, expected.map(|(name, count)| (name.to_owned(), count)).into());
}

#[test]
fn an_event_with_a_weight_is_one_record() {
    let Some(_live) = live("an_event_with_a_weight_is_one_record") else { return };
    for backend in [Backend::Auto, Backend::Perf] {
        let mut event = Tracefs::open().unwrap().event("sched:sched_stat_runtime").unwrap();
        event.flags_mut().set(EventFlags::CALLSTACK, true);
        let runtime = event.format().field_ref("runtime").unwrap();
        let told = Writable::new(Vec::new());
        let kept = told.clone();
        event.add_closure(move |data| {
            let nanoseconds = data.try_get_u64(runtime)?;
            Ok(kept.write(|kept| kept.push(nanoseconds.cast_signed()))?)
        });
        let sampling = Settings { clock: false, ..Settings::default() };
        let events = vec![Hook::tracepoint(event)];
        let settings = SessionSettings { sampling, events, backend, ..SessionSettings::default() };
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let recording = scenarios::record(settings, &["sh", "-c", script].map(Into::into));
        let values: Vec<i64> = recording.machine.samples().iter().map(|sample| sample.value).collect();
        assert_eq!(values, told.into_inner().unwrap());
        assert!(values.iter().sum::<i64>() > 20_000_000, "{values:?}");
        let ledger = &recording.ledger;
        assert_eq!([ledger.delivered(), ledger.total_lost()], [values.len() as u64, 0], "{ledger:?}");
    }
}

#[test]
fn hooks_at_one_counter_share_its_records() {
    let Some(_live) = live("hooks_at_one_counter_share_its_records") else { return };
    let folder = folder();
    let program = compile(folder.path(), "touches", "touches.c", &[]);
    for backend in [Backend::Auto, Backend::Perf] {
        let seen = Writable::new(0);
        let mut events: Vec<_> = ["minor-faults", "minor-faults", "context-switches", "cs"]
            .map(|name| Hook::counter(name).unwrap())
            .into();
        for hook in &mut events[1..] {
            hook.event.flags_mut().set(EventFlags::CALLSTACK, true);
        }
        let told = seen.clone();
        events[0].event.add_closure(move |_| Ok(told.write(|seen| *seen += 1)?));
        let sampling = Settings { clock: false, ..Settings::default() };
        let settings = SessionSettings { sampling, events, backend, ..SessionSettings::default() };
        let recording = scenarios::record(settings, &[program.clone().into(), "100".into()]);
        let machine = &recording.machine;
        let mut of_kinds = vec![0; machine.kinds().len()];
        machine.samples().iter().for_each(|sample| of_kinds[usize::from(sample.kind.0)] += 1);
        let [faults, switches, same] = of_kinds[..] else { panic!("{of_kinds:?}") };
        assert!(faults >= 100, "{of_kinds:?}");
        assert_eq!(seen.into_inner().unwrap(), faults);
        assert_eq!(switches, same);
        let ledger = &recording.ledger;
        assert_eq!([ledger.delivered(), ledger.total_lost()], [faults + switches, 0], "{ledger:?}");
    }
}

#[test]
fn a_wrong_event_is_told_in_a_line() {
    let Some(_live) = live("a_wrong_event_is_told_in_a_line") else { return };
    let folder = folder();
    for (event, code, expected) in [
        ("sched:sched_swich", 2, "did you mean sched:sched_switch"),
        ("page-fault", 2, "did you mean page-faults?"),
        ("sched_switch", 2, "did you mean sched:sched_switch?"),
        ("nonsense", 2, "`collector list events` lists them"),
        ("etw:Microsoft-Windows-Kernel-Process", 2, "is an event of Windows"),
        ("sched:nothing*", 2, "no tracepoint matches `sched:nothing*`"),
        ("sched:nothing*", 2, "did you mean"),
        ("shced:*", 2, "did you mean sched:*?"),
        ("sched", 2, "did you mean sched:*?"),
        ("uporbe:/bin/true:main", 2, "did you mean uprobe:/bin/true:main or "),
        ("page-faults:u", 2, "modifiers such as `:u` are not known here; `page-faults`"),
        ("L1-dcache-load-misses", 2, "as rNNN"),
        (
            "sched:sched_switch/prev_pid = 1/",
            2,
            "at column 10, before `= 1`: `=` means nothing here; did you mean `==`?",
        ),
        ("sched:sched_switch/prev_pidd == 1/", 2, "did you mean `prev_pid`"),
        ("sched:sched_switch/prev_pid == 1", 2, "ends with a slash"),
        ("sched:sched_switch/prev_pid == 4294967295/", 2, "from -2147483648 to 2147483647"),
        ("raw_syscalls:sys_enter/args[6] == 1/", 2, "`args` has 6 elements"),
        (
            "sched:sched_process_*/filename == 'x'/",
            2,
            "sched:sched_process_exit: the filter `filename == 'x'`, at",
        ),
        ("user_events:mine", 1, "CONFIG_USER_EVENTS"),
        ("cycles", 1, "the processor's unit for it is absent"),
    ] {
        if event == "cycles" && Path::new("/sys/bus/event_source/devices/cpu").exists() {
            continue;
        }
        if event.starts_with("user_events:") && Tracefs::open().unwrap().has_user_events() {
            continue;
        }
        let output = run([
            "-e".as_ref(),
            event.as_ref(),
            "-o".as_ref(),
            folder.path().join("x.folded").as_os_str(),
            "--".as_ref(),
            "true".as_ref(),
        ]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{event}: {stderr}");
        assert!(stderr.lines().count() == 1 && stderr.contains(expected), "{event}: {stderr}");
    }
    let twice = run(["-e", "cs", "-e", "cs", "--", "true"]);
    let stderr = String::from_utf8_lossy(&twice.stderr);
    assert!(twice.status.code() == Some(2) && stderr.contains("-e cs is named twice"), "{stderr}");
    let [name, pattern] = ["sched:sched_process_exec", "sched:sched_process_*"];
    let twice = run(["-e", name, "-e", pattern, "--", "true"]);
    let stderr = String::from_utf8_lossy(&twice.stderr);
    let told = format!("-e {pattern}: {name} is named already, by {name}: leave one out");
    assert!(twice.status.code() == Some(2) && stderr.contains(&told), "{stderr}");
}

#[test]
fn tracepoints_are_listed_where_tracefs_is_not_mounted() {
    let Some(_live) = live("tracepoints_are_listed_where_tracefs_is_not_mounted") else { return };
    // In a mount namespace of its own.
    let script = "umount /sys/kernel/tracing /sys/kernel/debug/tracing 2>/dev/null; ! ls /sys/kernel/tracing/events \
                  2>/dev/null && \"$1\" list events && ! ls /sys/kernel/tracing/events 2>/dev/null";
    let mut shell = Command::new("unshare");
    let shell = shell.args(["-m", "sh", "-c", script, "sh"]).arg(env!("CARGO_BIN_EXE_collector"));
    let output = shell.output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        listed.lines().any(|line| line == "sched:sched_switch") && listed.contains("page-faults"),
        "{listed}"
    );
}
