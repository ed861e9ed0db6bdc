//! Outputs that are URLs: receivers of OTLP profiles.

use std::path::Path;

#[cfg(feature = "otlp")]
use anyhow::Context as _;
#[cfg(feature = "otlp")]
use collector_user::otlp::{self, Settings};
use collector_user::output::Places;
use export::format::otlp::Otlp;
use export::format::{ExportFormat as _, Profile};

use crate::Usage;
#[cfg(feature = "otlp")]
use crate::say;

/// A receiver that listens.
#[cfg(feature = "otlp")]
pub(crate) struct Receiver(otlp::Receiver);

/// This build has none.
#[cfg(not(feature = "otlp"))]
pub(crate) enum Receiver {}

/// Of a URL; `format` may name its format.
fn url<'a>(path: &'a Path, format: Option<&str>, taken: &mut Places) -> Result<&'a str, Usage> {
    let name = path.display();
    if let Some(format) = format.filter(|format| *format != Otlp.name()) {
        let only = Otlp.name();
        return Err(Usage(format!(
            "{name} takes --format {only} alone, not {format}: leave it out, or name a file"
        )));
    }
    if !taken.take(path) {
        return Err(Usage(format!("{name} is named twice as an output")));
    }
    Ok(path.to_str().unwrap_or_default())
}

#[cfg(feature = "otlp")]
impl Receiver {
    /// Makes sure that somebody listens at a URL.
    pub(crate) fn open(path: &Path, format: Option<&str>, taken: &mut Places) -> anyhow::Result<Self> {
        let url = url(path, format, taken)?;
        let address = url.parse().map_err(|error| Usage(format!("{url} is no receiver: {error}")))?;
        let settings = Settings::from_environment().map_err(|error| Usage(error.to_string()))?;
        let receiver = otlp::Receiver::new(address, settings);
        receiver.reach().with_context(|| format!("nobody listens at {url}: start the receiver first"))?;
        Ok(Self(receiver))
    }

    /// What it is called.
    pub(crate) fn name(&self) -> String {
        self.0.address().to_string()
    }

    /// Sends the profile.
    pub(crate) fn send(&self, profile: Profile<'_>) -> anyhow::Result<()> {
        let warn = |line: &str| say(&format!("warning: {line}"));
        let sent = self.0.send(profile, warn).with_context(|| format!("not all came to {}", self.name()))?;
        say(&format!("sent {sent} to {}", self.name()));
        for message in &sent.reasons {
            say(&format!("warning: the receiver says: {message}"));
        }
        Ok(())
    }
}

#[cfg(not(feature = "otlp"))]
impl Receiver {
    pub(crate) fn open(path: &Path, format: Option<&str>, taken: &mut Places) -> anyhow::Result<Self> {
        let url = url(path, format, taken)?;
        Err(Usage(format!("{url}: this build sends nothing: build with --features otlp, or name a file"))
            .into())
    }

    pub(crate) fn name(&self) -> String {
        match *self {}
    }

    pub(crate) fn send(&self, _: Profile<'_>) -> anyhow::Result<()> {
        match *self {}
    }
}
