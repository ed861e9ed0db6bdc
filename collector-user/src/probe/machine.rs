//! Registers: what the kernel calls them in probes, what compilers do, and which of them hold arguments.
//!
//! Sources: `regs_query_register_offset` in `arch/x86/kernel/ptrace.c` and `arch/arm64/kernel/ptrace.c`; the System V
//! psABI for x86-64 and the procedure call standard of Arm (AAPCS64) for the order of the arguments.

use object::elf::{self, Machine as ElfMachine};

/// An architecture whose arguments can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    X86_64,
    Aarch64,
}

/// Of x86-64, in the order of arguments.
const X86_ARGUMENTS: [&str; 6] = ["di", "si", "dx", "cx", "r8", "r9"];

/// Of aarch64.
const ARM_ARGUMENTS: [&str; 8] = ["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"];

/// Registers of x86-64 without a number, as the kernel calls them, and the names of their lowest byte.
const X86_NAMED: [(&str, &str); 8] = [
    ("ax", "al"),
    ("bx", "bl"),
    ("cx", "cl"),
    ("dx", "dl"),
    ("si", "sil"),
    ("di", "dil"),
    ("bp", "bpl"),
    ("sp", "spl"),
];

impl Machine {
    /// That of this process.
    #[cfg(feature = "ebpf")]
    pub(super) const OWN: Option<Self> = if cfg!(target_arch = "x86_64") {
        Some(Self::X86_64)
    } else if cfg!(target_arch = "aarch64") {
        Some(Self::Aarch64)
    } else {
        None
    };

    /// Where code may branch to: what looks like a direct call or jump, at any byte where instructions have no alignment. `code`
    /// is at `address`.
    ///
    /// Sources: Intel SDM, `CALL`, `JMP` and `Jcc` with displacements of 8 and 32 bits; Arm ARM, `BL` and `B` (bits 30 to 26 are
    /// 00101).
    #[cfg(feature = "ebpf")]
    pub(super) fn branches(self, code: &[u8], address: u64) -> impl Iterator<Item = u64> {
        let step = if self == Self::Aarch64 { 4 } else { 1 };
        (0..code.len()).step_by(step).filter_map(move |at| {
            let here = address.wrapping_add(at as u64);
            let (length, distance) = match (self, code.get(at..)?) {
                (Self::X86_64, &[0xe8 | 0xe9, a, b, c, d, ..]) => (5, i32::from_le_bytes([a, b, c, d])),
                (Self::X86_64, &[0x0f, 0x80..=0x8f, a, b, c, d, ..]) => (6, i32::from_le_bytes([a, b, c, d])),
                (Self::X86_64, &[0xeb | 0x70..=0x7f, a, ..]) => (2, a.cast_signed().into()),
                (Self::Aarch64, &[a, b, c, d, ..]) => {
                    let word = u32::from_le_bytes([a, b, c, d]);
                    // The sign is in bit 25, and the unit is four bytes.
                    (0, (word >> 26 & 0x1f == 0b00101).then(|| (word << 6).cast_signed() >> 4)?)
                }
                _ => return None,
            };
            Some(here.wrapping_add(length).wrapping_add_signed(distance.into()))
        })
    }

    /// That of an ELF file.
    pub(super) fn of(machine: ElfMachine) -> Option<Self> {
        match machine {
            elf::EM_X86_64 => Some(Self::X86_64),
            elf::EM_AARCH64 => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// This machine's.
    pub(super) fn here() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// The registers that hold a function's first arguments, integers and addresses.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &X86_ARGUMENTS,
            Self::Aarch64 => &ARM_ARGUMENTS,
        }
    }

    /// What the kernel calls a register, of which `name` may be the name of a part: its lowest bytes. `None` for what is
    /// none, or can't be fetched, as those of floating-point numbers and `%ah`.
    pub(super) fn register(self, name: &str) -> Option<String> {
        let name = name.strip_prefix('%').unwrap_or(name);
        match self {
            Self::X86_64 => {
                if let Some(numbered) = name.strip_prefix('r') {
                    let digits = numbered.trim_end_matches(['d', 'w', 'b']);
                    if numbered.len() - digits.len() <= 1
                        && digits.parse().is_ok_and(|n: u8| (8..=15).contains(&n))
                    {
                        return Some(format!("r{digits}"));
                    }
                }
                if name == "rip" || name == "ip" {
                    return Some("ip".to_owned());
                }
                let is_it = |(word, byte): &&(&str, &str)| {
                    name == *byte || name.strip_prefix(['r', 'e']).unwrap_or(name) == *word
                };
                X86_NAMED.iter().find(is_it).map(|(word, _)| (*word).to_owned())
            }
            Self::Aarch64 => {
                if ["sp", "pc"].contains(&name) {
                    return Some(name.to_owned());
                }
                let digits = name.strip_prefix(['x', 'w'])?;
                digits.parse().is_ok_and(|number: u8| number <= 30).then(|| format!("x{digits}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_the_kernels_names() {
        for (name, expected) in [
            ("%rdi", Some("di")),
            ("%edi", Some("di")),
            ("%di", Some("di")),
            ("dil", Some("di")),
            ("%al", Some("ax")),
            ("%ah", None),
            ("%r8", Some("r8")),
            ("%r15d", Some("r15")),
            ("%r10b", Some("r10")),
            ("%r16", None),
            ("%rbp", Some("bp")),
            ("%rip", Some("ip")),
            ("%xmm0", None),
            ("", None),
        ] {
            assert_eq!(Machine::X86_64.register(name).as_deref(), expected, "{name}");
        }
        for (name, expected) in
            [("x0", Some("x0")), ("w7", Some("x7")), ("sp", Some("sp")), ("x31", None), ("d0", None)]
        {
            assert_eq!(Machine::Aarch64.register(name).as_deref(), expected, "{name}");
        }
    }
}
