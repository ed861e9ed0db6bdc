//! Records of waits for locks of the kernel: to the closures of their event, and as samples of the time that they took.

use collector_common::event::Context;
use collector_common::ids::Nanos;
use collector_common::wire::{KernelLock, LockFlags};

use super::dispatch::{attributes, estimated, weighted};
use super::lock_names::LockNames;
use super::program_records::{Output, ProgramRecords};
use super::wakers::name_of;
use crate::recorder::{Question, Subject, Taken, context_of};
use crate::scenario::KernelLockTime;
use crate::source::SourceRecord;

/// Each is a sample at once.
pub(super) struct KernelLocks {
    /// What takes so long stands for itself alone.
    period: Nanos,
    names: LockNames,
}

impl KernelLocks {
    pub(super) fn new(period: Nanos) -> Self {
        Self { period, names: LockNames::default() }
    }
}

impl ProgramRecords for KernelLocks {
    fn take(&mut self, output: &mut Output<'_>, record: &SourceRecord<'_>) -> bool {
        let wait: KernelLock = bytemuck::cast(record.header.data);
        let data = data(&wait, self.period);
        let since = Nanos(wait.since);
        let context = Context { time: since, ..context_of(record) };
        if !output.process(&context, bytemuck::bytes_of(&data)) {
            return false;
        }
        let Some(taken) = output.recorder.take_stack(record) else { return false };
        let question = Question::new(Subject::KernelLock, wait.lock);
        let lock = output.recorder.ask(question, || Some(self.names.name(wait.lock))).unwrap_or_default();
        let owner = name_of(&wait.owner_comm);
        let owner_tid = [("owner_tid", wait.owner_tid.into())];
        let (owner, owner_tid) = if wait.owner_tid == 0 { ("", &[][..]) } else { (&*owner, &owner_tid[..]) };
        let kind = ("kind", LockFlags(wait.flags).name());
        let labels = [kind, ("lock", lock.as_str()), ("owner", owner), estimated(data.weight > 1.0)];
        let attributes = attributes(output.recorder, &labels, owner_tid);
        let value = weighted(data.took_ns, data.weight);
        output.recorder.add_sample(output.kind, Taken { time: since, ..taken }, value, attributes);
        output.recorder.deliver(&taken);
        true
    }
}

/// A wait was recorded with a chance of how long it took, as a part of the period.
fn data(wait: &KernelLock, period: Nanos) -> KernelLockTime {
    let &KernelLock { took: took_ns, lock, flags, owner_tid, owner_comm, .. } = wait;
    let weight = (period.0 as f64 / took_ns.max(1) as f64).max(1.0);
    KernelLockTime { took_ns, weight, lock, flags, owner_tid, owner_comm }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_stands_for_a_period_and_what_is_long_for_itself() {
        let weight = |took| data(&KernelLock { took, ..KernelLock::NONE }, Nanos(1000)).weight.to_bits();
        assert_eq!(weight(125), 8_f64.to_bits());
        assert_eq!(weight(1000), 1_f64.to_bits());
        assert_eq!(weight(5000), 1_f64.to_bits());
    }
}
