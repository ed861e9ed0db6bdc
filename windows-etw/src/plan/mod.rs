//! What ETW is asked for, as data: which flags of the kernel, which events with stacks, which providers by which keywords, how
//! often samples are taken, in how large buffers. Nothing here calls Windows; the same on every system.
//!
//! ```
//! use windows_etw::plan::{Scenario, Scope};
//!
//! let scope = Scope { frequency_hz: 997, pids: vec![] };
//! let mut plan = Scenario::by_name("cpu_profiling").unwrap().plan(&scope);
//! plan.add(Scenario::by_name("off_cpu").unwrap().plan(&scope))?;
//! println!("{plan}");
//! # Ok::<(), windows_etw::plan::PlanError>(())
//! ```
//!
//! - [`Scenario`]: a plan by the name of what a person wants to know.
//! - [`EventSpec`]: a plan by the name of a provider, as in `etw:Microsoft-Windows-Kernel-Process:0x10`.
//! - [`Plan`]: what of that the system logger does, what providers do, and what a session of its own does.

mod alive;
mod buffers;
mod compose;
mod error;
mod event;
mod heap;
mod interval;
mod kernel;
mod left;
mod named;
mod providers;
mod scenario;
mod show;
mod user;

pub use alive::{AliveProcess, Family};
pub use buffers::Buffers;
pub use compose::{Note, Plan, Privilege, SystemPlan};
pub use error::{EventSpecError, PlanError};
pub use event::EventSpec;
pub use heap::HeapPlan;
pub use interval::SampleInterval;
pub use kernel::{Flags, KernelEvent};
pub use left::IntervalChange;
pub use providers::{KNOWN_PROVIDERS, KnownProvider};
pub use scenario::{SCENARIOS, Scenario, Scope};
pub use user::{EventIds, Level, MOST_IDS, MOST_PIDS, ProviderPlan, Stacks, When};
