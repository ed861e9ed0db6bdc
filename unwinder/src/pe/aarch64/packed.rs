//! Packed unwind data, which stands in for a record where a prologue has the usual shape:
//!
//! ```text
//!  flag (2 bits)   1: a function, 2: a part without prologue and epilogue
//!  length / 4 (11), RegF (3), RegI (4), H (1), CR (2), frame size / 16 (9)
//! ```
//!
//! The prologue signs the return address (CR 2); saves `RegI` registers from `x19` on, `x30` (CR 1), `RegF + 1` vector
//! registers unless `RegF` is 0, and the arguments' registers (H); and allocates the rest, with `x29` and `x30` at its
//! bottom (CR 2 and 3).

use super::codes::{Register, Step};
use super::full::{Epilogue, Record, Sequence};

const LR: Register = Register::General(30);
/// What one instruction allocates at most.
const MAX_ALLOCATED: u32 = 4080;
/// What one `stp` with write-back allocates at most.
const MAX_PRE_INDEXED: u32 = 512;

/// The length in instructions.
pub(super) fn length(data: u32) -> u32 {
    data >> 2 & 0x7ff
}

/// The record that the data stands for.
pub(super) fn expand(data: u32) -> Option<Record> {
    let mut prologue = Sequence { steps: prologue(data, true)?, done_before: 0 };
    if data & 3 == 2 {
        prologue.done_before = prologue.steps.len();
        return Some(Record::new(prologue, None));
    }
    // The epilogue mirrors the prologue, but neither loads arguments nor needs `x29`.
    let mut sequence = Sequence { steps: self::prologue(data, false)?, done_before: 0 };
    sequence.steps.retain(|step| !matches!(step, Step::SetFramePointer { .. }));
    Some(Record::new(prologue, Some(Epilogue::at_end(length(data), sequence)?)))
}

fn prologue(data: u32, saves_arguments: bool) -> Option<Vec<Step>> {
    let (vectors, generals) = (data >> 13 & 7, (data >> 16 & 15) as u8);
    let (homes, chain, frame_size) = (data >> 20 & 1, data >> 21 & 3, (data >> 23) * 16);
    let vectors = if vectors == 0 { 0 } else { vectors + 1 };
    let saves_lr = chain == 1;
    let registers = u32::from(generals) + u32::from(saves_lr) + vectors;
    let homes = if registers == 0 { 0 } else { homes };
    let save_size = (registers + 8 * homes).next_multiple_of(2) * 8;
    let local_size = frame_size.checked_sub(save_size)?;
    if generals > 10 {
        return None;
    }

    let mut steps = Vec::new();
    if chain == 2 {
        steps.push(Step::Sign);
    }
    let mut saves = Saves { steps: &mut steps, size: save_size, allocated: false, used: 0 };
    if saves_lr && generals == 1 {
        saves.steps.push(Step::Allocate { size: save_size });
        saves.allocated = true;
    }
    for pair in 0..generals / 2 {
        let first = 19 + 2 * pair;
        saves.save(Register::General(first), Some(Register::General(first + 1)));
    }
    let last = Register::General(18 + generals);
    match (generals % 2 == 1, saves_lr) {
        (true, true) => saves.save(last, Some(LR)),
        (true, false) => saves.save(last, None),
        (false, true) => saves.save(LR, None),
        (false, false) => {}
    }
    let vector = Register::Vector(8);
    for _ in 0..vectors / 2 {
        saves.save(vector, Some(vector));
    }
    if vectors % 2 == 1 {
        saves.save(vector, None);
    }
    if homes != 0 && saves_arguments {
        steps.extend([Step::Nothing; 4]);
    }
    if local_size > 0 {
        let record =
            |offset, grows| Step::Save { first: Register::General(29), second: Some(LR), offset, grows };
        if chain >= 2 && local_size <= MAX_PRE_INDEXED {
            steps.push(record(0, local_size));
        } else {
            let first = local_size.min(MAX_ALLOCATED);
            steps.push(Step::Allocate { size: first });
            if local_size > first {
                steps.push(Step::Allocate { size: local_size - first });
            }
            if chain >= 2 {
                steps.push(record(0, 0));
            }
        }
        if chain >= 2 {
            steps.push(Step::SetFramePointer { offset: 0 });
        }
    }
    Some(steps)
}

/// Saves registers one behind the other; the first instruction allocates the room for all.
struct Saves<'s> {
    steps: &'s mut Vec<Step>,
    size: u32,
    allocated: bool,
    used: u32,
}

impl Saves<'_> {
    fn save(&mut self, first: Register, second: Option<Register>) {
        let grows = if self.allocated { 0 } else { self.size };
        self.steps.push(Step::Save { first, second, offset: self.used, grows });
        self.allocated = true;
        self.used += if second.is_some() { 16 } else { 8 };
    }
}
