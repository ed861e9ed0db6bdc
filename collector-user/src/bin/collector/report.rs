//! `collector report`: the hottest functions of a recorded profile.

use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use collector_common::record::ExportMachine;
use export::format::Profile;
use export::hottest::{Hottest, printable};

use crate::args::ReportArgs;
use crate::imported::{Opened, import, readable, reader_for, reader_of};

pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let name = args.input.display();
    let mut opened = Opened::of(&args.input).map_err(|error| {
        anyhow::anyhow!(
            "{name} can't be read: {error}; name a profile that `collector run -o FILE.pb.gz` has written"
        )
    })?;
    let failed = || format!("{name} can't be reported");
    let reader = match &mut opened {
        Opened::File(file) => reader_of(file, &args.input).with_context(failed)?,
        Opened::Stream(stream) => reader_for(stream.begin(), &args.input),
    };
    let Some(reader) = reader else {
        anyhow::bail!(
            "{name} is no profile that can be read ({}); `collector convert` makes one of a perf.data",
            readable()
        )
    };
    let file = match opened {
        Opened::File(file) => file,
        Opened::Stream(stream) => stream.store(reader.most_bytes()).with_context(failed)?,
    };
    let path = Some(args.input.as_path()).filter(|path| path.as_os_str() != "-");
    let (machine, symbols) = import(reader, file, path, 0).with_context(failed)?.named_if_dumped();
    let hottest = Hottest::of_main(Profile { machine: &machine, symbols: &symbols });
    print_hottest(&hottest, args.top, &machine)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the first functions of the kind of sample that is to be looked at first on stdout, on a terminal no wider than that.
pub(crate) fn print_hottest(hottest: &Hottest, count: usize, machine: &ExportMachine) -> anyhow::Result<()> {
    let table = hottest.table(count);
    let table = match terminal_size::terminal_size_of(io::stdout()) {
        Some((width, _)) => format!("{table:.*}", usize::from(width.0)),
        None => table.to_string(),
    };
    let shown = machine.shown_kind();
    let others = machine.samples().kinds().filter(|kind| Some(*kind) != shown);
    let names = others.filter_map(|kind| machine.kinds().get(usize::from(kind.0)));
    let names: Vec<&str> = names.map(|kind| machine.string(kind.name)).collect();
    print_text(&with_kinds(&table, &hottest.name, &names)).context("stdout can't be written")
}

/// A table whose head says what its samples are called, and what others there are.
fn with_kinds(table: &str, shown: &str, others: &[&str]) -> String {
    /// As many are named.
    const MOST: usize = 3;
    let (head, rows) = table.split_once('\n').unwrap_or((table, ""));
    let mut kinds = printable(shown);
    let named: Vec<_> = others.iter().take(MOST).map(|name| printable(name)).collect();
    if !named.is_empty() {
        kinds.push_str("; not shown: ");
        kinds.push_str(&named.join(", "));
    }
    if let Some(more @ 1..) = others.len().checked_sub(MOST) {
        let _ = write!(kinds, " and {more} more");
    }
    format!("{head} ({kinds})\n{rows}")
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

#[cfg(test)]
mod tests {
    use super::with_kinds;

    #[test]
    fn the_head_names_the_kind_and_others() {
        let table = "self  function, of 9.10 MiB\n1  f\n";
        let head = |others: &[&str]| {
            let text = with_kinds(table, "alloc_space", others);
            text.strip_suffix("\n1  f\n").unwrap().to_owned()
        };
        assert_eq!(head(&[]), "self  function, of 9.10 MiB (alloc_space)");
        assert_eq!(head(&["cpu"]), "self  function, of 9.10 MiB (alloc_space; not shown: cpu)");
        assert!(head(&["a", "b", "c", "d", "e"]).ends_with("(alloc_space; not shown: a, b, c and 2 more)"));
        assert!(!head(&["a\nb"]).contains('\n'));
    }
}
