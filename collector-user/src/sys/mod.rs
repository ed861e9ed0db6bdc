//! The system calls that no safe library offers: the only `unsafe` code of this crate. Each module wraps one
//! kernel object in a type that owns it.

#![allow(unsafe_code)]

pub(crate) mod bpf;
#[cfg(feature = "ebpf")]
pub(crate) mod bpf_program;
pub(crate) mod bpf_ring;
#[cfg(feature = "ebpf")]
pub(crate) mod memory;
pub(crate) mod perf_event;
pub(crate) mod perf_ring;
pub(crate) mod spawn;
pub(crate) mod usage;
pub(crate) mod user_event;
