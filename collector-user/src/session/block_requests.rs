//! Joins the two records of a request to a block device: the one that was made when it was issued, with the stacks of the
//! thread that did it, and the one that was made when it was complete. As in [`super::times_off`], the second may be met first
//! within a round.

use collector_common::event::Context;
use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::loss::LossCause;
use collector_common::wire::{BlockRequest, CHANCES, SampleFlags, SampleHeader};
use rustc_hash::FxHashMap;

use super::dispatch::{attributes, estimated, weighted};
use super::program_records::{Output, ProgramRecords};
use crate::devices::{device_name, operation_name};
use crate::recorder::{Question, Subject, Taken};
use crate::scenario::BlockTime;
use crate::source::SourceRecord;

/// Requests that are waited for: more than devices have at a time. Of most of those beyond, the record of their end was lost, which is
/// counted in the kernel.
const MOST_OPEN: usize = 1 << 16;

/// A thread, and when it issued a request.
type Key = (Tid, u64);

/// A request that is complete, and what it was taken as where there are no stacks.
struct Complete {
    header: SampleHeader,
    without_stack: Option<Taken>,
}

/// Requests that were issued and have not ended, by what they were taken as: `None` where the thread is not to be recorded.
struct Issued<T> {
    open: FxHashMap<Key, Option<T>>,
    most: usize,
    /// Those up to then were forgotten for others' sake, which end later than most.
    forgotten_until: Option<u64>,
}

/// What is known of a request that ends.
#[derive(Debug, PartialEq, Eq)]
enum Known<T> {
    /// It was taken.
    Taken(T),
    /// It was forgotten, as there was no room.
    Forgotten,
    /// It is not to be recorded, or what was told of it when it was issued did not come.
    Not,
}

impl<T> Issued<T> {
    fn new(most: usize) -> Self {
        Self { open: FxHashMap::default(), most, forgotten_until: None }
    }

    fn insert(&mut self, key: Key, taken: Option<T>) {
        if self.open.len() >= self.most {
            self.forget();
        }
        self.open.insert(key, taken);
    }

    /// Forgets the older half.
    fn forget(&mut self) {
        let mut times: Vec<u64> = self.open.keys().map(|(_, time)| *time).collect();
        let middle = times.len() / 2;
        let (_, middle, _) = times.select_nth_unstable(middle);
        self.open.retain(|(_, time), _| *time > *middle);
        self.forgotten_until = self.forgotten_until.max(Some(*middle));
    }

    fn remove(&mut self, key: &Key) -> Known<T> {
        match self.open.remove(key) {
            Some(Some(taken)) => Known::Taken(taken),
            None if self.forgotten_until.is_some_and(|until| key.1 <= until) => Known::Forgotten,
            Some(None) | None => Known::Not,
        }
    }
}

/// Requests of which not all is known yet.
pub(super) struct BlockRequests {
    /// What takes so long stands for itself alone.
    period: Nanos,
    issued: Issued<Taken>,
    complete: Vec<Complete>,
    /// Names of devices by their numbers.
    names: FxHashMap<u32, String>,
}

impl BlockRequests {
    pub(super) fn new(period: Nanos) -> Self {
        Self { period, issued: Issued::new(MOST_OPEN), complete: Vec::new(), names: FxHashMap::default() }
    }
}

impl ProgramRecords for BlockRequests {
    /// Takes one of the two records.
    fn take(&mut self, output: &mut Output<'_>, record: &SourceRecord<'_>) -> bool {
        let header = record.header;
        if header.flags().has(SampleFlags::BACK) {
            let is_bare = request_of(header).chance == 0;
            let without_stack = if is_bare { output.recorder.take_none(record) } else { None };
            self.complete.push(Complete { header: *header, without_stack });
        } else {
            self.issued.insert((Tid(header.tid), header.time), output.recorder.take_stack(record));
        }
        true
    }

    /// Hands on what was joined in this round.
    fn end_round(&mut self, output: &mut Output<'_>, _: Nanos) {
        for Complete { header, without_stack } in self.complete.drain(..) {
            let request = request_of(&header);
            let since = Nanos(request.since);
            let (pid, tid) = (Pid(header.pid), Tid(header.tid));
            let taken = match self.issued.remove(&(tid, request.since)) {
                _ if request.chance == 0 => without_stack,
                Known::Taken(taken) => Some(taken),
                Known::Forgotten => {
                    output.recorder.ledger_mut().lose(LossCause::NoRoom, 1);
                    None
                }
                Known::Not => None,
            };
            let Some(taken) = taken else { continue };
            let data = data(&header, &request, self.period);
            let context = Context { time: since, pid, tid, cpu: taken.cpu.into() };
            let bytes = bytemuck::bytes_of(&data);
            if !output.process(&context, bytes) {
                continue;
            }
            let device = request.key.device;
            let recorder = &mut *output.recorder;
            let name = self.names.entry(device).or_insert_with(|| {
                let question = Question::new(Subject::Device, device);
                recorder.ask(question, || Some(device_name(device))).unwrap_or_default()
            });
            let operation = operation_name(request.key.operation);
            let estimated = estimated(data.weight > 1.0);
            let labels = [("device", name.as_str()), ("operation", operation), estimated];
            let size = ("bytes", i64::try_from(request.bytes).unwrap_or(i64::MAX));
            let attributes = attributes(output.recorder, &labels, &[size]);
            let value = weighted(data.took_ns, data.weight);
            output.recorder.add_sample(output.kind, Taken { time: since, ..taken }, value, attributes);
            output.recorder.deliver(&taken);
        }
    }
}

fn request_of(header: &SampleHeader) -> BlockRequest {
    bytemuck::cast(header.data)
}

fn data(complete: &SampleHeader, request: &BlockRequest, period: Nanos) -> BlockTime {
    let took_ns = complete.time.saturating_sub(request.since);
    let stands_alone = request.chance == 0 || took_ns >= period.0;
    let weight = if stands_alone { 1.0 } else { f64::from(CHANCES) / f64::from(request.chance) };
    let collector_common::wire::BlockKey { device, operation } = request.key;
    BlockTime { took_ns, bytes: request.bytes, weight, device, operation }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_after_it_was_forgotten_is_told() {
        let mut issued = Issued::new(4);
        for time in [40, 10, 20, 30] {
            issued.insert((Tid(1), time), Some(time));
        }
        assert_eq!(issued.remove(&(Tid(1), 5)), Known::Not, "nothing was forgotten yet");
        issued.insert((Tid(1), 50), Some(50));
        let known = [10, 20, 30, 40, 50, 50].map(|time| issued.remove(&(Tid(1), time)));
        let taken = Known::Taken;
        let expected =
            [Known::Forgotten, Known::Forgotten, Known::Forgotten, taken(40), taken(50), Known::Not];
        assert_eq!(known, expected);
    }

    #[test]
    fn what_is_not_to_be_recorded_is_not_missed() {
        let mut issued = Issued::new(2);
        issued.insert((Tid(1), 10), None);
        issued.insert((Tid(2), 20), Some(20));
        assert_eq!(issued.remove(&(Tid(1), 10)), Known::Not);
        issued.insert((Tid(3), 20), Some(3));
        issued.insert((Tid(3), 30), Some(30));
        // Of one time, all go: they are told apart by their threads alone.
        assert_eq!(
            [Tid(2), Tid(3)].map(|tid| issued.remove(&(tid, 20))),
            [Known::Forgotten, Known::Forgotten]
        );
        issued.insert((Tid(4), 15), None);
        assert_eq!(issued.remove(&(Tid(4), 15)), Known::Not, "it came late");
        assert_eq!(issued.remove(&(Tid(3), 30)), Known::Taken(30));
    }

    #[test]
    fn those_beyond_are_counted_once() {
        let mut issued = Issued::new(MOST_OPEN);
        let all = MOST_OPEN as u64 + 10_000;
        (0..all).for_each(|time| issued.insert((Tid(1), time), Some(time)));
        assert!(issued.open.len() <= MOST_OPEN);
        let mut counts = [0; 3];
        for time in 0..all {
            let known = match issued.remove(&(Tid(1), time)) {
                Known::Taken(taken) => usize::from(taken != time),
                Known::Forgotten => 2,
                Known::Not => 1,
            };
            counts[known] += 1;
        }
        let forgotten = MOST_OPEN / 2 + 1;
        assert_eq!(counts, [all as usize - forgotten, 0, forgotten]);
    }
}
