//! The user registers of the current thread, wherever the CPU was when the sample was taken.

use aya_ebpf::helpers::generated::{bpf_get_current_task_btf, bpf_probe_read_kernel, bpf_task_pt_regs};
use collector_common::wire::{Config, SampleHeader};

use crate::{kernel::read_word, maps::config};

/// Arguments of a system call that can be told.
pub(crate) const ARGUMENTS: usize = 5;

/// Layout of the kernel's `struct pt_regs`.
#[cfg(bpf_target_arch = "x86_64")]
mod layout {
    /// `r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig_ax ip cs flags sp ss`
    pub(super) const WORDS: usize = 21;
    pub(super) const SP: u32 = 19 * 8;
    pub(super) const IP: u32 = 16 * 8;
    /// `ax`
    pub(super) const RETURNED: u32 = 10 * 8;
    /// Bytes that a return takes off the stack.
    pub(super) const RETURN_ADDRESS: u64 = 8;
    pub(super) const PROBE_SLOT: u64 = 128;

    /// The trampoline pushes three registers, of one byte, one and two, loads a number in seven bytes, makes the system call in
    /// two, and then pops two of the three, of two bytes and one; into the place of the third the call has put the return
    /// address (`uretprobe_trampoline_entry` of `arch/x86/kernel/uprobes.c`; from Linux 6.11 on, a breakpoint before).
    #[inline(always)]
    pub(super) fn on_stack_behind_call(offset: u64) -> Option<u64> {
        match offset {
            13 => Some(16),
            15 => Some(8),
            16 => Some(0),
            _ => None,
        }
    }
    const CS: usize = 17;
    /// `orig_ax`: -1 or less where it was no system call that entered the kernel.
    const CALL: u32 = 15 * 8;
    /// `di si dx r10 r8`
    const ARGUMENTS: [u32; super::ARGUMENTS] = [14 * 8, 13 * 8, 12 * 8, 7 * 8, 9 * 8];
    /// The privilege level in `cs`; the kernel's is 0.
    const PRIVILEGE: u64 = 3;
    /// `__USER32_CS`: the code segment of 32-bit programs.
    const USER32_CS: u64 = 0x23;

    pub(super) fn is_compat(base: u64) -> bool {
        crate::kernel::read_word(base, (CS * 8) as u32) & 0xffff == USER32_CS
    }

    #[inline(always)]
    pub(super) fn call(base: u64) -> i32 {
        crate::kernel::read_word(base, CALL) as i32
    }

    pub(super) const fn argument(index: usize) -> u32 {
        ARGUMENTS[index]
    }

    /// Whether the interrupted code, whose registers the program was given, was the kernel's.
    pub(super) fn in_kernel(regs: &super::ContextRegisters) -> bool {
        matches!(regs.cs & PRIVILEGE, 0)
    }
}

/// Layout of the kernel's `struct user_pt_regs`.
#[cfg(bpf_target_arch = "aarch64")]
mod layout {
    /// `x0..x30 sp pc pstate`
    pub(super) const WORDS: usize = 34;
    pub(super) const SP: u32 = 31 * 8;
    pub(super) const IP: u32 = 32 * 8;
    /// `x0`
    pub(super) const RETURNED: u32 = 0;
    /// Bytes that a return takes off the stack.
    pub(super) const RETURN_ADDRESS: u64 = 0;
    pub(super) const PROBE_SLOT: u64 = 4;

    /// The trampoline is a breakpoint.
    #[inline(always)]
    pub(super) fn on_stack_behind_call(_offset: u64) -> Option<u64> {
        None
    }
    const PSTATE: usize = 33;
    /// `syscallno` of the kernel's own `struct pt_regs`, behind `user_regs` and `orig_x0`: -1 where it was no system call that
    /// entered the kernel.
    const CALL: u32 = 35 * 8;
    /// `PSR_MODE32_BIT`
    const MODE32: u64 = 0x10;
    /// `PSR_MODE_MASK`; 0 is `EL0t`, user code.
    const MODE: u64 = 0xf;

    pub(super) fn is_compat(base: u64) -> bool {
        crate::kernel::read_word(base, (PSTATE * 8) as u32) & MODE32 != 0
    }

    #[inline(always)]
    pub(super) fn call(base: u64) -> i32 {
        crate::kernel::read_word(base, CALL) as i32
    }

    /// `x0` and so on.
    pub(super) const fn argument(index: usize) -> u32 {
        assert!(index < super::ARGUMENTS);
        (index * 8) as u32
    }

    pub(super) fn in_kernel(regs: &super::ContextRegisters) -> bool {
        regs.pstate & MODE != 0
    }
}

#[cfg(bpf_target_arch = "x86_64")]
type ContextRegisters = aya_ebpf::bindings::pt_regs;
#[cfg(bpf_target_arch = "aarch64")]
type ContextRegisters = aya_ebpf::bindings::user_pt_regs;

/// Bytes that a return takes off the stack in 64-bit code.
pub(crate) const RETURN_ADDRESS: u64 = layout::RETURN_ADDRESS;

/// Bytes from one piece of code in `[uprobes]` to the next: `UPROBE_XOL_SLOT_BYTES`.
pub(crate) const PROBE_SLOT: u64 = layout::PROBE_SLOT;

/// How far above the stack pointer the return address lies for the rest of the trampoline's code, by how far that is behind the
/// trampoline's beginning; `None` before, while the kernel has the address.
#[inline(always)]
pub(crate) fn on_stack_behind_call(offset: u64) -> Option<u64> {
    layout::on_stack_behind_call(offset)
}

/// Whether the interrupted code was the kernel's. `context` is `struct bpf_perf_event_data`, which starts
/// with the registers.
#[inline(always)]
pub(crate) fn in_kernel(context: *mut core::ffi::c_void) -> bool {
    // SAFETY: a perf_event program's context starts with the interrupted registers.
    layout::in_kernel(unsafe { &*context.cast::<ContextRegisters>() })
}

/// Where a thread is in its code, and on its stack.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) ip: u64,
    pub(crate) sp: u64,
}

/// Where the current thread's user registers lie in kernel memory.
#[derive(Clone, Copy)]
pub(crate) struct UserRegisters {
    base: u64,
}

impl UserRegisters {
    /// The registers with which the current thread entered the kernel.
    #[inline(always)]
    pub(crate) fn of_current(task: u64) -> Self {
        let base = if config(|c: &Config| &raw const c.has_task_pt_regs) != 0 {
            // SAFETY: both helpers exist (Linux 5.15), and the task is the current one.
            unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) as u64 }
        } else {
            let stack = read_word(task, config(|c: &Config| &raw const c.task_stack));
            stack.wrapping_add(u64::from(config(|c: &Config| &raw const c.stack_registers)))
        };
        Self { base }
    }

    /// Those at `base`, as the tracepoints of system calls give them.
    #[inline(always)]
    pub(crate) fn at(base: u64) -> Self {
        Self { base }
    }

    /// The stack pointer; 0 for a thread that never was in user code.
    #[inline(always)]
    pub(crate) fn sp(self) -> u64 {
        read_word(self.base, layout::SP)
    }

    /// The instruction pointer; 0 for a thread that never was in user code.
    #[inline(always)]
    pub(crate) fn ip(self) -> u64 {
        read_word(self.base, layout::IP)
    }

    /// What a function that has just returned, returned.
    #[inline(always)]
    pub(crate) fn returned(self) -> u64 {
        read_word(self.base, layout::RETURNED)
    }

    /// Whether the thread runs 32-bit code.
    #[inline(always)]
    pub(crate) fn is_compat(self) -> bool {
        layout::is_compat(self.base)
    }

    /// The number of the system call that the thread is in; negative where it is in none.
    #[inline(always)]
    pub(crate) fn call(self) -> i32 {
        layout::call(self.base)
    }

    /// An argument of that by its position, less than [`ARGUMENTS`].
    #[inline(always)]
    pub(crate) fn argument(self, index: usize) -> u64 {
        read_word(self.base, layout::argument(index))
    }

    /// Copies all registers to a record, but for two that are given.
    ///
    /// # Safety
    /// `registers` may be written to.
    #[inline(always)]
    pub(crate) unsafe fn copy_to(self, registers: *mut [u64; SampleHeader::REGISTERS], place: Place) {
        const { assert!(layout::WORDS <= SampleHeader::REGISTERS) };
        // SAFETY: the destination has room for `REGISTERS` words; the helper checks the source and zeroes
        // the destination where it cannot be read.
        unsafe {
            bpf_probe_read_kernel(registers.cast(), (layout::WORDS * 8) as u32, self.base as *const _);
            (*registers)[layout::IP as usize / 8] = place.ip;
            (*registers)[layout::SP as usize / 8] = place.sp;
        }
    }
}
