//! How far a function's first instructions move the stack pointer: what they push, and what they take for locals. Between
//! the pushes compilers put whatever else is ready to run; the first instruction that is not known ends the prologue.

use super::instruction::{Instruction, instruction};
use crate::prologue::Prologue;
use crate::word::Word;

/// Of `code`, from a function's first instruction on up to the one that was about to run.
pub(crate) fn prologue(code: &[u8], word: Word) -> Prologue {
    let (mut at, mut prologue) = (0, Prologue { return_address: Some(0), ..Prologue::default() });
    while let Some((length, instruction)) = code.get(at..).and_then(|code| instruction(code, word)) {
        at += length;
        if at > code.len() {
            break;
        }
        let lowered = match instruction {
            Instruction::Other => 0,
            Instruction::SavesBp(above) => {
                // What it holds later on is no longer the caller's.
                let below = prologue.lowered.wrapping_add_signed(-above);
                prologue.frame_pointer.get_or_insert(below);
                0
            }
            Instruction::Call if word == Word::Four && takes_own_address(code.get(at..)) => 0,
            Instruction::Push { .. } => word.bytes(),
            Instruction::Moves(moved) if moved < 0 => moved.unsigned_abs(),
            _ => break,
        };
        prologue.lowered = prologue.lowered.wrapping_add(lowered);
        if instruction == (Instruction::Push { bp: true }) {
            prologue.frame_pointer = Some(prologue.lowered);
        }
    }
    prologue
}

/// Whether the call that `rest` follows was one of GCC's `__x86.get_pc_thunk`, by which 32-bit code finds its data: what it
/// gives, its own return address, is added to at once.
fn takes_own_address(rest: Option<&[u8]>) -> bool {
    matches!(rest, Some([0x81, 0xc0..=0xc7, ..] | [0x05, ..]))
}

/// Where, from its beginning, `code` jumps to before it lowers the stack pointer: a function that only hands on to another.
pub(crate) fn tail_jump(code: &[u8], word: Word) -> Option<i64> {
    let mut at = 0;
    loop {
        let (length, instruction) = instruction(code.get(at..)?, word)?;
        at += length;
        match instruction {
            Instruction::Other => {}
            Instruction::Jump(distance) => return Some(at as i64 + distance),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prologue::Prologue;
    use crate::word::Word;

    fn assembled(text: &str) -> Option<Vec<u8>> {
        crate::arch::assembled("", text)
    }

    fn prologue(code: &[u8]) -> Prologue {
        super::prologue(code, Word::Eight)
    }

    fn tail_jump(code: &[u8]) -> Option<i64> {
        super::tail_jump(code, Word::Eight)
    }

    #[test]
    fn pushes_and_locals_are_added_up() {
        let cases = [
            ("endbr64; push %rbp; mov %rsp, %rbp; sub $0x30, %rsp", 0x38),
            ("push %r15; mov %rdi, %r15; push %rbx; lea 8(%rdi, %rax, 4), %rcx; sub $0x1238, %rsp", 0x1248),
            ("mov %eax, -0x14000(%rsp); push %rbp; sub $0x30, %rsp", 0x38),
            ("push %rbx; test %esi, %esi; je .+100; movzbl 0x1234(%rip), %eax; sub $16, %rsp", 24),
            ("mov $0x12345678, %eax; movabs $0x1122334455667788, %rdx; push %rdi; xor %eax, %eax", 8),
            (
                "cmpl $7, 0x20(%rdi); movups %xmm0, 8(%rsp); push $300; push $3; sar %rax; mov %fs:40, %rax",
                16,
            ),
            ("push %rbx; ret; push %rbx", 8),
            ("push %rbx; and $-64, %rsp; push %rbx", 8),
            ("push %rbx; call .+100; push %rbx", 8),
        ];
        for (text, lowered) in cases {
            let Some(code) = assembled(text) else { return };
            assert_eq!(prologue(&code).lowered, lowered, "{text}");
        }
    }

    #[test]
    fn what_was_about_to_run_does_not_count() {
        let Some(code) = assembled("push %rbx; push %r12; sub $0x100, %rsp") else { return };
        let lowered: Vec<u64> = (0..=code.len()).map(|length| prologue(&code[..length]).lowered).collect();
        assert_eq!(lowered, [0, 8, 8, 16, 16, 16, 16, 16, 16, 16, 16 + 0x100]);
    }

    #[test]
    fn the_base_is_where_it_was_pushed() {
        for (text, base) in [
            ("push %r15; push %r14; push %rbp; push %rbx; sub $8, %rsp", Some(24)),
            ("endbr64; push %rbp; mov %rsp, %rbp", Some(8)),
            ("push %r13; sub $8, %rsp", None),
            (
                "cmp 16(%r14), %rsp; jbe .+100; sub $0x58, %rsp; mov %rbp, 0x50(%rsp); lea 0x50(%rsp), %rbp",
                Some(8),
            ),
            ("mov %rbx, -16(%rsp); mov %rbp, -8(%rsp); sub $0x18, %rsp; mov %rbp, (%rsp)", Some(8)),
        ] {
            let Some(code) = assembled(text) else { return };
            assert_eq!(prologue(&code).frame_pointer, base, "{text}");
        }
    }

    #[test]
    fn functions_that_hand_on_are_followed() {
        let Some(code) = assembled("mov %rdi, %rsi; xor %edi, %edi; jmp .+0x1000") else { return };
        assert_eq!(tail_jump(&code), Some(5 + 0x1000));
        let code = assembled("endbr64; jmp .-0x20").unwrap();
        assert_eq!(tail_jump(&code), Some(4 - 0x20));
        for other in ["push %rax; jmp .+0x1000", "ret; jmp .+0x1000", "mov %rdi, %rsi"] {
            assert_eq!(tail_jump(&assembled(other).unwrap()), None, "{other}");
        }
    }
}
