//! DWARF expressions (DWARF 5, section 2.5) as call frame information uses them: on untyped values of an address's size,
//! bounded in steps and in stack depth, without allocation.

use std::cell::Cell;

use gimli::{Encoding, EndianSlice, Expression, Format, LittleEndian, Operation, UnitOffset};

use crate::word::Word;
use crate::{Architecture, Registers, StackMemory, StopReason};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

const MAX_STEPS: usize = 1000;
const MAX_DEPTH: usize = 64;

/// How far [`reads_only`] looks: compilers' and assemblers' expressions have some ten operations, and each rule that has one
/// asks.
const MAX_LOOKED_AT: usize = 64;

fn encoding(word: Word) -> Encoding {
    Encoding { address_size: word.bytes() as u8, format: Format::Dwarf32, version: 5 }
}

/// What an expression may ask for.
#[derive(Debug)]
pub(crate) struct Operands<'a, A: Architecture, M> {
    pub(crate) registers: &'a Registers<A>,
    pub(crate) stack: &'a M,
    /// Added to addresses as linked (`DW_OP_addr`).
    pub(crate) bias: u64,
    /// The first value on the stack of a register's expression; there is none while the CFA is sought.
    pub(crate) cfa: Option<u64>,
    pub(crate) steps: &'a Steps,
}

/// Operations that the expressions of one walk may still take, or a file could hold up whoever walks through it.
#[derive(Debug)]
pub(crate) struct Steps(Cell<usize>);

impl Steps {
    /// For a walk of so many frames: a signal handler's way back takes some sixty, other frames hardly any.
    pub(crate) fn of_frames(frames: usize) -> Self {
        const OF_EACH: usize = 64;
        Steps(Cell::new(MAX_STEPS.saturating_add(frames.saturating_mul(OF_EACH))))
    }

    fn take(&self) -> Result<(), StopReason> {
        self.0.set(self.0.get().checked_sub(1).ok_or(StopReason::Unsupported)?);
        Ok(())
    }
}

/// Whether an expression reads no register but those that `allowed` names. False for one that can't be decoded, or is too long
/// to tell.
pub(crate) fn reads_only(bytes: &[u8], word: Word, allowed: impl Fn(u16) -> bool) -> bool {
    let mut operations = Expression(Slice::new(bytes, LittleEndian)).operations(encoding(word));
    for _ in 0..=MAX_LOOKED_AT {
        match operations.next() {
            Ok(Some(Operation::Register { register } | Operation::RegisterOffset { register, .. })) => {
                if !allowed(register.0) {
                    return false;
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
    false
}

/// The value an expression leaves on top.
pub(crate) fn evaluate<A: Architecture, M: StackMemory>(
    bytes: &[u8],
    operands: &Operands<'_, A, M>,
) -> Result<u64, StopReason> {
    let mut values = Values { slots: [0; MAX_DEPTH], depth: 0, word: A::WORD };
    if let Some(cfa) = operands.cfa {
        values.push(cfa)?;
    }
    let mut position = 0;
    for _ in 0..MAX_STEPS {
        let Some(rest) = bytes.get(position..) else { return Err(StopReason::Unsupported) };
        if rest.is_empty() {
            return values.pop();
        }
        operands.steps.take()?;
        let whole = Expression(Slice::new(rest, LittleEndian));
        let mut operations = whole.operations(encoding(A::WORD));
        let Ok(Some(operation)) = operations.next() else { return Err(StopReason::Unsupported) };
        position += operations.offset_from(&whole);
        if let Some(jump) = apply(operation, &mut values, operands)? {
            position = position.checked_add_signed(isize::from(jump)).ok_or(StopReason::Unsupported)?;
        }
    }
    Err(StopReason::Unsupported)
}

/// Does one operation; `Some` is a jump relative to the next.
fn apply<A: Architecture, M: StackMemory>(
    operation: Operation<Slice<'_>>,
    values: &mut Values,
    operands: &Operands<'_, A, M>,
) -> Result<Option<i16>, StopReason> {
    use Operation as O;
    let register = |number: u16| operands.registers.get(number).ok_or(StopReason::Unsupported);
    match operation {
        O::UnsignedConstant { value } => values.push(value)?,
        O::SignedConstant { value } => values.push(value as u64)?,
        O::Address { address } => values.push(address.wrapping_add(operands.bias))?,
        O::Register { register: number } => values.push(register(number.0)?)?,
        O::RegisterOffset { register: number, offset, base_type: UnitOffset(0) } => {
            values.push(register(number.0)?.wrapping_add_signed(offset))?;
        }
        O::CallFrameCFA => values.push(operands.cfa.ok_or(StopReason::Unsupported)?)?,
        O::Deref { base_type: UnitOffset(0), size, space: false } => {
            let address = values.pop()?;
            values.push(deref(address, size, A::WORD, operands.stack)?)?;
        }
        O::Skip { target } => return Ok(Some(target)),
        O::Bra { target } => return Ok((values.pop()? != 0).then_some(target)),
        // Conversions between untyped values change nothing.
        O::Nop
        | O::Uninitialized
        | O::StackValue
        | O::Convert { base_type: UnitOffset(0) }
        | O::Reinterpret { base_type: UnitOffset(0) } => {}
        _ => return shuffle_or_compute(&operation, values).map(|()| None),
    }
    Ok(None)
}

fn shuffle_or_compute(operation: &Operation<Slice<'_>>, values: &mut Values) -> Result<(), StopReason> {
    use Operation as O;
    let (word, bits) = (values.word, u64::from(values.word.bits()));
    match *operation {
        O::Drop => values.pop().map(|_| ()),
        O::Pick { index } => values.push(values.peek(index)?),
        O::Swap => {
            let (b, a) = (values.pop()?, values.pop()?);
            values.push(b)?;
            values.push(a)
        }
        O::Rot => {
            let (c, b, a) = (values.pop()?, values.pop()?, values.pop()?);
            values.push(c)?;
            values.push(a)?;
            values.push(b)
        }
        O::Abs => values.unary(|a| word.signed(a).unsigned_abs()),
        O::Neg => values.unary(u64::wrapping_neg),
        O::Not => values.unary(|a| !a),
        O::PlusConstant { value } => values.unary(|a| a.wrapping_add(value)),
        O::And => values.binary(|a, b| Some(a & b)),
        O::Or => values.binary(|a, b| Some(a | b)),
        O::Xor => values.binary(|a, b| Some(a ^ b)),
        O::Plus => values.binary(|a, b| Some(a.wrapping_add(b))),
        O::Minus => values.binary(|a, b| Some(a.wrapping_sub(b))),
        O::Mul => values.binary(|a, b| Some(a.wrapping_mul(b))),
        // Signed, as DWARF says; the remainder is of untyped, thus unsigned, values.
        O::Div => values.binary(|a, b| (b != 0).then(|| word.signed(a).wrapping_div(word.signed(b)) as u64)),
        O::Mod => values.binary(u64::checked_rem),
        O::Shl => values.binary(|a, b| Some(if b < bits { a << b } else { 0 })),
        O::Shr => values.binary(|a, b| Some(if b < bits { a >> b } else { 0 })),
        O::Shra => values.binary(|a, b| Some((word.signed(a) >> b.min(bits - 1)) as u64)),
        O::Eq => values.compare(|a, b| a == b),
        O::Ne => values.compare(|a, b| a != b),
        O::Ge => values.compare(|a, b| a >= b),
        O::Gt => values.compare(|a, b| a > b),
        O::Le => values.compare(|a, b| a <= b),
        O::Lt => values.compare(|a, b| a < b),
        // Locations, typed values, and what needs a debugger's knowledge.
        _ => Err(StopReason::Unsupported),
    }
}

/// `size` bytes, which may end where readable memory ends.
fn deref<M: StackMemory>(address: u64, size: u8, word: Word, stack: &M) -> Result<u64, StopReason> {
    let longest = word.bytes() as u8;
    if !matches!(size, 1 | 2 | 4 | 8) || size > longest {
        return Err(StopReason::Unsupported);
    }
    let unused = u32::from(longest - size);
    let mask = u64::MAX >> (64 - u32::from(size) * 8);
    if let Ok(value) = word.read(stack, address) {
        return Ok(value & mask);
    }
    let value = word.read(stack, word.wrap(address.wrapping_sub(unused.into())))?;
    Ok(value >> (unused * 8) & mask)
}

struct Values {
    slots: [u64; MAX_DEPTH],
    depth: usize,
    word: Word,
}

impl Values {
    fn push(&mut self, value: u64) -> Result<(), StopReason> {
        *self.slots.get_mut(self.depth).ok_or(StopReason::Unsupported)? = self.word.wrap(value);
        self.depth += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, StopReason> {
        let value = self.peek(0)?;
        self.depth -= 1;
        Ok(value)
    }

    fn peek(&self, from_top: u8) -> Result<u64, StopReason> {
        let index = self.depth.checked_sub(usize::from(from_top) + 1).ok_or(StopReason::Unsupported)?;
        self.slots.get(index).copied().ok_or(StopReason::Unsupported)
    }

    fn unary(&mut self, compute: impl FnOnce(u64) -> u64) -> Result<(), StopReason> {
        let a = self.pop()?;
        self.push(compute(a))
    }

    /// `a` was pushed before `b`.
    fn binary(&mut self, compute: impl FnOnce(u64, u64) -> Option<u64>) -> Result<(), StopReason> {
        let (b, a) = (self.pop()?, self.pop()?);
        self.push(compute(a, b).ok_or(StopReason::Unsupported)?)
    }

    fn compare(&mut self, compare: impl FnOnce(i64, i64) -> bool) -> Result<(), StopReason> {
        let word = self.word;
        self.binary(|a, b| Some(compare(word.signed(a), word.signed(b)).into()))
    }
}

#[cfg(test)]
mod tests;
