//! A URL among the outputs in, a recording sent there out.

#[cfg(feature = "otlp")]
use crate::otlp::{self, Settings};
use export::format::Profile;

use super::ExportError;

/// A receiver that listens.
#[cfg(feature = "otlp")]
pub(super) struct Receiver {
    receiver: otlp::Receiver,
    /// As the settings have it.
    url: String,
}

/// This build has none.
#[cfg(not(feature = "otlp"))]
pub(super) enum Receiver {}

#[cfg(feature = "otlp")]
impl Receiver {
    /// Makes sure that somebody listens at a URL.
    pub(super) fn open(url: &str) -> Result<Self, ExportError> {
        let address = url.parse::<otlp::Address>().map_err(|error| failed(url, error))?;
        let settings = Settings::from_environment().map_err(|error| failed(url, error))?;
        let receiver = otlp::Receiver::new(address, settings);
        receiver.reach().map_err(|error| failed(url, error))?;
        Ok(Self { receiver, url: url.to_owned() })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Sends a profile; what was sent, and what was said meanwhile, a line each.
    pub(super) fn send(&self, profile: Profile<'_>) -> Result<Vec<String>, ExportError> {
        let mut lines = Vec::new();
        let sent = self.receiver.send(profile, |line| lines.push(line.to_owned()));
        let sent = sent.map_err(|lost| failed(&self.url, lost))?;
        lines.push(format!("{}: {sent}", self.url));
        lines.extend(sent.reasons.iter().map(|reason| format!("{} says: {reason}", self.url)));
        Ok(lines)
    }
}

#[cfg(feature = "otlp")]
fn failed(url: &str, source: impl std::error::Error + Send + Sync + 'static) -> ExportError {
    ExportError::Receiver { url: url.to_owned(), source: Box::new(source) }
}

#[cfg(not(feature = "otlp"))]
impl Receiver {
    pub(super) fn open(url: &str) -> Result<Self, ExportError> {
        let source = "this build sends nothing: build with the feature `otlp`".into();
        Err(ExportError::Receiver { url: url.to_owned(), source })
    }

    pub(super) fn url(&self) -> &str {
        match *self {}
    }

    pub(super) fn send(&self, _: Profile<'_>) -> Result<Vec<String>, ExportError> {
        match *self {}
    }
}
