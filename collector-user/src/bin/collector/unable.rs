//! `collector run` and `doctor` of systems that they are not made for: they say so.

use std::process::ExitCode;
use std::time::Instant;

use crate::args::RunArgs;

pub(crate) fn run(_: RunArgs, _: Instant) -> anyhow::Result<ExitCode> {
    anyhow::bail!(
        "recording works on Linux and Windows; here `collector convert` and `report` read what others recorded"
    )
}

pub(crate) fn doctor() -> anyhow::Result<ExitCode> {
    anyhow::bail!("doctor examines Linux and Windows: elsewhere nothing is recorded")
}
