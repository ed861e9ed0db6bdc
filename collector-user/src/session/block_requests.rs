//! Joins the two records of a request to a block device: the one that was made when it was issued, with the stacks of the
//! thread that did it, and the one that was made when it was complete. As in [`super::times_off`], the second may be met first
//! within a round.

use collector_common::event::Context;
use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::wire::{BlockRequest, CHANCES, SampleFlags, SampleHeader};
use rustc_hash::FxHashMap;

use super::dispatch::{attributes, estimated, weighted};
use super::program_records::{Output, ProgramRecords};
use crate::devices::{device_name, operation_name};
use crate::recorder::{Question, Subject, Taken};
use crate::scenario::BlockTime;
use crate::source::SourceRecord;

/// Requests that are waited for: more than devices have at a time. Of those beyond, the record of their end was lost, which is
/// counted in the kernel.
const MOST_OPEN: usize = 1 << 16;

/// A request that is complete, and what it was taken as where there are no stacks.
struct Complete {
    header: SampleHeader,
    without_stack: Option<Taken>,
}

/// Requests of which not all is known yet.
pub(super) struct BlockRequests {
    /// What takes so long stands for itself alone.
    period: Nanos,
    /// By thread and when they were issued.
    issued: FxHashMap<(Tid, u64), Taken>,
    complete: Vec<Complete>,
    /// Names of devices by their numbers.
    names: FxHashMap<u32, String>,
}

impl BlockRequests {
    pub(super) fn new(period: Nanos) -> Self {
        let (issued, names) = (FxHashMap::default(), FxHashMap::default());
        Self { period, issued, complete: Vec::new(), names }
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
        } else if let Some(taken) = output.recorder.take_stack(record) {
            if self.issued.len() >= MOST_OPEN {
                self.issued.clear();
            }
            self.issued.insert((Tid(header.tid), header.time), taken);
        }
        true
    }

    /// Hands on what was joined in this round.
    fn end_round(&mut self, output: &mut Output<'_>) {
        for Complete { header, without_stack } in self.complete.drain(..) {
            let request = request_of(&header);
            let since = Nanos(request.since);
            let (pid, tid) = (Pid(header.pid), Tid(header.tid));
            let Some(taken) = self.issued.remove(&(tid, request.since)).or(without_stack) else { continue };
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
