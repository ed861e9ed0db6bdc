//! Stacks by how a program was built: each is recorded for a second of its CPU time and compared with its source.

use crate::chains::{Program, repeat};
use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::{Recorded, Stack, record};

/// `recursion.c` under a name.
pub(crate) fn recursion(comm: &'static str) -> Program {
    Program { comm, chains: vec![repeat(&["main"], "recurse", 51, &["leaf", "burn_rounds"])], throws: false }
}

/// `sorted.c` under a name.
pub(crate) fn sorted(comm: &'static str) -> Program {
    Program { comm, chains: vec![vec!["main", "sort_all", "compare", "weigh", "burn_rounds"]], throws: false }
}

/// `threads.c` under a name.
pub(crate) fn threads(comm: &'static str) -> Program {
    let chains = vec![vec!["thread_main", "work", "burn_rounds"], vec!["main"]];
    Program { comm, chains, throws: false }
}

fn check(program: &Program, source: &str, options: &[&str]) {
    let folder = folder();
    let file = compile(folder.path(), program.comm, source, options);
    program.check(&record(folder.path(), ["--".as_ref(), file.as_os_str()]));
}

/// `turns.c`, and its whole stacks with a chain that is one, and with one that is mixed from both.
fn record_turns(words: &[&str]) -> (Recorded, u64, u64) {
    let folder = folder();
    let turns = compile(folder.path(), "turns", "turns.c", &[]);
    let command = ["--".as_ref(), turns.as_os_str()].into_iter().chain(words.iter().map(AsRef::as_ref));
    let recorded = record(folder.path(), command);
    let (mut right, mut wrong) = (0, 0);
    for stack in recorded.stacks.iter().filter(|stack| stack.comm == "turns" && !stack.is_cut()) {
        let chain = stack.user_frames().filter_map(|frame| frame.split_once('_'));
        let turn: Vec<&str> = chain
            .filter(|(part, _)| ["outer", "large", "inner"].contains(part))
            .map(|(_, turn)| turn)
            .collect();
        match turn[..] {
            ["a", "a", "a"] | ["b", "b", "b"] => right += stack.count,
            [_, _, _] => wrong += stack.count,
            _ => {}
        }
    }
    (recorded, right, wrong)
}

#[test]
fn outer_frames_that_stay_are_copied_with_the_samples() {
    let Some(_live) = live("outer_frames_that_stay_are_copied_with_the_samples") else { return };
    let (recorded, right, wrong) = record_turns(&[]);
    let stacks = &recorded.stats["stacks"];
    let complete = stacks["complete"].as_u64().unwrap_or(0);
    // Those before the recorder has seen one are read behind their samples, of which every second one has changed; hardly one is complete else.
    assert!(complete > 300, "{stacks:#}");
    assert!(right > 300 && wrong * 50 <= right, "{right} right, {wrong} wrong\n{}", recorded.stderr);
}

#[test]
fn outer_frames_that_had_changed_are_not_believed() {
    let Some(_live) = live("outer_frames_that_had_changed_are_not_believed") else { return };
    let (recorded, right, wrong) = record_turns(&["move"]);
    // Without a check every second stack is wrong, and up to one in nine with one that is made before the frames are read alone. A
    // recorder that loses its CPU twice while it reads, for an odd number of turns each, finds the same frames before and behind that.
    assert!(right > 200 && wrong * 50 <= right, "{right} right, {wrong} wrong\n{}", recorded.stderr);
}

#[test]
fn a_page_of_the_stack_that_can_not_be_read() {
    let Some(_live) = live("a_page_of_the_stack_that_can_not_be_read") else { return };
    let folder = folder();
    let absent = compile(folder.path(), "absent", "absent.c", &[]);
    let recorded = record(folder.path(), ["--".as_ref(), absent.as_os_str()]);
    let later = recorded.stats["stacks"]["completed_later"].as_u64().unwrap_or(0);
    assert!(later > 500, "{:#}", recorded.stats);
    let chain = ["main", "outer", "inner", "burn_rounds"];
    let own = |stack: &Stack| -> Vec<String> {
        stack.user_frames().filter(|frame| chain.contains(frame)).map(str::to_owned).collect()
    };
    let whole =
        recorded.stacks.iter().filter(|stack| own(stack) == chain).map(|stack| stack.count).sum::<u64>();
    assert!(whole > 500, "{:?}", recorded.stacks);
}

#[test]
fn c_recursion_without_frame_pointers() {
    let Some(_live) = live("c_recursion_without_frame_pointers") else { return };
    check(&recursion("recursion"), "recursion.c", &[]);
}

#[test]
fn c_callback_of_qsort() {
    let Some(_live) = live("c_callback_of_qsort") else { return };
    check(&sorted("sorted"), "sorted.c", &[]);
}

#[test]
fn c_linked_statically() {
    let Some(_live) = live("c_linked_statically") else { return };
    check(&recursion("rec-static"), "recursion.c", &["-static"]);
}

#[test]
fn c_linked_statically_and_position_independent() {
    let Some(_live) = live("c_linked_statically_and_position_independent") else { return };
    check(&recursion("rec-static-pie"), "recursion.c", &["-static-pie"]);
}

#[test]
fn two_hundred_threads() {
    let Some(_live) = live("two_hundred_threads") else { return };
    check(&threads("threads"), "threads.c", &["-pthread"]);
}

#[test]
fn a_return_address_in_a_register() {
    let Some(_live) = live("a_return_address_in_a_register") else { return };
    let program = Program { comm: "vforks", chains: vec![vec!["main", "spawn_all"]], throws: false };
    check(&program, "vforks.c", &[]);
}

#[test]
fn cpp_virtual_calls_exceptions_and_lambdas() {
    let Some(_live) = live("cpp_virtual_calls_exceptions_and_lambdas") else { return };
    let virtual_call = |area| vec!["main", "run_virtual(Shape const&, unsigned long)", area, "burn_rounds"];
    let thrown =
        |depth| repeat(&["main", "attempt(int)"], "thrower(int)", depth, &["Guard::~Guard()", "burn_rounds"]);
    let mut chains = vec![
        virtual_call("Square::area(unsigned long) const"),
        virtual_call("Circle::area(unsigned long) const"),
    ];
    chains.extend((1..=9).map(thrown));
    check(&Program { comm: "dispatch", chains, throws: true }, "dispatch.cpp", &[]);
}

#[test]
fn rust_release() {
    let Some(_live) = live("rust_release") else { return };
    let program = Program {
        comm: "oxide",
        chains: vec![
            // The C library calls `main`, which the compiler makes around `oxide::main`.
            repeat(
                &["main", "oxide::main"],
                "oxide::descend",
                21,
                &["<oxide::Addition as oxide::Operation>::apply", "oxide::burn_rounds"],
            ),
            // The closure's call of `burn_rounds` is inlined or not, as the compiler sees fit.
            repeat(&["main", "oxide::main"], "oxide::descend", 21, &["oxide::burn_rounds"]),
            vec!["main", "oxide::main", "oxide::caught", "oxide::fail"],
        ],
        throws: true,
    };
    check(&program, "oxide.rs", &[]);
}
