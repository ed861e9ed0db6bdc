//! Reads, writes and calls on sockets: as many, of as many bytes, where and for as long as a program makes them on purpose.

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use collector_common::event::filter;
use collector_common::ids::Nanos;
use collector_common::loss::LossCause;
use collector_common::record::{ExportMachine, Sample};
use collector_common::sharing::Writable;
use collector_user::session::{self, Recording, Session, SessionSettings};

use crate::prerequisites::{live, live_with};
use crate::programs::{COMPAT_COMPILER, compile, compile_compat, folder};
use crate::recording::assert_balanced;
use crate::scenarios::{self, attribute, settings};

/// What `transfers` does: `WRITES`, `PIECE` and so on.
const WRITES: u64 = 100;
const PIECE: u64 = 1000;
const LOOPS: u64 = 20_000;
const FEW: u64 = 60;

/// The calls on files and sockets alone, each for itself.
fn each() -> SessionSettings {
    let mut settings = settings(&["io_monitoring"]);
    settings.events.retain(|hook| hook.event.name() != "block_io");
    settings.sampling.off_cpu_period = Nanos(1);
    settings
}

/// Records `transfers` in a mode, in a folder. Gives the numbers that it told of itself.
fn record(folder: &Path, mode: &str, settings: SessionSettings) -> (Recording, Vec<u64>) {
    let program = compile(folder, "transfers", "transfers.c", &["-pthread"]);
    record_program(folder, &program, mode, settings)
}

fn record_program(
    folder: &Path,
    program: &Path,
    mode: &str,
    settings: SessionSettings,
) -> (Recording, Vec<u64>) {
    let told = folder.join("told");
    let script = format!("cd {} && exec {} {mode} {}", folder.display(), program.display(), told.display());
    let command = ["sh", "-c", &script].map(OsString::from);
    let mut session = Session::start(settings, Some(session::Command::start(&command).unwrap())).unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    let ended = session.run(stop.as_fd(), |_| {}).unwrap();
    assert!(matches!(ended, session::Ended::Command(status) if status.success()), "{ended:?}");
    let recording = session.finish().unwrap();
    assert_balanced(&recording.stats_now().to_json());
    assert_eq!(recording.ledger.lost(LossCause::Unaccounted), 0, "{:?}", recording.ledger);
    let text = fs::read_to_string(&told).unwrap();
    (recording, text.split_whitespace().map(|number| number.parse().unwrap()).collect())
}

/// As [`record`], where nothing may be lost.
fn record_all(folder: &Path, mode: &str) -> (Recording, Vec<u64>) {
    let (recording, told) = record(folder, mode, each());
    assert_eq!(recording.ledger.lost(LossCause::RingFull), 0, "{:?}", recording.ledger);
    (recording, told)
}

/// Columns of a row of a table; none where it has no such row.
fn row(recording: &Recording, table: &str, label: &str, columns: &[&str]) -> Vec<u64> {
    let found = recording.machine.tables().iter().find(|found| found.name == table).unwrap();
    let places = columns.iter().map(|name| found.columns.iter().position(|one| one.name == *name).unwrap());
    let row = found.rows.iter().find(|(name, _)| name == label);
    row.map_or_else(Vec::new, |(_, numbers)| places.map(|place| numbers[place]).collect())
}

/// Calls, failed ones and bytes of an operation on a kind of file.
fn calls(recording: &Recording, label: &str) -> Vec<u64> {
    row(recording, "reads, writes and calls on sockets", label, &["calls", "failed", "transferred"])
}

/// Samples of a kind with attributes.
fn samples(machine: &ExportMachine, kind: &str, attributes: &[(&str, &str)]) -> Vec<Sample> {
    let of_kind = |sample: &Sample| machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == kind;
    let has_all =
        |sample: &Sample| attributes.iter().all(|(name, value)| attribute(machine, sample, name) == *value);
    machine.samples().iter().filter(of_kind).filter(has_all).collect()
}

fn sum(samples: &[Sample]) -> u64 {
    samples.iter().map(|sample| sample.value as u64).sum()
}

#[test]
fn reads_of_a_pipe_take_as_long_as_its_writer() {
    let Some(_live) = live("reads_of_a_pipe_take_as_long_as_its_writer") else { return };
    let folder = folder();
    // As it is by itself: what takes longer than a millisecond stands for itself alone.
    let (recording, told) = record(folder.path(), "pipe", settings(&["io"]));
    let machine = &recording.machine;
    let symbols = recording.symbolize();
    assert_eq!(calls(&recording, "read pipe"), [10, 0, 10]);
    assert_eq!(calls(&recording, "write pipe"), [10, 0, 10]);
    let of_reads = [("operation", "read"), ("kind", "pipe")];
    let blocked: Vec<_> = samples(machine, "file_io", &of_reads)
        .into_iter()
        .filter(|sample| {
            let stack = machine.stacks().get(sample.stack);
            stack.iter().any(|&frame| symbols.name(frame).function == "read_late")
        })
        .filter(|sample| attribute(machine, sample, "path").starts_with("pipe:["))
        .collect();
    // The writer has seen the reader asleep for the least, and the reader looks at its clock around the calls.
    let [least, most] = told[..] else { panic!("{told:?}") };
    let seen = sum(&blocked);
    println!("{seen} ns between {least} and {most}");
    assert_eq!(blocked.len(), 10, "{:?}", recording.ledger);
    assert!(least >= 200_000_000 && (least..=most).contains(&seen), "{seen}: {told:?}");
    let table = row(&recording, "reads, writes and calls on sockets", "read pipe", &["in all"]);
    let times = machine.histograms().iter().find(|one| one.label == "read pipe").unwrap();
    assert_eq!((table[0], times.count(), times.sum), (seen, 10, seen));
}

#[test]
fn calls_on_a_file_have_its_path() {
    let Some(_live) = live("calls_on_a_file_have_its_path") else { return };
    let folder = folder();
    let (recording, _) = record_all(folder.path(), "file");
    let machine = &recording.machine;
    let path = fs::canonicalize(folder.path()).unwrap().join("written");
    let path = path.to_str().unwrap();
    let of = |operation, bytes: &str| {
        let attributes =
            [("operation", operation), ("path", path), ("bytes", bytes), ("kind", "regular file")];
        samples(machine, "file_io", &attributes)
    };
    let piece = PIECE.to_string();
    assert_eq!([of("write", &piece).len(), of("read", &piece).len()], [WRITES as usize; 2]);
    assert_eq!([of("sync", "0").len(), of("read", "0").len(), of("write", "0").len()], [5, 1, 1]);
    assert_eq!(calls(&recording, "sync regular file"), [5, 0, 0]);
    // Not opened for writing, and no file at all.
    let failed = samples(machine, "file_io", &[("error", "EBADF")]);
    let paths: Vec<_> = failed.iter().map(|sample| attribute(machine, sample, "path")).collect();
    assert_eq!(paths, ["", "", "", "", "", "", "", path]);
    assert_eq!(calls(&recording, "write no file"), [7, 7, 0]);
    // What each kind of call was counted with is what its samples have, as each is one.
    let written = samples(machine, "file_io", &[("operation", "write"), ("kind", "regular file")]);
    let counted = ["calls", "failed", "transferred", "in all"];
    let counted = row(&recording, "reads, writes and calls on sockets", "write regular file", &counted);
    assert_eq!(counted, [written.len() as u64, 1, WRITES * PIECE, sum(&written)]);
    let sizes = |one: &&collector_common::record::Histogram| {
        one.name.starts_with("sizes") && one.label == "write regular file"
    };
    let sizes = machine.histograms().iter().find(sizes).unwrap();
    assert_eq!((sizes.count(), sizes.sum), (WRITES, WRITES * PIECE));
    let filled: Vec<_> = sizes.filled().filter(|(_, _, count)| *count > 0).collect();
    assert_eq!(filled, [(512, 1024, WRITES)]);
}

#[test]
fn a_path_that_is_too_long_has_its_end() {
    let Some(_live) = live("a_path_that_is_too_long_has_its_end") else { return };
    let folder = folder();
    let deep = (0..10)
        .fold(folder.path().to_owned(), |path, level| path.join(format!("{level}-{}", "x".repeat(40))));
    fs::create_dir_all(&deep).unwrap();
    let (recording, _) = record_all(&deep, "file");
    let machine = &recording.machine;
    let synced = samples(machine, "file_io", &[("operation", "sync")]);
    let whole = fs::canonicalize(&deep).unwrap().join("written").display().to_string();
    let path = attribute(machine, &synced[0], "path");
    let end = path.strip_prefix("...").unwrap();
    assert!(whole.ends_with(end) && end.starts_with('/') && end.len() > 256, "{path} of {whole}");
}

/// 10 times 100 bytes and one call with 33 there, 5 times 7 bytes back.
fn assert_talked(mode: &str, host: &str) {
    let folder = folder();
    let (recording, told) = record_all(folder.path(), mode);
    let machine = &recording.machine;
    let [port, closed] = [told[0], told[1]].map(|port| format!("{host}:{port}"));
    let bytes = 10 * 100 + 33 + 5 * 7;
    assert_eq!(calls(&recording, "send socket"), [16, 0, bytes]);
    assert_eq!(calls(&recording, "receive socket"), [16, 0, bytes]);
    assert_eq!(calls(&recording, "connect socket"), [2, 1, 0]);
    assert_eq!(calls(&recording, "accept socket"), [1, 0, 0]);
    let of = |operation, address: &str, error| {
        let address = format!("tcp {address}");
        samples(machine, "network_io", &[("operation", operation), ("address", &address), ("error", error)])
    };
    assert_eq!([of("send", &port, "").len(), of("receive", &port, "").len()], [11, 5]);
    assert_eq!(of("connect", &port, "").len(), 1);
    assert_eq!(of("connect", &closed, "ECONNREFUSED").len(), 1);
    // The other side has the port of this one, as this one says.
    let local = attribute(machine, &of("connect", &port, "")[0], "local_port");
    let local = format!("{host}:{local}");
    assert_eq!([of("send", &local, "").len(), of("receive", &local, "").len()], [5, 11]);
    assert_eq!(of("accept", &local, "").len(), 1);
    let columns = ["connected", "failed", "accepted"];
    let counted = |address: &str| row(&recording, "TCP connections", address, &columns);
    assert_eq!([counted(&port), counted(&closed)], [[1, 0, 0], [0, 1, 0]]);
    assert_eq!(counted(host.trim_start_matches('[').trim_end_matches(']')), [0, 0, 1]);
    // What it takes to make a connection is part of the call that waits for it.
    let took = row(&recording, "TCP connections", &port, &["at longest"])[0];
    assert!(took > 0 && took <= sum(&of("connect", &port, "")), "{took}");
}

#[test]
fn calls_on_connections_have_the_address() {
    let Some(_live) = live("calls_on_connections_have_the_address") else { return };
    assert_talked("tcp", "127.0.0.1");
    if fs::exists("/proc/net/if_inet6").unwrap() {
        assert_talked("tcp6", "[::1]");
    }
}

#[test]
fn receiving_takes_as_long_as_the_other_side() {
    let Some(_live) = live("receiving_takes_as_long_as_the_other_side") else { return };
    let folder = folder();
    let (recording, told) = record(folder.path(), "late", settings(&["io"]));
    let machine = &recording.machine;
    let [port, least, most] = told[..] else { panic!("{told:?}") };
    let address = format!("tcp 127.0.0.1:{port}");
    let received = samples(machine, "network_io", &[("operation", "receive"), ("address", &address)]);
    let symbols = recording.symbolize();
    for sample in &received {
        let stack = machine.stacks().get(sample.stack);
        assert!(stack.iter().any(|&frame| symbols.name(frame).function == "receive_late"), "{stack:?}");
        assert_eq!(attribute(machine, sample, "bytes"), "7");
    }
    let seen = sum(&received);
    println!("{seen} ns between {least} and {most}");
    assert_eq!(received.len(), 10, "{:?}", recording.ledger);
    assert!(least >= 200_000_000 && (least..=most).contains(&seen), "{seen}: {told:?}");
    let columns = ["calls", "failed", "transferred", "in all"];
    let counted = row(&recording, "reads, writes and calls on sockets", "receive socket", &columns);
    assert_eq!(counted, [10, 0, 70, seen]);
}

/// A file that is locked for known times, and a pipe.
#[test]
fn writes_take_as_long_as_they_are_kept_waiting() {
    let Some(_live) = live("writes_take_as_long_as_they_are_kept_waiting") else { return };
    let folder = folder();
    let program = compile(folder.path(), "held", "held.c", &["-pthread"]);
    let of_file = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let path = of_file.path().join("written").display().to_string();
    for (lock, kind) in [("pipe", "pipe"), (&path, "regular file")] {
        let file = folder.path().join("told");
        let [turns, held] = ["5", "60"].map(OsString::from);
        let command = [program.clone().into(), lock.into(), turns, held, file.clone().into()];
        let recording = scenarios::record(settings(&["io"]), &command);
        let machine = &recording.machine;
        let text = fs::read_to_string(&file).unwrap();
        let numbers: Vec<u64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let [waiter, _, _, least, most] = numbers[..] else { panic!("{text}") };
        let mut writes =
            samples(machine, "file_io", &[("operation", "write"), ("kind", kind), ("bytes", "1")]);
        writes.retain(|sample| u64::from(machine.thread(sample.thread).tid.0) == waiter);
        let seen = sum(&writes);
        println!("{kind}: {seen} ns between {least} and {most}");
        assert_eq!(writes.len(), 5, "{kind}: {:?}", recording.ledger);
        assert!(least >= 300_000_000 && (least..=most).contains(&seen), "{kind}: {seen}: {text}");
        let paths: Vec<_> = writes.iter().map(|sample| attribute(machine, sample, "path")).collect();
        let is_right = |told: &str| if kind == "pipe" { told.starts_with("pipe:[") } else { told == path };
        assert!(paths.iter().all(|path| is_right(path)), "{paths:?}");
    }
}

#[test]
fn messages_are_counted_by_their_bytes() {
    let Some(_live) = live("messages_are_counted_by_their_bytes") else { return };
    let folder = folder();
    let (recording, _) = record_all(folder.path(), "messages");
    let machine = &recording.machine;
    assert_eq!(calls(&recording, "send socket"), [2, 0, 33 + 5]);
    assert_eq!(calls(&recording, "receive socket"), [1, 0, 33]);
    let network = |attributes: &[(&str, &str)]| samples(machine, "network_io", attributes).len();
    let bound = ("address", "unix bound");
    assert_eq!(network(&[bound, ("operation", "send"), ("bytes", "33")]), 1);
    assert_eq!(network(&[bound, ("operation", "receive"), ("bytes", "33")]), 1);
    assert_eq!(network(&[bound, ("operation", "connect"), ("error", "")]), 1);
    assert_eq!(network(&[("operation", "connect"), ("error", "ENOENT")]), 1);
    assert_eq!(network(&[("operation", "send"), ("address", "udp 127.0.0.1:9"), ("bytes", "5")]), 1);
}

#[test]
fn what_is_not_answered_is_sent_again() {
    let Some(_live) = live("what_is_not_answered_is_sent_again") else { return };
    let folder = folder();
    let (recording, told) = record_all(folder.path(), "unanswered");
    let columns = ["connected", "failed", "packets sent again"];
    let counted = |host| row(&recording, "TCP connections", &format!("{host}:{}", told[0]), &columns);
    assert_eq!(counted("127.0.0.2"), [1, 0, 0]);
    // The first time after a second, which it waits for, and the second one two seconds later.
    let dropped = counted("127.0.0.1");
    assert_eq!(dropped[..2], [0, 1], "{dropped:?}");
    assert!(dropped[2] >= 1, "{dropped:?}");
    let pending = samples(&recording.machine, "network_io", &[("error", "EINPROGRESS")]);
    assert_eq!(pending.len(), 1);
}

#[test]
fn closures_get_calls_that_pass_a_filter() {
    let Some(_live) = live("closures_get_calls_that_pass_a_filter") else { return };
    let folder = folder();
    let mut settings = each();
    let event = &mut settings.events[0].event;
    event.set_filter(Some(&filter::parse("operation == 'sync'").unwrap())).unwrap();
    let [took, weight] = ["took_ns", "weight"].map(|name| event.format().field_ref(name).unwrap());
    let path = event.format().field_ref("path").unwrap();
    let met = Writable::new(Vec::new());
    let told = met.clone();
    event.add_closure(move |data| {
        let (took, weight) = (data.try_get_u64(took)?, data.try_get_f64(weight)?);
        let path = data.try_get_str(path)?.to_owned();
        Ok(told.write(|told| told.push((took, weight.to_bits(), path)))?)
    });
    let (recording, _) = record(folder.path(), "file", settings);
    let machine = &recording.machine;
    let path = fs::canonicalize(folder.path()).unwrap().join("written").display().to_string();
    let of_files = samples(machine, "file_io", &[]);
    let expected: Vec<_> =
        of_files.iter().map(|sample| (sample.value as u64, 1_f64.to_bits(), path.clone())).collect();
    assert_eq!(met.into_inner().unwrap(), expected);
    assert_eq!(expected.len(), 5);
    // What is counted in the kernel knows nothing of it.
    assert_eq!(calls(&recording, "write no file"), [7, 7, 0]);
}

#[test]
fn short_calls_stand_for_as_much_time_as_they_take() {
    let Some(_live) = live("short_calls_stand_for_as_much_time_as_they_take") else { return };
    let folder = folder();
    let mut settings = each();
    // Some hundred records, and no call of which is longer but where its CPU is taken away.
    settings.sampling.off_cpu_period = Nanos(20_000);
    let (recording, _) = record(folder.path(), "loop", settings);
    let of_zero = [("path", "/dev/zero"), ("kind", "character device"), ("bytes", "1")];
    let sampled = samples(&recording.machine, "file_io", &of_zero);
    let label = "read character device";
    let exact = row(&recording, "reads, writes and calls on sockets", label, &["calls", "in all"]);
    assert_eq!(exact[0], LOOPS);
    let (short, long): (Vec<_>, Vec<_>) = sampled.into_iter().partition(|sample| sample.value == 20_000);
    let (rest, told) = (exact[1] - sum(&long), sum(&short));
    // A record each 20 µs: the error of their number is its root, and five times that is met once in two million.
    let most = 5.0 * (rest as f64 / 20_000.0).sqrt() * 20_000.0;
    println!("{} short calls, {told} of {rest} ns, ± {most}", short.len());
    assert!(told.abs_diff(rest) as f64 <= most, "{told} of {rest} ns, ± {most}");
}

#[test]
fn calls_that_find_no_room_are_counted_all_the_same() {
    let Some(_live) = live("calls_that_find_no_room_are_counted_all_the_same") else { return };
    let folder = folder();
    let mut settings = each();
    settings.sampling.ring_bytes = Some(4096);
    let (recording, _) = record(folder.path(), "loop", settings);
    let ledger = &recording.ledger;
    assert!(ledger.lost(LossCause::RingFull) > 0 && ledger.delivered() > 0, "{ledger:?}");
    assert_eq!(calls(&recording, "read character device"), [LOOPS, 0, LOOPS]);
    assert_eq!(recording.machine.samples().len() as u64, ledger.delivered());
    let tables = recording.machine.tables().iter();
    let table = tables.clone().find(|table| table.name == "reads, writes and calls on sockets").unwrap();
    let all: u64 = table.rows.iter().map(|(_, numbers)| numbers[0]).sum();
    assert_eq!(ledger.produced(), all, "each call is a record, or was lost");
}

#[test]
fn records_of_large_stacks_find_room_when_they_come_at_once() {
    let Some(_live) = live("records_of_large_stacks_find_room_when_they_come_at_once") else { return };
    let folder = folder();
    let mut settings = each();
    // For 16 of them with all of their stacks.
    settings.sampling.ring_bytes = Some(1 << 20);
    let (recording, _) = record(folder.path(), "deep", settings);
    assert_eq!(recording.ledger.lost(LossCause::RingFull), 0, "{:?}", recording.ledger);
    assert_eq!(calls(&recording, "read character device"), [FEW, 0, FEW]);
    let of_zero = [("path", "/dev/zero"), ("kind", "character device"), ("bytes", "1")];
    assert_eq!(samples(&recording.machine, "file_io", &of_zero).len() as u64, FEW);
}

#[test]
fn they_go_together_with_system_calls() {
    let Some(_live) = live("they_go_together_with_system_calls") else { return };
    let folder = folder();
    let (recording, _) = record(folder.path(), "loop", settings(&["io", "syscalls"]));
    assert_eq!(calls(&recording, "read character device"), [LOOPS, 0, LOOPS]);
    let reads = row(&recording, "system calls", "read", &["calls", "failed"]);
    let regular = calls(&recording, "read regular file");
    // Libraries are read with others, too.
    assert!(reads[0] >= LOOPS && reads[0] <= LOOPS + regular[0], "{reads:?} {regular:?}");
}

#[test]
fn calls_of_32_bit_programs_are_left_out() {
    let Some(_live) = live_with("calls_of_32_bit_programs_are_left_out", &[COMPAT_COMPILER]) else { return };
    let folder = folder();
    let program = compile_compat(folder.path(), "transfers", "transfers.c", &["-pthread"]);
    let (recording, _) = record_program(folder.path(), &program, "loop", settings(&["io"]));
    // Their numbers are those of other calls, 3 for `read` and 4 for `write`: none is taken for another one.
    let table = &recording.machine.tables()[0];
    let all: u64 = table.rows.iter().map(|(_, numbers)| numbers[0]).sum();
    assert!(all < 100, "{table:?}");
    assert!(calls(&recording, "read character device").is_empty(), "{table:?}");
}
