//! What x86-64's instructions are in 32-bit code: pushes of four bytes, no prefixes for wide registers, and functions that ask
//! for their own address.

use super::X86;
use crate::arch::{self, Machine};
use crate::epilogue::{Base, Epilogue, Next};

fn assembled(text: &str) -> Option<Vec<u8>> {
    arch::assembled("", &format!(".code32\n{text}"))
}

#[test]
fn pushes_and_locals_are_added_up() {
    let cases = [
        ("push %ebp; mov %esp, %ebp; sub $0x18, %esp", 0x1c),
        ("endbr32; push %ebx; lea 8(%edi, %eax, 4), %ecx; sub $0x1238, %esp", 0x123c),
        ("mov %gs:20, %eax; inc %eax; push %eax; mov 0x8049000, %eax; fldl 8(%esp); push %eax", 8),
        // As GCC and as clang ask for the code's address.
        ("push %ebp; push %edi; push %ebx; call .+100; add $0x2ef7, %ebx; sub $0x1c, %esp", 12 + 0x1c),
        ("push %ebx; call .+100; add $0x2ef7, %eax; sub $8, %esp", 12),
        ("push %ebx; call .+5; pop %ebx; add $0x1234, %ebx; sub $8, %esp", 12),
        ("push %ebx; call .+100; mov %eax, %ebx; push %eax", 4),
        ("push %ebx; dec %esp; push %ebx", 4),
        ("push %ebx; and $-64, %esp; push %ebx", 4),
    ];
    for (text, lowered) in cases {
        let Some(code) = assembled(text) else { return };
        assert_eq!(X86::prologue(&code).lowered, lowered, "{text}");
    }
    let code = assembled("push %edi; push %esi; push %ebp; push %ebx").unwrap();
    assert_eq!(X86::prologue(&code).frame_pointer, Some(12));
}

#[test]
fn pops_and_additions_lead_to_the_return_address() {
    let cases = [
        ("pop %ebx; pop %ebp; pop %esi; ret", Base::StackPointer, 12, Some(4)),
        ("add $0x1c, %esp; mov %eax, %edx; pop %ebx; ret $4", Base::StackPointer, 0x20, None),
        ("push %eax; push $7; call .+64; add $16, %esp; ret", Base::StackPointer, 8, None),
        ("mov (%esp), %ebx; ret", Base::StackPointer, 0, None),
        ("leave; ret", Base::FramePointer, 4, Some(0)),
        ("lea -8(%ebp), %esp; pop %ebx; pop %esi; pop %ebp; ret", Base::FramePointer, 4, Some(0)),
    ];
    for (text, base, raised, frame_pointer) in cases {
        let Some(code) = assembled(text) else { return };
        let mut epilogue = Epilogue::default();
        assert_eq!(X86::epilogue(&[], &code, &mut epilogue, |_, _| {}), Next::Returns, "{text}");
        let expected =
            Epilogue { base, raised, return_address: Some(raised), frame_pointer, own_frame_pointer: None };
        assert_eq!(epilogue, expected, "{text}");
    }
    for text in ["lea -4(%ecx), %esp; ret", "mov %ecx, %esp; ret", "pop %esp; ret", "inc %esp; ret"] {
        let code = assembled(text).unwrap();
        assert_eq!(X86::epilogue(&[], &code, &mut Epilogue::default(), |_, _| {}), Next::Unknown, "{text}");
    }
}
