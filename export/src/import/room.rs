//! How large the stacks of a file may be together; an error that names the place and the limit where they are larger.
//!
//! A file has a name once, a place with its inlined functions once, and a stack once, and refers to each by a few bytes. What is written of
//! it may have them each time: a line of folded stacks has the names of all functions on a stack, speedscope has all functions of each
//! sample's stack. So products of what the file has are limited here, before anything is written: by a fixed number, and, since a
//! large file may have more, by a multiple of the references that there are.

use collector_common::intern::StackId;
use collector_common::record::{ExportMachine, FrameId};

use super::{ImportError, Imported};
use crate::symbolize::Symbols;

/// The most functions on a stack, inlined ones included.
pub(super) const DEEPEST: u64 = 1 << 16;

/// The most bytes of their names.
const LONGEST: u64 = 64 << 20;

/// The most functions on all distinct stacks together, and how many more for each frame on them.
const FUNCTIONS: [u64; 2] = [1 << 24, 4];

/// The same of the bytes of their names.
const BYTES: [u64; 2] = [1 << 30, 256];

/// The most functions on the stacks of all samples, and how many more for each sample.
const OF_SAMPLES: [u64; 2] = [1 << 26, 1 << 10];

/// The same of the bytes of their names.
const BYTES_OF_SAMPLES: [u64; 2] = [1 << 30, 1 << 15];

/// The most samples.
pub(super) const MOST_SAMPLES: usize = 1 << 28;

/// The longest name of a process, a thread, a module, a kind or an attribute: each may be written again and again.
const LONGEST_NAME: usize = 4 << 10;

/// The most attributes of a sample: many samples may have the same ones.
pub(super) const MOST_ATTRIBUTES: usize = 64;

/// As much of a name as is kept.
pub(super) fn name(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_NAME)]
}

/// What a stack has, or a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) functions: u64,
    /// Of their names.
    pub(super) bytes: u64,
}

impl Size {
    pub(super) fn add(&mut self, other: Self) {
        self.functions = self.functions.saturating_add(other.functions);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// What distinct stacks have together so far.
#[derive(Debug, Default)]
pub(super) struct Room {
    frames: u64,
    taken: Size,
}

impl Room {
    /// Adds a distinct stack of so many frames, of which `place` says where it is.
    pub(super) fn stack(
        &mut self,
        frames: usize,
        size: Size,
        place: impl Fn() -> String,
    ) -> Result<(), ImportError> {
        self.frames += frames as u64;
        self.taken.add(size);
        let of_one = |limit| (limit, place());
        let of_all = |[fixed, more]: [u64; 2]| (more * self.frames + fixed, format!("up to {} it", place()));
        let ((limit, place), what) = if size.functions > DEEPEST {
            (of_one(DEEPEST), "functions on its stack")
        } else if size.bytes > LONGEST {
            (of_one(LONGEST), "bytes of names on its stack")
        } else if self.taken.functions > FUNCTIONS[0] + FUNCTIONS[1] * self.frames {
            (of_all(FUNCTIONS), "functions on all stacks")
        } else if self.taken.bytes > BYTES[0] + BYTES[1] * self.frames {
            (of_all(BYTES), "bytes of names on all stacks")
        } else {
            return Ok(());
        };
        Err(ImportError::TooLarge { place, what, limit })
    }
}

/// What the stacks of samples have together so far, counted as they are read: a reader that goes through a stack for each sample of it
/// would take long otherwise, before [`checked`] sees what it made.
#[derive(Debug, Default)]
pub(super) struct FramesOfSamples {
    samples: u64,
    frames: u64,
}

impl FramesOfSamples {
    /// Adds a sample with a stack of so many frames.
    pub(super) fn add(&mut self, frames: usize) -> Result<(), ImportError> {
        self.samples += 1;
        self.frames = self.frames.saturating_add(frames as u64);
        let all = OF_SAMPLES[0] + OF_SAMPLES[1] * self.samples;
        if self.frames > all {
            let place = format!("up to sample {} it", self.samples);
            return Err(ImportError::TooLarge {
                place,
                what: "frames on the stacks of all samples",
                limit: all,
            });
        }
        if frames as u64 > DEEPEST {
            let place = format!("sample {}", self.samples);
            return Err(ImportError::TooLarge { place, what: "frames on its stack", limit: DEEPEST });
        }
        Ok(())
    }
}

/// What was read, if its stacks are no larger than they may be, and neither are those of all samples.
///
/// # Errors
/// When they are: [`ImportError::TooLarge`] says where.
pub fn checked(imported: Imported) -> Result<Imported, ImportError> {
    let Imported { machine, symbols, .. } = &imported;
    let frames: Vec<Size> =
        (0..).map(FrameId).take(machine.frames().len()).map(|id| size(symbols, id)).collect();
    let mut room = Room::default();
    let mut stacks = Vec::with_capacity(machine.stacks().len());
    for (stack, id) in machine.stacks().iter().zip((0..).map(StackId)) {
        let mut size = Size::default();
        stack.iter().filter_map(|frame| frames.get(frame.0 as usize)).for_each(|frame| size.add(*frame));
        room.stack(stack.len(), size, || first_sample(machine, id))?;
        stacks.push(size);
    }
    let mut all = Size::default();
    for (sample, number) in machine.samples().iter().zip(1_u64..) {
        all.add(stacks.get(sample.stack.0 as usize).copied().unwrap_or_default());
        let limit = |[fixed, more]: [u64; 2]| fixed + more * number;
        let (what, limit) = if all.functions > limit(OF_SAMPLES) {
            ("functions on the stacks of all samples", limit(OF_SAMPLES))
        } else if all.bytes > limit(BYTES_OF_SAMPLES) {
            ("bytes of names on the stacks of all samples", limit(BYTES_OF_SAMPLES))
        } else {
            continue;
        };
        return Err(ImportError::TooLarge { place: format!("up to sample {number} it"), what, limit });
    }
    Ok(imported)
}

fn size(symbols: &Symbols, frame: FrameId) -> Size {
    let mut size = Size::default();
    for function in symbols.functions(frame) {
        size.add(Size { functions: 1, bytes: symbols.function(function.name).len() as u64 });
    }
    size
}

/// Where a stack is first met.
fn first_sample(machine: &ExportMachine, stack: StackId) -> String {
    match machine.samples().iter().position(|sample| sample.stack == stack) {
        Some(position) => format!("sample {}", position + 1),
        None => format!("stack {}", stack.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_samples_are_limited_by_the_sample_and_together() {
        let mut frames = FramesOfSamples::default();
        frames.add(1 << 16).unwrap();
        let deep = frames.add((1 << 16) + 1).unwrap_err().to_string();
        assert!(deep.starts_with("sample 2 has more than 65536 frames on its stack"), "{deep}");
        // 2^26, and 2^10 for each sample: 2^16 for each are more from the sample n on where n * (2^16 - 2^10) > 2^26.
        let mut frames = FramesOfSamples::default();
        let first = (1_u64..).find_map(|sample| Some((sample, frames.add(1 << 16).err()?.to_string())));
        let (sample, many) = first.unwrap();
        assert_eq!(sample, (1 << 26) / ((1 << 16) - (1 << 10)) + 1);
        let limit = (1 << 26) + (sample << 10);
        let expected = format!("up to sample {sample} it has more than {limit} frames on the stacks of all");
        assert!(many.starts_with(&expected), "{many}");
        // Shallow ones may go on without end.
        let mut frames = FramesOfSamples::default();
        assert!((0..1_000_000).all(|_| frames.add(1 << 10).is_ok()));
    }
}
