//! `collector report`: the hottest functions of a recorded profile.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use export::format::pprof;
use export::hottest::Hottest;

use crate::args::ReportArgs;

pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let name = args.input.display();
    let file = File::open(&args.input).with_context(|| name.to_string())?;
    let profile = pprof::read(file).with_context(|| format!("{name} is no pprof profile"))?;
    let hottest = Hottest::of_recorded(&profile, profile.default_type());
    print_text(&hottest.table(args.top)).context("stdout can't be written")?;
    Ok(ExitCode::SUCCESS)
}

/// Prints text on stdout. A reader that has seen enough and closed it, as `head` does, is no error.
pub(crate) fn print_text(table: &impl Display) -> io::Result<()> {
    match write!(io::stdout().lock(), "{table}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
