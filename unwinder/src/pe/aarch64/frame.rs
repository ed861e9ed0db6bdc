//! A frame while its prologue builds it. At the first instruction the CFA is `sp`, and the return address is in `x30`; from
//! there on every slot is known by its distance from the CFA.

use super::Row;
use super::codes::{Register, Special, Step};
use crate::aarch64::{FP, LR, PC, SP};
use crate::table::{CfaRule, RegisterNumber, RegisterRule, Saved, Traits};

#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    saved: Row,
    /// Distance of `sp` below the CFA.
    depth: i64,
    /// Distance of `x29` below the CFA, where it is known.
    pointer: Option<i64>,
    /// The register saved last and its distance from the CFA.
    last: Option<(Register, i64)>,
    traits: Traits,
}

impl Frame {
    pub(super) fn at_entry() -> Self {
        let traits = Traits { return_address: LR, signal: false, signed: false };
        Frame { saved: Row::EMPTY, depth: 0, pointer: None, last: None, traits }
    }

    /// `None` for a step that makes no sense here.
    pub(super) fn step(&mut self, step: Step) -> Option<()> {
        match step {
            Step::Allocate { size } => self.depth += i64::from(size),
            Step::Save { first, second, offset, grows } => {
                self.depth += i64::from(grows);
                let at = i64::from(offset) - self.depth;
                self.save(first, at);
                if let Some(second) = second {
                    self.save(second, at + first.size());
                }
            }
            Step::SaveNext => {
                let (register, at) = self.last?;
                for place in 1..=2 {
                    let register = match register {
                        Register::General(number) => Register::General(number.checked_add(place)?),
                        Register::Vector(_) => register,
                    };
                    self.save(register, at + i64::from(place) * register.size());
                }
            }
            Step::SetFramePointer { offset } => self.pointer = Some(self.depth - i64::from(offset)),
            Step::Sign => self.traits.signed = true,
            Step::Nothing => {}
            Step::Special(special) => self.begin(special)?,
        }
        Some(())
    }

    fn save(&mut self, register: Register, at: i64) {
        self.last = Some((register, at));
        if let Register::General(number @ ..=LR) = register {
            self.set(number, at);
        }
    }

    fn set(&mut self, number: RegisterNumber, at: i64) {
        if let Ok(at) = i32::try_from(at) {
            self.saved.set(number.into(), Saved::new(number, RegisterRule::Offset(at)));
        }
    }

    /// The CFA is the special frame's address. One that is not the first of all makes no sense.
    fn begin(&mut self, special: Special) -> Option<()> {
        if self.depth != 0 || self.saved.changes().next().is_some() || self.traits.signal {
            return None;
        }
        self.traits.signal = true;
        let mut interrupted = |sp, pc| {
            self.traits.return_address = PC;
            self.set(SP, sp);
            self.set(PC, pc);
        };
        match special {
            Special::ClearUnwoundToCall => {}
            Special::Machine => interrupted(0, 8),
            Special::Trap => {
                interrupted(0x98, 0x148);
                self.set_row_of(18, 0xa0);
                self.set(LR, 0x138);
                self.set(FP, 0x140);
            }
            Special::Context => {
                interrupted(0x100, 0x108);
                self.set_row_of(LR, 8);
            }
        }
        Some(())
    }

    /// `x0` to the last one lie one behind the other.
    fn set_row_of(&mut self, last: RegisterNumber, at: i64) {
        for number in 0..=last {
            self.set(number, at + 8 * i64::from(number));
        }
    }

    pub(super) fn row(&self) -> (Row, Traits) {
        let (register, offset) = self.pointer.map_or((SP, self.depth), |distance| (FP, distance));
        let mut row = self.saved;
        row.cfa = i32::try_from(offset)
            .map_or(CfaRule::Unsupported, |offset| CfaRule::RegisterOffset { register, offset });
        row.signed = self.traits.signed;
        (row, self.traits)
    }
}

impl Register {
    /// In bytes.
    fn size(self) -> i64 {
        match self {
            Register::General(_) => 8,
            Register::Vector(size) => size.into(),
        }
    }
}
