//! To whom, when and where an event happened: what every source knows of each occurrence, beside its data.

use crate::ids::{Nanos, Pid, Tid};

/// To whom, when and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// `CLOCK_MONOTONIC`, or of the clock that a session was asked to tell closures times in.
    pub time: Nanos,
    /// The process that was running.
    pub pid: Pid,
    /// The thread that was running.
    pub tid: Tid,
    /// The CPU.
    pub cpu: u32,
}
