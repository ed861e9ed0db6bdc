//! Where functions of a file begin that no symbol tells of: unwind information has an entry for each, which says what is on the stack there.
//!
//! In: an ELF file with `.eh_frame`, which `strip` leaves. Sources: LSB 5, exception frames; DWARF 5, 6.4; the numbers of registers in the
//! psABIs of x86-64 and of Arm (AADWARF64).

use std::fs::File;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, Register, RegisterRule, RunTimeEndian,
    UnwindContext, UnwindSection as _,
};
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader as _, SectionHeader as _};

use super::machine::Machine;
use crate::modules::BoundedFile;

type Bytes<'d> = EndianSlice<'d, RunTimeEndian>;

/// Whether a function begins at an address, as linked: an entry does, by which the return address is where a call has just put it. Of a part
/// that the compiler has moved away from its function, which is reached by jumps, it is elsewhere, or is it just as well.
pub(super) fn is_function(file: &BoundedFile<File>, machine: Machine, address: u64) -> bool {
    begins_at(file, machine, address).unwrap_or(false)
}

fn begins_at(file: &BoundedFile<File>, machine: Machine, address: u64) -> Option<bool> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, file).ok()?;
    let address_of =
        |name: &[u8]| sections.section_by_name(endian, name).map(|(_, section)| section.sh_addr(endian));
    let (_, section) = sections.section_by_name(endian, b".eh_frame")?;
    let mut bases = BaseAddresses::default().set_eh_frame(section.sh_addr(endian));
    bases = address_of(b".text").map_or(bases.clone(), |text| bases.set_text(text));
    bases = address_of(b".got").map_or(bases.clone(), |got| bases.set_got(got));
    let order = if endian == Endianness::Little { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let frames = EhFrame::new(section.data(endian, file).ok()?, order);
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { continue };
        if entry.initial_address() == address {
            return Some(!entry.is_signal_trampoline() && is_called(machine, &frames, &bases, &entry));
        }
    }
    None
}

/// Whether an entry begins with what a call makes of the stack.
fn is_called(
    machine: Machine,
    frames: &EhFrame<Bytes<'_>>,
    bases: &BaseAddresses,
    entry: &gimli::FrameDescriptionEntry<Bytes<'_>>,
) -> bool {
    let mut context = UnwindContext::new();
    let Ok(mut rows) = entry.rows(frames, bases, &mut context) else { return false };
    let Ok(Some(row)) = rows.next_row() else { return false };
    let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return false };
    match machine {
        // The return address is what the stack pointer points to.
        Machine::X86_64 => {
            (register, offset) == (Register(7), 8)
                && row.register(Register(16)) == Some(RegisterRule::Offset(-8))
        }
        // It is in the link register.
        Machine::Aarch64 => {
            (register, offset) == (Register(31), 0)
                && matches!(row.register(Register(30)), None | Some(RegisterRule::SameValue))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::modules::UNWIND_SECTIONS;

    /// `far` has a part that is never reached, which GCC puts elsewhere.
    const SOURCE: &str = r#"
        __attribute__((cold, noreturn)) void ends(void *);
        __attribute__((noinline)) int near(int n) { return n * 3; }
        __attribute__((noinline)) int far(int n) {
            char room[256];
            __asm__ volatile("" : : "r"(room) : "memory");
            if (n == 17) { __asm__ volatile("" : : "r"(room) : "memory"); ends(room); }
            return near(n) + room[n];
        }
        __attribute__((cold, noreturn)) void ends(void *room) { for (;;) __asm__ volatile("" : : "r"(room)); }
        int main(int count, char **values) { return far(count); }
    "#;

    fn output(command: &mut Command) -> String {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn functions_of_a_stripped_file_are_those_that_its_symbols_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let [source, whole, stripped] = ["far.c", "whole", "stripped"].map(|name| folder.path().join(name));
        fs::write(&source, SOURCE).unwrap();
        output(Command::new("gcc").args(["-O2", "-fomit-frame-pointer", "-o"]).arg(&whole).arg(&source));
        output(Command::new("strip").arg("-o").arg(&stripped).arg(&whole));
        // By another tool.
        let symbols = output(Command::new("nm").arg(&whole));
        let at = |name: &str| {
            let line = symbols.lines().find(|line| line.split(' ').next_back() == Some(name));
            line.map(|line| u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap())
        };
        let file = BoundedFile::new(File::open(&stripped).unwrap(), UNWIND_SECTIONS);
        let is_function = |address| is_function(&file, Machine::here().unwrap(), address);
        for name in ["near", "far", "main", "_start"] {
            // That of `_start` says that nobody called it.
            assert_eq!(is_function(at(name).unwrap()), name != "_start", "{name}");
        }
        // 264 bytes are on the stack there.
        if let Some(part) = at("far.cold") {
            assert!(!is_function(part));
        }
        let (begin, all) = (at("far").unwrap(), at("far").unwrap()..at("far").unwrap() + 16);
        let found: BTreeSet<u64> = all.filter(|&address| is_function(address)).collect();
        assert_eq!(found, [begin].into(), "nothing within");
    }
}
