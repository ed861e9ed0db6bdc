//! The rows of one function: its prologue's, then those of its body, and those of each epilogue in it.

use std::cell::OnceCell;

use super::Row;
use super::coded_epilogue::{self, Epilogues};
use super::epilogue::Instructions;
use super::prologue::{Frame, Prologue};
use super::runtime_function::RuntimeFunction;
use super::unwind_info::{MAX_CHAIN, UnwindInfo};
use crate::arch::{Call, Machine};
use crate::pe::{Functions, Image, PlacedRow};
use crate::x86_64::X86_64;

/// Compiles a function of an image.
#[derive(Debug)]
struct Compiler<'i> {
    image: &'i Image,
    functions: &'i Functions<RuntimeFunction>,
    function: RuntimeFunction,
    /// How many of its bytes the image has.
    size: u32,
    /// What it is a part of, once that is needed.
    primary: OnceCell<Option<RuntimeFunction>>,
    rows: &'i mut Vec<PlacedRow<X86_64>>,
}

pub(super) fn compile(
    image: &Image,
    functions: &Functions<RuntimeFunction>,
    number: usize,
    rows: &mut Vec<PlacedRow<X86_64>>,
) -> u32 {
    rows.clear();
    let Some(function) = functions.get(number) else { return 0 };
    let size = functions.code_end(number) - function.begin;
    let in_image = image.size_at(function.begin, size);
    let mut compiler =
        Compiler { image, functions, function, size: in_image, primary: OnceCell::new(), rows };
    if compiler.collect().is_none() {
        rows.clear();
        rows.push((0, Row::EMPTY, Frame::at_entry().row().1));
    }
    // Of rows at one offset the last one counts.
    rows.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            *first = *later;
        }
        same
    });
    // What lies behind its bytes is no code.
    rows.retain(|&(offset, ..)| offset == 0 || offset < in_image);
    size
}

impl Compiler<'_> {
    fn collect(&mut self) -> Option<()> {
        let Compiler { image, function, size, .. } = *self;
        let described_by = function.described_by(image)?;
        let info = UnwindInfo::read(image, described_by.unwind_data)?;
        let prologue = Prologue::of(image, &info)?;
        // Of a part that lies elsewhere, all is behind the prologue.
        let executed = if function.begin == described_by.begin { 0 } else { u32::MAX };
        prologue.replay(|offset, frame| {
            let offset = offset.saturating_sub(executed);
            // None is kept of the others.
            if offset == 0 || offset < size {
                let (row, traits) = frame.row();
                self.rows.push((offset, row, traits));
            }
        })?;
        if info.version == 1 {
            // Without its code, it has no epilogues that are known.
            let code = image.code(function.begin, size).unwrap_or_default();
            self.add_epilogues(described_by, &info, &code);
        } else if function == described_by {
            self.add_coded_epilogues(&info, &prologue);
        }
        Some(())
    }

    /// Looks for epilogues at every byte: where instructions begin is not known.
    fn add_epilogues(&mut self, described_by: RuntimeFunction, info: &UnwindInfo, code: &[u8]) {
        let begin = self.function.begin;
        let prologue = std::mem::take(self.rows);
        let mut steps = prologue.as_slice();
        let mut body = Frame::at_entry().row();
        let mut in_epilogue = false;
        for (offset, &first) in (0..).zip(code) {
            let is_step = steps.first().is_some_and(|&(at, ..)| at <= offset);
            if !(is_step || in_epilogue || MAY_BEGIN[usize::from(first)]) {
                continue;
            }
            while let Some((&(_, row, traits), further)) =
                steps.split_first().filter(|(step, _)| step.0 <= offset)
            {
                (body, steps) = ((row, traits), further);
            }
            let rest = code.get(offset as usize..).unwrap_or_default();
            let instructions =
                Instructions { code: rest, rva: begin + offset, frame_register: info.frame_register };
            let epilogue = may_begin(rest)
                .then(|| instructions.epilogue(|target| self.leaves(described_by, info, target)))
                .flatten()
                .filter(|_| !self.ends_call(code, offset));
            if let Some(frame) = epilogue {
                let (row, traits) = frame.row();
                self.rows.push((offset, row, traits));
            } else if is_step || in_epilogue {
                self.rows.push((offset, body.0, body.1));
            }
            in_epilogue = epilogue.is_some();
        }
        // Where there is no code.
        self.rows.extend_from_slice(steps);
    }

    /// Whether a jump to `target` is one out of the function: to another one, or to its own beginning.
    fn leaves(&self, function: RuntimeFunction, info: &UnwindInfo, target: i64) -> bool {
        let Ok(target) = u32::try_from(target) else { return true };
        if (function.begin..function.end).contains(&target) {
            return target == function.begin && info.chained.is_none();
        }
        let Some(other) = self.functions.at(target) else { return true };
        let own = *self.primary.get_or_init(|| self.primary(function));
        let other = self.primary(other);
        own != other || other.is_none_or(|primary| primary.begin == target)
    }

    /// The function that an entry is a part of; `None` where that makes no sense.
    fn primary(&self, entry: RuntimeFunction) -> Option<RuntimeFunction> {
        let mut entry = entry.described_by(self.image)?;
        for _ in 0..=MAX_CHAIN {
            match UnwindInfo::read(self.image, entry.unwind_data)?.chained {
                Some(next) => entry = next.described_by(self.image)?,
                None => return Some(entry),
            }
        }
        None
    }

    /// Whether the byte at `offset` is the last one of a call. A return address is looked up by it, and together with the
    /// instructions behind the call it may look like an epilogue.
    fn ends_call(&self, code: &[u8], offset: u32) -> bool {
        let behind = offset as usize + 1;
        let before = code.get(behind.saturating_sub(X86_64::LONGEST_CALL)..behind).unwrap_or_default();
        let mut padded = [0; X86_64::LONGEST_CALL];
        if let Some(end) = padded.get_mut(X86_64::LONGEST_CALL - before.len()..) {
            end.copy_from_slice(before);
        }
        match X86_64::call_at_end(&padded) {
            Some(Call::Direct(distance)) => {
                let target = i64::from(self.function.begin) + behind as i64 + i64::from(distance);
                u32::try_from(target).is_ok_and(|target| self.image.text.contains(&target))
            }
            Some(Call::Indirect) => true,
            None => false,
        }
    }

    fn add_coded_epilogues(&mut self, info: &UnwindInfo, prologue: &Prologue) {
        let mut epilogues = Epilogues::of(self.function, info);
        epilogues.starts.sort_unstable();
        let frames = coded_epilogue::frames(prologue);
        let mut steps = std::mem::take(self.rows).into_iter().peekable();
        let mut body = None;
        let mut behind = 0;
        for start in epilogues.starts {
            let Some(start) = start.checked_sub(self.function.begin) else { continue };
            if start >= self.size {
                break;
            }
            if start < behind {
                continue;
            }
            while let Some(step) = steps.next_if(|&(at, ..)| at < start) {
                body = Some(step);
                self.rows.push(step);
            }
            behind = start.saturating_add(epilogues.size);
            for (offset, frame) in frames.iter().take_while(|&&(offset, _)| offset < epilogues.size) {
                let (row, traits) = frame.row();
                self.rows.push((start + offset, row, traits));
            }
            while let Some(step) = steps.next_if(|&(at, ..)| at <= behind) {
                body = Some(step);
            }
            if let Some((_, row, traits)) = body {
                self.rows.push((behind, row, traits));
            }
        }
        self.rows.extend(steps);
    }
}

/// A first look, by one byte, which nearly all fail: there are millions in a large image.
const MAY_BEGIN: [bool; 256] = {
    let mut may = [false; 256];
    let mut first = 0;
    while first < may.len() {
        may[first] =
            matches!(first, 0x40..=0x4f | 0x58..=0x5f | 0xc2 | 0xc3 | 0xe9 | 0xeb | 0xf2 | 0xf3 | 0xff);
        first += 1;
    }
    may
};

/// A second look, by what follows.
fn may_begin(code: &[u8]) -> bool {
    match *code {
        [0x40..=0x4f, next, ..] => matches!(next, 0x58..=0x5f | 0x83 | 0x81 | 0x8d | 0xcf | 0xff),
        [0xf3, next, ..] => next == 0xc3,
        [0xff, next, ..] => next == 0x25,
        [first, ..] => MAY_BEGIN[usize::from(first)],
        [] => false,
    }
}
