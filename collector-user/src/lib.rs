//! Records what a machine is doing.
//!
//! Data takes one way through it:
//!
//! ```text
//! source::ebpf ───────────┐
//! source::bpf_map ────────┤
//! source::perf ──samples──┼─► recorder ─► collector_common::record::ExportMachine ─► export
//! source::sideband ───────┤     │  ▲
//! replay ─────────────────┘     │  └── procfs (what ran before the recording)
//!                     modules ──┘
//! ```
//!
//! [`session::Session`] is the way in: it opens the sources, runs the rounds and gives a [`session::Recording`], and so does
//! [`replay::Replay`] with what was recorded before. [`scenario`] has what to record by names. [`universal::UniversalExporter`]
//! goes all the way, from settings to files, on a thread of its own.
//! [`etw`] makes a recording of Windows' own traces, [`minidump`] one of a process's threads as Windows dumped them. What records on Linux is there alone, and recording through programs in the kernel needs the
//! feature `ebpf`; what was recorded, there or on Windows, is read on every system, with `this_machine` for what a recording may share with the
//! one that reads it.

pub mod stats;

#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
pub mod clock;
#[cfg(feature = "debuginfod")]
mod debuginfod;
#[cfg(target_os = "linux")]
mod devices;
#[cfg(any(target_os = "linux", windows))]
pub mod doctor;
pub mod etw;
mod event_clock;
mod hooks;
mod image_places;
#[cfg(target_os = "linux")]
pub mod journal;
#[cfg(target_os = "linux")]
pub mod kernel;
mod longest_name;
pub mod minidump;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, unused_imports, reason = "what records on Linux needs it")
)]
pub mod modules;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod output;
mod packed;
#[cfg(target_os = "linux")]
pub mod probe;
pub mod procfs;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, unused_imports, reason = "what records on Linux needs it")
)]
pub mod recorder;
mod recording;
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "what records on Linux needs it"))]
pub mod records;
pub mod replay;
#[cfg(target_os = "linux")]
pub mod scenario;
#[cfg(target_os = "linux")]
pub mod session;
#[cfg(target_os = "linux")]
pub mod source;
pub mod spill;
mod symbol_path;
#[cfg(target_os = "linux")]
mod sys;
mod this_machine;
#[cfg(any(feature = "otlp", feature = "debuginfod"))]
mod tls;
pub mod tracefs;
#[cfg(target_os = "linux")]
mod transfers;
#[cfg(any(target_os = "linux", windows))]
pub mod universal;
#[cfg(target_os = "linux")]
pub mod user_events;
mod wakers;

/// The README's example compiles.
#[cfg(all(doctest, target_os = "linux", feature = "ebpf"))]
#[doc = include_str!("../../README.md")]
struct Readme;
