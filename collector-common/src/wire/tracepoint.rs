//! An occurrence of a tracepoint, with its record as tracefs describes it.

use bytemuck::{Pod, Zeroable};

use super::SampleHeader;

/// Words of a tracepoint's record that there is room for.
const RECORD_WORDS: usize = SampleHeader::DATA - 1;

/// Data of records of [`super::SampleFlags::TRACEPOINT`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Tracepoint {
    /// Which of the session's events it is.
    pub event: u16,
    /// Bytes of `record`.
    pub bytes: u16,
    /// Zero.
    pub reserved: u32,
    /// The record. Of the fields that all tracepoints have there are `common_type` and `common_pid`; what the kernel had for
    /// `common_flags` and `common_preempt_count` a program does not see, they are 0.
    pub record: [u64; RECORD_WORDS],
}

impl Tracepoint {
    /// Bytes of the largest record.
    pub const MOST: usize = RECORD_WORDS * 8;
    /// Bytes of the fields that all tracepoints have: `struct trace_entry` of `include/linux/trace_events.h`.
    pub const COMMON: usize = 8;

    /// A record's data, as this.
    pub fn within(data: &mut [u64; SampleHeader::DATA]) -> &mut Self {
        bytemuck::cast_mut(data)
    }
}

/// What a program at tracepoints is told of the one that it runs for: the cookie that it is attached with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracepointCookie {
    /// Which of the session's events it is.
    pub event: u16,
    /// The tracepoint's number, `common_type` of its records.
    pub id: u16,
    /// Bytes of its records, at most [`Tracepoint::MOST`].
    pub bytes: u8,
    /// Whether stacks are wanted.
    pub stack: bool,
}

impl TracepointCookie {
    /// As the kernel keeps it.
    pub const fn pack(self) -> u64 {
        self.event as u64 | (self.id as u64) << 16 | (self.bytes as u64) << 32 | (self.stack as u64) << 40
    }

    /// From that.
    #[inline]
    pub const fn unpack(cookie: u64) -> Self {
        Self {
            event: cookie as u16,
            id: (cookie >> 16) as u16,
            bytes: (cookie >> 32) as u8,
            stack: cookie >> 40 & 1 != 0,
        }
    }
}

const _: () = {
    assert!(size_of::<Tracepoint>() == SampleHeader::DATA * 8);
    assert!(core::mem::offset_of!(Tracepoint, record) == 8);
    assert!(Tracepoint::MOST <= u8::MAX as usize);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_what_was_packed() {
        for (event, id, bytes, stack) in [(0, 0, 0, false), (1, 2, 3, true), (u16::MAX, u16::MAX, 72, false)]
        {
            let cookie = TracepointCookie { event, id, bytes, stack };
            assert_eq!(TracepointCookie::unpack(cookie.pack()), cookie);
        }
    }
}
