//! Which of perf's registers are which words of a sample's head, on each architecture whose stacks are walked.
//!
//! perf's numbers: `arch/x86/include/uapi/asm/perf_regs.h`, `arch/arm64/include/uapi/asm/perf_regs.h`. The head's words:
//! `struct pt_regs` of `arch/x86/include/asm/ptrace.h`, `struct user_pt_regs` of `arch/arm64/include/uapi/asm/ptrace.h`.

use collector_common::perf::{Registers, RegistersAbi};
use collector_common::wire::{SampleFlags, SampleHeader};
use object::elf::{self, EM_386, EM_AARCH64, EM_ARM, EM_X86_64};

/// For each word the number of perf's register; `None` for those that are not asked for.
pub(crate) const WORDS: [Option<u32>; 21] = {
    let [ax, bx, cx, dx, si, di, bp, sp, ip] =
        [Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6), Some(7), Some(8)];
    let [r8, r9, r10, r11, r12, r13, r14, r15] =
        [Some(16), Some(17), Some(18), Some(19), Some(20), Some(21), Some(22), Some(23)];
    [r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, None, ip, None, None, sp, None]
};

/// The word of `struct pt_regs` with the number of the system call, which perf does not tell: no call has this one.
const SYSTEM_CALL: usize = 15;

/// `PERF_REG_X86_SP`
pub(crate) const STACK_POINTER: u32 = 7;

/// `PERF_REG_X86_IP`
pub(crate) const INSTRUCTION_POINTER: u32 = 8;

/// Where perf has a register of aarch64, there `struct user_pt_regs` has it too: x0 to x30, the stack pointer, and the program
/// counter.
const OF_AARCH64: usize = 33;

/// `PERF_REG_ARM64_X29`, `LR`, `SP`, `PC`: an aarch64 walk begins with these.
const NEEDED_OF_AARCH64: [u32; 4] = [29, 30, 31, 32];

/// `PERF_REG_ARM64_SP`
const STACK_POINTER_OF_AARCH64: u32 = 31;

/// The architecture of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    X86_64,
    Aarch64,
    /// One whose stacks are not walked.
    Other,
}

impl Machine {
    /// By its name, as `uname -m` gives it.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "x86_64" => Self::X86_64,
            "aarch64" | "arm64" => Self::Aarch64,
            _ => Self::Other,
        }
    }

    /// By `e_machine` of a program that runs there.
    pub(crate) fn of_elf(machine: elf::Machine) -> Self {
        match machine {
            EM_X86_64 | EM_386 => Self::X86_64,
            EM_AARCH64 | EM_ARM => Self::Aarch64,
            _ => Self::Other,
        }
    }

    /// Puts a thread's registers into a sample's head. What is to be said of them, and the stack pointer; `None` if its
    /// stack can't be walked.
    pub(super) fn take(self, registers: &Registers<'_>, header: &mut SampleHeader) -> Option<(u32, u64)> {
        let is_narrow = registers.abi == RegistersAbi::BITS_32;
        let (flags, stack_pointer) = match self {
            Self::X86_64 => {
                for (word, register) in header.registers.iter_mut().zip(WORDS) {
                    *word = register.and_then(|register| registers.get(register)).unwrap_or(0);
                }
                header.registers[SYSTEM_CALL] = u64::MAX;
                (if is_narrow { SampleFlags::COMPAT } else { 0 }, STACK_POINTER)
            }
            Self::Aarch64 if !is_narrow => {
                let is_there = |&register: &u32| registers.get(register).is_some();
                if !NEEDED_OF_AARCH64.iter().all(is_there) {
                    return None;
                }
                header.registers.fill(0);
                for (number, word) in header.registers.iter_mut().take(OF_AARCH64).enumerate() {
                    *word = registers.get(number as u32).unwrap_or(0);
                }
                (SampleFlags::AARCH64, STACK_POINTER_OF_AARCH64)
            }
            Self::Aarch64 | Self::Other => return None,
        };
        Some((flags | SampleFlags::USER_REGISTERS, registers.get(stack_pointer).unwrap_or(0)))
    }
}
