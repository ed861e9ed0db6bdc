//! When the mappings of a process are read again because those that are known do not explain a stack: it led to an address
//! that none of them holds, or beyond the one that held it. The sideband does not tell of memory that cannot be executed, of
//! code that is moved (`mremap`), nor a process of what another one maps that has the same memory and is none of its threads
//! (`clone` with `CLONE_VM` alone).

use std::hash::Hash;

use collector_common::ids::Nanos;
use rustc_hash::FxHashMap;

/// Time from a reading that told nothing of use to the next one. It is doubled each time.
const PAUSE: Nanos = Nanos(1_000_000);

/// The doubling ends here.
const LONGEST_PAUSE: Nanos = Nanos(64_000_000_000);

/// Time from a reading that told what was missing to the next one.
const PAUSE_AFTER_USE: Nanos = Nanos(1_000_000_000);

/// Readings in one round, of all processes: one with very many mappings takes milliseconds to be read.
const MOST_A_ROUND: u32 = 16;

/// The last reading of a process.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Nanos,
    /// Until the next one.
    pause: Nanos,
}

/// Readings of processes, which a `P` names.
#[derive(Debug)]
pub(super) struct Rereads<P> {
    last: FxHashMap<P, Reading>,
    in_round: u32,
}

impl<P> Default for Rereads<P> {
    fn default() -> Self {
        Self { last: FxHashMap::default(), in_round: 0 }
    }
}

impl<P: Copy + Eq + Hash> Rereads<P> {
    /// Whether the process is to be read now, which counts as done for nothing then, unless [`Self::helped`] is called.
    pub(super) fn begin(&mut self, process: P, now: Nanos) -> bool {
        let last = self.last.get(&process);
        let too_early = last.is_some_and(|last| now.0.saturating_sub(last.at.0) < last.pause.0);
        if too_early || self.in_round >= MOST_A_ROUND {
            return false;
        }
        self.in_round += 1;
        let pause = last.map_or(PAUSE, |last| LONGEST_PAUSE.min(Nanos(last.pause.0.saturating_mul(2))));
        self.last.insert(process, Reading { at: now, pause });
        true
    }

    /// The last reading told what was missing.
    pub(super) fn helped(&mut self, process: P) {
        if let Some(last) = self.last.get_mut(&process) {
            last.pause = PAUSE_AFTER_USE;
        }
    }

    /// Whether what was read of a process may be gone by at a time.
    pub(super) fn is_recent(&self, process: P, now: Nanos) -> bool {
        let last = self.last.get(&process);
        last.is_some_and(|last| now.0.saturating_sub(last.at.0) < PAUSE_AFTER_USE.0)
    }

    /// The round up to `watermark` is over. What was last read longer ago than any pause is forgotten.
    pub(super) fn end_round(&mut self, watermark: Nanos) {
        self.in_round = 0;
        self.last.retain(|_, last| watermark.0.saturating_sub(last.at.0) <= LONGEST_PAUSE.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    /// In which milliseconds a process is read that always gives a reason to.
    fn readings(helps: bool, milliseconds: u64) -> Vec<u64> {
        let mut rereads = Rereads::default();
        let reads = |time: &u64| {
            let now = Nanos(time * MILLISECOND);
            let reads = rereads.begin(7, now);
            if reads && helps {
                rereads.helped(7);
            }
            rereads.end_round(now);
            reads
        };
        (0..milliseconds).filter(reads).collect()
    }

    #[test]
    fn what_does_not_help_is_done_ever_less_often() {
        assert_eq!(readings(false, 1000), [0, 1, 3, 7, 15, 31, 63, 127, 255, 511]);
        assert_eq!(readings(true, 3500), [0, 1000, 2000, 3000]);
    }

    #[test]
    fn a_round_reads_few_processes() {
        let mut rereads = Rereads::default();
        let mut read = || (0..100).filter(|&process| rereads.begin(process, Nanos(1))).count();
        assert_eq!(read(), MOST_A_ROUND as usize);
        assert_eq!(read(), 0);
        rereads.end_round(Nanos(1));
        assert!(rereads.begin(99, Nanos(1)));
    }
}
