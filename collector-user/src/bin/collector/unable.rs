//! `collector run` and `doctor` of systems that they are not made for: they say so.

use std::process::ExitCode;
#[cfg(not(windows))]
use std::time::Instant;

#[cfg(not(windows))]
use crate::args::RunArgs;

#[cfg(not(windows))]
pub(crate) fn run(_: RunArgs, _: Instant) -> anyhow::Result<ExitCode> {
    anyhow::bail!(
        "recording works on Linux and Windows; here `collector convert` and `report` read what others recorded"
    )
}

/// Of Linux, whose kernels allow this or that; on Windows who is an administrator may record.
pub(crate) fn doctor() -> anyhow::Result<ExitCode> {
    anyhow::bail!(
        "doctor examines Linux; on Windows `collector run` works in a terminal that was opened by \"Run as administrator\", and says so in \
         others"
    )
}
