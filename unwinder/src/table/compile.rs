//! Runs the call frame instructions of one FDE and hands out its rows: every CFA instruction of DWARF 5, section 6.4.2,
//! and the GNU extensions of it.

use std::ops::{Range, RangeInclusive};

use super::bytes::Bytes;
use super::entries::{Cie, Fde, fde_at, pointer};
use super::row::{CfaRule, ExpressionSpan, RegisterNumber, RegisterRule, Row};
use super::rows::MAX_GLANCES;
use super::rules::{Saved, Traits};
use super::sections::FrameSections;
use crate::Architecture;

/// `DW_CFA_remember_state` deeper than this is no compiler's.
const MAX_REMEMBERED: usize = 64;

/// A CIE's instructions are run again when too many others came in between; longer ones are no compiler's.
const MAX_INITIAL_INSTRUCTIONS: usize = 4096;

/// A program that can't be run on: rows before the fault are good, those behind it unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// What an FDE covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Covered {
    pub(crate) start: u64,
    /// Behind the last address.
    pub(crate) end: u64,
}

/// CIEs kept at a time: most files have two or three.
const KEPT: usize = 8;

/// Where more than that take turns, a CIE is run for each FDE and each glance into one. Its instructions are hardly more than
/// the FDE's, so together they are at most so many times the section's size.
const MAX_COMMON: usize = 16;

/// What a run leaves for the next: storage, and the CIEs, which thousands of functions share.
#[derive(Debug)]
pub(crate) struct Scratch<A: Architecture> {
    remembered: Vec<Row<A>>,
    cies: [Option<(usize, Cie<A>)>; KEPT],
    /// Bytes that further FDEs may have of which all rows are kept, and those of which one is looked at.
    budget: usize,
    glances: usize,
    /// Bytes of CIEs' instructions that may still be run.
    common: usize,
}

impl<A: Architecture> Scratch<A> {
    /// For the FDEs of one section of this size. They lie beside each other, so together they have no more bytes; but an
    /// index can name FDEs within FDEs, whose rows would grow with the square of their number.
    pub(crate) fn new(section_size: usize) -> Self {
        Scratch {
            remembered: Vec::new(),
            cies: [const { None }; KEPT],
            budget: section_size,
            glances: section_size.saturating_mul(MAX_GLANCES as usize),
            common: section_size.saturating_mul(MAX_COMMON),
        }
    }
}

/// The CIE at `offset`, with its initial row.
fn cie<'c, A: Architecture>(
    cies: &'c mut [Option<(usize, Cie<A>)>; KEPT],
    remembered: &mut Vec<Row<A>>,
    common: &mut usize,
    section: &FrameSections,
    offset: usize,
) -> Result<&'c Cie<A>, Malformed> {
    let slot = (offset as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - KEPT.trailing_zeros());
    let kept = &mut cies[slot as usize % KEPT];
    if kept.as_ref().is_none_or(|(at, _)| *at != offset) {
        let (mut cie, instructions) = Cie::parse(section, offset)?;
        if instructions.remaining() > MAX_INITIAL_INSTRUCTIONS {
            return Err(Malformed);
        }
        *common = common.checked_sub(instructions.remaining()).ok_or(Malformed)?;
        remembered.clear();
        let emit = |_: Range<u64>, _, _: &Row<A>| {};
        let (row, location, covered) = (Row::EMPTY, 0, None);
        let mut program =
            Program { section, cie: &cie, row, remembered, location, covered, needed_from: 0, emit };
        program.run(instructions)?;
        cie.initial = program.row;
        *kept = Some((offset, cie));
    }
    kept.as_ref().map(|(_, cie)| cie).ok_or(Malformed)
}

/// Calls `emit` with each row and the distances from the function's start at which it holds, in ascending order.
pub(crate) fn run<A: Architecture>(
    section: &FrameSections,
    offset: u32,
    scratch: &mut Scratch<A>,
    emit: impl FnMut(Range<u64>, Traits, &Row<A>),
) -> Result<Covered, Malformed> {
    let (cie_offset, body) = fde_at(section, offset as usize)?;
    let Scratch { remembered, cies, budget, common, .. } = scratch;
    *budget = budget.checked_sub(body.remaining()).ok_or(Malformed)?;
    let cie = cie(cies, remembered, common, section, cie_offset)?;
    let fde = Fde::parse(section, cie, body)?;
    Ok(run_fde(section, cie, &fde, remembered, 0..=u64::MAX, emit))
}

/// [`run`] for the row that holds at `distance` alone, as far as that is.
pub(crate) fn run_to<A: Architecture>(
    section: &FrameSections,
    offset: u32,
    scratch: &mut Scratch<A>,
    distance: u32,
    use_row: impl FnOnce(Traits, &Row<A>),
) -> Result<Covered, Malformed> {
    let (cie_offset, body) = fde_at(section, offset as usize)?;
    let Scratch { remembered, cies, glances, common, .. } = scratch;
    *glances = glances.checked_sub(body.remaining()).ok_or(Malformed)?;
    let cie = cie(cies, remembered, common, section, cie_offset)?;
    let fde = Fde::parse(section, cie, body)?;
    let distance = u64::from(distance);
    let mut use_row = Some(use_row);
    Ok(run_fde(section, cie, &fde, remembered, distance..=distance, |holds, traits, row| {
        if holds.contains(&distance)
            && let Some(use_row) = use_row.take()
        {
            use_row(traits, row);
        }
    }))
}

/// Runs the program of an FDE up to the row that holds at the last of `distances`; those before the first are not
/// needed.
fn run_fde<A: Architecture>(
    section: &FrameSections,
    cie: &Cie<A>,
    fde: &Fde<'_>,
    remembered: &mut Vec<Row<A>>,
    distances: RangeInclusive<u64>,
    emit: impl FnMut(Range<u64>, Traits, &Row<A>),
) -> Covered {
    remembered.clear();
    let covered = Covered { start: fde.start, end: fde.end };
    let [first, last] = [distances.start(), distances.end()].map(|to| covered.start.saturating_add(*to));
    let end = covered.end.min(last.saturating_add(1));
    let (row, location) = (cie.initial, covered.start);
    let needed = Some(Covered { end, ..covered });
    let mut program =
        Program { section, cie, row, remembered, location, covered: needed, needed_from: first, emit };
    if program.run(fde.instructions).is_err() {
        program.row = Row::EMPTY;
    }
    program.emit_row(end);
    covered
}

struct Program<'s, A: Architecture, E> {
    section: &'s FrameSections,
    cie: &'s Cie<A>,
    row: Row<A>,
    remembered: &'s mut Vec<Row<A>>,
    location: u64,
    /// `None` while the CIE's own instructions run, which are of no place.
    covered: Option<Covered>,
    /// Rows that only hold before this address are not needed.
    needed_from: u64,
    emit: E,
}

impl<A: Architecture, E: FnMut(Range<u64>, Traits, &Row<A>)> Program<'_, A, E> {
    fn run(&mut self, mut instructions: Bytes<'_>) -> Result<(), Malformed> {
        while !instructions.is_empty() {
            self.step(&mut instructions).ok_or(Malformed)?;
            if self.covered.is_some_and(|covered| self.location >= covered.end) {
                break;
            }
        }
        Ok(())
    }

    /// The row holds up to the address `until`, or to where the function ends.
    fn emit_row(&mut self, until: u64) {
        if let Some(covered) = self.covered
            && self.location < covered.end
        {
            let traits = Traits { signed: self.row.signed, ..self.cie.traits };
            let until = until.min(covered.end);
            (self.emit)(self.location - covered.start..until - covered.start, traits, &self.row);
        }
    }

    fn move_to(&mut self, location: u64) -> Option<()> {
        if self.covered.is_none() || location < self.location {
            return None;
        }
        if location > self.location {
            if location > self.needed_from {
                self.emit_row(location);
            }
            self.location = location;
        }
        Some(())
    }

    fn advance(&mut self, delta: u64) -> Option<()> {
        self.move_to(self.location.checked_add(delta.checked_mul(self.cie.code_factor)?)?)
    }

    /// One instruction; `None` for one that is cut off or has no meaning here.
    #[inline]
    fn step(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let opcode = bytes.u8()?;
        let operand = u64::from(opcode & 0x3f);
        match opcode >> 6 {
            // DW_CFA_advance_loc, _offset, _restore
            1 => return self.advance(operand),
            2 => {
                let offset = bytes.unsigned()?;
                return self.set_offset(operand, offset.cast_signed());
            }
            3 => return self.restore(operand),
            _ => {}
        }
        match opcode {
            // DW_CFA_nop
            0x00 => {}
            // DW_CFA_set_loc
            0x01 => {
                let location = pointer(self.section, bytes, self.cie.pointers, A::WORD)?;
                self.move_to(location)?;
            }
            // DW_CFA_advance_loc1, 2, 4, DW_CFA_MIPS_advance_loc8
            0x02 => self.advance(bytes.u8()?.into())?,
            0x03 => self.advance(bytes.u16()?.into())?,
            0x04 => self.advance(bytes.u32()?.into())?,
            0x1d => self.advance(bytes.u64()?)?,
            // DW_CFA_offset_extended, _offset_extended_sf, _GNU_negative_offset_extended
            0x05 => self.set_offset(bytes.unsigned()?, bytes.unsigned()?.cast_signed())?,
            0x11 => self.set_offset(bytes.unsigned()?, bytes.signed()?)?,
            0x2f => self.set_offset(bytes.unsigned()?, bytes.unsigned()?.cast_signed().checked_neg()?)?,
            // DW_CFA_restore_extended, _undefined, _same_value, _register
            0x06 => self.restore(bytes.unsigned()?)?,
            0x07 => self.set(bytes.unsigned()?, RegisterRule::Undefined),
            0x08 => self.set(bytes.unsigned()?, RegisterRule::SameValue),
            0x09 => {
                let (register, source) = (bytes.unsigned()?, register::<A>(bytes.unsigned()?)?);
                self.set(register, RegisterRule::Register(source));
            }
            // DW_CFA_remember_state, _restore_state
            0x0a => {
                if self.remembered.len() == MAX_REMEMBERED {
                    return None;
                }
                self.remembered.push(self.row);
            }
            0x0b => self.row = self.remembered.pop()?,
            // DW_CFA_def_cfa, _def_cfa_sf, _register, _offset, _offset_sf, _expression
            0x0c => self.set_cfa(bytes.unsigned()?, bytes.unsigned()?.cast_signed())?,
            0x12 => {
                let (register, offset) = (bytes.unsigned()?, bytes.signed()?);
                self.set_cfa(register, offset.checked_mul(self.cie.data_factor)?)?;
            }
            0x0d => {
                let (_, offset) = self.register_and_offset()?;
                self.set_cfa(bytes.unsigned()?, offset.into())?;
            }
            0x0e => {
                let (register, _) = self.register_and_offset()?;
                self.set_cfa(register.into(), bytes.unsigned()?.cast_signed())?;
            }
            0x13 => {
                let (register, _) = self.register_and_offset()?;
                self.set_cfa(register.into(), bytes.signed()?.checked_mul(self.cie.data_factor)?)?;
            }
            0x0f => self.row.cfa = CfaRule::Expression(expression(bytes)?),
            // DW_CFA_expression, _val_expression, _val_offset, _val_offset_sf
            0x10 => self.set(bytes.unsigned()?, RegisterRule::Expression(expression(bytes)?)),
            0x16 => self.set(bytes.unsigned()?, RegisterRule::ValExpression(expression(bytes)?)),
            0x14 => {
                let (register, offset) = (bytes.unsigned()?, bytes.unsigned()?.cast_signed());
                self.set(register, RegisterRule::ValOffset(self.factored(offset)?));
            }
            0x15 => {
                let (register, offset) = (bytes.unsigned()?, bytes.signed()?);
                self.set(register, RegisterRule::ValOffset(self.factored(offset)?));
            }
            // DW_CFA_GNU_args_size: the arguments' size matters to a landing pad, not to a walk.
            0x2e => drop(bytes.unsigned()?),
            // DW_CFA_AARCH64_negate_ra_state and its like
            _ if A::toggles_signature(opcode) => self.row.signed = !self.row.signed,
            _ => return None,
        }
        Some(())
    }

    fn register_and_offset(&self) -> Option<(RegisterNumber, i32)> {
        match self.row.cfa {
            CfaRule::RegisterOffset { register, offset } => Some((register, offset)),
            CfaRule::Unsupported | CfaRule::Expression(_) => None,
        }
    }

    #[inline]
    fn set_cfa(&mut self, number: u64, offset: i64) -> Option<()> {
        let (register, offset) = (register::<A>(number)?, i32::try_from(offset).ok()?);
        self.row.cfa = CfaRule::RegisterOffset { register, offset };
        Some(())
    }

    fn factored(&self, offset: i64) -> Option<i32> {
        i32::try_from(offset.checked_mul(self.cie.data_factor)?).ok()
    }

    #[inline]
    fn set_offset(&mut self, register: u64, offset: i64) -> Option<()> {
        self.set(register, RegisterRule::Offset(self.factored(offset)?));
        Some(())
    }

    /// Back to the rule of the CIE.
    fn restore(&mut self, register: u64) -> Option<()> {
        self.covered?;
        self.row.set(register, self.cie.initial.get(register));
        Some(())
    }

    /// Only what changes a register is kept, and that a return address is undefined: there the stack ends.
    #[inline]
    fn set(&mut self, number: u64, rule: RegisterRule) {
        let Some(register) = register::<A>(number) else { return };
        let kept = match rule {
            RegisterRule::Unspecified | RegisterRule::SameValue => false,
            RegisterRule::Undefined => register == self.cie.traits.return_address,
            _ => true,
        };
        self.row.set(number, if kept { Saved::new(register, rule) } else { Saved::NONE });
    }
}

fn register<A: Architecture>(number: u64) -> Option<RegisterNumber> {
    (number < A::REGISTER_COUNT as u64).then_some(number as RegisterNumber)
}

fn expression(bytes: &mut Bytes<'_>) -> Option<ExpressionSpan> {
    let length = bytes.unsigned()?;
    let offset = u32::try_from(bytes.position()).ok()?;
    bytes.skip(length)?;
    Some(ExpressionSpan { offset, length: u16::try_from(length).ok()? })
}
