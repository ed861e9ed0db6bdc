//! Memory that the kernel gives to processes: each recorded call is a sample at once.

use collector_common::record::AttributeListId;

use super::allocations::{data_of, draw, stands_for, values};
use super::program_records::{Output, ProgramRecords};
use crate::recorder::context_of;
use crate::scenario::AllocatedBlock;
use crate::source::SourceRecord;

/// What is made of the records.
pub(super) struct Mapped {
    /// Of so many bytes one is recorded.
    period: u64,
}

impl Mapped {
    pub(super) fn new(period: u64) -> Self {
        Self { period }
    }
}

impl ProgramRecords for Mapped {
    fn take(&mut self, output: &mut Output<'_>, record: &SourceRecord<'_>) -> bool {
        let mapped = data_of(record.header);
        let weight = stands_for(mapped.bytes, self.period);
        let data = AllocatedBlock { bytes: mapped.bytes, address: mapped.address, weight };
        if !output.process(&context_of(record), bytemuck::bytes_of(&data)) {
            return false;
        }
        let Some(taken) = output.recorder.take_stack(record) else { return false };
        let [bytes, _] = values(mapped.bytes, weight, draw(mapped.since, mapped.address));
        output.recorder.add_sample(output.kind, taken, bytes, AttributeListId::NONE);
        output.recorder.deliver(&taken);
        true
    }
}
