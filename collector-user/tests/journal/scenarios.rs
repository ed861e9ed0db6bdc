//! What is made of each scenario's records, beside what the recorded programs know of themselves.

use collector_common::record::{Exit, ExportMachine};
use collector_common::sharing::Writable;
use collector_user::journal::Journal;
use collector_user::session::Session;

use crate::recorded::{bytes, of_kind, of_thread, replayed, row, told};

fn assert_near(measured: i64, truth: i64, part: f64) {
    let off = (measured - truth) as f64 / truth as f64;
    assert!(off.abs() <= part, "{measured} of {truth}, off by {:.2} %", 100.0 * off);
}

fn sum(values: &[i64]) -> i64 {
    values.iter().sum()
}

/// All values of a kind.
fn values(machine: &ExportMachine, kind: &str) -> Vec<i64> {
    of_kind(machine, kind).map(|sample| sample.value).collect()
}

#[test]
fn ticks_of_the_clock_are_the_time_that_was_burned() {
    for name in ["cpu_profiling", "perf_events"] {
        let recording = replayed(name);
        let [tid, burned, ..] = told(name)[0][..] else { panic!() };
        let ticks = sum(&of_thread(&recording.machine, "cpu", tid));
        // 100 ms, a tick each 1/997 s.
        assert_near(ticks * 1_000_000_000 / 997, burned, 0.1);
        assert_eq!(recording.machine.kinds()[0].period, 1_000_000_000 / 997);
        let ledger = &recording.ledger;
        assert_eq!(ledger.produced(), ledger.delivered() + ledger.total_lost());
        assert!(ledger.delivered() >= ticks as u64);
    }
}

#[test]
fn times_off_are_the_sleeps_of_each_thread() {
    let recording = replayed("off_cpu");
    let threads = told("off_cpu");
    assert_eq!(threads.len(), 2);
    for thread in threads {
        let [tid, _, slept, ..] = thread[..] else { panic!() };
        let naps: Vec<i64> = of_thread(&recording.machine, "off_cpu", tid);
        let naps: Vec<i64> = naps.into_iter().filter(|nap| *nap >= 20_000_000).collect();
        assert_eq!(naps.len(), 5, "{naps:?}");
        // What it sees has its waits for a CPU in it.
        assert!((100_000_000..=slept).contains(&sum(&naps)), "{naps:?} of {slept}");
    }
}

#[test]
fn a_thread_runs_or_waits_for_as_long_as_it_lives() {
    let recording = replayed("wall_clock");
    let machine = &recording.machine;
    let [tid, burned, slept, lived, _] = told("wall_clock")[0][..] else { panic!() };
    let of_state = |state: &str| {
        let of_state = of_kind(machine, "wall_clock").filter(|sample| {
            i64::from(machine.thread(sample.thread).tid.0) == tid
                && machine.attribute(sample.attributes, "state").is_some_and(|told| told == state)
        });
        of_state.map(|sample| sample.value).sum::<i64>()
    };
    // A machine whose CPUs are taken away runs for longer than it tells its threads.
    let ran = of_state("running");
    assert!((burned / 20 * 19..=lived).contains(&ran), "{ran} of {burned}");
    // What it sees has its waits for a CPU in it.
    assert!((40_000_000..=slept).contains(&of_state("blocked")), "{} of {slept}", of_state("blocked"));
    let all = sum(&of_thread(machine, "wall_clock", tid));
    assert_near(all, lived, 0.05);
    assert_eq!(all, ["running", "blocked", "runnable"].map(of_state).iter().sum::<i64>());
}

#[test]
fn each_wait_for_a_cpu_is_counted() {
    let recording = replayed("scheduling");
    let histograms = recording.machine.histograms().iter();
    let waits = histograms.filter(|it| it.name == "waits for a CPU" && it.label.contains("naps"));
    let waits: u64 = waits.map(collector_common::record::Histogram::count).sum();
    // It sleeps 40 times.
    assert!((40..80).contains(&waits), "{waits}: {:#?}", recording.machine.histograms());
}

#[test]
fn a_lock_is_waited_for_while_it_is_held() {
    let recording = replayed("locks");
    let machine = &recording.machine;
    let [waiter, holder, lock, least, most] = told("locks")[0][..] else { panic!() };
    let lock = format!("{lock:#x}");
    let of_lock = |kind: &'static str, tid: i64| {
        let of_lock = of_kind(machine, kind).filter(|sample| {
            machine.attribute(sample.attributes, "lock").is_some_and(|told| told == lock)
                && i64::from(machine.thread(sample.thread).tid.0) == tid
        });
        of_lock.map(|sample| sample.value).collect::<Vec<_>>()
    };
    for waits in [of_lock("lock", waiter), of_lock("lock_owner", holder)] {
        assert_eq!(waits.len(), 3, "{waits:?}");
        assert!((least..=most).contains(&sum(&waits)), "{least} <= {waits:?} <= {most}");
    }
}

#[test]
fn reads_of_a_pipe_take_as_long_as_its_writer() {
    let recording = replayed("io_monitoring");
    let machine = &recording.machine;
    let [least, most] = told("io_monitoring")[0][..] else { panic!() };
    let reads = of_kind(machine, "file_io").filter(|sample| {
        let is = |name, value: &str| machine.attribute(sample.attributes, name).is_some_and(|it| it == value);
        is("operation", "read") && is("kind", "pipe")
    });
    let values: Vec<i64> = reads.map(|sample| sample.value).collect();
    assert_eq!(values.len(), 10, "{values:?}");
    assert!((least..=most).contains(&sum(&values)), "{least} <= {values:?} <= {most}");
    let counted = row(machine, "reads, writes and calls on sockets", "read pipe");
    assert_eq!(counted[0], 10, "a byte each 20 ms");
}

#[test]
fn memory_is_what_the_program_asked_for() {
    let recording = replayed("memory_tracking");
    let machine = &recording.machine;
    let [blocks, asked, freed, kept, _] = told("memory_tracking")[0][..] else { panic!() };
    let of = |kind| sum(&values(machine, kind));
    let [allocated, count] = ["alloc_space", "alloc_objects"].map(of);
    // Whatever the C library asks for itself is beside it.
    assert!((asked..asked + (64 << 10)).contains(&allocated), "{allocated} of {asked}");
    assert!((blocks..blocks + 16).contains(&count), "{count} of {blocks}");
    let [live, live_blocks] = ["inuse_space", "inuse_objects"].map(of);
    assert!((kept..kept + (64 << 10)).contains(&live), "{live} of {kept}");
    assert!((blocks - freed..blocks - freed + 16).contains(&live_blocks), "{live_blocks}");
}

#[test]
fn memory_of_the_kernel_is_what_is_asked_of_it() {
    let recording = replayed("memory_growth");
    let asked: i64 = told("memory_growth")[0].iter().sum();
    let given = sum(&values(&recording.machine, "mapped_space"));
    // What the program takes when it starts is beside it.
    assert!((asked..asked + (2 << 20)).contains(&given), "{given} of {asked}");
}

#[test]
fn calls_are_counted_with_their_errors() {
    let recording = replayed("syscalls");
    let machine = &recording.machine;
    let [slept, longest] = told("syscalls").concat()[..] else { panic!() };
    assert_eq!(row(machine, "system calls", "getppid")[..2], [5000, 0]);
    assert_eq!(row(machine, "system calls", "openat2")[..2], [300, 300]);
    let sleeps = machine.histograms().iter().find(|it| it.label == "nanosleep").unwrap();
    assert_eq!(sleeps.count(), 20);
    assert!((200_000_000..=slept).contains(&(sleeps.sum as i64)), "{} of {slept}", sleeps.sum);
    let slowest = values(machine, "syscalls").into_iter().filter(|took| *took >= 10_000_000);
    let slowest: Vec<i64> = slowest.filter(|took| *took <= longest).collect();
    assert!(!slowest.is_empty());
}

#[test]
fn processes_end_as_they_do() {
    let recording = replayed("processes");
    let machine = &recording.machine;
    let lives = machine.lives().iter().map(|life| machine.process(life.process));
    let mut ends: Vec<_> = lives.map(|process| (machine.string(process.name), process.exit)).collect();
    ends.sort_unstable_by_key(|(name, exit)| (*name, *exit == Some(Exit::Code(7))));
    let ends: Vec<_> = ends.into_iter().filter_map(|(name, exit)| Some((name, exit?))).collect();
    let [none, seven] = [Exit::Code(0), Exit::Code(7)];
    assert_eq!(ends, [("sh", none), ("sh", seven), ("true", none), ("true", none), ("true", none)]);
    let lines: Vec<String> = machine.programs().iter().map(|program| machine.command_line(program)).collect();
    for line in ["/bin/true 1", "/bin/true 2", "/bin/true 3"] {
        assert!(lines.iter().any(|told| told == line), "{lines:?}");
    }
}

#[test]
fn pages_are_met_absent_once() {
    let recording = replayed("page_faults");
    let faults = sum(&values(&recording.machine, "minor-faults"));
    // 50 pages, and those of the program's start.
    assert!((50..256).contains(&faults), "{faults}");
    assert_eq!(row(&recording.machine, "page faults", "touches")[0], faults as u64);
}

/// Closures get the records of a journal.
#[test]
fn a_copied_tracepoint_has_its_fields() {
    let bytes = bytes("tracepoint");
    let journal = Journal::open(bytes.as_slice()).unwrap();
    let mut settings = journal.settings();
    let event = &mut settings.events[0].event;
    assert_eq!(event.name(), "sched:sched_process_exec");
    let [pid, old] = ["pid", "old_pid"].map(|name| event.format().field_ref(name).unwrap());
    let pids = Writable::new(Vec::new());
    let seen = pids.clone();
    event.add_closure(move |data| {
        let both = (data.try_get_i32(pid)?, data.try_get_i32(old)?);
        Ok(seen.write(|seen| seen.push(both))?)
    });
    let recording = Session::replay(journal, settings).unwrap();
    let machine = &recording.machine;
    let samples: Vec<_> = of_kind(machine, "sched:sched_process_exec").collect();
    // The shell, two programs, and one in the shell's place.
    assert_eq!(samples.len(), 4);
    let of = |sample: &collector_common::record::Sample| machine.thread(sample.thread).tid.0.cast_signed();
    let told: Vec<_> = samples.iter().map(|sample| (of(sample), of(sample))).collect();
    pids.read(|pids| {
        let mut pids = pids.clone();
        let mut told = told.clone();
        pids.sort_unstable();
        told.sort_unstable();
        assert_eq!(pids, told);
    })
    .unwrap();
}
