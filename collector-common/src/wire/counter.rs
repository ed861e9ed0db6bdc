//! The counters that the eBPF programs keep per CPU.

/// Index into the per-CPU array of `u64` counters. Every invocation of the sampling program ends in exactly
/// one of the first five; those up to [`Self::BytesCopied`] describe stacks that were submitted, the last ones are of the
/// programs at the scheduler's tracepoints.
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
    /// A thread went off its CPU, or ended, and its stacks were written to a ring.
    WentOff = 11,
    /// The same, but the ring had no room, or there was none: what would be known of that time is lost.
    WentOffLost = 12,
    /// A thread got a CPU back, and that was written to a ring.
    CameBack = 13,
    /// The same, but the ring had no room, or there was none: what would be known of its time off is lost.
    CameBackLost = 14,
    /// A time off the CPU whose stacks were written was shorter than what is recorded.
    TooShort = 15,
    /// A thread could not be kept account of: the map is full.
    ThreadsFull = 16,
    /// A wait for a CPU could not be counted: the map of names is full.
    NamesFull = 17,
    /// A start, execution or end of a process could not be told: the ring had no room.
    LivesLost = 18,
    /// A slow system call and its stacks were written to a ring.
    CallsRecorded = 19,
    /// The same, but the ring had no room, or there was none.
    CallsLost = 20,
    /// A system call returned that was made before the recording, or that there was no room to remember.
    CallsUnknown = 21,
    /// That a request to a block device is complete was written to a ring.
    BlockTold = 22,
    /// A request to a block device could not be told of: a ring had no room, or there was none.
    BlockLost = 23,
    /// A request to a block device could not be kept account of: a map is full.
    BlockFull = 24,
    /// A block of memory and the stack of who asked for it were written to a ring.
    AllocationsRecorded = 25,
    /// The same, but the ring had no room, or there was none.
    AllocationsLost = 26,
    /// That a recorded block of memory was freed could not be told: a ring had no room, or there was none.
    FreedLost = 27,
    /// A recorded block of memory could not be kept account of until it is freed: the map is full.
    BlocksFull = 28,
    /// A block of memory could not be counted: the map of processes is full.
    AllocatedFull = 29,
    /// A process was given memory by the kernel, and the stack was written to a ring.
    MappedRecorded = 30,
    /// The same, but the ring had no room, or there was none.
    MappedLost = 31,
    /// A call that transfers data was written to a ring, with its stack.
    TransfersRecorded = 32,
    /// The same, but the ring had no room, or there was none.
    TransfersLost = 33,
    /// A call that transfers data returned that was made before the recording, or that there was no room to remember.
    TransfersUnknown = 34,
    /// Something of a TCP connection was not counted: a map is full.
    PeersFull = 35,
    /// A wait for a lock of the kernel, and its stacks, were written to a ring.
    KernelLockTold = 36,
    /// The same, but the ring had no room, or there was none.
    KernelLockLost = 37,
    /// A wait for a lock of the kernel could not be kept account of: the map is full.
    KernelLockFull = 38,
    /// A wait for a lock of the kernel began while the programs for those ran on the same CPU, and was left out.
    KernelLockNested = 39,
    /// A wait for a lock of the kernel that was kept account of, and of which the end was not met.
    KernelLockOpen = 40,
    /// A thread released a lock that another one waits for, and its stacks were written to a ring.
    OwnerRecorded = 41,
    /// The same, but the ring had no room, or there was none, for it or for the end of the wait.
    OwnerLost = 42,
    /// A thread went off its CPU that had not come back to it, as far as the kernel told: when it came back is lost.
    BackMissed = 43,
    /// A call of a function of the kernel, or its return, was written to a ring, with its stacks.
    FunctionsRecorded = 44,
    /// The same, but the ring had no room, or there was none.
    FunctionsLost = 45,
    /// Runs of the programs at page faults, whoever's faults those are.
    FaultsMet = 46,
    /// A page fault was written to a ring, with its stacks.
    FaultsRecorded = 47,
    /// The same, but the ring had no room, or there was none.
    FaultsLost = 48,
    /// A page fault could not be counted: the map of names is full.
    FaultNamesFull = 49,
    /// A tracepoint was passed, and that was written to a ring.
    TracepointsRecorded = 50,
    /// The same, but the ring had no room, or there was none.
    TracepointsLost = 51,
}

impl Counter {
    /// Number of counters.
    pub const COUNT: u32 = 52;
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
        Self::WentOff,
        Self::WentOffLost,
        Self::CameBack,
        Self::CameBackLost,
        Self::TooShort,
        Self::ThreadsFull,
        Self::NamesFull,
        Self::LivesLost,
        Self::CallsRecorded,
        Self::CallsLost,
        Self::CallsUnknown,
        Self::BlockTold,
        Self::BlockLost,
        Self::BlockFull,
        Self::AllocationsRecorded,
        Self::AllocationsLost,
        Self::FreedLost,
        Self::BlocksFull,
        Self::AllocatedFull,
        Self::MappedRecorded,
        Self::MappedLost,
        Self::TransfersRecorded,
        Self::TransfersLost,
        Self::TransfersUnknown,
        Self::PeersFull,
        Self::KernelLockTold,
        Self::KernelLockLost,
        Self::KernelLockFull,
        Self::KernelLockNested,
        Self::KernelLockOpen,
        Self::OwnerRecorded,
        Self::OwnerLost,
        Self::BackMissed,
        Self::FunctionsRecorded,
        Self::FunctionsLost,
        Self::FaultsMet,
        Self::FaultsRecorded,
        Self::FaultsLost,
        Self::FaultNamesFull,
        Self::TracepointsRecorded,
        Self::TracepointsLost,
    ];
}
