//! `collector run`, `convert` and `doctor` of builds that can't record: they say why.

use std::process::ExitCode;
use std::time::Instant;

use crate::args::{ConvertArgs, RunArgs};

pub(crate) fn run(_: RunArgs, _: Instant) -> anyhow::Result<ExitCode> {
    nothing_here()
}

pub(crate) fn doctor() -> anyhow::Result<ExitCode> {
    nothing_here()
}

pub(crate) fn convert(_: &ConvertArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("recordings are converted on Linux; here `collector report` reads profiles")
}

fn nothing_here() -> anyhow::Result<ExitCode> {
    anyhow::bail!("recording works on Linux; here `collector report` reads profiles")
}
