//! Runs the call frame instructions of one FDE and hands out its rows: every CFA instruction of DWARF 5 section 6.4.2
//! and the GNU extensions that gimli's decoder knows.

use gimli::{
    BaseAddresses, CallFrameInstruction, FrameDescriptionEntry, Register, UnwindExpression, UnwindSection,
};

use super::row::{CfaRule, ExpressionSpan, RegisterNumber, RegisterRule, Row};
use super::rules::Traits;
use super::sections::Slice;
use crate::arch::REGISTER_COUNT;

/// `DW_CFA_remember_state` deeper than this is no compiler's.
const MAX_REMEMBERED: usize = 64;

/// A program that can't be run on: rows before the fault are good, those behind it unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl From<gimli::Error> for Malformed {
    fn from(_: gimli::Error) -> Self {
        Malformed
    }
}

/// What an FDE covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Covered {
    pub(crate) start: u64,
    /// Behind the last address.
    pub(crate) end: u64,
    pub(crate) traits: Traits,
}

/// Storage for a run, reused by the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    remembered: Vec<Row>,
}

/// Calls `emit` with the distance from the function's start and the row that holds from there, in ascending order;
/// a row of the same distance replaces the one before.
pub(crate) fn run<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    offset: u32,
    scratch: &mut Scratch,
    emit: impl FnMut(u64, Traits, &Row),
) -> Result<Covered, Malformed> {
    let fde = section.fde_from_offset(bases, (offset as usize).into(), S::cie_from_offset)?;
    let return_address = register(fde.cie().return_address_register()).ok_or(Malformed)?;
    let traits = Traits { return_address, signal: fde.is_signal_trampoline() };
    let covered = Covered { start: fde.initial_address(), end: fde.end_address(), traits };
    scratch.remembered.clear();
    Program {
        row: Row::EMPTY,
        initial: None,
        remembered: &mut scratch.remembered,
        location: covered.start,
        code_factor: fde.cie().code_alignment_factor(),
        data_factor: fde.cie().data_alignment_factor(),
        covered,
        emit,
    }
    .run(section, bases, &fde);
    Ok(covered)
}

struct Program<'s, E> {
    row: Row,
    /// The row that the CIE's instructions leave; there is none while they run.
    initial: Option<Row>,
    remembered: &'s mut Vec<Row>,
    location: u64,
    code_factor: u64,
    data_factor: i64,
    covered: Covered,
    emit: E,
}

impl<E: FnMut(u64, Traits, &Row)> Program<'_, E> {
    fn run<'a, S: UnwindSection<Slice<'a>>>(
        mut self,
        section: &S,
        bases: &BaseAddresses,
        fde: &FrameDescriptionEntry<Slice<'a>>,
    ) {
        let ran = self
            .all(fde.cie().instructions(section, bases))
            .map(|()| self.initial = Some(self.row))
            .and_then(|()| self.all(fde.instructions(section, bases)));
        if ran.is_err() {
            self.row = Row::EMPTY;
        }
        self.emit_row();
    }

    fn all(&mut self, instructions: gimli::CallFrameInstructionIter<'_, Slice<'_>>) -> Result<(), Malformed> {
        for instruction in instructions {
            self.step(&instruction?)?;
            if self.location >= self.covered.end {
                break;
            }
        }
        Ok(())
    }

    fn emit_row(&mut self) {
        if self.location < self.covered.end {
            (self.emit)(self.location - self.covered.start, self.covered.traits, &self.row);
        }
    }

    fn move_to(&mut self, location: u64) -> Result<(), Malformed> {
        if self.initial.is_none() || location < self.location {
            return Err(Malformed);
        }
        if location > self.location {
            self.emit_row();
            self.location = location;
        }
        Ok(())
    }

    fn step(&mut self, instruction: &CallFrameInstruction<usize>) -> Result<(), Malformed> {
        use CallFrameInstruction as I;
        match *instruction {
            I::AdvanceLoc { delta } => {
                let distance = u64::from(delta).checked_mul(self.code_factor).ok_or(Malformed)?;
                self.move_to(self.location.checked_add(distance).ok_or(Malformed)?)?;
            }
            I::SetLoc { address } => self.move_to(address)?,
            I::DefCfa { register, offset } => self.set_cfa(register, offset as i64)?,
            I::DefCfaSf { register, factored_offset } => {
                self.set_cfa(register, factored_offset.wrapping_mul(self.data_factor))?;
            }
            I::DefCfaRegister { register } => {
                let CfaRule::RegisterOffset { offset, .. } = self.row.cfa else { return Err(Malformed) };
                self.set_cfa(register, offset.into())?;
            }
            I::DefCfaOffset { offset } => self.set_cfa_offset(offset as i64)?,
            I::DefCfaOffsetSf { factored_offset } => {
                self.set_cfa_offset(factored_offset.wrapping_mul(self.data_factor))?;
            }
            I::DefCfaExpression { expression } => self.row.cfa = CfaRule::Expression(span(expression)?),
            I::Undefined { register } => self.set(register, RegisterRule::Undefined),
            I::SameValue { register } => self.set(register, RegisterRule::SameValue),
            I::Offset { register, factored_offset } => {
                self.set(register, RegisterRule::Offset(self.factored(factored_offset as i64)?));
            }
            I::OffsetExtendedSf { register, factored_offset } => {
                self.set(register, RegisterRule::Offset(self.factored(factored_offset)?));
            }
            I::ValOffset { register, factored_offset } => {
                self.set(register, RegisterRule::ValOffset(self.factored(factored_offset as i64)?));
            }
            I::ValOffsetSf { register, factored_offset } => {
                self.set(register, RegisterRule::ValOffset(self.factored(factored_offset)?));
            }
            I::Register { dest_register, src_register } => {
                let source = register(src_register).ok_or(Malformed)?;
                self.set(dest_register, RegisterRule::Register(source));
            }
            I::Expression { register, expression } => {
                self.set(register, RegisterRule::Expression(span(expression)?));
            }
            I::ValExpression { register, expression } => {
                self.set(register, RegisterRule::ValExpression(span(expression)?));
            }
            I::Restore { register } => {
                let initial = self.initial.ok_or(Malformed)?;
                if let Some(number) = self::register(register) {
                    self.row.registers[usize::from(number)] = initial.registers[usize::from(number)];
                }
            }
            I::RememberState => {
                if self.remembered.len() == MAX_REMEMBERED {
                    return Err(Malformed);
                }
                self.remembered.push(self.row);
            }
            I::RestoreState => self.row = self.remembered.pop().ok_or(Malformed)?,
            // The arguments' size matters to a landing pad, not to a walk.
            I::ArgsSize { .. } | I::Nop => {}
            // Pointer authentication is not of this architecture.
            I::NegateRaState => return Err(Malformed),
        }
        Ok(())
    }

    fn set_cfa(&mut self, register: Register, offset: i64) -> Result<(), Malformed> {
        let register = self::register(register).ok_or(Malformed)?;
        let offset = i32::try_from(offset).map_err(|_| Malformed)?;
        self.row.cfa = CfaRule::RegisterOffset { register, offset };
        Ok(())
    }

    fn set_cfa_offset(&mut self, offset: i64) -> Result<(), Malformed> {
        let CfaRule::RegisterOffset { register, .. } = self.row.cfa else { return Err(Malformed) };
        let offset = i32::try_from(offset).map_err(|_| Malformed)?;
        self.row.cfa = CfaRule::RegisterOffset { register, offset };
        Ok(())
    }

    fn factored(&self, offset: i64) -> Result<i32, Malformed> {
        let offset = offset.checked_mul(self.data_factor).ok_or(Malformed)?;
        i32::try_from(offset).map_err(|_| Malformed)
    }

    /// Rules of registers that a walk does not restore (vector registers) are dropped.
    fn set(&mut self, register: Register, rule: RegisterRule) {
        if let Some(number) = self::register(register) {
            self.row.registers[usize::from(number)] = rule;
        }
    }
}

fn register(register: Register) -> Option<RegisterNumber> {
    (usize::from(register.0) < REGISTER_COUNT).then_some(register.0 as RegisterNumber)
}

fn span(expression: UnwindExpression<usize>) -> Result<ExpressionSpan, Malformed> {
    let offset = u32::try_from(expression.offset).map_err(|_| Malformed)?;
    let length = u16::try_from(expression.length).map_err(|_| Malformed)?;
    Ok(ExpressionSpan { offset, length })
}
