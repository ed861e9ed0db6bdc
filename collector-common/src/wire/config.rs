//! What user space tells the eBPF programs before they are loaded: one read-only global, so that the verifier
//! drops the branches a recording does not take.

use bytemuck::{Pod, Zeroable};

use super::COMM_LEN;

/// Which threads are sampled. Bits of [`Config::targets`]; none set is the whole machine, several must all
/// hold.
pub struct Target;

impl Target {
    /// Processes in the map of followed processes; their children are added as they are forked.
    pub const PROCESSES: u32 = 1;
    /// Threads below the cgroup in slot 0 of the cgroup array.
    pub const CGROUP: u32 = 1 << 1;
    /// Threads whose name equals [`Config::comm`].
    pub const COMM: u32 = 1 << 2;
}

/// What is kept account of for each thread. Bits of [`Config::times`].
pub struct Times;

impl Times {
    /// Time that threads are blocked for is recorded.
    pub const BLOCKED: u32 = 1;
    /// Time that threads wait for a CPU that was taken from them is recorded.
    pub const PREEMPTED: u32 = 1 << 1;
    /// Samples of the clock tell for how long the thread ran.
    pub const RAN: u32 = 1 << 2;
    /// Waits for a CPU are counted by name and length.
    pub const QUEUED: u32 = 1 << 3;
    /// Time that threads wait for locks of user code is recorded.
    pub const LOCKS: u32 = 1 << 4;
}

/// In the map of followed processes, by pid, what tells a process from others that have the pid after it: the address of its
/// `signal_struct`, which it has from its fork to its end, whatever it executes. This stands for the process that has the pid
/// when user space names it.
pub const NAMED_PROCESS: u64 = 0;

/// Settings of a recording, and offsets into kernel structures read from the kernel's BTF.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Config {
    /// [`Target`] bits.
    pub targets: u32,
    /// Largest copy of a user stack in pages, 1 to [`super::MAX_STACK_PAGES`].
    pub max_stack_pages: u32,
    /// Wake the reader when this many bytes wait in a ring: a quarter of it, by which programs know how full it is.
    pub high_water: u64,
    /// The sampling clock's period in nanoseconds.
    pub clock_period: u64,
    /// Time off the CPU is sampled so that there is one stack for about this many nanoseconds of it; not 0.
    pub off_cpu_period: u64,
    /// Times off the CPU that are shorter, in nanoseconds, are left out, but for waits for locks.
    pub shortest_off_cpu: u64,
    /// Waits for locks, of user code and of the kernel, that are shorter, in nanoseconds, are left out. A wait for a lock of user
    /// code that is not shorter than [`Self::shortest_off_cpu`] is none of those.
    pub shortest_lock_wait: u64,
    /// Of memory that allocators give there is one stack for about this many bytes; at most 2^40.
    pub allocation_period: u64,
    /// The same of memory that the kernel gives.
    pub mapped_period: u64,
    /// [`Times`] bits.
    pub times: u32,
    /// Offset of `task_struct::pid`, the thread's id.
    pub task_pid: u32,
    /// Offset of `task_struct::comm`.
    pub task_comm: u32,
    /// Offset of `task_struct::__state` (before Linux 5.14 `state`); 0 where the tracepoint `sched_switch` tells it.
    pub task_state: u32,
    /// Offset of `task_struct::mm`.
    pub task_mm: u32,
    /// Offset of `task_struct::tgid`.
    pub task_tgid: u32,
    /// Offset of `task_struct::group_leader`.
    pub task_group_leader: u32,
    /// Offset of `task_struct::signal`.
    pub task_signal: u32,
    /// Offset of `task_struct::stack`; used where `bpf_task_pt_regs` is missing (before Linux 5.15).
    pub task_stack: u32,
    /// Offset of `task_struct::thread.fsbase` (`x86_64`), 0 where unknown.
    pub task_thread_pointer: u32,
    /// Offset of `mm_struct::start_stack`.
    pub mm_start_stack: u32,
    /// Where the user registers lie above `task_struct::stack`: `THREAD_SIZE - sizeof(struct pt_regs)`.
    pub stack_registers: u32,
    /// 1 where the kernel has `bpf_task_pt_regs` and `bpf_get_current_task_btf`.
    pub has_task_pt_regs: u32,
    /// Offset of `vm_area_struct::vm_end`.
    pub vma_end: u32,
    /// Offset of `vm_area_struct::vm_start`.
    pub vma_start: u32,
    /// A process that is followed from when it is named after the program that it executes; 0 for none.
    pub command: u32,
    /// Thread name for [`Target::COMM`], NUL-padded.
    pub comm: [u8; COMM_LEN],
    /// Where requests to block devices are recorded, else zero.
    pub block: BlockOffsets,
    /// Zero where the kernel has no uprobes.
    pub returns: ReturnOffsets,
    /// Zero where it is not known.
    pub preempt_count: PreemptCountOffsets,
}

/// Offsets into the kernel's structures of a request to a block device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct BlockOffsets {
    /// Of `request::q`.
    pub queue: u32,
    /// Of `request::cmd_flags`.
    pub flags: u32,
    /// Of `request::__data_len`.
    pub bytes: u32,
    /// Of `request_queue::disk`. Minimum kernel: 5.15.
    pub disk: u32,
    /// Of `gendisk::major`.
    pub major: u32,
    /// Of `gendisk::first_minor`.
    pub minor: u32,
}

/// Offsets into the kernel's structures of calls whose returns it traps.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct ReturnOffsets {
    /// Of `task_struct::utask`.
    pub probed: u32,
    /// Of `uprobe_task::return_instances`.
    pub innermost: u32,
    /// Of `uprobe_task::vaddr`: where the instruction lies that is executed elsewhere.
    pub instruction: u32,
    /// Of `uprobe_task::xol_vaddr`: where it is executed.
    pub executed_at: u32,
    /// Of `return_instance::stack`.
    pub stack: u32,
    /// Of `return_instance::orig_ret_vaddr`.
    pub address: u32,
    /// Of `return_instance::next`.
    pub next: u32,
    /// Of `mm_struct::uprobes_state.xol_area`.
    pub area: u32,
    /// Of `xol_area::vaddr`.
    pub trampoline: u32,
    /// Zero.
    pub reserved: u32,
}

/// Where the kernel counts what a CPU is in, interrupts among that: in the `task_struct` of the current thread, or in a variable of
/// each CPU, which is as far from the CPU's `struct rq` on each of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct PreemptCountOffsets {
    /// Of the count, from the `task_struct`, or from the `struct rq`.
    pub count: i32,
    /// Of `task_struct::se.cfs_rq`; 0 where the count is in the `task_struct`.
    pub task_queue: u32,
    /// Of `cfs_rq::rq`.
    pub queue_cpu: u32,
    /// Zero.
    pub reserved: u32,
}

const _: () = assert!(size_of::<Config>() == 224);
