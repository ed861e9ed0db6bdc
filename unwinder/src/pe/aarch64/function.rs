//! `.pdata` and the rows of its functions: two words an entry, the beginning's RVA and the unwind data.
//!
//! Of the unwind data, the lowest two bits say what it is: 0 the RVA of a full record, 1 and 2 packed data, 3 the RVA of
//! another entry, of whose function this code is a part.

use std::ops::Range;

use super::frame::Frame;
use super::full::{self, Epilogue, Record, Sequence};
use super::{Row, packed};
use crate::aarch64::Aarch64;
use crate::pe::{self, Functions, Image, PlacedRow};
use crate::table::Traits;

const INSTRUCTION: u32 = 4;

const ENTRY_SIZE: usize = 8;

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    begin: u32,
    data: u32,
}

impl pe::Entry for Entry {
    const SIZE: usize = ENTRY_SIZE;

    fn parse(bytes: &[u8]) -> Option<Self> {
        let field = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(Entry { begin: field(0)?, data: field(4)? })
    }

    fn begin(self) -> u32 {
        self.begin
    }

    fn is_in(self, text: &Range<u32>) -> bool {
        text.contains(&self.begin)
    }
}

impl Entry {
    /// In instructions; `None` for code that is a part of another entry's, which says no length.
    fn length(self, image: &Image) -> Option<u32> {
        match self.data & 3 {
            0 => full::length(image, self.data),
            3 => None,
            _ => Some(packed::length(self.data)),
        }
    }

    /// With those epilogues that begin within `instructions`.
    fn record(self, image: &Image, instructions: u32) -> Option<Record> {
        match self.data & 3 {
            0 => Record::read(image, self.data, instructions),
            3 => None,
            _ => packed::expand(self.data),
        }
    }

    /// The entry that this code is a part of, if it is one; another form, of which nothing is known, has bit 2.
    fn whole(self, image: &Image) -> Option<Self> {
        let bytes = (self.data & 7 == 3).then(|| image.array::<ENTRY_SIZE>(self.data & !3))??;
        pe::Entry::parse(&bytes)
    }
}

pub(super) fn compile(
    image: &Image,
    functions: &Functions<Entry>,
    number: usize,
    rows: &mut Vec<PlacedRow<Aarch64>>,
) -> u32 {
    rows.clear();
    let Some(entry) = functions.get(number) else { return 0 };
    let end = functions.get(number + 1).map_or(image.text.end, |next| next.begin);
    let room = end - entry.begin;
    let size = entry.length(image).map_or(room, |length| room.min(length * INSTRUCTION));
    let instructions = image.size_at(entry.begin, size) / INSTRUCTION;
    if (Rows { placed: rows, instructions }).collect(image, entry).is_none() {
        rows.clear();
        rows.push((0, Row::EMPTY, Frame::at_entry().row().1));
    }
    size
}

/// The rows of a function.
#[derive(Debug)]
struct Rows<'r> {
    placed: &'r mut Vec<PlacedRow<Aarch64>>,
    /// How many instructions there are; what lies behind them is no code.
    instructions: u32,
}

impl Rows<'_> {
    /// The row that holds from an instruction on, and from none before it. Of two at one place the later one counts.
    fn add(&mut self, instruction: u32, (row, traits): (Row, Traits)) {
        if instruction > 0 && instruction >= self.instructions {
            return;
        }
        let offset = instruction * INSTRUCTION;
        self.placed.pop_if(|&mut (last, ..)| last == offset);
        self.placed.push((offset, row, traits));
    }

    /// Where the last row begins.
    fn last(&self) -> u32 {
        self.placed.last().map_or(0, |&(offset, ..)| offset / INSTRUCTION)
    }

    fn collect(&mut self, image: &Image, entry: Entry) -> Option<()> {
        if let Some(whole) = entry.whole(image) {
            // As at the beginning of the whole.
            let record = whole.record(image, 0)?;
            self.add(0, frames(&record.prologue)?.first()?.1.row());
            return Some(());
        }
        let record = entry.record(image, self.instructions)?;
        let prologue = frames(&record.prologue)?;
        for (executed, frame) in &prologue {
            self.add(*executed, frame.row());
        }
        let (_, body) = prologue.last()?;
        // They are in ascending order.
        for epilogue in record.scopes(image) {
            self.epilogue(&epilogue?, body)?;
        }
        if let Some(epilogue) = &record.single {
            self.epilogue(epilogue, body)?;
        }
        Some(())
    }

    /// Where a prologue and an epilogue overlap, Windows takes it for the prologue.
    fn epilogue(&mut self, epilogue: &Epilogue, body: &Frame) -> Option<()> {
        let begin = self.last();
        let end = epilogue.start + epilogue.sequence.instructions();
        for (undone, frame) in frames(&epilogue.sequence)?.iter().rev() {
            let at = end - undone;
            if at >= begin {
                self.add(at, frame.row());
            }
        }
        if end >= begin {
            self.add(end + 1, body.row());
        }
        Some(())
    }
}

/// The frame after each instruction of a sequence, from none on; `None` where it makes no sense.
fn frames(sequence: &Sequence) -> Option<Vec<(u32, Frame)>> {
    let mut frame = Frame::at_entry();
    let (before, own) = sequence.steps.split_at_checked(sequence.done_before)?;
    for step in before {
        frame.step(*step)?;
    }
    let mut frames = vec![(0, frame)];
    let mut executed = 0;
    for step in own {
        frame.step(*step)?;
        executed += step.instructions();
        match frames.last_mut() {
            Some((last, known)) if *last == executed => *known = frame,
            _ => frames.push((executed, frame)),
        }
    }
    Some(frames)
}
