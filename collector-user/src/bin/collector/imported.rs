//! Files of other tools: which of the readers is for one, by its first bytes.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::Path;

use collector_common::loss::Ledger;
use collector_common::record::{ExportMachine, Samples};
use collector_user::etw::{Etl, PartsError};
use collector_user::minidump::{Dump, DumpFiles, Minidump};
use collector_user::modules::{name_from_files, tell_of_images};
use collector_user::spill::{spill_samples, warnings};
use export::format::for_path;
use export::import::folded::Folded;
use export::import::{self, BEGIN, Begin, ImportFormat, Imported};
use export::symbolize::{Detail, Symbols};
use windows_etw::part::Part;

use crate::say;
use crate::stored::Stream;
use crate::unread::of_ending;

/// What is to be read.
pub(crate) enum Opened {
    /// A file, which can be read from any place in it.
    File(File),
    /// What comes through a pipe, or of a device.
    Stream(Stream<Box<dyn Read>>),
}

impl Opened {
    /// What a path names; `-` is stdin.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Self::of_stream(Box::new(io::stdin()));
        }
        // As a stream it would fail on some systems at its first byte alone.
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let file = File::open(path)?;
        if file.metadata()?.is_file() { Ok(Self::File(file)) } else { Self::of_stream(Box::new(file)) }
    }

    fn of_stream(stream: Box<dyn Read>) -> io::Result<Self> {
        Ok(Self::Stream(Stream::of(stream)?))
    }
}

/// The reader of a file, which is at its start then; `None` where nothing is known to begin so.
pub(crate) fn reader_of(file: &mut File, path: &Path) -> io::Result<Option<&'static dyn ImportFormat>> {
    let mut begin = Vec::new();
    file.take(BEGIN as u64).read_to_end(&mut begin)?;
    file.rewind()?;
    Ok(reader_for(&begin, path))
}

/// The same by its first bytes. Of one without any byte the name tells whether it is folded stacks, of which there are none.
pub(crate) fn reader_for(begin: &[u8], path: &Path) -> Option<&'static dyn ImportFormat> {
    if begin.is_empty() {
        let is_folded = for_path(path).is_some_and(|format| format.name() == Folded.name());
        return is_folded.then_some(&Folded);
    }
    let first = Begin::of(begin);
    OF_WINDOWS.into_iter().find(|reader| reader.begins(&first)).or_else(|| import::of(begin))
}

/// Readers of what Windows writes.
pub(crate) const OF_WINDOWS: [&dyn ImportFormat; 2] = [&Etl, &Minidump];

/// All readers.
pub(crate) fn readers() -> impl Iterator<Item = &'static dyn ImportFormat> {
    import::importers().iter().copied().chain(OF_WINDOWS)
}

/// A recording that was read.
pub(crate) struct Taken {
    pub(crate) imported: Imported,
    /// Of a dump what names its functions.
    pub(crate) dumped: Option<DumpFiles>,
}

impl Taken {
    /// The recording, with as many names as are wanted.
    pub(crate) fn named(self, detail: Detail) -> (ExportMachine, Symbols) {
        let Self { imported: Imported { mut machine, symbols, .. }, dumped } = self;
        let symbols = match (detail, dumped) {
            (Detail::Addresses, _) => symbols,
            (_, Some(files)) => files.name(&machine, symbols, detail),
            (_, None) => {
                if let Some(left_out) = tell_of_images(&mut machine) {
                    say(&format!("warning: {left_out}"));
                }
                name_from_files(&machine, symbols, detail)
            }
        };
        (machine, symbols)
    }

    /// The same for a short look: what has its names already keeps these.
    pub(crate) fn named_if_dumped(self) -> (ExportMachine, Symbols) {
        let detail = if self.dumped.is_some() { Detail::Names } else { Detail::Addresses };
        self.named(detail)
    }
}

/// Reads a file, with samples that are too many for memory in a temporary file. What Windows has written into several files is read from all
/// of them: `path` is that of the first, where it has one. An error says so where the ending is that of something else.
pub(crate) fn import(
    reader: &dyn ImportFormat,
    file: File,
    path: Option<&Path>,
    event_bytes: u64,
) -> anyhow::Result<Taken> {
    take(reader, file, path, event_bytes).map_err(|error| {
        let other = path.and_then(of_ending).filter(|other| other.name() != reader.name());
        match other {
            Some(other) => error.context(format!(
                "it begins as {}, though its ending is that of {}",
                reader.description(),
                other.description()
            )),
            None => error,
        }
    })
}

fn take(
    reader: &dyn ImportFormat,
    mut file: File,
    path: Option<&Path>,
    event_bytes: u64,
) -> anyhow::Result<Taken> {
    let mut machine = ExportMachine::default();
    spill_samples(&mut machine, Samples::LIMIT);
    if reader.name() == Minidump.name() {
        let path = path.and_then(|path| path.canonicalize().ok());
        let folder = path.as_deref().and_then(Path::parent);
        let Dump { mut imported, files } = Minidump.read(machine, &mut file, folder)?;
        imported.left_out.extend(warnings(&imported.machine));
        return Ok(Taken { imported, dumped: Some(files) });
    }
    let path = path.filter(|path| reader.name() == Etl.name() && path.is_file());
    let parts = path.map(Part::beside).unwrap_or_default();
    let mut imported = if parts.is_empty() {
        reader.import_into(machine, &mut file, event_bytes)?
    } else {
        let shown: Vec<String> = parts.iter().map(|part| part.display().to_string()).collect();
        say(&format!("read with {}, of the same recording by name", shown.join(" and ")));
        let opened = parts.into_iter().map(|path| match open_regular(&path) {
            Ok(part) => Ok((path, part)),
            Err(error) => Err(PartsError::Part { path, source: error.into() }),
        });
        Etl.import_with_parts(machine, file, opened.collect::<Result<_, _>>()?, event_bytes)?
    };
    imported.left_out.extend(warnings(&imported.machine));
    Ok(Taken { imported, dumped: None })
}

/// Opens what is no pipe, whose other end may never be there.
fn open_regular(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    File::open(path)
}

/// Says what of the file was left out.
pub(crate) fn tell_warnings(imported: &Imported) {
    for left_out in &imported.left_out {
        say(&format!("warning: {left_out}"));
    }
}

/// How much there is, and what was lost where that is known, by cause if that is told.
pub(crate) fn summary(machine: &ExportMachine) -> String {
    let events = match machine.event_records().len() {
        0 => String::new(),
        events => format!("{events} events, "),
    };
    let system = machine.system();
    let lost = system.lost.map(|lost| {
        let by_cause = |line: &&String| lost > 0 && Ledger::lost_in(line) == Some(lost);
        let told = system.account.iter().find(by_cause).cloned();
        format!(", {}", told.unwrap_or_else(|| format!("{lost} lost")))
    });
    let lost = lost.unwrap_or_default();
    format!("{events}{} samples{lost}", machine.samples().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_stacks_may_be_none() {
        let mut file = tempfile::tempfile().unwrap();
        for name in ["x.folded", "/a/b.c.FOLDED"] {
            let reader = reader_of(&mut file, Path::new(name)).unwrap().unwrap();
            let Imported { machine, left_out, .. } =
                import(reader, file.try_clone().unwrap(), None, 0).unwrap().imported;
            assert!(machine.samples().is_empty() && left_out.is_empty());
        }
        for name in ["x.jfr", "x", "-", ".folded"] {
            assert!(reader_of(&mut file, Path::new(name)).unwrap().is_none(), "{name}");
        }
    }

    #[test]
    fn losses_that_nobody_tells_are_not_none() {
        let mut machine = ExportMachine::default();
        assert_eq!(summary(&machine), "0 samples");
        machine.system_mut().lost = Some(0);
        assert_eq!(summary(&machine), "0 samples, 0 lost");
        machine.system_mut().account = vec!["none lost".to_owned(), "3 lost (ring_full 3)".to_owned()];
        assert_eq!(summary(&machine), "0 samples, 0 lost");
        machine.system_mut().lost = Some(3);
        assert_eq!(summary(&machine), "0 samples, 3 lost (ring_full 3)");
    }
}
