//! Where rules lead to code without rules that nothing calls: it need not be where a stack begins.

use unwinder::x86_64::{Registers, X86_64};
use unwinder::{CopiedStack, StopReason, Unwinder};

use super::assembled::Assembled;

const STACK: u64 = 0x7000_0000;

#[test]
fn what_looks_like_a_return_before_an_address_makes_it_no_root() {
    let Some(space) = Assembled::<X86_64>::new("roots_x86_64.s") else { return };
    let behind = space.labels["behind_immediate"];
    let bytes: Vec<u8> = [behind, 7, 7, 7].iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    let mut general = [7; 16];
    general[7] = STACK;
    let registers = Registers::new(space.labels["held"], general);
    let mut frames = Vec::new();
    let stack = CopiedStack::new(STACK, &bytes, 0);
    let stop = Unwinder::new().unwind(&space, &registers, &stack, |frame| frames.push(frame.address));
    assert_eq!((frames, stop), (vec![space.labels["held"], behind], StopReason::NoRule));
}
