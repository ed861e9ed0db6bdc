//! Samples from plain perf events: a ring per CPU that all events of that CPU write to, without any program in the kernel.
//! The kernel copies a fixed size of each user stack, so it costs more than [`super::ebpf`] and loses more; but it works on a
//! user's own processes without any right, and where BPF is not built in.
//!
//! Minimum kernel: 4.1 (`use_clockid`). From 6.0 on the kernel counts what it had no room for itself (`PERF_FORMAT_LOST`);
//! before, losses behind the last record of a ring are not told.

mod account;
mod attributes;
mod error;
mod events;
mod reading;
mod throttled;
mod twice;

#[cfg(test)]
mod tests;

pub use error::PerfError;
pub use events::PerfEvents;
