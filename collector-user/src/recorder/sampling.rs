//! From a record in a ring to a sample: the hot path. Nothing is allocated once the buffers have grown and the
//! sample's thread, frames and stack have been seen before.

use collector_common::ids::{Avma, Nanos, Pid, Svma, Tid};
use collector_common::intern::StackId;
use collector_common::loss::LossCause;
use collector_common::record::{
    AttributeListId, EventKindId, ExportMachine, Frame, FrameFlags, FrameId, ModuleId, ProcessId, Sample,
    SampleKindId, ThreadId,
};
use collector_common::track::Space;
use collector_common::wire::{COMM_LEN, SampleFlags};
use unwinder::{CopiedStack, FrameKind, Registers, StopReason, Unwinder};

use super::birth::{is_at_birth, may_be_at_birth};
use super::inherited::Inherited;
use super::late::{LateStack, Owner};
use super::registers::{
    aarch64_registers, compat_registers, instruction_pointer, is_in_exec, stack_pointer, user_registers,
};
use super::state::{KnownThread, Recorder};
use super::thread_names::{Name, kept_name};
use super::view::View;
use crate::modules::{Modules, Recorded};
use crate::records::SourceRecord;
use crate::stats::NOT_WALKED;

/// What a record says when it has been unwound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) time: Nanos,
    pub(crate) thread: ThreadId,
    pub(crate) stack: StackId,
    pub(crate) cpu: u16,
    /// How the user's part of the stack ended, if there is one.
    pub(crate) user_end: Option<&'static str>,
}

impl Taken {
    /// The same of what was over then, and took so many nanoseconds.
    pub(crate) fn since(self, took: u64) -> Self {
        Self { time: Nanos(self.time.0.saturating_sub(took)), ..self }
    }
}

/// How a walk went.
#[derive(Clone, Copy)]
struct Walk {
    reason: StopReason,
    /// Whether anything but the copy was used.
    read_late: bool,
}

impl Recorder {
    /// Takes in a record as a sample, with its stacks. Says whether it did: the thread's name may not be wanted.
    pub fn sample(&mut self, kind: SampleKindId, record: &SourceRecord<'_>) -> bool {
        let Some(taken) = self.take_stack(record) else { return false };
        self.add_sample(kind, taken, record.value.cast_signed(), AttributeListId::NONE);
        self.deliver(&taken);
        true
    }

    /// As [`Self::sample`], and keeps the event's bytes. Where there is no room for those, it is neither kept as a sample.
    pub(crate) fn sample_event(
        &mut self,
        kind: SampleKindId,
        event: EventKindId,
        record: &SourceRecord<'_>,
    ) -> bool {
        let Some(taken) = self.take_stack(record) else { return false };
        if !self.machine.event_records_mut().has_room(record.data.len()) {
            self.ledger.lose(LossCause::EventsFull, 1);
            return false;
        }
        let value = record.value.cast_signed();
        if let Some(sample) = self.hooked(kind, taken, value, AttributeListId::NONE) {
            self.machine.add_sample_of_event(&sample, event, record.data);
        }
        self.deliver(&taken);
        true
    }

    /// Counts a record that has become samples.
    pub(crate) fn deliver(&mut self, taken: &Taken) {
        self.ledger.deliver(1);
        if let Some(end) = taken.user_end {
            self.tally.count(end);
        }
    }

    /// Whether a record is of a thread that is to be recorded: where names are chosen, of one of that name.
    pub(crate) fn is_wanted(&mut self, record: &SourceRecord<'_>) -> bool {
        let Some(only) = self.only else { return true };
        let process = self.process_at(Pid(record.header.pid), Nanos(record.header.time));
        self.comm(process, record) == only
    }

    /// Unwinds a record's stacks; `None` for a thread that is not to be recorded.
    pub(crate) fn take_stack(&mut self, record: &SourceRecord<'_>) -> Option<Taken> {
        let header = record.header;
        let time = Nanos(header.time);
        let process = self.process_at(Pid(header.pid), time);
        let comm = self.comm(process, record);
        if self.only.is_some_and(|only| only != comm) {
            return None;
        }
        let thread = self.thread(process, Tid(header.tid), &comm);
        self.frames.clear();
        self.add_kernel_frames(record.kernel, time);
        let user_end = if header.flags().has(SampleFlags::NOT_WALKED) {
            Some(self.add_not_walked(process, record.user, time))
        } else if !record.user.is_empty() {
            Some(self.add_given_frames(process, record.user, time))
        } else if header.flags().has(SampleFlags::USER_REGISTERS) {
            self.add_user_frames(process, record)
        } else {
            None
        };
        let stack = self.machine.intern_stack(&self.frames);
        Some(Taken { time, thread, stack, cpu: header.cpu as u16, user_end })
    }

    /// As [`Self::take_stack`], of a record that was made without stacks of a thread that has some.
    pub(crate) fn take_none(&mut self, record: &SourceRecord<'_>) -> Option<Taken> {
        let taken = self.take_stack(record)?;
        let cut = self.cut_frame();
        Some(Taken { stack: self.machine.intern_stack(&[cut]), ..taken })
    }

    /// Adds a sample of what was taken, and gives its position; `None` if a hook dropped it, or the recording has 4 billion.
    pub(crate) fn add_sample(
        &mut self,
        kind: SampleKindId,
        taken: Taken,
        value: i64,
        attributes: AttributeListId,
    ) -> Option<usize> {
        let sample = self.hooked(kind, taken, value, attributes)?;
        self.machine.samples_mut().push(&sample)
    }

    /// A sample of what was taken, as the hooks leave it; `None` if one dropped it.
    fn hooked(
        &mut self,
        kind: SampleKindId,
        taken: Taken,
        value: i64,
        attributes: AttributeListId,
    ) -> Option<Sample> {
        let Taken { time, thread, stack, cpu, user_end: _ } = taken;
        let mut sample = Sample { time, thread, stack, cpu, kind, value, attributes };
        self.hooks.keep(&mut self.machine, &mut sample).then_some(sample)
    }

    /// What stands for the part of a stack that is not known.
    fn cut_frame(&mut self) -> FrameId {
        let flags = FrameFlags(FrameFlags::CUT);
        self.machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(0), flags })
    }

    /// What the sampled thread is called.
    fn comm(&mut self, process: ProcessId, record: &SourceRecord<'_>) -> Name {
        let header = record.header;
        if record.is_named {
            return header.comm;
        }
        let of_process = self.machine.string(self.machine.process(process).name);
        if let Some(names) = &mut self.thread_names {
            return names.at(Pid(header.pid), Tid(header.tid), Nanos(header.time), of_process);
        }
        let known = self.threads.get(&Tid(header.tid)).filter(|known| known.process == process);
        known.map_or_else(|| kept_name(of_process.as_bytes()), |known| known.comm)
    }

    /// The thread under its present name.
    fn thread(&mut self, process: ProcessId, tid: Tid, comm: &[u8; COMM_LEN]) -> ThreadId {
        match self.threads.get(&tid) {
            Some(known) if known.process == process && known.comm == *comm => known.id,
            _ => {
                let len = comm.iter().position(|&byte| byte == 0).unwrap_or(COMM_LEN);
                if tid.0 == self.machine.process(process).pid.0 {
                    self.name_of_main_thread(process, &comm[..len]);
                }
                let name = self.machine.intern_string(&String::from_utf8_lossy(&comm[..len]));
                let id = self.machine.intern_thread(process, tid, name);
                self.threads.insert(tid, KnownThread { process, comm: *comm, id });
                id
            }
        }
    }

    /// The kernel's part of the stack: the interrupted address, then return addresses.
    fn add_kernel_frames(&mut self, addresses: &[u64], time: Nanos) {
        for (index, &address) in addresses.iter().enumerate() {
            let returned = if index == 0 { 0 } else { FrameFlags::RETURN_ADDRESS };
            self.frames.push(self.machine.intern_frame(Frame {
                module: self.kernel_codes.module_at(address.saturating_sub((index > 0).into()), time),
                address: Svma(address),
                flags: FrameFlags(FrameFlags::KERNEL | returned),
            }));
        }
        self.tally.add_kernel_frames(addresses.len());
    }

    /// The user's part: unwound in the ring's memory. Says how it ended, if there is one.
    fn add_user_frames(&mut self, process: ProcessId, record: &SourceRecord<'_>) -> Option<&'static str> {
        let header = record.header;
        let time = Nanos(header.time);
        let mut walk = self.walk(process, record);
        let is_in_exec = walk.reason != StopReason::Root && is_in_exec(header, walk.reason);
        if !is_in_exec
            && self.is_live
            && self.is_unmapped(process, walk, time)
            && self.rereads.begin(process, time)
        {
            self.read_mappings(process, Tid(header.tid), time);
            walk = self.walk(process, record);
            if !self.is_unmapped(process, walk, time) {
                self.rereads.helped(process);
            }
        }
        if is_in_exec {
            // The old program's registers with the new one's memory: there is no user stack.
            return None;
        }
        let end = if self.is_trapped(process, walk, time) {
            // The kernel's code is none of the callers.
            self.walked.pop();
            self.tally.end_of_trapped(&self.walked)
        } else {
            self.tally.end_of(walk.reason, header.flags(), walk.read_late, &self.walked)
        };
        let Self { tracker, inherited, modules, machine, frames, walked, .. } = self;
        let space = tracker.space_at(process, time);
        let mut user = UserFrames { process, space, time, inherited, modules, machine, frames };
        for frame in walked.iter() {
            let returned =
                if frame.kind == FrameKind::ReturnAddress { FrameFlags::RETURN_ADDRESS } else { 0 };
            let guessed = if frame.heuristic { FrameFlags::HEURISTIC } else { 0 };
            user.push(frame.address, frame.lookup_address(), FrameFlags(returned | guessed));
        }
        if walk.reason != StopReason::Root {
            let cut = self.cut_frame();
            self.frames.push(cut);
        }
        Some(end)
    }

    /// The user's part as whoever recorded it has walked it: the interrupted address, then return addresses.
    fn add_given_frames(&mut self, process: ProcessId, addresses: &[u64], time: Nanos) -> &'static str {
        let Self { tracker, inherited, modules, machine, frames, .. } = self;
        let space = tracker.space_at(process, time);
        let mut user = UserFrames { process, space, time, inherited, modules, machine, frames };
        for (index, &address) in addresses.iter().enumerate() {
            let (lookup, flags) =
                if index == 0 { (address, 0) } else { (address.wrapping_sub(1), FrameFlags::RETURN_ADDRESS) };
            user.push(address, lookup, FrameFlags(flags));
        }
        self.tally.end_of_given(addresses.len())
    }

    /// The user's part of which only the interrupted address is known, or not even that.
    fn add_not_walked(&mut self, process: ProcessId, addresses: &[u64], time: Nanos) -> &'static str {
        self.add_given_frames(process, addresses, time);
        let cut = self.cut_frame();
        self.frames.push(cut);
        NOT_WALKED
    }

    /// Whether a walk led to where the kernel traps the return of a call, and no further.
    fn is_trapped(&self, process: ProcessId, walk: Walk, time: Nanos) -> bool {
        let Some(last) = self.walked.last().filter(|last| last.kind == FrameKind::ReturnAddress) else {
            return false;
        };
        let mapping = || self.tracker.mapping_at(process, Avma(last.address), time);
        walk.reason != StopReason::Root
            && mapping().is_some_and(|mapping| {
                mapping.start.0 == last.address && self.modules.is_probe_slots(process, mapping.module)
            })
    }

    /// Whether a walk led out of what is known to be mapped, or began there.
    fn is_unmapped(&self, process: ProcessId, walk: Walk, time: Nanos) -> bool {
        if self.is_trapped(process, walk, time) {
            return false;
        }
        let is_mapped = |address| self.tracker.mapping_at(process, Avma(address), time).is_some();
        // The caller of a frame in no mapping is a guess: other stacks need not be asked about.
        let may_begin = || self.walked.get(1).is_none_or(|caller| caller.heuristic);
        let begins = || self.walked.first().is_some_and(|frame| !is_mapped(frame.lookup_address()));
        walk.reason == StopReason::NoMapping || (may_begin() && begins())
    }

    /// Walks a stack: its frames are in `self.walked` then.
    fn walk(&mut self, process: ProcessId, record: &SourceRecord<'_>) -> Walk {
        let header = record.header;
        let time = Nanos(header.time);
        self.walked.clear();
        let space = self.tracker.space_at(process, time);
        let view = View { owner: Owner::of(header), space, time, modules: &self.modules, late: &self.late };
        let copied = CopiedStack::new(stack_pointer(header), record.stack, u64::from(header.absent));
        let stack = LateStack::new(copied, record, &self.late);
        let walked = &mut self.walked;
        let reason = if header.flags().has(SampleFlags::AARCH64) {
            let highest = space.and_then(Space::highest).map_or(0, |mapping| mapping.end.0.saturating_sub(1));
            walk(&mut self.aarch64_unwinder, &aarch64_registers(header, highest), &view, &stack, walked)
        } else if header.flags().has(SampleFlags::COMPAT) {
            walk(&mut self.compat_unwinder, &compat_registers(header), &view, &stack, walked)
        } else {
            walk(&mut self.unwinder, &user_registers(header), &view, &stack, walked)
        };
        if stack.has_left_mapping() {
            self.left_mappings.push(Tid(header.tid));
        }
        if reason == StopReason::Root
            && let Some(places) = stack.outer_places()
        {
            self.outer_places.insert(Tid(header.tid), places);
        }
        let has_no_caller = may_be_at_birth(reason)
            && walked.len() == 1
            && space
                .and_then(|space| space.mapping_at(Avma(instruction_pointer(header)), time))
                .is_some_and(|mapping| is_at_birth(header, mapping, &self.modules));
        let reason = if has_no_caller { StopReason::Root } else { reason };
        Walk { reason, read_late: stack.was_read_late() }
    }
}

/// Where the frames of a user stack go.
struct UserFrames<'a> {
    process: ProcessId,
    space: Option<&'a Space>,
    time: Nanos,
    inherited: &'a mut Inherited,
    modules: &'a mut Modules,
    machine: &'a mut ExportMachine,
    frames: &'a mut Vec<FrameId>,
}

impl UserFrames<'_> {
    /// Adds a frame; at `lookup` is a part of its instruction.
    fn push(&mut self, address: u64, lookup: u64, flags: FrameFlags) {
        let (module, bias) = match self.space.and_then(|space| space.mapping_at(Avma(lookup), self.time)) {
            Some(mapping) => {
                self.inherited.enter(self.machine, self.process, mapping);
                (mapping.module, mapping.bias)
            }
            None => (self.modules.unmapped(self.machine, self.process), 0),
        };
        let address = Svma(address.wrapping_sub(bias));
        self.frames.push(self.machine.intern_frame(Frame { module, address, flags }));
    }
}

/// Walks a stack as one of architecture `A`; adds its frames to `walked`.
fn walk<A: Recorded>(
    unwinder: &mut Unwinder<A>,
    registers: &Registers<A>,
    view: &View<'_>,
    stack: &LateStack<'_>,
    walked: &mut Vec<unwinder::Frame>,
) -> StopReason {
    unwinder.unwind(view, registers, stack, |mut frame| {
        if !frame.heuristic {
            stack.found_frame();
        }
        frame.heuristic |= stack.was_read_late();
        walked.push(frame);
    })
}
