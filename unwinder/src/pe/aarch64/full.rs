//! Full unwind records (`.xdata`):
//!
//! ```text
//!  word 0   function length / 4 (18 bits), version (2), X: there is a handler, E: one epilogue, which ends the function,
//!           epilogue count or, with E, its first code (5), words of codes (5)
//!       1   if both are 0: epilogue count (16), words of codes (8)
//!       ..  unless E, per epilogue: start / 4 (18), reserved (4), first code (10)
//!       ..  codes
//! ```

use super::codes::{Code, Step, decode};
use crate::pe::Image;

/// There are not nearly as many registers to save.
const MAX_STEPS: usize = 128;

/// Codes from one on, in the order in which a prologue with them executes.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    pub(super) steps: Vec<Step>,
    /// How many of the steps were done before: by the function that this one is a part of.
    pub(super) done_before: usize,
}

impl Sequence {
    fn decode(image: &Image, mut codes: &[u8]) -> Option<Self> {
        let mut steps = Vec::new();
        let mut own = None;
        while !codes.is_empty() {
            image.count_codes(1)?;
            let (code, rest) = decode(codes)?;
            codes = rest;
            match code {
                Code::Step(_) if steps.len() == MAX_STEPS => return None,
                Code::Step(step) => steps.push(step),
                Code::End => break,
                Code::EndOfPart => {
                    own.get_or_insert(steps.len());
                }
            }
        }
        steps.reverse();
        let done_before = own.map_or(0, |own| steps.len() - own);
        Some(Sequence { steps, done_before })
    }

    /// Instructions of the function's own.
    pub(super) fn instructions(&self) -> u32 {
        self.steps.iter().skip(self.done_before).map(|step| step.instructions()).sum()
    }
}

/// An epilogue. Its instructions undo its steps, the last one first; then it returns.
#[derive(Debug)]
pub(super) struct Epilogue {
    /// In instructions from the function's beginning.
    pub(super) start: u32,
    pub(super) sequence: Sequence,
}

impl Epilogue {
    /// One whose return is the last of `length` instructions.
    pub(super) fn at_end(length: u32, sequence: Sequence) -> Option<Self> {
        let start = length.checked_sub(sequence.instructions() + 1)?;
        Some(Epilogue { start, sequence })
    }
}

/// What is known of a function.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) prologue: Sequence,
    /// The epilogue of a function that has one, at its end.
    pub(super) single: Option<Epilogue>,
    /// The starts of others, and the indices of their first codes.
    scopes: Vec<u8>,
    codes: Vec<u8>,
}

impl Record {
    /// One without further epilogues.
    pub(super) fn new(prologue: Sequence, single: Option<Epilogue>) -> Self {
        Record { prologue, single, scopes: Vec::new(), codes: Vec::new() }
    }

    /// The record at an RVA, with no more epilogues than there are `instructions`; `None` where it is cut off, of a version that is
    /// not known, or has more codes than are read.
    pub(super) fn read(image: &Image, rva: u32, instructions: u32) -> Option<Self> {
        image.count_record()?;
        let head = word(image, rva)?;
        let (length, version, is_single) = (head & 0x3_ffff, head >> 18 & 3, head >> 21 & 1 != 0);
        let (mut count, mut code_words) = (head >> 22 & 31, head >> 27);
        if version != 0 {
            return None;
        }
        let mut at = rva.checked_add(4)?;
        if count == 0 && code_words == 0 {
            let extension = word(image, at)?;
            (count, code_words) = (extension & 0xffff, extension >> 16 & 0xff);
            at = at.checked_add(4)?;
        }
        let scopes = if is_single { 0 } else { count };
        let codes = image.vector(at.checked_add(scopes * 4)?, code_words * 4)?;
        // Each has an instruction of its own.
        let scopes = image.vector(at, scopes.min(instructions) * 4)?;
        let prologue = Sequence::decode(image, &codes)?;
        let single = if is_single {
            Some(Epilogue::at_end(length, Sequence::decode(image, codes.get(count as usize..)?)?)?)
        } else {
            None
        };
        Some(Record { prologue, single, scopes, codes })
    }

    /// The epilogues that a function does not just end with; `None` for one that makes no sense.
    pub(super) fn scopes(&self, image: &Image) -> impl Iterator<Item = Option<Epilogue>> {
        let (scopes, _) = self.scopes.as_chunks::<4>();
        scopes.iter().map(move |scope| {
            let scope = u32::from_le_bytes(*scope);
            let sequence = Sequence::decode(image, self.codes.get((scope >> 22) as usize..)?)?;
            Some(Epilogue { start: scope & 0x3_ffff, sequence })
        })
    }
}

/// A word of a record.
fn word(image: &Image, rva: u32) -> Option<u32> {
    image.array(rva).map(u32::from_le_bytes)
}

/// The function's length in instructions, which the record at an RVA begins with.
pub(super) fn length(image: &Image, rva: u32) -> Option<u32> {
    Some(word(image, rva)? & 0x3_ffff)
}
