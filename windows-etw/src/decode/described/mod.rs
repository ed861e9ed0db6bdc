//! Events that come with what their payload means: those of `TraceLogging` describe themselves, and traces that were merged hold what
//! Windows knew of manifests (`TRACE_EVENT_INFO`), or manifests that programs write as events (`EventSource` of .NET). What else is known is in the tables of [`kernel`](super::kernel) and
//! [`clr`](super::clr); [`Schemas`] asks all of them.

mod error;
mod event_info;
mod manifest;
mod reader;
mod schemas;
mod trace_logging;
mod types;

pub use error::{DescriptionError, DescriptionProblem};
pub use event_info::{EventInfo, InfoKey};
pub use schemas::{Ask, Described, Schemas};
pub use trace_logging::{ProviderTraits, TraceLoggingEvent};

#[cfg(test)]
mod tests;
