//! How far a function's first instructions move the stack pointer: what they push, and what they take for locals. Between
//! the pushes compilers put whatever else is ready to run; the first instruction that is not known ends the prologue. What is
//! pushed behind the locals, or is no register, is for a function that is called, and no longer there once it has been.

use super::instruction::{Instruction, instruction};
use crate::prologue::{LONGEST_PROLOGUE, Prologue};
use crate::word::Word;

/// Of `code`, from a function's first instruction on up to the one that was about to run.
pub(crate) fn prologue(code: &[u8], word: Word) -> Prologue {
    let (mut at, mut prologue) = (0, Prologue { return_address: Some(0), ..Prologue::default() });
    let (mut has_locals, mut before_arguments) = (false, None);
    while let Some((length, instruction)) = code.get(at..).and_then(|code| instruction(code, word)) {
        at += length;
        if at > code.len() {
            break;
        }
        if instruction == Instruction::PushOther
            || has_locals && matches!(instruction, Instruction::Push { .. })
        {
            before_arguments.get_or_insert(prologue);
        }
        let lowered = match instruction {
            Instruction::Other | Instruction::Branch(_) | Instruction::SetsBp(_) => 0,
            Instruction::SavesBp(above) => {
                // What it holds later on is no longer the caller's.
                let below = prologue.lowered.wrapping_add_signed(-above);
                prologue.frame_pointer.get_or_insert(below);
                0
            }
            Instruction::Call if word == Word::Four && takes_own_address(code.get(at..)) => 0,
            Instruction::Push { .. } | Instruction::PushOther => word.bytes(),
            Instruction::Moves(moved) if moved < 0 => {
                has_locals = true;
                moved.unsigned_abs()
            }
            _ => break,
        };
        prologue.lowered = prologue.lowered.wrapping_add(lowered);
        if instruction == (Instruction::Push { bp: true }) {
            prologue.frame_pointer = Some(prologue.lowered);
        }
    }
    prologue.realigned = code.get(at..).is_some_and(|code| aligns_sp(code, word));
    // 32-bit code passes all arguments on the stack, so that at nearly each call there are some.
    let has_run_on = word == Word::Eight && (at != code.len() || at >= LONGEST_PROLOGUE);
    before_arguments.filter(|_| has_run_on).unwrap_or(prologue)
}

/// Whether `code` begins with an `and` of the stack pointer.
fn aligns_sp(code: &[u8], word: Word) -> bool {
    let code = if word == Word::Eight { code.strip_prefix(&[0x48]) } else { Some(code) };
    matches!(code, Some([0x81 | 0x83, 0xe4, ..]))
}

/// Whether the call that `rest` follows was one of GCC's `__x86.get_pc_thunk`, by which 32-bit code finds its data: what it
/// gives, its own return address, is added to at once.
fn takes_own_address(rest: Option<&[u8]>) -> bool {
    matches!(rest, Some([0x81, 0xc0..=0xc7, ..] | [0x05, ..]))
}

/// Whether `code` looks like a function's first instruction: `endbr`, a push, room for locals, or where the caller's frame is to
/// be found once the stack pointer is aligned; behind a jump or a return or what compilers align code with.
pub(crate) fn begins_function(before: &[u8], code: &[u8], word: Word) -> bool {
    // Thousands of places may be looked at: instructions are told by their first bytes, without their length.
    let begins_so = match word {
        Word::Eight => matches!(
            code,
            [0x41, 0x50..=0x57, ..] | [0x48, 0x81 | 0x83, 0xec, ..] | [0x4c, 0x8d, 0x54, 0x24, 0x08, ..]
        ),
        Word::Four => matches!(code, [0x81 | 0x83, 0xec, ..] | [0x8d, 0x4c, 0x24, 0x04, ..]),
    };
    let begins = begins_so || matches!(code, [0x50..=0x57, ..] | [0xf3, 0x0f, 0x1e, 0xfa | 0xfb, ..]);
    // ret, hlt; ud2; jmp
    let has_ended =
        matches!(before, [.., 0xc3 | 0xf4] | [.., 0x0f, 0x0b] | [.., 0xe9, _, _, _, _] | [.., 0xeb, _]);
    begins && (has_ended || PADDING.iter().any(|padding| before.ends_with(padding)))
}

/// What code is aligned with: `nop` of one byte and of more, `int3`, and in 32-bit code `lea 0(%esi), %esi`.
const PADDING: [&[u8]; 11] = [
    &[0x90],
    &[0xcc],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x8d, 0x76, 0x00],
    &[0x8d, 0x74, 0x26, 0x00],
    &[0x8d, 0xb6, 0x00, 0x00, 0x00, 0x00],
    &[0x8d, 0xb4, 0x26, 0x00, 0x00, 0x00, 0x00],
];

/// Where, from its beginning, `code` jumps to before it lowers the stack pointer: a function that only hands on to another.
pub(crate) fn tail_jump(code: &[u8], word: Word) -> Option<i64> {
    let mut at = 0;
    loop {
        let (length, instruction) = instruction(code.get(at..)?, word)?;
        at += length;
        match instruction {
            Instruction::Other | Instruction::Branch(_) | Instruction::SetsBp(_) => {}
            Instruction::Jump(distance) => return Some(at as i64 + distance),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection as _};
    use object::{Object as _, ObjectSection as _};

    use super::{LONGEST_PROLOGUE, begins_function};
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
    fn arguments_of_calls_do_not_count_behind_them() {
        let text = "push %rbx; sub $0x20, %rsp; push 8(%rdi); push %rax; call .+64";
        let Some(called) = assembled(text) else { return };
        assert_eq!(prologue(&called).lowered, 8 + 0x20 + 16, "they are there until the call is over");
        let code = [called.as_slice(), &[0x90; 4]].concat();
        assert_eq!(prologue(&code).lowered, 8 + 0x20);
        let code = [called.as_slice(), &[0x90; LONGEST_PROLOGUE]].concat();
        assert_eq!(prologue(&code[..LONGEST_PROLOGUE]).lowered, 8 + 0x20);
        assert_eq!(super::prologue(&code, Word::Four).lowered, 4 + 0x20 + 8);
    }

    #[test]
    fn realignment_is_seen() {
        for (text, realigned) in [
            ("push %rbp; mov %rsp, %rbp; and $-16, %rsp; sub $16, %rsp", true),
            ("lea 8(%rsp), %r10; and $-0x1000, %rsp; push -8(%r10)", true),
            ("push %rbp; mov %rsp, %rbp; sub $16, %rsp; and $-16, %rax", false),
        ] {
            let Some(code) = assembled(text) else { return };
            assert_eq!(prologue(&code).realigned, realigned, "{text}");
        }
        let code = assembled(".code32; push %ebp; mov %esp, %ebp; and $-16, %esp").unwrap();
        assert!(super::prologue(&code, Word::Four).realigned);
    }

    /// In the C library, as its unwind information says where functions begin.
    #[test]
    fn what_looks_like_a_beginning_is_one() {
        let Ok(bytes) = std::fs::read("/lib/x86_64-linux-gnu/libc.so.6") else {
            eprintln!("SKIPPED: there is no C library for x86-64");
            return;
        };
        let file = object::File::parse(bytes.as_slice()).unwrap();
        let text = file.section_by_name(".text").unwrap();
        let (start, code) = (text.address(), text.data().unwrap());
        let begins = |at: &u64| {
            let (before, code) = code.split_at(*at as usize);
            begins_function(before, code, Word::Eight)
        };
        let found: BTreeSet<u64> = (16..code.len() as u64).step_by(16).filter(begins).collect();

        let section = file.section_by_name(".eh_frame").unwrap();
        let bases = BaseAddresses::default().set_eh_frame(section.address());
        let frames = EhFrame::new(section.data().unwrap(), LittleEndian);
        let mut entries = frames.entries(&bases);
        let mut functions = BTreeSet::new();
        while let Some(entry) = entries.next().unwrap() {
            if let CieOrFde::Fde(fde) = entry {
                let begins = fde.parse(EhFrame::cie_from_offset).unwrap().initial_address();
                functions.insert(begins.wrapping_sub(start));
            }
        }
        functions.retain(|&at| at < code.len() as u64);
        let right = found.intersection(&functions).count();
        assert!(right * 10 > found.len() * 9, "{right} of {}", found.len());
        // The others begin with another instruction, or are parts of functions.
        assert!(right * 5 > functions.len() * 2, "{right} of {}", functions.len());
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
