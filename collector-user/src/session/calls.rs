//! Records of slow system calls: to the closures of their event, and as samples of the time that they took.

use collector_common::event::{Context, EventErrors};
use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::record::SampleKindId;
use collector_common::wire::Call;

use super::dispatch::attributes;
use crate::recorder::Recorder;
use crate::source::calls::{error_of, name_of_slot};
use crate::source::{Hook, SourceRecord};

/// Takes one record, and says whether it is in the recording.
pub(super) fn take(
    hook: &mut Hook,
    kind: SampleKindId,
    recorder: &mut Recorder,
    record: &SourceRecord<'_>,
    errors: &mut EventErrors,
) -> bool {
    let Some(call) = record.data.get(..size_of::<Call>()) else { return false };
    let header = record.header;
    let context =
        Context { time: Nanos(header.time), pid: Pid(header.pid), tid: Tid(header.tid), cpu: header.cpu };
    if !hook.event.process_in(Some(&context), call, call, errors) {
        return false;
    }
    let call: Call = bytemuck::pod_read_unaligned(call);
    let Some(taken) = recorder.take_stack(record) else { return false };
    let (name, error) = (name_of_slot(call.slot), error_of(call.returned).unwrap_or_default());
    let attributes = attributes(recorder, [("call", name.as_str()), ("error", error.as_str())]);
    recorder.add_sample(kind, taken, call.took.cast_signed(), attributes);
    recorder.deliver(&taken);
    true
}
