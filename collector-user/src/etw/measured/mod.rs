//! Events that come in pairs, or have a size or a time, in; samples in bytes and nanoseconds out, under the names that they have on
//! Linux.
//!
//! ```text
//! event ─► Fact (its numbers) ─► waits for its stack as all do ─► Measured ─┬─ begins: kept, with its stack
//!                                                                           └─ ends: a sample
//! ```
//!
//! Facts are taken in the order of their events, so what begins has its stack before what ends is met. Tables and histograms follow from
//! the samples, for none are left out.

mod calls;
mod memory;
mod times;
mod transfers;

use collector_common::ids::Nanos;
use collector_common::record::{AttributeListId, AttributeValue, ExportMachine, Unit};
use windows_etw::decode::kernel::KernelEvent;

use super::files::Files;
use super::kinds::Kinds;
use super::pending::{Pending, Row};
use super::times::Times;
use super::wanted::Wanted;

use calls::{Call, Calls};
use memory::{Blocks, Memory};
pub(super) use times::Time;
use transfers::{Transfer, Transfers};

/// An attribute that is a number until all is known: of a file.
pub(super) const PATH: &str = "path";
/// The same: the address of a system call's routine in the kernel.
pub(super) const CALL: &str = "call";

/// The same: the thread that made another one ready to run.
pub(super) const WAKER: &str = "waker";

/// What an event tells of something that is measured.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact {
    /// Of disks, files and networks.
    Transfer(Transfer),
    /// Of heaps and of memory that comes from the system.
    Memory(Memory),
    /// Of system calls and page faults.
    Call(Call),
    /// Of threads.
    Time(Time),
    /// Events of the kernel were lost.
    Loss,
}

impl Fact {
    /// What an event tells; none of those that tell nothing that is measured.
    pub(super) fn of(event: &KernelEvent<'_>, files: &mut Files, times: &Times) -> Option<Self> {
        if let Some(transfer) = Transfer::of(event, files, times) {
            return Some(Self::Transfer(transfer));
        }
        let call = || Call::of(event, files, times).map(Self::Call);
        Memory::of(event).map(Self::Memory).or_else(call)
    }

    /// What an event tells that is something else, too: that a process ends, a thread or an operation begins, or events were lost.
    pub(super) fn of_ends(event: &KernelEvent<'_>) -> Option<Self> {
        match event {
            KernelEvent::ProcessStop(process) => Some(Self::Memory(Memory::End(process.pid.0))),
            KernelEvent::ThreadStart(thread) => Some(Self::Call(Call::Begin(thread.tid))),
            KernelEvent::LostEvent(_) | KernelEvent::LostBuffer(_) | KernelEvent::LostFile(_) => {
                Some(Self::Loss)
            }
            event => Transfer::of_others(event).map(Self::Transfer),
        }
    }
}

/// Where samples go.
pub(super) struct Sink<'a> {
    pub(super) kinds: &'a mut Kinds,
    pub(super) pending: &'a mut Pending,
    pub(super) machine: &'a mut ExportMachine,
    pub(super) wanted: Wanted,
}

/// What an attribute says.
#[derive(Clone, Copy, Debug)]
enum Said<'a> {
    Text(&'a str),
    Number(i64),
}

impl Sink<'_> {
    /// Keeps a sample of a kind that has this name and unit.
    fn sample(&mut self, (name, unit): (&'static str, Unit), row: &Row) -> Option<usize> {
        let row = Row { kind: self.kinds.measured(name, unit), event: None, ..*row };
        if row.is_sample() {
            return self.pending.push(&row);
        }
        self.kinds.count_left_out();
        None
    }

    fn attributes(&mut self, list: &[(&str, Said<'_>)]) -> AttributeListId {
        let mut known = Vec::with_capacity(list.len());
        for (key, said) in list {
            let value = match said {
                Said::Text("") => continue,
                Said::Text(text) => self.machine.intern_string(text).into(),
                Said::Number(number) => AttributeValue::Number(*number),
            };
            known.push((self.machine.intern_string(key), value));
        }
        self.machine.attributes_mut().intern(&known)
    }
}

/// All that has begun and not ended.
#[derive(Debug, Default)]
pub(super) struct Measured {
    transfers: Transfers,
    blocks: Blocks,
    calls: Calls,
}

impl Measured {
    /// Takes what an event told, with who did it, when and with which stack.
    pub(super) fn take(&mut self, fact: &Fact, row: &Row, sink: &mut Sink<'_>) {
        match fact {
            Fact::Transfer(transfer) => self.transfers.take(transfer, row, sink),
            Fact::Call(call) => self.calls.take(call, row, sink),
            Fact::Time(time) => times::take(time, row, sink),
            Fact::Memory(memory) => self.blocks.take(memory, row, sink),
            Fact::Loss => {
                self.transfers.lose();
                self.calls.lose();
            }
        }
    }

    /// What there was no room for.
    pub(super) const fn left_out(&self) -> u64 {
        self.transfers.left_out() + self.blocks.left_out() + self.calls.left_out()
    }
}

/// Nanoseconds as samples have them.
fn value(nanos: Nanos) -> i64 {
    i64::try_from(nanos.0).unwrap_or(i64::MAX)
}

/// What failed, by its `NTSTATUS`, of which the two highest bits are set then (`NT_ERROR` of `ntdef.h`); empty for what did not.
fn error(status: u32) -> String {
    if status >> 30 == 3 { format!("{status:#010x}") } else { String::new() }
}
