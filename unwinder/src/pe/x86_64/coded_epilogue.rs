//! Epilogues that unwind information of version 2 names by codes.
//!
//! The first code holds their size in bytes and whether one ends the function; each further one holds how far before the
//! function's end another begins. The size is that of the pops and of the first byte of what follows them: the stack's
//! release lies before. The pops mirror the prologue's pushes; a pushed flags register (an allocation of eight bytes below
//! the others) is popped by one byte.

use super::prologue::{Frame, Prologue};
use super::runtime_function::RuntimeFunction;
use super::unwind_info::{Operation, UnwindInfo};

/// The epilogues of a function.
#[derive(Debug)]
pub(super) struct Epilogues {
    pub(super) size: u32,
    /// Where each begins, as an RVA.
    pub(super) starts: Vec<u32>,
}

impl Epilogues {
    pub(super) fn of(function: RuntimeFunction, info: &UnwindInfo) -> Self {
        let mut codes = info.codes().map_while(|code| {
            let code = code?;
            match code.operation {
                Operation::Epilogue { info } => Some((code.offset, info)),
                _ => None,
            }
        });
        let mut starts = Vec::new();
        let Some((size, flags)) = codes.next() else { return Epilogues { size: 0, starts } };
        let size = u32::from(size);
        if flags & 1 != 0 {
            starts.extend(function.end.checked_sub(size));
        }
        let distances = codes.map(|(low, high)| u32::from(high) << 8 | u32::from(low));
        // 0 fills up a pair.
        starts.extend(
            distances.take_while(|&distance| distance != 0).filter_map(|d| function.end.checked_sub(d)),
        );
        Epilogues { size, starts }
    }
}

/// The frames of such an epilogue, and the offset into it from which each holds, in ascending order.
pub(super) fn frames(prologue: &Prologue) -> Vec<(u32, Frame)> {
    // In the order of execution: what was pushed on top of the return address, up to where other things follow.
    let mut frame = Frame::at_entry();
    let mut length = 0;
    let mut frames = Vec::new();
    let mut only_flags = false;
    for (index, operation) in prologue.operations().enumerate() {
        let before = (length, frame);
        match operation {
            Operation::MachineFrame { .. } if index == 0 => {
                frame = Frame::of_interrupt(false);
                continue;
            }
            Operation::Allocate { size: 8 } if frames.is_empty() => {
                frame.allocate(8);
                length += 1;
                only_flags = true;
            }
            Operation::Push { register } => {
                frame.push(register);
                length += if register < 8 { 1 } else { 2 };
                only_flags = false;
            }
            Operation::Nothing => continue,
            _ => break,
        }
        frames.push(before);
    }
    if only_flags {
        // With no register pushed above them, the eight bytes are released before the epilogue, as other sizes are.
        return frames;
    }
    frames.push((length, frame));
    frames.reverse();
    for (at, _) in &mut frames {
        *at = length - *at;
    }
    frames
}
