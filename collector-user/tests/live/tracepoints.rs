//! Records of tracepoints, as programs copy them and as plain perf events tell them: the same, by a program whose system calls are
//! known.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use collector_common::event::{Event, EventFlags};
use collector_common::loss::LossCause;
use collector_common::sharing::Writable;
use collector_user::session::{self, Backend, Recording, Session, SessionSettings};
use collector_user::source::{Hook, Settings};
use collector_user::tracefs::Tracefs;

use crate::prerequisites::{kernel_is_since, live, live_with};
use crate::programs::{Running, compile, folder};
use crate::recording::{assert_balanced, run};
use crate::scenarios;

mod chosen;

/// The number of the system call that `numbered.c` makes.
const CALL: i64 = 1000;

/// How often it makes it, where nothing may be lost: fewer than a ring has room for.
const FEW: u64 = 300;

/// How often two threads make it in turn.
const TURNS: u64 = 3000;

/// How often, where there may be too many.
const CALLS: u64 = 50_000;

/// What a call returns that is told a descriptor which is none: `-EBADF`.
const BAD_DESCRIPTOR: i64 = -9;

/// Whether the kernel counts what a program is left out for, so that programs copy the records.
fn are_copied() -> bool {
    kernel_is_since(6, 7)
}

fn settings(backend: Backend, events: Vec<Hook>) -> SessionSettings {
    let sampling = Settings { clock: false, ..Settings::default() };
    SessionSettings { sampling, events, backend, ..SessionSettings::default() }
}

fn numbered(folder: &Path, name: &str) -> PathBuf {
    compile(folder, name, "numbered.c", &["-O1", "-pthread"])
}

fn record_calls(settings: SessionSettings, calls: u64, way: &str) -> Recording {
    let folder = folder();
    let program = numbered(folder.path(), "numbered");
    scenarios::record(settings, &[program.into(), calls.to_string().into(), way.into()])
}

/// What a record of `raw_syscalls:sys_enter` says: the type and thread that all records have, and the arguments.
type Entered = (u16, i32, u32, [i64; 6]);

/// `raw_syscalls:sys_enter`, with what is told of the calls of `numbered.c`.
fn entered(has_stack: bool) -> (Hook, Writable<Vec<Entered>>) {
    let mut event = Tracefs::open().unwrap().event("raw_syscalls:sys_enter").unwrap();
    event.flags_mut().set(EventFlags::CALLSTACK, has_stack);
    let [kind, thread, number, args] =
        ["common_type", "common_pid", "id", "args"].map(|name| event.format().field_ref(name).unwrap());
    let told = Writable::new(Vec::new());
    let kept = told.clone();
    event.add_closure(move |data| {
        if data.try_get_i64(number)? != CALL {
            return Ok(());
        }
        let mut words = [0; 6];
        for (word, bytes) in words.iter_mut().zip(data.try_get_slice(args)?.chunks_exact(8)) {
            *word = i64::from_ne_bytes(bytes.try_into()?);
        }
        let context = data.context().copied();
        let tid = context.map_or(0, |context| context.tid.0);
        let record = (data.try_get_u16(kind)?, data.try_get_i32(thread)?, tid, words);
        Ok(kept.write(|kept| kept.push(record))?)
    });
    (Hook::tracepoint(event), told)
}

fn id_of(name: &str) -> u64 {
    Tracefs::open().unwrap().event(name).unwrap().id().0
}

#[test]
fn a_copied_record_is_the_kernel_s() {
    let Some(_live) = live("a_copied_record_is_the_kernel_s") else { return };
    let id = u16::try_from(id_of("raw_syscalls:sys_enter")).unwrap();
    for (backend, has_stack) in
        [(Backend::Ebpf, false), (Backend::Ebpf, true), (Backend::Perf, false), (Backend::Perf, true)]
    {
        let (hook, told) = entered(has_stack);
        let recording = record_calls(settings(backend, vec![hook]), FEW, "");
        let told = told.into_inner().unwrap();
        let what = format!("{backend:?}, {has_stack}: {:?}", recording.ledger);
        assert_eq!(told.len() as u64, FEW, "{what}");
        for (number, &(kind, thread, tid, args)) in (0..).zip(&told) {
            assert_eq!((kind, thread.cast_unsigned()), (id, tid), "{what}");
            assert_eq!(args, [number, 2 * number, -number, 0x1122_3344_5566_7788, 5, 6], "{what}");
        }
        assert_eq!(recording.ledger.lost(LossCause::Unaccounted), 0, "{what}");
        if has_stack {
            let (_, samples) = scenarios::in_function(&recording, "raw_syscalls:sys_enter", "numbered_call");
            assert_eq!(samples as u64, FEW, "{what}");
        }
    }
}

#[test]
fn what_a_call_returns_is_told_by_its_own_tracepoint() {
    let Some(_live) = live("what_a_call_returns_is_told_by_its_own_tracepoint") else { return };
    let folder = folder();
    let file = folder.path().join("x.jsonl");
    let names = ["-e", "syscalls:sys_enter_close", "-e", "syscalls:sys_exit_close"];
    let program = numbered(folder.path(), "numbered");
    let args = ["-o", file.to_str().unwrap(), "--backend", "ebpf", "--", program.to_str().unwrap()];
    let output = run(names.iter().chain(&args));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let (mut begun, mut results) = (Vec::new(), Vec::new());
    for line in lines {
        match line["event"].as_str() {
            Some("syscalls:sys_enter_close") => begun.push(line["fields"]["fd"].as_u64().unwrap()),
            Some("syscalls:sys_exit_close") => results.push(line["fields"]["ret"].as_i64().unwrap()),
            _ => {}
        }
    }
    assert_eq!(begun.len(), results.len(), "{text}");
    let result_of = |fd| results[begun.iter().position(|begun| *begun == fd).unwrap()];
    assert_eq!([result_of(12345), result_of(0)], [BAD_DESCRIPTOR, 0], "{begun:?} {results:?}");
}

#[test]
fn a_flood_has_one_fate_each() {
    let Some(_live) = live("a_flood_has_one_fate_each") else { return };
    let (hook, told) = entered(true);
    let recording = record_calls(settings(Backend::Auto, vec![hook]), CALLS, "");
    let (told, ledger) = (told.into_inner().unwrap(), &recording.ledger);
    let full = ledger.lost(LossCause::RingFull);
    assert_eq!(full, ledger.total_lost(), "{ledger:?}");
    let recorded = told.len() as u64;
    // Those of the program's start are recorded, too, and may be among the lost ones. A ring has room for so many.
    let what = format!("{recorded}, {ledger:?}, {:?}", recording.warnings);
    assert!(recorded + full >= CALLS && (1000..=CALLS).contains(&recorded), "{what}");
    let numbers: Vec<i64> = told.iter().map(|(.., args)| args[0]).collect();
    assert!(numbers.is_sorted_by(|one, other| one < other), "each once, in their order");
}

/// More than a ring has room for with the whole stack of 60 KiB, and fewer than it has with some of it.
const BURST: u64 = 800;

#[test]
fn a_burst_with_a_large_stack_is_recorded() {
    let Some(_live) = live("a_burst_with_a_large_stack_is_recorded") else { return };
    for backend in [Backend::Ebpf, Backend::Perf] {
        let (hook, told) = entered(true);
        let recording = record_calls(settings(backend, vec![hook]), BURST, "deep");
        let what = format!("{backend:?}: {:?}, {:?}", recording.ledger, recording.stats.stacks);
        assert_eq!(told.into_inner().unwrap().len() as u64, BURST, "{what}");
        let (_, samples) = scenarios::in_function(&recording, "raw_syscalls:sys_enter", "deep");
        // Where the process has ended before its memory was read, the stack ends in the copy.
        let cut = recording.stats.stacks.get("truncated").copied().unwrap_or(0);
        assert!(samples as u64 + cut >= BURST, "{samples}, {what}");
        let (_, calls) = scenarios::in_function(&recording, "raw_syscalls:sys_enter", "numbered_call");
        assert_eq!(calls as u64, BURST, "{what}");
    }
}

#[test]
fn events_of_two_cpus_come_in_one_order() {
    let Some(_live) = live("events_of_two_cpus_come_in_one_order") else { return };
    for backend in [Backend::Ebpf, Backend::Perf] {
        let (hook, told) = entered(false);
        let recording = record_calls(settings(backend, vec![hook]), TURNS, "turns");
        let told = told.into_inner().unwrap();
        let what = format!("{backend:?}: {:?}", recording.ledger);
        let numbers: Vec<i64> = told.iter().map(|(.., args)| args[0]).collect();
        assert_eq!(numbers, (0..TURNS.cast_signed()).collect::<Vec<_>>(), "{what}");
        let threads: BTreeSet<u32> = told.iter().map(|(_, _, tid, _)| *tid).collect();
        assert_eq!(threads.len(), 2, "{what}");
    }
}

#[test]
fn all_tracepoints_begin_and_end_together() {
    let Some(_live) = live("all_tracepoints_begin_and_end_together") else { return };
    let folder = folder();
    let program = compile(folder.path(), "evenly", "evenly.c", &[]);
    let running = Running::of(&mut Command::new(&program));
    let file = folder.path().join("x.jsonl");
    let pid = running.0.id().to_string();
    let pattern = "syscalls:sys_enter_get*";
    let output =
        run(["-p", &pid, "-d", "300ms", "-e", pattern, "-o", file.to_str().unwrap(), "--backend", "ebpf"]);
    drop(running);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(file).unwrap();
    let names = ["getppid", "getuid", "getgid", "geteuid"].map(|name| format!("syscalls:sys_enter_{name}"));
    let counts = names.map(|name| text.lines().filter(|line| line.contains(&format!("\"{name}\""))).count());
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(*least > 20 && most - least <= 1, "each turn of the program has one of each: {counts:?}");
}

#[test]
fn others_have_the_occurrences_of_a_tracepoint_too() {
    let test = "others_have_the_occurrences_of_a_tracepoint_too";
    let Some(_live) = live_with(test, &["perf"]) else { return };
    let folder = folder();
    let program = numbered(folder.path(), "numbered");
    let [file, stats, counted] = ["x.jsonl", "stats.json", "counted"].map(|name| folder.path().join(name));
    let [file, stats, counted] = [&file, &stats, &counted].map(|path| path.to_str().unwrap());
    let record = ["-e", "raw_syscalls:sys_enter", "-o", file, "--stats", stats, "--"];
    let perf = ["perf", "stat", "-x,", "-o", counted, "-e", "raw_syscalls:sys_enter", "--"];
    let own = [program.to_str().unwrap(), "300"];
    let output = run(record.iter().chain(&perf).chain(&own));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stats: serde_json::Value = serde_json::from_slice(&fs::read(stats).unwrap()).unwrap();
    assert_balanced(&stats);
    assert_eq!(stats["backend"], if are_copied() { "ebpf" } else { "perf" }, "{stats}");
    let text = fs::read_to_string(counted).unwrap();
    let line = text.lines().find(|line| line.contains("raw_syscalls:sys_enter")).unwrap();
    let by_perf: u64 = line.split(',').next().unwrap().parse().unwrap();
    let recorded = fs::read_to_string(file).unwrap();
    // It counts from when the program is executed on, and has that name then.
    let by_us = recorded.lines().filter(|line| line.contains(r#""comm":"numbered""#)).count();
    let (by_us, full) = (by_us as u64, stats["lost"]["ring_full"].as_u64().unwrap());
    assert!(by_perf > 300 && by_us <= by_perf && by_us + full >= by_perf, "{by_us}, {full}: {line}");
}

/// An event that tracefs makes of a uprobe, until it is dropped.
struct Dynamic(&'static str);

impl Dynamic {
    fn write(text: &str) {
        use std::io::Write as _;
        let events = Path::new("/sys/kernel/tracing/uprobe_events");
        let mut file = fs::OpenOptions::new().append(true).open(events).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn of(name: &'static str, program: &Path) -> Self {
        let symbols = Command::new("nm").arg(program).output().unwrap();
        let symbols = String::from_utf8(symbols.stdout).unwrap();
        let line = symbols.lines().find(|line| line.ends_with(" numbered_call")).unwrap();
        let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        // The linker puts what is at the file's begin at this address, and the rest as far from it as in the file.
        Self::write(&format!("p:{name} {}:{:#x} number=%di:s64\n", program.display(), address - 0x40_0000));
        Self(name)
    }
}

impl Drop for Dynamic {
    fn drop(&mut self) {
        Self::write(&format!("-:{}\n", self.0));
    }
}

#[test]
fn an_event_that_tracefs_was_told_of_comes_through_perf_s_rings() {
    let test = "an_event_that_tracefs_was_told_of_comes_through_perf_s_rings";
    let Some(_live) = live_with(test, &["nm"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "numbered", "numbered.c", &["-O1", "-pthread", "-no-pie"]);
    let dynamic = Dynamic::of("collector_test/numbered", &program);
    let mut event: Event = Tracefs::open().unwrap().event("collector_test:numbered").unwrap();
    let number = event.format().field_ref("number").unwrap();
    let told = Writable::new(Vec::new());
    let kept = told.clone();
    event.add_closure(move |data| {
        let number = data.try_get_i64(number)?;
        Ok(kept.write(|kept| kept.push(number))?)
    });
    // Beside one that a program copies.
    let (hook, entered) = entered(false);
    let settings = settings(Backend::Ebpf, vec![Hook::tracepoint(event), hook]);
    let recording = scenarios::record(settings, &[program.into(), FEW.to_string().into()]);
    drop(dynamic);
    let told = told.into_inner().unwrap();
    let numbers: Vec<i64> = (0..FEW.cast_signed()).collect();
    assert_eq!(told, numbers, "{:?}", recording.ledger);
    assert_eq!(entered.into_inner().unwrap().len() as u64, FEW, "{:?}", recording.ledger);
}

/// What the kernel lets nobody record, as recording makes it happen (`TRACE_EVENT_PERF_PERM` of `arch/x86/include/asm/trace/irq_vectors.h`).
const REFUSED: [&str; 1] = ["irq_vectors:irq_work_exit"];

/// One of each system; with `COLLECTOR_TEST_ALL=1` all.
#[test]
fn tracepoints_of_every_category_can_be_opened() {
    let Some(_live) = live("tracepoints_of_every_category_can_be_opened") else { return };
    let tracefs = Tracefs::open().unwrap();
    let mut systems = systems_of_the_kernel();
    let mut names = tracefs.matching("*:*").unwrap().unwrap();
    names.retain(|name| systems.contains(name.split_once(':').unwrap().0));
    assert!(names.len() > 1000, "{}", names.len());
    let categories: BTreeMap<&str, &str> =
        names.iter().map(|name| (name.split_once(':').unwrap().0, name.as_str())).collect();
    systems.retain(|system| !categories.contains_key(system.as_str()));
    assert_eq!(systems, BTreeSet::new(), "each system has a tracepoint");
    // Of all of them the kernel needs minutes to let go.
    let chosen: Vec<&str> = if std::env::var_os("COLLECTOR_TEST_ALL").is_some_and(|all| all == "1") {
        names.iter().map(String::as_str).filter(|name| !REFUSED.contains(name)).collect()
    } else {
        categories.into_values().collect()
    };
    assert!(chosen.len() > 50, "{chosen:?}");
    for backend in [Backend::Ebpf, Backend::Perf] {
        // Each is open on each CPU, and as many files may be open.
        for some in chosen.chunks(200) {
            let events = some.iter().map(|name| Hook::tracepoint(tracefs.event(name).unwrap()));
            let command = session::Command::start(&["true".into()]).unwrap();
            let mut session = Session::start(settings(backend, events.collect()), Some(command))
                .unwrap_or_else(|error| panic!("{error}: {some:?}"));
            let (stop, _never) = UnixStream::pair().unwrap();
            session.run(stop.as_fd(), |_| {}).unwrap();
            let recording = session.finish().unwrap();
            assert_eq!(recording.ledger.lost(LossCause::Malformed), 0, "{backend:?}: {some:?}");
            assert_balanced(&recording.stats_now().to_json());
        }
    }
}

/// Folders of tracefs that have a folder with a number, which is an event. Those that programs make, as other tests do beside this one, come
/// and go.
fn systems_of_the_kernel() -> BTreeSet<String> {
    let made = fs::read_to_string("/sys/kernel/tracing/dynamic_events").unwrap_or_default();
    let is_ours = |name: &str| name.starts_with("collector_");
    let is_made =
        |name: &str| name.starts_with("user_events") || is_ours(name) || made.contains(&format!(":{name}/"));
    let folders = fs::read_dir("/sys/kernel/tracing/events").unwrap().map(|entry| entry.unwrap().path());
    let has_events = |folder: &PathBuf| {
        let mut events = fs::read_dir(folder).into_iter().flatten();
        events.any(|event| event.is_ok_and(|event| event.path().join("id").exists()))
    };
    let name = |folder: PathBuf| folder.file_name().unwrap().to_str().unwrap().to_owned();
    folders.filter(has_events).map(name).filter(|name| !is_made(name)).collect()
}
