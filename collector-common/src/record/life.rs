//! Processes as they were made, what they executed, and how they ended: for people to read, and told from beginning to end
//! only where the recording asked for it.

use crate::ids::{Nanos, Pid};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(u8),
    /// By a signal of this number.
    Signal(u8),
}

impl Exit {
    /// Of what `wait(2)` says.
    pub const fn of_status(status: u32) -> Self {
        match (status & 0x7f) as u8 {
            0 => Self::Code((status >> 8) as u8),
            signal => Self::Signal(signal),
        }
    }
}

/// One process. Times are `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessLife {
    /// Its pid.
    pub pid: Pid,
    /// Its name, the last one told of.
    pub name: String,
    /// The pid of the process that made it; of one that was there before the recording, of that whose child it is.
    pub parent: Pid,
    /// That one's name then.
    pub parent_name: String,
    /// The arguments of the last program that it executed, the program's name first; empty where it executed none, or they
    /// could not be read.
    pub arguments: Vec<String>,
    /// Whether there are more arguments than there was room for.
    pub are_cut: bool,
    /// When it was made.
    pub start: Nanos,
    /// When its last thread ended, and how; `None` while it runs.
    pub end: Option<(Nanos, Exit)>,
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn statuses_mean_what_the_standard_library_takes_them_for() {
        for status in 0..=0xffff_u32 {
            let known = ExitStatus::from_raw(status as i32);
            match (Exit::of_status(status), known.code(), known.signal()) {
                (Exit::Code(code), Some(known), None) => assert_eq!(i32::from(code), known),
                (Exit::Signal(signal), None, Some(known)) => assert_eq!(i32::from(signal), known),
                // Not statuses of an end: stopped and continued.
                (_, None, None) => assert_eq!(status & 0x7f, 0x7f),
                other => panic!("{status:#x}: {other:?}"),
            }
        }
    }
}
