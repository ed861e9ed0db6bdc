//! Maps that programs of others write events to: of type ringbuf, or `perf_event_array`. In: a map, by the path at which it is
//! pinned, by its number, or by a descriptor. Out: its records, as an event of a session.
//!
//! ```text
//! text ── spec ─► MapSpec ── map ─► Hook with the map ── session ─► ring: the map's own ring ──┬─► records
//!                                                                └► slots: a perf event a CPU ─┘
//! ```
//!
//! - [`MapSpec::parse`] takes what `collector run -e` takes: `bpf:/sys/fs/bpf/NAME`, `bpf:id:NUMBER`, `bpf:fd:NUMBER`, and behind it fields as
//!   `(pid:u32, _:u32, ns:u64, comm:char[16])`. They lie one behind the other, without gaps: where the program's structure
//!   has some, `_` takes their place. Without fields a record is one field `data` of bytes.
//! - [`MapSpec::open`] makes a [`Hook`](crate::source::Hook) of it, and [`Hook::bpf_map`](crate::source::Hook::bpf_map) one of
//!   an [`Event`](collector_common::event::Event) of one's own.
//!
//! ```no_run
//! use collector_user::source::bpf_map::MapSpec;
//!
//! let mut hook = MapSpec::parse("bpf:/sys/fs/bpf/events(pid:u32, _:u32, ns:u64)")?.open()?;
//! let ns = hook.event.format().field_ref("ns").expect("it was asked for");
//! hook.event.add_closure(move |data| Ok(println!("{} ns", data.try_get_u64(ns)?)));
//! // And with `SessionSettings { events: vec![hook], .. }` into a session.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Of a ring map (minimum kernel 5.8), a record's time is when it is taken, and its thread is what the fields `pid` and `tid`
//! say, if there are such; `pid` alone is a main thread. There are no stacks. What waits in the ring when the recording starts is
//! taken, too. A ring has one position that is read up to: what is taken here no other reader gets. The programs alone
//! know what they had no room for.
//!
//! Of a perf event array (minimum kernel 4.4), the kernel tells time, thread and CPU, and stacks where they are asked for.
//! It hands the records of a CPU to the one event whose descriptor is in the CPU's slot of the map: a recording puts its own
//! there, whatever was there before, and takes them out when it ends. Up to seven bytes of no meaning follow a record's own, as
//! the kernel fills it up to eight.
//!
//! The records are those of all processes, whichever a recording is of: a filter chooses among them.

mod error;
mod fields;
mod info;
mod map;
mod ring;
mod slots;
mod spec;

pub use error::BpfMapError;
pub use fields::MapField;
pub use map::{BpfMap, MapKind};
pub use spec::{MapPlace, MapSpec};

pub(crate) use map::open_sources;
