//! `collector convert`: a recording in other formats.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use collector_common::perf::file::{FileError, FileReader, copy};
use collector_user::output::Places;
use collector_user::replay::{Recording, Replay, ReplayError, UNFINISHED, open_recording};
use export::format::Profile;
use export::import::ImportFormat;
use export::symbolize::Detail;

use crate::args::{ConvertArgs, detail};
use crate::imported::{Opened, import, reader_for, reader_of, summary, tell_warnings};
use crate::kind;
use crate::output::{Output, event_bytes, kept_events, tell_all_but_last, tell_failures, tell_left_out};
use crate::raw::{NAME, RawOutput, is_raw, refuse_no_inline};
use crate::unread::{By, unopened, unreadable, unreadable_file};
use crate::{Usage, finished, say};

pub(crate) fn convert(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
    let mut taken = Places::default();
    let format = args.format.as_deref();
    if args.no_inline {
        refuse_no_inline(&args.outputs, format)?;
    }
    kind::refuse_of_records(args.kind.as_deref(), &args.outputs, format)?;
    if let Some(path) = args.outputs.iter().find(|path| is_same(path, &args.input)) {
        let path = path.display();
        return Err(Usage(format!("{path} is what is read, and would be replaced: name another file")).into());
    }
    let (raw, others): (Vec<_>, Vec<_>) = args.outputs.iter().partition(|path| is_raw(path, format));
    let raw =
        raw.into_iter().map(|path| RawOutput::open(path, &mut taken)).collect::<anyhow::Result<Vec<_>>>()?;
    let others = others
        .into_iter()
        .map(|path| Output::open(path, format, &mut taken))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let input = Input::of(&args.input)?;
    if input.is_stream() && args.outputs.len() > 1 && !raw.is_empty() {
        return Err(Usage(
            "a stream can be read once: write it as .perf.data first, and convert that".to_owned(),
        )
        .into());
    }
    let mut results: Vec<_> = raw.into_iter().map(|output| input.copy(output)).collect();
    if !others.is_empty() {
        let detail = detail(args.no_inline, args.no_symbols);
        results.extend(input.write(others, detail, args.kind.as_deref())?);
    }
    tell_all_but_last(results)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let [one, other] = [one, other].map(Path::canonicalize);
    one.is_ok_and(|one| one.is_file() && other.is_ok_and(|other| one == other))
}

/// What is converted.
enum Input<'a> {
    /// A stream, of which the beginning has been read.
    Stream(Vec<u8>),
    /// What came through stdin or another pipe, as it is now.
    Stored(File, String),
    /// A file, or a folder of files.
    File(&'a Path),
}

impl<'a> Input<'a> {
    /// A file has to be whole before it can be read: what is known last stands first in it.
    fn of(path: &'a Path) -> anyhow::Result<Self> {
        let is_stdin = path.as_os_str() == "-";
        if !is_stdin && path.metadata().map_or(true, |found| found.is_file() || found.is_dir()) {
            return Ok(Self::File(path));
        }
        let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
        let opened = Opened::of(path).map_err(|error| unopened(path, &error, By::Convert));
        let stream = match opened? {
            Opened::File(file) => return Ok(Self::Stored(file, name)),
            Opened::Stream(stream) => stream,
        };
        if is_stdin && is_stream(stream.begin()) {
            return Ok(Self::Stream(stream.begin().to_vec()));
        }
        let failed = || format!("{name} can't be converted");
        let most = match reader_for(stream.begin(), Path::new(&name)) {
            Some(reader) => reader.most_bytes(),
            None if is_recording(stream.begin()) => u64::MAX,
            None => {
                let error = unreadable(stream.begin(), Path::new(&name), By::Convert);
                return Err(error).with_context(failed);
            }
        };
        let file = stream.store(most).with_context(failed)?;
        Ok(Self::Stored(file, name))
    }

    fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// The whole of a stream.
    fn stream(first: &[u8]) -> impl Read {
        first.chain(BufReader::new(io::stdin()))
    }

    /// The whole of what came through a pipe.
    fn stored(file: &File) -> io::Result<File> {
        let mut file = file.try_clone()?;
        file.rewind()?;
        Ok(file)
    }

    fn name(&self) -> String {
        match self {
            Self::Stream(_) => "stdin".to_owned(),
            Self::Stored(_, name) => name.clone(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Of what is beside other files.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stream(_) | Self::Stored(..) => None,
        }
    }

    /// Whether what the path names is there, and may be read.
    fn is_there(path: &Path) -> anyhow::Result<()> {
        let found = path.metadata();
        let opened = found.and_then(|found| if found.is_dir() { Ok(()) } else { File::open(path).map(drop) });
        opened.map_err(|error| unopened(path, &error, By::Convert))
    }

    /// Writes the records as they are.
    fn copy(&self, output: RawOutput) -> anyhow::Result<()> {
        let failed = || format!("{} can't be copied", self.name());
        if let Self::File(path) = self {
            Self::is_there(path)?;
        }
        if let Some((reader, _)) = self.imported().with_context(failed)? {
            let other = reader.description();
            anyhow::bail!(
                "{} can't be copied: it is {other}, and {NAME} is of the kernel's own records, with registers and bytes of stacks; \
                 name another format: `collector list formats` lists them",
                self.name()
            );
        }
        match self {
            Self::Stream(first) => {
                let reader = FileReader::stream(Self::stream(first)).map_err(ReplayError::from);
                self.copy_from(reader.with_context(failed)?, output)
            }
            Self::Stored(file, _) => {
                let reader = FileReader::open(BufReader::new(Self::stored(file)?)).map_err(ReplayError::from);
                self.copy_from(reader.with_context(failed)?, output)
            }
            Self::File(path) => self.copy_from(open_recording(path).with_context(failed)?, output),
        }
    }

    fn copy_from<R: Read>(&self, reader: FileReader<R>, output: RawOutput) -> anyhow::Result<()> {
        let out = io::BufWriter::with_capacity(256 << 10, output.file()?);
        let mut copied = copy(reader, out).with_context(|| format!("{} can't be copied", self.name()))?;
        copied.out.flush()?;
        if copied.is_unfinished {
            say(&format!("warning: {UNFINISHED}"));
        }
        if let Some(error) = copied.cut_off {
            say(&format!("warning: the end is missing: {error}"));
        }
        if let Some(missing) = copied.missing_features {
            say(&format!("warning: {missing}"));
        }
        output.finish()
    }

    /// The file and its reader, if it is of another tool's.
    fn imported(&self) -> anyhow::Result<Option<(&'static dyn ImportFormat, File)>> {
        let mut file = match self {
            Self::Stream(_) => return Ok(None),
            Self::Stored(file, _) => Self::stored(file)?,
            Self::File(path) if path.is_dir() => return Ok(None),
            Self::File(path) => File::open(path)?,
        };
        let reader = reader_of(&mut file, Path::new(&self.name()))?;
        if reader.is_none() && !is_recording(&first_bytes(&mut file)?) {
            return Err(unreadable_file(&mut file, Path::new(&self.name()), By::Convert));
        }
        Ok(reader.map(|reader| (reader, file)))
    }

    /// Reads what has stacks and names already, or unwinds the stacks and finds their names; and writes what that gives.
    fn write(
        &self,
        mut outputs: Vec<Output>,
        detail: Detail,
        kind: Option<&str>,
    ) -> anyhow::Result<Vec<anyhow::Result<()>>> {
        let failed = || format!("{} can't be converted", self.name());
        if let Self::File(path) = self {
            Self::is_there(path)?;
        }
        if let Some((reader, file)) = self.imported().with_context(failed)? {
            let mut taken = import(reader, file, self.path(), event_bytes(&outputs)).with_context(failed)?;
            say(&summary(&taken.imported.machine));
            tell_warnings(&taken.imported);
            kind::choose_for(&mut taken.imported.machine, kind, &mut outputs)?;
            let (machine, symbols) = taken.named(detail);
            tell_failures(&machine, &symbols);
            return Ok(write_all(outputs, Profile { machine: &machine, symbols: &symbols }));
        }
        let mut recording = match self {
            Self::Stream(first) => run(Replay::stream(Self::stream(first)).with_context(failed)?, &outputs),
            Self::Stored(file, _) => {
                let replay = Replay::open(Self::stored(file)?).with_context(failed)?;
                run(replay.undated(), &outputs)
            }
            Self::File(path) => run(Replay::open_path(path).with_context(failed)?, &outputs),
        };
        say(&finished::summary(&recording.stats, &recording.warnings));
        kind::choose_for(&mut recording.machine, kind, &mut outputs)?;
        let symbols = recording.symbolize_to(detail);
        tell_failures(&recording.machine, &symbols);
        Ok(write_all(outputs, Profile { machine: &recording.machine, symbols: &symbols }))
    }
}

/// Bytes that tell a perf.data.
const HEADER: usize = 16;

/// Those of a file, which is at its start then.
fn first_bytes(file: &mut File) -> io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    file.take(HEADER as u64).read_to_end(&mut begin)?;
    file.rewind()?;
    Ok(begin)
}

/// Whether what begins so is a perf.data, in either byte order: a file or a stream.
fn is_recording(begin: &[u8]) -> bool {
    let header = begin.get(..HEADER);
    header.is_some_and(|header| !matches!(FileReader::stream(header), Err(FileError::Magic(_))))
}

/// Whether it is one that was written to be read as a stream.
fn is_stream(begin: &[u8]) -> bool {
    let is_file = |error: &FileError| matches!(error, FileError::NotAStream(_) | FileError::Magic(_));
    begin.get(..HEADER).is_some_and(|header| !FileReader::stream(header).is_err_and(|error| is_file(&error)))
}

/// Takes in a recording, with those of its raw events that outputs hold.
fn run<R: Read>(mut replay: Replay<R>, outputs: &[Output]) -> Recording {
    let names = replay.hooks_mut().iter().map(|replayed| replayed.event.name());
    let (bytes, passed_over) = kept_events(outputs, names);
    replay.keep_events(bytes);
    replay.pass_over_events(passed_over);
    replay.run()
}

/// Writes first what waits for nobody, so that it is there when the rest is abandoned.
fn write_all(outputs: Vec<Output>, profile: Profile<'_>) -> Vec<anyhow::Result<()>> {
    tell_left_out(&outputs, profile);
    let (waiting, files): (Vec<_>, Vec<_>) = outputs.into_iter().partition(Output::may_wait);
    files.into_iter().chain(waiting).map(|output| output.write(profile)).collect()
}
