//! How far a function's first instructions move the stack pointer: what they push, and what they take for locals.
//! Encodings are those of volume 2 of Intel's manual. Between the pushes compilers put whatever else is ready to run, so the
//! length of the usual instructions is known, too; the first other one ends the prologue.

use crate::prologue::Prologue;

/// Of `code`, from a function's first instruction on up to the one that was about to run.
pub(super) fn prologue(code: &[u8]) -> Prologue {
    const PUSH_BP: u8 = 0x55;
    let (mut at, mut prologue) = (0, Prologue { return_address: Some(0), ..Prologue::default() });
    while let Some((length, lowered)) = code.get(at..).and_then(instruction) {
        let pushes_bp = code.get(at) == Some(&PUSH_BP);
        at += length;
        if at > code.len() {
            break;
        }
        prologue.lowered = prologue.lowered.wrapping_add(lowered);
        if pushes_bp {
            prologue.frame_pointer = Some(prologue.lowered);
        }
    }
    prologue
}

/// Where, from its beginning, `code` jumps to before it lowers the stack pointer: a function that only hands on to another.
pub(super) fn tail_jump(code: &[u8]) -> Option<i64> {
    let mut at = 0;
    loop {
        let rest = code.get(at..)?;
        match *rest {
            [0xe9, a, b, c, d, ..] => {
                return Some(at as i64 + 5 + i64::from(i32::from_le_bytes([a, b, c, d])));
            }
            [0xeb, distance, ..] => return Some(at as i64 + 2 + i64::from(distance.cast_signed())),
            _ => {}
        }
        let (length, lowered) = instruction(rest)?;
        if lowered != 0 {
            return None;
        }
        at += length;
    }
}

/// The length of an instruction of a prologue, and by how much it lowers the stack pointer.
fn instruction(code: &[u8]) -> Option<(usize, u64)> {
    if code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) {
        // endbr64
        return Some((4, 0));
    }
    let prefixes = code.iter().take_while(|byte| matches!(byte, 0x66 | 0xf2 | 0xf3)).count();
    let rex = *code.get(prefixes)?;
    let has_rex = rex & 0xf0 == 0x40;
    let opcode_at = prefixes + usize::from(has_rex);
    let rest = code.get(opcode_at + 1..)?;
    let (behind, lowered) = match *code.get(opcode_at)? {
        // push
        0x50..=0x57 => (0, 8),
        0x6a => (1, 8),
        0x68 => (4, 8),
        // sub $..., %rsp
        0x83 if rest.first() == Some(&0xec) => (2, (*rest.get(1)?).cast_signed() as u64),
        0x81 if rest.first() == Some(&0xec) => {
            let size = i32::from_le_bytes(*rest.get(1..)?.first_chunk()?);
            (5, size as u64)
        }
        // Another change of the stack pointer: and $..., %rsp
        0x81 | 0x83 if rest.first()? & 0xc7 == 0xc4 => return None,
        // Jumps if a condition holds: this one was not taken.
        0x70..=0x7f => (1, 0),
        0xb8..=0xbf => (if has_rex && rex & 8 != 0 { 8 } else { 4 }, 0),
        0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 | 0x6b => (operand(rest)? + 1, 0),
        0x81 | 0xc7 | 0x69 => (operand(rest)? + 4, 0),
        opcode @ 0x00..=0x3f if opcode & 7 < 4 => (operand(rest)?, 0),
        0x63 | 0x84..=0x8b | 0x8d | 0xd1 | 0xd3 => (operand(rest)?, 0),
        0x0f => match *rest.first()? {
            0x80..=0x8f => (5, 0),
            0x10..=0x17 | 0x1f | 0x28..=0x2f | 0x40..=0x7f | 0x90..=0x9f | 0xa3..=0xff => {
                (1 + operand(rest.get(1..)?)?, 0)
            }
            _ => return None,
        },
        _ => return None,
    };
    Some((opcode_at + 1 + behind, lowered))
}

/// The length of an operand: its `ModRM` byte, and what that says follows.
fn operand(code: &[u8]) -> Option<usize> {
    let modrm = *code.first()?;
    let (mode, rm) = (modrm >> 6, modrm & 7);
    if mode == 3 {
        return Some(1);
    }
    let sib = usize::from(rm == 4);
    let has_no_base = rm == 5 || (rm == 4 && code.get(1)? & 7 == 5);
    Some(1 + sib + [if has_no_base { 4 } else { 0 }, 1, 4][usize::from(mode)])
}

#[cfg(test)]
mod tests {
    use super::{prologue, tail_jump};

    fn assembled(text: &str) -> Option<Vec<u8>> {
        crate::arch::assembled("", text)
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
