//! A made-up recording with the shape of a busy machine's: 200 threads, stacks of 5 to 45 frames out of 12,000, most samples on few of
//! them.

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::record::{
    AttributeListId, ClockAnchor, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleKind,
    ModuleMapping, Sample, Unit,
};
use export::symbolize::Symbols;

/// xorshift64*: the same numbers every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % limit.max(1)
    }
}

/// So many samples, a microsecond after each other, on so many distinct stacks.
pub(crate) fn busy(samples: u64, stacks: usize) -> (ExportMachine, Symbols) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut machine = ExportMachine::default();
    // Without a time of day some formats have no times.
    machine.system_mut().clocks.start =
        Some(ClockAnchor { monotonic: Nanos(0), realtime: 1_750_000_000_000_000_000, boottime: None });
    let kind = machine.add_kind("cpu", Unit::Count, 1_003_009);
    let mut threads = Vec::new();
    for index in 0..200_u32 {
        let process = machine.add_process(Pid(1_000 + index / 4), "program", None, Nanos(0));
        let name = machine.intern_string(&format!("worker {index}"));
        threads.push(machine.intern_thread(process, Tid(1_000 + index), name));
    }
    let mut frames: Vec<FrameId> = Vec::new();
    for index in 0..12_u32 {
        let path = machine.intern_string(&format!("/usr/lib/libbusy{index}.so.1"));
        let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
        machine.add_mapping(ModuleMapping {
            process: machine.thread(threads[0]).process,
            module,
            start: Avma(0x7f00_0000_1000),
            end: Avma(0x7f00_0010_0000),
            file_offset: FileOffset(0x1000),
            bias: 0x7f00_0000_0000,
            since: Nanos(0),
        });
        for function in 0..1_000 {
            let flags = FrameFlags(FrameFlags::RETURN_ADDRESS);
            let address = Svma(0x1000 + function * 0x40 + 5);
            frames.push(machine.intern_frame(Frame { module, address, flags }));
        }
    }
    let mut symbols = Symbols::unresolved(&machine);
    for frame in &frames {
        let name = format!("program::module_{}::function_{}", frame.0 % 97, frame.0 / 2);
        symbols.set(*frame, &name, &name);
    }
    let stacks: Vec<_> = (0..stacks)
        .map(|_| {
            let depth = 5 + random.below(41);
            let stack: Vec<FrameId> = (0..depth).map(|_| frames[random.below(frames.len())]).collect();
            machine.intern_stack(&stack)
        })
        .collect();
    for tick in 0..samples {
        let spread = random.below(1 << 15) as f64 / f64::from(1 << 15);
        machine.add_sample(&Sample {
            time: Nanos(tick * 1_000),
            thread: threads[random.below(threads.len())],
            stack: stacks[(spread.powi(4) * stacks.len() as f64) as usize],
            cpu: (tick % 8) as u16,
            kind,
            value: 1,
            attributes: AttributeListId::NONE,
        });
    }
    (machine, symbols)
}
