//! Modules are looked up at the same time, and what is found is the same however many threads do it.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use collector_common::ids::Svma;
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind};
use export::symbolize::{Detail, ModuleFiles, Naming, Symbols, symbolize};

use crate::symbols::{Files, library};
use crate::tools::{output, tool};

/// This program, and what it is linked with: some functions of each.
fn machine() -> Option<ExportMachine> {
    if tool("gcc").is_none() || tool("nm").is_none() {
        return None;
    }
    let own = std::env::current_exe().unwrap();
    let files: Vec<PathBuf> = ["libc.so.6", "libstdc++.so.6", "libm.so.6"]
        .iter()
        .filter_map(|name| library(name))
        .chain([own])
        .collect();
    let mut machine = ExportMachine::default();
    for path in &files {
        let dynamic = path.to_string_lossy().contains(".so").then_some("-D");
        let listed = output(Command::new("nm").arg("--defined-only").args(dynamic).arg(path));
        let functions =
            listed.lines().filter_map(|line| line.split_once(" T ").or_else(|| line.split_once(" t ")));
        let path = machine.intern_string(path.to_str().unwrap());
        let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
        for (address, _) in functions.step_by(10) {
            let address = Svma(u64::from_str_radix(address, 16).unwrap());
            machine.intern_frame(Frame { module, address, flags: FrameFlags::default() });
        }
    }
    Some(machine)
}

/// All that formats can ask for.
fn told(machine: &ExportMachine, symbols: &Symbols) -> Vec<String> {
    let frames = (0..machine.frames().len() as u32).map(FrameId);
    frames
        .map(|frame| {
            let functions: Vec<_> = symbols.functions(frame).collect();
            let texts: Vec<_> =
                functions.iter().map(|it| [it.name, it.file].map(|id| symbols.function(id))).collect();
            format!("{:?} {functions:?} {texts:?}", symbols.name(frame))
        })
        .collect()
}

fn by(threads: usize) -> Naming {
    Naming { threads: NonZeroUsize::new(threads), ..Naming::default() }
}

#[test]
fn what_is_found_does_not_depend_on_the_number_of_threads() {
    let Some(machine) = machine() else { return };
    let one = told(&machine, &symbolize(&machine, &Files::of(&machine), by(1)));
    assert!(one.len() > 1_000 && one.iter().any(|line| line.contains("is_inlined: true")));
    for threads in [2, 8] {
        let files = Files::of(&machine);
        let symbols = symbolize(&machine, &files, by(threads));
        assert!(symbols.unreadable().is_empty(), "{:?}", symbols.unreadable());
        assert_eq!(told(&machine, &symbols), one, "{threads}");
        assert_eq!(files.opened.get(), 4, "each file is opened once");
    }
}

/// How many threads are reading, and where one waits until there are enough.
#[derive(Default)]
struct Meeting {
    threads: Mutex<Vec<std::thread::ThreadId>>,
    changed: Condvar,
}

/// A file whose reader goes on when two threads have read.
struct Waiting {
    file: File,
    meeting: Arc<Meeting>,
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let own = std::thread::current().id();
        let mut threads = self.meeting.threads.lock().unwrap();
        if !threads.contains(&own) {
            threads.push(own);
            self.meeting.changed.notify_all();
        }
        let wait =
            self.meeting.changed.wait_timeout_while(threads, Duration::from_mins(1), |it| it.len() < 2);
        if wait.unwrap().1.timed_out() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

impl Seek for Waiting {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

/// Files that can't be shared between threads, as those of a recording can't.
struct Meetings<'a> {
    machine: &'a ExportMachine,
    meeting: Arc<Meeting>,
    opened: Cell<usize>,
}

impl ModuleFiles for Meetings<'_> {
    type File = Waiting;

    fn open(&self, module: ModuleId) -> Option<Waiting> {
        self.opened.set(self.opened.get() + 1);
        let file = File::open(self.machine.string(self.machine.module(module).path)).ok()?;
        Some(Waiting { file, meeting: Arc::clone(&self.meeting) })
    }
}

#[test]
fn two_files_are_read_at_the_same_time() {
    let Some(machine) = machine() else { return };
    let files = Meetings { machine: &machine, meeting: Arc::default(), opened: Cell::new(0) };
    let symbols = symbolize(&machine, &files, Naming { detail: Detail::Names, ..by(2) });
    assert!(symbols.unreadable().is_empty(), "{:?}", symbols.unreadable());
    assert_eq!(files.opened.get(), 4);
    assert_eq!(files.meeting.threads.lock().unwrap().len(), 2, "no more threads than were asked for");
}
