//! The types that cross a boundary of Collector.
//!
//! - [`wire`]: what the eBPF programs and user space agree on. `no_std`; the only part built without the
//!   `std` feature.
//! - [`ids`]: newtypes for process ids, times and addresses.
//! - [`event`]: events of any source: formats, fields, data, closures and filters.
//! - [`glob`]: names with wildcards.
//! - [`payload`]: payloads of events whose layouts are known beforehand, as those of .NET's runtime.
//! - [`perf`]: the records of `perf_event_open`, read and written.
//! - [`intern`]: strings and call stacks stored once.
//! - [`track`]: which process, and which mapping of it, was behind an address at a time.
//! - [`record`]: the universal record layer, [`record::ExportMachine`]; exporters see only this.
//! - [`remedy`]: what helps with files that can't be read.
//! - [`sharing`]: state that closures share.
//! - [`loss`]: the ledger in which every lost sample has a cause.
//!
//! Architecture invariant: nothing here does I/O, and nothing here knows an operating system's API.
#![cfg_attr(not(feature = "std"), no_std)]

pub mod wire;

#[cfg(feature = "std")]
mod byte_order;
#[cfg(feature = "std")]
pub mod event;
#[cfg(feature = "std")]
pub mod glob;
#[cfg(feature = "std")]
pub mod ids;
#[cfg(feature = "std")]
pub mod intern;
#[cfg(feature = "std")]
pub mod loss;
#[cfg(feature = "std")]
pub mod payload;
#[cfg(feature = "std")]
pub mod perf;
#[cfg(feature = "std")]
pub mod record;
#[cfg(feature = "std")]
pub mod remedy;
#[cfg(feature = "std")]
pub mod sharing;
#[cfg(feature = "std")]
pub mod track;
