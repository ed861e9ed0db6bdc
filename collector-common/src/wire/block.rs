//! Requests to block devices: what the programs keep of each one that a device has, tell of some, and count of all.

use bytemuck::{Pod, Zeroable};

use super::{CHANCES, COMM_LEN, SampleHeader};

/// Data of records of [`super::SampleFlags::BLOCK`]. The first is made when the request is issued, with the stacks of the
/// thread that does it; the second, with [`super::SampleFlags::BACK`], when it is complete. Either may be alone: the first
/// where the request turned out to be short, the second where it turned out to be long.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockRequest {
    /// When it was issued to the device, `CLOCK_MONOTONIC` in nanoseconds.
    pub since: u64,
    /// Bytes to be transferred.
    pub bytes: u64,
    /// Whose they are.
    pub key: BlockKey,
    /// With which chance out of [`super::CHANCES`] the stacks were taken: 0 where they were not.
    pub chance: u32,
    /// Process of the thread that issued it.
    pub pid: u32,
    /// That thread.
    pub tid: u32,
    /// 1 where the first record found no room: the request is lost, and counted as that.
    pub is_lost: u32,
    /// The thread's name, NUL-padded.
    pub comm: [u8; COMM_LEN],
    /// Zero.
    pub reserved: [u64; 3],
}

impl BlockRequest {
    /// As a record has it.
    pub fn words(self) -> [u64; SampleHeader::DATA] {
        bytemuck::cast(self)
    }
}

const _: () = assert!(size_of::<BlockRequest>() == SampleHeader::DATA * 8);

/// What requests are counted by.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
pub struct BlockKey {
    /// `major << 20 | minor`, as the kernel's `dev_t` has them.
    pub device: u32,
    /// `enum req_op` of `include/linux/blk_types.h`.
    pub operation: u32,
}

/// Buckets by time: less than 1 µs, less than 2, 4, 8 and so on, and in the last one all others.
pub const BLOCK_TIMES: usize = 27;

/// Buckets by size: less than 1 KiB, less than 2, 4, 8 and so on, and in the last one all others.
pub const BLOCK_SIZES: usize = 16;

/// How long a request is expected to take, in nanoseconds: about the mean of the last eight that have ended, on whatever CPU. Times much longer
/// than the period make no difference to each other.
///
/// What is expected decides on the chance with which stacks are taken, and nothing else. A request that is taken stands for the inverse of
/// its own chance, so that a wrong expectation makes a sum less exact, and none makes it wrong: too low a chance has few stand for many.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockExpected(pub u64);

impl BlockExpected {
    const MOST_PERIODS: u64 = 16;

    /// By the first that has ended.
    pub fn first(took: u64, period: u64) -> Self {
        Self(took.min(period * Self::MOST_PERIODS))
    }

    /// When a further one has ended.
    #[must_use]
    pub fn after(self, took: u64, period: u64) -> Self {
        Self(self.0 - (self.0 >> 3) + (Self::first(took, period).0 >> 3))
    }

    /// With which chance, out of [`super::CHANCES`], the stacks of a request are taken: by the part of a period that it is expected to take.
    pub fn chance(self, period: u64) -> u32 {
        // It is not 0, which the compiler does not know.
        (self.0 * u64::from(CHANCES) / period.max(1)).clamp(1, CHANCES.into()) as u32
    }
}

/// What was counted of a [`BlockKey`]. Per CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockCounts {
    /// Requests by how long they took.
    pub times: [u64; BLOCK_TIMES],
    /// Requests by how large they were.
    pub sizes: [u64; BLOCK_SIZES],
    /// Nanoseconds in all.
    pub ns: u64,
    /// Bytes in all.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 1_000_000;

    /// `splitmix64`: numbers that look random, the same for the same seed.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        }
    }

    /// The sum of times that is told of requests, one after the other from the first on: those of a period and longer stand for themselves,
    /// the others, where they are taken, for the inverse of their chance.
    fn told(times: &[u64], random: &mut Random) -> f64 {
        let mut expected: Option<BlockExpected> = None;
        let mut sum = 0.0;
        for &took in times {
            let chance = expected.map_or(CHANCES, |expected| expected.chance(PERIOD));
            let is_taken = (random.next() % u64::from(CHANCES)) < u64::from(chance);
            if took >= PERIOD {
                sum += took as f64;
            } else if is_taken {
                sum += took as f64 * f64::from(CHANCES) / f64::from(chance);
            }
            expected = Some(match expected {
                Some(known) => known.after(took, PERIOD),
                None => BlockExpected::first(took, PERIOD),
            });
        }
        sum
    }

    /// The mean of what is told of the same times by many seeds, and the standard deviation.
    fn of_seeds(times: &[u64]) -> (f64, f64) {
        const SEEDS: u32 = 20_000;
        let sums: Vec<f64> = (0..SEEDS).map(|seed| told(times, &mut Random(seed.into()))).collect();
        let mean = sums.iter().sum::<f64>() / f64::from(SEEDS);
        let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / f64::from(SEEDS - 1);
        // What is no bias is as far away by chance once in millions.
        let truth = times.iter().sum::<u64>() as f64;
        let bound = 5.0 * (variance / f64::from(SEEDS)).sqrt();
        assert!((mean - truth).abs() <= bound, "{mean} of {truth}, give or take {bound}");
        (mean, variance.sqrt())
    }

    /// Those that take longer than was expected, too, and those that take less.
    #[test]
    fn what_is_told_has_no_bias_from_the_first_request_on() {
        for first in [1_000, 100_000, 900_000, 5_000_000] {
            for then in [2_000, 50_000, 700_000] {
                let times: Vec<u64> = std::iter::repeat_n(first, 5).chain([then; 20]).collect();
                of_seeds(&times);
            }
        }
    }

    /// Times of which each was taken with the chance that is its part of a period have a variance of less than `period * sum`: as if each
    /// sample stood for a period. That holds of the first requests of a device.
    #[test]
    fn the_first_requests_are_told_as_exactly_as_later_ones() {
        for took in [20_000, 100_000, 500_000] {
            let times = [took; 32];
            let (sum, deviation) = of_seeds(&times);
            let bound = (PERIOD as f64 * sum).sqrt();
            assert!(deviation < bound, "{deviation} of {sum}, and {bound} at most");
        }
    }

    #[test]
    fn a_chance_is_a_part_of_the_period_and_never_none() {
        let chance = |expected| BlockExpected(expected).chance(PERIOD);
        assert_eq!([0, 1, 976].map(chance), [1; 3], "less than one of 1024");
        assert_eq!([250_000, 500_000, 999_999].map(chance), [256, 512, 1023]);
        assert_eq!([PERIOD, 16 * PERIOD].map(chance), [CHANCES; 2]);
        assert_eq!(BlockExpected::first(u64::MAX, PERIOD), BlockExpected(16 * PERIOD));
        assert_eq!(BlockExpected(800).after(0, PERIOD), BlockExpected(700));
    }
}
