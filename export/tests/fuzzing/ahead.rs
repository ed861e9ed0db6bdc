//! The input is a map of what .NET compiled ahead, which the recording names as the map of an image that is not here: names for some
//! addresses of the image.

use std::io::Cursor;
use std::time::{Duration, Instant};

use collector_common::ids::Svma;
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind};
use export::symbolize::{AheadMapId, Detail, ModuleFiles, symbolize};

/// Bytes that any file may hold, and bytes for each of its own.
const FIXED_MEMORY: u64 = 4 << 20;
const PER_BYTE: u64 = 64;

/// One of an input's size takes no more than this, instrumented or not.
const MOST_TIME: Duration = Duration::from_secs(5);

struct Input<'a>(&'a [u8]);

impl<'a> ModuleFiles for Input<'a> {
    type File = Cursor<&'a [u8]>;

    fn open(&self, _: ModuleId) -> Option<Self::File> {
        None
    }

    fn ahead_map_of(&self, _: ModuleId) -> Option<AheadMapId> {
        Some(AheadMapId { signature: [0x11; 16], version: 1, path: b"App.ni.r2rmap".to_vec() })
    }

    fn open_ahead_map(&self, _: ModuleId, _: &AheadMapId) -> Option<Self::File> {
        Some(Cursor::new(self.0))
    }
}

/// Looks up addresses. Out: how many have names.
pub(crate) fn run(input: &[u8]) -> usize {
    let mut machine = ExportMachine::default();
    let path = machine.intern_string("/app/App.dll");
    let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    for address in (0..0x1000).step_by(3).chain((0..64).map(|bit| 1 << bit)).chain([u64::MAX]) {
        machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags::default() });
    }
    let most = FIXED_MEMORY + input.len() as u64 * PER_BYTE;
    let start = Instant::now();
    let mut named = 0;
    let used = allocation_counter::measure(|| {
        let symbols = symbolize(&machine, &Input(input), Detail::Lines);
        let frames = (0..machine.frames().len() as u32).map(FrameId);
        named = frames.filter(|&frame| symbols.is_resolved(frame)).count();
    });
    assert!(start.elapsed() < MOST_TIME, "it took {:?}", start.elapsed());
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    named
}
