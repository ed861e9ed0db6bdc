//! Which of what has a size in bytes is recorded, as an unbiased choice: bytes are counted down to points whose distances are
//! exponentially distributed, and what a point falls into is recorded. Of `b` bytes it is with the probability
//! `1 - exp(-b / period)`, by which user space weighs it. As the distribution has no memory, each CPU counts for itself, whoever
//! runs there.

use aya_ebpf::{btf_maps::PerCpuArray, helpers::generated::bpf_get_prandom_u32, macros::btf_map};
use collector_common::wire::Config;

use crate::maps::config;

/// What is counted down for itself.
#[repr(u32)]
#[derive(Clone, Copy)]
pub(crate) enum Gap {
    /// Bytes that allocators give.
    Allocated = 0,
    /// Bytes that the kernel gives.
    Mapped = 1,
}

/// Bytes up to the next point, by [`Gap`]; 0 before the first.
#[btf_map]
static GAPS: PerCpuArray<u64, 2> = PerCpuArray::new();

/// Whether one of the points falls into what is of these bytes.
#[inline(always)]
pub(crate) fn is_chosen(gap: Gap, bytes: u64) -> bool {
    let period = match gap {
        Gap::Allocated => config(|c: &Config| &raw const c.allocation_period),
        Gap::Mapped => config(|c: &Config| &raw const c.mapped_period),
    };
    if period <= 1 {
        return true;
    }
    let Some(gap) = GAPS.get_ptr_mut(gap as u32) else { return false };
    // SAFETY: the map gave a valid pointer to this CPU's value. A thread that is given the CPU in the midst of this has its bytes
    // counted twice or not at all, which has nothing to do with how many they are.
    unsafe {
        if *gap == 0 {
            *gap = distance(period);
        }
        let is_chosen = bytes >= *gap;
        *gap = if is_chosen { distance(period) } else { *gap - bytes };
        is_chosen
    }
}

/// The distance to the next point: exponentially distributed, with `period` as its mean.
#[inline(always)]
fn distance(period: u64) -> u64 {
    /// ln 2, of 16 binary digits.
    const LN_2: u64 = 45_426;
    // SAFETY: the helper has no preconditions.
    let chance = u64::from(unsafe { bpf_get_prandom_u32() } as u32) + 1;
    let below = (32 << DIGITS) - log2(chance);
    ((((period * below) >> DIGITS) * LN_2) >> DIGITS) + 1
}

/// Binary digits behind the point.
const DIGITS: u32 = 16;

/// The logarithm to base 2 of 1 to 2^32, with [`DIGITS`] digits: by squaring, which doubles it.
#[inline(always)]
fn log2(value: u64) -> u64 {
    let whole = 63 - u64::from(value.leading_zeros());
    let mut rest = (value << (32 - whole)) >> 1;
    let mut digits = 0;
    for _ in 0..DIGITS {
        rest = (rest * rest) >> 31;
        let digit = rest >> 32;
        rest >>= digit;
        digits = digits << 1 | digit;
    }
    whole << DIGITS | digits
}
