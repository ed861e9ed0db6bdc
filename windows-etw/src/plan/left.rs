//! What processes that were killed have done to how often CPUs are sampled, in; what is to be set again, out.

/// What a process has done to the interval of samples, in units of 100 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalChange {
    /// What was set before.
    pub before: u32,
    /// What it has set.
    pub ours: u32,
}

impl IntervalChange {
    /// As it is kept: both as 32-bit numbers, the lower byte first.
    pub fn to_bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.before.to_le_bytes());
        bytes[4..].copy_from_slice(&self.ours.to_le_bytes());
        bytes
    }

    /// None where it is none that was kept.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (before, rest) = bytes.split_first_chunk()?;
        let change =
            Self { before: u32::from_le_bytes(*before), ours: u32::from_le_bytes(rest.try_into().ok()?) };
        (change.before > 0).then_some(change)
    }

    /// What is to be set where it is `now`: of processes that were killed these changes are `left`, of which those that this undoes are taken
    /// out, and of others that go on there are these of the `living`, which are not disturbed.
    pub fn undone(now: u32, left: &mut Vec<(String, Self)>, living: &[Self]) -> Option<u32> {
        if living.iter().any(|change| change.ours == now) {
            return None;
        }
        let mut units = now;
        // Of two that were killed the later one has found what the earlier one had set.
        while let Some(latest) = left.iter().position(|(_, change)| change.ours == units) {
            units = left.swap_remove(latest).1.before;
        }
        (units != now).then_some(units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: u32, ours: u32) -> IntervalChange {
        IntervalChange { before, ours }
    }

    fn undone(now: u32, left: &[IntervalChange], living: &[IntervalChange]) -> (Option<u32>, usize) {
        let mut left: Vec<_> = left.iter().map(|change| (String::new(), *change)).collect();
        (IntervalChange::undone(now, &mut left, living), left.len())
    }

    #[test]
    fn what_was_set_before_all_that_were_killed_is_set_again() {
        assert_eq!(undone(5000, &[change(10_000, 5000)], &[]), (Some(10_000), 0));
        let two = [change(10_000, 5000), change(5000, 2500)];
        assert_eq!(undone(2500, &two, &[]), (Some(10_000), 0));
        assert_eq!(undone(5000, &two, &[]), (Some(10_000), 1));
        assert_eq!(undone(10_000, &[], &[]), (None, 0));
    }

    #[test]
    fn what_others_have_set_since_stays() {
        assert_eq!(undone(1221, &[change(10_000, 5000)], &[]), (None, 1));
        assert_eq!(undone(2500, &[change(10_000, 5000)], &[change(5000, 2500)]), (None, 1));
        assert_eq!(undone(5000, &[change(10_000, 5000)], &[change(5000, 5000)]), (None, 1));
    }

    #[test]
    fn changes_in_a_circle_end() {
        assert_eq!(undone(5000, &[change(10_000, 5000), change(5000, 10_000)], &[]), (None, 0));
        assert_eq!(undone(5000, &[change(5000, 5000)], &[]), (None, 0));
    }

    #[test]
    fn kept_and_read_again() {
        let change = change(10_000, 0x1234_5678);
        assert_eq!(change.to_bytes(), [0x10, 0x27, 0, 0, 0x78, 0x56, 0x34, 0x12]);
        assert_eq!(IntervalChange::from_bytes(&change.to_bytes()), Some(change));
        for wrong in [&[][..], &[1; 7], &[1; 9], &[0; 8]] {
            assert_eq!(IntervalChange::from_bytes(wrong), None);
        }
    }
}
