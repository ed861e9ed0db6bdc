//! Input: bytes that `arbitrary` makes an address space, registers and a stack of. The functions' programs are made of
//! whole instructions, so that most of them run; the stack's words lead back into the code and into the stack.

use std::num::NonZeroU64;
use std::ops::Range;

use arbitrary::{Arbitrary, Unstructured};
use unwinder::{
    AddressSpace, Architecture, CopiedStack, Mapping, Registers, StopReason, UnwindTable, Unwinder, x86,
    x86_64,
};

use super::image::{Class, TEXT, with_section};
use super::{FRAMES, STACK, within_memory};

/// Bytes held for each byte of input: an instruction may come of a single one.
const PER_BYTE: u64 = 512;

/// Where modules are mapped, each this far from the next.
const MODULES: u64 = 0x10_0000;

/// Bytes of a function's part of its module.
const FUNCTION: u64 = 0x100;

#[derive(Arbitrary, Debug)]
struct Input {
    /// Of 32-bit code, whose words are the lower halves of these.
    is_narrow: bool,
    modules: Vec<Module>,
    registers: [Value; 17],
    words: Vec<Value>,
    /// Where the copy of the stack begins, beside the stack pointer.
    base: i8,
    absent: u64,
    code: Vec<u8>,
    generation: Option<NonZeroU64>,
    /// Bits of the limit of frames; 0 for the usual one.
    depth: u8,
}

#[derive(Arbitrary, Debug)]
struct Module {
    is_debug_frame: bool,
    return_address: u8,
    is_signal: bool,
    common: Vec<Instruction>,
    functions: Vec<Vec<Instruction>>,
    has_table: bool,
}

/// A word, most often one that leads somewhere.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Value {
    Stack(i16),
    Code { module: u8, offset: u16 },
    Zero,
    Any(u64),
}

#[derive(Arbitrary, Debug)]
enum Instruction {
    Advance(u8),
    DefCfa(u8, u8),
    DefCfaSigned(u8, i16),
    CfaRegister(u8),
    CfaOffset(u8),
    CfaExpression(Vec<Operation>),
    Offset(u8, u8),
    OffsetSigned(u8, i16),
    ValOffset(u8, u8),
    Undefined(u8),
    SameValue(u8),
    Register(u8, u8),
    Expression(u8, Vec<Operation>),
    ValExpression(u8, Vec<Operation>),
    Remember,
    Restore,
    RestoreRegister(u8),
    Raw(u8),
}

/// An operation of an expression.
#[derive(Arbitrary, Debug)]
enum Operation {
    Breg(u8, i8),
    Literal(u8),
    Address(Value),
    Deref,
    DerefSize(u8),
    Bra(i8),
    Skip(i8),
    Plus,
    /// Any other.
    Raw(u8),
}

impl Value {
    fn word(self) -> u64 {
        match self {
            Value::Stack(offset) => STACK.wrapping_add_signed(offset.into()),
            Value::Code { module, offset } => module_at(module.into()) + u64::from(offset),
            Value::Zero => 0,
            Value::Any(word) => word,
        }
    }
}

impl Instruction {
    fn encode(&self, word: usize, out: &mut Vec<u8>) {
        let register = |number: u8| number % 18;
        match self {
            Instruction::Advance(delta) => out.push(0x40 | delta & 0x3f),
            Instruction::DefCfa(number, offset) => out.extend([0x0c, register(*number), offset & 0x7f]),
            Instruction::DefCfaSigned(number, offset) => {
                out.extend([0x12, register(*number)]);
                leb(out, *offset);
            }
            Instruction::CfaRegister(number) => out.extend([0x0d, register(*number)]),
            Instruction::CfaOffset(offset) => out.extend([0x0e, offset & 0x7f]),
            Instruction::CfaExpression(operations) => {
                out.push(0x0f);
                block(out, word, operations);
            }
            Instruction::Offset(number, offset) => out.extend([0x80 | register(*number), offset & 0x7f]),
            Instruction::OffsetSigned(number, offset) => {
                out.extend([0x11, register(*number)]);
                leb(out, *offset);
            }
            Instruction::ValOffset(number, offset) => out.extend([0x14, register(*number), offset & 0x7f]),
            Instruction::Undefined(number) => out.extend([0x07, register(*number)]),
            Instruction::SameValue(number) => out.extend([0x08, register(*number)]),
            Instruction::Register(number, source) => out.extend([0x09, register(*number), register(*source)]),
            Instruction::Expression(number, operations) => {
                out.extend([0x10, register(*number)]);
                block(out, word, operations);
            }
            Instruction::ValExpression(number, operations) => {
                out.extend([0x16, register(*number)]);
                block(out, word, operations);
            }
            Instruction::Remember => out.push(0x0a),
            Instruction::Restore => out.push(0x0b),
            Instruction::RestoreRegister(number) => out.push(0xc0 | register(*number)),
            Instruction::Raw(byte) => out.push(*byte),
        }
    }
}

impl Operation {
    fn encode(&self, word: usize, out: &mut Vec<u8>) {
        match self {
            Operation::Breg(register, offset) => {
                out.push(0x70 + register % 17);
                leb(out, (*offset).into());
            }
            Operation::Literal(value) => out.push(0x30 + value % 32),
            Operation::Address(value) => {
                out.push(0x03);
                out.extend(&value.word().to_le_bytes()[..word]);
            }
            Operation::Deref => out.push(0x06),
            Operation::DerefSize(size) => out.extend([0x94, size % 9]),
            Operation::Bra(distance) => jump(out, 0x28, *distance),
            Operation::Skip(distance) => jump(out, 0x2f, *distance),
            Operation::Plus => out.push(0x22),
            Operation::Raw(byte) => out.push(*byte),
        }
    }
}

fn jump(out: &mut Vec<u8>, opcode: u8, distance: i8) {
    out.push(opcode);
    out.extend(i16::from(distance).to_le_bytes());
}

/// A signed LEB128 number of three bytes, which hold 21 bits.
fn leb(out: &mut Vec<u8>, value: i16) {
    let value = i32::from(value);
    out.extend([0x80 | value as u8, 0x80 | (value >> 7) as u8, (value >> 14) as u8 & 0x7f]);
}

fn block(out: &mut Vec<u8>, word: usize, operations: &[Operation]) {
    let mut bytes = Vec::new();
    for operation in operations {
        operation.encode(word, &mut bytes);
    }
    // A length of two bytes holds 14 bits.
    bytes.truncate(0x3fff);
    out.extend([0x80 | bytes.len() as u8, (bytes.len() >> 7) as u8]);
    out.extend(bytes);
}

/// An entry: its length, and its body padded to eight bytes with `DW_CFA_nop`.
fn entry(section: &mut Vec<u8>, mut body: Vec<u8>) {
    body.resize((body.len() + 4).next_multiple_of(8) - 4, 0);
    section.extend((body.len() as u32).to_le_bytes());
    section.extend(body);
}

impl Module {
    /// Its unwind section: one CIE, and an FDE for each function, with absolute addresses.
    fn section(&self, word: usize) -> Vec<u8> {
        let mut section = Vec::new();
        let id: u32 = if self.is_debug_frame { u32::MAX } else { 0 };
        let mut common = id.to_le_bytes().to_vec();
        // Version 1; factors 1 and -8.
        common.push(1);
        common.extend(if self.is_signal { b"zS\0".as_slice() } else { b"\0" });
        common.extend([1, 0x78, self.return_address % 18]);
        if self.is_signal {
            common.push(0);
        }
        for instruction in &self.common {
            instruction.encode(word, &mut common);
        }
        entry(&mut section, common);
        for (index, instructions) in self.functions.iter().enumerate() {
            let back = if self.is_debug_frame { 0 } else { section.len() as u32 + 4 };
            let mut function = back.to_le_bytes().to_vec();
            function.extend(&(TEXT.start + index as u64 * FUNCTION).to_le_bytes()[..word]);
            function.extend(&FUNCTION.to_le_bytes()[..word]);
            if self.is_signal {
                function.push(0);
            }
            for instruction in instructions {
                instruction.encode(word, &mut function);
            }
            entry(&mut section, function);
        }
        section
    }
}

fn module_at(index: u64) -> u64 {
    MODULES * (index + 1)
}

struct Space<A: Architecture> {
    /// By index; `None` where code has no rules.
    tables: Vec<Option<UnwindTable<A>>>,
    code: Vec<u8>,
    generation: Option<NonZeroU64>,
}

impl<A: Architecture> AddressSpace<A> for Space<A> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_, A>> {
        let index = (address / MODULES).checked_sub(1)?;
        let table = self.tables.get(usize::try_from(index).ok()?)?;
        let Range { start, end } = module_at(index)..module_at(index + 1);
        Some(Mapping { start, end, bias: start.wrapping_sub(TEXT.start), table: table.as_ref() })
    }

    fn generation(&self) -> Option<NonZeroU64> {
        self.generation
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        if self.code.is_empty() {
            return 0;
        }
        for (index, byte) in buffer.iter_mut().enumerate() {
            *byte = self.code[(address as usize).wrapping_add(index) % self.code.len()];
        }
        buffer.len()
    }
}

pub(crate) fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    within_memory(|| walk(input), |()| data.len() as u64 * PER_BYTE);
}

fn walk(input: Input) {
    let values = input.registers.map(Value::word);
    if input.is_narrow {
        let [ip, gprs @ ..] = values.map(|value| value as u32);
        let gprs = *gprs.first_chunk().expect("more registers than 32-bit code has");
        walk_of(Class::Elf32, input, x86::Registers::new(ip, gprs));
    } else {
        let [ip, gprs @ ..] = values;
        walk_of(Class::Elf64, input, x86_64::Registers::new(ip, gprs));
    }
}

fn walk_of<A: Architecture>(class: Class, input: Input, registers: Registers<A>) {
    let word = class.word();
    let tables = input.modules.iter().map(|module| {
        let file = with_section(class, &module.section(word), module.is_debug_frame);
        module.has_table.then(|| UnwindTable::from_elf(file.as_slice()).ok()).flatten()
    });
    let space = Space { tables: tables.collect(), code: input.code, generation: input.generation };
    let words: Vec<u8> =
        input.words.iter().flat_map(|value| value.word().to_le_bytes().into_iter().take(word)).collect();
    let base = registers.sp().wrapping_add_signed(input.base.into());
    let stack = CopiedStack::new(base, &words, input.absent);
    let mut unwinder = match input.depth {
        0 => Unwinder::new(),
        depth => Unwinder::with_depth_limit(depth.into()),
    };
    let mut walk = || {
        let mut frames = Vec::new();
        let stop = unwinder.unwind(&space, &registers, &stack, |frame| frames.push(frame));
        (frames, stop)
    };
    let (frames, stop) = walk();
    let highest = u64::MAX >> (64 - 8 * word);
    assert!(frames.iter().all(|frame| frame.address <= highest), "{frames:x?}");
    let most = if input.depth == 0 { *FRAMES.end() } else { input.depth.into() };
    assert!((1..=most).contains(&frames.len()), "{} frames", frames.len());
    assert!(stop != StopReason::DepthLimit || frames.len() == most, "{} frames", frames.len());
    assert_eq!(walk(), (frames, stop), "a walk depends on the one before");
}

#[cfg(test)]
mod tests {
    use unwinder::x86::X86;
    use unwinder::x86_64::X86_64;

    use super::*;

    fn functions<A: Architecture>(class: Class, module: &Module) -> usize {
        let file = with_section(class, &module.section(class.word()), module.is_debug_frame);
        let table = UnwindTable::<A>::from_elf(file.as_slice()).unwrap();
        table.compile_all();
        assert_eq!(table.size_report().functions, table.size_report().functions_compiled);
        table.size_report().rows
    }

    #[test]
    fn made_files_have_the_rules_that_were_asked_for() {
        for is_debug_frame in [false, true] {
            let module = Module {
                is_debug_frame,
                return_address: 8,
                is_signal: false,
                common: vec![Instruction::DefCfa(4, 4), Instruction::Offset(8, 1)],
                functions: vec![vec![Instruction::Advance(1), Instruction::CfaOffset(8)], Vec::new()],
                has_table: true,
            };
            assert_eq!(functions::<X86_64>(Class::Elf64, &module), 3);
            assert_eq!(functions::<X86>(Class::Elf32, &module), 3);
        }
    }
}
