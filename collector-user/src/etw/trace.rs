//! The header of a trace in, what its records can't be understood without out.

use collector_common::event::FileTime;
use windows_etw::etl::{Clock, TraceHeader, TraceVersion};
use windows_etw::record::PointerSize;

/// What is known of a trace before its records.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    /// Its clock.
    pub clock: Clock,
    /// When the machine was booted, where that is told.
    pub boot: Option<FileTime>,
    /// When the trace ended, where that is told.
    pub end: Option<FileTime>,
    /// CPUs of the machine; 0 where that is not told.
    pub cpus: u32,
    /// Version of Windows; 0 where that is not told.
    pub windows: TraceVersion,
    /// Width of the kernel's pointers.
    pub pointer_size: PointerSize,
}

impl From<&TraceHeader> for Trace {
    fn from(header: &TraceHeader) -> Self {
        Self {
            clock: header.clock,
            boot: Some(header.boot).filter(|boot| boot.0 > 0),
            end: header.end,
            cpus: header.cpus,
            windows: header.version,
            pointer_size: header.pointer_size,
        }
    }
}
