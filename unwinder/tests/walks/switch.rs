//! Frames of code that loads the registers of elsewhere, to jump there or to have an exception caught: where it goes is found where
//! one frame of the stack can be meant, and nowhere else.

use std::collections::HashMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use unwinder::aarch64::{Aarch64, Registers, ReturnAddressMask};
use unwinder::{CopiedStack, StopReason, Unwinder};

use super::assembled::Assembled;

const STACK: u64 = 0x7000_0000;
/// On no stack.
const BUFFER: u64 = 0x50_0000;

struct Space(Assembled<Aarch64>);

/// `None` where there is no compiler.
static SPACE: LazyLock<Option<Space>> = LazyLock::new(|| Assembled::new("switch_aarch64.s").map(Space));

impl Space {
    fn label(&self, name: &str) -> u64 {
        self.0.labels[name]
    }

    /// The frames behind the first of code that has loaded `x30`, which leads to `to`, and `x29`. The stack has `words` and the
    /// addresses of labels in these places.
    fn walked(&self, to: &str, x29: u64, words: &[(usize, &str)]) -> (Vec<(u64, bool)>, StopReason) {
        let words = words.iter().map(|(at, label)| (*at, self.label(label)));
        self.walked_with(to, x29, &words.collect::<Vec<_>>(), 0, 0)
    }

    fn walked_with(
        &self,
        to: &str,
        x29: u64,
        words: &[(usize, u64)],
        signature: u64,
        absent: u64,
    ) -> (Vec<(u64, bool)>, StopReason) {
        let words: Vec<(usize, u64)> = words.iter().map(|(at, word)| (*at, *word | signature)).collect();
        self.walked_from("between", x29, self.label(to) | signature, &words, absent)
    }

    /// The frames behind the first, which is at the label `from`.
    fn walked_from(
        &self,
        from: &str,
        x29: u64,
        x30: u64,
        words: &[(usize, u64)],
        absent: u64,
    ) -> (Vec<(u64, bool)>, StopReason) {
        let mut stack = [0; 0x3000 / 8];
        for (at, word) in words {
            stack[*at] = *word;
        }
        let bytes: Vec<u8> = stack.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let mut general = [0; 31];
        (general[0], general[29], general[30]) = (BUFFER, x29, x30);
        let mask = ReturnAddressMask::of_address_bits(48);
        let registers = Registers::new(self.label(from), STACK, general, mask);
        let mut frames = Vec::new();
        let stop =
            Unwinder::new().unwind(&self.0, &registers, &CopiedStack::new(STACK, &bytes, absent), |frame| {
                frames.push((frame.address, frame.heuristic));
            });
        frames.remove(0);
        (frames, stop)
    }

    /// What is walked from code that goes on where an exception is caught, with a return address that leads to `to`; its own frame
    /// is the first eight words.
    fn resumed(&self, to: &str, words: &[(usize, &str)]) -> (Vec<(u64, bool)>, StopReason) {
        const RETURN_ADDRESS: usize = 1;
        let words = words.iter().copied().chain([(RETURN_ADDRESS, to)]);
        let words: Vec<(usize, u64)> = words.map(|(at, label)| (at, self.label(label))).collect();
        self.walked_from("in_resume", 0, 0, &words, 0)
    }

    /// What is walked where the code goes to `to`, which `outermost` called: of those the first is a guess.
    fn rooted(&self, to: &str, caller: &str) -> (Vec<(u64, bool)>, StopReason) {
        (vec![(self.label(to), true), (self.label(caller), false)], StopReason::Root)
    }
}

/// A word of a stack: a return address behind one of the calls, or any.
fn word() -> impl Strategy<Value = Result<&'static str, u64>> {
    const LABELS: [&str; 6] =
        ["behind_by_sp", "behind_by_sp", "behind_by_x29", "behind_any", "in_by_sp", "between"];
    prop_oneof![proptest::sample::select(&LABELS[..]).prop_map(Ok), any::<u64>().prop_map(Err)]
}

proptest! {
    #[test]
    fn a_frame_is_found_where_one_place_has_a_call_of_its_function(
        words in proptest::collection::vec((0..0x3000_usize / 8, word()), 0..12),
        x29 in any::<u64>(),
    ) {
        if let Some(space) = SPACE.as_ref() {
            let words: HashMap<usize, u64> = words
                .into_iter()
                .map(|(at, word)| (at, word.map_or_else(|word| word, |label| space.label(label))))
                .collect();
            let callers = words.iter().filter(|(at, word)| *at % 2 == 0 && **word == space.label("behind_by_sp"));
            let is_found = callers.count() == 1;
            let words: Vec<(usize, u64)> = words.into_iter().collect();
            let walked = space.walked_with("in_by_sp", x29, &words, 0, 0);
            let expected = if is_found { space.rooted("in_by_sp", "behind_by_sp") } else { NOWHERE };
            prop_assert_eq!(walked, expected);
        }
    }
}

const NOWHERE: (Vec<(u64, bool)>, StopReason) = (Vec::new(), StopReason::Unreadable);

#[test]
fn the_one_frame_that_can_be_meant_is_found() {
    let Some(space) = SPACE.as_ref() else { return };
    let found = space.rooted("in_by_sp", "behind_by_sp");
    for at in [0, 2, 100, 1000] {
        assert_eq!(space.walked("in_by_sp", 0, &[(at, "behind_by_sp")]), found, "{at}");
    }
    // Other calls' return addresses are none of it.
    let others = [(4, "in_by_x29"), (8, "behind_by_sp"), (10, "behind_by_x29"), (12, "behind_any")];
    assert_eq!(space.walked("in_by_sp", 0, &others), found);

    let signed = [(8, space.label("behind_by_sp"))];
    let walked = space.walked_with("in_by_sp", 0, &signed, 0x1234 << 48, 0);
    // By a rule that does not say so, the next frame's address is as it was saved.
    assert_eq!(walked.0.first(), found.0.first());
}

#[test]
fn none_is_found_where_several_can_be_meant_or_none() {
    let Some(space) = SPACE.as_ref() else { return };
    // A function that calls itself; a place where no stack pointer is; calls of others, or of whatever.
    for words in [
        &[(8, "behind_by_sp"), (16, "behind_by_sp")][..],
        &[(7, "behind_by_sp")],
        &[(8, "behind_by_x29")],
        &[(8, "behind_any")],
        &[(8, "in_by_sp")],
        &[],
    ] {
        assert_eq!(space.walked("in_by_sp", 0, words), NOWHERE, "{words:?}");
    }
    // Another may lie where the copy has nothing.
    let words = [(8, space.label("behind_by_sp"))];
    assert_eq!(space.walked_with("in_by_sp", 0, &words, 0, 2), NOWHERE);
    assert_eq!(space.walked("outermost", 0, &[(8, "behind_by_sp")]), NOWHERE);
}

#[test]
fn a_function_that_keeps_a_frame_pointer_is_found_by_it() {
    let Some(space) = SPACE.as_ref() else { return };
    let record = [(9, "behind_by_x29")];
    let found = space.rooted("in_by_x29", "behind_by_x29");
    assert_eq!(space.walked("in_by_x29", STACK + 64, &record), found);
    for x29 in [STACK + 72, STACK + 0x8000, BUFFER, 0] {
        assert_eq!(space.walked("in_by_x29", x29, &record), NOWHERE, "{x29:#x}");
    }
}

/// Frames lie at eight words, each of four: that of `thrower`, and one of `by_sp`, which has called it and catches the exception.
#[test]
fn code_that_goes_on_where_an_exception_is_caught_is_followed_there() {
    let Some(space) = SPACE.as_ref() else { return };
    let words = [(8, "behind_thrower"), (12, "behind_by_sp")];
    // Its own caller, before that one's return address is written over.
    let thrown =
        (vec![(space.label("in_thrower"), false), (space.label("behind_thrower"), false)], StopReason::Root);
    assert_eq!(space.resumed("in_thrower", &words), thrown);
    for to in ["in_by_sp", "catch"] {
        assert_eq!(space.resumed(to, &words), space.rooted(to, "behind_by_sp"), "{to}");
    }
    // Not where a second place can be meant.
    let second = [(8, "behind_any"), (12, "behind_by_sp"), (14, "behind_by_sp")];
    for to in ["in_by_sp", "catch"] {
        assert!(!space.resumed(to, &second).0.iter().any(|(_, heuristic)| *heuristic), "{to}");
    }
}

/// A function that was called may have jumped on to this code: its caller is then the one that the rule leads to, and lies at the eighth
/// word, whatever calls of the same function lie further out.
#[test]
fn a_caller_whose_callee_jumped_on_to_such_code_is_no_place_where_an_exception_is_caught() {
    let Some(space) = SPACE.as_ref() else { return };
    let by_rule = |to: &str, caller: &str| {
        (vec![(space.label(to), false), (space.label(caller), false)], StopReason::Root)
    };
    // Called by a register, and through a linkage table.
    for caller in ["behind_any", "behind_stub"] {
        let words = [(8, caller), (16, "behind_visitor")];
        assert_eq!(space.resumed("in_visitor", &words), by_rule("in_visitor", caller), "{caller}");
    }
    // What calls this code itself was called by a function that jumped on to it.
    let words = [(8, "behind_by_sp"), (14, "behind_thrower")];
    assert_eq!(space.resumed("in_thrower", &words), by_rule("in_thrower", "behind_by_sp"));
}
