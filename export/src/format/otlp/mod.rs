//! OTLP profiles: what OpenTelemetry's collector and the backends behind it take.
//!
//! Source of the format: `opentelemetry/proto/profiles/v1development/profiles.proto` of open-telemetry/opentelemetry-proto 1.10, and
//! the semantic conventions for names of attributes. The signal is under development: fields were given other numbers before 1.10,
//! and a file of another version is accepted by readers and empty.
//!
//! - `proto`: the messages.
//! - `response`: what a receiver answers.
//! - `requests`: a recording in parts that receivers take.
//! - `write`: the format; `rows` are the samples that differ in nothing but their time and value, `samples` what they become, and
//!   `dictionary` what they refer to; `resource` is what is told of a process.

mod dictionary;
mod proto;
mod requests;
mod resource;
mod response;
mod rows;
mod samples;
mod write;

pub use requests::{Request, Requests};
pub use response::{Refusal, Response};
pub use write::Otlp;
