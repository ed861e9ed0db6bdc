//! The AUX area, into which hardware such as Intel PT writes by itself.

use super::Body;
use crate::ids::{Pid, Tid};
use crate::perf::bits::bit_set;
use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{Misc, ParseConfig};

bit_set! {
    /// `PERF_AUX_FLAG_*`; bits 8 to 15 are a format of the PMU's own.
    AuxFlags(u64) {
        /// Data was cut to fit.
        TRUNCATED = 0;
        /// Data overwrote older data.
        OVERWRITE = 1;
        /// There are gaps.
        PARTIAL = 2;
        /// It collided with another's use of the hardware.
        COLLISION = 3;
    }
}

/// `PERF_RECORD_AUX`: new data is in the AUX area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aux {
    /// Where it begins.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// What is to be known of it.
    pub flags: AuxFlags,
}

impl<'a> Body<'a> for Aux {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self { offset: fields.u64()?, size: fields.u64()?, flags: AuxFlags(fields.u64()?) })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.u64(self.offset);
        writer.u64(self.size);
        writer.u64(self.flags.0);
        Ok(())
    }
}

/// `PERF_RECORD_ITRACE_START`: a trace of instructions began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItraceStart {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
}

impl<'a> Body<'a> for ItraceStart {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self { pid: fields.pid()?, tid: fields.tid()? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.pid(self.pid);
        writer.tid(self.tid);
        Ok(())
    }
}

/// `PERF_RECORD_AUX_OUTPUT_HW_ID`: the number that the hardware uses in the AUX area for the event of the sample id
/// (Linux 5.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuxOutputHwId {
    /// The hardware's number.
    pub hw_id: u64,
}

impl<'a> Body<'a> for AuxOutputHwId {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self { hw_id: fields.u64()? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.u64(self.hw_id);
        Ok(())
    }
}
