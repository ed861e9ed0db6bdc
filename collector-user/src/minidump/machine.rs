//! The streams of a dump in, its recording out: a process with its images, and a sample for each thread.

use std::path::Path;

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::loss::Ledger;
use collector_common::record::{
    AttributeListId, ClockAnchor, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleDetails, ModuleId,
    ModuleKind, ModuleMapping, ProcessId, Sample, Unit,
};
use collector_common::wire::SampleFlags;
use export::hottest::printable;
use export::import::Imported;
use export::symbolize::Symbols;
use unwinder::{FrameKind, StopReason};

use super::context::Context;
use super::images::{DumpFiles, Images};
use super::memory::Memory;
use super::source::Places;
use super::streams::{self, Streams, Thread};
use super::walk::{View, Walker, innermost};
use crate::recorder::StackTally;
use crate::stats::{NOT_WALKED, Stats};

/// The kind of the samples.
const KIND: &str = "thread";

/// The attribute of the thread that was stopped by an exception.
const EXCEPTION: &str = "exception";

/// Frames of all stacks together, and how many more for each thread: beyond them threads are where they were interrupted.
const FRAMES: [u64; 2] = [1 << 20, 16];

/// What walking may cost, in words of stacks and code that are read, and how much more for each thread: beyond that threads are where they
/// were interrupted, too.
const WORK: [u64; 2] = [1 << 23, 64];

/// Images that are named of those that are not there.
const MOST_NAMED: usize = 5;

/// Makes the recording of a dump that lies in `folder`.
pub(super) fn build(
    mut machine: ExportMachine,
    source: &dyn Places,
    streams: Streams,
    folder: Option<&Path>,
) -> (Imported, DumpFiles) {
    let Streams { time, system, pid, threads, modules, memory, left_out } = streams;
    let memory = Memory::new(source, memory);
    describe(&mut machine, time, &system);
    let name = modules.first().map_or("", |first| file_name(&first.path));
    let process = machine.add_process(Pid(pid.unwrap_or_default()), name, None, Nanos(0));
    let name = name.to_owned();
    let modules = modules.into_iter().map(|module| {
        let id = add_module(&mut machine, process, &module);
        (module, id)
    });
    let modules = modules.collect();
    // As many as all images can be that lie in the file once.
    let images = Images::new(modules, folder, source.length());
    let [room, work] = [FRAMES, WORK].map(|[all, each]| all + each * threads.len() as u64);
    let mut walk = Walk {
        machine,
        view: View { images: &images, memory: &memory },
        process,
        unmapped: None,
        walker: Walker::default(),
        tally: StackTally::default(),
        walked: Vec::new(),
        room,
        work,
        counts: Counts::default(),
    };
    let kind = walk.machine.add_kind(KIND, Unit::Count, 1);
    for thread in &threads {
        let name = walk.machine.intern_string(thread.name.as_deref().unwrap_or(&name));
        let id = walk.machine.intern_thread(process, Tid(thread.tid), name);
        let (stack, attributes) = (walk.stack(thread), walk.attributes(thread));
        let stack = walk.machine.intern_stack(&stack);
        let sample = Sample { time: Nanos(0), thread: id, stack, cpu: 0, kind, value: 1, attributes };
        walk.machine.add_sample(&sample);
    }
    let Walk { mut machine, tally, counts, .. } = walk;
    let left_out = left_out.into_iter().chain(counts.lines()).chain(absent(&images, &machine));
    let left_out = left_out.chain(images.failures());
    let mut left_out: Vec<String> = left_out.collect();
    let mut ledger = Ledger::default();
    ledger.deliver(threads.len() as u64);
    let stats = Stats { ledger, stacks: tally.ends().collect(), ..Stats::default() };
    let account = stats.account();
    if tally.complete() < tally.total() {
        left_out.extend(account.iter().skip(1).cloned());
    }
    machine.system_mut().lost = Some(0);
    machine.system_mut().account = account;
    for (module, own) in images.details() {
        let told = machine.details(module).cloned().unwrap_or_default();
        let (version, pdb) = (told.version.or(own.version), told.pdb.or(own.pdb));
        machine.set_details(module, ModuleDetails { version, pdb, ..own });
    }
    let symbols = Symbols::unresolved(&machine);
    (Imported { machine, symbols, left_out }, images.into_files())
}

/// Fills in what the dump tells of the machine. Times are since the dump was made.
fn describe(machine: &mut ExportMachine, time: u32, system: &streams::System) {
    let [major, minor, build] = system.version;
    let described = machine.system_mut();
    described.kernel = format!("Windows {major}.{minor}.{build}");
    system.processor.name().clone_into(&mut described.architecture);
    described.cpus = system.cpus.into();
    if time > 0 {
        described.clocks.start = ClockAnchor::at(Nanos(0), i128::from(time) * 1_000_000_000);
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or(path)
}

fn add_module(machine: &mut ExportMachine, process: ProcessId, module: &streams::Module) -> ModuleId {
    let path = machine.intern_string(&module.path);
    let id = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
    let (version, pdb) = (module.version.clone(), module.pdb.clone());
    let details = ModuleDetails { version, pdb, ..ModuleDetails::default() };
    if details != ModuleDetails::default() {
        machine.set_details(id, details);
    }
    machine.add_mapping(ModuleMapping {
        process,
        module: id,
        start: Avma(module.base),
        end: Avma(module.base.saturating_add(module.size.into())),
        file_offset: FileOffset(0),
        bias: module.base,
        since: Nanos(0),
    });
    id
}

/// Which images are not there that stacks lead through.
fn absent(images: &Images, machine: &ExportMachine) -> Option<String> {
    let on_stacks = machine.frames().iter().map(|frame| frame.module).collect();
    let absent: Vec<&str> = images.absent(&on_stacks).collect();
    let named: Vec<_> = absent.iter().take(MOST_NAMED).map(|path| printable(file_name(path))).collect();
    let more = match absent.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!absent.is_empty()).then(|| {
        format!(
            "images on stacks are not here, so that who called their functions is guessed or not known: {}{more}; put them beside the \
             dump, or into a folder of _NT_SYMBOL_PATH",
            named.join(", ")
        )
    })
}

/// What is told of threads.
#[derive(Debug, Default)]
struct Counts {
    without_registers: u64,
    of_x86: u64,
    beyond_room: u64,
}

impl Counts {
    fn lines(&self) -> impl Iterator<Item = String> {
        let counted = [
            (
                self.without_registers,
                "threads without registers in the dump, as that has none which wrote it, and so without a stack",
            ),
            (
                self.of_x86,
                "threads in 32-bit code of x86, which has no unwind codes, so that their callers are guessed",
            ),
            (
                self.beyond_room,
                "threads of which only where they were is told, as all stacks together are longer than any process's, or take longer to walk",
            ),
        ];
        counted.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what}: {count}"))
    }
}

/// The way through the threads.
struct Walk<'a> {
    machine: ExportMachine,
    view: View<'a>,
    process: ProcessId,
    unmapped: Option<ModuleId>,
    walker: Walker,
    tally: StackTally,
    /// Frames of the stack in hand; kept for its memory.
    walked: Vec<unwinder::Frame>,
    room: u64,
    work: u64,
    counts: Counts,
}

impl Walk<'_> {
    /// A thread's stack, innermost first.
    fn stack(&mut self, thread: &Thread) -> Vec<FrameId> {
        let is_whole = if let Some(context) = &thread.context {
            self.walk(context) == StopReason::Root
        } else {
            self.walked.clear();
            self.counts.without_registers += 1;
            self.tally.count(NOT_WALKED);
            false
        };
        let walked = std::mem::take(&mut self.walked);
        let mut frames: Vec<FrameId> = walked.iter().map(|frame| self.frame(frame)).collect();
        self.walked = walked;
        if !is_whole {
            let flags = FrameFlags(FrameFlags::CUT);
            frames.push(self.machine.intern_frame(Frame {
                module: ModuleId::KERNEL,
                address: Svma(0),
                flags,
            }));
        }
        frames
    }

    /// Walks one into `walked`, as long as there is room.
    fn walk(&mut self, context: &Context) -> StopReason {
        self.walked.clear();
        self.counts.of_x86 += u64::from(matches!(context, Context::X86 { .. }));
        if self.room == 0 || self.view.memory.work() > self.work {
            self.counts.beyond_room += 1;
            self.tally.count(NOT_WALKED);
            self.walked.push(innermost(context));
            return StopReason::DepthLimit;
        }
        let reason = self.walker.walk(self.view, context, &mut self.walked);
        self.room = self.room.saturating_sub(self.walked.len() as u64);
        let end = self.tally.end_of(reason, SampleFlags(0), false, &self.walked);
        self.tally.count(end);
        reason
    }

    fn frame(&mut self, frame: &unwinder::Frame) -> FrameId {
        let View { images, memory } = self.view;
        let lying = images.at(frame.lookup_address());
        // What names it later is looked for while the dump is at hand.
        if let Some(lying) = lying {
            images.look_for(lying, memory);
        }
        let place = lying.and_then(|lying| Some((images.module(lying)?, lying.base)));
        let (module, base) = place.unwrap_or_else(|| (self.unmapped(), 0));
        let returned = if frame.kind == FrameKind::ReturnAddress { FrameFlags::RETURN_ADDRESS } else { 0 };
        let guessed = if frame.heuristic { FrameFlags::HEURISTIC } else { 0 };
        let (address, flags) = (Svma(frame.address.wrapping_sub(base)), FrameFlags(returned | guessed));
        self.machine.intern_frame(Frame { module, address, flags })
    }

    fn unmapped(&mut self) -> ModuleId {
        let Self { machine, process, unmapped, .. } = self;
        *unmapped.get_or_insert_with(|| {
            let path = machine.intern_string("[unmapped]");
            machine.add_module(Module { kind: ModuleKind::Unmapped(*process), path, build_id: None })
        })
    }

    fn attributes(&mut self, thread: &Thread) -> AttributeListId {
        let Some((code, address)) = thread.exception else { return AttributeListId::NONE };
        let name = self.machine.intern_string(EXCEPTION);
        let text = self.machine.intern_string(&format!("{code:#010x} at {address:#x}"));
        self.machine.attributes_mut().intern(&[(name, text)])
    }
}
