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

    /// Words of memory that hold where code branches to: what looks like a call or a jump by way of one. `code` is at `address`.
    ///
    /// Sources: Intel SDM, `CALL` and `JMP` with an address relative to the next instruction (`FF /2`, `FF /4`); Arm ARM, `ADRP` with
    /// `LDR` of 64 bits behind it.
    #[cfg(feature = "ebpf")]
    pub(super) fn slots(self, code: &[u8], address: u64) -> impl Iterator<Item = u64> {
        let step = if self == Self::Aarch64 { 4 } else { 1 };
        (0..code.len()).step_by(step).filter_map(move |at| {
            let here = address.wrapping_add(at as u64);
            match (self, code.get(at..)?) {
                (Self::X86_64, &[0xff, 0x15 | 0x25, a, b, c, d, ..]) => {
                    let distance = i32::from_le_bytes([a, b, c, d]);
                    Some(here.wrapping_add(6).wrapping_add_signed(distance.into()))
                }
                (Self::Aarch64, bytes) => {
                    let words: &[u8; 8] = bytes.first_chunk()?;
                    let words = u64::from_le_bytes(*words);
                    let [page, load] = [words as u32, (words >> 32) as u32];
                    let is_pair = page & 0x9f00_0000 == 0x9000_0000
                        && load & 0xffc0_0000 == 0xf940_0000
                        && load >> 5 & 0x1f == page & 0x1f;
                    // 21 bits of a distance in pages, the two lowest apart from the others.
                    let pages = (page >> 5 & 0x7_ffff) << 2 | page >> 29 & 3;
                    let pages = (pages << 11).cast_signed() >> 11;
                    let page = (here & !0xfff).wrapping_add_signed(i64::from(pages) << 12);
                    is_pair.then(|| page.wrapping_add(u64::from(load >> 10 & 0xfff) * 8))
                }
                _ => None,
            }
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

    #[cfg(feature = "ebpf")]
    #[test]
    fn pieces_of_code_that_jump_by_way_of_a_word_are_read() {
        let slots = |machine: Machine, code: &[u8], address| machine.slots(code, address).collect::<Vec<_>>();
        // `endbr64; bnd jmp *0x2fcd(%rip)`, as in `.plt.sec`.
        let code = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xcd, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0];
        assert_eq!(slots(Machine::X86_64, &code, 0x1000), [0x1005 + 6 + 0x2fcd]);
        // `adrp x16, 0x11000; ldr x17, [x16, #4000]; add x16, x16, #4000; br x17`, as in `.plt`; and the same from behind there.
        let words = |page: u32| [page, 0xf947_d211, 0x913e_8210, 0xd61f_0220];
        let code = |page| words(page).map(u32::to_le_bytes).concat();
        assert_eq!(slots(Machine::Aarch64, &code(0x9000_0090), 0x0600), [0x1_0000 + 4000]);
        assert_eq!(slots(Machine::Aarch64, &code(0xf0ff_fff0), 0x2_0600), [0x1_f000 + 4000]);
    }
}
