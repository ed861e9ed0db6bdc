//! Saved samples of real programs (see `xtask/fixtures`), walked again: every frame is the one that a witness saw, or the
//! difference is of a kind that is listed here with its reason. `docs/unwinder.md` has the same list in words.

mod differences;
mod remembered;

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use unwinder::aarch64::Aarch64;
use unwinder::x86::X86;
use unwinder::x86_64::X86_64;
use unwinder::{Frame, StopReason, Unwinder};

use crate::corpus::saved::{self, Fixture};
use crate::corpus::{Captured, Platform, Run};
use crate::framehop_peer::Peer;
use differences::{DIFFERENCES, FRAMEHOP, Known, RECURSIONS, Recursion};

/// One of the stacks is 10,000 deep.
const DEPTH_LIMIT: usize = 20_000;

/// How our chain of addresses relates to the witness's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    /// The witness saw more outer frames.
    Shorter,
    /// We have more outer frames.
    Longer,
    /// From some frame on, each has another.
    Other,
}

/// A sample, walked.
struct Walked<'a, A: Platform> {
    fixture: &'a Fixture<A>,
    run: &'a Run<A>,
    stack: &'a Captured<A>,
    frames: Vec<Frame>,
    stop: StopReason,
    /// Frames from the innermost on that are the witness's.
    same: usize,
}

impl<'a, A: Platform> Walked<'a, A> {
    fn new(
        fixture: &'a Fixture<A>,
        run: &'a Run<A>,
        stack: &'a Captured<A>,
        unwinder: &mut Unwinder<A>,
    ) -> Self {
        let mut frames = Vec::new();
        let stop = unwinder.unwind(&run.space, &stack.registers, &stack.stack(), |frame| frames.push(frame));
        let same =
            frames.iter().zip(&stack.chain).take_while(|(frame, seen)| frame.address == **seen).count();
        Walked { fixture, run, stack, frames, stop, same }
    }

    fn relation(&self) -> Relation {
        match (self.same == self.frames.len(), self.same == self.stack.chain.len()) {
            (true, true) => Relation::Equal,
            (true, false) => Relation::Shorter,
            (false, true) => Relation::Longer,
            (false, false) => Relation::Other,
        }
    }

    fn is_guessed(&self) -> bool {
        self.frames.iter().any(|frame| frame.heuristic)
    }

    fn known_difference(&self) -> Option<&'static Known> {
        DIFFERENCES.iter().find(|known| {
            known.fixture == self.fixture.name
                && (known.relation, known.stop) == (self.relation(), self.stop)
                && known.guessed == self.is_guessed()
        })
    }
}

impl<A: Platform> fmt::Display for Walked<'_, A> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modules = &self.run.space.modules;
        let located = |address: u64| {
            let module = modules.iter().find(|module| (module.start..module.end).contains(&address));
            match (self.fixture.name_at(address.wrapping_sub(1)), module) {
                (Some(name), _) => name.to_owned(),
                (None, Some(module)) => format!("{}+{:#x}", module.name, address.wrapping_sub(module.bias)),
                (None, None) => format!("{address:#x}"),
            }
        };
        let Walked { fixture, stack, stop, same, .. } = self;
        let shown = same.saturating_sub(1);
        let ours = self.frames.iter().skip(shown).map(|frame| located(frame.address));
        let seen = stack.chain.iter().skip(shown).map(|&address| located(address));
        write!(
            out,
            "{} {}: {:?}, {stop:?}, guessed: {}, {same} alike\n  ours {:?}\n  seen {:?}",
            fixture.name,
            stack.name,
            self.relation(),
            self.is_guessed(),
            ours.take(8).collect::<Vec<_>>(),
            seen.take(8).collect::<Vec<_>>(),
        )
    }
}

/// Walks every sample of the fixtures and hands it on.
fn walk_all<A: Platform>(fixtures: &[Fixture<A>], mut visit: impl FnMut(&Walked<'_, A>)) {
    let mut unwinder = Unwinder::with_depth_limit(DEPTH_LIMIT);
    for fixture in fixtures {
        for (run, stack) in fixture.stacks() {
            visit(&Walked::new(fixture, run, stack, &mut unwinder));
        }
    }
}

/// That every sample is as the witness saw it, or differs in a way that is listed; how many do, in the list's order.
fn differences<A: Platform>(fixtures: &[Fixture<A>]) -> Vec<usize> {
    let mut counts = vec![0; DIFFERENCES.len()];
    let mut unknown = Vec::new();
    walk_all(fixtures, |walked| {
        if walked.relation() == Relation::Equal && walked.stop == StopReason::Root {
            return;
        }
        match DIFFERENCES.iter().position(|known| Some(known) == walked.known_difference()) {
            Some(index) => counts[index] += 1,
            None => unknown.push(walked.to_string()),
        }
    });
    assert!(unknown.is_empty(), "{} samples differ:\n{}", unknown.len(), unknown.join("\n"));
    counts
}

fn assert_committed_are_as_seen<A: Platform>() {
    let is_of_it = |known: &Known| Path::new(known.fixture).parent() == Some(Path::new(A::FIXTURES));
    let counts = differences(&saved::committed::<A>());
    assert_eq!(counts, DIFFERENCES.map(|known| if is_of_it(&known) { known.committed } else { 0 }));
}

#[test]
fn committed_samples_are_as_their_witness_saw_them() {
    assert_committed_are_as_seen::<X86_64>();
}

#[test]
fn committed_samples_of_aarch64_are_as_their_witness_saw_them() {
    assert_committed_are_as_seen::<Aarch64>();
}

#[test]
fn samples_of_this_machine_are_as_their_witness_saw_them() {
    assert_local_are_as_seen::<X86_64>();
    assert_local_are_as_seen::<Aarch64>();
    assert_local_are_as_seen::<X86>();
}

fn assert_local_are_as_seen<A: Platform>() {
    let fixtures = saved::local::<A>();
    for (known, count) in DIFFERENCES.iter().zip(differences(&fixtures)) {
        let samples = fixtures.iter().filter(|fixture| fixture.name == known.fixture);
        let total: usize = samples.map(|fixture| fixture.stacks().count()).sum();
        assert!(count * 100 <= total * known.percent, "{known:?}: {count} of {total}");
    }
}

/// How many samples of a recursion there are, and how many of them have its depth.
fn recursions(fixtures: &[Fixture<X86_64>], recursion: &Recursion) -> (usize, usize) {
    let (mut right, mut total) = (0, 0);
    walk_all(fixtures, |walked| {
        let is_of_it = |frame: &&Frame| {
            let name = walked.fixture.name_at(frame.lookup_address());
            name.is_some_and(|name| name.contains(recursion.function))
        };
        let depth = walked.frames.iter().filter(is_of_it).count();
        if walked.fixture.name == recursion.fixture && depth > 0 {
            total += 1;
            right += usize::from(depth == recursion.depth && walked.stop == StopReason::Root);
        }
    });
    (right, total)
}

/// Where code was compiled at run time there is no witness of every frame, but it is known how often a function calls
/// itself.
#[test]
fn recursions_of_compiled_code_have_their_depth() {
    let (committed, local) = (saved::committed(), saved::local());
    for recursion in &RECURSIONS {
        assert_eq!(recursions(&committed, recursion), recursion.committed, "{recursion:?}");
        let (right, total) = recursions(&local, recursion);
        assert!(right * 100 >= total * recursion.percent, "{recursion:?}: {right} of {total}");
        let is_there = local.iter().any(|fixture| fixture.name == recursion.fixture);
        assert!(total > 0 || !is_there, "{recursion:?}: there is none");
    }
}

/// gdb has no chains within code that loads the registers of elsewhere, but it has those just before it is called and just after it
/// has gone there: all frames beyond the first two are those of such a chain, and the second is of its function.
fn assert_switches_are_as_seen_around(fixtures: &[Fixture<Aarch64>]) {
    /// The largest of these functions, in bytes.
    const FUNCTION: u64 = 0x70;
    let seen: HashSet<&[u64]> = fixtures
        .iter()
        .flat_map(Fixture::stacks)
        .flat_map(|(_, stack)| (0..2).filter_map(|at| stack.chain.get(at..)))
        .collect();
    walk_all(fixtures, |walked| {
        let addresses: Vec<u64> = walked.frames.iter().map(|frame| frame.address).collect();
        let is_switch = walked.frames.get(1).is_some_and(|frame| frame.heuristic);
        let [_, second, beyond @ ..] = addresses.as_slice() else { return };
        if walked.fixture.name != "aarch64/longjmp" || walked.stop != StopReason::Root || !is_switch {
            return;
        }
        let is_of_it = |chain: &&[u64]| {
            let parts = chain.split_first();
            parts.is_some_and(|(first, rest)| rest == beyond && first.abs_diff(*second) < FUNCTION)
        };
        assert!(seen.iter().any(is_of_it), "{walked}");
    });
}

#[test]
fn frames_of_switches_are_those_before_and_after() {
    assert_switches_are_as_seen_around(&saved::committed());
    assert_switches_are_as_seen_around(&saved::local());
}

/// All frames from the first guess on, but for so many, are those that gdb saw in some other sample.
fn assert_guessed_are_seen_elsewhere<A: Platform>(names: &[&str], but_for: usize) {
    let fixtures = saved::local::<A>();
    let stacks = fixtures.iter().flat_map(Fixture::stacks);
    let seen: HashSet<&[u64]> =
        stacks.flat_map(|(_, stack)| (0..stack.chain.len()).filter_map(|at| stack.chain.get(at..))).collect();
    walk_all(&fixtures, |walked| {
        let guessed = walked.frames.iter().position(|frame| frame.heuristic);
        let addresses: Vec<u64> = walked.frames.iter().map(|frame| frame.address).collect();
        if names.contains(&&*walked.fixture.name)
            && let Some(beyond) = guessed.and_then(|at| addresses.get(at + but_for..))
        {
            assert!(walked.stop == StopReason::Root && seen.contains(beyond), "{walked}");
        }
    });
}

/// gdb's chains end where an exception is about to be caught, but others go on from the same call.
#[test]
fn frames_where_exceptions_are_caught_are_those_of_others() {
    assert_guessed_are_seen_elsewhere::<Aarch64>(&["aarch64/cpp"], 0);
}

/// gdb's chains end in `memcpy`, but others go on from who called its caller.
#[test]
fn frames_beyond_uncounted_pushes_are_those_of_others() {
    assert_guessed_are_seen_elsewhere::<X86>(&["x86/c", "x86/frame_pointers"], 1);
}

/// framehop over the committed samples: where it finds other frames than we do.
#[test]
fn framehop_differs_where_it_is_known_to() {
    let fixtures = saved::committed::<X86_64>();
    let mut found = Vec::new();
    for fixture in &fixtures {
        let mut differ = 0;
        for run in &fixture.runs {
            let (mut peer, mut unwinder) = (Peer::new(&run.space), Unwinder::with_depth_limit(DEPTH_LIMIT));
            for stack in &run.stacks {
                let mut theirs = Vec::new();
                peer.walk(stack, |address| theirs.push(address));
                let ours = Walked::new(fixture, run, stack, &mut unwinder);
                differ += usize::from(!ours.frames.iter().map(|frame| frame.address).eq(theirs));
            }
        }
        if differ > 0 {
            found.push((fixture.name.as_str(), differ));
        }
    }
    assert_eq!(found, FRAMEHOP);
}
