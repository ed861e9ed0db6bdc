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
    /// above a return address to `in_outermost`, ends.
    fn walked(&self, from: &str, pushed: &[u32]) -> (Vec<(u64, bool)>, StopReason) {
        let words = pushed.iter().copied().chain([self.label("in_outermost"), 0, 0, 0]);
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let mut general = [0; 8];
        general[4] = STACK;
        let registers = Registers::new(self.label(from), general);
        let mut frames = Vec::new();
        let stack = CopiedStack::new(STACK.into(), &bytes, 0);
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
    assert_eq!(space.walked("pushed", &[7]), guessed);
    assert_eq!(space.walked("counted_below", &[7]), guessed);
    // A rule that leads to code is believed,
    assert_eq!(space.walked("copy", &[]), (vec![(caller, false)], StopReason::Root));
    // and so is one where code does not tell more.
    assert_eq!(space.walked("left", &[7]), (vec![(7, false)], StopReason::NoMapping));
}
