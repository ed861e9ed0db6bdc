//! Records of page faults: to the closures of their event, and as samples of as many faults as each stands for.

use super::program_records::{Output, ProgramRecords};
use crate::recorder::context_of;
use crate::source::SourceRecord;

/// Each is a sample at once, whether a program or a plain perf event tells of it.
pub(super) struct Faults;

impl ProgramRecords for Faults {
    fn take(&mut self, output: &mut Output<'_>, record: &SourceRecord<'_>) -> bool {
        output.recorder.is_wanted(record)
            && output.process(&context_of(record), &record.value.to_ne_bytes())
            && output.recorder.sample(output.kind, record)
    }
}
