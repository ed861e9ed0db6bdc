//! How far the instructions from an address on to the function's return move the stack pointer. Encodings are those of
//! volume 2 of Intel's manual.

use super::instruction::{Instruction, LONGEST_INSTRUCTION, instruction};
use crate::epilogue::{Base, Epilogue, Next};
use crate::word::Word;

/// What `code` does to the stack from its beginning on, and where it goes then; `fork` is told of where it might go before.
pub(crate) fn follow(
    code: &[u8],
    epilogue: &mut Epilogue,
    mut fork: impl FnMut(i64, Epilogue),
    word: Word,
) -> Next {
    let slot = word.bytes() as i64;
    let mut at = 0;
    loop {
        let Some(rest) = code.get(at..) else { return Next::Unknown };
        let known = instruction(rest, word).filter(|(length, _)| *length <= rest.len());
        let Some((length, instruction)) = known else {
            // What is left may be the beginning of one.
            return if at > 0 && rest.len() < LONGEST_INSTRUCTION {
                Next::Jumps(at as i64)
            } else {
                Next::Unknown
            };
        };
        at += length;
        match instruction {
            Instruction::Other | Instruction::Call | Instruction::SavesBp(_) => {}
            Instruction::LoadsBp(above) => epilogue.load_frame_pointer(above),
            Instruction::SetsBp(above) => epilogue.set_frame_pointer(above),
            Instruction::Push { .. } | Instruction::PushOther => epilogue.raise(-slot),
            Instruction::Pop { bp } => {
                if bp {
                    epilogue.load_frame_pointer(0);
                }
                epilogue.raise(slot);
            }
            Instruction::Moves(moved) => epilogue.raise(moved),
            Instruction::SetsFromBp(offset) => {
                if !epilogue.rebase(Base::FramePointer, offset) {
                    return Next::Unknown;
                }
            }
            Instruction::Leave => {
                if !epilogue.rebase(Base::FramePointer, 0) {
                    return Next::Unknown;
                }
                epilogue.load_frame_pointer(0);
                epilogue.raise(slot);
            }
            Instruction::Branch(distance) => {
                if distance > 0 {
                    fork(at as i64 + distance, *epilogue);
                }
            }
            Instruction::Jump(distance) => return Next::Jumps(at as i64 + distance),
            // What has been pushed for it is no return address: a linkage table does so for the runtime linker.
            Instruction::JumpOn if !epilogue.has_popped_all() => return Next::Unknown,
            Instruction::JumpOn | Instruction::Return => {
                epilogue.return_here();
                return Next::Returns;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::follow;
    use crate::epilogue::{Base, Epilogue, Next};
    use crate::word::Word;

    fn followed(text: &str) -> Option<(Next, Epilogue)> {
        let code = crate::arch::assembled("", text)?;
        let mut epilogue = Epilogue::default();
        Some((follow(&code, &mut epilogue, |_, _| {}, Word::Eight), epilogue))
    }

    #[test]
    fn pops_and_additions_lead_to_the_return_address() {
        let cases = [
            ("ret", 0, None),
            ("repz ret", 0, None),
            ("call .+64; mov 0x50(%rsp), %rbp; add $0x58, %rsp; ret", 0x58, Some(0x50)),
            ("mov 8(%rsp), %rbp; mov %rbp, %rdi; call .+64; pop %rbx; pop %rbp; ret", 16, Some(8)),
            ("pop %rbx; pop %rbp; pop %r12; ret", 24, Some(8)),
            ("add $0x18, %rsp; mov %rax, %rdi; pop %rbp; pop %r13; ret", 40, Some(24)),
            ("mov %eax, %ebx; call .+64; test %al, %al; je .+9; add $0x1238, %rsp; ret", 0x1238, None),
            ("call *8(%rbx); lea 0x28(%rsp), %rsp; pop %rbx; ret $8", 48, None),
            ("pop %rax; pop %r10; lea (%rsp,%r8,8), %rsp; push %r10; ret", 8, None),
            ("pop %rax; pop %rcx; lea (%rsp,%rdx,8), %rsp; push %rcx; ret", 8, None),
            ("pop %rax; pop %rcx; lea 8(%r15), %rsp; push %rcx; ret", 8, None),
            ("pop %rax; pop %rcx; add %rbx, %rsp; push %rcx; ret", 8, None),
            ("pop %rax; pop %r10; add %r9, %rsp; push %r10; ret", 8, None),
            (
                "popq 0x108(%r13); vmovsd %xmm0, -8(%rbp); vfmadd132pd %zmm1, %zmm2, %zmm3; pop %rcx; ret",
                16,
                None,
            ),
            ("push %rax; push $7; call .+64; add $16, %rsp; ret", 0, None),
            ("jmp *0x1234(%rip)", 0, None),
            ("endbr64; bnd jmp *0x1234(%rip)", 0, None),
            ("mov %rbx, %rdi; pop %rbx; jmp *0x1234(%rip)", 8, None),
            ("lock decq (%rax); cs nopw 0(%rax,%rax,1); ds cmpb $7, (%rdx); pop %rsi; ret", 8, None),
            (
                "testb $1, 8(%rdi); testl $5, (%rax); notl %ecx; cmp $9, %al; bswap %ecx; bt $3, %eax; pop %rdi; ret",
                8,
                None,
            ),
            (
                "movw $5, 8(%rdi); movb $1, %cl; shld $4, %rax, %rdx; pshufd $3, %xmm0, %xmm1; cltq; nop; pop %rcx; ret",
                8,
                None,
            ),
        ];
        for (text, raised, frame_pointer) in cases {
            let Some((next, epilogue)) = followed(text) else { return };
            assert_eq!(next, Next::Returns, "{text}");
            let expected = Epilogue {
                base: Base::StackPointer,
                raised,
                return_address: Some(raised),
                frame_pointer,
                own_frame_pointer: None,
            };
            assert_eq!(epilogue, expected, "{text}");
        }
    }

    #[test]
    fn the_frame_pointer_may_lead_there() {
        for (text, raised, frame_pointer) in [
            ("mov %eax, %ebx; leave; ret", 8, 0),
            ("mov %rbp, %rsp; pop %rbp; ret", 8, 0),
            ("lea -16(%rbp), %rsp; pop %rbx; pop %r12; pop %rbp; ret", 8, 0),
            ("lea -0x88(%rbp), %rsp; add $0x88, %rsp; pop %rbp; ret", 8, 0),
        ] {
            let Some((next, epilogue)) = followed(text) else { return };
            let expected = Epilogue {
                base: Base::FramePointer,
                raised,
                return_address: Some(raised),
                frame_pointer: Some(frame_pointer),
                own_frame_pointer: None,
            };
            assert_eq!((next, epilogue), (Next::Returns, expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_ends_it() {
        for text in [
            "ud2; ret",
            "hlt; ret",
            "and $-16, %rsp; ret",
            "mov %rax, %rsp; ret",
            "jmp *%rax; ret",
            "jmp *8(%rax); ret; .skip 16, 0x90",
            "notrack jmp *0x1234(,%rax,8); ret; .skip 16, 0x90",
            "push 0x1234(%rip); jmp *0x1234(%rip); ret",
            "pop %rsp; ret",
            "pop %rbp; leave; ret",
            "pop %rcx; add %rbx, %rsp; push %rdx; ret; .skip 16, 0x90",
        ] {
            let Some((next, _)) = followed(text) else { return };
            assert_eq!(next, Next::Unknown, "{text}");
        }
        assert_eq!(followed("pop %rbx; jmp .+0x1000").unwrap().0, Next::Jumps(1 + 0x1000));
    }

    #[test]
    fn conditions_are_told_of_with_the_stack_as_it_is() {
        let text = "0: pop %rax; jne 1f; jg 0b; pop %rcx; jrcxz 1f; loop 0b; 2: loop 3f; nop; 3: sub $24, %rsp; .skip 80, 0x90; 1: jmp *%rax; .skip 16";
        let Some(code) = crate::arch::assembled("", text) else { return };
        let mut forks = Vec::new();
        let fork = |to, epilogue: Epilogue| forks.push((to, epilogue.raised.cast_signed()));
        assert_eq!(follow(&code, &mut Epilogue::default(), fork, Word::Eight), Next::Unknown);
        assert_eq!(forks, [(97, 8), (97, 16), (13, 16)]);
    }

    #[test]
    fn code_that_is_cut_goes_on() {
        let Some(code) = crate::arch::assembled("", "pop %rax; movabs $7, %rcx; pop %rdx; ret") else {
            return;
        };
        for length in 1..code.len() {
            let mut epilogue = Epilogue::default();
            let next = follow(&code[..length], &mut epilogue, |_, _| {}, Word::Eight);
            let (at, raised) = match length {
                ..11 => (1, 8),
                11 => (11, 8),
                _ => (12, 16),
            };
            assert_eq!((next, epilogue.raised), (Next::Jumps(at), raised), "{length} bytes");
        }
        assert_eq!(follow(&[], &mut Epilogue::default(), |_, _| {}, Word::Eight), Next::Unknown);
    }
}
