//! Requests by HTTP ("OTLP/HTTP" of the specification), and by HTTPS with the certificates that the system trusts.

use std::io::{self, Read as _};
use std::time::Duration;

use export::format::otlp::{Refusal, Response};
use jiff::Timestamp;
use ureq::http::StatusCode;
use ureq::tls::TlsConfig;
use ureq::{Agent, Body};

use super::address::Address;
use super::retry_after::retry_after;
use super::settings::Settings;
use super::transport::{Failure, MOST_OF_ANSWER, Transport, told};
use crate::tls::as_the_system_trusts;

/// One receiver, with the connection to it.
pub(super) struct Http {
    agent: Agent,
    url: String,
    headers: Vec<(String, String)>,
}

impl Http {
    pub(super) fn new(address: &Address, settings: &Settings) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A request that is sent elsewhere becomes one without a body.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("collector/", env!("CARGO_PKG_VERSION")))
            .tls_config(if address.is_secure { as_the_system_trusts() } else { TlsConfig::default() })
            .build();
        let encoding = settings.gzip.then(|| ("content-encoding".to_owned(), "gzip".to_owned()));
        let kind = ("content-type".to_owned(), "application/x-protobuf".to_owned());
        let headers = settings.headers.iter().cloned().chain([kind]).chain(encoding).collect();
        Self { agent: Agent::new_with_config(config), url: address.url().to_owned(), headers }
    }
}

impl Transport for Http {
    fn export(&mut self, body: &[u8], timeout: Duration) -> Result<Response, Failure> {
        let mut request = self.agent.post(&self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.config().timeout_global(Some(timeout)).build();
        let mut response = request.send(body).map_err(|error| failed(error, timeout))?;
        let (status, headers) = (response.status(), response.headers());
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let after = header("retry-after").and_then(|text| retry_after(&text, Timestamp::now()));
        let kind = header("content-type").unwrap_or_default();
        let answer = read(response.body_mut());
        if status.is_success() {
            let answer = answer.map_err(|error| failed(error, timeout))?;
            let answer = answer.ok_or_else(|| Failure::Final("its answer is too long".to_owned()))?;
            let other = || Failure::Final(format!("status {status} with an answer that is no OTLP: {kind}"));
            return Response::of(&answer).map_err(|_| other());
        }
        // Of a failure the status alone says enough.
        Err(refused(status, after, &kind, &answer.ok().flatten().unwrap_or_default()))
    }
}

/// The whole body; `None` where there is too much of it.
fn read(body: &mut Body) -> Result<Option<Vec<u8>>, ureq::Error> {
    let mut bytes = Vec::new();
    let reader = body.with_config().limit(u64::MAX).reader();
    reader.take(MOST_OF_ANSWER as u64 + 1).read_to_end(&mut bytes).map_err(ureq::Error::from)?;
    Ok((bytes.len() <= MOST_OF_ANSWER).then_some(bytes))
}

/// What a status means ("Retryable Response Codes").
fn refused(status: StatusCode, after: Option<Duration>, kind: &str, body: &[u8]) -> Failure {
    let refusal = Refusal::of(body).ok().filter(|it| !it.message.is_empty());
    let message = refusal.map(|it| it.message);
    let text = || kind.starts_with("text/plain").then(|| String::from_utf8_lossy(body).into_owned());
    let message = message.or_else(text).map(|it| told(&it)).filter(|it| !it.is_empty());
    let why = format!("status {status}{}", message.map(|it| format!(": {it}")).unwrap_or_default());
    match status.as_u16() {
        429 | 502..=504 => Failure::Passing { why, after },
        413 => Failure::Refused(format!("{why}: a smaller COLLECTOR_OTLP_LIMIT makes smaller requests")),
        404 => Failure::Final(format!("{why}: profiles may be off there, or have another path")),
        300..=399 | 401 | 403 | 405 | 407 | 415 => Failure::Final(why),
        _ => Failure::Refused(why),
    }
}

/// Without an answer ("OTLP/HTTP Connection").
fn failed(error: ureq::Error, timeout: Duration) -> Failure {
    let is_timeout = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    match error {
        ureq::Error::Timeout(_) => Failure::timeout(timeout),
        ureq::Error::Io(error) if is_timeout(&error) => Failure::timeout(timeout),
        // So a certificate is refused.
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            Failure::Final(error.to_string())
        }
        error @ (ureq::Error::Io(_)
        | ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::Protocol(_)) => Failure::passing(error.to_string()),
        error => Failure::Final(error.to_string()),
    }
}
