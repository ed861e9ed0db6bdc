//! Records of slow system calls: to the closures of their event, and as samples of the time that they took.

use collector_common::wire::Call;

use super::dispatch::attributes;
use super::program_records::{Output, ProgramRecords};
use crate::recorder::context_of;
use crate::source::SourceRecord;
use crate::source::calls::{error_of, name_of_slot};

/// Each is a sample at once.
pub(super) struct Calls;

impl ProgramRecords for Calls {
    fn take(&mut self, output: &mut Output<'_>, record: &SourceRecord<'_>) -> bool {
        let Some(call) = record.data.get(..size_of::<Call>()) else { return false };
        if !output.process(&context_of(record), call) {
            return false;
        }
        let call: Call = bytemuck::pod_read_unaligned(call);
        let Some(taken) = output.recorder.take_stack(record) else { return false };
        let recorder = &mut *output.recorder;
        let (name, error) = (name_of_slot(call.slot), error_of(call.returned).unwrap_or_default());
        let attributes = attributes(recorder, &[("call", name.as_str()), ("error", error.as_str())], &[]);
        recorder.add_sample(output.kind, taken.since(call.took), call.took.cast_signed(), attributes);
        recorder.deliver(&taken);
        true
    }
}
