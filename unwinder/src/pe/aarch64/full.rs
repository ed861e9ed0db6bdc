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
    fn decode(image: &Image<'_>, mut codes: &[u8]) -> Option<Self> {
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
pub(super) struct Record<'d> {
    pub(super) prologue: Sequence,
    /// The epilogue of a function that has one, at its end.
    pub(super) single: Option<Epilogue>,
    /// The starts of others, and the indices of their first codes.
    scopes: &'d [[u8; 4]],
    codes: &'d [u8],
}

impl<'d> Record<'d> {
    /// One without further epilogues.
    pub(super) fn new(prologue: Sequence, single: Option<Epilogue>) -> Self {
        Record { prologue, single, scopes: &[], codes: &[] }
    }

    /// The record at an RVA; `None` where it is cut off, of a version that is not known, or has more codes than are read.
    pub(super) fn read(image: &Image<'d>, rva: u32) -> Option<Self> {
        let (words, _) = image.bytes_at(rva).as_chunks::<4>();
        let (&head, mut rest) = words.split_first()?;
        let head = u32::from_le_bytes(head);
        let (length, version, is_single) = (head & 0x3_ffff, head >> 18 & 3, head >> 21 & 1 != 0);
        let (mut count, mut code_words) = (head >> 22 & 31, head >> 27);
        if version != 0 {
            return None;
        }
        if count == 0 && code_words == 0 {
            let (&extension, behind) = rest.split_first()?;
            let extension = u32::from_le_bytes(extension);
            (count, code_words, rest) = (extension & 0xffff, extension >> 16 & 0xff, behind);
        }
        let (scopes, rest) = rest.split_at_checked(if is_single { 0 } else { count as usize })?;
        let codes = rest.get(..code_words as usize)?.as_flattened();
        let prologue = Sequence::decode(image, codes)?;
        let single = if is_single {
            Some(Epilogue::at_end(length, Sequence::decode(image, codes.get(count as usize..)?)?)?)
        } else {
            None
        };
        Some(Record { prologue, single, scopes, codes })
    }

    /// The epilogues that a function does not just end with; `None` for one that makes no sense.
    pub(super) fn scopes(&self, image: &Image<'_>) -> impl Iterator<Item = Option<Epilogue>> {
        self.scopes.iter().map(move |scope| {
            let scope = u32::from_le_bytes(*scope);
            let sequence = Sequence::decode(image, self.codes.get((scope >> 22) as usize..)?)?;
            Some(Epilogue { start: scope & 0x3_ffff, sequence })
        })
    }
}

/// The function's length in instructions, which the record at an RVA begins with.
pub(super) fn length(image: &Image<'_>, rva: u32) -> Option<u32> {
    Some(u32::from_le_bytes(*image.bytes_at(rva).first_chunk()?) & 0x3_ffff)
}
