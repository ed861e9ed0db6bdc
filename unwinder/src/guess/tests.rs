//! Guesses by the way on to a function's return, through code that an assembler made.

use std::num::NonZeroU64;
use std::ops::Range;

use crate::arch::assembled;
use crate::{
    AddressSpace, Architecture, CopiedStack, Mapping, Registers, StopReason, Unwinder, aarch64, x86, x86_64,
};

const CODE: u64 = 0x10_0000;
const STACK: u64 = 0x7000_0000;

/// Code without rules at [`CODE`].
struct Bare(Vec<u8>);

impl Bare {
    fn addresses(&self) -> Range<u64> {
        CODE..CODE + self.0.len() as u64
    }
}

impl<A: Architecture> AddressSpace<A> for Bare {
    fn lookup(&self, address: u64) -> Option<Mapping<'_, A>> {
        let Range { start, end } = self.addresses();
        self.addresses().contains(&address).then_some(Mapping { start, end, bias: 0, table: None })
    }

    fn generation(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(1)
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        let at = usize::try_from(address.wrapping_sub(CODE)).unwrap_or(usize::MAX);
        let Some(code) = self.0.get(at..) else { return 0 };
        let length = code.len().min(buffer.len());
        buffer[..length].copy_from_slice(&code[..length]);
        length
    }
}

/// The callers of the frame at `ip`, whose stack pointer is at the first of these words, or so many bytes behind; the same when
/// what code says is known already.
fn callers<A: Architecture>(code: &Bare, registers: impl Fn(u64) -> Registers<A>, words: &[u64]) -> Vec<u64> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    // A call leaves the stack pointer aligned, or a word below that where it pushes the return address.
    let sp = STACK + words.len() as u64 % 2 * 8;
    let (stack, mut unwinder) = (CopiedStack::new(sp, &bytes, 0), Unwinder::new());
    let mut walk = || {
        let mut frames = Vec::new();
        unwinder.unwind(code, &registers(sp), &stack, |frame| frames.push(frame.address));
        frames.split_off(1)
    };
    let first = walk();
    assert_eq!(walk(), first);
    first
}

fn on_x86_64(code: &Bare, ip: u64, words: &[u64]) -> Vec<u64> {
    let registers = |sp| {
        let mut general = [0xdead; 16];
        general[7] = sp;
        x86_64::Registers::new(ip, general)
    };
    callers(code, registers, words)
}

fn on_aarch64(code: &Bare, pc: u64, words: &[u64]) -> Vec<u64> {
    let mask = aarch64::ReturnAddressMask::of_address_bits(48);
    callers(code, |sp| aarch64::Registers::new(pc, sp, [0xdead; 31], mask), words)
}

#[test]
fn a_way_past_a_call_that_never_returns_is_not_believed_first() {
    // On the way on which no condition holds nothing returns before the next function.
    let Some(code) = assembled(
        "",
        ".org 8; call *%rax; .org 16; call *%rax
         .org 0x20; push %rbx; sub $16, %rsp; call *%rcx; test %eax, %eax; je 1f; jmp 2f
         1: add $16, %rsp; pop %rbx; ret
         2: call *%rdx; cs nopw 0(%rax,%rax,1)
         push %rbp; push %rbx; sub $8, %rsp; lock decq (%rax); add $8, %rsp; pop %rbx; pop %rbp; ret
         .org 0x70; ret",
    ) else {
        return;
    };
    let code = Bare(code);
    let [stale, caller, behind_call, leaf] = [0xa, 0x12, 0x27, 0x70].map(|at| CODE + at);
    let frame = [stale, 7, 7, caller, 7, 7];
    assert_eq!(on_x86_64(&code, behind_call, &frame)[0], caller);
    let called = [&[behind_call], frame.as_slice()].concat();
    assert_eq!(on_x86_64(&code, leaf, &called)[..2], [behind_call, caller]);
}

/// An old return address, the first word, is not better than the one that was not copied.
#[test]
fn a_way_to_what_was_not_copied_ends_a_guess() {
    let Some(code) = assembled(
        "",
        ".org 8; call *%rax
         .org 16; sub $0x1008, %rsp; call *%rcx; add $0x1008, %rsp; ret
         .org 64; push %rbp; mov %rsp, %rbp; sub $0x1000, %rsp; call *%rcx; leave; ret
         .org 96; sub $0x1008, %rsp; call *%rcx; add $0x1000, %rsp; ret",
    ) else {
        return;
    };
    let code = Bare(code);
    let [stale, by_sp, by_bp, odd] = [0xa, 0x19, 0x4d, 0x69].map(|at| CODE + at);
    let mut words = [7; 0x400];
    (words[0], words[0x200], words[0x201]) = (stale, stale, stale);
    let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    let reason = |ip, length: usize, absent| {
        let mut general = [0xdead; 16];
        (general[7], general[6]) = (STACK, STACK + 0x1000);
        let registers = x86_64::Registers::new(ip, general);
        let stack = CopiedStack::new(STACK, &bytes[..length], absent);
        let mut frames = 0;
        let stop = Unwinder::new().unwind(&code, &registers, &stack, |_| frames += 1);
        (frames, stop)
    };
    // What leaves the stack pointer at no multiple of 16 may be of another function, but there is no other way.
    for ip in [by_sp, by_bp, odd] {
        assert!(reason(ip, 0x2000, 0).0 > 1, "{ip:#x}");
        assert_eq!(reason(ip, 0x2000, 2), (1, StopReason::Unreadable), "{ip:#x}");
        assert_eq!(reason(ip, 0x1000, 0), (1, StopReason::StackExhausted), "{ip:#x}");
    }
}

#[test]
fn the_same_on_aarch64() {
    let Some(code) = assembled(
        "aarch64-linux-gnu-",
        "blr x0; .org 16; blr x0
         .org 0x20; sub sp, sp, #32; str x30, [sp, #16]; blr x1; cbz x0, 1f; b 2f
         1: ldr x30, [sp, #16]; add sp, sp, #32; ret
         2: blr x2; nop
         stp x29, x30, [sp, #-32]!; blr x3; ldp x29, x30, [sp], #32; ret",
    ) else {
        return;
    };
    let [stale, caller, behind_call] = [4, 0x14, 0x2c].map(|at| CODE + at);
    assert_eq!(on_aarch64(&Bare(code), behind_call, &[stale, 7, caller, 7, 7, 7])[0], caller);
}

#[test]
fn a_frame_record_is_not_where_the_stack_pointer_was() {
    // The first function goes on to no return, and its locals lie above its record.
    let Some(code) = assembled(
        "aarch64-linux-gnu-",
        "blr x0; .org 16; blr x0
         .org 0x20; stp x29, x30, [sp, #-64]!; mov x29, sp; b .
         .org 0x40; sub sp, sp, #48; stp x29, x30, [sp, #16]; add x29, sp, #16; blr x1
         ldp x29, x30, [sp, #16]; add sp, sp, #48; ret
         .org 0x80; sub sp, sp, #32; str x30, [sp, #8]; mov x29, sp; blr x1
         ldr x30, [sp, #8]; add sp, sp, #32; ret",
    ) else {
        return;
    };
    let [stale, outer, looping, with_record, without] = [4, 0x14, 0x28, 0x50, 0x90].map(|at| CODE + at);
    let stack = |returns_to: u64| {
        let record = [STACK + 64 + 16, returns_to];
        // Where the stack pointer would be if the record were all that there is of the frame, stale addresses begin.
        let locals = [stale; 6];
        [&record[..], &locals, &[7, 7, STACK + 112, outer, 7, 7, 0, 0]].concat()
    };
    let on_record = |pc| {
        let mut general = [0xdead; 31];
        general[29] = STACK;
        aarch64::Registers::new(pc, STACK, general, aarch64::ReturnAddressMask::of_address_bits(48))
    };
    let code = Bare(code);
    assert_eq!(callers(&code, |_| on_record(looping), &stack(with_record))[..2], [with_record, outer]);
    // What returns by the stack pointer alone can't be followed from there.
    let callers = callers(&code, |_| on_record(looping), &stack(without));
    assert_eq!(callers[..2], [without, outer]);
}

#[test]
fn a_way_to_what_is_no_return_address_is_not_the_last() {
    let Some(code) = assembled(
        "",
        ".org 8; call *%rax; .org 16; call *%rax
         .org 0x20; push %rbx; sub $16, %rsp; call *%rcx; test %eax, %eax; je 1f
         add $8, %rsp; ret
         1: add $16, %rsp; pop %rbx; ret",
    ) else {
        return;
    };
    let [stale, caller, behind_call] = [0xa, 0x12, 0x27].map(|at| CODE + at);
    assert_eq!(on_x86_64(&Bare(code), behind_call, &[stale, 7, 7, caller, 7, 7])[0], caller);
}

#[test]
fn what_a_function_drops_of_its_arguments_is_not_on_the_stack_any_more() {
    // As GCC compiles functions that return a structure, and calls of them.
    let Some(code) = assembled(
        "",
        ".code32; .org 8; call *%eax; .org 16; call *%eax
         .org 0x20; push %ebx; mov 8(%esp), %ebx; call *%eax; mov %ebx, %eax; pop %ebx; ret $4
         .org 0x40; push %ebx; sub $0x28, %esp; lea 0x10(%esp), %eax; sub $12, %esp; push %eax; call .-47
         add $12, %esp; mov 0x10(%esp), %eax; add $0x28, %esp; pop %ebx; ret",
    ) else {
        return;
    };
    let [stale, outer] = [0xa, 0x12].map(|at| CODE + at);
    let behind_call = |name: &[u8]| {
        let at = code.windows(name.len()).position(|window| window == name);
        CODE + at.unwrap() as u64
    };
    // `mov %ebx, %eax` and `add $12, %esp`
    let [callee, caller] = [&[0x89, 0xd8][..], &[0x83, 0xc4, 0x0c]].map(behind_call);
    // `ebx`, the return address and the argument; what lies above that at a multiple of 16, up to an `ebx` that looks like code.
    let mut words = vec![7, caller as u32, 7];
    words.extend([stale as u32; 14]);
    words.extend([outer as u32, 7, 7]);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let sp = STACK + 8;
    let stack = CopiedStack::new(sp, &bytes, 0);
    let mut general = [0xdead; 8];
    general[4] = sp as u32;
    let registers = x86::Registers::new(callee as u32, general);
    let mut frames = Vec::new();
    Unwinder::new().unwind(&Bare(code), &registers, &stack, |frame| frames.push(frame.address));
    assert_eq!(frames[..3], [callee, caller, outer]);
}

#[test]
fn a_frame_pointer_is_the_callers_until_the_function_has_one() {
    let Some(code) = assembled(
        "",
        ".org 8; call *%rax; .org 16; call .+0x10; .org 0x20
         push %rbp; mov %rsp, %rbp; push %rbx; sub $24, %rsp; call *%rcx; mov -8(%rbp), %rbx; leave; ret
         .org 0x40
         push %rbp; push %rbx; sub $8, %rsp; lea 16(%rsp), %rbp; call *%rcx; lea -8(%rbp), %rsp; pop %rbx; pop %rbp; ret
         .org 0x60; ret",
    ) else {
        return;
    };
    let code = Bare(code);
    let [outer, caller] = [0xa, 0x15].map(|at| CODE + at);
    // Of the caller: two words, its frame pointer and its return address.
    let record = [STACK + 0x100, outer, 7, 7];
    for (at, pushed) in [(0x20, 0), (0x21, 1), (0x40, 0), (0x41, 1), (0x42, 2), (0x46, 3)] {
        let sp = STACK + 8 * (5 - pushed);
        let saved = [5, 0xb, STACK + 8 * 8].into_iter().skip(3 - pushed as usize);
        let words: Vec<u64> = saved.chain([caller, 7, 7]).chain(record).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut general = [0xdead; 16];
        (general[6], general[7]) = (STACK + 8 * 8, sp);
        let mut frames = Vec::new();
        let (stack, registers) =
            (CopiedStack::new(sp, &bytes, 0), x86_64::Registers::new(CODE + at, general));
        Unwinder::new().unwind(&code, &registers, &stack, |frame| frames.push(frame.address));
        assert_eq!(frames.get(1..3), Some([caller, outer].as_slice()), "{at:#x}: {frames:x?}");
    }
}

#[test]
fn a_return_address_that_is_yet_to_be_stored_is_in_its_register() {
    let Some(code) = assembled(
        "aarch64-linux-gnu-",
        ".org 4; blr x0; .org 16; blr x0
         .org 0x20; stp x29, x30, [sp, #-48]!; mov x29, sp; sub sp, sp, #32; blr x1
         mov sp, x29; ldp x29, x30, [sp], #48; ret",
    ) else {
        return;
    };
    let [stale, caller] = [8, 0x14].map(|at| CODE + at);
    // Below the stack pointer lies what a call left that is over; the frame pointer is the caller's.
    let words = [7, stale, 7, 7, 7, 7, 7, 7, STACK + 96, stale, 7, 7, 0, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    for at in [0x20, 0x24] {
        let mut general = [0xdead; 31];
        (general[29], general[30]) = (STACK + 64, caller);
        let (sp, mut words) = if at == 0x20 { (STACK + 48, bytes.clone()) } else { (STACK, bytes.clone()) };
        if at == 0x24 {
            words[..8].copy_from_slice(&(STACK + 64).to_le_bytes());
            words[8..16].copy_from_slice(&caller.to_le_bytes());
        }
        let mask = aarch64::ReturnAddressMask::of_address_bits(48);
        let registers = aarch64::Registers::new(CODE + at, sp, general, mask);
        let (stack, mut frames) = (CopiedStack::new(STACK, &words, 0), Vec::new());
        Unwinder::new().unwind(&Bare(code.clone()), &registers, &stack, |frame| frames.push(frame.address));
        assert_eq!(frames.get(1), Some(&caller), "{at:#x}: {frames:x?}");
    }
}

/// glibc's `clone3`, whose instructions between the system call and the new thread's first have no rules. The thread that called
/// it goes on there, too, with its caller's address on its stack.
#[test]
fn a_thread_begins_behind_the_system_call_that_made_it() {
    let Some(code) = assembled(
        "",
        ".org 8; call *%rax; .org 16; mov $435, %eax; syscall; test %rax, %rax; jl 2f; je 1f; ret
         1: xor %ebp, %ebp; and $-16, %rsp; mov %r8, %rdi; call *%rdx
         2: or $-1, %rax; ret",
    ) else {
        return;
    };
    let code = Bare(code);
    let [caller, made, behind_call] = [10, 23, 26].map(|at| CODE + at);
    let reason_of = |ip, words: &[u64]| {
        let mut general = [0xdead; 16];
        general[7] = STACK;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut frames = 0;
        let registers = x86_64::Registers::new(ip, general);
        let stop =
            Unwinder::new().unwind(&code, &registers, &CopiedStack::new(STACK, &bytes, 0), |_| frames += 1);
        (frames, stop)
    };
    let reason = |ip, top| reason_of(ip, &[top, 0, 0, 0]);
    assert_eq!(reason(made, 0), (1, StopReason::Root));
    assert_eq!(reason(made, caller).0, 2);
    assert_eq!(reason(behind_call, 0), (1, StopReason::NoRule));
    // A variable that is zero: its function has lost its caller.
    assert_eq!(reason_of(made, &[0, 7, 0, 0]), (1, StopReason::NoRule));
    assert_eq!(reason_of(made, &[0, 0, 0, 7]), (1, StopReason::NoRule));
}
