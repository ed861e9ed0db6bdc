//! Waits for locks of user code, which are system calls to wait for a futex: `futex(2)`, `include/uapi/linux/futex.h`.

/// What is known of such a wait. Bits of [`super::OffCpu::lock_wait`]; 0 for a time off that is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockWait(pub u32);

impl LockWait {
    /// The thread waits in `futex`, `futex_waitv` or `futex_wait`.
    pub const FUTEX: u32 = 1;
    /// It waits for a while at most.
    pub const TIMED: u32 = 1 << 1;
    /// It was woken by a thread in a system call that wakes such waiters, or by one that ended.
    pub const RELEASED: u32 = 1 << 2;
    /// The stacks of the thread that released it were written to a ring.
    pub const OWNER_RECORDED: u32 = 1 << 3;
    /// They found no room there: what would be known of the owner is lost.
    pub const OWNER_LOST: u32 = 1 << 4;
    /// That thread is not one to be recorded.
    pub const OWNER_LEFT_OUT: u32 = 1 << 5;

    /// Whether what was waited for is a lock: where the wait had a limit, and nobody but the clock ended it, it was a pause.
    pub const fn is_for_a_lock(self) -> bool {
        self.0 & Self::FUTEX != 0 && self.0 & (Self::TIMED | Self::RELEASED) != Self::TIMED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_ran_out_makes_it_a_pause() {
        let is_for_a_lock = |bits| LockWait(bits).is_for_a_lock();
        assert!(is_for_a_lock(LockWait::FUTEX));
        assert!(is_for_a_lock(LockWait::FUTEX | LockWait::RELEASED));
        assert!(is_for_a_lock(LockWait::FUTEX | LockWait::TIMED | LockWait::RELEASED));
        assert!(!is_for_a_lock(LockWait::FUTEX | LockWait::TIMED));
        assert!(!is_for_a_lock(0));
    }
}
