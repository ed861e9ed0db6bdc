//! Copied records of some processes, of two recordings at once, and beside perf's.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use collector_common::event::EventFlags;
use collector_common::sharing::Writable;
use collector_user::session::{Backend, Recording, Session, SessionSettings};
use collector_user::source::{Hook, Targets};
use collector_user::tracefs::Tracefs;

use super::{FEW, entered, numbered, settings};
use crate::prerequisites::live;
use crate::programs::{Running, compile, folder};
use crate::recording::assert_balanced;
use crate::targets::Cgroup;

/// A process that becomes a program when its standard input ends. The program does what it does, and ends.
fn waiting(program: &Path, args: &[&str]) -> Running {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"read line; exec "$@""#, "sh"]).arg(program).args(args);
    Running::of(shell.stdin(Stdio::piped()))
}

fn let_go(children: [&mut Child; 2]) {
    for child in children {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}

/// Records while two processes become their programs and end.
fn record_both(settings: SessionSettings, inside: &mut Running, outside: &mut Running) -> Recording {
    let mut session = Session::start(settings, None).unwrap();
    let (stop, ended) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let_go([&mut outside.0, &mut inside.0]);
            drop(ended);
        });
        session.run(stop.as_fd(), |_| {}).unwrap();
    });
    let recording = session.finish().unwrap();
    assert_balanced(&recording.stats_now().to_json());
    recording
}

#[test]
fn calls_of_chosen_processes_alone_are_recorded() {
    let test = "calls_of_chosen_processes_alone_are_recorded";
    let Some(_live) = live(test) else { return };
    let folder = folder();
    let [inside, outside] = ["inside", "outside"].map(|name| numbered(folder.path(), name));
    let cgroup = Cgroup::new().expect("a mounted cgroup2");
    let of_pid = |pid: u32| Targets { pids: [pid].into(), ..Targets::default() };
    let of_cgroup = |_| Targets { cgroup: Some(cgroup.0.clone()), ..Targets::default() };
    let of_name = |_| Targets { comm: Some("inside".to_owned()), ..Targets::default() };
    let choices: [&dyn Fn(u32) -> Targets; 3] = [&of_pid, &of_cgroup, &of_name];
    for choose in choices {
        let calls = FEW.to_string();
        let [mut inside, mut outside] = [&inside, &outside].map(|program| waiting(program, &[&calls]));
        let pid = inside.0.id();
        fs::write(cgroup.0.join("cgroup.procs"), pid.to_string()).unwrap();
        let targets = choose(pid);
        let (hook, told) = entered(true);
        let mut settings = settings(Backend::Ebpf, vec![hook]);
        settings.sampling.targets = targets.clone();
        record_both(settings, &mut inside, &mut outside);
        let told = told.into_inner().unwrap();
        let numbers: Vec<i64> = told.iter().map(|(.., args)| args[0]).collect();
        assert_eq!(numbers, (0..FEW.cast_signed()).collect::<Vec<_>>(), "{targets:?}");
        assert!(told.iter().all(|(_, _, tid, _)| *tid == pid), "{targets:?}: {told:?}");
    }
}

/// A hook that notes whose each occurrence is.
fn noting(mut hook: Hook, has_stack: bool) -> (Hook, Writable<Vec<u32>>) {
    hook.event.flags_mut().set(EventFlags::CALLSTACK, has_stack);
    let noted = Writable::new(Vec::new());
    let noting = noted.clone();
    hook.event.add_closure(move |data| {
        let pid = data.context().map_or(0, |context| context.pid.0);
        Ok(noting.write(|noted| noted.push(pid))?)
    });
    (hook, noted)
}

#[test]
fn closures_see_threads_of_the_chosen_name_alone() {
    let Some(_live) = live("closures_see_threads_of_the_chosen_name_alone") else { return };
    let folder = folder();
    let [inside, outside] =
        ["inside", "outside"].map(|name| compile(folder.path(), name, "naps.c", &["-pthread"]));
    let tracepoint = |name| Hook::tracepoint(Tracefs::open().unwrap().event(name).unwrap());
    // Records of no one size, which plain perf events tell with any backend; of one size; and those of one counter that two share.
    let hooks = || {
        [
            noting(tracepoint("sched:sched_process_exec"), false),
            noting(tracepoint("sched:sched_process_exec"), true),
            noting(tracepoint("sched:sched_process_exit"), false),
            noting(Hook::counter("context-switches").unwrap(), false),
            noting(Hook::counter("context-switches").unwrap(), false),
        ]
    };
    let told = folder.path().join("told");
    for backend in [Backend::Ebpf, Backend::Perf] {
        let args = ["1", "20", "0", "5000", told.to_str().unwrap()];
        let [mut inside, mut outside] = [&inside, &outside].map(|program| waiting(program, &args));
        let pid = inside.0.id();
        let (hooks, noted): (Vec<_>, Vec<_>) = hooks().into_iter().unzip();
        let mut settings = settings(backend, hooks);
        settings.sampling.targets.comm = Some("inside".to_owned());
        let recording = record_both(settings, &mut inside, &mut outside);
        let noted: Vec<Vec<u32>> = noted.into_iter().map(|noted| noted.into_inner().unwrap()).collect();
        let [executed, sampled, ended, switched, again] = &noted[..] else { unreachable!() };
        let what = format!("{backend:?}, {pid}: {noted:?}, {:?}", recording.ledger);
        // One of its threads, and the main one.
        assert_eq!((executed, sampled, ended), (&vec![pid], &vec![pid], &vec![pid; 2]), "{what}");
        assert!(switched.len() >= 20 && switched.iter().all(|one| *one == pid), "{what}");
        assert_eq!(switched, again, "{what}");
        let delivered = executed.len() + sampled.len() + ended.len() + switched.len();
        assert_eq!(recording.ledger.delivered(), delivered as u64, "{what}");
    }
}

/// Switches from threads of `naps`: their fields as text, and the threads that have been switched from for the last time. Those to them are
/// not told by perf events where the CPU was idle and had been offline before.
#[derive(Debug, Default)]
struct Switches {
    told: Vec<String>,
    ended: BTreeSet<i64>,
}

/// `sched:sched_switch`, with what is told of threads of `naps`.
fn switches() -> (Hook, Writable<Switches>) {
    /// What a thread's state is in its last switch: `EXIT_DEAD` or `EXIT_ZOMBIE`.
    const ENDED: [i64; 2] = [0x10, 0x20];
    let mut event = Tracefs::open().unwrap().event("sched:sched_switch").unwrap();
    let names = event.format().fields().iter().map(|field| field.name().to_owned());
    let names: Vec<String> = names.filter(|name| !name.starts_with("common_")).collect();
    assert_eq!(names.len(), 7, "{names:?}");
    let fields: Vec<_> = names.iter().map(|name| event.format().field_ref(name).unwrap()).collect();
    let [from, tid, state] =
        ["prev_comm", "prev_pid", "prev_state"].map(|name| event.format().field_ref(name).unwrap());
    let switches = Writable::new(Switches::default());
    let kept = switches.clone();
    event.add_closure(move |data| {
        if data.try_get_str(from)? != "naps" {
            return Ok(());
        }
        let values: Result<Vec<String>, _> =
            fields.iter().map(|&field| data.value(field).map(|value| format!("{value:?}"))).collect();
        let values = values?.join(" ");
        let ended = ENDED.contains(&data.try_get_i64(state)?).then_some(i64::from(data.try_get_i32(tid)?));
        Ok(kept.write(|kept| {
            kept.told.push(values);
            kept.ended.extend(ended);
        })?)
    });
    (Hook::tracepoint(event), switches)
}

#[test]
fn two_recordings_have_the_same_and_one_by_perf_too() {
    let test = "two_recordings_have_the_same_and_one_by_perf_too";
    let Some(_live) = live(test) else { return };
    let folder = folder();
    let program = compile(folder.path(), "naps", "naps.c", &["-pthread"]);
    let backends = [Backend::Ebpf, Backend::Ebpf, Backend::Perf];
    let (mut sessions, mut switched) = (Vec::new(), Vec::new());
    for backend in backends {
        let (hook, switches) = switches();
        sessions.push(Session::start(settings(backend, vec![hook]), None).unwrap());
        switched.push(switches);
    }
    let naps = ["1", "50", "100", "2000"];
    let mut running = Running::of(Command::new(program).args(naps).arg(folder.path().join("told")));
    let started = Instant::now();
    // The one that naps, and the main thread. They end before their last switch.
    while switched.iter().any(|switches| switches.read(|switches| switches.ended.len() < 2).unwrap()) {
        assert!(started.elapsed() < Duration::from_mins(1), "the program's last switches are not told");
        for session in &mut sessions {
            session.parse_for(Duration::from_millis(10)).unwrap();
        }
    }
    assert!(running.0.wait().unwrap().success());
    for session in sessions {
        let recording = session.finish().unwrap();
        assert_balanced(&recording.stats_now().to_json());
        assert_eq!(recording.ledger.total_lost(), 0, "{:?}", recording.ledger);
    }
    let [first, second, by_perf] =
        &*switched.into_iter().map(|switches| switches.into_inner().unwrap().told).collect::<Vec<_>>()
    else {
        unreachable!()
    };
    assert!(first.len() > 50, "{first:?}");
    assert_eq!(first, second);
    assert_eq!(first, by_perf);
}
