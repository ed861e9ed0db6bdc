//! Probes: functions of programs and of the kernel as events, with their arguments and return values.
//!
//! ```text
//! text ── spec ─► Probe ── elf, usdt ─► locations ── definition ─► lines ── registered ─► an event of tracefs ─► Hook
//! ```
//!
//! - [`Probe::parse`] takes what `collector run -e` takes: `uprobe:/path:function(name:type, ...)`, `uretprobe:` with the
//!   returned value, `usdt:/path:provider:name`, `kprobe:function` and `kretprobe:function`.
//! - [`Probe::attach`] makes an event of it, which is gone with the [`Hook`](crate::source::Hook) at the latest;
//!   `Probe::attach_programs` has a program of ours at the kernel's functions where that is quicker.
//!
//! ```no_run
//! use collector_user::probe::Probe;
//! use collector_user::tracefs::Tracefs;
//!
//! let mut hooks = Probe::parse("uprobe:/usr/bin/program:work(count:u32, text:str)")?.attach(&Tracefs::open()?)?;
//! for hook in &mut hooks {
//!     let text = hook.event.format().field_ref("text").expect("it was asked for");
//!     hook.event.add_closure(move |data| Ok(println!("{}", data.try_get_str(text)?)));
//! }
//! // And with `SessionSettings { events: hooks, .. }` into a session.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An argument of a marker that the kernel can't fetch, as one in a register of floating-point numbers, is left out unless
//! it is asked for. `common_pid` and its like are fields of every probe, and so is the address that was hit.
//!
//! Minimum kernel versions: 3.14 for probes of programs with arguments, 4.20 for markers (`usdt`) that are switched on by
//! a semaphore, 5.4 for a probe with more than one location, which a pattern mostly has. Probes of the kernel need one that
//! was built with `CONFIG_KPROBE_EVENTS`. Root's rights are needed. Source of the semantics:
//! `Documentation/trace/uprobetracer.rst`, `kprobetrace.rst`.
//!
//! Of return probes: while a function is under one, its return address on the stack is the kernel's, so stacks of other
//! events may end there.

#[cfg(feature = "ebpf")]
pub(crate) mod allocators;
mod argument;
mod attach;
mod definition;
mod elf;
mod error;
mod frames;
mod functions;
mod instructions;
mod kernel;
#[cfg(feature = "ebpf")]
mod linkage;
mod machine;
mod misses;
mod registered;
mod spec;
mod usdt;

pub use argument::{Argument, ArgumentType};
pub use error::ProbeError;
pub use kernel::KernelFunctions;
pub use spec::{Moment, Place, Probe};

pub(crate) use misses::Misses;
pub(crate) use registered::{Missed, Registered};
