//! CPUs that go offline and come back, as all but one do where a machine is suspended.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::{fs, io};

use collector_common::ids::Nanos;
use collector_common::loss::Ledger;
use collector_common::sharing::Writable;
use collector_user::session::{Session, SessionSettings};
use collector_user::source::{Account, Hook, Settings, Source, SourceRecord, Targets};
use collector_user::tracefs::Tracefs;

use crate::languages::recursion;
use crate::lives::record_script;
use crate::prerequisites::{live_with, skip};
use crate::programs::{compile, folder};

/// Puts a CPU back online, however the test ends.
struct BackOnline(PathBuf);

impl Drop for BackOnline {
    fn drop(&mut self) {
        fs::write(&self.0, "1").unwrap();
    }
}

#[test]
fn a_cpu_that_was_offline() {
    let Some(_live) = live_with("a_cpu_that_was_offline", &["taskset"]) else { return };
    let switch = Path::new("/sys/devices/system/cpu/cpu1/online");
    if !fs::read(switch).is_ok_and(|state| state == b"1\n") {
        return skip("a_cpu_that_was_offline", "CPU 1 can't be put offline");
    }
    let _back = BackOnline(switch.to_owned());
    let folder = folder();
    let program = compile(folder.path(), "on-cpu-1", "recursion.c", &[]);
    // The program is first executed on a CPU whose sideband nobody reads yet; a second later it is sampled.
    let script = r#"echo 0 >"$2"; echo 1 >"$2"; for i in 1 2 3; do taskset -c 1 "$1"; done"#;
    let recorded = record_script(folder.path(), script, &[program.as_os_str(), OsStr::new(switch)]);
    recursion("on-cpu-1").check(&recorded);
    assert!(recorded.stderr.contains("warning: 1 CPU(s) came online"), "{}", recorded.stderr);
}

/// The switch of CPU 1, where there is one.
fn switch(test: &str) -> Option<BackOnline> {
    let switch = Path::new("/sys/devices/system/cpu/cpu1/online");
    if fs::read(switch).is_ok_and(|state| state == b"1\n") {
        return Some(BackOnline(switch.to_owned()));
    }
    skip(test, "CPU 1 can't be put offline");
    None
}

/// A source that goes on whatever a CPU does, and counts how often it is told of one.
struct Untouched(Rc<Cell<u32>>);

impl Source for Untouched {
    fn name(&self) -> &'static str {
        "untouched"
    }

    fn drain(&mut self, _: Nanos, _: &mut dyn FnMut(&SourceRecord<'_>)) {}

    fn dropped(&self) -> u64 {
        0
    }

    fn close(&mut self, _: &mut Ledger) -> io::Result<Account> {
        Ok(Account::default())
    }

    fn add_cpu(&mut self, _: u32, _: &[u32]) -> io::Result<Option<BorrowedFd<'_>>> {
        self.0.set(self.0.get() + 1);
        Ok(None)
    }
}

/// A shell that waits for a line, and whose child executes `true` on CPU 1 again and again until it is killed.
struct OnCpu1(Child);

impl OnCpu1 {
    fn start() -> Self {
        let script = r"(while kill -0 $$; do taskset -c 1 true 2>/dev/null || sleep 0.05; done) & read -r _";
        let mut shell = Command::new("sh");
        Self(shell.args(["-c", script]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for OnCpu1 {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// Records what is executed, until it is told of CPU 1 after `bring_back`. Tells whether it ever is, and how often a source
/// that needed nothing was told of a CPU.
fn executed_on_cpu_1(pids: BTreeSet<u32>, bring_back: impl FnOnce()) -> (bool, u32) {
    let mut event = Tracefs::open().unwrap().event("sched:sched_process_exec").unwrap();
    let (watching, seen) = (Writable::new(false), Writable::new(false));
    let (from, told) = (watching.clone(), seen.clone());
    event.add_closure(move |data| {
        let is_after = from.write(|watching| *watching)?;
        let is_there = is_after && data.context().unwrap().cpu == 1;
        Ok(told.write(|seen| *seen |= is_there)?)
    });
    let sampling =
        Settings { clock: false, targets: Targets { pids, ..Targets::default() }, ..Settings::default() };
    let told_of_cpus = Rc::new(Cell::new(0));
    let settings = SessionSettings {
        sampling,
        events: vec![Hook::tracepoint(event)],
        sources: vec![Box::new(Untouched(told_of_cpus.clone()))],
        ..SessionSettings::default()
    };
    let mut session = Session::start(settings, None).unwrap();
    bring_back();
    watching.write(|watching| *watching = true).unwrap();
    let (stop, at_the_end) = UnixStream::pair().unwrap();
    let (began, mut at_the_end) = (Instant::now(), Some(at_the_end));
    let progress = |_: &_| {
        // A CPU that is never recorded must not be waited for without end.
        if seen.write(|seen| *seen).unwrap() || began.elapsed() > Duration::from_secs(30) {
            at_the_end = None;
        }
    };
    session.run(stop.as_fd(), progress).unwrap();
    drop(session.finish().unwrap());
    (seen.write(|seen| *seen).unwrap(), told_of_cpus.get())
}

#[test]
fn events_alone_go_on_where_a_cpu_comes_back() {
    let test = "events_alone_go_on_where_a_cpu_comes_back";
    let Some(_live) = live_with(test, &["taskset"]) else { return };
    let Some(switch) = switch(test) else { return };
    let _running = OnCpu1::start();
    let bring_back = || ["0", "1"].iter().for_each(|state| fs::write(&switch.0, state).unwrap());
    assert_eq!(executed_on_cpu_1(BTreeSet::new(), bring_back), (true, 0));
}

#[test]
fn children_are_followed_to_a_cpu_that_comes_online() {
    let test = "children_are_followed_to_a_cpu_that_comes_online";
    let Some(_live) = live_with(test, &["taskset"]) else { return };
    let Some(switch) = switch(test) else { return };
    fs::write(&switch.0, "0").unwrap();
    let running = OnCpu1::start();
    let bring_back = || fs::write(&switch.0, "1").unwrap();
    assert_eq!(executed_on_cpu_1([running.0.id()].into(), bring_back), (true, 0));
}
