//! Whether an instruction begins at a place. A probe inside of one would overwrite a part of it, and change what the program does.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions};

use super::machine::Machine;

/// The instruction that `place` is inside of, as its addresses. `code` begins with a function's first instruction at `start`. `None` where
/// an instruction begins there, or data among the code keep it from being known.
pub(super) fn around(machine: Machine, code: &[u8], start: u64, place: u64) -> Option<Range<u64>> {
    match machine {
        Machine::Aarch64 => {
            let begin = place - place % 4;
            (begin != place).then(|| begin..begin.saturating_add(4))
        }
        Machine::X86_64 => {
            let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
            while decoder.can_decode() && decoder.ip() < place {
                let begin = decoder.ip();
                if decoder.decode().is_invalid() {
                    return None;
                }
                if decoder.ip() > place {
                    return Some(begin..decoder.ip());
                }
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_inside_of_instructions_are_told_from_their_begins() {
        // push %rbp; mov %rsp,%rbp; sub $0x10,%rsp; ret: as objdump has them.
        let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xc3];
        let around = |place| around(Machine::X86_64, &code, 0x1000, place);
        for begin in [0x1000, 0x1001, 0x1004, 0x1008] {
            assert_eq!(around(begin), None, "{begin:#x}");
        }
        for (place, range) in [(0x1002, 0x1001..0x1004), (0x1003, 0x1001..0x1004), (0x1006, 0x1004..0x1008)] {
            assert_eq!(around(place), Some(range));
        }
        // An instruction of the kernel's that no other code has is no reason to refuse what lies behind.
        assert_eq!(super::around(Machine::X86_64, &[0x06, 0x90, 0x90], 0, 2), None);
        let arm = |place| super::around(Machine::Aarch64, &[], 0x1000, place);
        assert_eq!((arm(0x1004), arm(0x1006)), (None, Some(0x1004..0x1008)));
    }
}
