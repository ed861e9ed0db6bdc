//! Time that threads do not run: what the programs at the scheduler's tracepoints keep of each thread, and what they tell.
//!
//! A thread that is taken off its CPU is recorded with probability `chance / CHANCES`, with its stacks, before anyone knows
//! for how long. When it gets a CPU back, a record of constant size tells how long that was. The two are joined by the
//! thread and `since`.

use bytemuck::{Pod, Zeroable};

use super::{COMM_LEN, LockWait, SampleHeader, Times};

/// What a [`OffCpu::chance`] is of.
pub const CHANCES: u32 = 1024;

/// Bits of [`OffCpu::state`], beside those of the kernel's `task_struct::__state` below.
pub struct OffCpuState;

impl OffCpuState {
    /// It could have run on: another thread was given its CPU.
    pub const PREEMPTED: u32 = 0;
    /// `TASK_INTERRUPTIBLE` of `include/linux/sched.h`.
    pub const INTERRUPTIBLE: u32 = 1;
    /// `TASK_UNINTERRUPTIBLE`.
    pub const UNINTERRUPTIBLE: u32 = 2;
    /// `TASK_DEAD`: it does not come back.
    pub const DEAD: u32 = 0x80;
}

/// Data of records of [`super::SampleFlags::OFF_CPU`] and [`super::SampleFlags::BACK`]. In the former it is
/// not known yet who wakes the thread. In those of [`super::SampleFlags::LAST`] it is of the thread's end.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct OffCpu {
    /// When the thread stopped running, `CLOCK_MONOTONIC` in nanoseconds.
    pub since: u64,
    /// With which chance out of [`CHANCES`] its stacks were taken: 0 where they were not.
    pub chance: u32,
    /// Why it stopped: [`OffCpuState`].
    pub state: u32,
    /// When it could run again; 0 where nobody said so.
    pub woken: u64,
    /// Process of the thread that woke it; 0 where an interrupt did. Where interrupts can't be told apart, that of the thread that was
    /// interrupted, which is 0 on an idle CPU.
    pub waker_pid: u32,
    /// That thread, or 0.
    pub waker_tid: u32,
    /// Its name, NUL-padded; [`OffCpu::INTERRUPT`] where it is none.
    pub waker_comm: [u8; COMM_LEN],
    /// The thread's process; 0 where that is not known.
    pub pid: u32,
    /// [`LockWait`] bits where account of waits for locks is kept, else 0.
    pub lock_wait: u32,
    /// Nanoseconds for which the thread was blocked so far in times off that are recorded and were shorter than the period,
    /// whether they were told of or not.
    pub short_blocked: u64,
    /// Nanoseconds for which it waited for a CPU in those.
    pub short_waited: u64,
    /// Address of the lock that is waited for, in the thread's memory; 0 for none.
    pub lock: u64,
}

impl OffCpu {
    /// What wakes threads and is none.
    pub const INTERRUPT: [u8; COMM_LEN] = *b"[interrupt]\0\0\0\0\0";

    /// Nothing is known.
    pub const NONE: Self = Self {
        since: 0,
        chance: 0,
        state: 0,
        woken: 0,
        waker_pid: 0,
        waker_tid: 0,
        waker_comm: [0; COMM_LEN],
        pid: 0,
        lock_wait: 0,
        short_blocked: 0,
        short_waited: 0,
        lock: 0,
    };

    /// As a record has it.
    pub fn words(self) -> [u64; SampleHeader::DATA] {
        bytemuck::cast(self)
    }

    /// Whether it is recorded, where `times` are the [`Times`] bits.
    pub const fn is_recorded(&self, times: u32) -> bool {
        let part = if self.state == OffCpuState::PREEMPTED { Times::PREEMPTED } else { Times::BLOCKED };
        times & part != 0 || self.is_lock_wait(times)
    }

    /// What is shorter than this is left out, of what is recorded: by the shortest time off, and the shortest wait for a lock.
    pub const fn shortest(&self, times: u32, off_cpu: u64, lock_wait: u64) -> u64 {
        if self.is_lock_wait(times) && lock_wait < off_cpu { lock_wait } else { off_cpu }
    }

    const fn is_lock_wait(&self, times: u32) -> bool {
        times & Times::LOCKS != 0 && LockWait(self.lock_wait).is_for_a_lock()
    }
}

const _: () = assert!(size_of::<OffCpu>() == SampleHeader::DATA * 8);

/// What is known of a thread, in the map of threads by tid.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct ThreadTimes {
    /// As of the last time that it stopped running; `since` is 0 while it runs.
    pub off: OffCpu,
    /// How long it is expected to stay off its CPU, in nanoseconds, by how long it stayed before.
    pub expected: u64,
    /// Since when its time on a CPU is in no sample, 0 while it is off.
    pub on: u64,
    /// Nanoseconds on a CPU before `on` that are in no sample.
    pub ran: u64,
    /// Whether the record with its stacks found no room: the time is lost, and counted as that.
    pub is_lost: u32,
    /// Zero.
    pub reserved: u32,
}

const _: () = assert!(size_of::<ThreadTimes>() == 112);

/// Buckets of [`RunQueue`]: waits of less than 1 µs, of less than 2, 4, 8 and so on, and in the last one all others.
pub const QUEUE_BUCKETS: usize = 27;

/// Waits for a CPU by length, in [`QUEUE_BUCKETS`], and then their sum in nanoseconds. By thread name, per CPU.
pub type RunQueue = [u64; QUEUE_BUCKETS + 1];
