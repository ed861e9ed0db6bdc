//! `SampledProfile`, the CPU sample: class `ce1dbfb4-137e-4da6-87b0-3f59aa102cbc` (`PerfInfo`), opcode 46.

use collector_common::ids::{Avma, Tid};
use thiserror::Error;

/// Width of a pointer on the traced machine, from the trace's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerSize {
    /// 4 bytes.
    Bits32,
    /// 8 bytes.
    Bits64,
}

/// A CPU sample: where a thread was when the sampling clock ticked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledProfile {
    /// The instruction that was interrupted.
    pub instruction: Avma,
    /// The thread; 0 is an idle CPU.
    pub tid: Tid,
    /// Ticks that the event stands for.
    pub count: u16,
}

/// The payload ends before the event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a SampledProfile event of {len} bytes is too short: it has {needed}")]
pub struct TooShort {
    /// Bytes there were.
    pub len: usize,
    /// Bytes there should be.
    pub needed: usize,
}

impl SampledProfile {
    /// Decodes a payload: instruction pointer, u32 thread id, u16 count, u16 reserved.
    ///
    /// # Errors
    /// When the payload is cut off.
    pub fn decode(payload: &[u8], pointer: PointerSize) -> Result<Self, TooShort> {
        let width = match pointer {
            PointerSize::Bits32 => 4,
            PointerSize::Bits64 => 8,
        };
        let short = TooShort { len: payload.len(), needed: width + 8 };
        let (address, rest) = payload.split_at_checked(width).ok_or(short)?;
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(address);
        let Some(([t0, t1, t2, t3], rest)) = rest.split_first_chunk::<4>() else { return Err(short) };
        let [c0, c1, ..] = *rest.first_chunk::<4>().ok_or(short)?;
        Ok(Self {
            instruction: Avma(u64::from_le_bytes(wide)),
            tid: Tid(u32::from_le_bytes([*t0, *t1, *t2, *t3])),
            count: u16::from_le_bytes([c0, c1]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_pointer_sizes() {
        let payload64 = [0x10, 0x32, 0x54, 0x76, 0xf8, 0x7f, 0, 0, 0xd2, 4, 0, 0, 1, 0, 0, 0];
        let sample = SampledProfile::decode(&payload64, PointerSize::Bits64);
        let expected = SampledProfile { instruction: Avma(0x7ff8_7654_3210), tid: Tid(1234), count: 1 };
        assert_eq!(sample, Ok(expected));
        let sample = SampledProfile::decode(&payload64[4..], PointerSize::Bits32);
        assert_eq!(sample.map(|sample| sample.instruction), Ok(Avma(0x7ff8)));
    }

    #[test]
    fn every_cut_is_an_error() {
        for len in 0..16 {
            let error = SampledProfile::decode(&[0; 16][..len], PointerSize::Bits64);
            assert_eq!(error, Err(TooShort { len, needed: 16 }));
        }
    }
}
