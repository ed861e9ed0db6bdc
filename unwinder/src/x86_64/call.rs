//! Whether the instruction before an address is a call: the forms of `call` in volume 2 of Intel's manual (`E8`, and
//! `FF /2` with every kind of operand). A prefix before them makes no difference to where they end.

use super::instruction::{Instruction, instruction, sets_sp};
use crate::arch::Call;
use crate::word::Word;

/// The longest form: `FF /2` with a SIB byte and a 32-bit displacement.
pub(crate) const LONGEST_CALL: usize = 7;

/// The call at the end of `code`. Bytes that happen to look like one can't be told from one.
pub(crate) fn call_at_end(code: [u8; LONGEST_CALL]) -> Option<Call> {
    /// The addressing mode's bits.
    const MODE: u8 = 0b1100_0000;
    let [.., e8, d0, d1, d2, d3] = code;
    if e8 == 0xe8 {
        return Some(Call::Direct(i32::from_le_bytes([d0, d1, d2, d3])));
    }
    (2..=LONGEST_CALL)
        .any(|length| {
            let at = LONGEST_CALL - length;
            let (opcode, operand) = (code[at], code[at + 1]);
            if opcode != 0xff || operand >> 3 & 7 != 2 {
                return false;
            }
            let has_sib = operand & 7 == 4;
            let displacement = match operand & MODE {
                0b1100_0000 => return length == 2,
                0b0100_0000 => 1,
                0b1000_0000 => 4,
                // Relative to the instruction, or to no register.
                _ if operand & 7 == 5 => 4,
                _ if has_sib && code.get(at + 2).is_some_and(|sib| sib & 7 == 5) => 4,
                _ => 0,
            };
            length == 2 + usize::from(has_sib) + displacement
        })
        .then_some(Call::Indirect)
}

/// Whether `code`, which ends with a call, gave the stack pointer just before a value that is neither its own nor `bp`'s.
pub(crate) fn switches_stack(code: &[u8], word: Word) -> bool {
    (0..code.len()).filter_map(|at| code.get(at..)).any(|code| {
        let behind = sets_sp(code, word).and_then(|length| code.get(length..));
        behind.is_some_and(|behind| runs_into_call(behind, word))
    })
}

/// Whether the first call of `code`, from its beginning on, is at its end.
fn runs_into_call(mut code: &[u8], word: Word) -> bool {
    while let Some((length, instruction)) = instruction(code, word) {
        match (instruction, code.get(length..)) {
            (Instruction::Call, Some([])) => return true,
            (Instruction::Call | Instruction::Jump(_) | Instruction::JumpOn | Instruction::Return, _)
            | (_, None) => return false,
            (_, Some(rest)) => code = rest,
        }
    }
    false
}

/// The longest beginning of a stub: `movabs` and the jump's first byte.
pub(super) const LONGEST_STUB: usize = 11;

/// Whether code does nothing but jump on: an entry of a linkage table (with or without `endbr64` and `bnd`), or a JIT
/// compiler's stub, which may load a word first.
pub(super) fn is_stub(code: [u8; LONGEST_STUB]) -> bool {
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(&code);
    let code = code.strip_prefix(&[0xf2]).unwrap_or(code);
    // movabs $word, %rbx (or another register)
    let code = match code {
        [0x48 | 0x49, 0xb8..=0xbf, _, _, _, _, _, _, _, _, rest @ ..] => rest,
        _ => code,
    };
    matches!(code, [0xe9 | 0xeb, ..] | [0xff, 0x25, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(code: &[u8]) -> [u8; LONGEST_CALL] {
        let mut padded = [0x90; LONGEST_CALL];
        let kept = &code[code.len().saturating_sub(LONGEST_CALL)..];
        padded[LONGEST_CALL - kept.len()..].copy_from_slice(kept);
        padded
    }

    fn assembled(text: &str) -> Option<Vec<u8>> {
        crate::arch::assembled("", text)
    }

    #[test]
    fn calls_are_calls() {
        let Some(direct) = assembled("call .+5+0x1234") else { return };
        assert_eq!(call_at_end(padded(&direct)), Some(Call::Direct(0x1234)));
        for operand in [
            "*%rax",
            "*%r12",
            "*(%rax)",
            "*(%r13)",
            "*(%rsp)",
            "*8(%rbx)",
            "*8(%r12)",
            "*0x1234(%rdi)",
            "*0x1234(%rsp)",
            "*(%rax,%rbx,8)",
            "*8(%rax,%r9,4)",
            "*0x1234(%r10,%r11,2)",
            "*0x1234(,%rax,8)",
            "*0x1234(%rip)",
            "*0x1234",
        ] {
            let code = assembled(&format!("call {operand}")).unwrap();
            assert_eq!(call_at_end(padded(&code)), Some(Call::Indirect), "call {operand}: {code:x?}");
        }
    }

    #[test]
    fn changes_of_stacks_are_told_from_other_moves() {
        for text in [
            // Go's `mcall`, `systemstack` and `morestack`.
            "mov 0x38(%r14), %rsp; push %rax; mov (%rdx), %r12; call *%r12",
            "mov 0x38(%rdx), %rbx; mov %rbx, %rsp; mov %rdi, %rdx; mov (%rdi), %rdi; call *%rdi",
            "mov 0x38(%rbx), %rsp; call .+0x1000",
            "mov %r13, %rsp; call *%rax",
            "mov 0x1234(%rip), %rsp; xor %edi, %edi; call *%rax",
            "mov 8(%rdi,%rax,8), %rsp; sub $32, %rsp; call *%rax",
        ] {
            let Some(code) = assembled(text) else { return };
            assert!(switches_stack(&code, Word::Eight), "{text}");
            let before = [&[0x90; 20], code.as_slice()].concat();
            assert!(switches_stack(&before, Word::Eight), "{text}");
            assert!(!switches_stack(&code[..code.len() - 1], Word::Eight), "{text}");
        }
        for text in [
            "mov %rbp, %rsp; call *%rax",
            "mov -0x18(%rbp), %rsp; call *%rax",
            "mov 8(%rsp), %rsp; call *%rax",
            "mov %rsp, %rbx; call *%rax",
            "mov %rsp, 8(%rdi); call *%rax",
            "mov 8(%rdi), %r12; call *%rax",
            "lea -16(%rbp), %rsp; call *%rax",
            "sub %rax, %rsp; call *%rax",
            "and $-16, %rsp; call *%rax",
            "mov %rbx, %rsp; call .+64; mov %eax, %edi; call *%rax",
            "mov %rbx, %rsp; ret; call *%rax",
            "mov %rbx, %rsp; jmp .+64; call *%rax",
            "mov %rbx, %rsp; nop",
        ] {
            assert!(!switches_stack(&assembled(text).unwrap(), Word::Eight), "{text}");
        }
        let code = assembled(".code32; mov 8(%eax), %esp; push %ecx; call *%edx").unwrap();
        assert!(switches_stack(&code, Word::Four));
        let code = assembled(".code32; mov 8(%ebp), %esp; push %ecx; call *%edx").unwrap();
        assert!(!switches_stack(&code, Word::Four));
    }

    #[test]
    fn stubs_only_jump() {
        let begins = |text: &str| {
            let code = assembled(text)?;
            let mut padded = [0x90; LONGEST_STUB];
            let len = code.len().min(LONGEST_STUB);
            padded[..len].copy_from_slice(&code[..len]);
            Some(is_stub(padded))
        };
        for stub in [
            "jmp *0x1234(%rip)",
            "endbr64; jmp *0x1234(%rip)",
            "endbr64; bnd jmp *0x1234(%rip)",
            "jmp .+0x12345",
            "movabs $0x1122334455667788, %rbx; jmp .+0x12345",
        ] {
            let Some(is_stub) = begins(stub) else { return };
            assert!(is_stub, "{stub}");
        }
        for other in
            ["push %rbp; mov %rsp, %rbp", "endbr64; push %rbx", "sub $8, %rsp", "mov %rdi, %rax; ret"]
        {
            assert_eq!(begins(other), Some(false), "{other}");
        }
    }

    #[test]
    fn other_instructions_are_none() {
        for other in [
            "jmp *%rax",
            "jmp *8(%rbx)",
            "push 8(%rbx)",
            "inc %eax",
            "mov %rax, %rbx",
            "nop",
            "ret",
            "leave",
            "add $8, %rsp",
            "lea 8(%rsp), %rax",
            "jmp .+5+0x1234",
            "movabs $0x1122334455667788, %rax",
        ] {
            let Some(code) = assembled(other) else { return };
            assert_eq!(call_at_end(padded(&code)), None, "{other}: {code:x?}");
        }
    }
}
