//! The buffers that a session's events wait in.

use std::fmt;

/// Sizes of a session's buffers. Each CPU has its own, so that events of one CPU are in order and no CPU waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Size of a buffer, in KiB (`EVENT_TRACE_PROPERTIES.BufferSize`); an event is never larger than 64 KiB.
    pub kib: u32,
    /// Buffers that are there from the start, for each CPU.
    pub fewest_per_cpu: u32,
    /// Buffers that there may be, for each CPU. What finds none is lost and counted.
    pub most_per_cpu: u32,
    /// Seconds after which a buffer that is not full is handed over to a reader; to a file only full ones are written.
    pub live_seconds: u32,
}

impl Buffers {
    /// For samples, and for what happens some thousand times a second: 1 to 4 MiB per CPU.
    pub const USUAL: Self = Self { kib: 256, fewest_per_cpu: 4, most_per_cpu: 16, live_seconds: 1 };
    /// For what happens on every switch of threads or system call: 4 to 16 MiB per CPU.
    pub const LARGE: Self = Self { kib: 512, fewest_per_cpu: 8, most_per_cpu: 32, live_seconds: 1 };

    /// The larger of each.
    #[must_use]
    pub fn or_larger(self, other: Self) -> Self {
        Self {
            kib: self.kib.max(other.kib),
            fewest_per_cpu: self.fewest_per_cpu.max(other.fewest_per_cpu),
            most_per_cpu: self.most_per_cpu.max(other.most_per_cpu),
            live_seconds: self.live_seconds.min(other.live_seconds),
        }
    }

    /// `MinimumBuffers` and `MaximumBuffers` for so many CPUs. ETW wants two for each CPU at least.
    pub fn counts(self, cpus: u32) -> (u32, u32) {
        let cpus = cpus.max(1);
        let fewest = self.fewest_per_cpu.max(2).saturating_mul(cpus);
        (fewest, self.most_per_cpu.saturating_mul(cpus).max(fewest))
    }

    /// `FlushTimer`. Of a file alone it is 0: buffers are written when they are full and when the session stops (Microsoft's page on
    /// `EVENT_TRACE_PROPERTIES`). Else each CPU would write one each second, however little is in it, padded to its whole size.
    pub const fn flush_timer(self, live: bool) -> u32 {
        if live { self.live_seconds } else { 0 }
    }
}

impl fmt::Display for Buffers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kib, fewest_per_cpu, most_per_cpu, live_seconds } = self;
        write!(
            out,
            "{kib} KiB, {fewest_per_cpu} to {most_per_cpu} per CPU, handed over when full, to readers after {live_seconds} s"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_two_buffers_at_least() {
        assert_eq!(Buffers::USUAL.counts(8), (32, 128));
        assert_eq!(Buffers { fewest_per_cpu: 0, most_per_cpu: 0, ..Buffers::USUAL }.counts(0), (2, 2));
        assert_eq!(Buffers { most_per_cpu: u32::MAX, ..Buffers::USUAL }.counts(2), (8, u32::MAX));
    }

    #[test]
    fn a_file_gets_full_buffers_and_a_reader_does_not_wait_for_them() {
        assert_eq!([false, true].map(|live| Buffers::USUAL.flush_timer(live)), [0, 1]);
        assert_eq!([false, true].map(|live| Buffers::LARGE.flush_timer(live)), [0, 1]);
    }
}
