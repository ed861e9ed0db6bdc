//! The frame that Linux makes for a signal's handler: `struct rt_sigframe`, of which the handler's return leaves the stack
//! pointer at the `ucontext`. Source: the kernel's `arch/x86/include/uapi/asm/{ucontext,sigcontext}.h`.

use crate::signal::SignalFrame;

/// `uc_mcontext` in `struct ucontext`: after `uc_flags`, `uc_link` and `uc_stack`.
const MCONTEXT: u16 = 40;

pub(super) const SIGNAL_FRAME: SignalFrame = SignalFrame {
    returns: &[
        // mov $15, %rax; syscall: 15 is rt_sigreturn
        &[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05],
        // mov $15, %eax; syscall
        &[0xb8, 15, 0, 0, 0, 0x0f, 0x05],
    ],
    registers: &[
        (8, MCONTEXT),
        (9, MCONTEXT + 8),
        (10, MCONTEXT + 16),
        (11, MCONTEXT + 24),
        (12, MCONTEXT + 32),
        (13, MCONTEXT + 40),
        (14, MCONTEXT + 48),
        (15, MCONTEXT + 56),
        (5, MCONTEXT + 64),   // rdi
        (4, MCONTEXT + 72),   // rsi
        (6, MCONTEXT + 80),   // rbp
        (3, MCONTEXT + 88),   // rbx
        (1, MCONTEXT + 96),   // rdx
        (0, MCONTEXT + 104),  // rax
        (2, MCONTEXT + 112),  // rcx
        (7, MCONTEXT + 120),  // rsp
        (16, MCONTEXT + 128), // rip
    ],
};
