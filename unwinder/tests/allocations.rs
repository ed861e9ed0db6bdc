//! A warmed-up walk allocates nothing. Its own binary, because it replaces the global allocator by one that counts.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod corpus;

use corpus::Platform;
use unwinder::aarch64::Aarch64;
use unwinder::x86_64::X86_64;
use unwinder::{Frame, StopReason, Unwinder};

fn assert_allocates_nothing<A: Platform>() {
    let Some(run) = corpus::run_on::<A>("walks.c", &[]) else { return };
    let mut unwinder = Unwinder::new();
    let mut frames = 0;
    let mut walk_all = || {
        for stack in &run.stacks {
            // Quick walks, walks that start again with all registers, signal frames, expressions.
            let stop = unwinder.unwind(&run.space, &stack.registers, &stack.stack(), |_| frames += 1);
            assert!(matches!(stop, StopReason::Root | StopReason::SwitchedStack), "{}: {stop:?}", stack.name);
        }
    };
    let cold = allocation_counter::measure(&mut walk_all);
    let warm = allocation_counter::measure(&mut walk_all);
    assert!(cold.count_total > 0, "rules were compiled on the first pass, so the counter counts");
    assert_eq!(warm.count_total, 0);
    assert!(frames > 200);
}

/// The same where every caller is guessed.
fn assert_guesses_allocate_nothing<A: Platform>() {
    let Some(run) = corpus::run_on::<A>("walks.c", &[]) else { return };
    let space = run.space.stripped(|_| true);
    let mut unwinder = Unwinder::new();
    let mut guessed = 0;
    let mut walk_all = || {
        for stack in &run.stacks {
            let count = |frame: Frame| guessed += usize::from(frame.heuristic);
            unwinder.unwind(&space, &stack.registers, &stack.stack(), count);
        }
    };
    let cold = allocation_counter::measure(&mut walk_all);
    let warm = allocation_counter::measure(&mut walk_all);
    assert!(cold.count_total > 0, "there is memory for what code tells");
    assert_eq!(warm.count_total, 0);
    assert!(guessed > 100);
}

#[test]
fn a_warmed_up_guess_on_x86_64_allocates_nothing() {
    assert_guesses_allocate_nothing::<X86_64>();
}

#[test]
fn a_warmed_up_guess_on_aarch64_allocates_nothing() {
    assert_guesses_allocate_nothing::<Aarch64>();
}

#[test]
fn a_warmed_up_walk_on_x86_64_allocates_nothing() {
    assert_allocates_nothing::<X86_64>();
}

#[test]
fn a_warmed_up_walk_on_aarch64_allocates_nothing() {
    assert_allocates_nothing::<Aarch64>();
}
