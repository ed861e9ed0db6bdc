//! Waits for locks of the kernel: what the programs keep of each one while it lasts, tell of some, and count of all.

use bytemuck::{Pod, Zeroable};

use super::{COMM_LEN, SampleHeader};

/// What kind of lock is waited for, and what for: `LCB_F_*` of `include/trace/events/lock.h`, as the tracepoint
/// `contention_begin` has them. None set: a semaphore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockFlags(pub u32);

impl LockFlags {
    /// The CPU spins.
    pub const SPIN: u32 = 1;
    /// To read.
    pub const READ: u32 = 1 << 1;
    /// To write.
    pub const WRITE: u32 = 1 << 2;
    /// With priority inheritance.
    pub const RT: u32 = 1 << 3;
    /// With a count for each CPU.
    pub const PERCPU: u32 = 1 << 4;
    /// A mutex. With [`Self::SPIN`], as long as it is spun for it; then the thread may sleep.
    pub const MUTEX: u32 = 1 << 5;
    /// All of them.
    pub const ALL: u32 = (1 << 6) - 1;

    /// Whether the thread keeps its CPU for the whole wait.
    pub const fn keeps_cpu(self) -> bool {
        self.0 & (Self::SPIN | Self::MUTEX) == Self::SPIN
    }

    /// Its name, as `perf lock contention` has it.
    pub fn name(self) -> &'static str {
        let how = |read, write, none| match self.0 & (Self::READ | Self::WRITE) {
            Self::READ => read,
            Self::WRITE => write,
            _ => none,
        };
        if self.0 & Self::MUTEX != 0 {
            "mutex"
        } else if self.0 & Self::PERCPU != 0 {
            how("pcpu-sem:R", "pcpu-sem:W", "pcpu-sem")
        } else if self.0 & Self::RT != 0 {
            how("rwlock-rt:R", "rwlock-rt:W", "rt-mutex")
        } else if self.0 & Self::SPIN != 0 {
            how("rwlock:R", "rwlock:W", "spinlock")
        } else {
            how("rwsem:R", "rwsem:W", "semaphore")
        }
    }
}

/// A wait, and data of records of [`super::SampleFlags::KERNEL_LOCK`], which are made when it is over.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct KernelLock {
    /// When it began, `CLOCK_MONOTONIC` in nanoseconds.
    pub since: u64,
    /// How long it took in nanoseconds; 0 while it lasts.
    pub took: u64,
    /// Address of the lock.
    pub lock: u64,
    /// [`LockFlags`] as of the beginning.
    pub flags: u32,
    /// Process of the thread that had the lock at the beginning; 0 where the lock does not tell.
    pub owner_pid: u32,
    /// That thread.
    pub owner_tid: u32,
    /// Zero.
    pub reserved: u32,
    /// Its name, NUL-padded.
    pub owner_comm: [u8; COMM_LEN],
    /// Zero.
    pub more: [u64; 3],
}

impl KernelLock {
    /// No wait.
    pub const NONE: Self = Self {
        since: 0,
        took: 0,
        lock: 0,
        flags: 0,
        owner_pid: 0,
        owner_tid: 0,
        reserved: 0,
        owner_comm: [0; COMM_LEN],
        more: [0; 3],
    };

    /// As a record has it.
    pub fn words(self) -> [u64; SampleHeader::DATA] {
        bytemuck::cast(self)
    }
}

const _: () = assert!(size_of::<KernelLock>() == SampleHeader::DATA * 8);

/// A wait for which a thread may lose its CPU, in the map of those that last. A thread waits for one lock while it waits for
/// another one, as when what has to be done before it sleeps needs a lock.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct KernelLockKey {
    /// Address of the lock.
    pub lock: u64,
    /// The thread.
    pub tid: u32,
    /// Zero.
    pub reserved: u32,
}

/// Buckets of [`KernelLockCounts`]: waits of less than [`FIRST_LOCK_NS`] nanoseconds, of less than twice, four times and so on
/// of it, and in the last one all others.
pub const LOCK_BUCKETS: usize = 32;

/// Where the first of [`LOCK_BUCKETS`] ends.
pub const FIRST_LOCK_NS: u64 = 128;

/// What was counted of waits with the same [`LockFlags`], on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct KernelLockCounts {
    /// Waits by how long they took.
    pub buckets: [u64; LOCK_BUCKETS],
    /// Nanoseconds in all.
    pub ns: u64,
}

/// Offsets into the kernel's locks of who has them; [`Self::UNKNOWN`] where they do not tell.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct LockOffsets {
    /// Of `mutex::owner`.
    pub mutex_owner: u32,
    /// Of `rw_semaphore::owner`.
    pub rwsem_owner: u32,
    /// Of `rt_mutex_base::owner`.
    pub rt_mutex_owner: u32,
    /// Zero.
    pub reserved: u32,
}

impl LockOffsets {
    /// There is no such member.
    pub const UNKNOWN: u32 = u32::MAX;
    /// No lock tells.
    pub const NONE: Self = Self {
        mutex_owner: Self::UNKNOWN,
        rwsem_owner: Self::UNKNOWN,
        rt_mutex_owner: Self::UNKNOWN,
        reserved: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_flags() {
        let name = |flags| LockFlags(flags).name();
        assert_eq!(name(LockFlags::SPIN), "spinlock");
        assert_eq!(name(LockFlags::SPIN | LockFlags::WRITE), "rwlock:W");
        assert_eq!(name(LockFlags::MUTEX), "mutex");
        assert_eq!(name(LockFlags::MUTEX | LockFlags::SPIN), "mutex");
        assert_eq!(name(LockFlags::READ), "rwsem:R");
        assert_eq!(name(LockFlags::PERCPU | LockFlags::READ), "pcpu-sem:R");
        assert_eq!(name(LockFlags::RT), "rt-mutex");
        assert_eq!(name(LockFlags::RT | LockFlags::READ), "rwlock-rt:R");
        assert_eq!(name(0), "semaphore");
    }

    #[test]
    fn a_mutex_that_is_spun_for_may_be_slept_for() {
        assert!(LockFlags(LockFlags::SPIN).keeps_cpu());
        assert!(LockFlags(LockFlags::SPIN | LockFlags::READ).keeps_cpu());
        assert!(!LockFlags(LockFlags::SPIN | LockFlags::MUTEX).keeps_cpu());
        assert!(!LockFlags(LockFlags::WRITE).keeps_cpu());
    }
}
