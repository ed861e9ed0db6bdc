//! What becomes of the recording itself: losses, throttling, counters, and callchains that come later.

use super::Body;
use crate::ids::{Nanos, Pid, Tid};
use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{Callchain, Misc, ParseConfig, ReadValues};

/// `PERF_RECORD_LOST`: the ring was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The event's id.
    pub id: u64,
    /// How many records were lost.
    pub count: u64,
}

impl<'a> Body<'a> for Lost {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self { id: fields.u64()?, count: fields.u64()? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.u64(self.id);
        writer.u64(self.count);
        Ok(())
    }
}

/// `PERF_RECORD_LOST_SAMPLES`: the hardware, or the filter of a BPF program, lost samples (Linux 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSamples {
    /// How many.
    pub count: u64,
}

impl<'a> Body<'a> for LostSamples {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self { count: fields.u64()? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.u64(self.count);
        Ok(())
    }
}

/// `PERF_RECORD_THROTTLE`, samples came too fast and the event stands still from here on, and `PERF_RECORD_UNTHROTTLE`,
/// it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttling {
    /// When.
    pub time: Nanos,
    /// The event's id.
    pub id: u64,
    /// The event's own id.
    pub stream_id: u64,
}

impl<'a> Body<'a> for Throttling {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self { time: fields.nanos()?, id: fields.u64()?, stream_id: fields.u64()? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.nanos(self.time);
        writer.u64(self.id);
        writer.u64(self.stream_id);
        Ok(())
    }
}

/// `PERF_RECORD_READ`: what a thread's counters had at its end, with `inherit_stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read<'a> {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The values.
    pub values: ReadValues<'a>,
}

impl<'a> Body<'a> for Read<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc, config: &ParseConfig) -> Option<Self> {
        let (pid, tid) = (fields.pid()?, fields.tid()?);
        Some(Self { pid, tid, values: ReadValues::read(fields, config.read_format)? })
    }

    fn write(&self, writer: &mut Writer<'_>, config: &ParseConfig) -> Result<(), WriteError> {
        writer.pid(self.pid);
        writer.tid(self.tid);
        self.values.write(writer, config.read_format)
    }
}

/// `PERF_RECORD_CALLCHAIN_DEFERRED`: the user part of the callchains that end in
/// [`crate::perf::ChainContext::USER_DEFERRED`] and this cookie (Linux 6.19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallchainDeferred<'a> {
    /// The number that those callchains have.
    pub cookie: u64,
    /// The callchain.
    pub callchain: Callchain<'a>,
}

impl<'a> Body<'a> for CallchainDeferred<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        let (cookie, count) = (fields.u64()?, fields.u64()?);
        Some(Self { cookie, callchain: fields.words(count)?.into() })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.u64(self.cookie);
        writer.u64(self.callchain.words.len() as u64);
        writer.words(self.callchain.words);
        Ok(())
    }
}
