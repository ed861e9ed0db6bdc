//! Replays a prologue, from the function's first instruction on, and hands out the row after each of its steps.
//!
//! At the first instruction the return address is on top of the stack, which makes the CFA `rsp + 8`. From there on the
//! codes say how far `rsp` has gone below the CFA, so that every slot is known by its distance from the CFA:
//!
//! ```text
//!  cfa - 8      return address
//!  cfa - 16     the register that was pushed first
//!  cfa - depth  rsp
//! ```

use super::Row;
use super::unwind_info::{Code, MAX_CHAIN, Operation, UnwindInfo};
use crate::pe::Image;
use crate::table::{CfaRule, RegisterNumber, RegisterRule, Saved, Traits};
use crate::x86_64::{RETURN_ADDRESS, SP};

/// The DWARF number of a register by the number of its encoding.
pub(super) fn dwarf_number(register: u8) -> RegisterNumber {
    match register {
        1 => 2,
        2 => 1,
        4 => 7,
        5 => 6,
        6 => 4,
        7 => 5,
        other => other,
    }
}

/// A frame while it is built.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Which registers were saved, and the return address.
    saved: Row,
    /// Distance of `rsp` below the CFA.
    depth: i64,
    /// A register that holds an address this far below the CFA.
    pointer: Option<(RegisterNumber, i64)>,
    /// The return address is one that an interrupt pushed.
    interrupted: bool,
}

impl Frame {
    /// As at a function's first instruction.
    pub(super) fn at_entry() -> Self {
        let mut saved = Row::EMPTY;
        saved.set(RETURN_ADDRESS.into(), Saved::new(RETURN_ADDRESS, RegisterRule::Offset(-8)));
        Frame { saved, depth: 8, pointer: None, interrupted: false }
    }

    /// As at the first instruction of an interrupt's handler, where `rip`, `cs`, flags, `rsp` and `ss` were pushed, and
    /// for some an error code. The CFA is the address of `rip`.
    pub(super) fn of_interrupt(error_code: bool) -> Self {
        let mut saved = Row::EMPTY;
        saved.set(RETURN_ADDRESS.into(), Saved::new(RETURN_ADDRESS, RegisterRule::Offset(0)));
        saved.set(SP.into(), Saved::new(SP, RegisterRule::Offset(24)));
        Frame { saved, depth: if error_code { 8 } else { 0 }, pointer: None, interrupted: true }
    }

    pub(super) fn push(&mut self, register: u8) {
        self.depth += 8;
        self.save(register, -self.depth);
    }

    pub(super) fn allocate(&mut self, size: u32) {
        self.depth += i64::from(size);
    }

    /// The register was saved at this distance from the CFA. No prologue saves `rsp`.
    pub(super) fn save(&mut self, register: u8, distance: i64) {
        let register = dwarf_number(register);
        if let Ok(distance) = i32::try_from(distance)
            && register != SP
        {
            self.saved.set(register.into(), Saved::new(register, RegisterRule::Offset(distance)));
        }
    }

    /// `rsp` is in (or an offset below) this register, which does not change until the epilogue.
    pub(super) fn set_pointer(&mut self, register: u8, offset: u32) {
        self.pointer = Some((dwarf_number(register), self.depth - i64::from(offset)));
    }

    /// `rsp` is about to become this register plus an offset, from where on registers are popped.
    pub(super) fn release_from(&mut self, register: RegisterNumber, offset: i32) {
        let depth = self.depth + i64::from(offset);
        if register == SP {
            self.depth = depth;
        } else {
            self.pointer = Some((register, depth));
        }
    }

    pub(super) fn row(&self) -> (Row, Traits) {
        let (register, offset) = self.pointer.unwrap_or((SP, self.depth));
        let cfa = i32::try_from(offset)
            .map_or(CfaRule::Unsupported, |offset| CfaRule::RegisterOffset { register, offset });
        let traits = Traits { return_address: RETURN_ADDRESS, signal: self.interrupted, signed: false };
        let mut row = self.saved;
        row.cfa = cfa;
        (row, traits)
    }
}

/// More than a function and all it may be chained to have registers to save.
const MAX_STEPS: usize = 512;

/// A function's codes and those of the functions it is chained to, in the order in which they were executed.
#[derive(Debug)]
pub(super) struct Prologue {
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    /// Offset from the function's beginning at which it has been executed.
    offset: u32,
    operation: Operation,
    frame_register: u8,
    frame_offset: u8,
}

impl Prologue {
    /// The codes of a function with this unwind information; `None` where they make no sense.
    pub(super) fn of(image: &Image, own: &UnwindInfo) -> Option<Self> {
        let mut steps = Vec::new();
        let mut info = *own;
        let mut is_own = true;
        for _ in 0..=MAX_CHAIN {
            for code in info.codes() {
                let Code { offset, operation } = code?;
                // What a function is chained to was executed before it was entered.
                let offset = if is_own { offset.into() } else { 0 };
                let UnwindInfo { frame_register, frame_offset, .. } = info;
                if steps.len() == MAX_STEPS {
                    return None;
                }
                steps.push(Step { offset, operation, frame_register, frame_offset });
            }
            let Some(primary) = info.chained else {
                steps.reverse();
                return Some(Prologue { steps });
            };
            info = UnwindInfo::read(image, primary.described_by(image)?.unwind_data)?;
            is_own = false;
        }
        None
    }

    /// Calls `emit` with the offset from the function's beginning and the frame that holds from there, in ascending order.
    /// `None` where the codes contradict each other.
    pub(super) fn replay(&self, mut emit: impl FnMut(u32, &Frame)) -> Option<()> {
        let base = self.base_of_saves()?;
        let mut frame = Frame::at_entry();
        let mut executed = 0;
        for (index, step) in self.steps.iter().enumerate() {
            if matches!(step.operation, Operation::Epilogue { .. } | Operation::Nothing) {
                continue;
            }
            if step.offset > executed {
                emit(executed, &frame);
                executed = step.offset;
            }
            match step.operation {
                Operation::Push { register } => frame.push(register),
                Operation::Allocate { size } => frame.allocate(size),
                Operation::SetFrameRegister { offset } => {
                    let offset = offset.unwrap_or(step.frame_offset.into());
                    frame.set_pointer(step.frame_register, offset);
                }
                Operation::Save { register, offset } => frame.save(register, i64::from(offset) - base),
                Operation::MachineFrame { error_code } if index == 0 => {
                    frame = Frame::of_interrupt(error_code);
                }
                Operation::MachineFrame { .. } => return None,
                Operation::Epilogue { .. } | Operation::Nothing => {}
            }
        }
        emit(executed, &frame);
        Some(())
    }

    /// What registers are saved relative to, as a distance below the CFA: `rsp` when the frame register was set, or after
    /// the whole prologue where the function has none.
    fn base_of_saves(&self) -> Option<i64> {
        let has_register = self.steps.last().is_some_and(|own| own.frame_register != 0);
        let mut depth = match self.steps.first().map(|step| step.operation) {
            Some(Operation::MachineFrame { error_code }) => Frame::of_interrupt(error_code).depth,
            _ => Frame::at_entry().depth,
        };
        let mut at_set = None;
        for step in &self.steps {
            match step.operation {
                Operation::Push { .. } => depth += 8,
                Operation::Allocate { size } => depth += i64::from(size),
                Operation::SetFrameRegister { .. } => at_set = Some(depth),
                _ => {}
            }
        }
        if has_register { at_set } else { Some(depth) }
    }

    /// The operations, the first one executed first.
    pub(super) fn operations(&self) -> impl DoubleEndedIterator<Item = Operation> {
        self.steps.iter().map(|step| step.operation)
    }
}
