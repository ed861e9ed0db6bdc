//! `collector convert` of builds that record nothing: what has its stacks already, in other formats.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use collector_common::record::EventRecords;
use collector_user::etw::name_from_pdbs;
use export::format::{Contents, ExportFormat, Part, Profile};
use export::import::Imported;
use export::symbolize::Detail;
use tempfile::NamedTempFile;

use crate::args::ConvertArgs;
use crate::chosen::chosen;
use crate::imported::{readable, reader_of, summary};
use crate::report::unless_closed;
use crate::{Usage, say, tell};

/// An output with its format; a file is there when it is whole.
struct Output {
    path: PathBuf,
    format: &'static dyn ExportFormat,
    /// None of stdout.
    file: Option<NamedTempFile>,
}

pub(crate) fn convert(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
    let mut taken = BTreeSet::new();
    let is_read =
        |path: &&PathBuf| path.canonicalize().is_ok_and(|it| args.input.canonicalize().ok() == Some(it));
    if let Some(path) = args.outputs.iter().find(is_read) {
        let path = path.display();
        return Err(Usage(format!("{path} is what is read, and would be replaced: name another file")).into());
    }
    let outputs: anyhow::Result<Vec<Output>> =
        args.outputs.iter().map(|path| Output::open(path, args.format.as_deref(), &mut taken)).collect();
    let outputs = outputs?;
    let name = if args.input.as_os_str() == "-" { "stdin".into() } else { args.input.display().to_string() };
    let failed = || format!("{name} can't be converted");
    let mut file = input(&args.input).with_context(failed)?;
    let reader = reader_of(&mut file).with_context(failed)?.with_context(|| {
        format!(
            "{name} is nothing that can be read here, which is: {}; perf.data is read on Linux",
            readable()
        )
    })?;
    let has_events = outputs.iter().any(|output| output.format.holds().has(Part::Events));
    let event_bytes = if has_events { EventRecords::LIMIT } else { 0 };
    let imported = reader.import_with_events(&mut file, event_bytes).with_context(failed)?;
    let Imported { machine, mut symbols, left_out } = imported;
    say(&summary(&machine));
    for line in left_out {
        say(&format!("warning: {line}"));
    }
    if !args.no_symbols {
        let detail = if args.no_inline { Detail::Names } else { Detail::Lines };
        symbols = name_from_pdbs(&machine, symbols, detail);
    }
    let profile = Profile { machine: &machine, symbols: &symbols };
    let contents = Contents::of(profile);
    for output in &outputs {
        if let Some(left_out) = contents.left_out(output.format) {
            say(&format!("{}: {left_out}", output.path.display()));
        }
    }
    let mut failures = outputs.into_iter().filter_map(|output| output.write(profile).err());
    let Some(mut last) = failures.next() else { return Ok(ExitCode::SUCCESS) };
    for failure in failures {
        tell(&std::mem::replace(&mut last, failure));
    }
    Err(last)
}

/// What is read; what comes through stdin is stored first.
fn input(path: &Path) -> io::Result<File> {
    if path.as_os_str() != "-" {
        return File::open(path);
    }
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.rewind()?;
    Ok(file)
}

impl Output {
    fn open(path: &Path, format: Option<&str>, taken: &mut BTreeSet<PathBuf>) -> anyhow::Result<Self> {
        let shown = path.display();
        if path.to_str().is_some_and(|text| text.contains("://")) {
            return Err(Usage(format!("{shown}: receivers are sent to on Linux; name a file")).into());
        }
        let format = chosen(path, format, &[])?;
        if !taken.insert(path.to_owned()) {
            return Err(Usage(format!(
                "{shown} is named twice as an output: leave one out, or name another file"
            ))
            .into());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = || NamedTempFile::new_in(folder).with_context(|| format!("{shown} can't be written"));
        let file = if path.as_os_str() == "-" { None } else { Some(file()?) };
        Ok(Self { path: path.to_owned(), format, file })
    }

    fn write(self, profile: Profile<'_>) -> anyhow::Result<()> {
        let Self { path, format, file } = self;
        let Some(mut file) = file else {
            let mut out = BufWriter::new(io::stdout().lock());
            let written = format.export(profile, &mut out).and_then(|()| out.flush());
            return unless_closed(written).context("stdout can't be written");
        };
        let failed = || format!("{} can't be written", path.display());
        let mut out = BufWriter::with_capacity(256 << 10, file.as_file_mut());
        format.export(profile, &mut out).and_then(|()| out.flush()).with_context(failed)?;
        drop(out);
        file.persist(&path).with_context(failed)?;
        say(&format!("wrote {}", path.display()));
        Ok(())
    }
}
