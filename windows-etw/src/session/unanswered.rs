//! What providers were asked for, and did not do.

use std::fmt;

use crate::plan::ProviderPlan;

use super::error::Win32Error;
use super::sys::{Enable, PATIENCE};

/// What a provider was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Its events, from then on.
    Events,
    /// How things stand, when the session began.
    State,
    /// How things stand, before the session ended.
    End,
    /// Lives alone, before others were asked for [`Self::End`]: of the kernel.
    Lives,
}

/// A provider, or the kernel, that did not do what it was asked for. What it tells may be missing in part.
///
/// Shown as a line for people: the provider, what is missing, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The provider's name, or its GUID; of the kernel that of its session.
    pub provider: String,
    /// For what.
    pub asked: Asked,
    /// What Windows says: `ERROR_TIMEOUT` (1460) where it was not done in 10 s.
    pub cause: Win32Error,
}

impl Unanswered {
    /// Of one that was told at the beginning.
    pub(super) fn at_start(provider: &ProviderPlan, what: Enable, cause: Win32Error) -> Self {
        let asked = match what {
            Enable::On => Asked::Events,
            Enable::CaptureState => Asked::State,
        };
        Self { provider: provider.name.clone(), asked, cause }
    }

    /// Of one that was to be asked at the end, of a session that somebody else, or Ctrl-C, had stopped.
    pub(super) fn unasked(provider: String) -> Self {
        Self { provider, asked: Asked::End, cause: Win32Error::WMI_INSTANCE_NOT_FOUND }
    }

    /// Whether it was not asked at all, for there was no session any more.
    pub fn is_unasked(&self) -> bool {
        self.asked == Asked::End && self.cause == Win32Error::WMI_INSTANCE_NOT_FOUND
    }

    /// Of the kernel's session, which goes on to tell all.
    pub(super) fn lives(session: &str, cause: Win32Error) -> Self {
        Self { provider: session.to_owned(), asked: Asked::Lives, cause }
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, asked, cause } = self;
        if self.is_unasked() {
            return write!(
                out,
                "{provider} was not asked for its state at the end, for its session was stopped before: methods of .NET that were compiled before the recording, or ahead, have no names"
            );
        }
        let (what, missing) = match asked {
            Asked::Events => ("for its events", "its first ones may be missing"),
            Asked::State => ("for its state at the start", "what was there before may be missing"),
            Asked::End => ("for its state at the end", "names of methods may be missing"),
            Asked::Lives => {
                return write!(
                    out,
                    "{provider} went on to tell all ({cause}) while .NET told its methods: what that did is in the recording"
                );
            }
        };
        write!(out, "{provider} was asked {what}, and ")?;
        match *cause {
            Win32Error::TIMEOUT => write!(out, "was not done in {} s", PATIENCE.as_secs())?,
            cause => write!(out, "did not tell it ({cause})")?,
        }
        write!(out, ": {missing}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Scenario, Scope, When};

    #[test]
    fn it_is_said_who_was_asked_and_what_may_be_missing() {
        let scope = Scope { frequency_hz: 997, pids: vec![] };
        let plan = Scenario::by_name("dotnet_gc_analysis").unwrap().plan(&scope);
        let provider = plan.providers.iter().find(|provider| provider.when == When::Always).unwrap();
        let late = |what| Unanswered::at_start(provider, what, Win32Error::TIMEOUT).to_string();
        assert_eq!(
            late(Enable::On),
            "Microsoft-Windows-DotNETRuntime was asked for its events, and was not done in 10 s: its first ones may be missing"
        );
        assert_eq!(
            late(Enable::CaptureState),
            "Microsoft-Windows-DotNETRuntime was asked for its state at the start, and was not done in 10 s: what was there before may be missing"
        );
        let provider = "Microsoft-Windows-DotNETRuntimeRundown".to_owned();
        let cause = Win32Error::INVALID_PARAMETER;
        let refused = Unanswered { provider, asked: Asked::End, cause }.to_string();
        assert!(
            refused.contains("asked for its state at the end, and did not tell it (")
                && refused.contains("87"),
            "{refused}"
        );
        assert!(refused.ends_with("): names of methods may be missing"), "{refused}");
        let unasked = Unanswered::unasked("Microsoft-Windows-DotNETRuntimeRundown".to_owned());
        assert!(unasked.is_unasked() && unasked.to_string().contains("was not asked"), "{unasked}");
        let goes_on = Unanswered::lives("Collector", cause).to_string();
        assert!(
            goes_on.starts_with("Collector went on to tell all (") && goes_on.contains("87"),
            "{goes_on}"
        );
    }
}
