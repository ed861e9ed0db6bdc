//! The input is a PE image and its PDB, behind the size of the image (4 bytes, little-endian): names, lines and inlined functions of
//! addresses in it.

use std::io::Cursor;

use collector_common::ids::Svma;
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind};
use export::symbolize::{Detail, ModuleFiles, PdbId, symbolize};

/// Bytes that reading any two files may hold.
const FIXED_MEMORY: u64 = 1 << 20;

/// Bytes that may be held for each of the files'.
const PER_BYTE: u64 = 16;

/// How many addresses are asked for, from where code begins in most images.
const ADDRESSES: u64 = 64;

/// Both files.
struct Files<'a> {
    image: &'a [u8],
    pdb: &'a [u8],
}

impl<'a> ModuleFiles for Files<'a> {
    type File = Cursor<&'a [u8]>;

    fn open(&self, _: ModuleId) -> Option<Self::File> {
        Some(Cursor::new(self.image))
    }

    fn open_pdb(&self, _: ModuleId, _: &PdbId) -> Option<Self::File> {
        Some(Cursor::new(self.pdb))
    }
}

/// Looks addresses up. Out: how many have a line.
pub(crate) fn run(input: &[u8]) -> usize {
    let Some((size, rest)) = input.split_first_chunk() else { return 0 };
    let Some((image, pdb)) = rest.split_at_checked(u32::from_le_bytes(*size) as usize) else { return 0 };
    let mut machine = ExportMachine::default();
    let path = machine.intern_string("image.exe");
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    for at in 0..ADDRESSES {
        let address = Svma(0x1000 + 3 * at);
        machine.intern_frame(Frame { module, address, flags: FrameFlags::default() });
    }
    let most = FIXED_MEMORY + input.len() as u64 * PER_BYTE;
    let mut lines = 0;
    let used = allocation_counter::measure(|| {
        let symbols = symbolize(&machine, &Files { image, pdb }, Detail::Lines);
        let has_line = |id: &u32| symbols.functions(FrameId(*id)).any(|function| function.line > 0);
        lines = (0..ADDRESSES as u32).filter(has_line).count();
    });
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    lines
}
