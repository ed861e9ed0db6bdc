//! `collector convert` to receivers of OTLP profiles that are not ours, and that fail in all the ways in which they do.
//!
//! - `sending`: what is sent, as folded stacks of known counts, and what the program says.
//! - `http_receiver`, `http`: a receiver by HTTP, whose messages OpenTelemetry's crate reads.
//! - `grpc_receiver`, `grpc`: gRPC's own server for Python (`grpc_receiver.py`), with OpenTelemetry's messages for it.

#![cfg(all(target_os = "linux", feature = "otlp"))]
#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

#[cfg(feature = "otlp-grpc")]
mod grpc;
#[cfg(feature = "otlp-grpc")]
mod grpc_receiver;
mod http;
mod http_receiver;
mod sending;
