//! What can't be planned.

use thiserror::Error;

/// A plan that can't be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Two wishes for one provider that it can't fulfil both.
    #[error(
        "{provider} can't be recorded with events that have all keywords of {one:#x} and with those that have all of {other:#x} in \
         one session; record them one after another"
    )]
    Keywords {
        /// The provider.
        provider: String,
        /// One wish.
        one: u64,
        /// The other.
        other: u64,
    },
    /// Samples at two frequencies.
    #[error("CPUs are sampled at one interval for the whole machine, not at {one} and at {other}")]
    Intervals {
        /// One.
        one: super::SampleInterval,
        /// The other.
        other: super::SampleInterval,
    },
}

/// A text that names no event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EventSpecError {
    /// It does not begin as events of ETW do.
    #[error(
        "`{0}` is no event of ETW: those are etw:PROVIDER, etw:PROVIDER:KEYWORDS or etw:PROVIDER:KEYWORDS:LEVEL"
    )]
    Form(String),
    /// Nobody knows the provider.
    #[error(
        "the provider `{0}` is not known here; name it by its GUID, as `logman query providers` lists it on Windows, or, if it is one of \
         TraceLogging or of .NET's EventSource, as `*{0}`"
    )]
    Provider(String),
    /// The keywords are no number.
    #[error("`{0}` are no keywords: they are a number such as 0x10, a bit each; 0 or nothing is all of them")]
    Keywords(String),
    /// There is no such level.
    #[error("`{0}` is no level: it is 1 to 5, or critical, error, warning, informational or verbose")]
    Level(String),
}
