//! Memory that processes leave as they end takes no place of others', however many they are.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command as Process;
use std::time::{Duration, Instant};

use collector_common::event::filter;
use collector_user::session::{Command, Ended, Progress, Recording, Session, SessionSettings};

use crate::native_memory::every;
use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::assert_balanced;
use crate::scenarios::{attribute, in_function};

/// Bytes of each block of `leaves`.
const BLOCK: u64 = 64;

/// Blocks that are followed at a time, by the documentation.
const PLACES: u64 = 65_536;

/// Programs that are counted at a time.
const PROGRAMS: u64 = 4096;

/// Until all that was recorded before is taken in, on a machine that does much else: it is a moment.
const LONGEST_ROUND: Duration = Duration::from_mins(2);

/// Bytes of the last block of each process, where all others are filtered out.
const LAST: u64 = 32;

/// What `leaves` does: so many processes of so many blocks each come and go, so many times.
struct Leaving {
    times: u64,
    processes: u64,
    blocks: u64,
    /// Whether each has one of [`LAST`] bytes behind those.
    has_last: bool,
}

/// Records `leaves`. It goes on after a round, and when all that
/// was recorded before is taken in: so no ring is full, and not all of the processes end in one round, however slow the machine is.
fn record_leaving(folder: &Path, leaving: &Leaving, settings: SessionSettings) -> Recording {
    let &Leaving { times, processes, blocks, has_last } = leaving;
    let program = compile(folder, "leaves", "leaves.c", &["-fno-builtin"]);
    let gate = folder.join("gate");
    assert!(Process::new("mkfifo").arg(&gate).status().unwrap().success());
    // For both, so that neither end waits for the other to be opened.
    let mut opener = File::options().read(true).write(true).open(&gate).unwrap();
    let of_process = match settings.sampling.allocation_period {
        1 if has_last => 1,
        1 => blocks,
        _ => 0,
    };
    let last = has_last.then_some(LAST);
    let numbers =
        [processes, blocks].into_iter().chain(last).map(|number| OsString::from(number.to_string()));
    let command: Vec<OsString> = [program.into(), gate.into()].into_iter().chain(numbers).collect();
    let mut session = Session::start(settings, Some(Command::start(&command).unwrap())).unwrap();
    for time in 1..=times {
        opener.write_all(b"+").unwrap();
        let all = time * processes * of_process;
        // A record that never comes fails the test, which would wait for it.
        let deadline = Instant::now() + LONGEST_ROUND;
        let mut samples = 0;
        let is_in = |progress: &Progress| {
            samples = progress.samples;
            samples >= all || progress.lost > 0 || Instant::now() >= deadline
        };
        assert_eq!(session.parse_until(is_in).unwrap(), None);
        assert!(samples >= all, "{samples} of {all} blocks are in");
    }
    opener.write_all(b".").unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    let ended = session.run(stop.as_fd(), |_| {}).unwrap();
    assert!(matches!(ended, Ended::Command(status) if status.success()), "{ended:?}");
    let recording = session.finish().unwrap();
    assert_balanced(&recording.stats_now().to_json());
    recording
}

fn warned(recording: &Recording, of: &str) -> bool {
    recording.warnings.iter().any(|warning| warning.contains(of))
}

#[test]
fn blocks_of_ended_processes_leave_room_for_others() {
    const TIMES: u64 = 18;
    const PROCESSES: u64 = 10;
    const BLOCKS: u64 = 400;
    const LEAVING: Leaving = Leaving { times: TIMES, processes: PROCESSES, blocks: BLOCKS, has_last: false };
    let Some(_live) = live("blocks_of_ended_processes_leave_room_for_others") else { return };
    let folder = folder();
    let recording = record_leaving(folder.path(), &LEAVING, every(&["memory"], 1));
    let left = TIMES * PROCESSES * BLOCKS;
    assert!(left > PLACES);
    assert!(!warned(&recording, "not among those that are not freed"), "{:?}", recording.warnings);
    assert_eq!(recording.ledger.total_lost(), 0, "{:?}", recording.ledger);
    let sum = |kind, function| in_function(&recording, kind, function).0 as u64;
    for (function, allocated, kept) in [("leaves", left, left), ("stays", BLOCKS, BLOCKS / 2)] {
        let blocks = ["alloc_objects", "inuse_objects"].map(|kind| sum(kind, function));
        assert_eq!(blocks, [allocated, kept], "{function}");
        assert_eq!(sum("inuse_space", function), kept * BLOCK, "{function}");
    }
    let machine = &recording.machine;
    let kind = |kind: u16| machine.string(machine.kinds()[usize::from(kind)].name);
    for sample in machine.samples().iter().filter(|sample| kind(sample.kind.0).starts_with("inuse")) {
        assert_eq!(attribute(machine, &sample, "until"), "exit");
    }
}

#[test]
fn blocks_that_a_filter_leaves_out_take_no_room() {
    const LEAVING: Leaving = Leaving { times: 18, processes: 10, blocks: 400, has_last: true };
    const PROCESSES: u64 = LEAVING.times * LEAVING.processes;
    const { assert!(PROCESSES * LEAVING.blocks > PLACES) };
    let Some(_live) = live("blocks_that_a_filter_leaves_out_take_no_room") else { return };
    let folder = folder();
    let mut settings = every(&["memory"], 1);
    let last = filter::parse("bytes == 32").unwrap();
    settings.events[0].event.set_filter(Some(&last)).unwrap();
    let recording = record_leaving(folder.path(), &LEAVING, settings);
    assert!(!warned(&recording, "not among those that are not freed"), "{:?}", recording.warnings);
    let sum = |kind, function| in_function(&recording, kind, function).0 as u64;
    assert_eq!(["alloc_objects", "inuse_objects"].map(|kind| sum(kind, "leaves")), [0; 2]);
    assert_eq!(["alloc_objects", "inuse_objects"].map(|kind| sum(kind, "main")), [PROCESSES; 2]);
}

#[test]
fn programs_that_have_ended_leave_room_for_others() {
    const TIMES: u64 = 10;
    const PROCESSES: u64 = 500;
    const LEAVING: Leaving = Leaving { times: TIMES, processes: PROCESSES, blocks: 2, has_last: false };
    let Some(_live) = live("programs_that_have_ended_leave_room_for_others") else { return };
    let folder = folder();
    let recording = record_leaving(folder.path(), &LEAVING, every(&["memory"], 1 << 40));
    const { assert!(TIMES * PROCESSES > PROGRAMS) };
    assert!(!warned(&recording, "too many programs"), "{:?}", recording.warnings);
    let tables = recording.machine.tables();
    let table = tables.iter().find(|table| table.name == "native memory").unwrap();
    let own: Vec<_> = table.rows.iter().filter(|(label, _)| label.starts_with("leaves (")).collect();
    assert_eq!(own.len() as u64, TIMES * PROCESSES + 1);
    let sums = [0, 1, 3].map(|column| own.iter().map(|(_, numbers)| numbers[column]).sum::<u64>());
    let blocks = 2 * (TIMES * PROCESSES + 1);
    assert_eq!(sums, [blocks, blocks * BLOCK, 1]);
    fs::remove_file(folder.path().join("gate")).unwrap();
}
