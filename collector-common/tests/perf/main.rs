//! The records of `perf_event_open`, read and written.
#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod attr;
mod branch_counters;
mod each_kind;
mod files;
mod known;
mod layout;
mod ordered;
mod peer_faults;
mod peer_records;
mod peers;
mod recorded;
mod report;
mod report_user;
mod round_trip;
mod shown;
mod user;
mod user_layout;
mod written;
