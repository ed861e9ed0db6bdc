//! Samples from eBPF programs: loads and attaches them, drains their rings, keeps account of what they lost.
//!
//! Minimum kernel: 5.8 (ring buffers, `CAP_BPF`); from 5.17 on the ends of all stacks are known.

mod account;
mod allocations;
mod asked;
mod attached;
mod blocks;
mod btf;
mod calls;
mod error;
mod faults;
mod functions;
mod kernel_locks;
mod links;
mod lives;
mod load;
mod mapped;
mod multi_probe;
mod object;
mod part;
mod peers;
mod places;
mod preempt_count;
mod rings;
mod sampler;
mod switches;
mod tracepoints;
mod transfers;

pub use account::KernelAccount;
pub use btf::{BtfError, KernelTypes};
pub use error::LoadError;
pub use load::check;
pub use object::is_built_in;
pub use sampler::Sampler;
