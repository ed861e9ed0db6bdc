//! Input: bytes that `arbitrary` makes an address space, registers and a stack of. The functions' programs are made of
//! whole instructions, so that most of them run; the stack's words lead back into the code and into the stack.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::ops::Range;

use arbitrary::{Arbitrary, Unstructured};
use unwinder::aarch64::{self, ReturnAddressMask};
use unwinder::{
    AddressSpace, Architecture, CopiedStack, Mapping, Registers, Section, StopReason, UnwindSections,
    UnwindTable, Unwinder, x86, x86_64,
};

use super::image::{Machine, SECTION_ADDRESS, TEXT, with_section};
use super::{FRAMES, STACK, within_memory};

/// Bytes held for each byte of input: an instruction may come of a single one.
const PER_BYTE: u64 = 512;

/// Where modules are mapped, each this far from the next.
const MODULES: u64 = 0x10_0000;

/// Bytes of a function's part of its module.
const FUNCTION: u64 = 0x100;

#[derive(Arbitrary, Debug)]
struct Input {
    processor: Processor,
    modules: Vec<Module>,
    registers: [Value; 33],
    words: Vec<Value>,
    /// Where the copy of the stack begins, beside the stack pointer.
    base: i8,
    absent: u64,
    code: Vec<Code>,
    generation: Option<NonZeroU64>,
    /// Bits of the limit of frames; 0 for the usual one.
    depth: u8,
}

#[derive(Arbitrary, Debug)]
enum Processor {
    /// Its words are the lower halves of the values.
    X86,
    X86_64,
    /// Return addresses may be signed in the bits above an address.
    Aarch64 {
        address_bits: u8,
    },
}

/// Instructions that guesses look for.
#[derive(Arbitrary, Debug)]
enum Code {
    Call,
    SaveFramePointer,
    SetFramePointer,
    Allocate(u8),
    Return,
    Any([u8; 4]),
}

#[derive(Arbitrary, Debug)]
struct Module {
    is_debug_frame: bool,
    return_address: u8,
    is_signal: bool,
    common: Vec<Instruction>,
    functions: Vec<Vec<Instruction>>,
    source: Source,
}

/// What a module's table is made of.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Source {
    Nothing,
    File,
    Section,
}

/// A word, most often one that leads somewhere.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Value {
    Stack(i16),
    Code { module: u8, offset: u16 },
    Signed { module: u8, offset: u16, signature: u16 },
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
    /// `DW_CFA_AARCH64_negate_ra_state`
    NegateSigned,
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
            Value::Signed { module, offset, signature } => {
                u64::from(signature) << 48 | module_at(module.into()) | u64::from(offset)
            }
            Value::Zero => 0,
            Value::Any(word) => word,
        }
    }
}

impl Code {
    fn encode(&self, machine: Machine, out: &mut Vec<u8>) {
        let is_arm = matches!(machine, Machine::Aarch64);
        match *self {
            Code::Call if is_arm => out.extend([0, 0, 0, 0x94]),
            Code::Call => out.extend([0xe8, 0, 0, 0, 0]),
            Code::SaveFramePointer if is_arm => out.extend([0xfd, 0x7b, 0xbf, 0xa9]),
            Code::SaveFramePointer => out.push(0x55),
            Code::SetFramePointer if is_arm => out.extend([0xfd, 0x03, 0x00, 0x91]),
            Code::SetFramePointer => out.extend([0x48, 0x89, 0xe5]),
            Code::Allocate(size) if is_arm => out.extend([0xff, 0x03 | size << 6, size >> 2 & 0x3f, 0xd1]),
            Code::Allocate(size) => out.extend([0x48, 0x83, 0xec, size]),
            Code::Return if is_arm => out.extend([0xc0, 0x03, 0x5f, 0xd6]),
            Code::Return => out.push(0xc3),
            Code::Any(bytes) => out.extend(bytes),
        }
    }
}

impl Instruction {
    fn encode(&self, machine: Machine, out: &mut Vec<u8>) {
        let word = machine.word();
        let register = |number: u8| number % machine.registers();
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
            Instruction::NegateSigned => out.push(0x2d),
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
    fn section(&self, machine: Machine) -> Vec<u8> {
        let word = machine.word();
        let mut section = Vec::new();
        let id: u32 = if self.is_debug_frame { u32::MAX } else { 0 };
        let mut common = id.to_le_bytes().to_vec();
        // Version 1; factors 1 and -8.
        common.push(1);
        common.extend(if self.is_signal { b"zS\0".as_slice() } else { b"\0" });
        common.extend([1, 0x78, self.return_address % machine.registers()]);
        if self.is_signal {
            common.push(0);
        }
        for instruction in &self.common {
            instruction.encode(machine, &mut common);
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
                instruction.encode(machine, &mut function);
            }
            entry(&mut section, function);
        }
        section
    }

    fn table<A: Architecture>(&self, machine: Machine) -> Option<UnwindTable<A>> {
        let section = self.section(machine);
        match self.source {
            Source::Nothing => None,
            Source::File => {
                let file = with_section(machine, &section, self.is_debug_frame);
                UnwindTable::from_elf(file.as_slice()).ok()
            }
            Source::Section => {
                let mut sections = UnwindSections { text: TEXT, ..UnwindSections::default() };
                if self.is_debug_frame {
                    sections.debug_frame = Some(&section);
                } else {
                    sections.eh_frame = Some(Section { address: SECTION_ADDRESS, bytes: &section });
                }
                UnwindTable::from_sections(&sections).ok()
            }
        }
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
    /// Bytes of code that were asked for.
    read: Cell<usize>,
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
        self.read.set(self.read.get() + buffer.len());
        for (index, byte) in buffer.iter_mut().enumerate() {
            *byte = self.code[(address as usize).wrapping_add(index) % self.code.len()];
        }
        buffer.len()
    }
}

/// Bytes of code that every walk may look at.
const CODE_OF_A_WALK: usize = 128 << 10;

pub(crate) fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    within_memory(|| walk(&input), |()| data.len() as u64 * PER_BYTE);
}

fn walk(input: &Input) {
    const ENOUGH: &str = "no architecture has more registers";
    let [ip, gprs @ ..] = input.registers.map(Value::word);
    match input.processor {
        Processor::X86 => {
            let gprs: [u64; 8] = *gprs.first_chunk().expect(ENOUGH);
            let registers = x86::Registers::new(ip as u32, gprs.map(|value| value as u32));
            walk_of(Machine::X86, input, registers);
        }
        Processor::X86_64 => {
            let registers = x86_64::Registers::new(ip, *gprs.first_chunk().expect(ENOUGH));
            walk_of(Machine::X86_64, input, registers);
        }
        Processor::Aarch64 { address_bits } => {
            let [sp, gprs @ ..] = gprs;
            let mask = ReturnAddressMask::of_address_bits(u32::from(address_bits % 65));
            walk_of(Machine::Aarch64, input, aarch64::Registers::new(ip, sp, gprs, mask));
        }
    }
}

fn walk_of<A: Architecture>(machine: Machine, input: &Input, registers: Registers<A>) {
    let word = machine.word();
    let tables = input.modules.iter().map(|module| module.table(machine));
    let mut code = Vec::new();
    for instruction in &input.code {
        instruction.encode(machine, &mut code);
    }
    let space = Space { tables: tables.collect(), code, generation: input.generation, read: Cell::new(0) };
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
    let had_enough_code = space.read.get() <= CODE_OF_A_WALK;
    let again = walk();
    if had_enough_code || stop != StopReason::NoRule {
        assert_eq!(again, (frames, stop), "a walk depends on the one before");
    } else {
        // What it has looked at it need not look at again, and may come further.
        assert!(again.0.starts_with(&frames), "{:x?} after {frames:x?}", again.0);
    }
}

#[cfg(test)]
mod tests {
    use unwinder::aarch64::Aarch64;
    use unwinder::x86::X86;
    use unwinder::x86_64::X86_64;

    use super::*;

    fn rows<A: Architecture>(machine: Machine, module: &Module) -> usize {
        let table = module.table::<A>(machine).unwrap();
        table.compile_all();
        assert_eq!(table.size_report().functions, table.size_report().functions_compiled);
        table.size_report().rows
    }

    #[test]
    fn made_files_have_the_rules_that_were_asked_for() {
        let sources = [Source::File, Source::Section];
        for (is_debug_frame, source) in
            sources.into_iter().flat_map(|source| [(false, source), (true, source)])
        {
            let module = Module {
                is_debug_frame,
                return_address: 8,
                is_signal: false,
                common: vec![Instruction::DefCfa(4, 4), Instruction::Offset(8, 1)],
                functions: vec![vec![Instruction::Advance(1), Instruction::CfaOffset(8)], Vec::new()],
                source,
            };
            assert_eq!(rows::<X86_64>(Machine::X86_64, &module), 3);
            assert_eq!(rows::<X86>(Machine::X86, &module), 3);
            assert_eq!(rows::<Aarch64>(Machine::Aarch64, &module), 3);
        }
    }
}
