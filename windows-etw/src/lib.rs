//! Event Tracing for Windows, for Collector.
//!
//! - [`decode`]: the payloads of kernel events, from bytes alone; the same on every system, so that a trace
//!   taken on Windows can be read elsewhere.

pub mod decode;
