//! The ledger: every sample that should have been there is either delivered or lost for a counted cause.
//!
//! Three independent counters feed it: the kernel's own count of program runs (`bpf_prog_info::run_cnt`), what
//! the eBPF programs counted, and what user space took out of the rings.

use std::fmt;

/// Why a sample was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossCause {
    /// The ring of its CPU had no room.
    RingFull,
    /// Its CPU had no ring, as when it came online after the start.
    NoRing,
    /// The sampling clock passed a period without running the program: the timer fired late, or the kernel
    /// refused to nest programs.
    NotRun,
    /// The kernel throttled the sampling clock.
    Throttled,
    /// The record in the ring could not be read, as from another version of the eBPF object.
    Malformed,
    /// Its thread had been given up by the kernel, which no longer tells whose it was.
    NoProcess,
    /// A thread, or a request to a block device, could not be kept account of: there are more than the map has room for.
    NoRoom,
    /// What is set aside for raw events was full: neither the event nor its sample is kept.
    EventsFull,
    /// A whole buffer of the kernel's was lost before it was written: each counts as one, whatever was in it.
    BufferLost,
    /// The kernel counts more runs than the program itself: neither delivered nor counted by a cause above.
    Unaccounted,
}

impl LossCause {
    /// All causes, in the order they are printed.
    pub const ALL: [Self; 10] = [
        Self::RingFull,
        Self::NoRing,
        Self::NotRun,
        Self::Throttled,
        Self::Malformed,
        Self::NoProcess,
        Self::NoRoom,
        Self::EventsFull,
        Self::BufferLost,
        Self::Unaccounted,
    ];

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }

    /// The key in `--stats`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RingFull => "ring_full",
            Self::NoRing => "no_ring",
            Self::NotRun => "not_run",
            Self::Throttled => "throttled",
            Self::Malformed => "malformed",
            Self::NoProcess => "no_process",
            Self::NoRoom => "no_room",
            Self::EventsFull => "events_full",
            Self::BufferLost => "buffer_lost",
            Self::Unaccounted => "unaccounted",
        }
    }
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a ledger without losses is as text.
const NONE_LOST: &str = "none lost";

/// Delivered samples and lost ones by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    delivered: u64,
    lost: [u64; LossCause::ALL.len()],
}

impl Ledger {
    /// Counts `count` delivered samples.
    pub fn deliver(&mut self, count: u64) {
        self.delivered += count;
    }

    /// Counts `count` samples lost for `cause`, which a damaged recording may tell any number of.
    pub fn lose(&mut self, cause: LossCause, count: u64) {
        let lost = &mut self.lost[cause as usize];
        *lost = lost.saturating_add(count);
    }

    /// Samples that reached the recording.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Samples lost for one cause.
    pub fn lost(&self, cause: LossCause) -> u64 {
        self.lost[cause as usize]
    }

    /// Samples lost for any cause.
    pub fn total_lost(&self) -> u64 {
        self.lost.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// What should have been recorded: delivered and lost together.
    pub fn produced(&self) -> u64 {
        self.delivered.saturating_add(self.total_lost())
    }

    /// What the line says of how many were lost that a ledger is as text; none where it is no such line. The causes have to be known ones,
    /// and to be as many together.
    pub fn lost_in(line: &str) -> Option<u64> {
        if line == NONE_LOST {
            return Some(0);
        }
        let (total, causes) = line.strip_suffix(')')?.split_once(" lost (")?;
        let mut told = Self::default();
        for cause in causes.split(", ") {
            let (name, count) = cause.split_once(' ')?;
            told.lose(LossCause::ALL.into_iter().find(|cause| cause.name() == name)?, count.parse().ok()?);
        }
        total.parse().ok().filter(|total| *total == told.total_lost())
    }

    /// Causes with their counts, in the order of [`LossCause::ALL`].
    pub fn causes(&self) -> impl ExactSizeIterator<Item = (LossCause, u64)> + '_ {
        LossCause::ALL.into_iter().zip(self.lost)
    }
}

/// How many are lost, and why, in a line for people: `none lost`, or `3 lost (ring_full 1, not_run 2)`.
impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = self.causes().filter(|(_, count)| *count > 0);
        for (at, (cause, count)) in lost.enumerate() {
            match at {
                0 => write!(f, "{} lost ({cause} {count}", self.total_lost())?,
                _ => write!(f, ", {cause} {count}")?,
            }
        }
        f.write_str(if self.total_lost() > 0 { ")" } else { NONE_LOST })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_was_lost() {
        let mut ledger = Ledger::default();
        assert_eq!((ledger.to_string(), Ledger::lost_in("none lost")), ("none lost".to_owned(), Some(0)));
        ledger.lose(LossCause::NotRun, 2);
        ledger.lose(LossCause::RingFull, 1);
        assert_eq!(ledger.to_string(), "3 lost (ring_full 1, not_run 2)");
        assert_eq!(Ledger::lost_in(&ledger.to_string()), Some(3));
        for other in
            ["", "3 lost", "3 lost ()", "3 lost (ring_full 1)", "3 lost (keys 3)", "-1 lost (not_run -1)"]
        {
            assert_eq!(Ledger::lost_in(other), None, "{other}");
        }
    }
}
