//! The instructions that compilers put between a function's first and its return: how long they are, and what they do to
//! the stack pointer. Encodings are those of volume 2 of Intel's manual, in 64-bit mode and, where words have four bytes, in
//! protected mode. Others are unknown.

use crate::word::Word;

pub(super) const LONGEST_INSTRUCTION: usize = 15;

/// What an instruction does to the stack, and whether another follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Nothing.
    Other,
    /// Jumps to so far behind its end, if a condition holds.
    Branch(i64),
    /// A register.
    Push {
        bp: bool,
    },
    /// A number, or a word of memory.
    PushOther,
    Pop {
        bp: bool,
    },
    /// `*(sp + offset) = bp`, by which Go and old compilers save it.
    SavesBp(i64),
    /// `bp = *(sp + offset)`
    LoadsBp(i64),
    /// `bp = sp + offset`
    SetsBp(i64),
    /// Moves the stack pointer up by so much.
    Moves(i64),
    /// `sp = bp + offset`
    SetsFromBp(i64),
    /// `sp = bp`, and pops `bp`
    Leave,
    Call,
    /// To so far behind its end.
    Jump(i64),
    /// To the address in a word that the code names, as linkage tables and calls at a function's end do; switches go by a
    /// register.
    JumpOn,
    Return,
}

/// The length of the instruction that `code` begins with, and what it does. The length may be more than `code` has.
pub(super) fn instruction(code: &[u8], word: Word) -> Option<(usize, Instruction)> {
    use Instruction::{
        Branch, Call, Jump, JumpOn, Leave, LoadsBp, Moves, Other, Pop, Push, PushOther, Return, SavesBp,
        SetsBp, SetsFromBp,
    };

    let is_long = word == Word::Eight;
    match code {
        // endbr64, endbr32
        [0xf3, 0x0f, 0x1e, 0xfa | 0xfb, ..] => return Some((4, Other)),
        // A call of what is behind it, which pops its own address; not into the stack pointer.
        [0xe8, 0, 0, 0, 0, 0x58..=0x5b | 0x5d..=0x5f, ..] if !is_long => return Some((6, Other)),
        _ => {}
    }
    if is_long && let Some(length) = return_past_arguments(code) {
        return Some((length, Return));
    }
    if let Some(length) = vector(code, is_long) {
        return Some((length, Other));
    }
    let prefixes = code.iter().take_while(|byte| is_prefix(**byte)).count();
    let has_word = code.get(..prefixes)?.contains(&0x66);
    let rex = Some(*code.get(prefixes)?).filter(|byte| is_long && byte & 0xf0 == 0x40);
    let [w, r, x, b] = [8, 4, 2, 1].map(|bit| rex.is_some_and(|rex| rex & bit != 0));
    // Whether operands are as wide as the stack pointer.
    let is_wide = w || !is_long && !has_word;
    let at = prefixes + usize::from(rex.is_some());
    let rest = code.get(at + 1..)?;
    let number = if has_word { 2 } else { 4 };
    let byte = |at: usize| rest.get(at).map(|byte| i64::from(byte.cast_signed()));
    let long = |at: usize| Some(i64::from(i32::from_le_bytes(*rest.get(at..)?.first_chunk()?)));
    let modrm = rest.first().copied().unwrap_or_default();
    let group = modrm >> 3 & 7;
    // Whether the operand is the stack pointer, or the instruction's other register is.
    // A word at an address relative to the stack pointer, and how far from that.
    let at_sp = match (modrm & 0xc7, rest.get(1)) {
        (0x04, Some(0x24)) => Some(0),
        (0x44, Some(0x24)) => byte(2),
        (0x84, Some(0x24)) => long(2),
        _ => None,
    };
    let at_sp = at_sp.filter(|_| is_wide && !x && !b);
    let (on_sp, to_sp) = (modrm & 0xc7 == 0xc4 && !b, group == 4 && !r);
    let (behind, instruction) = match *code.get(at)? {
        // inc and dec, of which those of the stack pointer are no compiler's
        opcode @ 0x40..=0x4f if !is_long && opcode & 7 != 4 => (0, Other),
        opcode @ 0x50..=0x57 => (0, Push { bp: opcode == 0x55 && !b }),
        // pop %rsp
        0x5c if !b => return None,
        opcode @ 0x58..=0x5f => (0, Pop { bp: opcode == 0x5d && !b }),
        // Into memory.
        0x8f if group == 0 && modrm < 0xc0 => (operand(rest)?, Pop { bp: false }),
        0x6a => (1, PushOther),
        0x68 => (4, PushOther),
        0xff if group == 6 => (operand(rest)?, PushOther),
        0x83 if on_sp && group == 5 => (2, Moves(-byte(1)?)),
        0x81 if on_sp && group == 5 => (5, Moves(-long(1)?)),
        0x83 if on_sp && group == 0 => (2, Moves(byte(1)?)),
        0x81 if on_sp && group == 0 => (5, Moves(long(1)?)),
        // cmp, which changes nothing; the others of the group change the stack pointer.
        0x81 | 0x83 if on_sp && group != 7 => return None,
        // lea of an address based on the stack pointer, or on bp
        0x8d if is_wide && to_sp => match rest {
            [0x64, 0x24, ..] if !b => (3, Moves(byte(2)?)),
            [0xa4, 0x24, ..] if !b => (6, Moves(long(2)?)),
            [0x65, ..] if !b => (2, SetsFromBp(byte(1)?)),
            [0xa5, ..] if !b => (5, SetsFromBp(long(1)?)),
            _ => return None,
        },
        0x8d if group == 5 && !r && at_sp.is_some() => (operand(rest)?, SetsBp(at_sp?)),
        0x89 if is_wide && !r && !b && modrm == 0xe5 => (1, SetsBp(0)),
        0x8b if is_wide && !r && !b && modrm == 0xec => (1, SetsBp(0)),
        0x89 if is_wide && !r && !b && modrm == 0xec => (1, SetsFromBp(0)),
        0x87 | 0x89 if on_sp => return None,
        0x89 if group == 5 && !r && at_sp.is_some() => (operand(rest)?, SavesBp(at_sp?)),
        0x8b if group == 5 && !r && at_sp.is_some() => (operand(rest)?, LoadsBp(at_sp?)),
        0x8b if is_wide && !r && !b && modrm == 0xe5 => (1, SetsFromBp(0)),
        0x87 | 0x8b if to_sp => return None,
        0xc9 => (0, Leave),
        0xc3 => (0, Return),
        0xc2 => (2, Return),
        0xe8 => (4, Call),
        0xff if group == 2 => (operand(rest)?, Call),
        0xff if modrm == 0x25 => (5, JumpOn),
        0xe9 => (4, Jump(long(0)?)),
        0xeb => (1, Jump(byte(0)?)),
        // jcc; loop, loopne, loope and jrcxz
        0x0f if (0x80..=0x8f).contains(rest.first()?) => (5, Branch(long(1)?)),
        0x70..=0x7f | 0xe0..=0xe3 => (1, Branch(byte(0)?)),
        0x0f => (1 + after_0f(rest)?, Other),
        // mov and test of one byte
        0xb0..=0xb7 | 0xa8 => (1, Other),
        0xb8..=0xbf => (if w { 8 } else { number }, Other),
        0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 | 0x6b => (operand(rest)? + 1, Other),
        0x81 | 0xc7 | 0x69 => (operand(rest)? + number, Other),
        // Arithmetic, but for cmp, with the stack pointer as what is changed
        opcode @ 0x00..=0x37 if opcode & 7 < 4 && (on_sp && opcode & 2 == 0 || to_sp && opcode & 2 != 0) => {
            return None;
        }
        opcode @ 0x00..=0x3f if opcode & 7 < 4 => (operand(rest)?, Other),
        opcode @ 0x00..=0x3f if opcode & 7 == 4 => (1, Other),
        opcode @ 0x00..=0x3f if opcode & 7 == 5 => (number, Other),
        0xa9 => (number, Other),
        // mov of a word at an absolute address
        0xa0..=0xa3 if !is_long => (4, Other),
        0x63 | 0x84..=0x8b | 0x8d | 0xd0..=0xd3 | 0xd8..=0xdf => (operand(rest)?, Other),
        0x90 | 0x98 | 0x99 | 0xa4..=0xa7 | 0xaa..=0xaf => (0, Other),
        // test has a number, the others of the group have none.
        0xf6 => (operand(rest)? + usize::from(group < 2), Other),
        0xf7 => (operand(rest)? + if group < 2 { number } else { 0 }, Other),
        0xfe | 0xff if group < 2 => (operand(rest)?, Other),
        _ => return None,
    };
    Some((at + 1 + behind, instruction))
}

/// Segments, of which code names `cs` and `ds` where it wants room filled; the operand's size; `lock`, `repnz` and `repz`.
fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x66 | 0xf0 | 0xf2 | 0xf3)
}

/// The length of the `mov` that `code` begins with, if it gives the stack pointer the value of another register than `bp`, or
/// that of a word which is found by another one than those two.
pub(super) fn sets_sp(code: &[u8], word: Word) -> Option<usize> {
    const SP: u8 = 4;
    const BP: u8 = 5;
    let (rex, code) = match (word, code) {
        (Word::Eight, [rex @ 0x48..=0x4f, rest @ ..]) => (Some(rex), rest),
        (Word::Eight, _) => return None,
        (Word::Four, _) => (None, code),
    };
    let [r, b] = [4, 1].map(|bit| rex.is_some_and(|rex| rex & bit != 0));
    let [opcode, operands @ ..] = code else { return None };
    let modrm = *operands.first()?;
    let (mode, group, rm) = (modrm >> 6, modrm >> 3 & 7, modrm & 7);
    let is_other = |register: u8, is_extended: bool| is_extended || !matches!(register, SP | BP);
    let sets = match opcode {
        0x89 => mode == 3 && rm == SP && !b && is_other(group, r),
        0x8b if group == SP && !r => match (mode, rm) {
            // By a base and an index; at an address that the code names.
            (0..3, 4) => is_other(operands.get(1)? & 7, b),
            (0, 5) => true,
            _ => is_other(rm, b),
        },
        _ => false,
    };
    sets.then_some(usize::from(rex.is_some()) + 1 + operand(operands)?)
}

/// The length of what follows `0f`, without the byte that says what it is.
fn after_0f(code: &[u8]) -> Option<usize> {
    let operands = code.get(1..)?;
    match *code.first()? {
        // syscall, cpuid, bswap
        0x05 | 0xa2 | 0xc8..=0xcf => Some(0),
        0x38 => Some(1 + operand(operands.get(1..)?)?),
        0x3a => Some(2 + operand(operands.get(1..)?)?),
        0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => Some(operand(operands)? + 1),
        0x0d | 0x10..=0x1f | 0x28..=0x2f | 0x40..=0x6f | 0x74..=0x76 | 0x7e | 0x7f | 0x90..=0x9f => {
            operand(operands)
        }
        0xa3 | 0xa5 | 0xab | 0xad..=0xb9 | 0xbb..=0xc1 | 0xc3 | 0xc7 | 0xd0..=0xfe => operand(operands),
        _ => None,
    }
}

/// The length of an instruction with a VEX or EVEX prefix, none of which changes the stack pointer.
fn vector(code: &[u8], is_long: bool) -> Option<usize> {
    // In 32-bit code a register after the first byte makes the difference from instructions of old.
    let is_prefix = |next: u8| is_long || next >= 0xc0;
    let (prefix, map) = match *code {
        [0xc5, next, ..] if is_prefix(next) => (2, 1),
        [0xc4, next, ..] if is_prefix(next) => (3, next & 0x1f),
        [0x62, next, ..] if is_prefix(next) => (4, next & 7),
        _ => return None,
    };
    let operands = code.get(prefix + 1..)?;
    let behind = match (map, *code.get(prefix)?) {
        // vzeroupper
        (1, 0x77) => 0,
        (1, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6) | (3, _) => operand(operands)? + 1,
        (1 | 2, _) => operand(operands)?,
        _ => return None,
    };
    Some(prefix + 1 + behind)
}

/// The length of the instructions by which V8's code returns past arguments whose number or size is in a register, or is
/// known by one that points behind them: `pop %a; lea (%rsp,%n,8), %rsp; push %a; ret`, or with `add %n, %rsp`
fn return_past_arguments(code: &[u8]) -> Option<usize> {
    let rex = usize::from(*code.first()? == 0x41);
    let pop = *code.get(rex).filter(|opcode| matches!(opcode, 0x58..=0x5f))?;
    let lea = code.get(rex + 1..)?;
    let (to_sp, length) = match lea {
        [0x48..=0x4b, 0x8d, operands @ ..] => (operands.first()? & 0x38 == 0x20, 2 + operand(operands)?),
        [0x48 | 0x49, 0x03, modrm, ..] => (modrm & 0xf8 == 0xe0, 3),
        [0x48 | 0x4c, 0x01, modrm, ..] => (modrm & 0xc7 == 0xc4, 3),
        _ => return None,
    };
    let push = lea.get(length..)?.strip_prefix(code.get(..rex)?)?;
    let is_return = to_sp && push.starts_with(&[pop - 8, 0xc3]);
    is_return.then_some(rex + 1 + length + rex + 2)
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
    use super::{Instruction, instruction};
    use crate::word::Word;

    #[test]
    fn lengths_are_those_that_objdump_tells() {
        assert_lengths("/lib/x86_64-linux-gnu/libc.so.6", Word::Eight);
        assert_lengths("/usr/i686-linux-gnu/lib/libc.so.6", Word::Four);
    }

    /// Of all of the library's instructions that are known, the length is the assembler's reader's.
    fn assert_lengths(library: &str, word: Word) {
        let listing = std::process::Command::new("objdump")
            .args(["-d", "-w", "-j", ".text", "--insn-width=16", library])
            .output();
        let Some(listing) = listing.ok().filter(|listing| listing.status.success()) else {
            eprintln!("SKIPPED: there is no objdump, or no {library}");
            return;
        };
        let (sp, bp) = if word == Word::Eight { ("%rsp", "%rbp") } else { ("%esp", "%ebp") };
        let (mut known, mut total) = (0, 0);
        for line in String::from_utf8(listing.stdout).unwrap().lines() {
            let mut columns = line.split('\t').skip(1);
            let (Some(bytes), Some(text)) = (columns.next(), columns.next()) else { continue };
            let code: Vec<u8> =
                bytes.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
            total += 1;
            let Some((length, what)) = instruction(&code, word) else { continue };
            known += 1;
            assert_eq!(length, code.len(), "{text}: {code:x?}");
            let name = text
                .split_whitespace()
                .find(|word| {
                    !matches!(*word, "repz" | "repnz" | "bnd" | "notrack" | "cs" | "ds" | "data16" | "lock")
                })
                .unwrap_or("");
            let expected = match what {
                Instruction::Push { .. } | Instruction::PushOther => name.starts_with("push"),
                Instruction::Pop { .. } => name.starts_with("pop"),
                Instruction::Moves(_) => text.contains(sp) && ["add", "sub", "lea"].contains(&name),
                Instruction::SavesBp(_) => {
                    name == "mov" && text.contains(&format!("{bp},")) && text.contains(sp)
                }
                Instruction::LoadsBp(_) => {
                    name == "mov" && text.ends_with(&format!(",{bp}")) && text.contains(sp)
                }
                Instruction::SetsBp(_) => text.contains(sp) && text.ends_with(bp),
                Instruction::SetsFromBp(_) => text.contains(bp) && text.ends_with(sp),
                Instruction::Leave => name == "leave",
                Instruction::Call => name == "call",
                Instruction::Branch(_) => {
                    name != "jmp" && (name.starts_with('j') || name.starts_with("loop"))
                }
                Instruction::Jump(_) | Instruction::JumpOn => name == "jmp",
                Instruction::Return => name == "ret",
                Instruction::Other => {
                    let is_test = name.starts_with("cmp") || name.starts_with("test");
                    is_test
                        || !(text.ends_with(&format!(",{sp}"))
                            || name.starts_with("push")
                            || name.starts_with("pop") && !name.starts_with("popcnt"))
                }
            };
            assert!(expected, "{text}: {what:?}");
        }
        assert!(known * 1000 > total * 985, "{known} of {total}");
    }
}
