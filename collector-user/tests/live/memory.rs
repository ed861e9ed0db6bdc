//! Programs whose stacks and mappings change without being told of.

use std::process::Command;

use collector_common::ids::Nanos;
use collector_common::perf::Record;
use collector_user::kernel::online_cpus;
use collector_user::source::sideband::Sideband;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::chains::Program;
use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::record;

#[test]
fn a_stack_whose_mapping_is_split() {
    let Some(_live) = live("a_stack_whose_mapping_is_split") else { return };
    let folder = folder();
    let file = compile(folder.path(), "split", "split.c", &["-pthread"]);
    let recorded = record(folder.path(), ["--".as_ref(), file.as_os_str()]);
    let chains = vec![vec!["thread_main", "split", "work", "spin", "burn_rounds"], vec!["main"]];
    Program { comm: "split", chains, throws: false }.check(&recorded);
    // What lies behind the split is read after the sample, unless one from before it told where the stack ends. When there
    // is none any more, the whole stack comes with the sample.
    assert!(recorded.figure("/stacks/complete") > 200, "{}", recorded.stderr);
}

#[test]
fn a_stack_in_the_place_of_a_smaller_one() {
    let Some(_live) = live("a_stack_in_the_place_of_a_smaller_one") else { return };
    let folder = folder();
    let file = compile(folder.path(), "regrown", "regrown.c", &[]);
    let recorded = record(folder.path(), ["--".as_ref(), file.as_os_str()]);
    assert!(recorded.stderr.contains("the command exited with status 0"), "{}", recorded.stderr);
    let burning =
        recorded.stacks.iter().filter(|stack| stack.frames.iter().any(|frame| frame == "burn_rounds"));
    let (mut whole, mut all) = (0, 0);
    for stack in burning {
        let own = ["on_stack", "descend", "work", "burn_rounds"];
        let chain: Vec<&str> = stack.user_frames().filter(|name| own.contains(name)).collect();
        let is_whole = chain == own || chain == ["on_stack", "work", "burn_rounds"];
        whole += if is_whole && !stack.is_cut() { stack.count } else { 0 };
        all += stack.count;
    }
    assert!(all > 500 && (all - whole) * 200 <= all, "{whole} of {all}\n{}", recorded.stderr);
    // The larger one is noticed in the round after it: from then on the whole stack comes with the sample.
    assert!(recorded.figure("/stacks/complete") * 2 > all, "{}", recorded.stderr);
}

/// `moved.c`, which runs where nobody said that anything is mapped.
fn check_moved(comm: &'static str, options: &[&str]) {
    let folder = folder();
    let file = compile(folder.path(), comm, "moved.c", options);
    let recorded = record(folder.path(), ["--".as_ref(), file.as_os_str()]);
    Program { comm, chains: vec![vec!["main", "work", "burn_moved"]], throws: false }.check(&recorded);
}

#[test]
fn code_that_is_moved() {
    let Some(_live) = live("code_that_is_moved") else { return };
    check_moved("moved", &[]);
}

#[test]
fn code_that_another_process_mapped() {
    let Some(_live) = live("code_that_another_process_mapped") else { return };
    check_moved("mapped-by-other", &["-DSHARED"]);
}

#[test]
fn memory_that_is_made_executable_again_and_again() {
    let Some(_live) = live("memory_that_is_made_executable_again_and_again") else { return };
    let folder = folder();
    let file = compile(folder.path(), "toggles", "toggles.c", &[]);
    let mut sideband = Sideband::open(&online_cpus().unwrap()).unwrap();
    let mut toggles = Command::new(&file).spawn().unwrap();
    let (mut wakeups, mut records) = (0, 0);
    let status = loop {
        let mut events: Vec<PollFd<'_>> =
            sideband.descriptors().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        poll(&mut events, Some(&Timespec { tv_sec: 0, tv_nsec: 10_000_000 })).unwrap();
        wakeups += events.iter().filter(|event| event.revents().contains(PollFlags::IN)).count();
        sideband.drain(Nanos(u64::MAX), |record, _| {
            records +=
                usize::from(matches!(record.record, Record::Mmap2(mmap) if mmap.pid.0 == toggles.id()));
        });
        if let Some(status) = toggles.try_wait().unwrap() {
            break status;
        }
    };
    assert!(status.success());
    // Each time is a record. A wakeup costs the program that it comes from an interrupt, and this one does little else.
    assert!(records > 20_000 && wakeups * 30 < records, "{wakeups} wakeups for {records} records");
}
