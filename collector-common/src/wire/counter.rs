//! The counters that the eBPF programs keep per CPU.

/// Index into the per-CPU array of `u64` counters. Every invocation of the sampling program ends in exactly
/// one of the first five; the others describe samples that were submitted.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// The idle task, pid 0: not a sample.
    FilteredIdle = 0,
    /// A thread outside of the chosen processes, cgroup or name.
    FilteredTarget = 1,
    /// The sample was written to a ring.
    Submitted = 2,
    /// The ring had no room: a lost sample.
    RingFull = 3,
    /// No ring exists for the CPU, as when it came online after the start: a lost sample.
    NoRing = 4,
    /// Pieces of a user stack that could not be read.
    StackFault = 5,
    /// `bpf_find_vma` was called.
    FindVma = 6,
    /// `bpf_find_vma` could not take the lock, so the end of the stack stayed unknown.
    FindVmaBusy = 7,
    /// Samples without user registers although the task has user memory.
    NoRegisters = 8,
    /// Bytes of user and kernel stack copied.
    BytesCopied = 9,
    /// A new process could not be added to the followed ones: the map is full.
    FollowFailed = 10,
}

impl Counter {
    /// Number of counters.
    pub const COUNT: u32 = 11;
    /// The ends of an invocation that interrupted something else than the idle task.
    pub const BUSY_RUNS: [Self; 4] = [Self::FilteredTarget, Self::Submitted, Self::RingFull, Self::NoRing];
    /// All of them, in index order.
    pub const ALL: [Self; Self::COUNT as usize] = [
        Self::FilteredIdle,
        Self::FilteredTarget,
        Self::Submitted,
        Self::RingFull,
        Self::NoRing,
        Self::StackFault,
        Self::FindVma,
        Self::FindVmaBusy,
        Self::NoRegisters,
        Self::BytesCopied,
        Self::FollowFailed,
    ];
}
