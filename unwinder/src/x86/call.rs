//! Which code does nothing but jump on. What is a call is told by the same bytes as on x86-64.

/// The longest beginning of a stub: `endbr32` and the jump's first two bytes.
pub(super) const LONGEST_STUB: usize = 6;

/// Whether code does nothing but jump on: an entry of a linkage table, which finds the word to jump to by its address or,
/// where code does not depend on its place, by `ebx`; with or without `endbr32`.
pub(super) fn is_stub(code: [u8; LONGEST_STUB]) -> bool {
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfb]).unwrap_or(&code);
    matches!(code, [0xe9 | 0xeb, ..] | [0xff, 0x25 | 0x63 | 0xa3, ..])
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_STUB, is_stub};
    use crate::arch::{Call, Machine, assembled};
    use crate::x86::X86;

    fn assembled_32(text: &str) -> Option<Vec<u8>> {
        assembled("", &format!(".code32\n{text}"))
    }

    #[test]
    fn calls_are_calls() {
        let ending = |text: &str| {
            let code = assembled_32(text)?;
            let mut padded = vec![0x90; X86::LONGEST_CALL];
            padded.extend(code);
            Some(X86::call_at_end(&padded))
        };
        for (text, call) in [
            ("call .+5+0x1234", Call::Direct(0x1234)),
            ("call *%eax", Call::Indirect),
            ("call *(%ebx)", Call::Indirect),
            ("call *8(%esp)", Call::Indirect),
            ("call *0x1234(%ebx)", Call::Indirect),
            ("call *0x1234(,%eax,4)", Call::Indirect),
            ("call *0x12345678", Call::Indirect),
            ("call *%gs:0x10", Call::Indirect),
        ] {
            let Some(found) = ending(text) else { return };
            assert_eq!(found, Some(call), "{text}");
        }
        for text in ["jmp *%eax", "push 8(%ebx)", "inc %eax", "sub $8, %esp", "mov %esp, %ebp", "ret"] {
            assert_eq!(ending(text), Some(None), "{text}");
        }
    }

    #[test]
    fn stubs_only_jump() {
        let begins = |text: &str| {
            let mut code = assembled_32(text)?;
            code.resize(LONGEST_STUB, 0x90);
            Some(is_stub(*code.first_chunk()?))
        };
        for text in [
            "jmp *0x804c00c",
            "jmp *0xc(%ebx)",
            "jmp *0x100c(%ebx)",
            "endbr32; jmp *0xc(%ebx)",
            "jmp .+0x12345",
        ] {
            let Some(is_stub) = begins(text) else { return };
            assert!(is_stub, "{text}");
        }
        for text in
            ["push %ebp; mov %esp, %ebp", "endbr32; push %ebx", "sub $12, %esp", "mov (%esp), %ebx; ret"]
        {
            assert_eq!(begins(text), Some(false), "{text}");
        }
    }
}
