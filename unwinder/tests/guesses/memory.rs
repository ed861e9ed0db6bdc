//! What is remembered of code is forgotten when it may be other code.

use std::num::NonZeroU64;

use unwinder::x86_64::Registers;
use unwinder::{AddressSpace, CopiedStack, Mapping, Unwinder};

use super::{CODE, Coded, STACK};

/// Code in an address space whose number may lie.
struct Numbered<'a>(Coded<'a>, u64);

impl AddressSpace for Numbered<'_> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_>> {
        self.0.lookup(address)
    }

    fn generation(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.1)
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.0.code(address, buffer)
    }
}

const FIRST: u64 = CODE + 0x100;
const SECOND: u64 = CODE + 0x200;

/// The caller of a frame at the beginning of [`CODE`] whose stack has both addresses.
fn caller(unwinder: &mut Unwinder, returns_to: u64, generation: u64) -> u64 {
    let space = Numbered(Coded { of_this: &[returns_to], others: &[] }, generation);
    let bytes: Vec<u8> = [7, FIRST, 7, SECOND, 7].into_iter().flat_map(u64::to_le_bytes).collect();
    let mut general = [0xdead; 16];
    general[7] = STACK;
    let (stack, registers) = (CopiedStack::new(STACK, &bytes, 0), Registers::new(CODE + 0x10, general));
    let mut frames = Vec::new();
    unwinder.unwind(&space, &registers, &stack, |frame| frames.push(frame.address));
    frames[1]
}

#[test]
fn another_generation_has_other_code() {
    let mut unwinder = Unwinder::new();
    for (generation, returns_to) in [(1, FIRST), (2, SECOND), (1, FIRST), (3, SECOND)] {
        assert_eq!(caller(&mut unwinder, returns_to, generation), returns_to);
    }
}

#[test]
fn code_that_was_replaced_is_looked_at_again_once_it_is_forgotten() {
    let mut unwinder = Unwinder::new();
    assert_eq!(caller(&mut unwinder, FIRST, 1), FIRST);
    assert_eq!(caller(&mut unwinder, SECOND, 1), FIRST, "the generation says that nothing changed");
    unwinder.forget_code();
    assert_eq!(caller(&mut unwinder, SECOND, 1), SECOND);
}
