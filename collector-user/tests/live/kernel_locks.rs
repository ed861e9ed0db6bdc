//! Waits for locks of the kernel: what is measured lies between bounds that the program under record took itself, and is what
//! the kernel's own tracepoints tell beside it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;

use collector_common::loss::LossCause;
use collector_common::record::{ExportMachine, Sample};
use collector_common::sharing::Writable;
use collector_common::wire::LockFlags;
use collector_user::session::Recording;
use collector_user::source::Hook;
use collector_user::tracefs::Tracefs;

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::scenarios::{assert_near, attribute, record, settings};

/// Turns of `held`, and milliseconds for which each holds the lock.
const TURNS: usize = 5;
const HELD_MS: i64 = 60;

/// Threads of `contend`, and pieces that each reads.
const THREADS: usize = 4;
const PIECES: usize = 60_000;

/// Than what a program at a tracepoint takes.
const FAR_LONGER_NS: u64 = 16_384;

/// `Settings::off_cpu_period`, as it is by default.
const PERIOD_NS: f64 = 1e6;

/// Samples of waits for locks of the kernel.
fn waits(machine: &ExportMachine) -> Vec<Sample> {
    let is_wait =
        |sample: &Sample| machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == "kernel_lock";
    machine.samples().iter().filter(is_wait).collect()
}

/// Whether the stack has a function whose name has this in it.
fn has(recording: &Recording, symbols: &export::symbolize::Symbols, sample: &Sample, part: &str) -> bool {
    let stack = recording.machine.stacks().get(sample.stack);
    stack.iter().any(|&frame| symbols.name(frame).function.contains(part))
}

/// Records `held` with a lock, and looks for the waits for it: their kind, and a function of the kernel that waits.
fn assert_held(lock: &str, kind: &str, function: &str) {
    let folder = folder();
    let program = compile(folder.path(), "held", "held.c", &["-pthread"]);
    let file = folder.path().join("told");
    let [turns, held] = [TURNS.to_string(), HELD_MS.to_string()].map(OsString::from);
    let command = [program.into(), lock.into(), turns, held, file.clone().into()];
    let recording = record(settings(&["locks"]), &command);
    let machine = &recording.machine;
    let text = fs::read_to_string(file).unwrap();
    let numbers: Vec<i64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [waiter, holder, process, least, most] = numbers[..] else { panic!("{text}") };

    let mut waits = waits(machine);
    waits.retain(|sample| {
        i64::from(machine.thread(sample.thread).tid.0) == waiter
            && attribute(machine, sample, "owner_tid") == holder.to_string()
            && sample.value >= HELD_MS * 1_000_000
    });
    let sum: i64 = waits.iter().map(|sample| sample.value).sum();
    println!("{kind}: {sum} ns between {least} and {most}");
    assert_eq!(waits.len(), TURNS, "{process}: {waits:?}");
    assert!(least >= TURNS as i64 * HELD_MS * 1_000_000, "{text}");
    assert!((least..=most).contains(&sum), "{sum}: {text}");
    let symbols = recording.symbolize();
    for wait in &waits {
        assert_eq!(attribute(machine, wait, "kind"), kind);
        assert_eq!(attribute(machine, wait, "owner"), "held");
        // Five levels of page tables put what the kernel maps at 0xff11..., four at 0xffff....
        assert!(attribute(machine, wait, "lock").starts_with("0xff"));
        for part in [function, "wait_in_the_kernel"] {
            assert!(has(&recording, &symbols, wait, part), "{part}");
        }
    }
    let histogram = machine.histograms().iter().find(|histogram| histogram.label == kind).unwrap();
    assert!(histogram.count() >= TURNS as u64 && histogram.sum >= sum as u64, "{histogram:?}");
    assert_eq!(recording.ledger.lost(LossCause::RingFull), 0, "{:?}", recording.ledger);
}

#[test]
fn locks_has_the_time_that_a_thread_waits_for_a_mutex_of_the_kernel() {
    let Some(_live) = live("locks_has_the_time_that_a_thread_waits_for_a_mutex_of_the_kernel") else {
        return;
    };
    assert_held("pipe", "mutex", "pipe_write");
}

#[test]
fn locks_has_the_time_that_a_thread_waits_for_a_files_semaphore() {
    let Some(_live) = live("locks_has_the_time_that_a_thread_waits_for_a_files_semaphore") else { return };
    let file = format!("/dev/shm/collector-held-{}", std::process::id());
    assert_held(&file, "rwsem:W", "shmem_file_write_iter");
    fs::remove_file(file).unwrap();
}

/// Waits of threads called `contend`, as the kernel's own tracepoints tell of them.
#[derive(Debug, Default)]
struct Told {
    /// By thread and lock: since when, and the flags.
    open: BTreeMap<(u32, u64), (u64, u32)>,
    /// By kind: nanoseconds of each.
    over: BTreeMap<&'static str, Vec<u64>>,
}

/// A hook at one of the two tracepoints, with a number of it beside the lock's address.
fn at(name: &str, field: &str, told: &Writable<Told>, tell: fn(&mut Told, (u32, u64), u64, i64)) -> Hook {
    let mut event = Tracefs::open().unwrap().event(name).unwrap();
    let [lock, number] = ["lock_addr", field].map(|field| event.format().field_ref(field).unwrap());
    let told = told.clone();
    event.add_closure(move |data| {
        let (lock, number) = (data.try_get_u64(lock)?, data.try_get_i64(number)?);
        let context = data.context().unwrap();
        Ok(told.write(|told| tell(told, (context.tid.0, lock), context.time.0, number))?)
    });
    Hook::tracepoint(event)
}

#[test]
fn waits_for_kernel_locks_are_those_that_tracepoints_tell_of() {
    let Some(_live) = live("waits_for_kernel_locks_are_those_that_tracepoints_tell_of") else { return };
    let folder = folder();
    let program = compile(folder.path(), "contend", "contend.c", &["-pthread"]);
    let told = Writable::new(Told::default());
    let mut settings = settings(&["locks"]);
    // For all records of the tracepoints.
    settings.sampling.ring_bytes = Some(32 << 20);
    settings.events.push(at("lock:contention_begin", "flags", &told, |told, key, time, flags| {
        // A mutex that is spun for in vain is told of again.
        told.open.entry(key).or_insert((time, flags as u32));
    }));
    settings.events.push(at("lock:contention_end", "ret", &told, |told, key, time, _| {
        if let Some((since, flags)) = told.open.remove(&key) {
            told.over.entry(LockFlags(flags).name()).or_default().push(time - since);
        }
    }));
    let [threads, pieces] = [THREADS.to_string(), PIECES.to_string()].map(OsString::from);
    let file = folder.path().join("read");
    let recording = record(settings, &[program.into(), file.into(), threads, pieces]);
    let machine = &recording.machine;
    let told = told.into_inner().unwrap();
    let each = &told.over["mutex"];
    let (count, ns) = (each.len() as u64, each.iter().sum::<u64>());
    let measured = machine.histograms().iter().find(|histogram| histogram.label == "mutex").unwrap();
    let mut waits = waits(machine);
    waits.retain(|sample| attribute(machine, sample, "kind") == "mutex");
    let sampled: i64 = waits.iter().map(|sample| sample.value).sum();
    println!("{count} waits, {ns} ns; {} counted, {} ns; ", measured.count(), measured.sum);
    println!("{} samples, {sampled} ns; {:?}", waits.len(), recording.ledger);
    assert!(count > 50, "{count} waits");
    // Both are told of each, but for a hit that comes while the CPU is in another program.
    let lost = recording.ledger.total_lost();
    let few = count / 100 + 5;
    assert!(recording.ledger.lost(LossCause::RingFull) == 0 && lost <= few, "{:?}", recording.ledger);
    assert!(measured.count().abs_diff(count) <= lost, "{} and {count} waits, {lost} lost", measured.count());
    // The clock is looked at by both, one after the other and with no other thread between them: what a hypervisor takes the CPU away for
    // is in one of the two, for few waits. What they take themselves is a part of waits of a microsecond alone.
    let (mut longer, mut told_longer) = (measured.count(), each.clone());
    for (start, _, of_bucket) in measured.filled() {
        told_longer.retain(|ns| *ns >= start);
        let apart = longer.abs_diff(told_longer.len() as u64);
        let told = told_longer.len();
        assert!(
            start < FAR_LONGER_NS || apart <= count / 100 + 1,
            "{longer} and {told} of {count} take {start} ns: {measured:?}"
        );
        longer -= of_bucket;
    }
    assert_near(measured.sum as i64, ns as i64, 0.03, "sum of waits");
    // Those shorter than a period are recorded with a chance of their part of it, so that the variance of the sum of samples is
    // less than the sum of all times the period. Six standard deviations:
    let sum = measured.sum as f64;
    let bound = 6.0 * (sum * PERIOD_NS).sqrt();
    assert!((sampled as f64 - sum).abs() <= bound, "{sampled} of {sum}, off by more than {bound}");
    assert!(measured.sum <= THREADS as u64 * recording.stats_now().duration_ns, "{measured:?}");
    let symbols = recording.symbolize();
    let of_readers = waits
        .iter()
        .filter(|wait| ["read_pieces", "ksys_read"].iter().all(|part| has(&recording, &symbols, wait, part)));
    assert!(of_readers.count() > 0, "{waits:?}");
}
