//! One sample as it lies in a ring: [`SampleHeader`], `MAX_KERNEL_FRAMES` kernel addresses (leaf first, the
//! first `kernel_bytes` valid), then `stack_bytes` bytes of user stack, lowest address first. With [`SampleFlags::RETURNS`] a
//! [`super::TrappedReturns`] is the end of the record; with [`SampleFlags::OUTER_LINES`] a [`super::OuterLines`] is before the room for that.

use bytemuck::{Pod, Zeroable};

use super::{COMM_LEN, MAX_KERNEL_FRAMES};

/// What a sample's header says beyond numbers. Bits of [`SampleHeader::flags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleFlags(pub u32);

impl SampleFlags {
    /// `registers` holds the thread's user registers.
    pub const USER_REGISTERS: u32 = 1;
    /// The CPU was in the kernel when the sample was taken.
    pub const IN_KERNEL: u32 = 1 << 1;
    /// The thread runs 32-bit code.
    pub const COMPAT: u32 = 1 << 2;
    /// The end of the stack could not be found out: the copy ends at the first absent page.
    pub const BOUND_UNKNOWN: u32 = 1 << 3;
    /// The stack was larger than the largest copy.
    pub const STACK_CUT: u32 = 1 << 4;
    /// [`SampleHeader::stack_end`] is the end of a mapping, as it was when the thread's was last asked for: the stack may
    /// go on behind it.
    pub const MAPPING_END: u32 = 1 << 5;
    /// Not of the sampling clock: the thread gave up its CPU, or lost it. The stacks are those that it waits with.
    pub const OFF_CPU: u32 = 1 << 6;
    /// Not of the sampling clock: the thread got a CPU back. There are no registers and no stacks; `data` is a
    /// [`super::OffCpu`].
    pub const BACK: u32 = 1 << 7;
    /// With [`Self::BACK`]: it is off still, and the recording ended at `time`. No program writes this.
    pub const STILL_OFF: u32 = 1 << 8;
    /// Not of the sampling clock: the thread ends. There is no user stack any more.
    pub const LAST: u32 = 1 << 9;
    /// Not of the sampling clock: the thread has made a slow system call; `data` is a [`super::Call`].
    pub const CALL: u32 = 1 << 16;
    /// Not of the sampling clock: a request to a block device was issued, or with [`Self::BACK`] is complete. `data` is a
    /// [`super::BlockRequest`].
    pub const BLOCK: u32 = 1 << 10;
    /// Not of the sampling clock: a block of memory was allocated, or with [`Self::BACK`] freed. `data` is an
    /// [`super::Allocation`].
    pub const ALLOCATION: u32 = 1 << 11;
    /// Not of the sampling clock: a process was given memory by the kernel. `data` is an [`super::Allocation`].
    pub const MAPPED: u32 = 1 << 20;
    /// Not of the sampling clock: the thread has made a call that transfers data. A [`super::Transfer`] lies where others have
    /// their kernel stack.
    pub const TRANSFER: u32 = 1 << 21;
    /// With [`Self::TRANSFER`]: it is of a socket.
    pub const SOCKET: u32 = 1 << 22;
    /// Not of the sampling clock: the thread has waited for a lock of the kernel; `data` is a [`super::KernelLock`].
    pub const KERNEL_LOCK: u32 = 1 << 24;
    /// Not of the sampling clock: the thread releases a lock of user code that another one waits for. `data` is a
    /// [`super::LockOwner`].
    pub const LOCK_OWNER: u32 = 1 << 23;
    /// Not of the sampling clock: a function of the kernel was called, or has returned; `data` is a [`super::FunctionCall`].
    pub const FUNCTION: u32 = 1 << 28;
    /// Not of the sampling clock: the thread has met a page that is absent; `data` is a [`super::Fault`].
    pub const FAULT: u32 = 1 << 29;
    /// Not of the sampling clock: a tracepoint was passed; `data` is a [`super::Tracepoint`].
    pub const TRACEPOINT: u32 = 1 << 30;
    /// Returns of calls on the user stack are trapped: which, the record's end tells.
    pub const RETURNS: u32 = 1 << 25;
    /// Lines of the outer frames were copied, too: which, the record's end tells.
    pub const OUTER_LINES: u32 = 1 << 12;
    /// `registers` are those of aarch64, whatever machine this is. No program writes this.
    pub const AARCH64: u32 = 1 << 26;
    /// There is a user stack, but its registers are of an architecture whose stacks are not walked, or those that a walk
    /// begins with are missing, or its addresses never came. No program writes this.
    pub const NOT_WALKED: u32 = 1 << 27;

    /// Whether all bits of `mask` are set.
    pub const fn has(self, mask: u32) -> bool {
        self.0 & mask == mask
    }
}

/// `struct user_pt_regs` of aarch64, the larger one, is 34 words.
const REGISTER_WORDS: usize = 34;

/// Words of data that a record has room for.
const DATA_WORDS: usize = 10;

/// Head of a sample. A record of [`SampleFlags::BACK`] is nothing but this.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct SampleHeader {
    /// [`super::VERSION`].
    pub version: u16,
    /// Bytes of kernel stack, a multiple of 8; 0 when the CPU was in user code.
    pub kernel_bytes: u16,
    /// [`SampleFlags`].
    pub flags: u32,
    /// `bpf_ktime_get_ns`: `CLOCK_MONOTONIC` in nanoseconds.
    pub time: u64,
    /// Thread group id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Id of the thread's cgroup in the v2 hierarchy; 0 where the kernel has none.
    pub cgroup: u64,
    /// The CPU the sample was taken on.
    pub cpu: u32,
    /// Bytes of user stack that follow, from the stack pointer upwards.
    pub stack_bytes: u32,
    /// Bit i: piece i of the user stack was absent and its bytes are meaningless. Piece 0 goes from the stack
    /// pointer to the end of its page, each further one is a page.
    pub absent: u32,
    /// Zero.
    pub reserved: u32,
    /// Of the sampling clock and of [`SampleFlags::LAST`], where account of that is kept: nanoseconds that the thread ran for
    /// since it was sampled last. Else 0.
    pub ran: u64,
    /// First address after the stack; 0 where it is not known.
    pub stack_end: u64,
    /// The thread's name, NUL-padded.
    pub comm: [u8; COMM_LEN],
    /// [`super::KernelLock`] in records of [`SampleFlags::KERNEL_LOCK`], [`super::LockOwner`] in those of
    /// [`SampleFlags::LOCK_OWNER`], [`super::FunctionCall`] in those of [`SampleFlags::FUNCTION`], [`super::Fault`] in those of
    /// [`SampleFlags::FAULT`], [`super::Tracepoint`] in those of [`SampleFlags::TRACEPOINT`],
    /// [`super::Allocation`] in those of [`SampleFlags::ALLOCATION`] and [`SampleFlags::MAPPED`], [`super::BlockRequest`] in those of [`SampleFlags::BLOCK`], [`super::Call`] in those of [`SampleFlags::CALL`],
    /// [`super::OffCpu`] in others of [`SampleFlags::OFF_CPU`], [`SampleFlags::BACK`] and [`SampleFlags::LAST`]; else not
    /// written.
    pub data: [u64; DATA_WORDS],
    /// `struct pt_regs` of the user side, in the kernel's order: 21 words on `x86_64`, 34 on aarch64
    /// (`struct user_pt_regs`); the rest is zero.
    pub registers: [u64; REGISTER_WORDS],
}

impl SampleHeader {
    /// Room for the registers of every supported architecture.
    pub const REGISTERS: usize = REGISTER_WORDS;
    /// Room for data.
    pub const DATA: usize = DATA_WORDS;
    /// Bytes before the kernel stack.
    pub const SIZE: usize = size_of::<Self>();
    /// Bytes of room for the kernel stack.
    pub const KERNEL_STACK_SIZE: usize = MAX_KERNEL_FRAMES * 8;
    /// Where the user stack begins in a record.
    pub const STACK_OFFSET: usize = Self::SIZE + Self::KERNEL_STACK_SIZE;

    /// The flags as their type.
    pub const fn flags(&self) -> SampleFlags {
        SampleFlags(self.flags)
    }
}

const _: () = {
    assert!(core::mem::offset_of!(SampleHeader, version) == 0);
    assert!(core::mem::offset_of!(SampleHeader, kernel_bytes) == 2);
    assert!(core::mem::offset_of!(SampleHeader, flags) == 4);
    assert!(core::mem::offset_of!(SampleHeader, time) == 8);
    assert!(core::mem::offset_of!(SampleHeader, pid) == 16);
    assert!(core::mem::offset_of!(SampleHeader, tid) == 20);
    assert!(core::mem::offset_of!(SampleHeader, cgroup) == 24);
    assert!(core::mem::offset_of!(SampleHeader, cpu) == 32);
    assert!(core::mem::offset_of!(SampleHeader, stack_bytes) == 36);
    assert!(core::mem::offset_of!(SampleHeader, absent) == 40);
    assert!(core::mem::offset_of!(SampleHeader, ran) == 48);
    assert!(core::mem::offset_of!(SampleHeader, stack_end) == 56);
    assert!(core::mem::offset_of!(SampleHeader, comm) == 64);
    assert!(core::mem::offset_of!(SampleHeader, data) == 80);
    assert!(core::mem::offset_of!(SampleHeader, registers) == 160);
    assert!(SampleHeader::SIZE == 160 + 34 * 8);
    assert!(SampleHeader::STACK_OFFSET.is_multiple_of(8));
};
