//! Whether the instruction before an address is a call, and whether code only jumps on: the branch instructions of the Arm
//! Architecture Reference Manual (section C4.1, "Branches").

use crate::arch::Call;

pub(super) const LONGEST_CALL: usize = 4;

/// The call that `code` is.
pub(super) fn call_at_end(code: [u8; LONGEST_CALL]) -> Option<Call> {
    let word = u32::from_le_bytes(code);
    if word >> 26 == 0b10_0101 {
        // `bl`: 26 bits that count instructions from this one.
        let distance = (word << 6).cast_signed() >> 4;
        return Some(Call::Direct(distance - LONGEST_CALL as i32));
    }
    // `blr`; and `blraa`, `blrab`, with a modifier or with zero, which authenticate the address first.
    let plain = word & 0xffff_fc1f == 0xd63f_0000;
    let authenticated = word & 0xffff_f81f == 0xd63f_081f || word & 0xffff_f800 == 0xd73f_0800;
    (plain || authenticated).then_some(Call::Indirect)
}

/// `bti c` and the instructions of a linkage table's entry up to its jump's last.
pub(super) const LONGEST_STUB: usize = 16;

/// Whether code does nothing but jump on: an entry of a linkage table or a linker's veneer, which load the address into
/// the registers that are set aside for them (x16 and x17), or a plain jump.
pub(super) fn is_stub(code: [u8; LONGEST_STUB]) -> bool {
    const BTI_C: u32 = 0xd503_245f;
    let [a, b, c, d] = code.as_chunks::<4>().0 else { return false };
    let words = [a, b, c, d].map(|word| u32::from_le_bytes(*word));
    let [first, second, ..] = if words[0] == BTI_C { [words[1], words[2]] } else { [words[0], words[1]] };
    let target = |word: u32| word & 0x1f;
    let is_veneer_register = |register: u32| matches!(register, 16 | 17);
    let jumps = first >> 26 == 0b00_0101;
    let loads = is_veneer_register(target(first)) && is_veneer_register(second >> 5 & 0x1f);
    // `adrp` then a load or an addition from what it gave; a load from beside the code, then the jump.
    let from_page = first & 0x9f00_0000 == 0x9000_0000
        && is_veneer_register(target(second))
        && (second & 0xffc0_0000 == 0xf940_0000 || second & 0xff80_0000 == 0x9100_0000);
    let from_literal = first & 0xff00_0000 == 0x5800_0000 && second & 0xffff_fc1f == 0xd61f_0000;
    jumps || loads && (from_page || from_literal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::assembled;

    fn code<const N: usize>(text: &str) -> Option<[u8; N]> {
        let mut bytes = assembled("aarch64-linux-gnu-", &format!(".arch armv8.5-a+pauth\n{text}"))?;
        bytes.resize(N, 0);
        bytes.first_chunk().copied()
    }

    #[test]
    fn calls_are_calls() {
        for (text, distance) in
            [("bl .+0x1234", 0x1230), ("bl .-0x10000", -0x10004), ("bl .+0x7fffffc", 0x7ff_fff8)]
        {
            let Some(code) = code(text) else { return };
            assert_eq!(call_at_end(code), Some(Call::Direct(distance)), "{text}");
        }
        for text in
            ["blr x0", "blr x30", "blraa x3, x4", "blraa x8, sp", "blrab x3, x4", "blraaz x9", "blrabz x17"]
        {
            assert_eq!(call_at_end(code(text).unwrap()), Some(Call::Indirect), "{text}");
        }
        for text in [
            "b .+0x1234",
            "br x16",
            "ret",
            "braa x3, x4",
            "retaa",
            "mov x0, x1",
            "nop",
            "cbz x0, .+8",
            "b.eq .+8",
        ] {
            assert_eq!(call_at_end(code(text).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn stubs_only_jump() {
        for text in [
            "adrp x16, .; ldr x17, [x16, #0x18]; add x16, x16, #0x18; br x17",
            "bti c; adrp x16, .; ldr x17, [x16, #0x18]; add x16, x16, #0x18; br x17",
            "adrp x16, .; add x16, x16, #0x18; br x16",
            "ldr x17, .+8; br x17",
            "b .+0x12344",
        ] {
            let Some(code) = code(text) else { return };
            assert!(is_stub(code), "{text}");
        }
        for text in [
            "stp x29, x30, [sp, #-32]!; mov x29, sp",
            "paciasp; stp x29, x30, [sp, #-32]!",
            "bti c; sub sp, sp, #16; str x0, [sp]; ret",
            "adrp x0, .; ldr x0, [x0, #0x18]; ret; nop",
            "adrp x16, .; ldr x0, [x16, #0x18]; ret; nop",
        ] {
            assert!(!is_stub(code(text).unwrap()), "{text}");
        }
    }
}
