//! ELF files that are cut short or full of noise: no panic, and what can be read is named.

use std::io::Cursor;
use std::sync::OnceLock;

use collector_common::record::{ExportMachine, FrameId, ModuleId};
use export::symbolize::{Detail, ModuleFiles, Symbols, symbolize};
use proptest::prelude::*;

use crate::symbols::machine_of;
use crate::tools::tool;

/// One file for every module.
struct Bytes<'a>(&'a [u8]);

impl<'a> ModuleFiles for Bytes<'a> {
    type File = Cursor<&'a [u8]>;

    fn open(&self, _: ModuleId) -> Option<Self::File> {
        Some(Cursor::new(self.0))
    }
}

fn named(machine: &ExportMachine, symbols: &Symbols) -> usize {
    (0..machine.frames().len() as u32).filter(|&id| symbols.is_resolved(FrameId(id))).count()
}

/// A real file: the C library that this program runs with.
fn libc() -> Vec<u8> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let path =
        maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains("/libc"));
    std::fs::read(path.unwrap()).unwrap()
}

fn addresses() -> ExportMachine {
    machine_of(std::path::Path::new("/lib/libc.so.6"), (0x2_6000..0x17_0000).step_by(0x777))
}

#[test]
fn a_file_cut_short_says_so() {
    let whole = libc();
    let machine = addresses();
    let all = symbolize(&machine, &Bytes(&whole), Detail::default());
    assert!(all.unreadable().is_empty());
    assert!(named(&machine, &all) > 100);
    for length in [0, 1, 4, 5, 63, 64, 1000, whole.len() / 2, whole.len() - 1] {
        let symbols = symbolize(&machine, &Bytes(&whole[..length]), Detail::default());
        assert_eq!(symbols.unreadable().len(), 1, "{length}");
        assert!(!symbols.unreadable()[0].error.to_string().is_empty());
    }
}

/// Headers and the last sections are where lengths and positions are.
fn damage() -> impl Strategy<Value = Vec<(bool, usize, u8)>> {
    proptest::collection::vec((any::<bool>(), 0_usize..4096, any::<u8>()), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_headers_are_survived(damage in damage()) {
        let mut bytes = libc();
        let machine = addresses();
        let length = bytes.len();
        for (front, at, byte) in damage {
            bytes[if front { at % 64 } else { length - 1 - at }] = byte;
        }
        symbolize(&machine, &Bytes(&bytes), Detail::default());
    }

    #[test]
    fn section_headers_that_claim_anything_are_survived(
        claims in proptest::collection::vec((0_usize..64, 0_usize..8, any::<u64>()), 1..12)
    ) {
        let mut bytes = libc();
        let machine = addresses();
        let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        for (section, field, value) in claims {
            let at = table + section * 64 + field * 8;
            if let Some(place) = bytes.get_mut(at..at + 8) {
                place.copy_from_slice(&value.to_le_bytes());
            }
        }
        symbolize(&machine, &Bytes(&bytes), Detail::default());
    }

    #[test]
    fn noise_is_survived(noise in proptest::collection::vec(any::<u8>(), 0..400), elf in any::<bool>()) {
        let mut bytes = noise;
        if elf {
            bytes.splice(0..0, *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        }
        symbolize(&addresses(), &Bytes(&bytes), Detail::default());
    }

    /// The sections of DWARF are what is damaged, and the program is small, so that much of what is read is.
    #[test]
    fn damaged_dwarf_is_survived(
        damage in proptest::collection::vec((0_usize..1 << 20, any::<u8>()), 1..60),
        program in 0_usize..2
    ) {
        let Some(programs) = programs_with_dwarf() else { return Ok(()) };
        let mut bytes = programs[program].clone();
        let length = bytes.len();
        // Behind the headers and most of the code: the sections of DWARF, and the symbols and the headers of sections after them.
        let (start, end) = (length / 4, length);
        for (at, byte) in damage {
            bytes[start + at % (end - start)] = byte;
        }
        let machine = machine_of(std::path::Path::new("/main"), (0x1000..0x1200).step_by(3));
        symbolize(&machine, &Bytes(&bytes), Detail::default());
    }
}

/// Small programs with DWARF 4 and 5.
fn programs_with_dwarf() -> Option<&'static [Vec<u8>; 2]> {
    static PROGRAMS: OnceLock<Option<[Vec<u8>; 2]>> = OnceLock::new();
    let compile =
        || {
            tool("gcc")?;
            let folder = tempfile::tempdir().unwrap();
            Some(["-gdwarf-4", "-gdwarf-5"].map(|version| {
                std::fs::read(crate::lines::compiled(folder.path(), &["-g", version])).unwrap()
            }))
        };
    PROGRAMS.get_or_init(compile).as_ref()
}
