//! Sources: bytes from outside become records. A source knows the operating system and nothing of formats.
//!
//! - [`Source`]: what a session asks of one, so that an embedder can bring its own.
//! - [`ebpf`]: samples, from programs in the kernel through a ring per CPU.
//! - [`perf`]: samples, from plain perf events, where programs are not permitted or not built in.
//! - [`bpf_map`]: what programs of others write into maps.
//! - [`sideband`]: mappings, names, forks, exits and kernel symbols, from dummy perf events.

pub mod bpf_map;
pub(crate) mod calls;
mod cgroup;
mod cpu_life;
#[cfg(feature = "ebpf")]
pub mod ebpf;
mod interface;
mod named;
pub mod perf;
mod raw_number;
pub(crate) mod remedy;
mod request;
pub(crate) mod scope;
mod settings;
mod shared_ring;
pub mod sideband;
mod ticks;

pub use crate::records::{EventIndex, RELEASED, SourceRecord};
pub use interface::{Account, Gone, LeftBlock, NewFile, Source, ToldLife, ToldProgram};
pub use named::{Named, NamedError};
pub use request::{CLOCK_NAMES, COUNTERS, Copied, Counter, EventRequest, Hook, Program, Trigger};
pub use scope::Rights;
pub use settings::{Settings, Shortest, Targets};
