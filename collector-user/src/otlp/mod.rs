//! Recordings to receivers of OTLP profiles, as OpenTelemetry's collector: by HTTP, and with the feature `otlp-grpc` by gRPC.
//!
//! ```text
//! export::format::otlp::Requests ─► send ─► http ─► receiver
//!                                    │  └─► grpc ─► receiver
//!                                    └─ again, later, where it may pass
//! ```
//!
//! Source: "OTLP Specification" 1.10 (`docs/specification.md` of open-telemetry/opentelemetry-proto), and "OpenTelemetry Protocol
//! Exporter" (`specification/protocol/exporter.md` of open-telemetry/opentelemetry-specification) for variables of the environment.
//!
//! - `address`: where it goes; `settings`: how.
//! - `receiver`: requests, one after the other, and what became of them.
//! - `transport`: what one attempt comes to.

mod address;
#[cfg(feature = "otlp-grpc")]
mod grpc;
#[cfg(feature = "otlp-grpc")]
mod grpc_status;
mod http;
mod receiver;
mod retry_after;
mod sent;
mod settings;
mod transport;

pub use address::{Address, AddressError};
pub use receiver::Receiver;
pub use sent::{Lost, Sent};
pub use settings::{SettingError, Settings};
