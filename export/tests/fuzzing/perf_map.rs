//! The input is a perf map: names for some addresses of a process.

use std::io::Cursor;
use std::time::{Duration, Instant};

use collector_common::ids::{Nanos, Pid, Svma};
use collector_common::record::{
    ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind, ProcessId,
};
use export::symbolize::{Detail, ModuleFiles, PerfMap, symbolize};

/// Bytes that any file may hold, and bytes for each of its own.
const FIXED_MEMORY: u64 = 4 << 20;
const PER_BYTE: u64 = 64;

/// One of an input's size takes no more than this, instrumented or not.
const MOST_TIME: Duration = Duration::from_secs(5);

/// Whether it may grow is told by its first byte.
struct Input<'a>(&'a [u8]);

impl<'a> ModuleFiles for Input<'a> {
    type File = Cursor<&'a [u8]>;

    fn open(&self, _: ModuleId) -> Option<Self::File> {
        None
    }

    fn perf_map(&self, _: ProcessId) -> Option<PerfMap<Self::File>> {
        let is_growing = self.0.first().is_some_and(|byte| byte % 2 == 1);
        Some(PerfMap { file: Cursor::new(self.0), is_growing })
    }
}

/// Looks up addresses. Out: how many have names.
pub(crate) fn run(input: &[u8]) -> usize {
    let mut machine = ExportMachine::default();
    let process = machine.add_process(Pid(7), "runtime", None, Nanos(0));
    let path = machine.intern_string("[anon]");
    let module = machine.add_module(Module { kind: ModuleKind::Anonymous(process), path, build_id: None });
    let places = (0..0x1000).step_by(3).chain((0..64).map(|bit| 1 << bit)).chain([u64::MAX - 1, u64::MAX]);
    for address in places {
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
