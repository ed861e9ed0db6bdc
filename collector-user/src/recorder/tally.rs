//! How the user stacks of a recording ended.

use std::collections::BTreeMap;

use collector_common::wire::SampleFlags;
use unwinder::{Frame, StopReason};

use crate::stats::GIVEN;

/// User stacks by how they ended, and the frames in them.
#[derive(Clone, Debug, Default)]
pub struct StackTally {
    ends: BTreeMap<&'static str, u64>,
    frames: u64,
}

impl StackTally {
    /// What the end of a stack is called, whose frames are counted. One whose bytes did not reach its end because it was larger than the largest copy, or went on behind
    /// its mapping, is `truncated`, one that reached its root `complete`; or `completed_later`, when part of it was read from memory
    /// after the sample; or `completed_by_guesses`. One with more frames than are walked is `depth_limit`, wherever they were read.
    pub(crate) fn end_of(
        &mut self,
        reason: StopReason,
        flags: SampleFlags,
        read_late: bool,
        frames: &[Frame],
    ) -> &'static str {
        self.frames += frames.len() as u64;
        match reason {
            StopReason::Root if read_late => "completed_later",
            StopReason::Root if frames.iter().any(|frame| frame.heuristic) => "completed_by_guesses",
            StopReason::Root => "complete",
            StopReason::StackExhausted if flags.has(SampleFlags::STACK_CUT) => "truncated",
            StopReason::DepthLimit => reason.name(),
            _ if read_late => "truncated",
            StopReason::StackExhausted if flags.has(SampleFlags::BOUND_UNKNOWN) => "bound_unknown",
            other => other.name(),
        }
    }

    /// The same of a stack up to a call whose return is trapped, and of which the caller is not known.
    pub(super) fn end_of_trapped(&mut self, frames: &[Frame]) -> &'static str {
        self.frames += frames.len() as u64;
        "return_probe"
    }

    /// Counts a stack by its end.
    pub(crate) fn count(&mut self, end: &'static str) {
        *self.ends.entry(end).or_default() += 1;
    }

    /// The same of a stack that came as addresses.
    pub(super) fn end_of_given(&mut self, frames: usize) -> &'static str {
        self.frames += frames as u64;
        GIVEN
    }

    /// Adds kernel frames.
    pub(super) fn add_kernel_frames(&mut self, frames: usize) {
        self.frames += frames as u64;
    }

    /// User stacks by end: `complete`, `truncated`, or the unwinder's stop reason.
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.ends.iter().map(|(name, count)| (*name, *count))
    }

    /// User stacks that ended so.
    pub fn count_of(&self, end: &str) -> u64 {
        self.ends.get(end).copied().unwrap_or(0)
    }

    /// User stacks in all.
    pub fn total(&self) -> u64 {
        self.ends.values().sum()
    }

    /// User stacks that reached their root.
    pub fn complete(&self) -> u64 {
        self.count_of("complete")
    }

    /// Frames of all stacks, kernel frames too.
    pub fn frames(&self) -> u64 {
        self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_is_too_deep_is_so_wherever_it_was_read() {
        let mut tally = StackTally::default();
        let mut end = |reason, late| tally.end_of(reason, SampleFlags(SampleFlags::STACK_CUT), late, &[]);
        assert_eq!([false, true].map(|late| end(StopReason::DepthLimit, late)), ["depth_limit"; 2]);
        assert_eq!([false, true].map(|late| end(StopReason::StackExhausted, late)), ["truncated"; 2]);
        assert_eq!([false, true].map(|late| end(StopReason::NoRule, late)), ["no_rule", "truncated"]);
        assert_eq!([false, true].map(|late| end(StopReason::Root, late)), ["complete", "completed_later"]);
    }
}
