//! What became of a recording that was sent, in counts.

use std::fmt;

/// What was sent of a recording, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Requests that were taken.
    pub requests: u64,
    /// Samples in them.
    pub samples: u64,
    /// Profiles in them.
    pub profiles: u64,
    /// Profiles in them that the receiver says it has not taken.
    pub rejected_profiles: u64,
    /// Requests that the receiver has refused.
    pub refused_requests: u64,
    /// Samples in them.
    pub refused_samples: u64,
    /// Samples of which one alone is beyond the limit of a request.
    pub too_large: u64,
    /// Samples that were not tried, or of which it is not known whether they have come, as the receiver was given up.
    pub given_up: u64,
    /// Why, each reason once; and what the receiver says of what it has taken.
    pub reasons: Vec<String>,
}

/// Reasons that are told.
const MOST_REASONS: usize = 5;

impl Sent {
    /// Whether all of it has come.
    pub fn is_whole(&self) -> bool {
        self.rejected_profiles + self.refused_samples + self.too_large + self.given_up == 0
    }

    pub(super) fn note(&mut self, reason: String) {
        if !reason.is_empty() && self.reasons.len() < MOST_REASONS && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples in {} requests", self.samples, self.requests)
    }
}

/// Not all of a recording was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost(pub Sent);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sent = &self.0;
        write!(f, "{sent} were taken")?;
        if sent.rejected_profiles > 0 {
            write!(f, ", but {} of their {} profiles rejected", sent.rejected_profiles, sent.profiles)?;
        }
        if sent.refused_samples > 0 {
            write!(f, "; {} in {} requests were refused", sent.refused_samples, sent.refused_requests)?;
        }
        if sent.too_large > 0 {
            write!(f, "; {} are too large for a request", sent.too_large)?;
        }
        if sent.given_up > 0 {
            write!(f, "; {} were given up", sent.given_up)?;
        }
        if !sent.reasons.is_empty() {
            write!(f, ": {}", sent.reasons.join("; "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Lost {}
