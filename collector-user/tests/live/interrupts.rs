//! Times off that interrupts ended, while threads ran that had nothing to do with it.

use std::collections::BTreeMap;

use collector_common::sharing::Writable;
use collector_user::session::Recording;

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::scenarios::{attribute, record, settings};

const TURNS: usize = 100;
/// For how long `interrupted` has two of its threads wait for a timer, in nanoseconds.
const LIMIT: i64 = 2_000_000;

/// Samples of a kind of a thread that are as long as the timer, by who woke it.
fn woken_by(recording: &Recording, kind: &str, name: &str) -> BTreeMap<String, usize> {
    let machine = &recording.machine;
    let mut wakers = BTreeMap::new();
    for sample in machine.samples().iter().filter(|sample| sample.value >= LIMIT) {
        let is_kind = machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == kind;
        if is_kind && machine.string(machine.thread(sample.thread).name) == name {
            *wakers.entry(attribute(machine, &sample, "waker").into_owned()).or_default() += 1;
        }
    }
    wakers
}

#[test]
fn what_an_interrupt_wakes_no_thread_has_woken() {
    let Some(_live) = live("what_an_interrupt_wakes_no_thread_has_woken") else { return };
    let folder = folder();
    let program = compile(folder.path(), "interrupted", "interrupted.c", &["-pthread"]);
    let mut settings = settings(&["off_cpu", "locks"]);
    let event = &mut settings.events[0].event;
    let [pid, tid, comm] =
        ["waker_pid", "waker_tid", "waker_comm"].map(|name| event.format().field_ref(name).unwrap());
    let interrupts = Writable::new(Vec::new());
    let seen = interrupts.clone();
    event.add_closure(move |data| {
        if data.try_get_str(comm)? == "[interrupt]" {
            let ids = (data.try_get_u32(pid)?, data.try_get_u32(tid)?);
            seen.write(|seen| seen.push(ids))?;
        }
        Ok(())
    });
    let recording = record(settings, &[program.into(), TURNS.to_string().into()]);
    let [naps, limited, answers] =
        ["naps", "limited", "answers"].map(|name| woken_by(&recording, "off_cpu", name));
    println!("naps: {naps:?}, limited: {limited:?}, answers: {answers:?}");
    for woken in [&naps, &limited] {
        assert_eq!(woken.keys().collect::<Vec<_>>(), ["[interrupt]"]);
        assert!(woken["[interrupt]"] >= TURNS / 2, "{woken:?}");
    }
    let interrupts = interrupts.into_inner().unwrap();
    assert!(interrupts.len() >= TURNS && interrupts.iter().all(|ids| *ids == (0, 0)), "{interrupts:?}");
    // What one thread sends to another one is received in a soft interrupt of its own.
    assert!(answers["asks"] >= TURNS / 2, "{answers:?}");
    // The limit ended each wait for the futex, also where it hit a thread that released another one.
    let machine = &recording.machine;
    let released = machine.samples().iter().filter(|sample| {
        machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == "lock"
            && machine.string(machine.thread(sample.thread).name) == "limited"
    });
    assert_eq!(released.count(), 0);
}
