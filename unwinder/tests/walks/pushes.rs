//! Innermost frames of 32-bit x86 code that has pushed what its rules don't count: their instructions tell where they return to.

use unwinder::x86::{Registers, X86};
use unwinder::{CopiedStack, StopReason, Unwinder};

use super::assembled::Assembled;

const STACK: u32 = 0x7000_0000;

struct Space(Assembled<X86>);

impl Space {
    /// `None` where there is no compiler.
    fn new() -> Option<Self> {
        Assembled::new("pushes_x86.s").map(Space)
    }

    fn label(&self, name: &str) -> u32 {
        u32::try_from(self.0.labels[name]).unwrap()
    }

    /// The callers of the frame at the label `from`, whether each is a guess, and how the stack, which has a word that was pushed
    /// above return addresses to `callers`, ends.
    fn walked(&self, from: &str, pushed: &[u32], callers: &[&str]) -> (Vec<(u64, bool)>, StopReason) {
        let callers = callers.iter().map(|caller| self.label(caller));
        let words: Vec<u32> = pushed.iter().copied().chain(callers).chain([0, 0, 0]).collect();
        self.walked_on(from, &words, 0)
    }

    /// The same of a stack of these words, of which pages are `absent`.
    fn walked_on(&self, from: &str, words: &[u32], absent: u64) -> (Vec<(u64, bool)>, StopReason) {
        let bytes: Vec<u8> = words.iter().copied().flat_map(u32::to_le_bytes).collect();
        let mut general = [0; 8];
        general[4] = STACK;
        let registers = Registers::new(self.label(from), general);
        let mut frames = Vec::new();
        let stack = CopiedStack::new(STACK.into(), &bytes, absent);
        let stop = Unwinder::new()
            .unwind(&self.0, &registers, &stack, |frame| frames.push((frame.address, frame.heuristic)));
        (frames.split_off(1), stop)
    }
}

#[test]
fn what_rules_do_not_count_is_told_by_code() {
    let Some(space) = Space::new() else { return };
    let caller = u64::from(space.label("in_outermost"));
    let guessed = (vec![(caller, true)], StopReason::Root);
    let outermost = ["in_outermost"];
    assert_eq!(space.walked("pushed", &[7], &outermost), guessed);
    assert_eq!(space.walked("counted_below", &[7], &outermost), guessed);
    // A rule that leads to code is believed,
    assert_eq!(space.walked("copy", &[], &outermost), (vec![(caller, false)], StopReason::Root));
    // and so is one where code does not tell more.
    assert_eq!(space.walked("left", &[7], &outermost), (vec![(7, false)], StopReason::NoMapping));
}

#[test]
fn the_caller_is_the_nearest() {
    let Some(space) = Space::new() else { return };
    let words = [7, space.label("in_inner"), 7, 7, 7, space.label("in_outermost"), 0];
    let frames = [("in_inner", true), ("in_outermost", false)]
        .map(|(label, heuristic)| (u64::from(space.label(label)), heuristic));
    assert_eq!(space.walked_on("pushed", &words, 0), (frames.to_vec(), StopReason::Root));
}

/// What is missing there is no reason to go by an address that an earlier call left.
#[test]
fn a_rule_that_leads_out_of_the_copy_is_believed() {
    let Some(space) = Space::new() else { return };
    let mut words = [0; 0x3000 / 4];
    (words[3], words[0x2000 / 4]) = (space.label("in_outermost"), space.label("in_outermost"));
    assert_eq!(space.walked_on("in_big", &words[..40], 0), (vec![], StopReason::StackExhausted));
    assert_eq!(space.walked_on("in_big", &words, 1 << 2), (vec![], StopReason::Unreadable));
    let whole = (vec![(space.label("in_outermost").into(), false)], StopReason::Root);
    assert_eq!(space.walked_on("in_big", &words, 0), whole);
}

/// What a frame further out needs was lost on the way: the rule that was not believed leads there no more than it did before.
#[test]
fn a_walk_that_begins_again_goes_the_same_way() {
    let Some(space) = Space::new() else { return };
    let walked = (vec![(space.label("in_by_esi").into(), true)], StopReason::Unsupported);
    assert_eq!(space.walked("pushed", &[7], &["in_by_esi"]), walked);
}
