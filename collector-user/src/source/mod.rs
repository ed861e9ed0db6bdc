//! Sources: bytes from outside become records. A source knows the operating system and nothing of formats.
//!
//! - [`ebpf`]: samples, from programs in the kernel through a ring per CPU.
//! - [`sideband`]: mappings, names, forks, exits and kernel symbols, from dummy perf events.

pub mod ebpf;
pub mod sideband;
