//! The kernels there are. Out: for each its name on the command line, the suite of Debian that has it, and which of that
//! suite's packages it is.

use std::fmt;

use clap::ValueEnum;

/// A kernel of Debian's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kernel {
    /// Debian 11's
    #[value(name = "5.10")]
    V5_10,
    /// Debian 12's
    #[value(name = "6.1")]
    V6_1,
    /// Debian 13's
    #[value(name = "6.12")]
    V6_12,
    /// That of Debian's unstable suite
    Newest,
    /// Built from Debian 13's sources, with user events, which none of the others has; only where it is named
    UserEvents,
}

impl Kernel {
    /// Those that Debian builds.
    pub(super) const MATRIX: [Self; 4] = [Self::V5_10, Self::V6_1, Self::V6_12, Self::Newest];

    /// The option that it is built without, where tests are of what that brings: these say so, and don't fail.
    pub(super) fn lacks(self) -> Option<&'static str> {
        (self != Self::UserEvents).then_some("CONFIG_USER_EVENTS")
    }

    /// The suite that has it.
    pub(super) fn suite(self) -> &'static str {
        match self {
            Self::V5_10 => "bullseye",
            Self::V6_1 => "bookworm",
            Self::V6_12 | Self::UserEvents => "trixie",
            Self::Newest => "sid",
        }
    }

    /// Begins and ends of its packages' names, with the version between them. The others of the same begin are flavours, which
    /// have a word between.
    pub(super) fn packages(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::V5_10 => &[("linux-image-5.10.", "-amd64-unsigned")],
            Self::V6_1 => &[("linux-image-6.1.", "-amd64-unsigned")],
            Self::V6_12 => &[("linux-image-6.12.", "-amd64")],
            // Its image and its modules are packages of their own.
            Self::Newest => &[("linux-binary-", "-amd64"), ("linux-modules-", "-amd64")],
            Self::UserEvents => &[("linux-source-", "")],
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::V5_10 => "5.10",
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::Newest => "newest",
            Self::UserEvents => "user-events",
        })
    }
}
