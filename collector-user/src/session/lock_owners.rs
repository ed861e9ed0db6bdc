//! Joins a wait for a lock of user code with the stacks of the thread that released it: the time that one thread waited is
//! charged to what another one did.

use bytemuck::Zeroable as _;
use collector_common::event::Context;
use collector_common::ids::{Pid, Tid};
use collector_common::record::AttributeListId;
use collector_common::wire::{LockOwner, LockWait, SampleFlags, SampleHeader, VERSION};
use rustc_hash::FxHashMap;

use super::dispatch::{attributes, estimated, weighted};
use super::program_records::Output;
use super::times_off::Joined;
use crate::recorder::{Recorder, Taken};
use crate::scenario::LockOwnerTime;
use crate::source::SourceRecord;

/// A release, and the process and thread that it was done by.
#[derive(Clone, Copy)]
struct Release {
    taken: Taken,
    pid: Pid,
    tid: Tid,
}

/// Releases of which the waiter has not run yet.
#[derive(Default)]
pub(super) struct LockOwners {
    /// By waiter and when it stopped running.
    releases: FxHashMap<(Tid, u64), Release>,
}

impl LockOwners {
    /// Takes the record of a release.
    pub(super) fn take(&mut self, recorder: &mut Recorder, record: &SourceRecord<'_>) {
        let header = record.header;
        let owner = LockOwner::of(&header.data);
        if let Some(taken) = recorder.take_stack(record) {
            let release = Release { taken, pid: Pid(header.pid), tid: Tid(header.tid) };
            self.releases.insert((Tid(owner.waiter_tid), owner.since), release);
        }
    }

    /// A wait is over: charges it to who released the lock, if that is a thread to be recorded.
    pub(super) fn add(&mut self, output: &mut Output<'_>, joined: &Joined) {
        let Some(Release { taken, pid, tid }) = self.release(output.recorder, joined) else { return };
        let data = &joined.data;
        if data.blocked_ns == 0 {
            return;
        }
        let owner = LockOwnerTime {
            blocked_ns: data.blocked_ns,
            weight: data.weight,
            lock: data.lock,
            waiter_pid: joined.pid.0,
            waiter_tid: joined.tid.0,
            waiter_comm: joined.comm,
        };
        let context = Context { time: taken.time, pid, tid, cpu: taken.cpu.into() };
        if output.process(&context, bytemuck::bytes_of(&owner)) {
            let attributes = attributes_of(output.recorder, joined);
            let value = weighted(data.blocked_ns, data.weight);
            let since = Taken { time: joined.taken.time, ..taken };
            output.recorder.add_sample(output.kind, since, value, attributes);
            output.recorder.deliver(&taken);
        }
    }

    /// Who released it. Without stacks, where it turned out that the wait is told of when they had not been taken.
    fn release(&mut self, recorder: &mut Recorder, joined: &Joined) -> Option<Release> {
        const NONE: u32 = LockWait::OWNER_LOST | LockWait::OWNER_LEFT_OUT;
        let bits = joined.lock_wait.0;
        if bits & LockWait::OWNER_RECORDED != 0 {
            return self.releases.remove(&(joined.tid, joined.taken.time.0));
        }
        let data = &joined.data;
        if bits & LockWait::RELEASED == 0 || bits & NONE != 0 || data.waker_tid == 0 {
            return None;
        }
        let header = SampleHeader {
            version: VERSION,
            flags: SampleFlags::BACK,
            time: joined.taken.time.0.saturating_add(data.blocked_ns),
            pid: data.waker_pid,
            tid: data.waker_tid,
            cpu: joined.taken.cpu.into(),
            comm: data.waker_comm,
            ..SampleHeader::zeroed()
        };
        let record = SourceRecord::of_ring(bytemuck::bytes_of(&header))?;
        let taken = recorder.take_none(&record)?;
        Some(Release { taken, pid: Pid(data.waker_pid), tid: Tid(data.waker_tid) })
    }

    /// Forgets releases that nothing will be told of: their waiters have stopped running again since.
    pub(super) fn end_round(&mut self) {
        let mut last: FxHashMap<Tid, u64> = FxHashMap::default();
        for &(waiter, since) in self.releases.keys() {
            let known = last.entry(waiter).or_default();
            *known = since.max(*known);
        }
        if last.len() < self.releases.len() {
            self.releases.retain(|(waiter, since), _| last.get(waiter) == Some(since));
        }
    }
}

/// The lock, and who waited.
fn attributes_of(recorder: &mut Recorder, joined: &Joined) -> AttributeListId {
    let machine = recorder.machine_mut();
    let waiter = machine.string(machine.thread(joined.taken.thread).name).to_owned();
    let lock = format!("{:#x}", joined.data.lock);
    let labels = [("lock", lock.as_str()), ("waiter", &waiter), estimated(joined.data.weight > 1.0)];
    attributes(recorder, &labels, &[("waiter_tid", joined.tid.0.into())])
}
