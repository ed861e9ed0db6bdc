//! What a session lost.

use std::ops::AddAssign;

/// Counts that Windows keeps of each session (`EVENT_TRACE_PROPERTIES`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that found no buffer (`EventsLost`).
    pub events: u64,
    /// Buffers that could not be written to the file (`LogBuffersLost`).
    pub file_buffers: u64,
    /// Buffers that were full before what reads them had time (`RealTimeBuffersLost`).
    pub live_buffers: u64,
}

impl AddAssign for Losses {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.file_buffers += other.file_buffers;
        self.live_buffers += other.live_buffers;
    }
}
