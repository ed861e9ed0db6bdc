//! The times of samples in, their positions in the order of time out, in memory that does not grow with their number.
//!
//! The times are counted by spans of time, neighbouring spans with few samples are taken together, and each of these parts is looked
//! for among all samples and sorted by itself.

use std::io;

use collector_common::ids::Nanos;

/// Spans of time.
const SPANS: usize = 1 << 14;
/// The most samples that are sorted at once, but for those of one span.
const AT_ONCE: u32 = 1 << 20;

/// Calls `act` with each position, the oldest time first, and equal ones in the order of their positions.
pub(super) fn in_time_order(times: &[Nanos], act: impl FnMut(usize) -> io::Result<()>) -> io::Result<()> {
    by_parts(times, AT_ONCE, act)
}

fn by_parts(times: &[Nanos], at_once: u32, mut act: impl FnMut(usize) -> io::Result<()>) -> io::Result<()> {
    let (Some(&first), Some(&last)) = (times.iter().min(), times.iter().max()) else { return Ok(()) };
    // The smallest power of two that the spans can be long.
    let shift = (0..u64::BITS).find(|shift| (last.0 - first.0) >> shift < SPANS as u64).unwrap_or(0);
    let span = |time: Nanos| ((time.0 - first.0) >> shift) as usize;
    let mut counts = vec![0_u32; SPANS];
    for &time in times {
        counts[span(time)] += 1;
    }
    let mut positions: Vec<u32> = Vec::new();
    let mut begin = 0;
    while begin < SPANS {
        let mut sum = counts[begin];
        let mut end = begin + 1;
        while let Some(next) = counts.get(end).map(|count| sum.saturating_add(*count))
            && next <= at_once
        {
            (sum, end) = (next, end + 1);
        }
        if sum > 0 {
            positions.clear();
            let found = times.iter().zip(0..).filter(|(time, _)| (begin..end).contains(&span(**time)));
            positions.extend(found.map(|(_, position)| position));
            positions.sort_unstable_by_key(|&position| (times[position as usize], position));
            positions.iter().try_for_each(|&position| act(position as usize))?;
        }
        begin = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort(
            list in proptest::collection::vec(prop_oneof![0_u64..40, any::<u64>()], 0..200),
            at_once in 1_u32..300,
        ) {
            let times: Vec<Nanos> = list.iter().copied().map(Nanos).collect();
            let mut expected: Vec<usize> = (0..times.len()).collect();
            expected.sort_by_key(|&position| times[position]);
            let mut order = Vec::new();
            by_parts(&times, at_once, |position| {
                order.push(position);
                Ok(())
            })
            .unwrap();
            prop_assert_eq!(order, expected);
        }
    }

    #[test]
    fn an_error_ends_it() {
        let error = in_time_order(&[Nanos(1), Nanos(2)], |_| Err(io::Error::other("full")));
        assert_eq!(error.unwrap_err().to_string(), "full");
    }
}
