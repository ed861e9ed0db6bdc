//! The environment variables of OpenTelemetry's exporters in, how recordings are sent out.
//!
//! Those of profiles alone (`OTEL_EXPORTER_OTLP_PROFILES_…`) count more than those of all signals (`OTEL_EXPORTER_OTLP_…`). Where a
//! recording goes is said by its URL, and not by a variable.

use std::time::Duration;

use ureq::http::{HeaderName, HeaderValue};

/// The longest that one attempt may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Below the 4 MiB that receivers by gRPC usually take.
const LIMIT: usize = 4_000_000;

/// The smallest limit: one sample with what is told of its process takes some kilobytes.
const LEAST: usize = 64 << 10;

/// The largest: what the specification wants to be the limit of receivers.
const MOST: usize = 64 << 20;

/// How recordings are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Sent with each request: `HEADERS`.
    pub headers: Vec<(String, String)>,
    /// The longest that an attempt may take: `TIMEOUT`, 10 s. A request is given up after six times that.
    pub timeout: Duration,
    /// Whether requests are packed: `COMPRESSION`, unless it is `none`.
    pub gzip: bool,
    /// The most bytes of a request before it is packed: `COLLECTOR_OTLP_LIMIT`, 4,000,000.
    pub limit: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { headers: Vec::new(), timeout: TIMEOUT, gzip: true, limit: LIMIT }
    }
}

/// A variable that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {why}")]
pub struct SettingError {
    /// Its name.
    pub variable: String,
    /// What it should be.
    pub why: String,
}

impl Settings {
    /// What the variables of this process say.
    ///
    /// # Errors
    /// When one of them means nothing.
    pub fn from_environment() -> Result<Self, SettingError> {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingError> {
        let given = |name: &str| {
            let text = variable(name)?.trim().to_owned();
            (!text.is_empty()).then(|| (name.to_owned(), text))
        };
        let of_signal = |name: &str| {
            let own = given(&format!("OTEL_EXPORTER_OTLP_PROFILES_{name}"));
            own.or_else(|| given(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let mut settings = Self::default();
        if let Some((variable, text)) = of_signal("TIMEOUT") {
            let millis = text.parse().ok().filter(|&millis: &u32| millis > 0);
            let why = || format!("is {text:?}, and should be milliseconds");
            let millis = millis.ok_or_else(|| SettingError { variable, why: why() })?;
            settings.timeout = Duration::from_millis(millis.into());
        }
        if let Some((variable, text)) = of_signal("COMPRESSION") {
            settings.gzip = match text.as_str() {
                "gzip" => true,
                "none" => false,
                _ => {
                    let why = format!("is {text:?}, and should be gzip or none");
                    return Err(SettingError { variable, why });
                }
            };
        }
        if let Some((variable, text)) = of_signal("HEADERS") {
            // What it holds is secret.
            let why = "should be headers such as name=value,other=value".to_owned();
            let headers = text.split(',').filter(|header| !header.trim().is_empty()).map(header);
            let headers: Option<_> = headers.collect();
            settings.headers = headers.ok_or(SettingError { variable, why })?;
        }
        if let Some((variable, text)) = given("COLLECTOR_OTLP_LIMIT") {
            let bytes = text.parse().ok().filter(|bytes| (LEAST..=MOST).contains(bytes));
            let why = || format!("is {text:?}, and should be bytes, from {LEAST} to {MOST}");
            settings.limit = bytes.ok_or_else(|| SettingError { variable, why: why() })?;
        }
        Ok(settings)
    }
}

/// `name=value`, as in W3C's baggage: the value may have `%20` in it.
fn header(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let name: HeaderName = name.trim().parse().ok()?;
    let value = percent_decoded(value.trim())?;
    let value = String::from_utf8(value).ok()?;
    HeaderValue::from_str(&value).ok()?;
    Some((name.as_str().to_owned(), value))
}

/// Bytes with `%XX` for some of them; `None` where a `%` is followed by something else.
pub(super) fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Settings, SettingError> {
        Settings::of(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_variables_it_is_as_the_specification_has_it() {
        let settings = of(&[]).unwrap();
        assert_eq!(settings.timeout, Duration::from_secs(10));
        assert!(settings.gzip && settings.headers.is_empty() && settings.limit < 4 << 20);
        assert_eq!(of(&[("OTEL_EXPORTER_OTLP_TIMEOUT", " ")]).unwrap(), settings);
    }

    #[test]
    fn variables_of_profiles_count_more() {
        let settings = of(&[
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1000"),
            ("OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", "250"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20abc=, x-tenant = 7 ,"),
            ("COLLECTOR_OTLP_LIMIT", "70000"),
        ])
        .unwrap();
        assert_eq!(
            (settings.timeout, settings.gzip, settings.limit),
            (Duration::from_millis(250), false, 70_000)
        );
        let headers = [("authorization", "Bearer abc="), ("x-tenant", "7")];
        assert_eq!(settings.headers, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_variable_that_means_nothing_is_told() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
            ("OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION", "zstd"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=secret"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0d%0a"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=secret%4"),
            ("COLLECTOR_OTLP_LIMIT", "1"),
            ("COLLECTOR_OTLP_LIMIT", "67108865"),
        ] {
            let error = of(&[(name, value)]).unwrap_err();
            assert_eq!(error.variable, name);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
