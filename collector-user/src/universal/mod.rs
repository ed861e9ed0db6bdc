//! Recording a part of what a program does: settings in, files out, and hooks on the way.
//!
//! ```no_run
//! use collector_user::universal::{ExportSettings, UniversalExporter};
//! # fn work() {}
//!
//! # fn main() -> Result<(), collector_user::universal::ExportError> {
//! let settings = ExportSettings::default()
//!     .with_scenario("cpu_profiling")
//!     .with_scenario("off_cpu")
//!     .with_pid(std::process::id())
//!     .with_output("work.html")
//!     .with_output("work.pb.gz");
//! let mut exporter = UniversalExporter::new(settings);
//! exporter.start_collection()?;
//! work();
//! let exported = exporter.stop_and_export()?;
//! println!("{} samples, {} lost", exported.recording.ledger.delivered(), exported.recording.ledger.total_lost());
//! # Ok(())
//! # }
//! ```
//!
//! The recording has a thread of its own, from when all of it is recorded until it is stopped. For closures on single events,
//! and for what need not leave its thread, there is [`crate::session::Session`].

mod error;
mod exporter;
mod settings;

pub use error::ExportError;
pub use exporter::{Exported, UniversalExporter};
pub use settings::ExportSettings;
