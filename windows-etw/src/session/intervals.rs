//! How often CPUs are sampled is the machine's: what was set before sessions set theirs is set again when the last of them has stopped.
//!
//! In: what is set now, as Windows tells. Out: what is to be set again. Sessions of this process are told apart from those of others: where another
//! program has set something since, that stays.

use crate::plan::IntervalChange;

/// What sessions of this process have done to it.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    /// What was set before the first of them, where that was told.
    before: Option<u32>,
    /// What the latest of them has set.
    ours: Option<u32>,
    /// How many of them run.
    running: u32,
}

impl Intervals {
    pub(super) const NONE: Self = Self { before: None, ours: None, running: 0 };

    /// A session is about to set it.
    pub(super) fn begin(&mut self, now: Option<u32>) {
        if self.running == 0 {
            *self = Self { before: now, ..Self::NONE };
        }
        self.running += 1;
    }

    /// It was set, and is this.
    pub(super) fn set(&mut self, now: u32) {
        self.ours = Some(now);
    }

    /// What there is to undo once it is `ours`, where what was set before was told.
    pub(super) fn change(&self, ours: u32) -> Option<IntervalChange> {
        self.before.map(|before| IntervalChange { before, ours })
    }

    /// A session that had begun has stopped. Out: what is to be set again, if it was the last one.
    pub(super) fn end(&mut self, now: Option<u32>) -> Option<u32> {
        self.running = self.running.saturating_sub(1);
        if self.running > 0 {
            return None;
        }
        let Self { before, ours, .. } = std::mem::take(self);
        // Where nothing is told it is taken for ours.
        let is_ours = now.is_none() || ours.is_none() || now == ours;
        before.filter(|_| is_ours)
    }

    /// Whether one of them has begun and not stopped.
    pub(super) const fn are_set(&self) -> bool {
        self.running > 0
    }

    /// All are stopped at once.
    pub(super) fn undo(&mut self, now: Option<u32>) -> Option<u32> {
        self.running = self.running.min(1);
        self.end(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Windows has it.
    fn begin(intervals: &mut Intervals, machine: &mut u32, units: u32) {
        intervals.begin(Some(*machine));
        *machine = units;
        intervals.set(units);
    }

    fn end(intervals: &mut Intervals, machine: &mut u32) {
        if let Some(units) = intervals.end(Some(*machine)) {
            *machine = units;
        }
    }

    #[test]
    fn it_is_set_again_when_the_last_session_stops() {
        let (mut intervals, mut machine) = (Intervals::default(), 10_000);
        for _ in 0..2 {
            begin(&mut intervals, &mut machine, 5000);
            begin(&mut intervals, &mut machine, 2500);
            end(&mut intervals, &mut machine);
            assert_eq!(machine, 2500, "the other one goes on");
            end(&mut intervals, &mut machine);
            assert_eq!(machine, 10_000);
        }
        begin(&mut intervals, &mut machine, 5000);
        begin(&mut intervals, &mut machine, 2500);
        assert_eq!((intervals.undo(Some(2500)), intervals.undo(Some(2500))), (Some(10_000), None));
    }

    #[test]
    fn what_another_program_has_set_since_stays() {
        let (mut intervals, mut machine) = (Intervals::default(), 10_000);
        begin(&mut intervals, &mut machine, 5000);
        machine = 1221;
        end(&mut intervals, &mut machine);
        assert_eq!(machine, 1221);
    }

    #[test]
    fn where_windows_does_not_tell_it_is_set_again_if_it_was_known() {
        let mut intervals = Intervals::default();
        intervals.begin(Some(10_000));
        assert_eq!(intervals.end(None), Some(10_000));
        intervals.begin(None);
        intervals.set(5000);
        assert_eq!((intervals.change(5000), intervals.end(Some(5000))), (None, None));
        intervals.begin(Some(10_000));
        intervals.set(5000);
        intervals.begin(Some(5000));
        assert_eq!(intervals.change(2500), Some(IntervalChange { before: 10_000, ours: 2500 }));
    }
}
