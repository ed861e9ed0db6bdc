//! Made-up recordings whose truth is known.

use collector_common::ids::{Avma, BuildId, FileOffset, Nanos, Pid, Svma, Tid, Uid};
use collector_common::record::{
    AttributeListId, ClockAnchor, DebugLink, ExportMachine, Frame, FrameFlags, FrameId, Module,
    ModuleDetails, ModuleId, ModuleKind, ModuleMapping, Sample, SampleKindId, ThreadId, Unit,
};
use export::symbolize::Symbols;

pub(crate) const PERIOD: u64 = 1_003_009;

/// A recording of two processes that run one program.
pub(crate) struct Made {
    pub(crate) machine: ExportMachine,
    pub(crate) symbols: Symbols,
}

/// Frames of the recording, by what they are.
struct Frames {
    main: FrameId,
    work: FrameId,
    recurse: [FrameId; 2],
    unnamed: FrameId,
    kernel: FrameId,
    cut: FrameId,
    stray: FrameId,
}

/// What the program says of its package.
pub(crate) const PACKAGE: &str = r#"{"type":"deb","name":"prog","version":"1.2-3"}"#;

/// The container of the second process.
pub(crate) const CONTAINER: &str = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00";

impl Made {
    /// Stacks and how often: see the tests that know the truth.
    pub(crate) fn new() -> Self {
        let mut machine = ExportMachine::default();
        let system = machine.system_mut();
        "build-07".clone_into(&mut system.host);
        "Linux 6.18.0".clone_into(&mut system.kernel);
        "x86_64".clone_into(&mut system.architecture);
        "Debian GNU/Linux 12 (bookworm)".clone_into(&mut system.distribution);
        "A B @ 2 GHz".clone_into(&mut system.processor);
        system.memory = 8 << 30;
        "prog --fast".clone_into(&mut system.command);
        (system.cpus, system.start, system.end) = (2, Nanos(1_000), Nanos(2_000_001_000));
        let realtime = 1_750_000_000_123_456_789;
        system.clocks.start =
            Some(ClockAnchor { monotonic: system.start, realtime, boottime: Some(Nanos(500_000_000)) });
        system.lost = Some(3);
        system.account = vec!["3 lost (ring_full 3)".to_owned(), "100.00 % are complete".to_owned()];
        let kind = machine.add_kind("cpu", Unit::Count, PERIOD);
        let first = machine.add_process(Pid(100), "prog", None, Nanos(0));
        let second = machine.add_process(Pid(200), "prog", Some(first), Nanos(5));
        let executed = machine.add_program(first, Nanos(0), "prog");
        machine.set_arguments(executed, b"prog\0--fast\0two words\0", false);
        machine.set_cgroup(second, &format!("/docker/{CONTAINER}"));
        for process in [first, second] {
            let process = machine.process_mut(process).unwrap();
            (process.user, process.namespace_pid) = (Some(Uid(1000)), Some(Pid(1)));
        }
        machine.name_user(Uid(1000), "ann");
        let path = machine.intern_string("/opt/prog");
        let build_id = BuildId::new(&[0xab, 0xcd, 0x01]);
        let program = machine.add_module(Module { kind: ModuleKind::File, path, build_id });
        let link = DebugLink { name: "prog.debug".to_owned(), checksum: 7 };
        let package = Some(PACKAGE.to_owned());
        let details = ModuleDetails { debug_link: Some(link), package, ..ModuleDetails::default() };
        machine.set_details(program, details);
        // The segment at 0x3000 of the file is linked for 0x4000, and mapped at another place in each process.
        for (process, base) in [(first, 0x5555_0000_0000_u64), (second, 0x7f00_1234_0000)] {
            machine.add_mapping(ModuleMapping {
                process,
                module: program,
                start: Avma(base + 0x4000),
                end: Avma(base + 0x9000),
                file_offset: FileOffset(0x3000),
                bias: base,
                since: Nanos(0),
            });
        }
        let stray = machine.intern_string("[unmapped]");
        let stray =
            machine.add_module(Module { kind: ModuleKind::Unmapped(first), path: stray, build_id: None });

        let frames = Frames::new(&mut machine, program, stray);
        let mut symbols = Symbols::unresolved(&machine);
        for (frame, name, linkage) in [
            (frames.main, "main", "main"),
            (frames.work, "work(int; char)", "_Z4workic"),
            (frames.recurse[0], "recurse", "recurse"),
            (frames.recurse[1], "recurse", "recurse"),
            (frames.kernel, "vfs_read", "vfs_read"),
        ] {
            symbols.set(frame, name, linkage);
        }

        let names = ["prog", "worker 7"].map(|name| machine.intern_string(name));
        let threads = [
            machine.intern_thread(first, Tid(100), names[0]),
            machine.intern_thread(first, Tid(101), names[1]),
            machine.intern_thread(second, Tid(200), names[0]),
        ];
        let mut made = Self { machine, symbols };
        let &Frames { main, work, recurse: [inner, outer], unnamed, kernel, cut, stray } = &frames;
        made.samples(kind, threads[0], &[work, main], 40);
        made.samples(kind, threads[1], &[work, main], 20);
        made.samples(kind, threads[0], &[inner, outer, inner, main], 10);
        made.samples(kind, threads[2], &[kernel, work, main], 8);
        made.samples(kind, threads[2], &[unnamed, cut], 4);
        made.samples(kind, threads[2], &[stray], 2);
        made.samples(kind, threads[1], &[], 1);
        made
    }

    fn samples(&mut self, kind: SampleKindId, thread: ThreadId, stack: &[FrameId], count: u64) {
        let stack = self.machine.intern_stack(stack);
        for tick in 0..count {
            self.machine.add_sample(&Sample {
                time: Nanos(2_000 + tick * PERIOD),
                thread,
                stack,
                cpu: 0,
                kind,
                value: 1,
                attributes: AttributeListId::NONE,
            });
        }
    }
}

impl Frames {
    fn new(machine: &mut ExportMachine, program: ModuleId, stray: ModuleId) -> Self {
        let mut add = |module, address, flags| {
            machine.intern_frame(Frame { module, address: Svma(address), flags: FrameFlags(flags) })
        };
        let ret = FrameFlags::RETURN_ADDRESS;
        Self {
            main: add(program, 0x4101, ret),
            work: add(program, 0x4200, 0),
            recurse: [add(program, 0x4300, 0), add(program, 0x4311, ret | FrameFlags::HEURISTIC)],
            unnamed: add(program, 0x8123, 0),
            kernel: add(ModuleId::KERNEL, 0xffff_ffff_8123_4567, FrameFlags::KERNEL),
            cut: add(program, 0, FrameFlags::CUT),
            stray: add(stray, 0xdead_0000, 0),
        }
    }
}
