//! What a trace says of itself: `TRACE_LOGFILE_HEADER`, the payload of a file's first record.
//!
//! | offset, 64 bits | 32 bits | | |
//! |---|---|---|---|
//! | 0 | 0 | u32 | bytes of a buffer |
//! | 4 | 4 | 4 × u8 | version: major and minor of Windows, sub and sub-minor of the file's layout |
//! | 8 | 8 | u32 | build of Windows |
//! | 0xc | 0xc | u32 | CPUs |
//! | 0x10 | 0x10 | u64 | end, a `FILETIME`; 0 where the session was not closed |
//! | 0x18 | 0x18 | u32 | the timer's resolution, 100 ns |
//! | 0x1c | 0x1c | u32 | largest size of the file, MB |
//! | 0x20 | 0x20 | u32 | mode, `EVENT_TRACE_*_MODE` |
//! | 0x24 | 0x24 | u32 | buffers that were written |
//! | 0x28 | 0x28 | u32 | buffers at the start |
//! | 0x2c | 0x2c | u32 | bytes of a pointer |
//! | 0x30 | 0x30 | u32 | events that were lost |
//! | 0x34 | 0x34 | u32 | MHz of the CPU |
//! | 0x38 | 0x38 | 2 × pointer | mean nothing in a file |
//! | 0x48 | 0x40 | 0xac | `TIME_ZONE_INFORMATION` |
//! | 0xf8 | 0xf0 | u64 | boot, a `FILETIME` |
//! | 0x100 | 0xf8 | u64 | ticks of the performance counter in a second |
//! | 0x108 | 0x100 | u64 | start, a `FILETIME` |
//! | 0x110 | 0x108 | u32 | which clock |
//! | 0x114 | 0x10c | u32 | buffers that were lost |
//! | 0x118 | 0x110 | UTF-16 | the session's name, zero, the file's name, zero |
//!
//! Source: `evntrace.h`, `timezoneapi.h`; the names' place is read off files.

use collector_common::event::FileTime;

use super::bytes::{array, i32_at, u32_at, u64_at, utf16};
use super::clock::{Clock, ClockKind};
use crate::record::PointerSize;

/// `EVENT_TRACE_FILE_MODE_CIRCULAR`: the newest buffers replace the oldest.
const MODE_CIRCULAR: u32 = 2;

/// Where the traced machine was, and what it added to its time to get UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeZone {
    /// Minutes from local time to UTC.
    pub bias: i32,
    /// Minutes more in standard time.
    pub standard_bias: i32,
    /// Minutes more in daylight saving time.
    pub daylight_bias: i32,
    /// Name of the standard time; it may be a place in a library, as `@tzres.dll,-212`.
    pub standard_name: String,
    /// Name of the daylight saving time.
    pub daylight_name: String,
}

/// Version of Windows, and of the file's layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceVersion {
    /// Of Windows, as 10.
    pub major: u8,
    /// Of Windows.
    pub minor: u8,
    /// Of the layout, as 5.
    pub sub: u8,
    /// Of the layout.
    pub sub_minor: u8,
    /// The build of Windows, as 19045.
    pub build: u32,
}

/// What a trace says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    /// Bytes of a buffer.
    pub buffer_size: u32,
    /// Of what wrote it.
    pub version: TraceVersion,
    /// CPUs of the machine.
    pub cpus: u32,
    /// Width of the kernel's pointers.
    pub pointer_size: PointerSize,
    /// Nominal speed of the CPU in MHz.
    pub cpu_mhz: u32,
    /// The clock, with the time of the start.
    pub clock: Clock,
    /// When the trace ended; none where the session was not closed.
    pub end: Option<FileTime>,
    /// When the machine was booted.
    pub boot: FileTime,
    /// Resolution of the timer in units of 100 ns.
    pub timer_resolution: u32,
    /// `EVENT_TRACE_*_MODE` bits.
    pub mode: u32,
    /// The most MB that the file may have; 0 is any.
    pub most_megabytes: u32,
    /// Buffers that were written, of which a circular file has the last.
    pub buffers_written: u32,
    /// Buffers at the start, that a circular file keeps.
    pub start_buffers: u32,
    /// Events that ETW lost.
    pub events_lost: u32,
    /// Buffers that ETW lost.
    pub buffers_lost: u32,
    /// Of the traced machine.
    pub time_zone: TimeZone,
    /// Of the session.
    pub session: String,
    /// Of the file, as the session knew it.
    pub file: String,
}

impl TraceHeader {
    /// From the payload of the first record, which came at `ticks`. None where it is cut, or can't be.
    pub(super) fn parse(payload: &[u8], layout: PointerSize, ticks: i64) -> Option<Self> {
        let is_wide = layout == PointerSize::Bits64;
        let (zone, behind) = if is_wide { (0x48, 0xf8) } else { (0x40, 0xf0) };
        let number = |at: usize| u32_at(payload, at);
        let [major, minor, sub, sub_minor] = array(payload, 4)?;
        let cpu_mhz = number(0x34)?;
        let (kind, frequency) = clock(number(behind + 0x18)?, u64_at(payload, behind + 8)?, cpu_mhz);
        let (session, length) = utf16(payload.get(behind + 0x20..)?);
        let (file, _) = utf16(payload.get(behind + 0x20 + length..).unwrap_or_default());
        Some(Self {
            buffer_size: number(0)?,
            version: TraceVersion { major, minor, sub, sub_minor, build: number(8)? },
            cpus: number(0xc)?,
            pointer_size: match number(0x2c)? {
                4 => PointerSize::Bits32,
                8 => PointerSize::Bits64,
                _ => layout,
            },
            cpu_mhz,
            clock: Clock {
                kind,
                frequency,
                start_ticks: ticks,
                start: FileTime(u64_at(payload, behind + 0x10)?),
            },
            end: u64_at(payload, 0x10).filter(|end| *end != 0).map(FileTime),
            boot: FileTime(u64_at(payload, behind)?),
            timer_resolution: number(0x18)?,
            mode: number(0x20)?,
            most_megabytes: number(0x1c)?,
            buffers_written: number(0x24)?,
            start_buffers: number(0x28)?,
            events_lost: number(0x30)?,
            buffers_lost: number(behind + 0x1c)?,
            time_zone: time_zone(payload.get(zone..zone + 0xac)?)?,
            session,
            file,
        })
    }

    /// Whether newer buffers replaced older ones, so that not all that were written are there.
    pub fn is_circular(&self) -> bool {
        self.mode & MODE_CIRCULAR != 0
    }
}

/// Which clock, and its ticks in a second.
fn clock(flags: u32, performance_counter: u64, cpu_mhz: u32) -> (ClockKind, u64) {
    match flags {
        3 if cpu_mhz > 0 => (ClockKind::CpuCycles, u64::from(cpu_mhz) * 1_000_000),
        // 0 is the default, which is the performance counter.
        0 | 1 if performance_counter > 0 => (ClockKind::PerformanceCounter, performance_counter),
        _ => (ClockKind::SystemTime, 10_000_000),
    }
}

/// `TIME_ZONE_INFORMATION`: bias, name (64 bytes), date (16 bytes) and bias of the standard time, and the same of daylight
/// saving time.
fn time_zone(bytes: &[u8]) -> Option<TimeZone> {
    Some(TimeZone {
        bias: i32_at(bytes, 0)?,
        standard_bias: i32_at(bytes, 0x54)?,
        daylight_bias: i32_at(bytes, 0xa8)?,
        standard_name: utf16(bytes.get(4..0x44)?).0,
        daylight_name: utf16(bytes.get(0x58..0x98)?).0,
    })
}
