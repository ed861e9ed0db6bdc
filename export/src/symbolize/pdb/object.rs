//! The symbols and lines of one object file (`cvinfo.h` of Microsoft, LLVM's documentation of the PDB format): for a place in it, the function and what was inlined there.
//!
//! ```text
//! symbols: ... S_GPROC32 work ... S_INLINESITE twice ... S_INLINESITE leaf ... S_INLINESITE_END S_INLINESITE_END S_END ...
//! lines:   where which line of which file begins, by function; and for each inlined function where it begins in its file
//! ```

use std::collections::HashMap;

use super::annotations::Rows;
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

/// A function that holds a wanted place.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) start: u32,
    pub(super) name: String,
    /// What is inlined at the wanted place, outermost first.
    pub(super) inlined: Vec<(Inlinee, Line)>,
}

/// The streams of an object file, cut into what is used.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    symbols: &'a [u8],
    lines: &'a [u8],
}

impl<'a> Parts<'a> {
    pub(super) fn of(stream: &'a [u8], object: Object) -> Option<Self> {
        let symbols = stream.get(4..object.symbols as usize)?;
        let start = (object.symbols as usize).checked_add(object.old_lines as usize)?;
        let lines = stream.get(start..start.checked_add(object.lines as usize)?)?;
        Some(Self { symbols, lines })
    }

    /// Where lines of inlined functions begin.
    pub(super) fn inlinees(&self) -> HashMap<Inlinee, Line> {
        const INLINEE_LINES: u32 = 0xf6;
        let mut found = HashMap::new();
        for (_, part) in self.subsections().filter(|(kind, _)| *kind == INLINEE_LINES) {
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
        const CHECKSUMS: u32 = 0xf4;
        let (_, checksums) = self.subsections().find(|(kind, _)| *kind == CHECKSUMS)?;
        u32_at(checksums, file as usize)
    }

    /// Sorted places in, the line at each out, as far as there is one.
    pub(super) fn lines(&self, places: &[Place]) -> Vec<Option<Line>> {
        const LINES: u32 = 0xf2;
        let mut found = vec![None; places.len()];
        for (_, part) in self.subsections().filter(|(kind, _)| *kind == LINES) {
            let (Some(offset), Some(section), Some(flags), Some(size)) =
                (u32_at(part, 0), u16_at(part, 4), u16_at(part, 6), u32_at(part, 8))
            else {
                continue;
            };
            let first = places.partition_point(|it| *it < Place { section, offset });
            let end = Place { section, offset: offset.saturating_add(size) };
            let wanted = first..places.partition_point(|it| *it < end).max(first);
            if let Some(blocks) = part.get(12..).filter(|_| !wanted.is_empty()) {
                let start = wanted.start;
                let (places, found) = (&places[wanted.clone()], &mut found[wanted]);
                debug_assert!(start <= places.len() + start);
                each_line(blocks, flags & 1 != 0, |at, line| {
                    // Lines are sorted by place in each file; what is nearest below a place counts.
                    let at = offset.saturating_add(at);
                    let from = places.partition_point(|place| place.offset < at);
                    for found in found.iter_mut().skip(from) {
                        if found.is_none_or(|(known, _)| known <= at) {
                            *found = Some((at, line));
                        }
                    }
                });
            }
        }
        found.into_iter().map(|it| it.map(|(_, line)| line)).collect()
    }

    fn subsections(&self) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a> {
        /// Of those that are to be passed over.
        const IGNORED: u32 = 1 << 31;
        let mut rest = self.lines;
        std::iter::from_fn(move || {
            let (kind, size) = (u32_at(rest, 0)?, u32_at(rest, 4)? as usize);
            let part = rest.get(8..)?.get(..size)?;
            rest = rest.get((8 + size).next_multiple_of(4)..).unwrap_or_default();
            Some((kind, part))
        })
        .filter(|(kind, _)| kind & IGNORED == 0)
    }

    /// Sorted places in, the functions that they are in out.
    pub(super) fn functions(
        &self,
        places: &[Place],
        inlinees: &HashMap<Inlinee, Line>,
    ) -> Vec<Option<Function>> {
        let mut found: Vec<Option<Function>> = vec![None; places.len()];
        let mut open: Vec<Scope> = Vec::new();
        let mut rest = self.symbols;
        while let Some((kind, record, behind)) = split_record(rest) {
            rest = behind;
            match kind {
                symbol::GPROC32 | symbol::LPROC32 | symbol::GPROC32_ID | symbol::LPROC32_ID => {
                    let scope = function(record).map_or(Scope::Other, |(start, size, name)| {
                        let first = places.partition_point(|it| *it < start);
                        let end = Place { offset: start.offset.saturating_add(size), ..start };
                        let last = places.partition_point(|it| *it < end);
                        for slot in found.get_mut(first..last).unwrap_or_default() {
                            let name = String::from_utf8_lossy(name).into_owned();
                            *slot = Some(Function { start: start.offset, name, inlined: Vec::new() });
                        }
                        Scope::Function { start: start.offset, places: first..last.max(first) }
                    });
                    open.push(scope);
                }
                symbol::INLINE_SITE | symbol::INLINE_SITE_2 => {
                    let scope = match open.last() {
                        Some(
                            Scope::Function { start, places: range }
                            | Scope::Inlined { start, places: range },
                        ) if !range.is_empty() && open.len() < MAX_LEVELS => {
                            let (start, range) = (*start, range.clone());
                            inline_site(kind, record, start, range, places, inlinees, &mut found)
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
        found
    }
}

/// What symbols are in, and which of the wanted places are in it: they follow each other.
#[derive(Clone, Debug)]
enum Scope {
    Function { start: u32, places: std::ops::Range<usize> },
    Inlined { start: u32, places: std::ops::Range<usize> },
    Other,
}

/// Notes an inlined function for the places that it is at.
fn inline_site(
    kind: u16,
    record: &[u8],
    start: u32,
    range: std::ops::Range<usize>,
    places: &[Place],
    inlinees: &HashMap<Inlinee, Line>,
    found: &mut [Option<Function>],
) -> Scope {
    let annotations = if kind == symbol::INLINE_SITE { 12 } else { 16 };
    let (Some(inlinee), Some(annotations)) = (u32_at(record, 8), record.get(annotations..)) else {
        return Scope::Other;
    };
    let rows = Rows::of(annotations, inlinees.get(&inlinee).copied().unwrap_or_default());
    let mut within: Option<std::ops::Range<usize>> = None;
    for index in range {
        let line = places.get(index).and_then(|place| rows.at(place.offset.wrapping_sub(start)));
        if let (Some(line), Some(Some(function))) = (line, found.get_mut(index)) {
            function.inlined.push((inlinee, line));
            within = Some(within.map_or(index..index + 1, |range| range.start..index + 1));
        }
    }
    Scope::Inlined { start, places: within.unwrap_or(0..0) }
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
