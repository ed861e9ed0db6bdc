//! What tests need to know of an architecture: who compiles for it, who runs it, and in which form a program hands over
//! its registers.

use std::path::Path;
use std::process::Command;

use unwinder::aarch64::{self, Aarch64, ReturnAddressMask};
use unwinder::x86::{self, X86};
use unwinder::x86_64::{self, X86_64};
use unwinder::{Architecture, Registers};

use super::Words;

/// An architecture for which programs can be compiled and run here.
pub(crate) trait Platform: Architecture {
    /// The prefix of its toolchain's programs, where they are not the machine's own.
    const PREFIX: &str;
    const IS_NATIVE: bool;
    /// How a program is started that is not the machine's own.
    const EMULATOR: &[&str];
    /// Where programs that are not static find their interpreter and libraries, if that needs to be said.
    const DYNAMIC: &[&str] = &[];

    /// The folder of fixtures that has those for it.
    const FIXTURES: &str;

    /// `capture.h`'s registers.
    fn registers(words: &mut Words<'_>) -> Registers<Self>;

    /// A program of the toolchain.
    fn tool(name: &str) -> Command {
        Command::new(if Self::IS_NATIVE { name.to_owned() } else { format!("{}{name}", Self::PREFIX) })
    }

    /// Runs `program`.
    fn command(program: &Path) -> Command {
        match Self::EMULATOR {
            [emulator, arguments @ ..] if !Self::IS_NATIVE => {
                let mut command = Command::new(emulator);
                command.args(arguments).arg(program);
                command
            }
            _ => Command::new(program),
        }
    }
}

impl Platform for X86_64 {
    const PREFIX: &str = "x86_64-linux-gnu-";
    const IS_NATIVE: bool = cfg!(target_arch = "x86_64");
    const EMULATOR: &[&str] = &[];
    const FIXTURES: &str = "";

    fn registers(words: &mut Words<'_>) -> x86_64::Registers {
        x86_64::Registers::new(words.word(), std::array::from_fn(|_| words.word()))
    }
}

/// By the processor itself, which runs 32-bit programs where the kernel lets it (`CONFIG_IA32_EMULATION`), with the
/// toolchain's own libraries: there need be none in the system's folders.
impl Platform for X86 {
    const PREFIX: &str = "i686-linux-gnu-";
    const IS_NATIVE: bool = false;
    const EMULATOR: &[&str] = &[];
    const DYNAMIC: &[&str] = &[
        "-Wl,--dynamic-linker=/usr/i686-linux-gnu/lib/ld-linux.so.2",
        "-Wl,--disable-new-dtags,-rpath,/usr/i686-linux-gnu/lib",
    ];
    const FIXTURES: &str = "x86";

    fn registers(words: &mut Words<'_>) -> x86::Registers {
        let mut word = || u32::try_from(words.word()).expect("a register of 32 bits");
        x86::Registers::new(word(), std::array::from_fn(|_| word()))
    }
}

/// Under an emulation even where the machine is one: it has pointer authentication whatever the processor has.
impl Platform for Aarch64 {
    const PREFIX: &str = "aarch64-linux-gnu-";
    const IS_NATIVE: bool = false;
    const EMULATOR: &[&str] = &["qemu-aarch64-static", "-cpu", "max", "-L", "/usr/aarch64-linux-gnu"];
    const FIXTURES: &str = "aarch64";

    fn registers(words: &mut Words<'_>) -> aarch64::Registers {
        let pc = words.word();
        let general = std::array::from_fn(|_| words.word());
        let mask = ReturnAddressMask::of_address_bits(48);
        aarch64::Registers::new(pc, words.word(), general, mask)
    }
}
