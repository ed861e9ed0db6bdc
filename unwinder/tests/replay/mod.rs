//! Saved samples of real programs (see `xtask/fixtures`), walked again: every frame is the one that a witness saw, or the
//! difference is of a kind that is listed here with its reason. `docs/unwinder.md` has the same list in words.

mod differences;
mod remembered;

use std::fmt;
use std::path::Path;

use unwinder::aarch64::Aarch64;
use unwinder::x86::X86;
use unwinder::x86_64::X86_64;
use unwinder::{CopiedStack, Frame, StopReason, Unwinder};

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

/// A sample whose frames from the `guess`th on were found by code.
struct Guessed<'w, 'a, A: Platform> {
    walked: &'w Walked<'a, A>,
    guess: usize,
}

impl<A: Platform> Guessed<'_, '_, A> {
    /// Whether another sample has the same frames: in one of the `seen` chains the guess' function, of at most so many bytes, is the
    /// innermost, or has called the innermost, which is that of the frame before the guess; and all beyond is alike. Or gdb
    /// has the guess itself, and elsewhere it saw how that very frame goes on.
    fn is_seen_in(&self, seen: &[&Captured<A>], function: u64) -> bool {
        let addresses: Vec<u64> = self.walked.frames.iter().map(|frame| frame.address).collect();
        let (within, from_guess) = addresses.split_at(self.guess);
        let ([.., callee], [guess, beyond @ ..]) = (within, from_guess) else { return false };
        let is_near = |one: u64, other: u64| one.abs_diff(other) < function;
        let mut others = seen.iter().filter(|stack| !std::ptr::eq(**stack, self.walked.stack));
        others.any(|stack| match stack.chain.as_slice() {
            [first, rest @ ..] if rest == beyond && is_near(*first, *guess) => true,
            [inner, first, rest @ ..] if rest == beyond && is_near(*first, *guess) => {
                is_near(*inner, *callee)
            }
            chain => self.walked.same > self.guess && chain.ends_with(from_guess),
        })
    }
}

/// That all samples of these fixtures that reach the root by a guess, if any of them is there, have frames that gdb saw in others.
fn assert_guessed_are_seen_elsewhere<A: Platform>(fixtures: &[Fixture<A>], names: &[&str], function: u64) {
    for fixture in fixtures.iter().filter(|fixture| names.contains(&&*fixture.name)) {
        let seen: Vec<&Captured<A>> = fixture.stacks().map(|(_, stack)| stack).collect();
        let mut total = 0;
        walk_all(std::slice::from_ref(fixture), |walked| {
            let guess = walked.frames.iter().position(|frame| frame.heuristic);
            if let Some(guess) = guess.filter(|_| walked.stop == StopReason::Root) {
                total += 1;
                assert!(Guessed { walked, guess }.is_seen_in(&seen, function), "{walked}");
            }
        });
        assert!(total > 0, "{}: there is none", fixture.name);
    }
}

/// gdb has no chains within code that loads the registers of elsewhere, but it has those just before it is called and just after it
/// has gone there.
#[test]
fn frames_of_switches_are_those_before_and_after() {
    /// The largest of these functions, in bytes.
    const FUNCTION: u64 = 0x70;
    for fixtures in [saved::committed::<Aarch64>(), saved::local()] {
        assert_guessed_are_seen_elsewhere(&fixtures, &["aarch64/longjmp"], FUNCTION);
    }
}

/// gdb's chains end where an exception is about to be caught, but others go on from the same call.
#[test]
fn frames_where_exceptions_are_caught_are_those_of_others() {
    assert_guessed_are_seen_elsewhere(&saved::local::<Aarch64>(), &["aarch64/cpp"], 0x100);
}

/// gdb's chains end in `memcpy`, but others go on from who called it.
#[test]
fn frames_beyond_uncounted_pushes_are_those_of_others() {
    assert_guessed_are_seen_elsewhere(&saved::local::<X86>(), &["x86/c", "x86/frame_pointers"], 0x100);
}

/// Of what was copied the walk makes what it makes of the whole stack: where a word is missing it ends, and no other is taken for it.
fn assert_frames_are_those_of_the_whole<A: Platform>() {
    // Each by its pages that are absent, and which part of its bytes is there.
    const CUTS: [(u64, usize); 3] = [(0b1, 1), (0b10, 1), (0, 2)];
    // `setcontext` and `swapcontext` on aarch64, of which no walk gets to the root: what code tells is believed where rules can't be followed.
    let (fixtures, mut unwinder) = (saved::local::<A>(), Unwinder::with_depth_limit(DEPTH_LIMIT));
    for fixture in fixtures.iter().filter(|fixture| fixture.name != "aarch64/longjmp") {
        walk_all(std::slice::from_ref(fixture), |walked| {
            for (absent, part) in CUTS {
                let Captured { base, bytes, registers, .. } = walked.stack;
                let copy = CopiedStack::new(*base, &bytes[..bytes.len() / part], absent);
                let (whole, mut frames) = (&walked.frames, 0);
                let mut is_right = true;
                let stop = unwinder.unwind(&walked.run.space, registers, &copy, |frame| {
                    is_right &= whole.get(frames).is_some_and(|whole| whole.address == frame.address);
                    frames += 1;
                });
                is_right &= frames == whole.len() || stop != StopReason::Root;
                assert!(is_right, "{absent:#b}, 1/{part}: {stop:?} after {frames}\n{walked}");
            }
        });
    }
}

#[test]
fn samples_of_this_machine_have_no_other_frames_where_they_are_cut() {
    assert_frames_are_those_of_the_whole::<X86_64>();
    assert_frames_are_those_of_the_whole::<Aarch64>();
    assert_frames_are_those_of_the_whole::<X86>();
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
