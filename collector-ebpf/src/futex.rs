//! Waits for locks of user code: which system call a thread is in that stops running, or that wakes another one. Numbers are
//! those of 64-bit programs; 32-bit ones have others, and are left out.

use aya_ebpf::helpers::generated::bpf_probe_read_user;
use collector_common::wire::LockWait;

use crate::{kernel::current_task, registers::UserRegisters};

/// Numbers of system calls that differ, from `asm/unistd_64.h`.
#[cfg(bpf_target_arch = "x86_64")]
mod numbers {
    pub(super) const FUTEX: i32 = 202;
    pub(super) const EXIT: i32 = 60;
    pub(super) const EXIT_GROUP: i32 = 231;
}

/// Numbers of system calls that differ, from `asm-generic/unistd.h`.
#[cfg(bpf_target_arch = "aarch64")]
mod numbers {
    pub(super) const FUTEX: i32 = 98;
    pub(super) const EXIT: i32 = 93;
    pub(super) const EXIT_GROUP: i32 = 94;
}

const FUTEX_WAITV: i32 = 449;
const FUTEX_WAKE: i32 = 454;
const FUTEX_WAIT: i32 = 455;
const FUTEX_REQUEUE: i32 = 456;

/// `FUTEX_CMD_MASK` of `include/uapi/linux/futex.h`: without `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`.
const COMMAND: u64 = !(128 | 256) & 0xffff_ffff;

/// `FUTEX_WAIT`, `LOCK_PI`, `WAIT_BITSET`, `WAIT_REQUEUE_PI`, `LOCK_PI2`.
const WAITS: u32 = 1 | 1 << 6 | 1 << 9 | 1 << 11 | 1 << 13;

/// `FUTEX_WAKE`, `REQUEUE`, `CMP_REQUEUE`, `WAKE_OP`, `UNLOCK_PI`, `WAKE_BITSET`, `CMP_REQUEUE_PI`.
const WAKES: u32 = 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 10 | 1 << 12;

/// Whether a command of `futex` is in a set of them.
#[inline(always)]
fn is_in(set: u32, registers: UserRegisters) -> bool {
    let command = registers.argument(1) & COMMAND;
    command < 32 && set & (1 << command) != 0
}

/// The lock that the current thread waits for: [`LockWait`] bits and its address, or `None` where it does not.
#[inline(always)]
pub(crate) fn wait() -> Option<(u32, u64)> {
    let registers = UserRegisters::of_current(current_task());
    let (lock, limit) = match registers.call() {
        numbers::FUTEX if is_in(WAITS, registers) && !registers.is_compat() => {
            (registers.argument(0), registers.argument(3))
        }
        FUTEX_WAITV => (first_of(registers.argument(0)), registers.argument(3)),
        FUTEX_WAIT => (registers.argument(0), registers.argument(4)),
        _ => return None,
    };
    let timed = if limit == 0 { 0 } else { LockWait::TIMED };
    Some((LockWait::FUTEX | timed, lock))
}

/// `futex_waitv::uaddr` of the first of several; 0 where it cannot be read.
#[inline(always)]
fn first_of(waiters: u64) -> u64 {
    const UADDR: u64 = 8;
    let mut address = 0_u64;
    // SAFETY: the destination is 8 bytes; the helper checks the source, and zeroes the destination where it cannot be read.
    unsafe {
        bpf_probe_read_user((&raw mut address).cast(), 8, (waiters.wrapping_add(UADDR)) as *const _);
    }
    address
}

/// Whether the current thread releases waiters: by a wake, by the unlock of a lock that has an owner, or by its end.
#[inline(always)]
pub(crate) fn releases() -> bool {
    let registers = UserRegisters::of_current(current_task());
    match registers.call() {
        numbers::FUTEX => is_in(WAKES, registers),
        FUTEX_WAKE | FUTEX_REQUEUE | numbers::EXIT | numbers::EXIT_GROUP => true,
        _ => false,
    }
}
