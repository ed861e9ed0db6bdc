//! Files of other tools: which of the readers is for one, by its first bytes.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use collector_common::record::ExportMachine;
use collector_user::etw::Etl;
use export::import::{self, BEGIN, Begin, ImportFormat};

/// A file that can be read from any place in it; `-` is stdin. What comes through a pipe is stored first.
pub(crate) fn whole(path: &Path) -> io::Result<File> {
    if path.as_os_str() == "-" {
        return stored(&mut io::stdin().lock());
    }
    let mut file = File::open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { stored(&mut file) }
}

/// A temporary file with all that a stream has.
fn stored(stream: &mut impl io::Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(stream, &mut file)?;
    file.rewind()?;
    Ok(file)
}

/// The reader of a file, which is at its start then; `None` where nothing is known to begin so.
pub(crate) fn reader_of(file: &mut File) -> io::Result<Option<&'static dyn ImportFormat>> {
    let mut begin = Vec::new();
    file.take(BEGIN as u64).read_to_end(&mut begin)?;
    file.rewind()?;
    if Etl.begins(&Begin::of(&begin)) {
        return Ok(Some(&Etl));
    }
    Ok(import::of(&begin))
}

/// What there are readers of.
pub(crate) fn readable() -> String {
    let all = import::importers().iter().copied().chain([&Etl as &dyn ImportFormat]);
    let all: Vec<&str> = all.map(ImportFormat::description).collect();
    all.join(", ")
}

/// How much there is, and what was lost.
pub(crate) fn summary(machine: &ExportMachine) -> String {
    let events = match machine.event_records().len() {
        0 => String::new(),
        events => format!("{events} events, "),
    };
    format!("{events}{} samples, {} lost", machine.samples().len(), machine.system().lost)
}
