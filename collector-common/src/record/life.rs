//! How processes end, and which of them are told of from beginning to end, for people to read: only where the recording was asked for
//! it.

use super::ProcessId;
use crate::ids::Nanos;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code: up to 255 on Linux. Windows' has 32 bits, and is a status (`NTSTATUS`) where an exception or another program
    /// ended it.
    Code(u32),
    /// By a signal of this number.
    Signal(u8),
}

impl Exit {
    /// Of what `wait(2)` says.
    pub const fn of_status(status: u32) -> Self {
        match (status & 0x7f) as u8 {
            0 => Self::Code(status >> 8 & 0xff),
            signal => Self::Signal(signal),
        }
    }
}

/// A process that the recording was asked to tell of; what it executed and how it ended is with the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLife {
    /// The process.
    pub process: ProcessId,
    /// When it was made, which may have been before the recording.
    pub made: Nanos,
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
                (Exit::Code(code), Some(known), None) => assert_eq!(i64::from(code), i64::from(known)),
                (Exit::Signal(signal), None, Some(known)) => assert_eq!(i32::from(signal), known),
                // Not statuses of an end: stopped and continued.
                (_, None, None) => assert_eq!(status & 0x7f, 0x7f),
                other => panic!("{status:#x}: {other:?}"),
            }
        }
    }
}
