//! Sources: bytes from outside become records. A source knows the operating system and nothing of formats.
//!
//! - [`Source`]: what a session asks of one, so that an embedder can bring its own.
//! - [`ebpf`]: samples, from programs in the kernel through a ring per CPU.
//! - [`sideband`]: mappings, names, forks, exits and kernel symbols, from dummy perf events.

#[cfg(feature = "ebpf")]
pub mod ebpf;
mod interface;
mod record;
mod settings;
pub mod sideband;

pub use interface::{Account, Source};
pub use record::{EventIndex, SourceRecord};
pub use settings::{Settings, Targets};
