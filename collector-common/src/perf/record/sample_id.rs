//! `struct sample_id`: when and where a record other than a sample was written.

use crate::ids::{Nanos, Pid, Tid};
use crate::perf::fields::Fields;
use crate::perf::sample::{Parts, cpu};
use crate::perf::write::{WriteError, Writer};
use crate::perf::{ParseConfig, SampleType};

/// When and where a record was written, as far as the event's `sample_type` says it. The kernel writes it in
/// `perf_event__output_id_sample` of `kernel/events/core.c`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleId {
    /// The process that was running.
    pub pid: Option<Pid>,
    /// The thread that was running; there with the process.
    pub tid: Option<Tid>,
    /// When, in the event's clock.
    pub time: Option<Nanos>,
    /// The event's id; of an inherited event, its parent's.
    pub id: Option<u64>,
    /// The event's own id.
    pub stream_id: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// The event's id, with `PERF_SAMPLE_IDENTIFIER`.
    pub identifier: Option<u64>,
}

impl SampleId {
    /// The id of the event that the record is from.
    pub fn event(&self) -> Option<u64> {
        self.identifier.or(self.id)
    }

    /// Reads all of it; an empty one if the event has none.
    pub(super) fn read(fields: &mut Fields<'_>, config: &ParseConfig) -> Option<Self> {
        let mut id = Self::default();
        if !config.sample_id_all {
            return Some(id);
        }
        let has = |part| config.sample_type.contains(part);
        if has(SampleType::TID) {
            id.pid = Some(fields.pid()?);
            id.tid = Some(fields.tid()?);
        }
        if has(SampleType::TIME) {
            id.time = Some(fields.nanos()?);
        }
        if has(SampleType::ID) {
            id.id = Some(fields.u64()?);
        }
        if has(SampleType::STREAM_ID) {
            id.stream_id = Some(fields.u64()?);
        }
        if has(SampleType::CPU) {
            id.cpu = Some(cpu(fields)?);
        }
        if has(SampleType::IDENTIFIER) {
            id.identifier = Some(fields.u64()?);
        }
        Some(id)
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>, config: &ParseConfig) -> Result<(), WriteError> {
        if !config.sample_id_all {
            return Ok(());
        }
        let mut parts = Parts { writer, asked: config.sample_type };
        parts.task(self.pid, self.tid)?;
        parts.number(SampleType::TIME, self.time.map(|time| time.0))?;
        parts.number(SampleType::ID, self.id)?;
        parts.number(SampleType::STREAM_ID, self.stream_id)?;
        parts.cpu(self.cpu)?;
        parts.number(SampleType::IDENTIFIER, self.identifier)
    }
}
