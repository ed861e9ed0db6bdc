//! The symbols and lines of one object file (`cvinfo.h` of Microsoft, LLVM's documentation of the PDB format): for a place in it, the function and what was inlined there.
//!
//! ```text
//! symbols: ... S_GPROC32 work ... S_INLINESITE twice ... S_INLINESITE leaf ... S_INLINESITE_END S_INLINESITE_END S_END ...
//! lines:   where which line of which file begins, by function; and for each inlined function where it begins in its file
//! ```

use std::collections::HashMap;
use std::ops::Range;

use super::PdbError;
use super::annotations::rows;
use super::container::split_record;
use super::information::{Object, Place};
use crate::symbolize::words::{text_at, u16_at, u32_at};

/// Functions that are inlined at one place.
const MAX_LEVELS: usize = 1 << 10;

/// Names a function that is inlined: an index into the stream of such names.
pub(super) type Inlinee = u32;

/// A line, and the file by its place among the checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) file: Option<u32>,
    pub(super) number: u32,
    pub(super) column: u32,
}

/// How much is done and kept for one PDB, over all of its object files. In a real one few functions are around one place; a damaged one may
/// have each around all that are wanted.
#[derive(Debug)]
pub(super) struct Room {
    /// Wanted places that functions are at, and pieces of inlined ones.
    steps: u64,
    /// Inlined functions of all wanted places together.
    inlined: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self { steps: 1 << 28, inlined: 1 << 22 }
    }
}

impl Room {
    fn steps(&mut self, steps: usize) -> Result<(), PdbError> {
        let left = self.steps.checked_sub(steps as u64);
        self.steps = left.ok_or(PdbError::TooMuch("functions around the same places"))?;
        Ok(())
    }

    fn inlined(&mut self) -> Result<(), PdbError> {
        let left = self.inlined.checked_sub(1);
        self.inlined = left.ok_or(PdbError::TooMuch("functions that are inlined in each other"))?;
        Ok(())
    }
}

/// A function that holds a wanted place.
#[derive(Clone, Debug)]
pub(super) struct Function {
    /// By position among the names.
    pub(super) name: usize,
    /// What is inlined at the wanted place, outermost first.
    pub(super) inlined: Vec<(Inlinee, Line)>,
    /// The innermost of these, by its number; 0 where there is none.
    innermost: u32,
}

/// The functions that wanted places are in.
#[derive(Debug, Default)]
pub(super) struct Functions<'a> {
    pub(super) names: Vec<&'a [u8]>,
    /// By place.
    pub(super) at: Vec<Option<Function>>,
}

/// The streams of an object file, cut into what is used.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    symbols: &'a [u8],
    lines: &'a [u8],
    checksums: &'a [u8],
}

impl<'a> Parts<'a> {
    pub(super) fn of(stream: &'a [u8], object: Object) -> Option<Self> {
        let symbols = stream.get(4..object.symbols as usize)?;
        let start = (object.symbols as usize).checked_add(object.old_lines as usize)?;
        let lines = stream.get(start..start.checked_add(object.lines as usize)?)?;
        Some(Self::new(symbols, lines))
    }

    fn new(symbols: &'a [u8], lines: &'a [u8]) -> Self {
        const CHECKSUMS: u32 = 0xf4;
        let checksums = subsections(lines).find(|(kind, _)| *kind == CHECKSUMS);
        Self { symbols, lines, checksums: checksums.map_or(&[], |(_, checksums)| checksums) }
    }

    /// Where lines of inlined functions begin.
    pub(super) fn inlinees(&self) -> HashMap<Inlinee, Line> {
        const INLINEE_LINES: u32 = 0xf6;
        let mut found = HashMap::new();
        for (_, part) in subsections(self.lines).filter(|(kind, _)| *kind == INLINEE_LINES) {
            // With further files each.
            let has_more = u32_at(part, 0) == Some(1);
            let mut rest = part.get(4..).unwrap_or_default();
            while let (Some(inlinee), Some(file), Some(line)) =
                (u32_at(rest, 0), u32_at(rest, 4), u32_at(rest, 8))
            {
                found.insert(inlinee, Line { file: Some(file), number: line, column: 0 });
                let more = if has_more { u32_at(rest, 12).unwrap_or(0) as usize } else { 0 };
                let size = if has_more { more.saturating_mul(4).saturating_add(16) } else { 12 };
                rest = rest.get(size..).unwrap_or_default();
            }
        }
        found
    }

    /// The text of a path, by its place among the checksums: where it is in the stream of all paths.
    pub(super) fn path(&self, file: u32) -> Option<u32> {
        u32_at(self.checksums, file as usize)
    }

    /// Sorted places in, the line at each out, as far as there is one.
    pub(super) fn lines(&self, places: &[Place]) -> Vec<Option<Line>> {
        const LINES: u32 = 0xf2;
        // By place: the nearest line that is not below the place before it, where it begins, and where its function ends.
        let mut begun: Vec<Option<(Place, u32, Line)>> = vec![None; places.len()];
        for (_, part) in subsections(self.lines).filter(|(kind, _)| *kind == LINES) {
            let (Some(offset), Some(section), Some(flags), Some(size)) =
                (u32_at(part, 0), u16_at(part, 4), u16_at(part, 6), u32_at(part, 8))
            else {
                continue;
            };
            let first = places.partition_point(|it| *it < Place { section, offset });
            let end = offset.saturating_add(size);
            let is_wanted = places.get(first).is_some_and(|it| *it < Place { section, offset: end });
            if let Some(blocks) = part.get(12..).filter(|_| is_wanted) {
                each_line(blocks, flags & 1 != 0, |at, line| {
                    let at = Place { section, offset: offset.saturating_add(at) };
                    let slot = places.partition_point(|place| *place < at);
                    if at.offset < end
                        && let Some(slot) = begun.get_mut(slot)
                        && slot.is_none_or(|(known, ..)| known <= at)
                    {
                        *slot = Some((at, end, line));
                    }
                });
            }
        }
        let mut nearest = None;
        let lines = places.iter().zip(begun).map(|(place, begun)| {
            nearest = begun.or(nearest);
            let (at, end, line) = nearest?;
            (at.section == place.section && place.offset < end).then_some(line)
        });
        lines.collect()
    }

    /// Sorted places in, the functions that they are in out; with what is inlined, if so.
    pub(super) fn functions(
        &self,
        places: &[Place],
        inlinees: Option<&HashMap<Inlinee, Line>>,
        room: &mut Room,
    ) -> Result<Functions<'a>, PdbError> {
        let mut found = Functions { names: Vec::new(), at: vec![None; places.len()] };
        let mut open: Vec<Scope> = Vec::new();
        let mut sites = 0;
        let mut rest = self.symbols;
        while let Some((kind, record, behind)) = split_record(rest) {
            rest = behind;
            match kind {
                symbol::GPROC32 | symbol::LPROC32 | symbol::GPROC32_ID | symbol::LPROC32_ID => {
                    let scope = match function(record) {
                        Some((start, size, name)) => {
                            let first = places.partition_point(|it| *it < start);
                            let end = Place { offset: start.offset.saturating_add(size), ..start };
                            let last = places.partition_point(|it| *it < end).max(first);
                            room.steps(last - first)?;
                            found.add(name, first..last);
                            Scope::Function(Around {
                                start: start.offset,
                                places: first..last,
                                ..Around::default()
                            })
                        }
                        None => Scope::Other,
                    };
                    open.push(scope);
                }
                symbol::INLINE_SITE | symbol::INLINE_SITE_2 => {
                    let scope = match (open.last(), inlinees) {
                        (Some(Scope::Function(around)), Some(inlinees))
                            if !around.places.is_empty() && open.len() < MAX_LEVELS =>
                        {
                            sites += 1;
                            let site = Site { kind, record, number: sites };
                            inline_site(&site, around, places, inlinees, &mut found.at, room)?
                        }
                        _ => Scope::Other,
                    };
                    open.push(scope);
                }
                symbol::BLOCK32 | symbol::SEPARATED => {
                    // It is part of what is around it.
                    open.push(open.last().cloned().unwrap_or(Scope::Other));
                }
                symbol::THUNK32 => open.push(Scope::Other),
                symbol::END | symbol::INLINE_SITE_END | symbol::PROC_ID_END => {
                    open.pop();
                }
                _ => {}
            }
            if open.len() > 2 * MAX_LEVELS {
                break;
            }
        }
        Ok(found)
    }
}

/// The parts that lines and what belongs to them are in, with their kinds.
fn subsections(lines: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    /// Of those that are to be passed over.
    const IGNORED: u32 = 1 << 31;
    let mut rest = lines;
    std::iter::from_fn(move || {
        let (kind, size) = (u32_at(rest, 0)?, u32_at(rest, 4)? as usize);
        let part = rest.get(8..)?.get(..size)?;
        rest = rest.get((8 + size).next_multiple_of(4)..).unwrap_or_default();
        Some((kind, part))
    })
    .filter(|(kind, _)| kind & IGNORED == 0)
}

impl<'a> Functions<'a> {
    /// Adds one that is at some places.
    fn add(&mut self, name: &'a [u8], places: Range<usize>) {
        let position = self.names.len();
        let slots = self.at.get_mut(places).unwrap_or_default();
        if slots.is_empty() {
            return;
        }
        slots.fill(Some(Function { name: position, inlined: Vec::new(), innermost: 0 }));
        self.names.push(name);
    }
}

/// What symbols are in.
#[derive(Clone, Debug)]
enum Scope {
    /// A function, or one that is inlined into it.
    Function(Around),
    Other,
}

/// What is around an inlined function.
#[derive(Clone, Debug, Default)]
struct Around {
    /// Where the function begins that all is inlined into, and which of the wanted places are in it.
    start: u32,
    places: Range<usize>,
    /// The inlined function, by its number, with its file, and what it is inlined into; 0 for the function that is inlined into none.
    site: u32,
    inlinee: Inlinee,
    file: Option<u32>,
    outer: u32,
}

/// An inlined function as the symbols have it, and its number, from 1.
struct Site<'a> {
    kind: u16,
    record: &'a [u8],
    number: u32,
}

/// Notes an inlined function for the places that it is at.
fn inline_site(
    site: &Site<'_>,
    around: &Around,
    places: &[Place],
    inlinees: &HashMap<Inlinee, Line>,
    found: &mut [Option<Function>],
    room: &mut Room,
) -> Result<Scope, PdbError> {
    let annotations = if site.kind == symbol::INLINE_SITE { 12 } else { 16 };
    let (Some(inlinee), Some(annotations)) = (u32_at(site.record, 8), site.record.get(annotations..)) else {
        return Ok(Scope::Other);
    };
    let first_line = inlinees.get(&inlinee).copied().unwrap_or_default();
    let of_function = places.get(around.places.clone()).unwrap_or_default();
    for row in rows(annotations, first_line) {
        let is_before =
            |code: u32| of_function.partition_point(|place| place.offset.wrapping_sub(around.start) < code);
        let first = around.places.start + is_before(row.start);
        let last = (around.places.start + is_before(row.end())).max(first);
        room.steps(1 + last - first)?;
        for function in found.get_mut(first..last).unwrap_or_default().iter_mut().flatten() {
            // Of what overlaps, the first counts.
            let is_within = function.innermost == around.site;
            if !is_within && (around.site == 0 || function.innermost != around.outer) {
                continue;
            }
            if !is_within {
                // Compilers leave out of a function's code what is inlined into it, now and then.
                room.inlined()?;
                function.inlined.push((around.inlinee, Line { file: around.file, ..Line::default() }));
            }
            room.inlined()?;
            function.inlined.push((inlinee, row.line));
            function.innermost = site.number;
        }
    }
    Ok(Scope::Function(Around {
        site: site.number,
        inlinee,
        file: first_line.file,
        outer: around.site,
        start: around.start,
        places: around.places.clone(),
    }))
}

/// Kinds of symbols.
mod symbol {
    pub(super) const END: u16 = 0x0006;
    pub(super) const THUNK32: u16 = 0x1102;
    pub(super) const BLOCK32: u16 = 0x1103;
    pub(super) const LPROC32: u16 = 0x110f;
    pub(super) const GPROC32: u16 = 0x1110;
    pub(super) const SEPARATED: u16 = 0x1132;
    pub(super) const LPROC32_ID: u16 = 0x1146;
    pub(super) const GPROC32_ID: u16 = 0x1147;
    pub(super) const INLINE_SITE: u16 = 0x114d;
    pub(super) const INLINE_SITE_END: u16 = 0x114e;
    pub(super) const PROC_ID_END: u16 = 0x114f;
    pub(super) const INLINE_SITE_2: u16 = 0x115d;
}

/// Where a function is, how long, and what it is called.
fn function(record: &[u8]) -> Option<(Place, u32, &[u8])> {
    let start = Place { section: u16_at(record, 32)?, offset: u32_at(record, 28)? };
    Some((start, u32_at(record, 12)?, text_at(record, 35)?))
}

/// Lines of a function, from its blocks: one for each file.
fn each_line(mut blocks: &[u8], has_columns: bool, mut take: impl FnMut(u32, Line)) {
    /// Numbers that stand for code without a line.
    const HIDDEN: [u32; 2] = [0xf0_0f00, 0xfe_efee];
    while let (Some(file), Some(count), Some(size)) =
        (u32_at(blocks, 0), u32_at(blocks, 4), u32_at(blocks, 8))
    {
        let block = blocks.get(12..(size as usize).max(12)).unwrap_or_default();
        let (lines, columns) = block.split_at_checked((count as usize).saturating_mul(8)).unwrap_or_default();
        for (index, entry) in lines.chunks_exact(8).enumerate() {
            let [Some(at), Some(line)] = [0, 4].map(|at| u32_at(entry, at)) else { continue };
            let line = line & 0xff_ffff;
            let column = if has_columns { u16_at(columns, 4 * index).unwrap_or(0).into() } else { 0 };
            let hidden = HIDDEN.contains(&line);
            let file = Some(file).filter(|_| !hidden);
            let number = if hidden { 0 } else { line };
            take(at, Line { file, number, column });
        }
        blocks = blocks.get((size as usize).max(12)..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(offset: u32) -> Place {
        Place { section: 1, offset }
    }

    fn record(kind: u16, content: &[u8]) -> Vec<u8> {
        [&(content.len() as u16 + 2).to_le_bytes(), &kind.to_le_bytes(), content].concat()
    }

    /// A function of 256 bytes at 256.
    fn function_record(name: &str) -> Vec<u8> {
        let mut content = [0; 35];
        content[12..16].copy_from_slice(&256_u32.to_le_bytes());
        content[28..32].copy_from_slice(&256_u32.to_le_bytes());
        content[32] = 1;
        record(symbol::GPROC32, &[&content, name.as_bytes(), &[0]].concat())
    }

    /// Code that is inlined: pieces, of which each begins so far behind the end of the one before, and has such a length below 128.
    fn site(inlinee: u8, pieces: &[(u8, u8)]) -> Vec<u8> {
        let mut content = vec![0; 12];
        content[8] = inlinee;
        content.extend(pieces.iter().flat_map(|(gap, length)| [12, *length, *gap]));
        record(symbol::INLINE_SITE, &content)
    }

    fn end() -> Vec<u8> {
        record(symbol::INLINE_SITE_END, &[])
    }

    fn inlined(symbols: &[Vec<u8>], places: &[Place], room: &mut Room) -> Result<Vec<Vec<u32>>, PdbError> {
        let symbols = [&[function_record("f")], symbols, &[record(symbol::END, &[])]].concat().concat();
        let parts = Parts::new(&symbols, &[]);
        let found = parts.functions(places, Some(&HashMap::new()), room)?;
        let of = |function: Option<Function>| {
            let function = function.unwrap();
            assert_eq!(found.names[function.name], b"f");
            function.inlined.iter().map(|(inlinee, _)| *inlinee).collect()
        };
        Ok(found.at.into_iter().map(of).collect())
    }

    /// By hand: 1 is at 10..20 and 30..40, with 2 in it at 12..15; 3 is at 50..60, with 4 in it at 22..25, where it does not tell to be; and in
    /// that is 5, at 13, where it can't be.
    #[test]
    fn what_is_inlined_is_where_its_pieces_are() {
        let first = [site(1, &[(10, 10), (10, 10)]), site(2, &[(12, 3)]), end(), end()];
        let second = [site(3, &[(50, 10)]), site(4, &[(22, 3)]), site(5, &[(13, 1)]), end(), end(), end()];
        let symbols = [&first[..], &second].concat();
        let places = [9, 10, 12, 13, 15, 23, 25, 39, 50, 60].map(|at| place(256 + at));
        let found = inlined(&symbols, &places, &mut Room::default()).unwrap();
        let expected: [&[u32]; 10] = [&[], &[1], &[1, 2], &[1, 2], &[1], &[3, 4], &[], &[1], &[3], &[]];
        assert_eq!(found, expected);
    }

    /// No compiler says that two functions which are not in each other are at one place.
    #[test]
    fn of_functions_at_one_place_one_counts_and_there_are_only_so_many() {
        let symbols: Vec<_> = (0..200).flat_map(|id| [site(id, &[(0, 100), (0, 100)]), end()]).collect();
        let places: Vec<Place> = (0..200).map(|at| place(256 + at)).collect();
        let found = inlined(&symbols, &places, &mut Room::default()).unwrap();
        assert_eq!(found, vec![vec![0]; 200]);
        // Of the function and of each inlined one there are 200 places, and 2 pieces.
        let steps = |steps| inlined(&symbols, &places, &mut Room { steps, ..Room::default() });
        assert!(steps(200 + 200 * 202).is_ok());
        assert!(matches!(
            steps(200 + 200 * 202 - 1),
            Err(PdbError::TooMuch("functions around the same places"))
        ));
        let nested = [site(1, &[(0, 100)]), site(2, &[(0, 100)]), end(), end()];
        let most = |most| inlined(&nested, &places, &mut Room { inlined: most, ..Room::default() });
        assert!(most(200).is_ok());
        assert!(matches!(most(199), Err(PdbError::TooMuch("functions that are inlined in each other"))));
    }

    /// Lines of a function: where it begins, its size, and for each of its files where lines begin, and their numbers.
    type Lines = (u32, u32, Vec<Vec<(u32, u32)>>);

    fn lines_of(functions: &[Lines]) -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let mut all = Vec::new();
        for (start, size, files) in functions {
            let mut part = [words(&[*start, 1]), words(&[*size])].concat();
            for (lines, file) in files.iter().zip(0..) {
                let entries = lines.iter().flat_map(|&(at, line)| words(&[at, line]));
                part.extend(words(&[file, lines.len() as u32, 12 + 8 * lines.len() as u32]));
                part.extend(entries.collect::<Vec<_>>());
            }
            all.extend(words(&[0xf2, part.len() as u32]));
            all.extend(part);
        }
        all
    }

    proptest! {
        #[test]
        fn a_place_has_the_line_that_begins_last_before_it(
            functions in prop::collection::vec(
                (1_u32..20, prop::collection::vec(prop::collection::vec((0_u32..24, 1_u32..50), 0..5), 0..3)),
                0..6,
            ),
            wanted in prop::collection::btree_set(0_u32..110, 0..40),
        ) {
            let mut start = 0;
            let functions: Vec<Lines> = functions.into_iter().map(|(size, files)| {
                start += size;
                (start - size, size, files)
            }).collect();
            let places: Vec<Place> = wanted.iter().map(|&at| place(at)).collect();
            let bytes = lines_of(&functions);
            let found = Parts::new(&[], &bytes).lines(&places);
            for (&wanted, found) in wanted.iter().zip(found) {
                let of = functions.iter().find(|(start, size, _)| (*start..start + size).contains(&wanted));
                let lines = of.into_iter().flat_map(|(start, _, files)| {
                    files.iter().zip(0..).flat_map(move |(lines, file)| {
                        lines.iter().map(move |&(at, line)| (start + at, file, line))
                    })
                });
                // Of several that begin at one place, the last.
                let nearest = lines.filter(|(at, ..)| *at <= wanted).max_by_key(|(at, ..)| *at);
                let expected =
                    nearest.map(|(_, file, number)| Line { file: Some(file), number, column: 0 });
                prop_assert_eq!(found, expected, "{}", wanted);
            }
        }
    }
}
