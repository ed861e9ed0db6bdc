//! What gRPC says of a call in, whether the request was taken out ("Failures" of the specification of OTLP).

use std::time::Duration;

use export::format::otlp::{Refusal, Response};
use ureq::http::{HeaderMap, StatusCode};

use super::settings::percent_decoded;
use super::transport::{Failure, told};

/// `grpc-status`, with what is told beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status {
    code: u32,
    message: String,
    retry_after: Option<Duration>,
}

impl Status {
    /// Of what comes before an answer, or after it; `None` where it is not in there.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let code = headers.get("grpc-status")?.to_str().ok()?.trim().parse().ok()?;
        let message = headers.get("grpc-message").and_then(|it| percent_decoded(it.to_str().ok()?));
        let details = headers.get("grpc-status-details-bin");
        let details = details.and_then(|it| Refusal::of_header(it.as_bytes()));
        Some(Self {
            code,
            message: told(&String::from_utf8_lossy(&message.unwrap_or_default())),
            retry_after: details.and_then(|it| it.retry_after),
        })
    }
}

/// The names of codes (`doc/statuscodes.md` of grpc/grpc).
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// What a status means for the request that it answers, with the message that came before it.
pub(super) fn outcome(status: Status, message: Option<&[u8]>) -> Result<Response, Failure> {
    let Status { code, message: text, retry_after: after } = status;
    let name = usize::try_from(code).ok().and_then(|code| CODES.get(code)).copied();
    let name = name.map_or_else(|| format!("status {code}"), str::to_owned);
    let why = if text.is_empty() { name.clone() } else { format!("{name}: {text}") };
    match name.as_str() {
        "OK" => {
            let response = message.and_then(|message| Response::of(message).ok());
            let other = || Failure::Final("its answer is not that of a receiver of profiles".to_owned());
            response.ok_or_else(other)
        }
        "CANCELLED" | "DEADLINE_EXCEEDED" | "ABORTED" | "OUT_OF_RANGE" | "UNAVAILABLE" | "DATA_LOSS" => {
            Err(Failure::Passing { why, after })
        }
        // The receiver says when it recovers, if it does.
        "RESOURCE_EXHAUSTED" if after.is_some() => Err(Failure::Passing { why, after }),
        "RESOURCE_EXHAUSTED" => Err(Failure::Refused(format!(
            "{why}: if that is the size, a smaller COLLECTOR_OTLP_LIMIT makes smaller requests"
        ))),
        "UNIMPLEMENTED" => Err(Failure::Final(format!("{why}: profiles may be off there"))),
        "NOT_FOUND" | "PERMISSION_DENIED" | "UNAUTHENTICATED" => Err(Failure::Final(why)),
        _ => Err(Failure::Refused(why)),
    }
}

/// An answer that is none of gRPC's, as that of a proxy (`doc/http-grpc-status-mapping.md` of grpc/grpc).
pub(super) fn of_http(status: StatusCode) -> Failure {
    let why = format!("status {status} of HTTP");
    match status.as_u16() {
        429 | 502..=504 => Failure::passing(why),
        _ => Failure::Final(why),
    }
}

#[cfg(test)]
mod tests {
    use ureq::http::HeaderValue;

    use super::*;

    fn of(headers: &[(&'static str, &str)]) -> Option<Result<Response, Failure>> {
        let headers = headers
            .iter()
            .map(|&(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap()));
        let status = Status::of(&headers.collect())?;
        Some(outcome(status, Some(&[])))
    }

    #[test]
    fn codes_are_told_apart_as_the_specification_has_it() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("grpc-status", "many")]), None);
        assert_eq!(of(&[("grpc-status", "0")]), Some(Ok(Response::default())));
        // The table of "Failures".
        let passing: Vec<usize> = (1..17)
            .filter(|code| {
                let outcome = of(&[("grpc-status", &code.to_string())]);
                matches!(outcome, Some(Err(Failure::Passing { after: None, .. })))
            })
            .collect();
        assert_eq!(passing, [1, 4, 10, 11, 14, 15]);
        let refused = of(&[("grpc-status", "3"), ("grpc-message", "no%20such stack")]);
        assert_eq!(refused, Some(Err(Failure::Refused("INVALID_ARGUMENT: no such stack".to_owned()))));
        let ok = Status { code: 0, message: String::new(), retry_after: None };
        assert!(matches!(outcome(ok, None), Err(Failure::Final(_))));
        let unknown = of(&[("grpc-status", "99")]);
        assert_eq!(unknown, Some(Err(Failure::Refused("status 99".to_owned()))));
    }

    #[test]
    fn a_receiver_that_recovers_says_when() {
        // Status { code: 8, details: [Any { RetryInfo { retry_delay: 2 s } }] }
        let name = "type.googleapis.com/google.rpc.RetryInfo";
        let any = [&[0x0a, name.len() as u8], name.as_bytes(), &[0x12, 4, 0x0a, 2, 0x08, 2]].concat();
        let status = [&[0x08, 8, 0x1a, any.len() as u8], any.as_slice()].concat();
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", HeaderValue::from_static("8"));
        assert!(matches!(outcome(Status::of(&headers).unwrap(), None), Err(Failure::Refused(_))));
        headers.insert("grpc-status-details-bin", base64(&status).parse().unwrap());
        let after = Some(Duration::from_secs(2));
        let why = "RESOURCE_EXHAUSTED".to_owned();
        assert_eq!(outcome(Status::of(&headers).unwrap(), None), Err(Failure::Passing { why, after }));
    }

    /// Without padding, as gRPC sends it.
    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for three in bytes.chunks(3) {
            let bits =
                three.iter().fold(0, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - three.len()));
            for digit in 0..=three.len() {
                text.push(char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize]));
            }
        }
        text
    }
}
