//! `collector run` and `doctor` of builds that can't record: they say why.

use std::process::ExitCode;
use std::time::Instant;

use crate::args::RunArgs;

pub(crate) fn run(_: RunArgs, _: Instant) -> anyhow::Result<ExitCode> {
    nothing_here()
}

pub(crate) fn doctor() -> anyhow::Result<ExitCode> {
    nothing_here()
}

fn nothing_here() -> anyhow::Result<ExitCode> {
    anyhow::bail!("recording works on Linux; here `collector convert` and `report` read what others recorded")
}
