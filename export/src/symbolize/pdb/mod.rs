//! Addresses in a PE image in, names, source lines and inlined functions out, from its PDB.
//!
//! - `container`: the streams that a PDB has.
//! - `information`: which image it is of, and which object file brought which code.
//! - `object`, `annotations`: functions, lines and inlined functions of one object file.
//! - `names`: what inlined functions are called.
//!
//! Read by ours: the readers that there are panic on damaged files (docs/adr/0011-own-reader-of-pdb.md). Object files without
//! wanted addresses are not read. A PDB that tells addresses of an image as it was before it was reordered (`OMAP`) is not
//! translated.

mod annotations;
mod container;
mod information;
mod names;
mod object;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Seek};

use self::container::Container;
use self::information::{Information, Place};
use self::object::{Inlinee, Line, Parts, Room};
use super::answer::{Answer, Level};
use super::pe::PdbId;
use super::words::{text_at, u16_at, u32_at};

/// Why a PDB could not be read, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum PdbError {
    /// Reading failed.
    #[error("reading failed: {0}")]
    Read(#[from] io::Error),
    /// It does not begin as a PDB does.
    #[error("it is none")]
    NoPdb,
    /// It is that of another build.
    #[error("it is of another build")]
    Other,
    /// What it says leads outside of it.
    #[error("its {what} is damaged, at byte {position} of {}", of_what(*stream))]
    Damaged {
        /// What says so.
        what: &'static str,
        /// Where that is.
        position: u64,
        /// In which of the file's streams; none where it is in none.
        stream: Option<u32>,
    },
    /// It has more of something than any real one.
    #[error("it has more {0} than any real one")]
    TooMuch(&'static str),
    /// A stream is larger than any real one, or than the file.
    #[error("a stream claims {size} bytes, more than the file or {limit}")]
    TooLarge {
        /// Its size by the file's account.
        size: u64,
        /// The largest that is read.
        limit: u64,
    },
}

impl PdbError {
    fn damaged(what: &'static str, stream: Option<u32>, position: u64) -> Self {
        Self::Damaged { what, position, stream }
    }
}

fn of_what(stream: Option<u32>) -> String {
    stream.map_or_else(|| "the file".to_owned(), |stream| format!("stream {stream}"))
}

/// A wanted address: its position, and where it is.
type Wanted = (usize, Place);

/// Names the addresses of `answer`, whatever names they have: a PDB knows better than exports. With `lines`, finds source lines
/// and inlined functions, too. What was found before an error stays.
pub(super) fn look_up<R: Read + Seek>(
    file: &mut R,
    id: &PdbId,
    lines: bool,
    answer: &mut Answer<'_>,
) -> Result<(), PdbError> {
    let mut pdb = Container::open(file)?;
    let information = Information::read(&mut pdb, id)?;
    let mut by_object: BTreeMap<u16, Vec<Wanted>> = BTreeMap::new();
    let mut elsewhere = Vec::new();
    for (position, &address) in answer.wanted().iter().enumerate() {
        let Some(place) = information.place(address) else { continue };
        match information.object_at(place) {
            Some((object, start)) => {
                by_object.entry(object).or_default().push((position, place));
                elsewhere.push((position, place, start));
            }
            None => elsewhere.push((position, place, Place { offset: 0, ..place })),
        }
    }
    let mut found = Found::default();
    let mut outcome = Ok(());
    for (object, mut wanted) in by_object {
        wanted.sort_unstable_by_key(|(_, place)| *place);
        outcome = found.take_object(&mut pdb, &information, object, &wanted, lines, answer);
        if outcome.is_err() {
            break;
        }
    }
    elsewhere.retain(|(position, ..)| !found.functions.contains_key(position));
    let named = name_publics(&mut pdb, &information, &elsewhere, answer);
    outcome.and(named).and(found.answer(&mut pdb, &information, answer))
}

/// A function that a wanted address is in, as the answer names it, and what is inlined there.
struct Named {
    name: Option<u32>,
    inlined: Vec<(Inlinee, Line)>,
}

/// What was found for wanted addresses, by position.
#[derive(Default)]
struct Found {
    room: Room,
    functions: HashMap<usize, Named>,
    lines: HashMap<usize, Line>,
    /// By object file and place among its checksums: where the path is.
    paths: HashMap<(u16, u32), Option<u32>>,
    objects: HashMap<usize, u16>,
}

impl Found {
    fn take_object<R: Read + Seek>(
        &mut self,
        pdb: &mut Container<'_, R>,
        information: &Information,
        object: u16,
        wanted: &[Wanted],
        lines: bool,
        answer: &mut Answer<'_>,
    ) -> Result<(), PdbError> {
        let Some(&of) = information.objects.get(usize::from(object)) else { return Ok(()) };
        if of.stream == u16::MAX {
            return Ok(());
        }
        let stream = pdb.stream(of.stream.into())?;
        let damaged = || PdbError::damaged("object file", Some(of.stream.into()), of.symbols.into());
        let parts = Parts::of(&stream, of).ok_or_else(damaged)?;
        let places: Vec<Place> = wanted.iter().map(|(_, place)| *place).collect();
        let inlinees = lines.then(|| parts.inlinees());
        let functions = parts.functions(&places, inlinees.as_ref(), &mut self.room)?;
        let of_lines = if lines { parts.lines(&places) } else { vec![None; places.len()] };
        let mut names: HashMap<usize, Option<u32>> = HashMap::new();
        for ((&(position, _), function), line) in wanted.iter().zip(functions.at).zip(of_lines) {
            let Some(function) = function else { continue };
            let name = *names.entry(function.name).or_insert_with(|| {
                let name = functions.names.get(function.name).copied().unwrap_or_default();
                answer.add_name(String::from_utf8_lossy(name).into_owned())
            });
            let inlined = function.inlined.iter().map(|(_, line)| *line);
            for file in inlined.chain(line).filter_map(|line| line.file) {
                self.paths.entry((object, file)).or_insert_with(|| parts.path(file));
            }
            self.functions.insert(position, Named { name, inlined: function.inlined });
            self.lines.extend(line.map(|line| (position, line)));
            self.objects.insert(position, object);
        }
        Ok(())
    }

    /// Tells the answer, with names of inlined functions and paths.
    fn answer<R: Read + Seek>(
        self,
        pdb: &mut Container<'_, R>,
        information: &Information,
        answer: &mut Answer<'_>,
    ) -> Result<(), PdbError> {
        let mut wanted: Vec<_> =
            self.functions.values().flat_map(|it| it.inlined.iter().map(|it| it.0)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let (inlinees, named) = names::names(pdb, &wanted, answer);
        let (sources, placed) = self.sources(pdb, information, answer);
        for (position, Named { name, inlined }) in self.functions {
            let Some(&object) = self.objects.get(&position) else { continue };
            answer.set(position, name);
            let level = |name, line: Line| {
                let file = line.file.and_then(|file| sources.get(&(object, file))).copied();
                Level { name, file, line: line.number, column: line.column }
            };
            let line = self.lines.get(&position).copied();
            if line.is_none() && inlined.is_empty() {
                continue;
            }
            let inner = inlined.iter().rev().map(|(id, line)| level(inlinees.get(id).copied(), *line));
            let levels: Vec<Level> = inner.chain([level(name, line.unwrap_or_default())]).collect();
            answer.set_levels(position, &levels);
        }
        named.and(placed)
    }

    /// Positions of source files among those of the answer, as far as their paths can be read.
    fn sources<R: Read + Seek>(
        &self,
        pdb: &mut Container<'_, R>,
        information: &Information,
        answer: &mut Answer<'_>,
    ) -> (HashMap<(u16, u32), u32>, Result<(), PdbError>) {
        /// In front of the paths: a number that says what follows, a version, and how many bytes there are.
        const HEADER: usize = 12;
        let Some(stream) = information.paths.filter(|_| !self.paths.is_empty()) else {
            return (HashMap::new(), Ok(()));
        };
        let texts = match pdb.stream(stream) {
            Ok(texts) => texts,
            Err(error) => return (HashMap::new(), Err(error)),
        };
        let mut known: HashMap<u32, Option<u32>> = HashMap::new();
        let mut sources = HashMap::new();
        for (&key, &path) in &self.paths {
            let Some(path) = path else { continue };
            let source = *known.entry(path).or_insert_with(|| {
                if !answer.has_room_for_sources() {
                    answer.leave_out(1);
                    return None;
                }
                let text = text_at(&texts, HEADER.saturating_add(path as usize))?;
                answer.add_source(&String::from_utf8_lossy(text))
            });
            sources.extend(source.map(|source| (key, source)));
        }
        (sources, Ok(()))
    }
}

/// Names places after the nearest public symbol of code below them, from `start` on.
fn name_publics<R: Read + Seek>(
    pdb: &mut Container<'_, R>,
    information: &Information,
    wanted: &[(usize, Place, Place)],
    answer: &mut Answer<'_>,
) -> Result<(), PdbError> {
    const PUBLIC: u16 = 0x110e;
    /// Flags of a function, and of code of another kind.
    const CODE: u32 = 0b11;
    if wanted.is_empty() {
        return Ok(());
    }
    let mut sorted: Vec<_> =
        wanted.iter().map(|&(position, place, start)| (place, position, start)).collect();
    sorted.sort_unstable();
    // By wanted place: the nearest symbol that is not below the wanted place before it.
    let mut best: Vec<Option<(Place, String)>> = vec![None; sorted.len()];
    let read = pdb.each_record(information.publics, 0, u32::MAX, |kind, record| {
        let (Some(flags), Some(offset), Some(section), Some(name)) =
            (u32_at(record, 0), u32_at(record, 4), u16_at(record, 8), text_at(record, 10))
        else {
            return;
        };
        if kind != PUBLIC || flags & CODE == 0 {
            return;
        }
        let place = Place { section, offset };
        let slot = sorted.partition_point(|(wanted, ..)| *wanted < place);
        if let Some(best) = best.get_mut(slot)
            && best.as_ref().is_none_or(|(known, _)| *known < place)
        {
            *best = Some((place, String::from_utf8_lossy(name).into_owned()));
        }
    });
    let mut nearest: Option<(Place, Option<u32>)> = None;
    for ((place, position, start), best) in sorted.into_iter().zip(best) {
        nearest = best.map(|(place, name)| (place, answer.add_name(name))).or(nearest);
        let named = nearest.filter(|(at, _)| at.section == place.section && *at >= start);
        if let Some((_, name)) = named {
            answer.set(position, name);
        }
    }
    read
}
