//! The bytes that a receiver answers with in, what they say out.
//!
//! `ExportProfilesServiceResponse` of opentelemetry-proto 1.10 (`collector/profiles/v1development/profiles_service.proto`), and what tells
//! of failures: `google/rpc/status.proto` and `RetryInfo` of `google/rpc/error_details.proto`, both of googleapis, and `Duration` of
//! protobuf.

use std::time::Duration;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost::{DecodeError, Message};

/// What a receiver says that has taken a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// How many profiles it has not taken.
    pub rejected_profiles: u64,
    /// Why not, or what it wants to be known; empty for nothing.
    pub message: String,
}

impl Response {
    /// Of the body of an answer.
    ///
    /// # Errors
    /// When it is something else.
    pub fn of(body: &[u8]) -> Result<Self, DecodeError> {
        let partial = ExportProfilesServiceResponse::decode(body)?.partial_success.unwrap_or_default();
        let rejected_profiles = u64::try_from(partial.rejected_profiles).unwrap_or(0);
        Ok(Self { rejected_profiles, message: partial.error_message })
    }
}

/// What a receiver says that has not taken a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Why, for people.
    pub message: String,
    /// How long it wants to be left in peace.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// Of the body of an answer by HTTP.
    ///
    /// # Errors
    /// When it is something else.
    pub fn of(body: &[u8]) -> Result<Self, DecodeError> {
        let status = Status::decode(body)?;
        let info = status.details.iter().find(|any| any.type_url.ends_with("/google.rpc.RetryInfo"));
        let delay = info.and_then(|any| RetryInfo::decode(any.value.as_slice()).ok()?.retry_delay);
        Ok(Self { message: status.message, retry_after: delay.and_then(GoogleDuration::positive) })
    }

    /// Of gRPC's `grpc-status-details-bin`; `None` where that is none.
    pub fn of_header(header: &[u8]) -> Option<Self> {
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        let bytes = GeneralPurpose::new(&STANDARD, config).decode(header).ok()?;
        Self::of(&bytes).ok()
    }
}

#[derive(Clone, PartialEq, Eq, Message)]
struct ExportProfilesServiceResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_profiles: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<GoogleDuration>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct GoogleDuration {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

impl GoogleDuration {
    fn positive(self) -> Option<Duration> {
        let seconds = Duration::from_secs(u64::try_from(self.seconds).ok()?);
        let nanos = Duration::from_nanos(u64::try_from(self.nanos).ok()?);
        seconds.checked_add(nanos)
    }
}
