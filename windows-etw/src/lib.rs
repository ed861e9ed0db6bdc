//! Event Tracing for Windows, for Collector.
//!
//! - [`record`]: an event as ETW tells it, from a live session or a file.
//! - [`plan`]: what ETW is asked for, for each scenario, as data.
//! - [`etl`]: the records of an `.etl` file.
//! - [`part`]: the sessions of a recording, and what their files are called.
//! - `session`: on Windows, sessions that carry a plan out, and their records as they come.
//! - [`decode`]: what events mean, from bytes alone; the same on every system, so that a trace taken on Windows can be read
//!   elsewhere.
//! - [`dispatch`]: closures on events, from a live session or a file.

pub mod decode;
pub mod dispatch;
pub mod etl;
pub mod part;
pub mod plan;
pub mod record;
#[cfg(windows)]
pub mod session;
