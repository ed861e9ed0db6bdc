//! What an unwinder remembers of code changes no frame: the samples, walked by an unwinder that has met all the others, and
//! by one that remembers nothing.

use std::num::NonZeroU64;

use unwinder::aarch64::Aarch64;
use unwinder::x86_64::X86_64;
use unwinder::{AddressSpace, Frame, Mapping, StopReason, Unwinder};

use super::DEPTH_LIMIT;
use crate::corpus::{self, Captured, Platform, Run, Space, saved};

/// An address space of which nothing can be remembered.
struct Nameless<'a, A: Platform>(&'a Space<A>);

impl<A: Platform> AddressSpace<A> for Nameless<'_, A> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_, A>> {
        self.0.lookup(address)
    }

    fn generation(&self) -> Option<NonZeroU64> {
        None
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.0.code(address, buffer)
    }
}

fn walked<A: Platform>(
    unwinder: &mut Unwinder<A>,
    space: &impl AddressSpace<A>,
    stack: &Captured<A>,
) -> (Vec<Frame>, StopReason) {
    let mut frames = Vec::new();
    let stop = unwinder.unwind(space, &stack.registers, &stack.stack(), |frame| frames.push(frame));
    (frames, stop)
}

/// Walks all stacks twice with `remembering`, with the rules of all files and with none, and says how many frames were
/// guessed.
fn assert_nothing_changes<A: Platform>(run: &Run<A>, remembering: &mut Unwinder<A>) -> usize {
    let mut guessed = 0;
    for space in [run.space.stripped(|_| false), run.space.stripped(|_| true)] {
        for stack in run.stacks.iter().chain(&run.stacks) {
            let known = walked(remembering, &space, stack);
            let mut forgetful = Unwinder::with_depth_limit(DEPTH_LIMIT);
            assert_eq!(known, walked(&mut forgetful, &Nameless(&space), stack), "{}", stack.name);
            guessed += known.0.iter().filter(|frame| frame.heuristic).count();
        }
    }
    guessed
}

/// How many frames of all fixtures are guessed, and the same again.
fn assert_nothing_changes_in_fixtures<A: Platform>() -> usize {
    let mut unwinder = Unwinder::with_depth_limit(DEPTH_LIMIT);
    let fixtures = [saved::committed::<A>(), saved::local()];
    let runs = fixtures.iter().flatten().flat_map(|fixture| &fixture.runs);
    runs.map(|run| assert_nothing_changes(run, &mut unwinder)).sum()
}

#[test]
fn what_is_remembered_of_code_changes_no_frame() {
    let guessed = assert_nothing_changes_in_fixtures::<X86_64>();
    assert!(guessed > 10_000, "{guessed}");
}

#[test]
fn what_is_remembered_of_code_changes_no_frame_on_aarch64() {
    let guessed = assert_nothing_changes_in_fixtures::<Aarch64>();
    assert!(guessed > 1_000, "{guessed}");
    let Some(run) = corpus::run_on::<Aarch64>("walks.c", &[]) else { return };
    let guessed = assert_nothing_changes(&run, &mut Unwinder::with_depth_limit(DEPTH_LIMIT));
    assert!(guessed > 100, "{guessed}");
}
