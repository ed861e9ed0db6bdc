//! One attempt to send one request: what it comes to.

use std::time::Duration;

use export::format::otlp::Response;

/// Sends requests to one receiver.
pub(super) trait Transport {
    /// Sends one, which is packed if the settings say so, and waits for the answer so long.
    fn export(&mut self, body: &[u8], timeout: Duration) -> Result<Response, Failure>;
}

/// The most bytes of an answer that are taken, as the specification has it.
pub(super) const MOST_OF_ANSWER: usize = 4 << 20;

/// Characters of what a receiver says that are told.
const MOST_TOLD: usize = 300;

/// Why a request was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It may be taken later: when the receiver wants it, if it says so.
    Passing { why: String, after: Option<Duration> },
    /// It will not be taken, and another may be.
    Refused(String),
    /// It will not be taken, nor will another.
    Final(String),
}

impl Failure {
    /// One that may pass, of which no more is known.
    pub(super) fn passing(why: impl Into<String>) -> Self {
        Self::Passing { why: why.into(), after: None }
    }

    /// There was no answer for so long.
    pub(super) fn timeout(timeout: Duration) -> Self {
        Self::passing(format!("no answer within {timeout:.1?}"))
    }
}

/// Bytes of an answer as they can be told: in one line, and not too long.
pub(super) fn told(text: &str) -> String {
    let mut told: String = text.trim().chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    if let Some((at, _)) = told.char_indices().nth(MOST_TOLD) {
        told.truncate(at);
        told.push_str("...");
    }
    told
}
