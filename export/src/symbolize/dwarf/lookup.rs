//! The lookup of a module's addresses in its DWARF.

use std::collections::HashMap;
use std::io::{Read, Seek};
use std::rc::Rc;
use std::time::Instant;

use addr2line::{Context, Frame, FrameIter, LookupContinuation, LookupResult};
use collector_common::record::ModuleId;
use gimli::{AbbreviationsCacheStrategy, Dwarf, Reader as _, SectionId};

use super::LineError;
use super::file::{DebugFile, Kind};
use super::meter::Meter;
use super::reader::Bytes;
use super::relocate::Placed;
use super::split::{SplitFiles, dwarf};
use crate::symbolize::answer::{Answer, Level};
use crate::symbolize::files::ModuleFiles;

/// The most units of a file. Browsers have some ten thousand.
pub(super) const MAX_UNITS: usize = 1 << 18;

/// Functions that are inlined at one place.
const MAX_LEVELS: usize = 1 << 10;

/// Finds source lines and inlined functions for the addresses of `answer`, and names for those that have none: in the file
/// `own`, or in the one that `debug` opens if `own` has no DWARF, or has a bad one and `debug` a good one.
pub(in crate::symbolize) fn look_up<M: ModuleFiles>(
    files: &M,
    module: ModuleId,
    own: Option<M::File>,
    debug: impl FnOnce() -> Option<M::File>,
    deadline: Instant,
    answer: &mut Answer<'_>,
) -> Result<(), LineError> {
    let meter = Rc::new(Meter::new(answer.wanted().len(), deadline));
    let open = |file| DebugFile::open(file, Kind::Main, &meter);
    let with_units =
        |file: Option<M::File>| Ok::<_, LineError>(file.map(open).transpose()?.filter(DebugFile::has_units));
    let main = match with_units(own) {
        Ok(Some(own)) => Some(own),
        Ok(None) => with_units(debug())?,
        Err(error) => Some(with_units(debug()).ok().flatten().ok_or(error)?),
    };
    let Some(main) = main else { return Ok(()) };
    let shared = main.link().map(|link| {
        let path = || String::from_utf8_lossy(&link.path).into_owned();
        let file = files.open_shared(module, &link.path, &link.build_id);
        let file = file.ok_or_else(|| LineError::SharedMissing { path: path() })?;
        open(file).map_err(|error| LineError::Part { path: path(), error: Box::new(error) })
    });
    let (shared, shared_error) = match shared.transpose() {
        Ok(shared) => (shared, None),
        Err(error) => (None, Some(error)),
    };
    let split = SplitFiles::new(files, module, &meter);
    let found = Search { main: &main, shared: shared.as_ref(), split: &split }.run(answer);
    meter.reason()?;
    if let Some(error) = shared_error {
        return Err(error);
    }
    found.map_err(LineError::Malformed)?;
    split.missing()
}

/// The same for addresses of a file that was not linked, with its sections at the addresses in `placed`.
pub(in crate::symbolize) fn look_up_placed<M: ModuleFiles>(
    files: &M,
    file: M::File,
    placed: &Placed,
    deadline: Instant,
    answer: &mut Answer<'_>,
) -> Result<(), LineError> {
    let meter = Rc::new(Meter::new(answer.wanted().len(), deadline));
    let main = DebugFile::open_placed(file, Kind::Main, Some(placed), &meter);
    meter.reason()?;
    let main = main?;
    if !main.has_units() {
        return Ok(());
    }
    let split = SplitFiles::new(files, ModuleId::KERNEL, &meter);
    let found = Search { main: &main, shared: None, split: &split }.run(answer);
    meter.reason()?;
    found.map_err(LineError::Malformed)
}

/// A module's files.
struct Search<'a, M: ModuleFiles> {
    main: &'a DebugFile<M::File>,
    shared: Option<&'a DebugFile<M::File>>,
    split: &'a SplitFiles<'a, M>,
}

impl<M: ModuleFiles> Search<'_, M> {
    fn run(&self, answer: &mut Answer<'_>) -> Result<(), gimli::Error> {
        let meter = self.main.meter();
        let mut whole = units_of(self.main)?;
        if let Some(shared) = self.shared {
            whole.set_sup(units_of(shared)?);
        }
        let context = Context::from_dwarf(whole)?;
        let mut found = Found::default();
        let mut damage = None;
        for (position, &address) in answer.wanted().iter().enumerate() {
            meter.check_time()?;
            // `addr2line` asks for what is between an address and the next one.
            if address == u64::MAX {
                continue;
            }
            let mut result = context.find_frames(address);
            let frames = loop {
                match result {
                    LookupResult::Output(frames) => break frames,
                    LookupResult::Load { load, continuation } => {
                        result = continuation.resume(self.split.load(&load));
                    }
                }
            };
            // What one unit says wrongly is no reason not to ask the others.
            if let Err(error) = frames.and_then(|frames| found.add(frames, position, meter, answer)) {
                if meter.is_stopped() {
                    return Err(error);
                }
                damage.get_or_insert(error);
            }
        }
        damage.map_or(Ok(()), Err)
    }
}

/// All sections of a file. How many units it has is counted before memory is taken for each.
fn units_of<F: Read + Seek>(file: &DebugFile<F>) -> Result<Dwarf<Bytes<'_, F>>, gimli::Error> {
    let mut dwarf = dwarf(file);
    let mut units = dwarf.units();
    let mut count = 0;
    while units.next()?.is_some() {
        count += 1;
        if count > MAX_UNITS {
            return Err(file.meter().stop(LineError::TooMany { limit: MAX_UNITS }));
        }
    }
    // Units that share their abbreviations (`dwz`, link-time optimisation) would each read them.
    dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
    Ok(dwarf)
}

/// Strings that were found already, by where they are.
#[derive(Default)]
struct Found {
    names: HashMap<(usize, SectionId, usize, usize), Option<u32>>,
    files: HashMap<String, Option<u32>>,
    levels: Vec<Level>,
}

impl Found {
    /// Notes what is at an address.
    fn add<F: Read + Seek>(
        &mut self,
        mut frames: FrameIter<'_, Bytes<'_, F>>,
        position: usize,
        meter: &Meter,
        answer: &mut Answer<'_>,
    ) -> Result<(), gimli::Error> {
        self.levels.clear();
        while let Some(frame) = frames.next()? {
            if self.levels.len() >= MAX_LEVELS {
                return Err(meter.stop(LineError::Deep));
            }
            let level = self.level(&frame, answer)?;
            self.levels.push(level);
        }
        let Some(outermost) = self.levels.last() else { return Ok(()) };
        if answer.lacks(position) {
            answer.set(position, outermost.name);
        }
        answer.set_levels(position, &self.levels);
        Ok(())
    }

    fn level<F: Read + Seek>(
        &mut self,
        frame: &Frame<'_, Bytes<'_, F>>,
        answer: &mut Answer<'_>,
    ) -> Result<Level, gimli::Error> {
        let name = frame.function.as_ref().map(|function| &function.name).filter(|name| !name.is_empty());
        let name = name.map(|name| self.name(name, answer)).transpose()?.flatten();
        let location = frame.location.as_ref();
        let file = location.and_then(|location| location.file).and_then(|file| self.file(file, answer));
        let line = location.and_then(|location| location.line).unwrap_or_default();
        let column = location.and_then(|location| location.column).unwrap_or_default();
        Ok(Level { name, file, line, column })
    }

    /// The position of a name among those of `answer`, where there was room for it.
    fn name<F: Read + Seek>(
        &mut self,
        name: &Bytes<'_, F>,
        answer: &mut Answer<'_>,
    ) -> Result<Option<u32>, gimli::Error> {
        if let Some(&known) = self.names.get(&name.identity()) {
            return Ok(known);
        }
        let id = answer.add_name(name.to_string_lossy()?.into_owned());
        self.names.insert(name.identity(), id);
        Ok(id)
    }

    /// The position of a source file among those of `answer`, where there was room for it.
    fn file(&mut self, path: &str, answer: &mut Answer<'_>) -> Option<u32> {
        if let Some(&known) = self.files.get(path) {
            return known;
        }
        let id = answer.add_source(path);
        self.files.insert(path.to_owned(), id);
        id
    }
}
