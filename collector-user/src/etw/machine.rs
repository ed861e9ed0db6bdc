//! All that was taken of a trace in, the recording out: what happened is gone through in its order, by what lay where then.

mod attributes;

use std::collections::{BTreeMap, HashMap, HashSet};

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::intern::{Seeded, StackId, StringId};
use collector_common::record::{
    AttributeListId, AttributeValue, EventRecord, ExportMachine, Frame, FrameFlags, FrameId, ModuleId,
    ModuleMapping, ProcessId, Sample, ThreadId, Unit,
};
use export::import::Imported;
use export::symbolize::Symbols;
use windows_etw::decode::state::{Lives, NtPaths, Stacks};
use windows_etw::plan::AliveProcess;
use windows_etw::record::PointerSize;

use super::events::Events;
use super::files::Files;
use super::kinds::{BlockKinds, Kinds};
use super::measured;
use super::methods::Methods;
use super::modules::Modules;
use super::pending::{Pending, Row};
use super::places::{Lying, Places, Space, Stay, What};
use super::processes::{self, Processes};
use super::stacks::RawStacks;
use super::system::{Code, Facts};
use super::taker::Waiting;
use super::threads::Threads;
use super::times::Times;
use super::trace::Trace;
use super::whose::Whose;
use attributes::Attributes;

/// Frames that are gone through for all stacks together, and how many more for each of what happened with a stack: ETW walks 192 at most, and what
/// is at their addresses may be something else each time.
const FRAMES: [u64; 2] = [1 << 22, 256];

/// Methods that are told apart at one address.
const MOST_USES: u32 = 64;

/// What Windows reserves memory by.
const SIDE_BY_SIDE: u64 = 64 << 10;

/// Places of the kernel's images in processes.
const MOST_MAPPINGS: usize = 1 << 20;

/// What was taken.
pub(super) struct Build {
    pub(super) machine: ExportMachine,
    pub(super) times: Times,
    pub(super) trace: Trace,
    pub(super) paths: NtPaths,
    pub(super) files: Files,
    pub(super) lives: Lives,
    pub(super) there: Vec<AliveProcess>,
    pub(super) threads: Threads,
    pub(super) methods: Methods,
    pub(super) modules: Modules,
    pub(super) kinds: Kinds,
    pub(super) events: Events,
    pub(super) facts: Facts,
    pub(super) raw: RawStacks,
    pub(super) stacks: Stacks<Waiting>,
    pub(super) pending: Pending,
    /// A kind of which no samples are made.
    pub(super) left_out_kind: Option<&'static str>,
    pub(super) keeps_events: bool,
    pub(super) last: Nanos,
    pub(super) not_understood: u64,
    /// Times off a CPU that are not known to their end.
    pub(super) cut_times: u64,
    pub(super) no_room: u64,
}

impl Build {
    /// Makes the recording.
    pub(super) fn build(mut self) -> Imported {
        self.kinds.add_to(&mut self.machine);
        if self.keeps_events {
            self.events.add_to(&mut self.machine, &self.kinds);
        }
        let processes = Processes::add(&mut self.machine, self.lives.processes(), &self.times, &self.there);
        let mut world = World {
            kernel: match self.trace.pointer_size {
                PointerSize::Bits32 => 1 << 31,
                PointerSize::Bits64 => 1 << 63,
            },
            images: Vec::new(),
            places: Places::default(),
            processes,
            threads: HashMap::default(),
            frames: HashMap::default(),
            stacks: HashMap::default(),
            called: HashMap::default(),
            within: HashMap::default(),
            paths: HashMap::default(),
            mapped: HashSet::default(),
            said: Attributes::default(),
            made: BTreeMap::new(),
            room: FRAMES[0],
            cut: 0,
            addresses: Vec::new(),
            stack: Vec::new(),
        };
        world.place(&mut self);
        for index in 0..self.pending.len() {
            if let Some(row) = self.pending.row(index) {
                world.take(&mut self, &row, index);
            }
        }
        world.map_made(&mut self.machine);
        self.finish(&world)
    }

    fn finish(mut self, world: &World) -> Imported {
        let lost = self.pending.lost().saturating_add(self.machine.event_records().lost());
        let system = self.machine.system_mut();
        let kernel = world.frames.keys().filter(|(space, ..)| space.is_none());
        let kernel: HashSet<u64> = kernel.map(|(_, address, _)| *address).collect();
        let code = Code::of(kernel.into_iter(), self.trace.pointer_size);
        self.facts.describe(&self.trace, code, system);
        system.start = self.times.start();
        system.end = self.trace.end.map_or(self.last, |end| self.times.of(end)).max(self.last);
        system.clocks.start = self.times.anchor();
        system.lost = Some(lost);
        let mut symbols = Symbols::unresolved(&self.machine);
        for (frame, method) in &world.called {
            let Some(method) = self.methods.all().get(*method as usize) else { continue };
            let (name, signature) = (self.methods.text(method.name), self.methods.text(method.signature));
            let linkage = if signature.is_empty() { name.to_owned() } else { format!("{name} {signature}") };
            symbols.set(*frame, name, &linkage);
        }
        let unjoined = self.stacks.losses();
        let guessed = u64::from(self.kinds.has_guessed());
        let counted = [
            (unjoined.stacks, "stacks are of no event that is there"),
            (unjoined.repeated + unjoined.alike, "stacks are of events that can't be told apart"),
            (
                unjoined.keys + unjoined.large + world.cut,
                "stacks are left out: they are larger together than any trace's",
            ),
            (self.not_understood, "events, or what describes them, could not be understood"),
            (
                self.cut_times,
                "times off a CPU are cut where switches of threads were lost: what came behind is not known",
            ),
            (self.no_room, "facts, samples or events are left out: there are too many of their kind"),
            (lost, "events are lost: there is no more room for them"),
            (
                guessed,
                "kind of CPU samples has no time between them in the trace, and Windows' own of 1 ms here",
            ),
        ];
        let left_out = counted.into_iter().filter(|(count, _)| *count > 0);
        let left_out = left_out.map(|(count, what)| format!("{count} {what}"));
        let unread = self.pending.check().err().map(|error| format!("it is not whole: {error}"));
        Imported { machine: self.machine, symbols, left_out: left_out.chain(unread).collect() }
    }
}

/// A frame, and the image that it is in, as long as an address space is what it was.
#[derive(Clone, Copy)]
struct KnownFrame {
    frame: FrameId,
    image: Option<u32>,
    epoch: u32,
}

/// A thread, as long as its number is its.
#[derive(Clone, Copy)]
struct KnownThread {
    thread: ThreadId,
    process: ProcessId,
    from: Nanos,
    until: Nanos,
}

/// Processes, threads and address spaces as they are when something happens, and what was made of them so far.
struct World {
    /// The first address of the kernel's part.
    kernel: u64,
    /// Modules of images, and where they begin.
    images: Vec<(ModuleId, u64, u64)>,
    places: Places,
    processes: Processes,
    threads: HashMap<Whose, KnownThread, Seeded>,
    frames: HashMap<(Space, u64, bool), KnownFrame, Seeded>,
    stacks: HashMap<(ProcessId, StackId), (StackId, [u32; 2]), Seeded>,
    /// The method of a frame.
    called: HashMap<FrameId, u32, Seeded>,
    /// Stacks within system calls, by the frame of the call's routine and what called it.
    within: HashMap<(FrameId, StackId), StackId, Seeded>,
    /// Paths of files of methods.
    paths: HashMap<Option<StringId>, StringId, Seeded>,
    /// The kernel's images in processes.
    mapped: HashSet<(ProcessId, u32), Seeded>,
    /// Attributes that had numbers in place of what they stand for.
    said: Attributes,
    /// Code that was made at run time and is on stacks: by where it begins its end, and since when it is there.
    made: BTreeMap<(ProcessId, u64, ModuleId), (u64, Nanos)>,
    /// Frames that may still be gone through.
    room: u64,
    /// Stacks that are not.
    cut: u64,
    /// Kept for their memory.
    addresses: Vec<u64>,
    stack: Vec<FrameId>,
}

impl World {
    /// Adds images and their places, and says what lies where from when to when.
    fn place(&mut self, all: &mut Build) {
        let Build { machine, times, lives, methods, modules, paths, .. } = all;
        let mut stays = Vec::new();
        for (image, index) in lives.images().iter().zip(0..) {
            let module = modules.image(machine, image, &paths.to_dos(&image.path));
            self.images.push((module, image.base, image.size));
            let (since, until) = (image.start.map(|at| times.at(at)), image.end.map(|at| times.at(at)));
            // What was there before is of the process that was, which it leaves no later than that ends.
            let at = since.or(until.map(|until| Nanos(until.0.saturating_sub(1)))).unwrap_or(Nanos(0));
            let process = self.processes.at(machine, image.pid, at).process;
            machine.add_mapping(mapping(process, (module, image.base, image.size), since));
            let space = (image.base < self.kernel).then_some(process);
            let (start, size) = (image.base, image.size);
            stays.push(Stay { space, start, size, what: What::Image(index), since, until });
        }
        for (method, index) in methods.all().iter().zip(0..) {
            let process = self.processes.at(machine, method.pid, method.since.unwrap_or(method.told)).process;
            let (start, size) = (method.start, method.size.into());
            let (since, until) = (method.since, method.until);
            stays.push(Stay { space: Some(process), start, size, what: What::Method(index), since, until });
        }
        self.places = Places::new(stays);
    }

    /// Adds what happened.
    fn take(&mut self, all: &mut Build, row: &Row, index: usize) {
        self.places.advance(row.at);
        if row.stack != StackId::EMPTY {
            self.room = self.room.saturating_add(FRAMES[1]);
        }
        let KnownThread { thread, process, .. } = self.thread(all, row.whose, row.at);
        let space = row.space.map(|pid| self.processes.at(&mut all.machine, pid, row.at).process);
        let mut stack = self.stack(all, space.unwrap_or(process), row.stack);
        if row.is_sample() && all.kinds.of_calls() == Some(row.kind) {
            stack = self.within_call(all, process, stack, row.attributes);
        }
        let Row { at, cpu, kind, value, .. } = *row;
        let attributes = self.attributes(all, row.attributes, at);
        let event = row.event.and_then(|event| all.pending.event(event));
        if !row.is_sample() {
            if let Some((kind, bytes)) = event {
                let record = EventRecord { time: at, thread, stack, cpu, kind, attributes };
                all.machine.add_event_record(&record, bytes);
            }
            return;
        }
        let kinds = all.machine.kinds();
        let is_time = kinds.get(usize::from(kind.0)).is_some_and(|kind| kind.unit == Unit::Nanoseconds);
        // What it tells of began so long before.
        let took = if is_time { value.unsigned_abs() } else { 0 };
        let time = Nanos(at.0.saturating_sub(took));
        let sample = Sample { time, thread, stack, cpu, kind, value, attributes };
        if all.left_out_kind.is_some_and(|name| all.kinds.is_called(kind, name)) {
            return;
        }
        if let Some(kinds) = all.kinds.blocks().filter(|kinds| kinds.inuse_space == kind) {
            add_block(&mut all.machine, &sample, kinds, all.pending.is_freed(index));
            return;
        }
        match event {
            None => all.machine.add_sample(&sample),
            Some((kind, bytes)) if all.machine.event_records_mut().has_room(bytes.len()) => {
                all.machine.add_sample_of_event(&sample, kind, bytes);
            }
            // An occurrence has one fate.
            Some(_) => {}
        }
    }

    /// The stack of a system call: its routine has run on top of what the thread was in when it ended.
    fn within_call(
        &mut self,
        all: &mut Build,
        process: ProcessId,
        stack: StackId,
        list: AttributeListId,
    ) -> StackId {
        let list = all.machine.attributes().get(list);
        let call = list.iter().find_map(|(key, value)| match value {
            AttributeValue::Number(number) if all.machine.string(*key) == measured::CALL => Some(*number),
            _ => None,
        });
        let Some(call) = call else { return stack };
        let routine = self.frame(all, process, call.cast_unsigned(), true);
        if let Some(known) = self.within.get(&(routine, stack)) {
            return *known;
        }
        let outer = all.machine.stacks().get(stack);
        let mut frames = vec![routine];
        if self.use_room(outer.len() as u64) {
            frames.extend_from_slice(outer);
        }
        let id = all.machine.intern_stack(&frames);
        self.within.insert((routine, stack), id);
        id
    }

    /// Whether so many frames may be gone through; a stack of which they are not is counted.
    fn use_room(&mut self, frames: u64) -> bool {
        let left = self.room.checked_sub(frames);
        self.room = left.unwrap_or(self.room);
        self.cut += u64::from(left.is_none());
        left.is_some()
    }

    fn thread(&mut self, all: &mut Build, whose: Whose, at: Nanos) -> KnownThread {
        if let Some(known) = self.threads.get(&whose).filter(|known| known.from <= at && at < known.until) {
            return *known;
        }
        let Build { machine, threads, .. } = all;
        let life = whose.tid.and_then(|tid| threads.at(tid, at));
        let life = life.filter(|life| whose.pid.is_none_or(|pid| pid == life.pid));
        let is_idle = whose.tid == Some(Tid(0));
        let pid = whose.pid.or(life.map(|life| life.pid)).or(is_idle.then_some(Pid(0)));
        let found = match pid {
            Some(pid) => self.processes.at(machine, pid, at),
            None => self.processes.unknown(machine),
        };
        let processes::Found { process, mut from, mut until } = found;
        let mut name = machine.process(process).name;
        // What is not known of a thread may be known of the next of its number.
        match life {
            Some(life) => (from, until) = (from.max(life.from), until.min(life.until)),
            None if whose.tid.is_some() && !is_idle => until = Nanos(at.0.saturating_add(1)).min(until),
            None => {}
        }
        if let Some(life) = life.filter(|life| !life.name.is_empty()) {
            name = machine.intern_string(life.name);
        }
        let thread = machine.intern_thread(process, whose.tid.unwrap_or(Tid(0)), name);
        let known = KnownThread { thread, process, from, until };
        self.threads.insert(whose, known);
        known
    }

    fn stack(&mut self, all: &mut Build, process: ProcessId, raw: StackId) -> StackId {
        if raw == StackId::EMPTY {
            return StackId::EMPTY;
        }
        let epochs = [Some(process), None].map(|space| self.places.epoch(space));
        if let Some((known, of)) = self.stacks.get(&(process, raw))
            && *of == epochs
        {
            return *known;
        }
        let mut addresses = std::mem::take(&mut self.addresses);
        all.raw.addresses(raw, |key| all.stacks.frames(key), &mut addresses);
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        if self.use_room(addresses.len() as u64) {
            for (address, position) in addresses.iter().zip(0..) {
                stack.push(self.frame(all, process, *address, position == 0));
            }
        }
        let id = all.machine.intern_stack(&stack);
        (self.addresses, self.stack) = (addresses, stack);
        self.stacks.insert((process, raw), (id, epochs));
        id
    }

    fn frame(&mut self, all: &mut Build, process: ProcessId, address: u64, is_exact: bool) -> FrameId {
        let space = (address < self.kernel).then_some(process);
        let epoch = self.places.epoch(space);
        let key = (space, address, is_exact);
        let known = self.frames.get(&key).filter(|known| known.epoch == epoch).copied();
        let KnownFrame { frame, image, .. } = known.unwrap_or_else(|| {
            let made = self.make_frame(all, space, address, is_exact);
            self.frames.insert(key, made);
            made
        });
        if let (Some(image), None) = (image, space) {
            self.map_kernel(all, process, image);
        }
        frame
    }

    fn make_frame(&mut self, all: &mut Build, space: Space, address: u64, is_exact: bool) -> KnownFrame {
        let epoch = self.places.epoch(space);
        let Lying { image, method } = self.places.at(space, address.saturating_sub((!is_exact).into()));
        let mut flags = if is_exact { 0 } else { FrameFlags::RETURN_ADDRESS };
        if space.is_none() {
            flags |= FrameFlags::KERNEL;
        }
        let flags = FrameFlags(flags);
        let of_image = image.and_then(|image| self.images.get(image as usize));
        let frame = match (of_image, method, space) {
            (Some((module, base, _)), ..) => {
                let address = Svma(address.wrapping_sub(*base));
                let frame = all.machine.intern_frame(Frame { module: *module, address, flags });
                if let Some(method) = method {
                    self.called.entry(frame).or_insert(method);
                }
                frame
            }
            (None, Some(method), Some(process)) => self.frame_of_method(
                all,
                process,
                method,
                Frame { module: ModuleId::KERNEL, address: Svma(address), flags },
            ),
            (None, None, Some(process)) => {
                let module = all.modules.unmapped(&mut all.machine, process);
                all.machine.intern_frame(Frame { module, address: Svma(address), flags })
            }
            (None, _, None) => {
                all.machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(address), flags })
            }
        };
        KnownFrame { frame, image, epoch }
    }

    /// The frame of code that was made at run time. One address may be one method after the other: each is in a module of its own.
    fn frame_of_method(&mut self, all: &mut Build, process: ProcessId, method: u32, frame: Frame) -> FrameId {
        let Build { machine, methods, modules, .. } = all;
        let of = |index: u32| methods.all().get(index as usize);
        let path = of(method).and_then(|method| methods.path(method));
        let told = path.map_or("[managed]", |path| methods.text(path));
        let path = *self.paths.entry(path).or_insert_with(|| machine.intern_string(told));
        let called = |index| of(index).map(|method| (method.name, method.signature));
        let mut usage = 0;
        loop {
            let module = modules.made(machine, process, path, usage);
            let frame = machine.intern_frame(Frame { module, ..frame });
            let known = *self.called.entry(frame).or_insert(method);
            if called(known) == called(method) || usage >= MOST_USES {
                if let Some(method) = of(method) {
                    let place =
                        (method.start.saturating_add(method.size.into()), method.since.unwrap_or(Nanos(0)));
                    self.made.entry((process, method.start, module)).or_insert(place);
                }
                return frame;
            }
            usage += 1;
            // That takes as long as another frame.
            self.room = self.room.saturating_sub(1);
        }
    }

    /// Says where code is that was made at run time, as far as it is on stacks: what lies side by side is one piece of memory.
    fn map_made(&self, machine: &mut ExportMachine) {
        let mut last: Option<ModuleMapping> = None;
        for (&(process, start, module), &(end, since)) in &self.made {
            if let Some(piece) = &mut last
                && (piece.process, piece.module) == (process, module)
                && start.saturating_sub(piece.end.0) < SIDE_BY_SIDE
            {
                (piece.end, piece.since) = (Avma(end).max(piece.end), since.min(piece.since));
                continue;
            }
            let (start, end, file_offset) = (Avma(start), Avma(end), FileOffset(0));
            let next = ModuleMapping { process, module, start, end, file_offset, bias: 0, since };
            if let Some(piece) = last.replace(next) {
                machine.add_mapping(piece);
            }
        }
        if let Some(piece) = last {
            machine.add_mapping(piece);
        }
    }

    /// Says where an image of the kernel's is in a process, which all of them share.
    fn map_kernel(&mut self, all: &mut Build, process: ProcessId, image: u32) {
        if self.mapped.len() < MOST_MAPPINGS && self.mapped.insert((process, image)) {
            let Some(of) = self.images.get(image as usize) else { return };
            let own = all.machine.mappings().get(image as usize);
            if own.is_none_or(|own| own.process != process) {
                all.machine.add_mapping(mapping(process, *of, None));
            }
        }
    }
}

/// Adds what a block of memory is a sample of.
fn add_block(machine: &mut ExportMachine, sample: &Sample, kinds: BlockKinds, is_freed: bool) {
    machine.add_sample(&Sample { kind: kinds.alloc_space, ..*sample });
    machine.add_sample(&Sample { kind: kinds.alloc_objects, value: 1, ..*sample });
    if !is_freed {
        let has_ended = machine.process(machine.thread(sample.thread).process).end.is_some();
        let until = if has_ended { "exit" } else { "end of the recording" };
        let until = [(machine.intern_string("until"), machine.intern_string(until))];
        let attributes = machine.attributes_mut().intern(&until);
        machine.add_sample(&Sample { attributes, ..*sample });
        machine.add_sample(&Sample { kind: kinds.inuse_objects, value: 1, attributes, ..*sample });
    }
}

fn mapping(
    process: ProcessId,
    (module, base, size): (ModuleId, u64, u64),
    since: Option<Nanos>,
) -> ModuleMapping {
    ModuleMapping {
        process,
        module,
        start: Avma(base),
        end: Avma(base.saturating_add(size)),
        file_offset: FileOffset(0),
        bias: base,
        since: since.unwrap_or(Nanos(0)),
    }
}
