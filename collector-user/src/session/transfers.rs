//! Records of calls that transfer data: to the closures of their event, and as samples of the time that they took.

use collector_common::ids::Nanos;
use collector_common::wire::{SampleFlags, Transfer};

use super::dispatch::{attributes, estimated, weighted};
use super::program_records::{Output, ProgramRecords};
use crate::recorder::context_of;
use crate::scenario::TransferTime;
use crate::source::SourceRecord;
use crate::source::calls::error_of;
use crate::transfers::{kind_name, operation_name, place};

/// Each is a sample at once.
pub(super) struct Transfers {
    /// What takes so long stands for itself alone.
    period: Nanos,
}

impl Transfers {
    pub(super) fn new(period: Nanos) -> Self {
        Self { period }
    }
}

impl ProgramRecords for Transfers {
    fn take(&mut self, output: &mut Output<'_>, record: &SourceRecord<'_>) -> bool {
        let Ok(transfer) = bytemuck::try_pod_read_unaligned::<Transfer>(record.data) else { return false };
        let (operation, kind) = (operation_name(transfer.operation), kind_name(transfer.kind));
        let place = place(&transfer);
        // What the kernel drew the record with, in the same numbers.
        let weight = (self.period.0.min(u32::MAX.into()) as f64 / transfer.took.max(1) as f64).max(1.0);
        let data = TransferTime::new(&transfer, weight, [operation, kind, &place]);
        if !output.process(&context_of(record), bytemuck::bytes_of(&data)) {
            return false;
        }
        let Some(taken) = output.recorder.take_stack(record) else { return false };
        let recorder = &mut *output.recorder;
        let estimated = estimated(weight > 1.0);
        let error = error_of(transfer.returned).unwrap_or_default();
        let bytes = ("bytes", i64::try_from(transfer.bytes).unwrap_or(i64::MAX));
        let (operation, error) = (("operation", operation), ("error", &*error));
        let attributes = if record.header.flags().has(SampleFlags::SOCKET) {
            let labels = [operation, ("address", &*place), error, estimated];
            let numbers = [bytes, ("local_port", transfer.local_port.into())];
            let known = if transfer.local_port == 0 { 1 } else { 2 };
            attributes(recorder, &labels, &numbers[..known])
        } else {
            let labels = [operation, ("kind", kind), ("path", &place), error, estimated];
            attributes(recorder, &labels, &[bytes])
        };
        let value = weighted(transfer.took, weight);
        recorder.add_sample(output.kind, taken.since(transfer.took), value, attributes);
        recorder.deliver(&taken);
        true
    }
}
