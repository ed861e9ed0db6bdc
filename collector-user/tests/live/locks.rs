//! Waits for locks: what is measured lies between bounds that the program under record took itself.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use collector_common::ids::Nanos;
use collector_common::loss::LossCause;
use collector_common::record::{ExportMachine, Sample};
use collector_user::session::{Recording, SessionSettings};

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::scenarios::{attribute, record, settings};

/// Turns of `locked`, and milliseconds for which each holds the lock.
const TURNS: usize = 5;
const HELD_MS: i64 = 60;

/// What `locked` tells.
#[derive(Debug)]
struct Told {
    waiter: u32,
    holder: u32,
    lock: u64,
    /// Nanoseconds for which the waiter was seen asleep.
    least: i64,
    /// Nanoseconds from before it asked for the lock to after that was released.
    most: i64,
}

fn told(file: &Path) -> Told {
    let text = fs::read_to_string(file).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [waiter, holder, lock, least, most] = numbers[..] else { panic!("{text}") };
    Told { waiter: waiter as u32, holder: holder as u32, lock, least: least as i64, most: most as i64 }
}

/// Records `locked` with a kind of mutex.
fn record_locked(folder: &Path, mutex: &str, scenarios: &[&str]) -> (Recording, Told) {
    record_locked_by(folder, mutex, settings(scenarios))
}

fn record_locked_by(folder: &Path, mutex: &str, settings: SessionSettings) -> (Recording, Told) {
    let program = compile(folder, "locked", "locked.c", &["-pthread"]);
    let file = folder.join("told");
    let [turns, held] = [TURNS.to_string(), HELD_MS.to_string()].map(OsString::from);
    let command = [program.into(), mutex.into(), turns, held, file.clone().into()];
    let recording = record(settings, &command);
    let told = told(&file);
    (recording, told)
}

/// Samples of a kind that are waits of the thread for the lock.
fn waits(machine: &ExportMachine, kind: &str, told: &Told) -> Vec<Sample> {
    let lock = format!("{:#x}", told.lock);
    let is_wait = |sample: &Sample| {
        machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == kind
            && machine.thread(sample.thread).tid.0 == told.waiter
            && attribute(machine, sample, "lock") == lock
    };
    machine.samples().iter().filter(|sample| is_wait(sample)).collect()
}

/// Samples of the thread that held the lock, each of a wait of the other one for it.
fn releases(machine: &ExportMachine, told: &Told) -> Vec<Sample> {
    let lock = format!("{:#x}", told.lock);
    let is_release = |sample: &Sample| {
        machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == "lock_owner"
            && machine.thread(sample.thread).tid.0 == told.holder
            && attribute(machine, sample, "lock") == lock
    };
    machine.samples().iter().filter(is_release).collect()
}

fn assert_waits_are_told(mutex: &str) {
    let folder = folder();
    let (recording, told) = record_locked(folder.path(), mutex, &["locks"]);
    let machine = &recording.machine;
    let symbols = recording.symbolize();
    let waits = waits(machine, "lock", &told);
    assert_eq!(waits.len(), TURNS, "{told:?}");
    let sum: i64 = waits.iter().map(|sample| sample.value).sum();
    println!("{mutex}: {sum} ns between {} and {}", told.least, told.most);
    assert!(told.least >= TURNS as i64 * HELD_MS * 1_000_000, "{told:?}");
    assert!((told.least..=told.most).contains(&sum), "{sum}: {told:?}");
    for wait in &waits {
        assert_eq!(attribute(machine, wait, "owner"), "locked");
        assert_eq!(attribute(machine, wait, "owner_tid"), told.holder.to_string());
        let stack = machine.stacks().get(wait.stack);
        assert!(stack.iter().any(|&frame| symbols.name(frame).function == "wait_for_lock"), "{stack:?}");
    }
    let kinds = machine.kinds().iter().map(|kind| (machine.string(kind.name), kind.unit.name()));
    let expected = ["lock", "lock_owner", "kernel_lock"].map(|kind| (kind, "nanoseconds"));
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    // The same time, by the stack of who released it.
    let releases = releases(machine, &told);
    assert_eq!(releases.iter().map(|sample| sample.value).sum::<i64>(), sum, "{releases:?}");
    assert_eq!(releases.len(), TURNS);
    for release in &releases {
        assert_eq!(attribute(machine, release, "waiter"), "locked");
        assert_eq!(attribute(machine, release, "waiter_tid"), told.waiter.to_string());
        let stack = machine.stacks().get(release.stack);
        assert!(stack.iter().any(|&frame| symbols.name(frame).function == "release_lock"), "{stack:?}");
    }
    assert_eq!(recording.ledger.lost(LossCause::RingFull), 0, "{:?}", recording.ledger);
}

#[test]
fn locks_has_the_time_that_a_thread_waits_for_a_mutex() {
    let Some(_live) = live("locks_has_the_time_that_a_thread_waits_for_a_mutex") else { return };
    assert_waits_are_told("plain");
}

#[test]
fn locks_has_the_time_that_a_thread_waits_for_a_mutex_with_an_owner() {
    let Some(_live) = live("locks_has_the_time_that_a_thread_waits_for_a_mutex_with_an_owner") else {
        return;
    };
    assert_waits_are_told("pi");
}

#[test]
fn waits_for_locks_are_time_off_the_cpu_too() {
    let Some(_live) = live("waits_for_locks_are_time_off_the_cpu_too") else { return };
    let folder = folder();
    let (recording, told) = record_locked(folder.path(), "plain", &["locks", "off_cpu"]);
    let machine = &recording.machine;
    let waits = waits(machine, "lock", &told);
    assert_eq!(waits.len(), TURNS, "{told:?}");
    for wait in &waits {
        let is_off_cpu =
            |sample: &Sample| machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == "off_cpu";
        let beside = machine
            .samples()
            .iter()
            .filter(|sample| sample.thread == wait.thread && sample.time == wait.time && is_off_cpu(sample));
        let beside: Vec<i64> = beside.map(|sample| sample.value).collect();
        assert_eq!(beside, [wait.value]);
    }
}

#[test]
fn short_waits_for_locks_are_left_out_of_locks_alone() {
    let Some(_live) = live("short_waits_for_locks_are_left_out_of_locks_alone") else { return };
    let folder = folder();
    let mut settings = settings(&["locks", "wall_clock"]);
    settings.sampling.shortest.locks = Nanos(100_000_000_000);
    let (recording, told) = record_locked_by(folder.path(), "plain", settings);
    let machine = &recording.machine;
    let kind = |sample: &Sample| machine.string(machine.kinds()[usize::from(sample.kind.0)].name);
    let names: BTreeSet<_> = machine.samples().iter().map(|sample| kind(&sample)).collect();
    assert_eq!(names, BTreeSet::from(["wall_clock"]));
    let blocked = machine.samples().iter().filter(|sample| {
        machine.thread(sample.thread).tid.0 == told.waiter && attribute(machine, sample, "state") == "blocked"
    });
    let sum: i64 = blocked.map(|sample| sample.value).sum();
    assert!(sum >= told.least, "{sum}: {told:?}");
}

#[test]
fn naps_are_no_waits_for_locks() {
    let Some(_live) = live("naps_are_no_waits_for_locks") else { return };
    let folder = folder();
    let (recording, told) = record_locked(folder.path(), "plain", &["locks"]);
    let machine = &recording.machine;
    let of_holder: i64 = machine
        .samples()
        .iter()
        .filter(|sample| machine.thread(sample.thread).tid.0 == told.holder)
        .filter(|sample| machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == "lock")
        .map(|sample| sample.value)
        .sum();
    // It sleeps while it holds the lock, and waits for the other one at barriers and in the end.
    assert!(of_holder < told.least / 2, "{of_holder}: {told:?}");
}
