//! `collector report`: the hottest functions of a recorded profile.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use export::format::Profile;
use export::hottest::Hottest;

use crate::args::ReportArgs;
use crate::imported::{Opened, import, reader_for, reader_of, summary, tell_warnings};
use crate::kind::choose;
use crate::say;
use crate::unread::{By, unopened, unreadable, unreadable_file};

pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let name = args.input.display();
    let mut opened = Opened::of(&args.input).map_err(|error| unopened(&args.input, &error, By::Report))?;
    let failed = || format!("{name} can't be reported");
    let reader = match &mut opened {
        Opened::File(file) => reader_of(file, &args.input).with_context(failed)?,
        Opened::Stream(stream) => reader_for(stream.begin(), &args.input),
    };
    let Some(reader) = reader else {
        let error = match &mut opened {
            Opened::File(file) => unreadable_file(file, &args.input, By::Report),
            Opened::Stream(stream) => unreadable(stream.begin(), &args.input, By::Report),
        };
        return Err(error).with_context(failed);
    };
    let file = match opened {
        Opened::File(file) => file,
        Opened::Stream(stream) => stream.store(reader.most_bytes()).with_context(failed)?,
    };
    let path = Some(args.input.as_path()).filter(|path| path.as_os_str() != "-");
    let mut taken = import(reader, file, path, 0).with_context(failed)?;
    let imported = &taken.imported;
    if imported.machine.system().lost.is_some_and(|lost| lost > 0) {
        say(&format!("{name}: {}", summary(&imported.machine)));
    }
    tell_warnings(imported);
    let chosen = choose(&mut taken.imported.machine, args.kind.as_deref())?;
    if let Some(warning) = chosen.as_ref().and_then(|chosen| chosen.warning.as_ref()) {
        say(&format!("warning: {warning}"));
    }
    let (machine, symbols) = taken.named_if_dumped();
    let profile = Profile { machine: &machine, symbols: &symbols };
    let hottest = match chosen {
        Some(chosen) if !chosen.is_sampled => Hottest::of(profile, chosen.kind),
        _ => Hottest::of_main(profile),
    };
    print_hottest(&hottest, args.top)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the first functions of the kind of sample that is to be looked at first on stdout, on a terminal no wider than that.
pub(crate) fn print_hottest(hottest: &Hottest, count: usize) -> anyhow::Result<()> {
    let table = hottest.table(count);
    let table = match terminal_size::terminal_size_of(io::stdout()) {
        Some((width, _)) => format!("{table:.*}", usize::from(width.0)),
        None => table.to_string(),
    };
    print_text(&table).context("stdout can't be written")
}

/// Prints text on stdout.
pub(crate) fn print_text(table: &impl Display) -> io::Result<()> {
    unless_closed(write!(io::stdout().lock(), "{table}"))
}

/// A reader that has seen enough and closed a pipe, as `head` does, is no error.
pub(crate) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
