//! The input is a program with debug information: lines and inlined functions for some of its addresses.

use std::io::Cursor;
use std::time::{Duration, Instant};

use collector_common::ids::Svma;
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind};
use export::symbolize::{Detail, ModuleFiles, symbolize};

/// Bytes that any file may hold: what is made of it is bounded by an estimate.
const FIXED_MEMORY: u64 = 256 << 20;

/// Bytes that may be held for each of the file's: a section unpacks to 128 times its size, and a vector grows by doubling.
const PER_BYTE: u64 = 1024;

/// A minute is for the files of a recording; one of an input's size takes no more than this, instrumented or not.
const MOST_TIME: Duration = Duration::from_secs(20);

/// Every file of a module is the input: its own, and those that it may refer to.
struct Input<'a>(&'a [u8]);

impl<'a> ModuleFiles for Input<'a> {
    type File = Cursor<&'a [u8]>;

    fn open(&self, _: ModuleId) -> Option<Self::File> {
        Some(Cursor::new(self.0))
    }

    fn open_shared(&self, module: ModuleId, _: &[u8], _: &[u8]) -> Option<Self::File> {
        self.open(module)
    }

    fn open_split(&self, module: ModuleId, _: &[u8], _: &[u8]) -> Option<Self::File> {
        self.open(module)
    }

    fn open_package(&self, module: ModuleId) -> Option<Self::File> {
        self.open(module)
    }
}

/// Looks up addresses all over. Out: how many have lines.
pub(crate) fn run(input: &[u8]) -> usize {
    let mut machine = ExportMachine::default();
    let path = machine.intern_string("input");
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    // Where linkers place small programs, and what is at the ends of the numbers.
    let places = (0..0x2000).step_by(7).chain([u64::from(u32::MAX), u64::MAX - 1, u64::MAX]);
    for address in places {
        machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags::default() });
    }
    let most = FIXED_MEMORY + input.len() as u64 * PER_BYTE;
    let start = Instant::now();
    let mut lines = 0;
    let used = allocation_counter::measure(|| {
        let symbols = symbolize(&machine, &Input(input), Detail::Lines);
        for id in (0..machine.frames().len() as u32).map(FrameId) {
            let functions: Vec<_> = symbols.functions(id).collect();
            let inlined = functions.iter().filter(|function| function.is_inlined).count();
            assert_eq!(inlined + 1, functions.len(), "one is not inlined");
            lines += usize::from(functions.iter().any(|function| function.line > 0));
        }
    });
    assert!(start.elapsed() < MOST_TIME, "it took {:?}", start.elapsed());
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    lines
}
