//! Recording a part of what a program does: settings in, files out, and hooks on the way.
//!
//! ```
//! use collector_user::universal::{ExportError, ExportSettings, RECORDER, UniversalExporter, Verdict};
//! # use std::time::{Duration, Instant};
//! # fn work() {
//! #     let started = Instant::now();
//! #     while started.elapsed() < Duration::from_millis(300) {}
//! # }
//!
//! # fn collect(folder: &std::path::Path) -> Result<(), ExportError> {
//! let settings = ExportSettings::default()
//!     .with_scenario("cpu_profiling")
//!     .with_event("context-switches")
//!     .with_pid(std::process::id())
//!     .with_output(folder.join("work.html"))
//!     .with_output(folder.join("work.pb.gz"));
//! let mut exporter = UniversalExporter::new(settings);
//! exporter.on_sample(|view, sample| {
//!     let is_own = view.string(view.thread(sample.thread).name) != RECORDER;
//!     if is_own { Verdict::Keep } else { Verdict::Drop }
//! });
//! exporter.start_collection()?;
//! work();
//! let exported = exporter.stop_and_export()?;
//! println!("{} samples, {} lost", exported.recording.ledger.delivered(), exported.recording.ledger.total_lost());
//! # assert!(exported.recording.ledger.delivered() > 20);
//! # assert!(exported.written.iter().all(|path| path.metadata().unwrap().len() > 1000));
//! # Ok(())
//! # }
//! # let folder = tempfile::tempdir().unwrap();
//! # match collect(folder.path()) {
//! #     Err(error) if std::env::var_os("COLLECTOR_LIVE").is_none() => println!("nothing was recorded: {error}"),
//! #     collected => collected.unwrap(),
//! # }
//! ```
//!
//! The same program is compiled for Linux and for Windows, without a `cfg` in it; what is of Linux alone among [`ExportSettings`]' methods
//! says so. On Windows a file is written while it is recorded, beside the first output, and read when it is stopped: so hooks on samples are
//! called then, all samples are in memory, and the sessions are called after the program's file (`Collector.work` of `work.exe`). It takes an
//! administrator's rights, as on Linux it takes root's.
//!
//! The recording has a thread of its own, [`RECORDER`], from when all of it is recorded until it is stopped. Whoever records the own
//! process records that thread, too: what it takes to record is in the profile, unless a hook leaves it out, as here.
//! Outputs are opened before anything is recorded, as [`crate::output`] does it: they appear when they are whole. An output may be a URL,
//! too: a receiver of OTLP profiles, as `collector run -o` takes it, with the feature `otlp`. For closures on single
//! events, and for what need not leave its thread, there is `session::Session` on Linux; on Windows `windows_etw::dispatch` has closures for
//! the events of a session or a file.

mod error;
mod exporter;
#[cfg(target_os = "linux")]
mod linux;
mod output;
mod receiver;
mod settings;
mod split;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(windows)]
use windows as system;

pub use error::{ExportError, Incomplete};
pub use exporter::{Exported, RECORDER, UniversalExporter};
pub use settings::ExportSettings;
pub use system::{EventError, Recording, SessionError};

pub use crate::hooks::{SampleHook, SampleView, Verdict};
