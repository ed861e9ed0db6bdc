//! Where instructions begin, and which of them a probe is best at. A probe inside of one would overwrite a part of it, and change what the
//! program does.

use std::ops::Range;

#[cfg(feature = "ebpf")]
use iced_x86::{Code, Mnemonic};
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

/// Instructions at a function's begin that are passed over: no more than an `endbr64` and a comparison or two.
#[cfg(feature = "ebpf")]
const MOST_PASSED: usize = 3;

/// How far behind a function's begin a probe costs least, while arguments and stack are as they were there. `code` begins with the function's
/// first instruction at `start`.
///
/// What a breakpoint is at, the kernel does by itself where it is a push, a jump, a call or a `nop`. Anything else it lets the processor
/// step through elsewhere, which is a second trap. So a probe is put behind what only marks the begin or compares (`endbr64`, `test`, `cmp`),
/// unless a branch of the function leads there: that would be met as if the function was called again.
///
/// Source: `branch_setup_xol_ops` and `push_setup_xol_ops` of `arch/x86/kernel/uprobes.c`.
#[cfg(feature = "ebpf")]
pub(super) fn cheapest_begin(machine: Machine, code: &[u8], start: u64) -> u64 {
    if machine != Machine::X86_64 {
        return 0;
    }
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    for _ in 0..=MOST_PASSED {
        if !decoder.can_decode() {
            return 0;
        }
        let begin = decoder.position();
        let instruction = decoder.decode();
        if code.get(begin..decoder.position()).is_some_and(is_done_by_the_kernel) {
            let place = instruction.ip();
            let is_reached = machine.branches(code, start).any(|target| target > start && target <= place);
            return if is_reached { 0 } else { place - start };
        }
        if !matches!(instruction.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Test | Mnemonic::Cmp) {
            return 0;
        }
    }
    0
}

/// By its bytes: `push`, `nop`, `call`, `jmp` and the conditional jumps, without the prefixes that the kernel takes none of them with.
#[cfg(feature = "ebpf")]
const fn is_done_by_the_kernel(instruction: &[u8]) -> bool {
    matches!(
        instruction,
        [0x50..=0x57 | 0x90]
            | [0x41, 0x50..=0x57]
            | [0xe8 | 0xe9 | 0xeb | 0x70..=0x7f, ..]
            | [0x0f, 0x80..=0x8f, ..]
    )
}

/// Where a function goes on that does nothing else.
#[cfg(feature = "ebpf")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jump {
    /// At this address.
    To(u64),
    /// Where the word at this address says.
    By(u64),
}

/// The jump that a function begins with, behind nothing but a mark of its begin (`endbr64`, `bti`): its arguments and its caller are those of
/// what it jumps to. `code` begins with its first instruction at `start`.
///
/// Sources: Intel SDM, `JMP`; Arm ARM, `B` (bits 31 to 26 are 000101) and `BTI`, a hint of which bits 7 and 6 tell the kind.
#[cfg(feature = "ebpf")]
pub(super) fn only_jump(machine: Machine, code: &[u8], start: u64) -> Option<Jump> {
    match machine {
        Machine::X86_64 => {
            let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
            let mut instruction = decoder.decode();
            if instruction.mnemonic() == Mnemonic::Endbr64 {
                instruction = decoder.decode();
            }
            match instruction.code() {
                Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => Some(Jump::To(instruction.near_branch64())),
                Code::Jmp_rm64 if instruction.is_ip_rel_memory_operand() => {
                    Some(Jump::By(instruction.ip_rel_memory_address()))
                }
                _ => None,
            }
        }
        Machine::Aarch64 => {
            let word = |at: usize| Some(u32::from_le_bytes(*code.get(at..)?.first_chunk()?));
            let at = if word(0)? & 0xffff_ff3f == 0xd503_241f { 4 } else { 0 };
            let is_jump = word(at)? >> 26 == 0b00_0101;
            let target = machine.branches(code.get(at..at + 4)?, start.wrapping_add(at as u64)).next();
            target.filter(|_| is_jump).map(Jump::To)
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
    #[cfg(feature = "ebpf")]
    #[test]
    fn a_probe_is_where_the_kernel_needs_no_second_trap() {
        let begin = |code: &[u8]| cheapest_begin(Machine::X86_64, code, 0x1000);
        for (code, expected, what) in [
            // As `objdump -d` has them of the C libraries of Debian 12 and Ubuntu 24.04.
            (&[0x48, 0x85, 0xff, 0x0f, 0x84, 0xbf, 0, 0, 0][..], 3, "test %rdi,%rdi; je"),
            (&[0x41, 0x54, 0x55, 0x53], 0, "push %r12: nothing to pass"),
            (
                &[0x80, 0x3d, 0x01, 0x02, 0x14, 0x00, 0x00, 0x41, 0x54],
                7,
                "cmpb $0x0,0x140201(%rip); push %r12",
            ),
            (&[0xf3, 0x0f, 0x1e, 0xfa, 0x55], 4, "endbr64; push %rbp"),
            (&[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 0x10], 7, "endbr64; test %rdi,%rdi; je"),
            (
                &[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xfb, 0x55],
                0,
                "endbr64; mov %rdi,%rbx: it changes a register",
            ),
            (&[0x48, 0x83, 0xec, 0x08, 0x55], 0, "sub $0x8,%rsp: arguments would be elsewhere"),
            (&[0x48, 0x85, 0xff, 0x55, 0xeb, 0xfd], 0, "test; push; jmp to the push"),
            (&[0x48, 0x85, 0xff, 0x55, 0xeb, 0xfa], 3, "test; push; jmp to the begin, which is a call again"),
            (&[0x48, 0x85], 0, "cut short"),
            (&[], 0, "nothing"),
        ] {
            assert_eq!(begin(code), expected, "{what}");
        }
        assert_eq!(cheapest_begin(Machine::Aarch64, &[0x48, 0x85, 0xff, 0x55], 0), 0);
    }
    #[cfg(feature = "ebpf")]
    #[test]
    fn a_function_that_is_a_jump_is_told_with_where_to() {
        let x86 = |code: &[u8]| only_jump(Machine::X86_64, code, 0x1000);
        for (code, expected, what) in [
            // As `objdump -d` has them of jemalloc 5.3, whose `new[]` is `new`, and of its `.plt`.
            (&[0xe9, 0x1b, 0xff, 0xff, 0xff][..], Some(Jump::To(0x0f20)), "jmp rel32"),
            (&[0xf3, 0x0f, 0x1e, 0xfa, 0xeb, 0x0a], Some(Jump::To(0x1010)), "endbr64; jmp rel8"),
            (&[0xff, 0x25, 0x10, 0, 0, 0], Some(Jump::By(0x1016)), "jmp *0x10(%rip)"),
            (&[0xf2, 0xff, 0x25, 0x10, 0, 0, 0], Some(Jump::By(0x1017)), "bnd jmp *0x10(%rip)"),
            (&[0xff, 0xe0], None, "jmp *%rax"),
            (&[0xff, 0x60, 0x10], None, "jmp *0x10(%rax)"),
            (&[0x0f, 0x84, 0, 0, 0, 0], None, "je"),
            (&[0x48, 0x89, 0xf7, 0xe9, 0, 0, 0, 0], None, "mov %rsi,%rdi; jmp: another argument"),
            (&[0xe8, 0, 0, 0, 0], None, "call"),
            (&[0xe9, 0, 0], None, "cut short"),
            (&[0xf3, 0x0f, 0x1e, 0xfa], None, "endbr64 alone"),
            (&[], None, "nothing"),
        ] {
            assert_eq!(x86(code), expected, "{what}");
        }
        let arm = |words: &[u32]| {
            let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            only_jump(Machine::Aarch64, &code, 0x1000)
        };
        for (words, expected, what) in [
            (&[0x17ff_fffc][..], Some(Jump::To(0x0ff0)), "b .-16"),
            (&[0xd503_245f, 0x1400_0003], Some(Jump::To(0x1010)), "bti c; b .+12"),
            (&[0x9400_0003], None, "bl"),
            (&[0xaa01_03e0, 0x1400_0003], None, "mov x0, x1; b: another argument"),
            (&[0xd503_245f], None, "bti alone"),
            (&[], None, "nothing"),
        ] {
            assert_eq!(arm(words), expected, "{what}");
        }
    }
}
