//! The bytes of a `CONTEXT` in, a thread's registers out.
//!
//! Layouts: `CONTEXT` of x86 and x64 and `ARM64_NT_CONTEXT` of `winnt.h`. Of each only the control and general registers are read; which of
//! them are there is told by `ContextFlags`.

use super::source::{u32_at, u64_at};

/// The part of `ContextFlags` for the instruction pointer and the stack pointer.
const CONTROL: u32 = 1;

/// The part for the other registers.
const INTEGER: u32 = 2;

/// The most bytes of a context that are read: what is wanted is in the first 272.
pub(super) const READ: u32 = 0x110;

/// Whose registers they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processor {
    X86,
    X64,
    Arm64,
}

impl Processor {
    /// By `PROCESSOR_ARCHITECTURE_*`.
    pub(super) const fn of(number: u16) -> Option<Self> {
        match number {
            0 => Some(Self::X86),
            9 => Some(Self::X64),
            12 => Some(Self::Arm64),
            _ => None,
        }
    }

    /// As other recordings name it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86",
            Self::X64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// Where the flags are, and which bit in them says whose they are.
    const fn flags(self) -> (usize, u32) {
        match self {
            Self::X86 => (0, 0x1_0000),
            Self::X64 => (0x30, 0x10_0000),
            Self::Arm64 => (0, 0x40_0000),
        }
    }
}

/// A thread's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// In DWARF's order: eax, ecx, edx, ebx, esp, ebp, esi, edi.
    X86 { ip: u32, general: [u32; 8] },
    /// In DWARF's order: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15.
    X64 { ip: u64, general: [u64; 16] },
    /// x0 to x30.
    Arm64 { ip: u64, sp: u64, general: [u64; 31] },
}

impl Context {
    /// Reads one; none where it is too short, another processor's, or without an instruction pointer.
    pub(super) fn read(processor: Processor, bytes: &[u8]) -> Option<Self> {
        let (place, of_processor) = processor.flags();
        let flags = u32_at(bytes, place)?;
        if flags & of_processor == 0 || flags & CONTROL == 0 {
            return None;
        }
        let is_general = flags & INTEGER != 0;
        let long = |at: usize| u64_at(bytes, at);
        let word = |at: usize| u32_at(bytes, at);
        let general = |at: usize| if is_general { long(at) } else { Some(0) };
        let general_word = |at: usize| if is_general { word(at) } else { Some(0) };
        Some(match processor {
            Processor::X86 => {
                let [eax, ecx, edx, ebx] = [0xb0, 0xac, 0xa8, 0xa4].map(general_word);
                let [esi, edi] = [0xa0, 0x9c].map(general_word);
                let [ebp, ip, esp] = [0xb4, 0xb8, 0xc4].map(word);
                Self::X86 { ip: ip?, general: [eax?, ecx?, edx?, ebx?, esp?, ebp?, esi?, edi?] }
            }
            Processor::X64 => {
                let [rax, rcx, rdx, rbx] = [0x78, 0x80, 0x88, 0x90].map(general);
                let [rbp, rsi, rdi] = [0xa0, 0xa8, 0xb0].map(general);
                let rsp = long(0x98)?;
                let first = [rax?, rdx?, rcx?, rbx?, rsi?, rdi?, rbp?, rsp];
                let mut all = [0; 16];
                for (index, register) in all.iter_mut().enumerate() {
                    *register = match first.get(index) {
                        Some(known) => *known,
                        None => general(0xb8 + 8 * (index - first.len()))?,
                    };
                }
                Self::X64 { ip: long(0xf8)?, general: all }
            }
            Processor::Arm64 => {
                let mut all = [0; 31];
                for (index, register) in all.iter_mut().enumerate() {
                    let at = 8 + 8 * index;
                    // x29 and x30 are among the control registers.
                    *register = if index < 29 { general(at)? } else { long(at)? };
                }
                Self::Arm64 { ip: long(0x108)?, sp: long(0x100)?, general: all }
            }
        })
    }

    pub(super) fn ip(&self) -> u64 {
        match *self {
            Self::X86 { ip, .. } => ip.into(),
            Self::X64 { ip, .. } | Self::Arm64 { ip, .. } => ip,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], at: usize, value: u64) {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// By the offsets of `winnt.h`: `X[31]` from 8 on, `Sp`, `Pc`.
    #[test]
    fn registers_of_arm64() {
        let mut bytes = [0; READ as usize];
        bytes[..4].copy_from_slice(&0x40_0003_u32.to_le_bytes());
        for register in 0..31 {
            put(&mut bytes, 8 + 8 * register, 1000 + register as u64);
        }
        put(&mut bytes, 0x100, 77);
        put(&mut bytes, 0x108, 88);
        let general = std::array::from_fn(|register| 1000 + register as u64);
        let expected = Context::Arm64 { ip: 88, sp: 77, general };
        assert_eq!(Context::read(Processor::Arm64, &bytes), Some(expected));
        assert_eq!(Context::read(Processor::Arm64, &bytes[..0x10f]), None);
        assert_eq!(Context::read(Processor::X86, &bytes), None);
        bytes[0] = 2;
        assert_eq!(Context::read(Processor::Arm64, &bytes), None, "no instruction pointer");
    }

    /// By the offsets of `winnt.h`: `Edi` 0x9c, `Esi`, `Ebx`, `Edx`, `Ecx`, `Eax`, `Ebp`, `Eip`, `SegCs`, `EFlags`, `Esp`.
    #[test]
    fn registers_of_x86() {
        let mut bytes = [0; 0xcc];
        bytes[..4].copy_from_slice(&0x1_0007_u32.to_le_bytes());
        for (value, at) in (1..).zip((0x9c..0xc8).step_by(4)) {
            bytes[at] = value;
        }
        let expected = Context::X86 { ip: 8, general: [6, 5, 4, 3, 11, 7, 2, 1] };
        assert_eq!(Context::read(Processor::X86, &bytes), Some(expected));
        assert_eq!(Context::read(Processor::X86, &bytes[..0xc7]), None);
    }
}
